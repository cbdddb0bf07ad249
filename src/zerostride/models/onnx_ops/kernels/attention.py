"""The numbers of ONNX's Attention."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

import numpy as np

from ....attention.compute import steps
from ....attention.plan import AttentionPlan
from ....attention.planning import plan_asked
from ....errors import BroadcastError
from ...ir.graph import Array
from ..attention_sites import standard_call, windows_of
from .call import NodeCall, Unfit, effort, room

#: The results; the fourth is a step of the way, which `qk_matmul_output_mode` counts from 0.
_RESULTS = 4


def run_attention(call: NodeCall) -> tuple[Array, ...]:
    """The result, the keys and values with those of the past, and a step of the way.

    Source: ONNX operators, Attention, versions 23 to 25. Half floats are computed in float32.
    """
    asked = standard_call(call.node).asked
    arrays = [call[0], call[1], call[2]]
    mask, past_key, past_value = (call.maybe(position) for position in (3, 4, 5))
    lengths = call.maybe(6)
    if (past_key is None) != (past_value is None) or (past_key is not None and lengths is not None):
        raise Unfit("past keys and values come together, and without lengths of samples")
    if mask is not None:
        arrays.append(_at_least_2d(mask))
    asked = replace(
        asked,
        shapes=tuple(array.shape for array in arrays),
        past=0 if past_key is None else past_key.shape[2],
        mask_type="bool" if mask is not None and mask.dtype == bool else "float",
    )
    try:
        plan = plan_asked(standard_call(call.node).rule, asked)
    except BroadcastError as error:
        raise Unfit(error.detail) from error
    batch, heads, group, query, key, feature, value_feature = plan.space
    room((batch, heads, group, query, key))  # type: ignore[arg-type]
    effort(*map(int, (batch, heads, group, query, key, feature + value_feature)))
    way = steps(plan, arrays, past_key, past_value, lengths=_checked(call, plan, lengths))
    shown = tuple(_shown(call, way))
    *_, result = way
    present = (
        _present(asked.heads, array, past)
        for array, past in ((call[1], past_key), (call[2], past_value))
    )
    return (result, *present, *shown)[: max(1, len(call.node.outputs))]


def _shown(call: NodeCall, way: Iterator[Array]) -> Iterator[Array]:
    """The step of the way that is a result, or nothing."""
    if len(call.node.outputs) < _RESULTS or not call.node.outputs[-1].name:
        return
    mode = call.attribute("qk_matmul_output_mode", 0)
    if mode not in range(4):
        raise Unfit(f"qk_matmul_output_mode is {mode}, not 0 to 3")
    step = next(islice(way, mode, None))
    heads = step.shape[1] * step.shape[2]
    yield step.reshape(step.shape[0], heads, *step.shape[3:]).astype(call[0].dtype)


def _at_least_2d(mask: Array) -> Array:
    if mask.dtype != bool and mask.dtype.kind in "iu":
        raise Unfit(f"the mask is {mask.dtype}; it is of truth values or floats")
    return mask.reshape((1,) * (2 - mask.ndim) + mask.shape)


def _checked(call: NodeCall, plan: AttentionPlan, lengths: Array | None) -> Array | None:
    """The number of keys of each sample; None if all samples have all."""
    if min(side for side in (*windows_of(call.node), 0) if side is not None) < 0:
        raise Unfit("a window is -1, or 0 and more")
    batch = plan.space.batch
    if lengths is not None and lengths.shape != (batch,):
        raise Unfit(f"nonpad_kv_seqlen has the shape {lengths.shape}, not {(batch,)}")
    return lengths


def _present(heads: tuple[int, int | None] | None, now: Array, past: Array | None) -> Array:
    """Keys or values by head, behind those of the past."""
    if now.ndim == 3 and heads is not None:
        count = heads[1] or heads[0]
        now = now.reshape(*now.shape[:2], count, -1).swapaxes(1, 2)
    return now if past is None else np.concatenate([past, now], 2)
