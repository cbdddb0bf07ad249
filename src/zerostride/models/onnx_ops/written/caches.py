"""The pasts of a GroupQueryAttention: plain ones, those of a window, and quantised ones.

After a step, the first rows of a window's past hold the last keys: `attention.stored.resident` says
how many.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ....attention.stored import resident
from ...ir.graph import Array
from .calls import CompoundCall
from .stored import Storage, storage_of


@dataclass(frozen=True, slots=True)
class Caches:
    """Where the keys of each sample lie.

    Attributes:
        sizes: of the new keys, by head.
        buffer: the keys that the past has room for.
        total: the most keys of any sample.
        keys: how many keys the scores have.
        first: the place of the first new key, where all samples have the same; None: not known.
        before: the keys before the new ones among those of the scores, where that is known.
        counts: the keys of each sample, as floats of (batch, 1, 1, 1).
        ends: the keys of each sample among those of the scores, where the file has them.
        prompt: no sample has keys before the new ones.
        window: the window of a past that holds no more; 0 for a plain past.
        storage: how the past stores its numbers.
    """

    sizes: tuple[int, int, int, int]
    buffer: int
    total: int
    keys: int
    first: int | None
    before: int | None
    counts: str
    ends: Array | None
    prompt: bool
    window: int
    storage: Storage

    @property
    def room(self) -> int:
        """The keys that the present has room for."""
        return self.buffer if self.window else self.keys

    @property
    def most(self) -> int:
        """The most keys that ONNX Runtime computes with; for one query, those that are left."""
        if not self.window or self.sizes[2] != 1 or self.first is None:
            return self.total
        return resident(self.first + 1, self.buffer, self.window)

    def zeros(self, keys: int) -> tuple[int, int, int, int]:
        """The sizes of so many keys."""
        batch, heads, _, features = self.sizes
        return batch, heads, keys, features


def caches_of(call: CompoundCall, batch: int, length: int, heads: int, features: int) -> Caches:
    """The caches of a call.

    Raises:
        NotWritten: the sizes do not fit each other, or are not known.
    """
    storage = storage_of(call, heads, features)
    buffer = call.sizes(3, 4)[2] if call.input(3) else 0
    if call.input(3):
        call.fits(3, batch, heads, buffer, storage.width(features))
        call.fits(4, batch, heads, buffer, storage.width(features))
    window = call.number("local_window_size") if call.number("sliding_window_cache") else 0
    total = _total(call, length, buffer)
    if window:
        bits = 0 if storage.form is None else storage.form.bits
        call.refuse(
            (buffer < window, "a past that has less room than its window"),
            (features * bits % 128, "a window's quantised past of no multiple of 128 bits"),
        )
    else:
        call.refuse(
            (total > buffer and total != buffer + length, "more keys than the past and the new")
        )
    call.refuse(
        (length != total and length > 1 and batch > 1, "samples of more than one new key"),
        (total < length, "fewer keys than new ones"),
    )
    prompt = total == length
    counts = call.reshaped(call.fits(5, batch), batch, 1, 1, 1)
    counts = call.with_number("Add", call.writer.as_float(counts), 1)
    first, numbers = _first(call, length, total)
    before, keys = first, max(buffer, total)
    if window:
        before = None if first is None else resident(first, buffer, window)
        keys = length + (buffer if before is None else before)
    ends = numbers
    if numbers is not None and first is not None and before is not None:
        ends = numbers - first + before
    sizes = batch, heads, length, features
    return Caches(sizes, buffer, total, keys, first, before, counts, ends, prompt, window, storage)


def _first(call: CompoundCall, length: int, total: int) -> tuple[int | None, Array | None]:
    """The place of the first new key, and the keys of each sample, where they are known."""
    prompt = total == length
    known = call.writer.array(call.input(5))
    if known is None:
        return (0 if prompt else None), None
    numbers = known.astype(int) + 1
    lowest = 1 if prompt else length
    call.refuse((not (lowest <= numbers.min() <= numbers.max() <= total), "other lengths"))
    if prompt:
        return 0, numbers
    return (int(numbers[0]) - length if (numbers == numbers[0]).all() else None), numbers


def _total(call: CompoundCall, length: int, buffer: int) -> int:
    """The number that `total_sequence_length` has."""
    array = call.writer.array(call.input(6))
    if array is not None and array.size == 1:
        return int(array.reshape(-1)[0])
    if call.input(10):
        return call.sizes(10, 4)[3]
    call.refuse((buffer, "a past beside a total_sequence_length that is no number in the file"))
    return length


def kept(call: CompoundCall, caches: Caches, new: str, which: int) -> tuple[str, str]:
    """The keys (`which` 0) or values (1) of the scores, and the present ones as they are stored."""
    past, storage = call.input(3 + which), caches.storage
    now = storage.stored(call, new, which)
    before = storage.read(call, past, caches.zeros(caches.buffer)) if past else ""
    if caches.window:
        every = _of_window(call, caches, before, now)
        present = _window(call, caches, every)
    else:
        every = present = _plain(call, caches, before, now)
    stored = storage.write(call, present, caches.zeros(caches.room))
    return storage.numbers(call, every, which), stored


def _plain(call: CompoundCall, caches: Caches, past: str, new: str) -> str:
    """The past ones of each sample, the new ones behind them, and zeros."""
    length, room, before = caches.sizes[2], caches.keys, caches.before
    if before is not None:
        parts = [new]
        if before:
            whole = before == caches.buffer
            parts.insert(0, past if whole else call.part(past, 2, 0, before))
        return _with_zeros(call, parts, caches.zeros(room - before - length))
    first = call.with_number("Sub", caches.counts, length)
    places = np.arange(room, dtype=np.float32)[:, None]
    old = call.bounded(_minus(call, first, places[: caches.buffer]))
    held = call.writer.add("Mul", past, old)
    held = _with_zeros(call, [held], caches.zeros(room - caches.buffer))
    own = _same(call, _minus(call, first, places - np.arange(length)))
    return call.writer.add("Add", held, call.writer.add("MatMul", own, new))


def _of_window(call: CompoundCall, caches: Caches, past: str, new: str) -> str:
    """The past ones that a window left, and the new ones behind them."""
    if caches.before is None:
        return call.joined([past, new], 2)
    return call.joined([call.part(past, 2, 0, caches.before), new], 2) if caches.before else new


def _window(call: CompoundCall, caches: Caches, every: str) -> str:
    """The last ones, and zeros behind them."""
    new, length = caches.sizes[2], caches.keys
    room, window = caches.buffer, caches.window
    if caches.first is not None and caches.ends is not None and (caches.ends == length).all():
        count = resident(caches.first + new, room, window)
        last = call.part(every, 2, length - count, length)
        return _with_zeros(call, [last], caches.zeros(room - count))
    first = first_of(call, caches, new)
    counts = caches.counts
    rows = np.arange(room, dtype=np.float32)[:, None]
    # Places behind the first new key: of each row of the result, and of each key that is there.
    wanted = call.writer.add(
        "Sub", call.writer.add("Sub", counts, first), left(call, caches, counts)
    )
    parts = []
    if new < length:
        place = np.arange(length - new, dtype=np.float32)
        old = left(call, caches, first)
        same = _same(
            call, call.with_number("Add", call.writer.add("Add", wanted, old), rows - place)
        )
        parts.append(call.writer.add("Mul", same, call.bounded(_minus(call, old, place))))
    place = np.arange(new, dtype=np.float32)
    same = _same(call, call.with_number("Add", wanted, rows - place))
    added = call.writer.add("Sub", counts, first)
    parts.append(call.writer.add("Mul", same, call.bounded(_minus(call, added, place))))
    return call.writer.add("MatMul", call.joined(parts, 3), every)


def first_of(call: CompoundCall, caches: Caches, length: int) -> str:
    """The place of the first new key of each sample, as floats of (batch, 1, 1, 1)."""
    if caches.prompt:
        return call.with_number("Mul", caches.counts, 0)
    return call.with_number("Sub", caches.counts, length)


def left(call: CompoundCall, caches: Caches, counts: str) -> str:
    """How many of so many keys a past of a window holds: `resident`."""
    step = caches.buffer - caches.window + 1
    over = call.with_number("Max", call.with_number("Sub", counts, caches.buffer), 0)
    # Half a key less: a product that is rounded up to a whole number is none.
    times = call.with_number("Mul", call.with_number("Sub", over, 0.5), 1 / step)
    times = call.with_number("Max", call.writer.add("Ceil", times), 0)
    return call.writer.add("Sub", counts, call.with_number("Mul", times, step))


def _same(call: CompoundCall, apart: str) -> str:
    """1 for each 0 of whole numbers, and else 0."""
    distance = call.with_number("Mul", call.writer.add("Abs", apart), -1)
    return call.bounded(call.with_number("Add", distance, 1))


def _with_zeros(call: CompoundCall, parts: list[str], shape: tuple[int, ...]) -> str:
    """The parts, and zeros behind them."""
    if shape[2]:
        parts = [*parts, call.writer.constant(np.zeros(shape, np.float32))]
    return call.joined(parts, 2)


def _minus(call: CompoundCall, name: str, numbers: object) -> str:
    return call.with_number("Sub", name, numbers)
