"""GroupQueryAttention of com.microsoft, as ONNX Runtime's CPU computes it.

Sample b has seqlens_k[b] + 1 keys, the new ones last. The longest sample has
`total_sequence_length`; if that is the number of new keys, the past is an empty buffer.
Source: contrib_ops/cpu/bert/gqa_attention_base.h, group_query_attention_helper.h; run.
"""

from __future__ import annotations

import math

import numpy as np

from ...ir.graph import Array
from .caches import Caches, caches_of, first_of, kept, left
from .calls import CompoundCall, Form, NotWritten
from .heads import Space, attend, infinite_where_none, seen_of, side_by_side
from .rotary import behind, gathered, turned
from .stored import check_stored


def check_group_query(form: Form) -> None:
    """Raises NotWritten for caches and softmaxes of other kinds."""
    form.refuse(
        (form.attributes.get("causal", 1) == 0, "causal=0"),
        (form.number("smooth_softmax") == 1 or form.input(11), "a softmax with a sink"),
        (form.input(14) or form.input(15), "a normalised query and key"),
        (form.input(16), "query_seqlens, a length for each sample"),
        (form.wants(3), "its scores as a result"),
        (not form.input(5) or not form.input(6), "it has no lengths of samples"),
        (bool(form.input(3)) != bool(form.input(4)), "past keys without past values"),
    )
    if form.number("sliding_window_cache"):
        form.refuse(
            (form.number("local_window_size") < 1, "sliding_window_cache without a window"),
            (not form.input(3), "sliding_window_cache without a past"),
        )
    check_stored(form)


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
    caches = caches_of(call, batch, length, key_heads, features)
    parts = _parts(call, (batch, length, features), (heads, key_heads, key_heads))
    if call.number("do_rotary"):
        parts[:2] = _rotated(call, parts[:2], (batch, length, features), caches)
    query, key, value = (call.transposed(name, 0, 2, 1, 3) for name in parts)
    keys, values = (kept(call, caches, new, which) for which, new in enumerate((key, value)))
    group = heads // key_heads
    space = Space(batch, key_heads, group, length, caches.keys, features, features)
    softcap = max(0.0, call.real("softcap"))
    bias, seen = _masks(call, caches, space)
    factor = call.real("scale") or 1 / math.sqrt(features)
    result = attend(call, space, (query, keys[0], values[0]), factor, softcap, bias, seen)
    return side_by_side(call, result, space), keys[1], values[1]


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
    call: CompoundCall, parts: list[str], sizes: tuple[int, int, int], caches: Caches
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


def _angles(call: CompoundCall, position: int, batch: int, length: int, caches: Caches) -> str:
    """The cosines or sines of each place: by sample, or the same for all."""
    cache, rows = call.input(position), call.sizes(position, 2)[0]
    if call.input(9):
        places = call.fits(9, batch, length)
        if caches.prompt:  # ONNX Runtime reads one position
            first = call.part(call.part(places, 0, 0, 1), 1, 0, 1)
            places = behind(call, call.reshaped(first, 1), call.kind(9), length)
        return gathered(call, cache, places)
    if caches.first is not None:
        end = caches.first + length
        call.refuse((end > rows, f"positions beyond the {rows} of the caches"))
        return call.part(cache, 0, caches.first, end)
    last = call.reshaped(call.input(5), batch, 1)
    return gathered(call, cache, behind(call, last, call.kind(5), length, 1 - length))


def _masks(call: CompoundCall, caches: Caches, space: Space) -> tuple[str | None, str | None]:
    """The sum of all masks, and 1 for a query that sees a key, 0 for another; None: not needed."""
    bias, window = _causal(call, caches, space), call.number("local_window_size", -1)
    empty = window > 0 and caches.prompt
    if call.input(10):
        added = _added(call, caches, space)
        bias, empty = added if bias is None else call.writer.add("Add", added, bias), True
    if bias is None or not empty or _by_rows(call, caches):
        return bias, None
    return bias, seen_of(call, bias, lowest=False)


def _added(call: CompoundCall, caches: Caches, space: Space) -> str:
    """The attention bias, with a column for each key of the scores."""
    outer = call.sizes(10, 4)[:2]
    call.refuse(
        (outer[0] not in (1, space.batch), "an attention bias of another batch"),
        (outer[1] not in (1, space.kv_head * space.group), "an attention bias of other heads"),
    )
    added = call.fits(10, *outer, space.query, caches.total)
    if caches.window:
        first, before = caches.first, caches.before
        if first is None or before is None:
            raise NotWritten("an attention bias beside a window's past of unknown lengths")
        start, end = first - before, first + space.query
        return added if (start, end) == (0, caches.total) else call.part(added, 3, start, end)
    if space.key > caches.total:
        zeros = np.zeros((*outer, space.query, space.key - caches.total), np.float32)
        added = call.joined([added, call.writer.constant(zeros)], 3)
    return added


def _by_rows(call: CompoundCall, caches: Caches) -> bool:
    """Whether ONNX Runtime computes row by row, which gives NaN to a query without a key.

    It does with a softcap and for one key. A window of a query behind the last key of its sample
    ends with that key there, and elsewhere with the query's own place.
    """
    return call.real("softcap") > 0 or caches.most == 1


def _causal(call: CompoundCall, caches: Caches, space: Space) -> str | None:
    """-inf for each key that a query does not see; None if each sees all."""
    if caches.ends is None or caches.before is None:
        return infinite_where_none(call, _seen(call, caches, space))
    keys = np.arange(space.key)
    apart = np.arange(space.query)[:, None] + caches.before - keys  # how far a key lies back
    near, late = _window(call, caches, apart)
    ends = caches.ends.reshape(-1, 1, 1, 1)
    seen = (apart >= 0) & (keys < ends) & (near | (keys >= ends - late))
    if seen.all():
        return None
    return call.writer.constant(np.where(seen, np.float32(0), np.float32(-np.inf)))


def _window(call: CompoundCall, caches: Caches, apart: Array) -> tuple[Array, int]:
    """Whether a key is within the window of a query, and how many last keys are in any case."""
    window = call.number("local_window_size", -1)
    if window <= 0:
        return np.ones(apart.shape, bool), 0
    return apart < window, window if caches.prompt and _by_rows(call, caches) else 0


def _seen(call: CompoundCall, caches: Caches, space: Space) -> str:
    """1 for each key that a query sees, by the lengths of the samples, and else 0."""
    add, number = call.writer.add, call.with_number
    keys = np.arange(space.key)
    apart = np.arange(space.query)[:, None] - keys
    if caches.prompt:
        inside = call.bounded(number("Sub", caches.counts, keys))
        near, late = _window(call, caches, apart)
        if not late:
            return number("Mul", inside, near & (apart >= 0))
        last = call.bounded(number("Add", number("Mul", caches.counts, -1), keys + late + 1))
        seen = number("Mul", number("Max", last, near), apart >= 0)
        return add("Mul", inside, seen)
    first = first_of(call, caches, space.query)
    if caches.window:
        return _seen_in_window(call, caches, space, left(call, caches, first))
    window = call.number("local_window_size", -1)
    seen = call.bounded(number("Add", first, apart + 1))
    if window <= 0:
        return seen
    near_ones = call.bounded(number("Add", number("Mul", first, -1), window - apart))
    return add("Mul", seen, near_ones)


def _seen_in_window(call: CompoundCall, caches: Caches, space: Space, held: str) -> str:
    """The same for a window's past, whose first `held` rows are keys, and the new keys."""
    number, window = call.with_number, caches.window
    queries = np.arange(space.query)[:, None]
    rows, new = np.arange(caches.buffer), np.arange(space.query)
    old = call.bounded(number("Sub", held, rows))
    near = call.bounded(number("Add", number("Mul", held, -1), window - queries + rows))
    own = (new <= queries) & (queries - new < window)
    every = (space.batch, 1, space.query, space.query)
    added = call.writer.constant(np.broadcast_to(own, every).astype(np.float32))
    return call.joined([call.writer.add("Mul", old, near), added], 3)
