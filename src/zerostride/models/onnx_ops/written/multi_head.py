"""MultiHeadAttention and Attention of com.microsoft, as ONNX Runtime's CPU computes them.

A masked key gets `mask_filter_value` in addition to its score, so a query whose keys are all
masked attends as if none was. A later key of a causal mask gets the least float, but for the last
query, which sees all keys. Source: contrib_ops/cpu/bert/attention_helper.h, PrepareMask; run.
"""

from __future__ import annotations

import math
from itertools import accumulate, pairwise

import numpy as np

from ...ir.graph import Array
from .calls import CompoundCall, Form
from .heads import LEAST, Space, attend, by_head, side_by_side

_FILTER = -10000.0


def check_multi_head(form: Form) -> None:
    """Raises NotWritten for tensors that ONNX Runtime's CPU does not take, or of its decoders."""
    form.refuse(
        (not form.input(1) or not form.input(2), "query, key and value in one tensor"),
        (any(map(form.input, (8, 9))), "a past in the buffer of the present"),
        (bool(form.input(6)) != bool(form.input(7)), "past keys without past values"),
        (form.wants(3), "its scores as a result"),
    )


def check_projected(form: Form) -> None:
    """Raises NotWritten for rotations and shared buffers."""
    form.refuse(
        (form.number("do_rotary"), "do_rotary, a rotation of query and key"),
        (
            form.input(6) or form.number("past_present_share_buffer"),
            "a past in the buffer of the present",
        ),
    )


def multi_head(call: CompoundCall) -> tuple[str, ...]:
    """MultiHeadAttention: query, key, value, bias, padding, attention bias, past."""
    batch, length, width = call.sizes(0, 3)
    heads = call.number("num_heads")
    call.refuse((not heads or width % max(1, heads), "heads whose number is not known"))
    names = [call.input(position) for position in range(3)]
    key, value = (call.sizes(position, 3, 4) for position in (1, 2))
    call.refuse((len(key) != len(value), "keys and values of different ranks"))
    apart = len(key) == 4
    if apart:
        call.refuse((call.input(3) or call.input(6), "keys by head beside a bias or a past"))
    features = width // heads
    value_features = value[3] if apart else value[2] // heads
    keys = key[2] if apart else key[1]
    call.fits(1, *((batch, heads, keys, features) if apart else (batch, keys, width)))
    sizes = [width, width, heads * value_features]
    call.fits(2, *((batch, heads, keys, value_features) if apart else (batch, keys, sizes[2])))
    if call.input(3):
        bias = call.fits(3, sum(sizes))
        bounds = pairwise(accumulate(sizes, initial=0))
        names = [
            call.writer.add("Add", name, call.part(bias, 0, *bound))
            for name, bound in zip(names, bounds, strict=True)
        ]
    operands = [by_head(call, names[0], batch, length, heads, features)]
    for name, size in zip(names[1:], (features, value_features), strict=True):
        operands.append(name if apart else by_head(call, name, batch, keys, heads, size))
    before = 0
    if call.input(6):
        before = call.sizes(6, 4)[2]
        call.fits(6, batch, heads, before, features)
        call.fits(7, batch, heads, before, value_features)
        for position in (1, 2):
            operands[position] = call.joined([call.input(5 + position), operands[position]], 2)
    space = Space(batch, heads, 1, length, before + keys, features, value_features)
    result = _attended(call, space, operands, padding=4, bias=5)
    return result, *operands[1:]


def projected(call: CompoundCall) -> tuple[str, ...]:
    """Attention: query, key and value are products of one input and the weights."""
    batch, length, _ = call.sizes(0, 3)
    heads, width = call.number("num_heads"), call.sizes(1, 2)[1]
    listed = call.attributes.get("qkv_hidden_sizes") or [width // 3] * 3
    sizes = tuple(map(int, listed))
    call.refuse(
        (len(sizes) != 3 or sum(sizes) != width, "weights of another size"),
        (not heads or any(size % heads for size in sizes), "heads whose number is not known"),
        (sizes[0] != sizes[1], "keys of other features than the query"),
    )
    product = call.writer.add("MatMul", call.input(0), call.input(1))
    if call.input(2):
        product = call.writer.add("Add", product, call.fits(2, width))
    operands = [
        by_head(call, call.part(product, 2, *bound), batch, length, heads, size // heads)
        for size, bound in zip(sizes, pairwise(accumulate(sizes, initial=0)), strict=True)
    ]
    features, value_features = sizes[0] // heads, sizes[2] // heads
    before = 0
    if call.input(4):
        before = call.sizes(4, 5)[3]
        call.refuse((features != value_features, "a past of other features"))
        past = call.fits(4, 2, batch, heads, before, features)
        for position in (1, 2):
            part = call.part(past, 0, position - 1, position)
            part = call.reshaped(part, batch, heads, before, features)
            operands[position] = call.joined([part, operands[position]], 2)
    space = Space(batch, heads, 1, length, before + length, features, value_features)
    result = _attended(call, space, operands, padding=3, bias=5)
    if not call.wants(1):
        return (result,)
    shape = (1, batch, heads, before + length, features)
    return result, call.joined([call.reshaped(name, *shape) for name in operands[1:]], 0)


def _attended(
    call: CompoundCall, space: Space, operands: list[str], padding: int, bias: int
) -> str:
    mask = _mask(call, space, padding)
    if call.input(bias):
        outer = call.sizes(bias, 4)[:2]
        call.refuse(
            (outer[0] not in (1, space.batch), "an attention bias of another batch"),
            (outer[1] not in (1, space.kv_head), "an attention bias of other heads"),
        )
        added = call.fits(bias, *outer, space.query, space.key)
        mask = added if mask is None else call.writer.add("Add", added, mask)
    factor = call.real("scale") or 1 / math.sqrt(space.feature or 1)
    return side_by_side(call, attend(call, space, operands, factor, bias=mask), space)


def _mask(call: CompoundCall, space: Space, position: int) -> str | None:
    """Padding and the causal mask, which stands in its place; None without both."""
    kept = _kept(call, space, position) if call.input(position) else None
    later = _later(call, space)
    fill = np.where(later, LEAST, np.float32(0))
    if kept is None:
        return call.writer.constant(fill) if later.any() else None
    away = call.real("mask_filter_value", _FILTER)
    mask = call.with_number("Mul", call.with_number("Sub", kept, 1), -away)
    if not later.any():
        return mask
    return call.with_number("Add", call.with_number("Mul", mask, ~later), fill)


def _later(call: CompoundCall, space: Space) -> Array:
    """The keys that the causal mask takes from a query: none from the last query."""
    places, last = np.arange(space.query)[:, None], space.query - 1
    before = space.key - space.query if call.op == "Attention" else _past_of(call)
    later = (np.arange(space.key) > places + before) & (places < last)
    return later & bool(call.number("unidirectional"))


def _past_of(call: CompoundCall) -> int:
    return call.sizes(6, 4)[2] if call.input(6) else 0


def _kept(call: CompoundCall, space: Space, position: int) -> str | None:
    """1 for each key that the padding keeps, else 0: (batch, 1, query or 1, key); None: all."""
    shape, batch = call.sizes(position, 1, 2, 3), space.batch
    call.refuse((call.writer.dtype(call.input(position)) != "int32", "a mask that is not int32"))
    if shape == (batch, 1) and call.op == "Attention":
        return None  # it is not read
    mask = call.writer.as_float(call.input(position))
    if len(shape) == 1:
        starts = call.op == "Attention" and shape == (2 * batch,)
        call.refuse((shape != (batch,) and not starts, "a mask of places of samples"))
        return _between(call, space, mask, starts=starts)
    call.fits(position, batch, *(() if len(shape) == 2 else (space.query,)), space.key)
    return call.reshaped(call.bounded(mask), batch, 1, -1, space.key)


def _between(call: CompoundCall, space: Space, mask: str, *, starts: bool) -> str:
    """1 for each key before the end of its sample, and not before its start, else 0."""
    batch, keys = space.batch, np.arange(space.key)
    ends = call.reshaped(call.part(mask, 0, 0, batch) if starts else mask, batch, 1, 1, 1)
    before = call.bounded(call.with_number("Sub", ends, keys))
    if not starts:
        return before
    first = call.reshaped(call.part(mask, 0, batch, 2 * batch), batch, 1, 1, 1)
    away = call.with_number("Mul", call.with_number("Sub", first, keys + 1), -1)
    return call.writer.add("Mul", before, call.bounded(away))
