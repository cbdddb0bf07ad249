"""The products, the masks and the softmax of an attention; heads are grouped, none is copied."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .calls import CompoundCall

#: The least number of 32 bits: it swallows any score, and its power is 0.
LEAST = -(2.0**128 - 2.0**104)
#: The least number times this is -4 and `_STEP`.
_SHRUNK, _STEP = 2.0**-126, 2.0**-22


class Space(NamedTuple):
    """The sizes of an attention."""

    batch: int
    kv_head: int
    group: int
    query: int
    key: int
    feature: int
    value_feature: int


def attend(
    call: CompoundCall,
    space: Space,
    operands: Sequence[str],
    factor: float,
    softcap: float = 0.0,
    bias: str | None = None,
    seen: str | None = None,
) -> str:
    """The result by head: (batch, head, query, feature).

    Args:
        call: its writer takes the ops.
        space: the sizes.
        operands: query, keys and values by head; past keys are among the keys.
        factor: of the scores.
        softcap: bounds the scores by a tanh before the bias; 0: it does not.
        bias: added to the scores of (batch, head, query, key).
        seen: 1 for each query that sees a key, 0 for the others, which give zeros; None: not asked.
    """
    add = call.writer.add
    query, key, value = operands
    batch, heads, group, length, keys, features, value_features = space
    if group != 1:
        query = call.reshaped(query, batch, heads, group * length, features)
    query = call.with_number("Mul", query, factor)
    scores = add("MatMul", query, call.transposed(key, 0, 1, 3, 2))
    if softcap:
        bounded = add("Tanh", call.with_number("Mul", scores, 1 / softcap))
        scores = call.with_number("Mul", bounded, softcap)
    apart = group != 1 and bias is not None
    if apart:
        scores = call.reshaped(scores, batch, heads * group, length, keys)
    if bias is not None:
        scores = add("Add", scores, bias)
    if seen is not None:
        # -inf with a key, and the least number without: such a row has no NaN.
        floor = call.with_number("Mul", call.with_number("Add", seen, 1), LEAST)
        scores = add("Max", scores, floor)
    weights = add("Softmax", scores, axis=-1)
    if seen is not None:
        weights = add("Mul", weights, seen)
    if apart:
        weights = call.reshaped(weights, batch, heads, group * length, keys)
    result = add("MatMul", weights, value)
    if group != 1:
        result = call.reshaped(result, batch, heads * group, length, value_features)
    return result


def seen_of(call: CompoundCall, bias: str, *, lowest: bool) -> str:
    """1 for each row of a bias with a key, and else 0.

    A key that is masked by -inf is none; one masked by the least number is a key if `lowest`.
    """
    shrunk = call.with_number("Mul", call.writer.largest(bias), _SHRUNK)
    if lowest:
        return call.bounded(call.with_number("Add", shrunk, 8))
    above = call.with_number("Add", shrunk, 4 - _STEP)
    return call.bounded(call.with_number("Mul", above, 1 / _STEP))


def infinite_where_none(call: CompoundCall, kept: str) -> str:
    """0 for each 1, and -inf for each 0."""
    twice = call.with_number("Mul", call.with_number("Sub", kept, 1), -LEAST)
    return call.writer.add("Add", twice, twice)


def by_head(call: CompoundCall, name: str, *sizes: int) -> str:
    """A tensor that holds (batch, length, head, feature) as (batch, head, length, feature)."""
    return call.transposed(call.reshaped(name, *sizes), 0, 2, 1, 3)


def side_by_side(call: CompoundCall, name: str, space: Space) -> str:
    """(batch, head, query, feature) as (batch, query, head * feature)."""
    width = space.kv_head * space.group * space.value_feature
    return call.reshaped(call.transposed(name, 0, 2, 1, 3), space.batch, space.query, width)
