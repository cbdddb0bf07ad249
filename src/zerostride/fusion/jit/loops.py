"""Loops over a row's elements in LLVM's intermediate representation: whole vectors, then the rest.

They use names of the function that `phases` writes: %count elements from the block's first one on,
and %past, which is not 0 where results are to be stored past the caches.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

#: Bytes of a cache line. A line stored partly past the caches and partly through them costs more
#: than is saved, so only whole lines go past the caches, from a row's first one on.
LINE = 64
#: Marks a store that goes past the caches.
NONTEMPORAL = "!nontemporal !0"
METADATA = "!0 = !{i32 1}"


@dataclass(frozen=True, slots=True)
class Turns:
    """A loop's turns.

    Attributes:
        label: the prefix of its names.
        lanes: elements of a turn.
        masked: whether a part of a vector is one turn; otherwise it is done element by element.
        write: returns a turn's lines and the label under which they end, from its lanes, its first
            element, its mask, whether it stores past the caches, and the label that it starts at.
    """

    label: str
    lanes: int
    masked: bool
    write: Callable[[int, str, str | None, bool, str], tuple[list[str], str]]

    def plain(self) -> list[str]:
        """All %count elements."""
        label = self.label
        return [
            f"  br label %{label}",
            f"{label}:",
            f"  %{label}.whole = and i64 %count, {-self.lanes}",
            f"  %{label}.any = icmp sgt i64 %{label}.whole, 0",
            f"  br i1 %{label}.any, label %{label}.loop, label %{label}.rest",
            *self._whole("loop", "0", label, past=False),
            *self._rest(),
        ]

    def one_row(self, count: int) -> list[str]:
        """All elements of a row of `count`, without a loop."""
        block = self.label
        lines, first = [f"  br label %{block}", f"{block}:"], 0
        while first < count:
            left, mask = count - first, None
            lanes = self.lanes
            if left < lanes and self.masked and left & (left - 1):
                mask = _constant_mask(left, lanes)
            elif left < lanes:
                lanes = 1 << (left.bit_length() - 1)
            turn, block = self.write(lanes, str(first), mask, False, block)
            lines += turn
            first += lanes
        return lines

    def past(self, to: str, size: int) -> list[str]:
        """All %count elements; where %past is set, whole lines go past the caches.

        Args:
            to: where the elements are stored.
            size: bytes of one.
        """
        label, group = self.label, max(self.lanes, LINE // size)
        return [
            f"  br label %{label}",
            f"{label}:",
            f"  %{label}.asked = icmp ne i64 %past, 0",
            f"  %{label}.at = ptrtoint ptr {to} to i64",
            f"  %{label}.back = sub i64 0, %{label}.at",
            f"  %{label}.bytes = and i64 %{label}.back, {LINE - 1}",
            f"  %{label}.before = lshr i64 %{label}.bytes, {size.bit_length() - 1}",
            f"  %{label}.short = icmp slt i64 %{label}.before, %count",
            f"  %{label}.some = select i1 %{label}.short, i64 %{label}.before, i64 %count",
            f"  %{label}.first = select i1 %{label}.asked, i64 %{label}.some, i64 0",
            f"  %{label}.left = sub i64 %count, %{label}.first",
            f"  %{label}.most = and i64 %{label}.left, {-group}",
            f"  %{label}.whole = add i64 %{label}.first, %{label}.most",
            f"  %{label}.split = icmp sgt i64 %{label}.first, 0",
            f"  br i1 %{label}.split, label %{label}.head, label %{label}.which",
            *self._part("head", label, "0", f"%{label}.first", "which"),
            f"{label}.which:",
            f"  %{label}.any = icmp sgt i64 %{label}.most, 0",
            f"  br i1 %{label}.any, label %{label}.choose, label %{label}.rest",
            f"{label}.choose:",
            f"  br i1 %{label}.asked, label %{label}.past, label %{label}.loop",
            *self._whole("past", f"%{label}.first", f"{label}.choose", past=True),
            *self._whole("loop", f"%{label}.first", f"{label}.choose", past=False),
            *self._rest(),
        ]

    def _whole(self, name: str, first: str, before: str, *, past: bool) -> list[str]:
        """Whole vectors, up to %whole."""
        block, i = f"{self.label}.{name}", f"%{self.label}.{name}.i"
        lines, end = self.write(self.lanes, i, None, past, block)
        return [
            f"{block}:",
            f"  {i} = phi i64 [{first}, %{before}], [%{block}.next, %{end}]",
            *lines,
            *self._again(name, f"%{self.label}.whole", self.lanes, "rest"),
        ]

    def _rest(self) -> list[str]:
        """The elements after the whole vectors."""
        label = self.label
        return [
            f"{label}.rest:",
            f"  %{label}.more = icmp slt i64 %{label}.whole, %count",
            f"  br i1 %{label}.more, label %{label}.tail, label %{label}.done",
            *self._part("tail", f"{label}.rest", f"%{label}.whole", "%count", "done"),
            f"{label}.done:",
        ]

    def _part(self, name: str, before: str, first: str, end: str, after: str) -> list[str]:
        """Less than a vector."""
        block = f"{self.label}.{name}"
        if self.masked:
            mask, mask_lines = _mask(block, first, end, self.lanes)
            lines, _ = self.write(self.lanes, first, mask, False, block)
            return [f"{block}:", *mask_lines, *lines, f"  br label %{self.label}.{after}"]
        i = f"%{block}.i"
        lines, last = self.write(1, i, None, False, block)
        return [
            f"{block}:",
            f"  {i} = phi i64 [{first}, %{before}], [%{block}.next, %{last}]",
            *lines,
            *self._again(name, end, 1, after),
        ]

    def _again(self, name: str, end: str, lanes: int, after: str) -> list[str]:
        """The end of a turn."""
        block = f"{self.label}.{name}"
        return [
            f"  %{block}.next = add i64 %{block}.i, {lanes}",
            f"  %{block}.go = icmp slt i64 %{block}.next, {end}",
            f"  br i1 %{block}.go, label %{block}, label %{self.label}.{after}",
        ]


def _constant_mask(count: int, lanes: int) -> str:
    """The first `count` lanes."""
    return f"<{', '.join(f'i1 {str(lane < count).lower()}' for lane in range(lanes))}>"


def _mask(block: str, first: str, end: str, lanes: int) -> tuple[str, list[str]]:
    """The lanes of a vector's first elements."""
    row = f"<{lanes} x i32>"
    each = ", ".join(f"i32 {lane}" for lane in range(lanes))
    return f"%{block}.mask", [
        f"  %{block}.over = sub i64 {end}, {first}",
        f"  %{block}.short = trunc i64 %{block}.over to i32",
        f"  %{block}.one = insertelement {row} poison, i32 %{block}.short, i64 0",
        f"  %{block}.ends = shufflevector {row} %{block}.one, {row} poison, {row} zeroinitializer",
        f"  %{block}.mask = icmp ult {row} <{each}>, %{block}.ends",
    ]
