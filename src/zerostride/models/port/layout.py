"""The places of an operand's axes after reshapes and broadcasts: proofs without numbers.

An operand's *row* in a tensor has a size for each of the tensor's axes: the operand's own size
where it has the axis, otherwise 1. A broadcast moves rows by its plan's mapping. A reshape regroups
them; the operand must fill each group of axes as a whole or not at all. Two programs that give
every operand the same row in the same shape align their operands in the same way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...sizes import Shape, elements

#: Axes of the old shape, and axes of the new shape with the same elements.
Segment = tuple[tuple[int, ...], tuple[int, ...]]


def segments(old: Shape, new: Shape) -> tuple[Segment, ...] | None:
    """The groups of axes that a reshape turns into one another, axes of extent 1 left out.

    None where a group is more than one axis on both sides, or the shapes do not have as many
    elements.

    >>> segments((2, 3, 1, 4), (6, 4))
    (((0, 1), (0,)), ((3,), (1,)))
    """
    a = [axis for axis, size in enumerate(old) if size != 1]
    b = [axis for axis, size in enumerate(new) if size != 1]
    if [old[axis] for axis in a] == [new[axis] for axis in b]:
        return tuple(((i,), (j,)) for i, j in zip(a, b, strict=True))
    pairs: list[Segment] = []
    while a and b:
        many = _run(old, a, new[b[0]])
        several = _run(new, b, old[a[0]])
        if many:
            pairs.append((tuple(a[:many]), (b[0],)))
            a, b = a[many:], b[1:]
        elif several:
            pairs.append(((a[0],), tuple(b[:several])))
            a, b = a[1:], b[several:]
        else:
            return None
    return None if a or b else tuple(pairs)


def _run(shape: Shape, axes: Sequence[int], product: Any) -> int:
    """The number of leading axes whose product is a size; 0 if there is no such number."""
    for count in range(1, len(axes) + 1):
        if elements([shape[axis] for axis in axes[:count]]) == product:
            return count
    return 0


def regrouped(row: Shape, old: Shape, new: Shape) -> Shape | None:
    """A row after a reshape; None where it fills a group in part, or `segments` finds no groups.

    >>> regrouped((1, 1, 4), (2, 3, 4), (6, 4)), regrouped((1, 3, 4), (2, 3, 4), (6, 4))
    ((1, 4), None)
    """
    groups = segments(old, new)
    if groups is None:
        return None
    result: list[Any] = [1] * len(new)
    for before, after in groups:
        there = [row[axis] for axis in before]
        if there == [old[axis] for axis in before]:
            for axis in after:
                result[axis] = new[axis]
        elif any(size != 1 for size in there):
            return None
    return tuple(result)


def landed(row: Shape, mapping: Sequence[int | None], rank: int) -> Shape:
    """A row after a broadcast that puts its axes where `mapping` says."""
    result: list[Any] = [1] * rank
    for size, axis in zip(row, mapping, strict=True):
        if axis is not None:
            result[axis] = size
    return tuple(result)


def inserted(old: Shape, new: Shape) -> Iterator[tuple[int, ...]]:
    """The inserted axes, if `new` is `old` with axes of 1 inserted; at most two ways.

    Old axes are matched from the right, as NumPy does, and then from the left.

    >>> list(inserted((1, 5), (1, 1, 5)))
    [(0,), (1,)]
    """
    seen = []
    for matched in (_from_right(old, new), _from_left(old, new)):
        if matched is not None and matched not in seen:
            seen.append(matched)
            yield matched


def _from_left(old: Shape, new: Shape) -> tuple[int, ...] | None:
    added, k = [], 0
    for axis, size in enumerate(new):
        if k < len(old) and old[k] == size:
            k += 1
        elif size == 1:
            added.append(axis)
        else:
            return None
    return tuple(added) if k == len(old) else None


def _from_right(old: Shape, new: Shape) -> tuple[int, ...] | None:
    added = _from_left(old[::-1], new[::-1])
    return None if added is None else tuple(sorted(len(new) - 1 - axis for axis in added))
