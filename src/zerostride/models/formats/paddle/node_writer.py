"""Writes the ONNX nodes for an op of Paddle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...ir.graph import Value
from ..lowering import ELEMENT_TYPES, NodeWriter, NoEquivalent

INT64 = ELEMENT_TYPES["int64"]
BOOL = ELEMENT_TYPES["bool"]


class OpWriter(NodeWriter):
    """Writes the ONNX nodes that replace an op; attributes have PIR's names."""

    def channels_first(self) -> None:
        """Refuses data whose channels are not axis 1."""
        layout = self.text("data_format") or self.text("data_layout")
        if layout not in ("", "nchw", "ncdhw", "ncl", "nc", "anylayout"):
            raise NoEquivalent

    def axes(self, position: int, name: str = "") -> tuple[int, ...] | None:
        """Axes from a constant operand or an attribute; None if the node has neither."""
        if self.flag("reduce_all"):
            return None
        if name and name in self.node.attributes:
            return self.listed(name) or None
        if self.optional(position) is None:
            return None
        return self.content(position) or None

    def size(self, axis: int) -> Any:
        """The size of the data's axis, which must be known; it may be an expression."""
        sizes = self.sizes(self.input())
        if not -len(sizes) <= axis < len(sizes):
            raise NoEquivalent
        return sizes[axis]

    def numbers_at(self, position: int) -> Value:
        """An operand that is a list of whole numbers, as ONNX wants it."""
        value = self.input(position)
        if value.content is not None and all(isinstance(n, int) for n in value.content):
            return self.ints(*(n for n in value.content if isinstance(n, int)))
        flat = value if value.shape is not None and len(value.shape) == 1 else None
        flat = self.op("Reshape", value, self.ints(-1)) if flat is None else flat
        return flat if flat.dtype == "int64" else self.op("Cast", flat, to=INT64)

    def number_at(self, position: int) -> Value:
        """An operand of one number, as a number of no axes."""
        value = self.input(position)
        return value if value.shape == () else self.op("Reshape", value, self.ints())

    def lengths(self, value: Value, start: int, end: int | None) -> Value:
        """The sizes of a tensor from one axis to another, as a list."""
        return self.op("Shape", value, start=start, end=end)

    def product_of(self, sizes: Value) -> Value:
        """The product of a list of sizes, as a list of one."""
        return self.op("ReduceProd", sizes, self.ints(0), keepdims=1)

    def joined(self, parts: Sequence[Value]) -> Value:
        """Lists of numbers as one list."""
        return self.op("Concat", *parts, axis=0)

    def as_type(self, value: Value, dtype: str | None) -> Value:
        """A value in an element type."""
        if dtype is None or dtype not in ELEMENT_TYPES:
            raise NoEquivalent
        return value if value.dtype == dtype else self.op("Cast", value, to=ELEMENT_TYPES[dtype])
