"""Shapes that are asked: ladders over ranks and sizes, and seeded random ones.

A question is the shapes of all operands; of an op that broadcasts to a target, the data's and the
target's.
"""

from __future__ import annotations

import functools
import itertools
import math
import random
from collections.abc import Iterator

Shape = tuple[int, ...]
Question = tuple[Shape, ...]

#: Ranks of the ladder: all small ones, and both sides of the limits that engines have.
RANKS = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 17, 33)
#: Sizes of the ladder; the learner halves the distance between two that differ.
RUNGS = (7, 8, 16, 33, 64, 129, 256, 1025, 4096, 65537)
#: Sizes of random questions: both sides of vector widths, blocks and types' ends.
SIZES = (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257)
LARGE = (511, 513, 1023, 1025, 2047, 2049, 4095, 4097, 32767, 65535, 65537)
#: The most elements of a result.
MOST_ELEMENTS = 1 << 18
_EXTENTS = (0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 5, 6, 7, 8)


def ladder(count: int) -> list[Question]:
    """The questions that are always asked, the simplest first; each once.

    Args:
        count: the number of operands.
    """
    every = itertools.chain(_simple(count), _ranks(count), _sizes(count))
    return list(dict.fromkeys(every))


def _fill(pair: tuple[Shape, Shape], count: int) -> Question:
    """A pair as the last two operands; those before it have the shape of the larger."""
    larger = max(pair, key=lambda shape: (len(shape), math.prod(shape)))
    return (larger,) * (count - 2) + pair


def _simple(count: int) -> Iterator[Question]:
    pairs: tuple[tuple[Shape, Shape], ...] = (
        ((2, 3), (2, 3)),
        ((3,), (3,)),
        ((2, 3), (3,)),
        ((3,), (2, 3)),
        ((3, 5), (3,)),
        ((3, 5), (5,)),
        ((5, 5), (5,)),
        ((2, 3), (1, 3)),
        ((2, 3), (2, 1)),
        ((2, 1), (1, 3)),
        ((1, 3), (2, 1)),
        ((2, 3), (1,)),
        ((2, 3), ()),
        ((), (2, 3)),
        ((), ()),
        ((1,), ()),
        ((), (1,)),
        ((2, 3), (4,)),
        ((2, 3), (2, 4)),
        ((2, 4), (2, 2)),
        ((2, 3, 4), (3,)),
        ((2, 3, 4), (3, 4)),
        ((2, 3, 4), (2, 3)),
        ((2, 3, 4), (4,)),
        ((2, 3, 4), (2,)),
        ((2, 3, 4, 5), (3,)),
        ((2, 3, 4, 5), (3, 4)),
        ((2, 3, 4, 5), (5,)),
        ((2, 3, 4, 5), (3, 1, 1)),
        ((0, 3), (0, 3)),
        ((0, 3), (0, 2)),
        ((2, 0), (3, 0)),
        ((0, 3), (1, 3)),
        ((0, 3), (3,)),
        ((2, 0), (1,)),
        ((1,), (0,)),
        ((0,), (2,)),
        ((1, 0), (1,)),
        ((1, 1, 0), (1,)),
        ((2, 0, 3), (3,)),
        ((2, 1, 3), (2, 0, 3)),
        ((2, 3, 0), (2, 1, 1)),
        ((0,), ()),
        ((1, 1, 5), (5,)),
        ((1, 1, 1), (3,)),
        ((3,), (1, 1, 1)),
        ((1, 1, 1, 4), (3, 1)),
    )
    for pair in pairs:
        yield _fill(pair, count)
    if count > 2:
        yield from (((1, 3), (2, 3), (2, 3)), ((2, 1), (1, 3), (2, 3)), ((), (2, 3), (2, 3)))
        yield from (((2, 3), (2, 3), (3,)), ((2, 3), (3,), (2, 3)), ((3,), (2, 3), (2, 3)))


def single(count: int) -> list[Question]:
    """Questions of the ladder in which an operand has one element.

    Args:
        count: the number of operands.
    """
    pairs: tuple[tuple[Shape, Shape], ...] = (
        *(((2, 3), (1,)), ((), (2, 3))),
        *(((), (1,)), ((3,), (1, 1, 1))),
    )
    return [_fill(pair, count) for pair in pairs]


@functools.cache
def by_rank(count: int) -> tuple[tuple[Question, ...], ...]:
    """The questions of the ladder for each rank up to the last of `RANKS`, in the same order.

    Args:
        count: the number of operands.
    """
    return tuple(tuple(_of_rank(rank, count)) for rank in range(RANKS[-1] + 1))


def _of_rank(rank: int, count: int) -> list[Question]:
    whole = tuple(2 if axis < 8 else 1 for axis in range(rank))
    turns = tuple(size if axis % 2 else 1 for axis, size in enumerate(whole))
    others = tuple(1 if axis % 2 else size for axis, size in enumerate(whole))
    pairs = [(whole, whole), (whole, turns), (turns, others), (whole, whole[-1:])]
    pairs += [(turns, whole), (whole[-1:], whole)] if rank > 5 else []
    return [_fill(pair, count) for pair in pairs]


def _ranks(count: int) -> Iterator[Question]:
    for rank in RANKS:
        yield from by_rank(count)[rank]


def _sizes(count: int) -> Iterator[Question]:
    for size in RUNGS:
        yield _fill(((2, size), (size,)), count)
        yield _fill(((size, 2), (size, 2)), count)
        yield _fill(((size,), (size,)), count)
        if size <= 256:
            yield _fill(((2, size, 3), (2, size, 1)), count)


def draw(rng: random.Random, count: int) -> Question:
    """A random question: half of one result shape, a quarter spoiled, a quarter unrelated."""
    while True:
        question = _drawn(rng, count)
        rank = max(map(len, question))
        rows = [(1,) * (rank - len(shape)) + shape for shape in question]
        if math.prod(map(max, zip(*rows, strict=True))) <= MOST_ELEMENTS:
            return question


def _drawn(rng: random.Random, count: int) -> Question:
    mood = rng.choices(("related", "spoiled", "unrelated"), (50, 25, 25))[0]
    if mood == "unrelated":
        return tuple(_shape(rng, rng.randint(0, 5)) for _ in range(count))
    whole = _shape(rng, rng.randint(7, 10) if rng.random() < 0.06 else rng.randint(0, 6))
    shapes = [_thinned(rng, _cut(rng, whole)) for _ in range(count)]
    if mood == "spoiled":
        k = rng.randrange(count)
        if shapes[k]:
            axis = rng.randrange(len(shapes[k]))
            shapes[k] = (*shapes[k][:axis], rng.choice(_EXTENTS), *shapes[k][axis + 1 :])
    return tuple(shapes)


def _shape(rng: random.Random, rank: int) -> Shape:
    if rank <= 4 and rng.random() < 0.25:
        sizes = [rng.choice(_EXTENTS) for _ in range(rank)]
        if sizes:
            sizes[rng.randrange(rank)] = rng.choice(SIZES + LARGE[:4])
        return tuple(sizes)
    if rank <= 6:
        return tuple(rng.choice(_EXTENTS) for _ in range(rank))
    return tuple(rng.choice((1, 1, 2, 2, 3)) for _ in range(rank))


def _cut(rng: random.Random, shape: Shape) -> Shape:
    """All axes, the last ones, the first ones, or one of them."""
    way = rng.random()
    if way < 0.4 or not shape:
        return shape
    place = rng.randint(0, len(shape))
    if way < 0.7:
        return shape[place:]
    if way < 0.85:
        return shape[:place]
    return (rng.choice(shape),)


def _thinned(rng: random.Random, shape: Shape) -> Shape:
    keep = rng.choice((0.3, 0.6, 0.9, 1.0))
    return tuple(size if rng.random() < keep else 1 for size in shape)


def between(question: Question, size: int, other: int) -> Question:
    """The question with a size replaced in all operands."""
    return tuple(tuple(other if s == size else s for s in shape) for shape in question)


__all__ = [
    "MOST_ELEMENTS",
    "RANKS",
    "Question",
    "Shape",
    "between",
    "by_rank",
    "draw",
    "ladder",
    "single",
]
