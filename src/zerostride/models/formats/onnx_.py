"""ONNX files (.onnx): see :mod:`..onnx` for the reader and :mod:`..sites` for what broadcasts."""

from __future__ import annotations

from ..graph import Node
from ..onnx import read_onnx as read
from ..sites import find_site


def lower(node: Node) -> tuple[Node, ...]:
    """The node: its words are ONNX's."""
    return (node,)


__all__ = ["find_site", "lower", "read"]
