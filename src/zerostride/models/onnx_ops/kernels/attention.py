"""The numbers of ONNX's Attention."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ....attention.planning import plan_asked
from ....errors import BroadcastError
from ...ir.graph import Array
from ..attention_sites import attention
from .call import NodeCall, Unfit, effort, room

#: The results that are computed: the fourth is a part of the way.
_RESULTS = 3


def run_attention(call: NodeCall) -> tuple[Array, ...]:
    """Attention, and the keys and values with those of the past."""
    site = attention(call.node)
    if site.call is None:
        raise Unfit("lengths of single samples and windows are not computed")
    if len(call.node.outputs) > _RESULTS and call.node.outputs[_RESULTS].name:
        raise Unfit("its scores as a result are not computed")
    arrays = [array for array in (call[0], call[1], call[2], call.maybe(3)) if array is not None]
    past_key, past_value = call.maybe(4), call.maybe(5)
    asked = replace(
        site.call.asked,
        shapes=tuple(array.shape for array in arrays),
        past=0 if past_key is None else past_key.shape[2],
    )
    try:
        plan = plan_asked(site.call.rule, asked)
    except BroadcastError as error:
        raise Unfit(error.detail) from error
    batch, heads, group, query, key, feature, value_feature = plan.space
    room((batch, heads, group, query, key))  # type: ignore[arg-type]
    effort(*map(int, (batch, heads, group, query, key, feature + value_feature)))
    result = plan.compute(*arrays, past_key=past_key, past_value=past_value)
    present = (_present(site.call.asked.heads, array, past) for array, past in (
        (call[1], past_key), (call[2], past_value)
    ))  # fmt: skip
    return (result, *present)[: max(1, len(call.node.outputs))]


def _present(heads: tuple[int, int | None] | None, now: Array, past: Array | None) -> Array:
    """Keys or values by head, behind those of the past."""
    if now.ndim == 3 and heads is not None:
        count = heads[1] or heads[0]
        now = now.reshape(*now.shape[:2], count, -1).swapaxes(1, 2)
    return now if past is None else np.concatenate([past, now], 2)
