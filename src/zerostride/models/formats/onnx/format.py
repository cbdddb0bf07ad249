"""ONNX files (.onnx): `reader` reads them; `..onnx_ops.sites` finds what broadcasts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...ir.graph import Node
from ...onnx_ops.sites import find_site
from .editor import edit
from .reader import read_onnx as read


def lower(node: Node) -> tuple[Node, ...]:
    """The node itself: it is an ONNX node."""
    return (node,)


def explicit(node: Node) -> Mapping[str, Any] | None:
    """The attribute changes after which a node takes only identical shapes; None from opset 7 on.

    Before opset 7 `broadcast` and `axis` align the second operand with the first, and no attribute
    selects NumPy's rule.
    """
    if node.domain or node.version >= 7 or not node.attributes.get("broadcast"):
        return None
    return {"broadcast": None, "axis": None}


__all__ = ["edit", "explicit", "find_site", "lower", "read"]
