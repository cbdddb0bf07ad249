"""The numbers of an attention: NumPy over views with strides of 0."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import BroadcastError, Reason
from .plan import AttentionPlan, Operand
from .rules import EmptyRow, Softcap

if TYPE_CHECKING:
    from numpy.typing import NDArray


def views(plan: AttentionPlan, arrays: Sequence[Any]) -> tuple[NDArray[Any], ...]:
    """Read-only views over the six axes; see :meth:`AttentionPlan.views`."""
    return tuple(_placed(plan, arrays, full=True))


def _placed(plan: AttentionPlan, arrays: Sequence[Any], *, full: bool) -> Iterator[NDArray[Any]]:
    """The operands on the six axes: of the plan's sizes, or of size 1 where they repeat."""
    plan.need_numbers("a view")
    if len(arrays) != len(plan.operands):
        raise BroadcastError(
            f"the plan has {len(plan.operands)} operands, and {len(arrays)} arrays are here",
            reason=Reason.OPERAND_COUNT,
            rule=plan.rule.name,
            shapes=[operand.shape for operand in plan.operands],
            hint=f"pass {', '.join(operand.name for operand in plan.operands)}",
        )
    for operand, array in zip(plan.operands, arrays, strict=True):
        yield _view(plan, operand, array, full=full)


def _view(plan: AttentionPlan, operand: Operand, array: Any, *, full: bool) -> NDArray[Any]:
    import numpy as np
    from numpy.lib.stride_tricks import as_strided

    values = np.asarray(array)
    if values.shape != operand.shape:
        raise BroadcastError(
            f"the {operand.name} is {values.shape}, and the plan is for {operand.shape}",
            reason=Reason.EXTENT_MISMATCH,
            rule=plan.rule.name,
            shapes=[each.shape for each in plan.operands],
        )
    flat = np.ascontiguousarray(values)
    steps = tuple(flat.itemsize * int(step) for step in operand.strides)
    sizes = tuple(map(int, operand.sizes))
    if full:
        keys = plan.space.key if operand is not plan.mask else sizes[4]
        last = plan.space.feature if operand is plan.query else sizes[5]
        sizes = tuple(map(int, (*plan.space[:4], keys, last)))
    return as_strided(flat, sizes, steps, writeable=False)


def attention(
    plan: AttentionPlan,
    arrays: Sequence[Any],
    past_key: Any = None,
    past_value: Any = None,
    sink: Any = 0.0,
    lengths: Any = None,
) -> NDArray[Any]:
    """The result in the query's layout; see :meth:`AttentionPlan.compute` and :func:`steps`."""
    for step in steps(plan, arrays, past_key, past_value, sink=sink, lengths=lengths):
        result = step
    return result


def steps(
    plan: AttentionPlan,
    arrays: Sequence[Any],
    past_key: Any = None,
    past_value: Any = None,
    sink: Any = 0.0,
    lengths: Any = None,
) -> Iterator[NDArray[Any]]:
    """The steps of an attention, each computed when it is asked for.

    They are the scores, the scores within the softcap, the scores with all masks, the weights, and
    the result in the query's layout. All but the result are (batch, kv head, group, query, key).
    They are computed in the query's type, at least float32; the result is of the query's type.

    Args:
        plan: the plan, of numbers.
        arrays: its operands.
        past_key: the past keys, if the plan has some.
        past_value: the past values.
        sink: the score of the sink, or one for each query head, if the plan has a sink.
        lengths: the number of keys of each sample, if the plan asks for it; None: all.
    """
    import numpy as np

    placed = tuple(_placed(plan, arrays, full=False))
    kind = np.result_type(placed[0].dtype, np.float32)
    query = placed[0][:, :, :, :, 0, :].astype(kind)
    key, value = (x[:, :, :, 0, :, :].astype(kind, copy=False) for x in placed[1:3])
    if plan.past:
        key = np.concatenate([_past(plan, past_key, key, "key"), key], 3)
        value = np.concatenate([_past(plan, past_value, value, "value"), value], 3)
    factor = plan.factor if plan.factor is not None else 1.0
    scores = np.matmul(query * kind.type(factor), key.swapaxes(-1, -2))
    yield scores
    if plan.softcap and plan.softcap_at is not Softcap.AFTER_MASK:
        scores = np.tanh(scores / plan.softcap) * plan.softcap
    yield scores
    mask = placed[3][..., 0] if plan.mask is not None else None
    scores = _biased(plan, scores, mask, lengths)
    yield scores
    weights = _weights(plan, scores, sink)
    yield weights
    with np.errstate(invalid="ignore"):
        result = np.matmul(weights, value)
    full = tuple(map(int, (*plan.space[:4], plan.space.value_feature)))
    result = np.broadcast_to(result, full)
    yield _laid_out(plan, result).astype(np.asarray(arrays[0]).dtype)


def _past(plan: AttentionPlan, past: Any, now: NDArray[Any], name: str) -> NDArray[Any]:
    import numpy as np

    if past is None:
        raise BroadcastError(
            f"the plan has {plan.past} past keys: pass past_{name}",
            reason=Reason.OPERAND_COUNT,
            rule=plan.rule.name,
        )
    batch, heads, group = now.shape[:3]
    before = np.asarray(past)[:, :, None]
    return np.broadcast_to(before, (batch, heads, group, *before.shape[3:])).astype(now.dtype)


def _biased(
    plan: AttentionPlan, scores: NDArray[Any], mask: NDArray[Any] | None, lengths: Any
) -> NDArray[Any]:
    """The scores with all masks, and within a softcap that comes after them."""
    import numpy as np

    seen, added = _masked(plan, scores, mask, lengths)
    if plan.rule.causal_replaces:
        scores = np.where(seen, scores, scores.dtype.type(plan.rule.causal_fill))
        return scores if added is None else scores + added
    scores = scores if added is None else scores + added
    if np.isfinite(plan.rule.causal_fill):
        with np.errstate(over="ignore"):
            scores = scores + np.where(seen, 0, plan.rule.causal_fill).astype(scores.dtype)
    else:
        scores = np.where(seen, scores, -np.inf)
    if plan.softcap and plan.softcap_at is Softcap.AFTER_MASK:
        scores = np.tanh(scores / plan.softcap) * plan.softcap
    return scores


def _weights(plan: AttentionPlan, scores: NDArray[Any], sink: Any) -> NDArray[Any]:
    """The softmax of the masked scores."""
    import numpy as np

    powers: NDArray[Any]
    if plan.asked.sink:
        every = (int(plan.space.kv_head), int(plan.space.group))
        each = np.broadcast_to(sink, math.prod(every)).reshape(*every, 1, 1)
        most = np.maximum(scores.max(-1, keepdims=True, initial=-np.inf), each)
        powers = np.exp(scores - most)
        powers /= powers.sum(-1, keepdims=True) + np.exp(each - most)
        return powers
    with np.errstate(invalid="ignore", over="ignore"):
        most = scores.max(-1, keepdims=True, initial=-np.inf)
        powers = np.exp(scores - most)
        weights = powers / powers.sum(-1, keepdims=True)
    return _with_empty_rows(plan, weights, scores)


def _masked(
    plan: AttentionPlan, scores: NDArray[Any], mask: NDArray[Any] | None, lengths: Any
) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Which keys are kept, and what is added to their scores."""
    import numpy as np

    queries = np.arange(scores.shape[-2])[:, None]
    keys = np.arange(scores.shape[-1])
    kept = np.ones(scores.shape[-2:], bool)
    if plan.asked.ragged and lengths is not None:
        each = np.asarray(lengths).reshape(-1, 1, 1, 1, 1)
        kept = kept & (keys < each)
        queries = queries + (each - scores.shape[-1])  # places count from the sample's last key
    if plan.offset is not None:
        kept = kept & (keys <= queries + int(plan.offset))
    if plan.window is not None and plan.own is not None:
        kept = kept & (keys > queries + int(plan.own) - plan.window)
    if mask is None:
        return kept, None
    if plan.mask_keys != plan.space.key:
        missing = scores.shape[-1] - mask.shape[-1]
        kept = kept & (keys < mask.shape[-1])
        mask = np.concatenate([mask, np.zeros((*mask.shape[:-1], missing), mask.dtype)], -1)
    if plan.mask_type == "float":
        return kept, mask
    mask = keys < mask if plan.lengths else mask.astype(bool)
    if dict(plan.empty)["bool"] is EmptyRow.UNMASKED:
        return kept, np.where(mask, 0, _FILL).astype(scores.dtype)
    return kept & mask, None


#: What ONNX Runtime's own ops add to the score of a key that is masked.
_FILL = -10000.0


def _with_empty_rows(
    plan: AttentionPlan, weights: NDArray[Any], scores: NDArray[Any]
) -> NDArray[Any]:
    """The weights of queries that lack all keys, as the row has them."""
    import numpy as np

    ways = dict(plan.empty)
    if not ways:
        return np.nan_to_num(weights, nan=0.0) if 0 in scores.shape[-1:] else weights
    lowest = np.finfo(scores.dtype).min
    most = scores.max(-1, keepdims=True, initial=-np.inf)
    rows = np.zeros(most.shape, bool)
    if EmptyRow.ZERO in (ways.get("bool"), ways.get("-inf")):
        rows |= np.isneginf(most)
    if ways.get("lowest") is EmptyRow.ZERO:
        rows |= most <= lowest
    return np.where(rows, 0, weights)  # NaN and the mean come by themselves


def _laid_out(plan: AttentionPlan, result: NDArray[Any]) -> NDArray[Any]:
    """(batch, kv head, group, query, feature) in the query's layout."""
    batch, heads, group, query, features = result.shape
    if plan.rule.grouping == "tiled":
        result = result.swapaxes(1, 2)
    by_head = result.reshape(batch, heads * group, query, features)
    if len(plan.shape) == 4:
        return by_head
    if "(hd)" in (plan.rule.result or plan.layout):
        return by_head.transpose(0, 2, 1, 3).reshape(plan.shape)
    return by_head.reshape(plan.shape)
