"""ONNX files (.onnx): see :mod:`.reader` for the reader and :mod:`.sites` for what broadcasts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...ir.graph import Node
from .editor import edit
from .reader import read_onnx as read
from .sites import find_site


def lower(node: Node) -> tuple[Node, ...]:
    """The node: its words are ONNX's."""
    return (node,)


def explicit(node: Node) -> Mapping[str, Any] | None:
    """The attributes that change for a node to take identical shapes alone; None from opset 7 on.

    Before that `broadcast` and `axis` say how the second operand is laid over the first, and
    nothing else says NumPy's rule.
    """
    if node.domain or node.version >= 7 or not node.attributes.get("broadcast"):
        return None
    return {"broadcast": None, "axis": None}


__all__ = ["edit", "explicit", "find_site", "lower", "read"]
