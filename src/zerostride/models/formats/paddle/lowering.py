"""Writes the ops of a Paddle model as ONNX nodes of exactly the same meaning.

The result is None if ONNX has no equivalent. Rows are by PIR's names of ops, for both formats.
Sources: Paddle's inference of shapes (phi/infermeta) and kernels, and runs of Paddle:
tests/conformance/test_paddle_format.py compares lowered models with it.
"""

from __future__ import annotations

from ...ir.graph import Node
from ..lowering import lower_by, table
from . import elementwise, movement, windows
from .node_writer import OpWriter
from .schema import DOMAIN, canonical

#: Op to row.
ROWS = table(elementwise.ROWS, movement.ROWS, windows.ROWS)


def lower(node: Node) -> tuple[Node, ...] | None:
    """The node as ONNX nodes; None without an equivalent."""
    if node.domain == "":
        return (node,)
    row = ROWS.get(canonical(node)) if node.domain == DOMAIN else None
    return lower_by(row, OpWriter(node))
