"""Writes the ONNX nodes for a layer of an IR."""

from __future__ import annotations

from .....core.plan import Plan
from ....ir.graph import Node
from ....ir.site import Kind, Site
from ...lowering import NodeWriter, NoEquivalent
from ..opsets import canonical
from ..sites import find_site


class IrWriter(NodeWriter):
    """Writes the ONNX nodes that replace a layer.

    Attributes:
        kind: the op's name in its document.
    """

    def __init__(self, node: Node) -> None:
        super().__init__(node)
        self.kind = canonical(node.op)

    def site(self) -> Site:
        """The layer's broadcast, which must be modelled."""
        site = find_site(self.node)
        if site is None or site.kind in (Kind.NOT_MODELLED, Kind.CUSTOM):
            raise NoEquivalent
        return site

    def plan(self) -> Plan:
        """The plan of the layer's broadcast; all sizes must be numbers."""
        site = self.site()
        shapes = tuple(part.shape or () for part in site.operands)
        known = all(part.shape is not None for part in site.operands)
        if not known or not all(isinstance(size, int) for shape in shapes for size in shape):
            raise NoEquivalent
        return site.plan(shapes)
