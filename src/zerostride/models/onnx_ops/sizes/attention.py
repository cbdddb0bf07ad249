"""Sizes of ONNX Runtime's own attentions."""

from __future__ import annotations

from ....sizes.dim import Number, plain
from ....sizes.functions import floordiv
from .facts import UNKNOWN, Fact, OpCall, Open, Results, Unclear


def multi_head(call: OpCall) -> Results:
    """MultiHeadAttention: the values' features for each query, and all keys and values."""
    batch, length, width = _of(call, 0, 3)
    heads = _heads(call, "num_heads")
    if not call.has(1) or not call.has(2):
        raise Unclear("query, key and value are one tensor")
    value = call.shape(2)
    before = _of(call, 6, 4)[2] if call.has(6) else 0
    if len(value) == 4:
        keys, features = value[2], value[3]
    else:
        _, keys, every = _of(call, 2, 3)
        features = plain(floordiv(every, heads))
    outer = batch, heads, plain(before + keys)
    return (
        Fact((batch, length, plain(features * heads))),
        Fact((*outer, plain(floordiv(width, heads)))),
        Fact((*outer, features)),
    )


def group_query(call: OpCall) -> Results:
    """GroupQueryAttention: the query's sizes, and all keys and values."""
    batch, length, width = _of(call, 0, 3)
    heads, key_heads = _heads(call, "num_heads"), _heads(call, "kv_num_heads")
    every = heads if call.has(1) else heads + 2 * key_heads
    features = plain(floordiv(width, every))
    keys: Number | Open = Open() if call.has(3) else length
    present = Fact((batch, key_heads, keys, features))
    return Fact((batch, length, plain(features * heads))), present, present


def projected(call: OpCall) -> Results:
    """Attention: the values' features for each query, and all keys and values in one tensor."""
    batch, length, _ = _of(call, 0, 3)
    heads, listed = _heads(call, "num_heads"), call.integers("qkv_hidden_sizes")
    width = listed[-1] if listed else plain(floordiv(_of(call, 1, 2)[1], 3))
    if call.has(6) or call.integer("past_present_share_buffer"):
        return Fact((batch, length, width)), UNKNOWN
    before = _of(call, 4, 5)[3] if call.has(4) else 0
    features = plain(floordiv(width, heads))
    return Fact((batch, length, width)), Fact((2, batch, heads, plain(before + length), features))


def _of(call: OpCall, position: int, rank: int) -> tuple[Number, ...]:
    shape = call.shape(position)
    if len(shape) != rank:
        raise Unclear(f"operand {position} has {len(shape)} axes")
    return shape


def _heads(call: OpCall, name: str) -> int:
    heads = call.integer(name)
    if heads < 1:
        raise Unclear(f"{name} is {heads}")
    return heads
