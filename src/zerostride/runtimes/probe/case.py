"""One question to an engine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Case:
    """One question: an op of an engine, with its attributes, on operands of these shapes.

    Attributes:
        engine: the engine's name.
        op: the op as the engine calls it ("Add-14", "elementwise_sub", "broadcast_in_dim").
        a: shape of the first operand (of the data, for ops that broadcast to a target).
        b: shape of the second operand, or the target shape.
        c: shape of the third operand, for ops that have one.
        attrs: the op's attributes.
        dtype: the operands' dtype.
    """

    engine: str
    op: str
    a: Shape
    b: Shape
    c: Shape | None = None
    attrs: Mapping[str, Any] = field(default_factory=dict)
    dtype: str = "float32"

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """The operands' shapes, and the target's."""
        return (self.a, self.b, *(() if self.c is None else (self.c,)))

    def to_json(self) -> dict[str, Any]:
        """As a line of a cases file, without the answer."""
        row: dict[str, Any] = {"engine": self.engine, "op": self.op, "attrs": dict(self.attrs)}
        row |= {"a": list(self.a), "b": list(self.b)}
        if self.c is not None:
            row["c"] = list(self.c)
        if self.dtype != "float32":
            row["dtype"] = self.dtype
        return row

    @staticmethod
    def from_json(row: Mapping[str, Any]) -> Case:
        """The case of one line; raises KeyError, TypeError or ValueError where it is malformed."""
        third = row.get("c")
        return Case(
            str(row["engine"]),
            str(row["op"]),
            shape_of(row["a"]),
            shape_of(row["b"]),
            None if third is None else shape_of(third),
            dict(row.get("attrs", {})),
            str(row.get("dtype", "float32")),
        )


def shape_of(sizes: Iterable[Any]) -> Shape:
    """The shape of a list of a cases file."""
    return tuple(int(size) for size in sizes)
