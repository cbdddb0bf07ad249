"""Parts of an attention as ONNX nodes: its causal mask, and its softmax with a sink."""

from __future__ import annotations

import math

from ..ir.graph import Value
from .lowering import ELEMENT_TYPES, NodeWriter


def causal(w: NodeWriter, scores: Value) -> Value:
    """The scores, with -inf for the keys behind a query's own number."""
    ones = w.op("Expand", w.number(1.0), w.op("Shape", scores, start=-2))
    seen = w.op("Cast", w.op("Trilu", ones, upper=0), to=ELEMENT_TYPES["bool"])
    return w.op("Where", seen, scores, w.number(-math.inf, w.dtype()), dtype=w.dtype())


def weights(w: NodeWriter, scores: Value, sink: Value | None) -> Value:
    """The softmax of the scores and a sink: one more score of each query, without a weight."""
    if sink is None:
        return w.op("Softmax", scores, axis=-1)
    each = w.op("Concat", w.op("Shape", scores, end=-1), w.ints(1), axis=0)
    every = w.op("Concat", scores, w.op("Expand", sink, each), axis=-1)
    whole = w.op("Softmax", every, axis=-1)
    return w.op("Slice", whole, w.ints(0), w.ints(-1), w.ints(-1))
