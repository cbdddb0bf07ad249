"""Sites of a format's nodes that broadcast like an op of ONNX."""

from __future__ import annotations

from dataclasses import replace

from ...engines.planning import rule_row
from ..ir.graph import Node
from ..ir.site import Kind, Site, not_modelled, present_operands
from ..onnx_ops.sites import find_site
from .lowering import VERSION


def as_onnx(node: Node, op: str, *order: int) -> Site | None:
    """The site of ONNX's op of that name, with the node's operands in this order."""
    inputs = tuple(node.inputs[k] for k in order if k < len(node.inputs)) or node.inputs
    twin = Node(node.name, op, "", VERSION, inputs, node.outputs, node.attributes)
    site = find_site(twin)
    return None if site is None else replace(site, node=node, op=op)


def choice(node: Node, engine: str) -> Site:
    """The site of a choice between two operands by a third, by an engine's own rule."""
    operands = present_operands(node)
    if len(operands) != 3:
        return not_modelled(node)
    return Site(node, Kind.WHERE, operands, rule_row(None, engine=engine, op="where"), {}, "Where")
