"""Random shapes: of results, and of operands that a rule combines to them."""

from __future__ import annotations

import random
from typing import Any

from .cases import Shape

#: Limits of a result's elements, each with its share. The engine's blocks have thousands.
_BUDGETS = ((8, 0.2), (100, 0.3), (1500, 0.3), (9000, 0.15), (40_000, 0.05))
#: Share of calls with enough elements for threads.
_LARGE = 0.004
_LARGE_ELEMENTS = (100_000, 700_000)
_EXTENTS = (
    *(1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31),
    *(32, 33, 63, 64, 65, 100, 127, 255, 1000, 1031, 4099),
)


def result_shape(rng: random.Random) -> Shape:
    """The shape of a result, of any rank; most are small."""
    dice = rng.random()
    if dice < _LARGE:
        return of_size(rng, rng.randint(1, 5), rng.randint(*_LARGE_ELEMENTS))
    budget = rng.choices([size for size, _ in _BUDGETS], [share for _, share in _BUDGETS])[0]
    rank = int(rng.random() * 9) if dice < 0.95 else rng.randint(9, 64)
    if rank < 5 and rng.random() < 0.3:
        shape = of_size(rng, max(rank, 1), budget)
    else:
        shape = within(rng, rank, budget)
    if shape and rng.random() < 0.03:
        zero = int(rng.random() * len(shape))
        shape = (*shape[:zero], 0, *shape[zero + 1 :])
    return shape


def of_size(rng: random.Random, rank: int, elements: int) -> Shape:
    """A shape of about so many elements, most of them along one axis."""
    sizes = []
    for _ in range(rank - 1):
        n = min(int(rng.random() ** 2 * 40) + 1, elements)
        elements //= n
        sizes.append(n)
    sizes.insert(int(rng.random() * rank), elements)
    return tuple(sizes)


def within(rng: random.Random, rank: int, budget: int) -> Shape:
    """A shape of various extents, with at most so many elements."""
    sizes = []
    share = 3.5 / rank if rank > 4 else 1.0  # the share of axes that are not 1
    for _ in range(rank):
        n = _EXTENTS[int(rng.random() * len(_EXTENTS))] if rng.random() < share else 1
        n = n if n <= budget else (1 if budget < 2 else 2 + int(rng.random() * min(budget - 1, 3)))
        budget //= n
        sizes.append(n)
    rng.shuffle(sizes)
    return tuple(sizes)


def thinned(rng: random.Random, shape: Shape) -> Shape:
    """The shape with some extents replaced by 1."""
    keep = (0.3, 0.7, 0.9, 1.0)[int(rng.random() * 4)]
    if keep == 1.0:
        return shape
    return tuple(n if rng.random() < keep else 1 for n in shape)


def spoiled(rng: random.Random, shape: Shape) -> Shape:
    """The shape with one extent changed."""
    if not shape:
        return (2,)
    k = int(rng.random() * len(shape))
    return (*shape[:k], shape[k] + 1, *shape[k + 1 :])


def by_rule(rng: random.Random, shape: Shape, rule: str) -> tuple[list[Shape], dict[str, Any]]:
    """Two operands' shapes under a rule, for a result's shape. The rule may refuse them."""
    start = int(rng.random() * (len(shape) + 1))
    run = shape[start : start + int(rng.random() * (len(shape) + 1 - start)) + 1]
    options: dict[str, Any] = {"rule": rule}
    if rule in ("pdpd", "paddle"):
        options["axis"] = start
        return [shape, thinned(rng, run)], options
    if rule == "onnx6":
        return [shape, run], {**options, "broadcast": 1, "axis": start}
    if rule == "ncnn":
        short = shape[:4]
        other = (short, short[:1], short[-1:], short[:-1], thinned(rng, short))[
            int(rng.random() * 5)
        ]
        return ([short, other] if rng.random() < 0.5 else [other, short]), options
    if rule == "none" or rng.random() < 0.2:
        return [shape, shape], options
    return [shape, thinned(rng, shape)], options
