"""Writes the ops of an MNN file as ONNX nodes of exactly the same meaning.

The result is None if ONNX has no equivalent, or if MNN's meaning depends on a data format other
than the order of the axes. Types are MNN's: truth values and counts are int32, also where ONNX
requires int64. Sources: MNN's shape inference (source/shape) and converter, and runs of MNN:
tests/conformance/test_mnn_format.py compares lowered models with it.
"""

from __future__ import annotations

from ...ir.graph import Node
from ..lowering import lower_by, table
from . import attention, elementwise, movement, windows
from .node_writer import OpWriter

#: Op type to row.
ROWS = table(attention.ROWS, elementwise.ROWS, movement.ROWS, windows.ROWS)


def lower(node: Node) -> tuple[Node, ...] | None:
    """The node as ONNX nodes; None without an equivalent."""
    return lower_by(ROWS.get(node.op), OpWriter(node))
