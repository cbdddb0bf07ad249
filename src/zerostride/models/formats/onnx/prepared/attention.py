"""Attention as products, a sum and a softmax, and the other ops of `onnx_ops.written`."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from .....attention import AttentionPlan
from .....attention.plan import UNASKED
from .....attention.planning import plan_asked
from .....attention.rows import find_rule
from .....errors import BroadcastError
from ....onnx_ops.attention_sites import row_of
from ....onnx_ops.written.calls import CompoundCall, NotWritten
from ....onnx_ops.written.heads import (
    Space,
    attend,
    by_head,
    infinite_where_none,
    seen_of,
    side_by_side,
)
from ....onnx_ops.written.table import COMPOUNDS, WRITTEN, written
from .rewriting import Rewriting, attributes_of

if TYPE_CHECKING:
    import onnx

_FLOAT32, _BOOL = 1, 9
#: The ops that are written out.
COMPOUND_OPS = frozenset(op for _, op in COMPOUNDS)


@dataclass(frozen=True, slots=True)
class _Call:
    """An attention whose sizes are numbers."""

    plan: AttentionPlan
    inputs: tuple[str, ...]
    heads: tuple[int, int] | None  # where they lie side by side

    @property
    def space(self) -> Space:
        """The sizes."""
        return Space(*map(int, self.plan.space))


def written_out(graph: Rewriting, ops: Set[str]) -> list[str]:
    """Writes compound ops out where it can; the ops of the nodes that it wrote."""
    return [node.op_type for node in graph.each(partial(_written, graph, ops))]


def _written(graph: Rewriting, ops: Set[str], node: onnx.NodeProto) -> bool:
    """Writes an op of 32-bit floats as others, where its form is known."""
    if node.op_type not in ops or _key(node) not in COMPOUNDS:
        return False
    try:
        write(graph, node)
    except NotWritten:
        return False
    return True


def write(graph: Rewriting, node: onnx.NodeProto) -> None:
    """Writes a compound op of 32-bit floats as others.

    Raises:
        NotWritten: its form is not written out; the graph has no new constants then.
    """
    if graph.types.get(node.input[0]) != _FLOAT32:
        raise NotWritten(f"its numbers are {graph.dtype(node.input[0])}, not float32")
    constants = len(graph.graph.initializer)
    compound = _compound(graph, node)
    try:
        attention = _key(node) not in WRITTEN
        results = _attended(graph, node, compound) if attention else written(compound)
    except NotWritten:
        del graph.graph.initializer[constants:]
        raise
    graph.ending_in(node, results)


def _key(node: onnx.NodeProto) -> tuple[str, str]:
    return node.domain.removeprefix("ai.onnx"), node.op_type


def _compound(graph: Rewriting, node: onnx.NodeProto) -> CompoundCall:
    (domain, op), outputs = _key(node), tuple(map(bool, node.output))
    return CompoundCall(op, domain, tuple(node.input), outputs, attributes_of(node), graph)


def _attended(
    graph: Rewriting, node: onnx.NodeProto, compound: CompoundCall
) -> tuple[str, str, str]:
    """Writes an Attention of ai.onnx."""
    call = _call(graph, node, compound)
    space = call.space
    query = _by_head(graph, call, compound, 0)
    key, value = (_with_past(graph, call, compound, position) for position in (1, 2))
    bias, seen = _masks(graph, call, compound)
    factor, softcap = call.plan.factor or 1.0, call.plan.softcap
    result = attend(compound, space, (query, key, value), factor, softcap, bias, seen)
    if call.heads is not None:
        result = side_by_side(compound, result, space)
    return result, key, value


def _call(graph: Rewriting, node: onnx.NodeProto, compound: CompoundCall) -> _Call:
    """The call of a node.

    Raises:
        NotWritten: a part of it is not known.
    """
    inputs = (*node.input, *[""] * 7)
    attributes = attributes_of(node)
    left, right = (attributes.get(f"{side}_window_size", -1) for side in ("left", "right"))
    kind = graph.types.get(inputs[3], _FLOAT32)
    compound.refuse(
        (compound.wants(3), "a step of the way as a result"),
        (kind not in (_FLOAT32, _BOOL), "a mask of other numbers than float32"),
    )
    if any(graph.types.get(name) != _FLOAT32 for name in inputs[:3]):
        raise NotWritten("keys or values that are not float32")
    query, key, value = (compound.sizes(position, 3, 4) for position in range(3))
    past = compound.sizes(4, 4)[2] if inputs[4] else 0
    mask = compound.sizes(3, 0, 1, 2, 3, 4) if inputs[3] else None
    heads = compound.number("q_num_heads"), compound.number("kv_num_heads")
    packed = len(query) == 3
    asked = replace(
        UNASKED,
        shapes=(query, key, value) if mask is None else (query, key, value, mask),
        causal=bool(attributes.get("is_causal", 0)),
        heads=heads if packed else None,
        past=past,
        scale=attributes.get("scale") or None,
        softcap=abs(attributes.get("softcap", 0.0)),
        window=None if left == -1 else left + 1,
        ahead=None if right == -1 else right,
        ragged=bool(inputs[6]),
        mask_type="bool" if kind == _BOOL else "float",
    )
    try:
        plan = plan_asked(find_rule("", row_of(graph.version)), asked)
    except BroadcastError as error:
        raise NotWritten(error.detail) from error
    return _Call(plan, inputs[:7], heads if packed else None)


def _masks(graph: Rewriting, call: _Call, compound: CompoundCall) -> tuple[str | None, str | None]:
    """The sum of all masks, and 1 for a query that sees a key, 0 for another; None: not needed."""
    if call.plan.asked.ragged:
        kept: str | None = _of_samples(graph, call, compound)
    else:
        places = _places(call)
        kept = None if places is None else graph.constant(places)
    empty = "bool" in dict(call.plan.empty)
    if not call.inputs[3]:
        return kept, seen_of(compound, kept, lowest=True) if kept and empty else None
    mask = _added(graph, call, compound)
    if kept is not None:
        mask = graph.add("Add", mask, kept)
    return mask, seen_of(compound, mask, lowest=True)


def _places(call: _Call) -> Any:
    """-inf for each key that is too late for a query, or too early; None for none."""
    plan, keys = call.plan, np.arange(call.space.key)
    if plan.offset is None and plan.window is None:
        return None
    queries, hidden = np.arange(call.space.query)[:, None], np.zeros((), bool)
    if plan.offset is not None:
        hidden = hidden | (keys > queries + int(plan.offset))
    if plan.window is not None and plan.own is not None:
        hidden = hidden | (keys <= queries + int(plan.own) - plan.window)
    return np.where(hidden, np.float32(-np.inf), np.float32(0))


def _of_samples(graph: Rewriting, call: _Call, compound: CompoundCall) -> str:
    """The same where each sample has its own number of keys, and -inf for those behind them."""
    plan, (batch, keys) = call.plan, (call.space.batch, call.space.key)
    counts = compound.fits(6, batch)
    counts = compound.reshaped(graph.as_float(counts), batch, 1, 1, 1)
    places, queries = np.arange(keys), np.arange(call.space.query)[:, None]
    ones = np.ones((call.space.query, 1))
    seen = [compound.with_number("Sub", counts, places * ones)]
    if plan.offset is not None:  # for a sample that has all keys
        last = queries + int(plan.offset) - keys
        seen.append(compound.with_number("Add", counts, last + 1 - places))
    if plan.window is not None and plan.own is not None:
        first = queries + int(plan.own) - keys - plan.window
        early = compound.with_number("Mul", counts, -1)
        seen.append(compound.with_number("Add", early, places - first))
    kept, *rest = map(compound.bounded, seen)
    for other in rest:
        kept = graph.add("Mul", kept, other)
    return infinite_where_none(compound, kept)


def _added(graph: Rewriting, call: _Call, compound: CompoundCall) -> str:
    """The mask as numbers that are added, one for each key."""
    name, keys = call.inputs[3], call.space.key
    shape = graph.shape(name) or ()
    if graph.types.get(name) == _BOOL:
        name = infinite_where_none(compound, graph.as_float(name))
    if call.plan.mask_keys != call.plan.space.key:
        missing = (*shape[:-1], keys - shape[-1])
        behind = graph.constant(np.full(missing, -np.inf, np.float32))
        name = graph.add("Concat", name, behind, axis=-1)
    return name


def _by_head(graph: Rewriting, call: _Call, compound: CompoundCall, position: int) -> str:
    """An operand as (batch, head, length, feature)."""
    name, heads = call.inputs[position], call.heads
    if heads is None:
        return name
    batch, length, width = graph.shape(name) or ()
    number = heads[1] if position else heads[0]
    return by_head(compound, name, batch, length, number, width // number)


def _with_past(graph: Rewriting, call: _Call, compound: CompoundCall, position: int) -> str:
    """Keys or values behind those of the past."""
    past, now = call.inputs[position + 3], _by_head(graph, call, compound, position)
    return compound.joined([past, now], 2) if past else now


__all__ = ["COMPOUND_OPS", "write", "written_out"]
