"""Translates ops of an MNN file to ONNX nodes of exactly the same meaning.

`ROWS` has one function per op type, which builds nodes with :class:`~.words.Words`. The result is
None (:class:`~.words.Unsaid` inside rows) if ONNX has no equivalent, or if MNN's meaning depends on
a data format other than the order of the axes. Types are MNN's: truth values and counts are int32,
also where ONNX requires int64. Sources: MNN's shape inference (source/shape) and converter, and
runs of MNN: tests/conformance/test_mnn_format.py compares lowered models with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ...ir.graph import Node
from . import elementwise, movement, windows
from .words import Row, Unsaid, Words

#: Op type to row.
ROWS: Mapping[str, Row] = MappingProxyType({**elementwise.ROWS, **movement.ROWS, **windows.ROWS})


def lower(node: Node) -> tuple[Node, ...] | None:
    """The node as ONNX nodes; None without an equivalent."""
    row = ROWS.get(node.op)
    if row is None or not node.outputs:
        return None
    try:
        return row(Words(node))
    except Unsaid:
        return None
