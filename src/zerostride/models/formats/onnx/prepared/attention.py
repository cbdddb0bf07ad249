"""Attention as products, a sum and a softmax; heads are grouped by a reshape, none is copied."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .....attention import AttentionPlan, plan_attention
from .....errors import BroadcastError
from .rewriting import Rewriting, attributes_of

if TYPE_CHECKING:
    import onnx

_FLOAT32, _BOOL = 1, 9
#: The least number of 32 bits: it swallows any score, and its power is 0.
_LEAST = np.finfo(np.float32).min
#: The least number times this is -4.
_SHRUNK = np.float32(2.0**-126)


@dataclass(frozen=True, slots=True)
class _Call:
    """An attention whose sizes are numbers."""

    plan: AttentionPlan
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    heads: tuple[int, int] | None  # where they lie side by side

    @property
    def sizes(self) -> tuple[int, ...]:
        """Batch, key heads, group, queries, keys, features, features of values."""
        return tuple(map(int, self.plan.space))


def attended(graph: Rewriting, node: onnx.NodeProto) -> bool:
    """Writes an Attention of 32-bit floats whose sizes are numbers."""
    call = _call(graph, node)
    if call is None:
        return False
    batch, heads, group, queries, keys, features, value_features = call.sizes
    query = _by_head(graph, call, 0, heads * group)
    key, value = (_with_past(graph, call, position, heads) for position in (1, 2))
    if group != 1:
        query = graph.reshaped(query, (batch, heads, group * queries, features))
    factor = call.plan.factor
    query = graph.add("Mul", query, graph.constant(np.float32(factor)))
    scores = graph.add("MatMul", query, graph.add("Transpose", key, perm=[0, 1, 3, 2]))
    cap = call.plan.softcap
    if cap:
        bounded = graph.add("Tanh", graph.add("Mul", scores, graph.constant(np.float32(1 / cap))))
        scores = graph.add("Mul", bounded, graph.constant(np.float32(cap)))
    bias, seen = _masks(graph, call)
    apart = group != 1 and bias is not None
    if apart:
        scores = graph.reshaped(scores, (batch, heads * group, queries, keys))
    if bias is not None:
        scores = graph.add("Add", scores, bias)
    if seen is not None:
        # -inf with a key, and the least number without: such a row has no NaN.
        above = graph.add("Add", seen, graph.constant(np.float32(1)))
        floor = graph.add("Mul", above, graph.constant(_LEAST))
        scores = graph.add("Max", scores, floor)
    weights = graph.add("Softmax", scores, axis=-1)
    if seen is not None:
        weights = graph.add("Mul", weights, seen)
    if apart:
        weights = graph.reshaped(weights, (batch, heads, group * queries, keys))
    packed, goal = call.heads is not None, node.output[0]
    result = graph.add("MatMul", weights, value, to=None if packed or group != 1 else goal)
    if group != 1:
        by_head = (batch, heads * group, queries, value_features)
        result = graph.reshaped(result, by_head, to=None if packed else goal)
    if packed:
        result = graph.add("Transpose", result, perm=[0, 2, 1, 3])
        graph.reshaped(result, (batch, queries, heads * group * value_features), to=goal)
    return True


def _call(graph: Rewriting, node: onnx.NodeProto) -> _Call | None:
    """The call of a node; None where a part of it is not known."""
    inputs, outputs = (*node.input, *[""] * 7), (*node.output, "", "", "")
    attributes = attributes_of(node)
    shapes = [graph.shape(name) for name in inputs[:3]]
    windowed = any(attributes.get(f"{side}_window_size", -1) != -1 for side in ("left", "right"))
    past = graph.shape(inputs[4]) if inputs[4] else (0, 0, 0, 0)
    mask = graph.shape(inputs[3]) if inputs[3] else None
    if inputs[6] or outputs[3] or windowed or None in shapes or past is None:
        return None
    if any(graph.types.get(name) != _FLOAT32 for name in inputs[:3]):
        return None
    kind = graph.types.get(inputs[3], _FLOAT32)
    if (inputs[3] and mask is None) or kind not in (_FLOAT32, _BOOL):
        return None
    heads = attributes.get("q_num_heads", 0), attributes.get("kv_num_heads", 0)
    packed = len(shapes[0] or ()) == 3
    query, key, value = shapes
    try:
        plan = plan_attention(
            query,
            key,
            value,
            mask,
            causal=bool(attributes.get("is_causal", 0)),
            heads=heads if packed else None,
            past=past[2],
            scale=attributes.get("scale") or None,
            softcap=attributes.get("softcap", 0.0),
            mask_type="bool" if kind == _BOOL else "float",
            op="Attention-23" if graph.version == 23 else "Attention",
        )
    except BroadcastError:
        return None
    return _Call(plan, inputs[:7], outputs[:3], heads if packed else None)


def _masks(graph: Rewriting, call: _Call) -> tuple[str | None, str | None]:
    """What is added to the scores, and 1 for each query that sees a key, or else 0; or None."""
    causal = _causal(call)
    if not call.inputs[3]:
        return (None if causal is None else graph.constant(causal)), None
    mask = _added(graph, call)
    if causal is not None:
        mask = graph.add("Add", mask, graph.constant(causal))
    # A key that is masked by -inf, and not by the least number, is none.
    last = graph.constant(np.array([-1], np.int64))
    most = graph.add("ReduceMax", mask, last, keepdims=1)
    shrunk = graph.add("Mul", most, graph.constant(_SHRUNK))
    above = graph.add("Add", shrunk, graph.constant(np.float32(8)))
    bounds = (graph.constant(np.float32(0)), graph.constant(np.float32(1)))
    seen = graph.add("Clip", above, *bounds)
    return mask, seen


def _causal(call: _Call) -> Any:
    """-inf for each key that is too late for a query; None for none."""
    offset = call.plan.offset
    if offset is None:
        return None
    later = np.arange(call.sizes[4]) > np.arange(call.sizes[3])[:, None] + int(offset)
    return np.where(later, np.float32(-np.inf), np.float32(0))


def _added(graph: Rewriting, call: _Call) -> str:
    """The mask as numbers that are added, one for each key."""
    name, keys = call.inputs[3], call.sizes[4]
    shape = graph.shape(name) or ()
    if graph.types.get(name) == _BOOL:
        # 1 becomes 0, and 0 the least number twice, which is -inf.
        kept = graph.add("Sub", graph.as_float(name), graph.constant(np.float32(1)))
        twice = graph.add("Mul", kept, graph.constant(-_LEAST))
        name = graph.add("Add", twice, twice)
    if call.plan.mask_keys != call.plan.space.key:
        missing = (*shape[:-1], keys - shape[-1])
        behind = graph.constant(np.full(missing, -np.inf, np.float32))
        name = graph.add("Concat", name, behind, axis=-1)
    return name


def _by_head(graph: Rewriting, call: _Call, position: int, heads: int, to: str = "") -> str:
    """An operand as (batch, head, length, feature)."""
    name = call.inputs[position]
    if call.heads is None:
        return graph.add("Identity", name, to=to) if to else name
    batch, length, width = graph.shape(name) or ()
    apart = graph.reshaped(name, (batch, length, heads, width // heads))
    return graph.add("Transpose", apart, to=to or None, perm=[0, 2, 1, 3])


def _with_past(graph: Rewriting, call: _Call, position: int, heads: int) -> str:
    """Keys or values behind those of the past, under the name of the result that has them."""
    past, goal = call.inputs[position + 3], call.outputs[position]
    if not past:
        return _by_head(graph, call, position, heads, goal)
    return graph.add(
        "Concat", past, _by_head(graph, call, position, heads), to=goal or None, axis=2
    )


__all__ = ["attended"]
