"""Row of :mod:`.lowering`: Attention as products, a sum and a softmax."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ....attention.plan import AttentionPlan
from ....attention.planning import plan_asked
from ..lowered_attention import causal, weights
from ..lowering import NoEquivalent, table
from .node_writer import OpWriter
from .sites import find_site


def _plan(w: OpWriter) -> AttentionPlan:
    """The plan; raises where it is not known, and where MNN computes something else."""
    site = find_site(w.node)
    if site is None or site.call is None:
        raise NoEquivalent
    shapes: Any = tuple(w.numbers(value) for value in w.node.inputs[:3] if value is not None)
    shapes += tuple(part.shape for part in site.operands[3:])
    plan = plan_asked(site.call.rule, replace(site.call.asked, shapes=shapes))
    plan.need_numbers("a run")
    return plan


def _attention(w: OpWriter) -> None:
    """Query, key and value of (batch, length, head, feature); heads lie side by side after it."""
    plan = _plan(w)
    batch, heads, group, query, key, feature, wide = map(int, plan.space)
    parts = [w.op("Transpose", w.input(k), perm=(0, 2, 1, 3)) for k in range(3)]
    grouped = w.op("Reshape", parts[0], w.ints(batch, heads, group * query, feature))
    scaled = w.op("Mul", grouped, w.number(plan.factor or 1.0, w.dtype()))
    keys = w.op("Transpose", w.input(1), perm=(0, 2, 3, 1))
    every = heads * group
    scores = w.op("Reshape", w.op("MatMul", scaled, keys), w.ints(batch, every, query, key))
    if plan.mask is not None:
        scores = w.op("Add", scores, w.op("Reshape", w.input(3), w.ints(query, key)))
    elif plan.offset is not None:
        scores = causal(w, scores)
    sink = w.optional(4)
    if sink is not None:
        sink = w.op("Reshape", sink, w.ints(1, every, 1, 1))
    kept = w.op("Reshape", weights(w, scores, sink), w.ints(batch, heads, group * query, key))
    result = w.op("Reshape", w.op("MatMul", kept, parts[2]), w.ints(batch, every, query, wide))
    result = w.op("Transpose", result, perm=(0, 2, 1, 3))
    return w.last("Reshape", result, w.ints(batch, query, every * wide))


#: Op type to row.
ROWS = table({"Attention": _attention})
