"""The plans that releases treat otherwise than their op means: the predicates of faults."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from .plan import AttentionPlan

if TYPE_CHECKING:
    from ..sizes.dim import Number


def beyond_past(plan: AttentionPlan) -> bool:
    """Keys behind those of the queries' own places."""
    return plan.offset is not None and plan.space.key != plan.past + plan.space.query


def no_key(plan: AttentionPlan) -> bool:
    """No key beside those of the past."""
    return keys(plan) == 0


def no_key_alone(plan: AttentionPlan) -> bool:
    """No key, though the result has numbers."""
    return plan.space.key == 0 and 0 not in plan.shape


def no_length(plan: AttentionPlan) -> bool:
    """No query, or no key beside those of the past."""
    return 0 in (plan.space.query, keys(plan))


def no_key_at_all(plan: AttentionPlan) -> bool:
    """No key."""
    return plan.space.key == 0


def keys(plan: AttentionPlan) -> Number:
    """The length of the operand, without the past."""
    return plan.space.key - plan.past


def no_query(plan: AttentionPlan) -> bool:
    """No query."""
    return plan.space.query == 0


def no_causal_query(plan: AttentionPlan) -> bool:
    """No query beside a causal mask."""
    return no_query(plan) and plan.offset is not None


def no_length_packed(plan: AttentionPlan) -> bool:
    """No query or no key beside the past, in the layout of heads side by side."""
    return 0 in (plan.space.query, keys(plan)) and len(plan.shape) == 3


def no_query_packed(plan: AttentionPlan) -> bool:
    """No query, in the layout of heads side by side."""
    return no_query(plan) and len(plan.shape) == 3


def heads_apart(plan: AttentionPlan) -> bool:
    """Grouped keys of other heads than the values."""
    queries, key = plan.query.sizes[1] * plan.query.sizes[2], plan.key.sizes[1]
    return key not in (plan.value.sizes[1], queries) and not 0 < queries < key


def causal_alone(plan: AttentionPlan) -> bool:
    """A causal mask without a window."""
    return plan.offset is not None and plan.asked.window is None and plan.asked.ahead is None


def one_row(plan: AttentionPlan) -> bool:
    """A mask of one row beside a causal one."""
    if not causal_alone(plan) or plan.mask is None:
        return False
    return plan.mask.sizes[3] == 1 and plan.space.query not in (0, 1)


def one_query(plan: AttentionPlan) -> bool:
    """A causal query that should not see the last key."""
    if plan.offset is None or plan.past == 0:
        return False
    return plan.space.query == 1 and keys(plan) not in (0, 1)


def vector_and_causal(plan: AttentionPlan) -> bool:
    """A mask of one axis beside a causal one."""
    return causal_alone(plan) and plan.mask is not None and len(plan.mask.shape) == 1


def two_masks(plan: AttentionPlan) -> bool:
    """A mask beside a causal one, where PyTorch's fused kernel does not take the call."""
    if plan.asked.causal is False or plan.mask is None:
        return False
    query, key, value = plan.asked.shapes[:3]
    if 0 in (*query, *key):
        return False
    heads = slice(1) if plan.rule.op != "scaled_dot_product_attention" else slice(2)
    fused = len(query) == 4 and query[heads] == key[heads] and key[:2] == value[:2]
    return not (fused and query[3] == value[3] and len(plan.mask.shape) in (2, 4))


def more_axes(plan: AttentionPlan) -> bool:
    """A mask of more axes than the query."""
    return plan.mask is not None and len(plan.mask.shape) > len(plan.query.shape)


def value_features(plan: AttentionPlan) -> bool:
    """Past values of other features than the keys."""
    return plan.past != 0 and other_values(plan)


def across(plan: AttentionPlan) -> bool:
    """Keys of another sequence than the queries."""
    return keys(plan) != plan.space.query


def fewer_keys(plan: AttentionPlan) -> bool:
    """Fewer keys than queries."""
    return bool(keys(plan) < plan.space.query)


def mask_of_heads(plan: AttentionPlan) -> bool:
    """A mask of its own for each sample or head."""
    return plan.mask is not None and (plan.mask.sizes[:3] != (1, 1, 1))


def other_values(plan: AttentionPlan) -> bool:
    """Values of other features than the query."""
    return plan.space.feature != plan.space.value_feature


def samples(plan: AttentionPlan) -> bool:
    """More than one sample."""
    return plan.space.batch != 1


def mask_shape(plan: AttentionPlan) -> tuple[Number, ...]:
    """The sizes of the mask; none without one."""
    return () if plan.mask is None else plan.mask.shape


def bias_and_past(plan: AttentionPlan) -> bool:
    """An added mask beside past keys."""
    return plan.past != 0 and len(mask_shape(plan)) == 4


def pairs_and_past(plan: AttentionPlan) -> bool:
    """A mask with an axis of queries beside past keys, which is not one number for a sample."""
    return plan.past != 0 and len(mask_shape(plan)) > 2 and mask_shape(plan)[1:] != (1, 1)


def one_pair_and_past(plan: AttentionPlan) -> bool:
    """A mask with an axis of one query beside past keys."""
    return plan.past != 0 and len(mask_shape(plan)) == 3 and plan.space.query == 1


def one_key_of_pairs(plan: AttentionPlan) -> bool:
    """A mask of queries and one key."""
    return len(mask_shape(plan)) == 3 and one_key(plan)


def one_query_of_pairs(plan: AttentionPlan) -> bool:
    """A mask of one query and the keys, for several queries."""
    shape = mask_shape(plan)
    return len(shape) == 3 and shape[1] == 1 and plan.space.query != 1


def dummy(plan: AttentionPlan) -> bool:
    """One number for all keys of a sample, or of all."""
    return len(mask_shape(plan)) == 2 and mask_shape(plan)[1] == 1 and plan.space.key != 1


def one_for_all(plan: AttentionPlan) -> bool:
    """A mask of one row for several samples, which is not one number for all."""
    shape = mask_shape(plan)
    return len(shape) == 2 and shape[0] == 1 != shape[1] and plan.space.batch != 1


def one_key(plan: AttentionPlan) -> bool:
    """A mask of one key for several."""
    return mask_shape(plan)[-1:] == (1,) and plan.space.key != 1


def scaled(plan: AttentionPlan) -> bool:
    """A factor that is not the default."""
    default = replace(plan, scale=None).factor
    return plan.factor is not None and plan.factor != default


def odd_features(plan: AttentionPlan) -> bool:
    """Features that are no multiple of 8."""
    return plan.space.feature % 8 != 0


def odd_rotation(plan: AttentionPlan) -> bool:
    """Turned features that are no multiple of 16."""
    return plan.asked.rotated and plan.space.feature % 16 != 0


def sink_beside_one(plan: AttentionPlan) -> bool:
    """A sink beside a query with one sample or head, where keys or mask have more."""
    others = (plan.key, *plan.operands[3:])
    more = (other.sizes[axis] > plan.query.sizes[axis] for other in others for axis in (0, 1))
    return plan.asked.sink and any(more)


def queries_as_heads(plan: AttentionPlan) -> bool:
    """As many turned queries as heads, and fewer key heads or a quantised past."""
    heads, group = plan.space[1:3]
    beside = group != 1 or plan.asked.stored is not None
    return plan.asked.rotated and beside and plan.space.query == heads * group


def fewer_queries(plan: AttentionPlan) -> bool:
    """One query head that repeats along more key heads."""
    return bool(plan.query.sizes[1] * plan.query.sizes[2] < plan.key.sizes[1])


def more_values(plan: AttentionPlan) -> bool:
    """Values of more heads than the keys."""
    return bool(plan.value.sizes[1] > plan.key.sizes[1])


def one_sample(plan: AttentionPlan) -> bool:
    """A query that repeats along the batch of the keys or values."""
    return any(plan.query.sizes[0] < x.sizes[0] for x in (plan.key, plan.value))


def fewer_samples(plan: AttentionPlan) -> bool:
    """A query of one sample beside the numbers of keys of more."""
    return plan.asked.ragged and plan.query.sizes[0] != plan.space.batch


def narrow_room(plan: AttentionPlan) -> bool:
    """The past of a window, with less room than the window."""
    asked = plan.asked
    return asked.room is not None and asked.window is not None and asked.room < asked.window


def odd_stored(plan: AttentionPlan) -> bool:
    """Quantised features in the past of a window that are no multiple of 128 bits."""
    stored, feature = plan.asked.stored, plan.space.feature
    if stored is None or plan.asked.room is None:
        return False
    return feature * stored.bits % 128 != 0
