"""Ops of an MNN file in ONNX's words, where those mean exactly the same.

`ROWS` has one function an op type, which says it with :class:`~.words.Words`. None, inside of them
:class:`~.words.Unsaid`, is the answer for what ONNX has no words for, or where MNN's meaning
depends on a data format that is not the order of the axes. Types are MNN's: truth values and all
that counts are int32, also where ONNX asks for an int64. Sources: MNN's shape inference
(source/shape) and converter, and running it: tests/conformance/test_mnn_format.py computes lowered
models beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ...ir.graph import Node
from . import elementwise, movement, windows
from .words import Row, Unsaid, Words

#: Op type to what says it.
ROWS: Mapping[str, Row] = MappingProxyType({**elementwise.ROWS, **movement.ROWS, **windows.ROWS})


def lower(node: Node) -> tuple[Node, ...] | None:
    """The node in ONNX's words; None where there are none."""
    row = ROWS.get(node.op)
    if row is None or not node.outputs:
        return None
    try:
        return row(Words(node))
    except Unsaid:
        return None
