"""The operand element at a result index by the documents: loops without a Plan.

Each function takes an operand's shape and a result index, and returns the operand's index. They are
written from the documents' words, independently of the package.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import zerostride as zs

Index = tuple[int, ...]
Where = Callable[[Index], Index]


def _clamp(size: int, i: int) -> int:
    """An axis of size 1 gives its only element to every index."""
    return 0 if size == 1 else i


def right_aligned(shape: Sequence[int], index: Index) -> Index:
    """Last axes stand under one another (NumPy, MNN, bidirectional, Broadcast-3's numpy)."""
    picked = []
    for back in range(len(shape), 0, -1):
        picked.append(_clamp(shape[-back], index[-back]))
    return tuple(picked)


def starting_at(axis: int | None, rank: int) -> Callable[[Sequence[int], Index], Index]:
    """B's axes lie on A's from `axis` on, trailing ones ignored (PDPD)."""

    def pick(shape: Sequence[int], index: Index) -> Index:
        start = rank - len(shape) if axis in (None, -1) else axis
        assert start is not None
        kept = len(shape)
        while kept > 0 and shape[kept - 1] == 1:
            kept -= 1
        picked = []
        for j in range(len(shape)):
            picked.append(_clamp(shape[j], index[start + j]) if j < kept else 0)
        return tuple(picked)

    return pick


def placed_at(axes: Sequence[int]) -> Callable[[Sequence[int], Index], Index]:
    """Operand axis i is result axis axes[i] (Broadcast-3's explicit)."""

    def pick(shape: Sequence[int], index: Index) -> Index:
        return tuple(_clamp(size, index[axis]) for size, axis in zip(shape, axes, strict=True))

    return pick


def ncnn(shape: Sequence[int], other: Sequence[int], index: Index) -> Index:
    """All three in ncnn's order [w, h, d, c], whose last axis is the outermost.

    Equal ranks: axis by axis. A vector: on the other's last axis if that has its length, else on
    the first. Any other lower rank: on the other's last axes.
    """
    if len(shape) == 1 and len(other) > 1 and shape[0] != other[-1]:
        return (_clamp(shape[0], index[0]),)
    return right_aligned(shape, index)


def probes(shapes: Sequence[Sequence[int]]) -> list[np.ndarray[Any, Any]]:
    """Arrays in which every element is its own number, and no two operands share one."""
    arrays, first = [], 0
    for shape in shapes:
        count = int(np.prod(shape, dtype=int))
        arrays.append(np.arange(first, first + count).reshape(tuple(shape)))
        first += count
    return arrays


def check_values(plan: zs.Plan, result: Sequence[int], wheres: Sequence[Where]) -> None:
    """Asserts the plan's shape, and every element of every operand's view."""
    assert plan.shape == tuple(result)
    arrays = probes(plan.operands)
    views = plan.views(*arrays)
    assert len(views) == len(wheres)
    for index in itertools.product(*map(range, result)):
        for array, view, where in zip(arrays, views, wheres, strict=True):
            assert view[index] == array[where(index)], (plan, index)
