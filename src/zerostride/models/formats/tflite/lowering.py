"""Writes builtin ops of LiteRT as ONNX nodes of exactly the same meaning.

The result is None if ONNX has no equivalent. Images have their channels last: an op that slides a
window is put between two transposes. Sources: LiteRT's kernels (tflite/kernels), and runs of
LiteRT: tests/conformance/test_tflite.py compares lowered models with it.
"""

from __future__ import annotations

from ...ir.graph import Node
from ..lowering import table, written_by
from . import control, elementwise, movement, windows
from .node_writer import OperatorWriter

#: Builtin op to row.
ROWS = table(elementwise.ROWS, movement.ROWS, windows.ROWS, control.ROWS)


def lower(node: Node) -> tuple[Node, ...] | None:
    """The node as ONNX nodes; None without an equivalent.

    A node of a subgraph that is put in place stays as it is if ONNX has no equivalent of it.
    """
    if node.domain == "":
        return (node,)
    row = ROWS.get(node.op) if node.domain == "litert" else None
    if row is None or not (node.outputs or node.bodies):
        return None
    writer = OperatorWriter(node)
    try:
        written_by(row)(writer)
    except writer.refusals:
        return None
    return tuple(inner for written in writer.nodes for inner in lower(written) or (written,))
