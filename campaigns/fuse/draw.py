"""Seeded fused programs: ops under rules, reductions, views, casts, numbers, several results.

A program is drawn step by step, each step tried on the builder of `graph`, which says whether
it has a meaning. Then some calls of it are drawn: memory of any layout, values, `out`, overlaps.
Blocks of cases have seeds of their own, as in `campaigns.native.draw`.
"""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from zerostride.compute.special import keeps_kind

from ..native.cases import Number, Shape, View, bfloat16, dtype_of
from ..native.draw import Desk
from ..native.shapes import of_size, thinned, within
from ..seeded import BLOCK
from .cases import FuseCase, FuseProgram
from .graph import Builder, Known
from .steps import FLOAT_NUMBERS, FLOATS, INT_NUMBERS, INTEGERS, MOST_AXES, ODD, Writer

#: Calls of one program.
CALLS = 4

_FLOAT_WEIGHTS = (8, 3, 2, 2)
_ODD_SHARE = 0.01
_BUDGETS = ((8, 0.2), (100, 0.35), (1500, 0.3), (9000, 0.1), (40_000, 0.05))
_LARGE = 0.003
_LARGE_ELEMENTS = (100_000, 400_000)
#: Values of the operands, and how often all of a call's are such.
_STYLES: Sequence[tuple[str | None, float]] = (
    *(("plain", 0.4), ("positive", 0.15), ("small", 0.1), ("special", 0.1)),
    (None, 0.25),
)


def cases(first: int, count: int, seed: int) -> Iterator[tuple[int, FuseCase]]:
    """Cases first..first+count-1 of a seed, each with its number.

    >>> [k for k, _ in cases(498, 4, seed=0)]
    [498, 499, 500, 501]
    >>> list(cases(3, 2, 0)) == list(cases(0, 5, 0))[3:]
    True
    """
    end = first + count
    for block in range(first // BLOCK, -(-end // BLOCK)):
        rng = random.Random(f"fuse {seed}:{block}")
        for k in range(block * BLOCK, min(end, (block + 1) * BLOCK)):
            if k % CALLS == 0:
                drawn = draw_program(rng)
            case = draw_call(rng, drawn)
            if k >= first:
                yield k, case


@dataclass(frozen=True, slots=True)
class Drawn:
    """A program with the operands that it was drawn for, and its results."""

    program: FuseProgram
    operands: tuple[Known, ...]
    results: tuple[Known, ...]


def draw_program(rng: random.Random) -> Drawn:
    """A program and the shapes and dtypes of its operands."""
    shape = _box(rng)
    operands = tuple(_operands(rng, shape))
    asked = rng.choice(FLOATS[: 4 if bfloat16() else 3]) if rng.random() < 0.05 else None
    try:
        builder = Builder(operands, asked)
    except TypeError:
        asked, builder = None, Builder(operands)
    writer = Writer(rng, builder, max(math.prod(shape), 64))
    idiom = rng.random()
    if idiom < 0.12:
        writer.idiom()
    wanted = rng.choices(range(1, 13), (4, 5, 6, 6, 5, 4, 3, 3, 2, 2, 1, 1))[0]
    while len(writer.steps) < wanted and writer.failures < 60:
        writer.step()
    if not writer.steps:  # nothing had a meaning: the operand itself is a result
        builder.values[:] = builder.values[: len(operands)]
    outputs = _outputs(rng, writer, len(operands))
    program = FuseProgram(len(operands), tuple(writer.steps), outputs, asked)
    return Drawn(program, operands, tuple(builder.values[value] for value in outputs))


# Operands


def _box(rng: random.Random) -> Shape:
    """The shape that operands are cut out of."""
    if rng.random() < _LARGE:
        return of_size(rng, rng.randint(1, 4), rng.randint(*_LARGE_ELEMENTS))
    budget = rng.choices([size for size, _ in _BUDGETS], [share for _, share in _BUDGETS])[0]
    rank = rng.choices(range(MOST_AXES + 1), (1, 4, 8, 6, 4, 2, 2))[0]
    if rank and rng.random() < 0.35:
        shape = of_size(rng, rank, budget)
    else:
        shape = within(rng, rank, budget)
    if shape and rng.random() < 0.03:
        zero = int(rng.random() * len(shape))
        shape = (*shape[:zero], 0, *shape[zero + 1 :])
    return shape


def _operands(rng: random.Random, shape: Shape) -> Iterator[Known]:
    count = rng.choices((1, 2, 3, 4, 5), (3, 5, 4, 2, 1))[0]
    dtypes = _dtypes(rng, count)
    arrays = 0
    for k, dtype in enumerate(dtypes):
        last = k == count - 1 and not arrays
        if not last and rng.random() < 0.06:  # a Python number
            yield Known(0, (), "float64" if rng.random() < 0.6 else "int64", weak=True)
            continue
        arrays += 1
        own = shape[int(rng.random() * (len(shape) + 1)) :] if rng.random() < 0.25 else shape
        yield Known(0, thinned(rng, own) if rng.random() < 0.45 else own, dtype)


def _dtypes(rng: random.Random, count: int) -> list[str]:
    floats = FLOATS if bfloat16() else FLOATS[:3]
    weights = _FLOAT_WEIGHTS[: len(floats)]
    dice = rng.random()
    if dice < 0.5:  # floats of one dtype, at times with a mask
        dtype = rng.choices(floats, weights)[0]
        return ["bool" if rng.random() < 0.1 else dtype for _ in range(count)]
    if dice < 0.7:
        dtype = rng.choice(INTEGERS)
        return ["bool" if rng.random() < 0.1 else dtype for _ in range(count)]
    every = (*floats, *INTEGERS, "bool")
    shares = (*weights, *[1] * len(INTEGERS), 2)
    if dice > 1 - _ODD_SHARE:
        every, shares = (*every, *ODD), (*shares, 8, 8, 8)
    return rng.choices(every, shares, k=count)


def _outputs(rng: random.Random, writer: Writer, operands: int) -> tuple[int, ...]:
    """The last value, and at times others."""
    last = len(writer.values) - 1
    if rng.random() < 0.7:
        return (last,)
    unread = [k for k in range(operands, last) if k not in writer.read]
    others = list(range(operands, last))
    outputs = [last]
    for _ in range(rng.choice((1, 1, 2, 3))):
        pool = unread if unread and rng.random() < 0.7 else others
        if rng.random() < 0.04:
            pool = [k for k in range(operands) if not writer.values[k].weak] or pool
        if pool:
            outputs.append(rng.choice(pool))
    rng.shuffle(outputs)
    return tuple(outputs)


# Calls


def draw_call(rng: random.Random, drawn: Drawn) -> FuseCase:
    """A call of a program: memory, values, and where the results go."""
    styles, shares = zip(*_STYLES, strict=True)
    desk = Desk(rng, rng.choices(styles, shares)[0])
    operands: list[View | Number] = []
    for known in drawn.operands:
        if known.weak:
            numbers = INT_NUMBERS[:6] if known.dtype == "int64" else FLOAT_NUMBERS
            operands.append(Number(rng.choice(numbers)))
        elif not known.shape and rng.random() < 0.3 and known.dtype in FLOATS + INTEGERS:
            operands.append(
                Number(np.array([rng.choice((1, 2, 0, 3))]).astype(dtype_of(known.dtype))[0])
            )
        else:
            operands.append(desk.operand(known.shape, known.dtype, operands))
    outs: tuple[View | None, ...] = ()
    if rng.random() < 0.35:
        outs = tuple(_outs(rng, desk, drawn, operands))
    return FuseCase(drawn.program, tuple(desk.memories), tuple(desk.moved(operands)), outs)


@functools.cache
def _takes(dtype: str) -> tuple[str, ...]:
    """The dtypes of arrays that take results of one, within their kind."""
    own = dtype_of(dtype)
    known = tuple(one for one in ("bool", *INTEGERS, *FLOATS) if keeps_kind(own, dtype_of(one)))
    return known or (dtype,)


def _outs(
    rng: random.Random, desk: Desk, drawn: Drawn, operands: Sequence[View | Number]
) -> Iterator[View | None]:
    free = [operand for operand in operands if isinstance(operand, View)]
    for known in drawn.results:
        if len(drawn.results) > 1 and rng.random() < 0.2:
            yield None
            continue
        dtype = known.dtype
        if rng.random() < 0.25:
            dtype = rng.choice(_takes(dtype))
        over = None
        if free and rng.random() < 0.6:
            view = rng.choice(free)
            over = desk.over(known.shape, dtype, view)
            if over is not None:  # two results in one memory may overlap
                free = [other for other in free if other.memory != view.memory]
        yield over or desk.fresh(known.shape, dtype)
