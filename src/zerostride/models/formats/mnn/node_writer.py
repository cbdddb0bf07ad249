"""Writes the ONNX nodes for an op of MNN."""

from __future__ import annotations

from ...ir.graph import Value
from ..lowering import ELEMENT_TYPES, NodeWriter, NoEquivalent

#: MNN's type of whole numbers, counts and truth values.
INT32 = ELEMENT_TYPES["int32"]
BOOL = ELEMENT_TYPES["bool"]


class OpWriter(NodeWriter):
    """Writes the ONNX nodes that replace an op; its parameters are attributes."""

    def is_image(self) -> None:
        """Refuses data whose channels are not axis 1."""
        if self.text("layout") not in ("nchw", "nc4hw4"):
            raise NoEquivalent

    def plain_order(self) -> None:
        """Refuses an op whose order of axes differs from its operand's."""
        if self.text("layout") == "nc4hw4" and self.text("format") == "nhwc":
            raise NoEquivalent

    def axes(self, name: str) -> Value | None:
        """Axes from the parameter, else from an operand."""
        return self.ints(*self.listed(name)) if self.flag(f"has_{name}") else self.optional(1)
