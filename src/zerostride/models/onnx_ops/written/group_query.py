"""GroupQueryAttention of com.microsoft, as ONNX Runtime's CPU computes it.

Sample b has seqlens_k[b] + 1 keys, the new ones last. The longest sample has
`total_sequence_length`; if that is the number of new keys, the past is an empty buffer.
Source: contrib_ops/cpu/bert/gqa_attention_base.h, group_query_attention_helper.h; run.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...ir.graph import Array
from .calls import CompoundCall, Form
from .heads import Space, attend, infinite_where_none, seen_of, side_by_side
from .rotary import behind, gathered, turned


class _Caches(NamedTuple):
    """Where the keys of each sample lie.

    Attributes:
        buffer: the keys that the past has room for.
        total: the most keys of any sample.
        room: the keys that the present has room for.
        before: the keys before the new ones, where all samples have as many; None: not known.
        lengths: the keys of each sample, as floats of (batch, 1, 1, 1).
        prompt: no sample has keys before the new ones.
    """

    buffer: int
    total: int
    room: int
    before: int | None
    lengths: str
    prompt: bool


def check_group_query(form: Form) -> None:
    """Raises NotWritten for caches and softmaxes of other kinds."""
    form.refuse(
        (form.attributes.get("causal", 1) == 0, "causal=0"),
        (form.number("sliding_window_cache"), "sliding_window_cache"),
        (form.number("smooth_softmax") == 1 or form.input(11), "a softmax with a sink"),
        (form.input(12) or form.input(13), "a quantised past"),
        (form.input(14) or form.input(15), "a normalised query and key"),
        (form.input(16), "query_seqlens, a length for each sample"),
        (form.wants(3), "its scores as a result"),
        (not form.input(5) or not form.input(6), "it has no lengths of samples"),
        (bool(form.input(3)) != bool(form.input(4)), "past keys without past values"),
    )


def group_query(call: CompoundCall) -> tuple[str, ...]:
    """GroupQueryAttention: query, key, value, past, lengths, total, angles, positions, bias."""
    batch, length, width = call.sizes(0, 3)
    heads, key_heads = call.number("num_heads"), call.number("kv_num_heads")
    packed = not call.input(1)
    every = heads + 2 * key_heads if packed else heads
    call.refuse(
        (min(heads, key_heads) < 1 or heads % max(1, key_heads), "heads whose number is not known"),
        (width % max(1, every) or not batch * length * width, "a query of another width"),
    )
    features = width // every
    caches = _caches(call, batch, length, key_heads, features)
    parts = _parts(call, (batch, length, features), (heads, key_heads, key_heads))
    if call.number("do_rotary"):
        parts[:2] = _rotated(call, parts[:2], (batch, length, features), caches)
    query, key, value = (call.transposed(name, 0, 2, 1, 3) for name in parts)
    keys, values = (
        _present(call, caches, (batch, length), new, past)
        for new, past in ((key, call.input(3)), (value, call.input(4)))
    )
    group = heads // key_heads
    space = Space(batch, key_heads, group, length, caches.room, features, features)
    softcap = max(0.0, call.real("softcap"))
    bias, seen = _masks(call, caches, space)
    factor = call.real("scale") or 1 / math.sqrt(features)
    result = attend(call, space, (query, keys, values), factor, softcap, bias, seen)
    return side_by_side(call, result, space), keys, values


def _caches(call: CompoundCall, batch: int, length: int, heads: int, features: int) -> _Caches:
    buffer = call.sizes(3, 4)[2] if call.input(3) else 0
    if call.input(3):
        call.fits(3, batch, heads, buffer, features)
        call.fits(4, batch, heads, buffer, features)
    total = _total(call, length, buffer)
    call.refuse(
        (length != total and length > 1 and batch > 1, "samples of more than one new key"),
        (total > buffer and total != buffer + length, "more keys than the past and the new ones"),
        (total < length, "fewer keys than new ones"),
    )
    prompt, room = total == length, max(buffer, total)
    known = call.writer.array(call.input(5))
    lengths = call.reshaped(call.fits(5, batch), batch, 1, 1, 1)
    lengths = call.with_number("Add", call.writer.as_float(lengths), 1)
    before = 0 if prompt else None
    if known is not None:
        numbers = known.astype(int) + 1
        lowest, most = (length if not prompt else 1), total
        call.refuse((not (lowest <= numbers.min() <= numbers.max() <= most), "other lengths"))
        if not prompt and (numbers == numbers[0]).all():
            before = int(numbers[0]) - length
    return _Caches(buffer, total, room, before, lengths, prompt)


def _total(call: CompoundCall, length: int, buffer: int) -> int:
    """The number that `total_sequence_length` has."""
    array = call.writer.array(call.input(6))
    if array is not None and array.size == 1:
        return int(array.reshape(-1)[0])
    if call.input(10):
        return call.sizes(10, 4)[3]
    call.refuse((buffer, "a past beside a total_sequence_length that is no number in the file"))
    return length


def _parts(
    call: CompoundCall, sizes: tuple[int, int, int], heads: tuple[int, int, int]
) -> list[str]:
    """Query, keys and values as (batch, length, head, feature)."""
    batch, length, features = sizes
    if call.input(1):
        call.fits(1, batch, length, heads[1] * features)
        call.fits(2, batch, length, heads[2] * features)
        return [
            call.reshaped(call.input(position), batch, length, number, features)
            for position, number in enumerate(heads)
        ]
    every = call.reshaped(call.input(0), batch, length, sum(heads), features)
    ends = (heads[0], heads[0] + heads[1], sum(heads))
    return [call.part(every, 2, end - number, end) for number, end in zip(heads, ends, strict=True)]


def _rotated(
    call: CompoundCall, parts: list[str], sizes: tuple[int, int, int], caches: _Caches
) -> list[str]:
    """Query and keys, turned by the angles of their places."""
    batch, length, features = sizes
    rows, half = call.sizes(7, 2)
    call.fits(8, rows, half)
    call.refuse((not 0 < 2 * half <= features, "caches of another size than the features"))
    angles = []
    for position in (7, 8):
        name = _angles(call, position, batch, length, caches)
        angles.append(call.reshaped(name, -1, length, 1, half))
    cos, sin = angles
    numbers = call.number("num_heads"), call.number("kv_num_heads")
    return [
        turned(call, name, (batch, length, heads, features), (cos, sin), half)
        for name, heads in zip(parts, numbers, strict=True)
    ]


def _angles(call: CompoundCall, position: int, batch: int, length: int, caches: _Caches) -> str:
    """The cosines or sines of each place: by sample, or the same for all."""
    cache, rows = call.input(position), call.sizes(position, 2)[0]
    if call.input(9):
        places = call.fits(9, batch, length)
        if caches.prompt:  # ONNX Runtime reads one position
            first = call.part(call.part(places, 0, 0, 1), 1, 0, 1)
            places = behind(call, call.reshaped(first, 1), call.kind(9), length)
        return gathered(call, cache, places)
    if caches.before is not None:
        end = caches.before + length
        call.refuse((end > rows, f"positions beyond the {rows} of the caches"))
        return call.part(cache, 0, caches.before, end)
    last = call.reshaped(call.input(5), batch, 1)
    return gathered(call, cache, behind(call, last, call.kind(5), length, 1 - length))


def _present(
    call: CompoundCall, caches: _Caches, sizes: tuple[int, int], new: str, past: str
) -> str:
    """The past keys or values of each sample, the new ones behind them, and zeros."""
    (batch, length), before = sizes, caches.before
    shape = call.writer.shape(past) if past else None
    heads, features = call.number("kv_num_heads"), 0 if shape is None else shape[3]
    if before is not None:
        parts = [new]
        if before:
            whole = before == caches.buffer
            parts.insert(0, past if whole else call.part(past, 2, 0, before))
        behind = caches.room - before - length
        if behind:
            zeros = np.zeros((batch, heads, behind, features), np.float32)
            parts.append(call.writer.constant(zeros))
        return call.joined(parts, 2)
    first = call.with_number("Sub", caches.lengths, length)
    places = np.arange(caches.room, dtype=np.float32)[:, None]
    old = call.bounded(_minus(call, first, places[: caches.buffer]))
    kept = call.writer.add("Mul", past, old)
    if caches.room > caches.buffer:
        zeros = np.zeros((batch, heads, caches.room - caches.buffer, features), np.float32)
        kept = call.joined([kept, call.writer.constant(zeros)], 2)
    # 1 where the new key is the one of the place: 1 - |place - new - first|.
    apart = call.writer.add("Abs", _minus(call, first, places - np.arange(length)))
    own = call.bounded(call.with_number("Add", call.with_number("Mul", apart, -1), 1))
    return call.writer.add("Add", kept, call.writer.add("MatMul", own, new))


def _minus(call: CompoundCall, name: str, numbers: object) -> str:
    return call.with_number("Sub", name, numbers)


def _masks(call: CompoundCall, caches: _Caches, space: Space) -> tuple[str | None, str | None]:
    """The sum of all masks, and 1 for a query that sees a key, 0 for another; None: not needed."""
    bias, window = _causal(call, caches, space), call.number("local_window_size", -1)
    empty = window > 0 and caches.prompt
    if call.input(10):
        outer = call.sizes(10, 4)[:2]
        call.refuse(
            (outer[0] not in (1, space.batch), "an attention bias of another batch"),
            (outer[1] not in (1, space.kv_head * space.group), "an attention bias of other heads"),
        )
        added = call.fits(10, *outer, space.query, caches.total)
        if caches.room > caches.total:
            zeros = np.zeros((*outer, space.query, caches.room - caches.total), np.float32)
            added = call.joined([added, call.writer.constant(zeros)], 3)
        bias, empty = added if bias is None else call.writer.add("Add", added, bias), True
    if bias is None or not empty or _by_rows(call, caches):
        return bias, None
    return bias, seen_of(call, bias, lowest=False)


def _by_rows(call: CompoundCall, caches: _Caches) -> bool:
    """Whether ONNX Runtime computes row by row, which gives NaN to a query without a key.

    It does with a softcap and for one key. A window of a query behind the last key of its sample
    ends with that key there, and elsewhere with the query's own place.
    """
    return call.real("softcap") > 0 or caches.total == 1


def _causal(call: CompoundCall, caches: _Caches, space: Space) -> str | None:
    """-inf for each key that a query does not see; None if each sees all."""
    lengths = call.writer.array(call.input(5))
    if lengths is None or caches.before is None:
        return infinite_where_none(call, _seen(call, caches, space))
    keys = np.arange(space.key)
    apart = np.arange(space.query)[:, None] + caches.before - keys  # how far a key lies back
    near, late = _window(call, caches, apart)
    ends = lengths.reshape(-1, 1, 1, 1) + 1
    seen = (apart >= 0) & (keys < ends) & (near | (keys >= ends - late))
    if seen.all():
        return None
    return call.writer.constant(np.where(seen, np.float32(0), np.float32(-np.inf)))


def _window(call: CompoundCall, caches: _Caches, apart: Array) -> tuple[Array, int]:
    """Whether a key is within the window of a query, and how many last keys are in any case."""
    window = call.number("local_window_size", -1)
    if window <= 0:
        return np.ones(apart.shape, bool), 0
    return apart < window, window if caches.prompt and _by_rows(call, caches) else 0


def _seen(call: CompoundCall, caches: _Caches, space: Space) -> str:
    """1 for each key that a query sees, by the lengths of the samples, and else 0."""
    add, number = call.writer.add, call.with_number
    keys = np.arange(space.key)
    apart = np.arange(space.query)[:, None] - keys
    if caches.prompt:
        inside = call.bounded(number("Sub", caches.lengths, keys))
        near, late = _window(call, caches, apart)
        if not late:
            return number("Mul", inside, near & (apart >= 0))
        last = call.bounded(number("Add", number("Mul", caches.lengths, -1), keys + late + 1))
        seen = number("Mul", number("Max", last, near), apart >= 0)
        return add("Mul", inside, seen)
    window = call.number("local_window_size", -1)
    first = number("Sub", caches.lengths, space.query)
    seen = call.bounded(number("Add", first, apart + 1))
    if window <= 0:
        return seen
    near_ones = call.bounded(number("Add", number("Mul", first, -1), window - apart))
    return add("Mul", seen, near_ones)
