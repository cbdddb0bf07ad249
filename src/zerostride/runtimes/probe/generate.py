"""Seeded cases for an engine: half valid by construction, a quarter nearly valid, a quarter random.

The same (engine, count, seed) always gives the same cases.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from .case import Case, Shape
from .catalogue import CatalogueRow, Draw, ShapeRoles, rows_of
from .kinds import KINDS

#: Ranks that most cases have; the rest go up to the row's highest.
COMMON_RANK = 6
HIGH_RANK_SHARE = 0.06
#: A larger result proves no more and takes longer to read.
MOST_ELEMENTS = 1 << 14
_EXTENTS = (0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 5, 5)
_INT_SHARE = 0.1


def generate(engine: str, count: int, seed: int) -> Iterator[Case]:
    """`count` cases for an engine, over all of its ops.

    Args:
        engine: a name of the catalogue; BadInput otherwise.
        count: how many.
        seed: any integer.
    """
    rows = rows_of(engine)
    rng = random.Random(f"{engine}:{seed}")
    weights = [row.weight for row in rows]
    for row in rng.choices(rows, weights, k=count):
        yield draw_case(rng, engine, row)


def draw_case(rng: random.Random, engine: str, row: CatalogueRow) -> Case:
    """One case of a row, small enough for the probes of its kind."""
    dtype = row.dtypes[0]
    if len(row.dtypes) > 1 and rng.random() < _INT_SHARE:
        dtype = rng.choice(row.dtypes[1:])
    while True:
        shapes, attrs = _DRAWS[row.draw](rng, row)
        if _fits(row, shapes):
            a, b, *rest = shapes
            third = rest[0] if rest else None
            return Case(engine, row.op, a, b, third, {**row.attrs, **attrs}, dtype)


def _fits(row: CatalogueRow, shapes: Sequence[Shape]) -> bool:
    operands = shapes[:1] if row.roles is ShapeRoles.TO else shapes
    if any(math.prod(shape) > KINDS[row.kind].limit for shape in operands):
        return False
    return _right_aligned_elements(shapes) <= MOST_ELEMENTS


def _right_aligned_elements(shapes: Sequence[Shape]) -> int:
    rank = max(map(len, shapes))
    rows = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    return math.prod(max(column) for column in zip(*rows, strict=True))


# Shapes.


def _rank(rng: random.Random, most: int) -> int:
    if most > COMMON_RANK and rng.random() < HIGH_RANK_SHARE:
        return rng.randint(COMMON_RANK + 1, most)
    return rng.randint(0, min(most, COMMON_RANK))


def _shape(rng: random.Random, rank: int) -> Shape:
    """Random extents; at high ranks mostly ones, so that the elements stay few."""
    if rank <= COMMON_RANK:
        return tuple(rng.choice(_EXTENTS) for _ in range(rank))
    long = rng.randint(0, 10)
    sizes = [rng.choice((2, 2, 2, 3)) for _ in range(min(long, rank))]
    sizes += [1] * (rank - len(sizes))
    rng.shuffle(sizes)
    if rng.random() < 0.1:
        sizes[rng.randrange(rank)] = 0
    return tuple(sizes)


def _thinned(rng: random.Random, shape: Shape) -> Shape:
    """The shape with some axes made 1."""
    keep = rng.choice((0.3, 0.6, 0.9, 1.0))
    return tuple(size if rng.random() < keep else 1 for size in shape)


def _spoiled(rng: random.Random, shape: Shape) -> Shape:
    """The shape with one extent changed."""
    if not shape:
        return shape
    k = rng.randrange(len(shape))
    return (*shape[:k], rng.choice((0, 1, 2, 3, 4, 5)), *shape[k + 1 :])


def _mood(rng: random.Random) -> str:
    return rng.choices(("valid", "nearly", "random"), (50, 25, 25))[0]


def _suffix(rng: random.Random, shape: Shape) -> Shape:
    return shape[rng.randint(0, len(shape)) :] if rng.random() < 0.6 else shape


def _prefix(rng: random.Random, shape: Shape) -> Shape:
    return shape[: rng.randint(0, len(shape))] if rng.random() < 0.6 else shape


def _several(
    rng: random.Random, row: CatalogueRow, count: int, cut: Callable[[random.Random, Shape], Shape]
) -> list[Shape]:
    """Operands cut out of one result shape; invalid or random by `mood`."""
    mood = _mood(rng)
    if mood == "random":
        return [_shape(rng, _rank(rng, row.max_rank)) for _ in range(count)]
    result = _shape(rng, _rank(rng, row.max_rank))
    shapes = [_thinned(rng, cut(rng, result)) for _ in range(count)]
    if mood == "nearly":
        k = rng.randrange(count)
        shapes[k] = _spoiled(rng, shapes[k])
    return shapes


# Attributes with shapes that suit them. Each returns the shapes and the attributes.

Drawn = tuple[list[Shape], dict[str, Any]]


def _right(rng: random.Random, row: CatalogueRow) -> Drawn:
    if row.roles is ShapeRoles.TO:
        return list(_data_and_target(rng, row)), {}
    return _several(rng, row, 3 if row.roles is ShapeRoles.WHERE else 2, _suffix), {}


def _data_and_target(rng: random.Random, row: CatalogueRow) -> tuple[Shape, Shape]:
    mood = _mood(rng)
    if mood == "random":
        return _shape(rng, _rank(rng, row.max_rank)), _shape(rng, _rank(rng, row.max_rank))
    target = _shape(rng, _rank(rng, row.max_rank))
    data = _thinned(rng, _suffix(rng, target))
    if mood == "nearly":
        return (
            (_spoiled(rng, data), target) if rng.random() < 0.5 else (data, _thinned(rng, target))
        )
    return data, target


def _keeps(rng: random.Random, row: CatalogueRow) -> Drawn:
    data, target = _data_and_target(rng, row)
    if rng.random() < 0.3:
        target = tuple(-1 if rng.random() < 0.3 else size for size in target)
    return [data, target], {}


def _ncnn(rng: random.Random, row: CatalogueRow) -> Drawn:
    # Everything lives in the last of: left-aligned, a vector on the right, right-aligned.
    cut = rng.choice((_prefix, _prefix, _vector, _suffix))
    return _several(rng, row, 2, cut), {}


def _vector(rng: random.Random, shape: Shape) -> Shape:
    if not shape or rng.random() < 0.5:
        return shape
    return shape[-1:] if rng.random() < 0.7 else shape[:1]


def _equal_ranks(rng: random.Random, row: CatalogueRow) -> Drawn:
    def whole(rng: random.Random, shape: Shape) -> Shape:
        return () if rng.random() < 0.15 else shape

    return _several(rng, row, 2, whole), {}


def _none_rule(rng: random.Random, row: CatalogueRow) -> Drawn:
    shape = _shape(rng, _rank(rng, row.max_rank))
    other = shape if rng.random() < 0.5 else _spoiled(rng, _suffix(rng, shape))
    return [shape, other], {"auto_broadcast": "none"}


def _numpy_rule(rng: random.Random, row: CatalogueRow) -> Drawn:
    return _several(rng, row, 2, _suffix), {"auto_broadcast": "numpy"}


def _placed(rng: random.Random, row: CatalogueRow) -> tuple[list[Shape], int]:
    """A shape, a run of it as the other operand, and the axis where the run starts."""
    mood = _mood(rng)
    if mood == "random":
        shapes = [_shape(rng, _rank(rng, row.max_rank)) for _ in range(2)]
        rank = max(map(len, shapes))
        return shapes, rng.randint(-rank - 1, rank + 1)
    a = _shape(rng, _rank(rng, row.max_rank))
    start = rng.randint(0, len(a))
    b = _thinned(rng, a[start : rng.randint(start, len(a))])
    if mood == "nearly":
        return rng.choice(([a, _spoiled(rng, b)], [_spoiled(rng, a), b])), start + rng.randint(
            -1, 1
        )
    return [a, b], start


def _pdpd(rng: random.Random, row: CatalogueRow) -> Drawn:
    shapes, axis = _placed(rng, row)
    if rng.random() < 0.1:  # A may stretch only against 0
        shapes[0] = _thinned(rng, shapes[0])
    if rng.random() < 0.15:
        axis = -1
    attrs: dict[str, Any] = {"auto_broadcast": "pdpd"}
    return shapes, attrs if rng.random() < 0.05 else {**attrs, "axis": axis}


def _paddle_axis(rng: random.Random, row: CatalogueRow) -> Drawn:
    shapes, axis = _placed(rng, row)
    if rng.random() < 0.3:
        shapes = [_thinned(rng, shapes[0]), shapes[1]]
    if rng.random() < 0.5:
        shapes.reverse()
    choice = rng.random()
    if choice < 0.2:
        axis = -1
    elif choice < 0.3:  # the negative axis that means the same start
        axis = axis - abs(len(shapes[0]) - len(shapes[1])) - 1
    return shapes, {} if rng.random() < 0.05 else {"axis": axis}


def _channel(rng: random.Random, row: CatalogueRow) -> Drawn:
    data = _shape(rng, max(1, _rank(rng, row.max_rank)) if rng.random() < 0.95 else 0)
    style = rng.random()
    if style < 0.4 and data:
        slope: Shape = (data[1 if len(data) > 1 and rng.random() < 0.8 else 0],)
    elif style < 0.5:
        slope = (1,) if rng.random() < 0.6 else ()
    elif style < 0.8:
        slope = _thinned(rng, _suffix(rng, data))
    else:
        slope = (rng.choice(_EXTENTS),)
    return [data, slope], {}


def _broadcast_3(rng: random.Random, row: CatalogueRow) -> Drawn:
    mode = rng.choice(("numpy", "bidirectional", "explicit", "explicit"))
    if mode != "explicit":
        data, target = _data_and_target(rng, row)
        if mode == "bidirectional" and rng.random() < 0.5:
            data, target = _several(rng, row, 2, _suffix)
        return [data, target], {"mode": mode}
    data, target, axes = _mapped(rng, row)
    return [data, target], {"mode": mode, "axes_mapping": axes}


def _in_dim(rng: random.Random, row: CatalogueRow) -> Drawn:
    data, target, axes = _mapped(rng, row)
    return [data, target], {"broadcast_dimensions": axes}


def _mapped(rng: random.Random, row: CatalogueRow) -> tuple[Shape, Shape, list[int]]:
    """Data, target and the target axis of each data axis; invalid by `mood`."""
    mood = _mood(rng)
    target = _shape(rng, _rank(rng, row.max_rank))
    axes = sorted(rng.sample(range(len(target)), rng.randint(0, len(target))))
    data = _thinned(rng, tuple(target[axis] for axis in axes))
    if mood == "nearly":
        data = _spoiled(rng, data)
    elif mood == "random" and axes:
        k = rng.randrange(len(axes))
        spoil = rng.randrange(4)
        if spoil == 0:
            rng.shuffle(axes)
        elif spoil == 1:
            axes[k] = rng.randint(-1, len(target))
        elif spoil == 2:
            axes.pop(k)
        else:
            axes[k] = axes[k - 1]
    return data, target, axes


_DRAWS: Mapping[Draw, Callable[[random.Random, CatalogueRow], Drawn]] = MappingProxyType(
    {
        Draw.RIGHT: _right,
        Draw.NCNN: _ncnn,
        Draw.NONE_RULE: _none_rule,
        Draw.NUMPY_RULE: _numpy_rule,
        Draw.PDPD: _pdpd,
        Draw.PADDLE_AXIS: _paddle_axis,
        Draw.CHANNEL: _channel,
        Draw.KEEPS: _keeps,
        Draw.BROADCAST_3: _broadcast_3,
        Draw.IN_DIM: _in_dim,
        Draw.EQUAL_RANKS: _equal_ranks,
    }
)
