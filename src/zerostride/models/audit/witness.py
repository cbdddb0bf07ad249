"""Counter-examples of a model's nodes, computed with the nodes' ops."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from ...core.plan import Plan
from ...derive import counterexample
from ...derive.counterexample import MOST_ELEMENTS, Planner, Witness, smallest
from ...errors import BroadcastError
from ...sizes import Shape, elements

Array: TypeAlias = "np.ndarray[Any, Any]"


def find_witness(
    shapes: Sequence[Shape],
    source: Planner,
    target: Planner,
    op: str,
    *,
    renamed: bool = True,
) -> Witness | None:
    """Numbers on which the two plans give different results, or None where none are found.

    Args:
        shapes: the operands' shapes.
        source: plans the operands as the model means them.
        target: plans them as the target does.
        op: the op to compute; add where it has no NumPy function of the name.
        renamed: use the smallest sizes; otherwise the shapes as they are.
    """

    def by_value(small: tuple[Shape, ...], a: Plan, b: Plan) -> Witness | None:
        return _by_value(small, a, b, op) or _by_value(small, a, b, "add")

    return counterexample.find_witness(
        shapes, source, target, op, renamed=renamed, by_value=by_value
    )


def find_batch_witness(
    shapes: Sequence[Shape], source: Planner, target: Planner, batch: Sequence[int | None], op: str
) -> Witness | None:
    """The same where the target holds operands without their batch axis.

    Where the numbers agree at such sizes, equal sizes are tried: a target that aligns by size goes
    wrong there.

    Args:
        shapes: the operands' shapes in the model.
        source: plans them as the model means them.
        target: plans the operands without their batch axes as the target does.
        batch: for each operand the axis that the target drops, or None.
        op: the op to compute.
    """
    equal = tuple(tuple(min(size, 2) for size in shape) for shape in shapes)
    for tried in (smallest(shapes), equal):
        a = source(tried)
        b = target(tuple(map(_without, tried, batch)))
        if isinstance(a, BroadcastError):
            continue
        if isinstance(b, BroadcastError):
            effect = "nonsense, or a crash" if b.silent else "refused"
            return Witness(tried, op, (), list(a.shape), f"{effect}: {b.detail}")
        if max(elements(a.shape), elements(b.shape)) > MOST_ELEMENTS:
            return None
        if _wide(a.shape) != _wide(b.shape):
            return Witness(tried, op, (), list(a.shape), list(b.shape))
        if any(elements(x) != elements(_without(x, k)) for x, k in zip(tried, batch, strict=True)):
            continue  # a batch of more than one: dropping the axis loses elements
        witness = _by_value(tried, a, b, op) or _by_value(tried, a, b, "add")
        if witness is not None:
            return witness
    return None


def _wide(shape: Shape) -> Shape:
    """The shape without axes of 1: dropping a batch of one loses nothing."""
    return tuple(size for size in shape if size != 1)


def _without(shape: Shape, axis: int | None) -> Shape:
    return shape if axis is None else shape[:axis] + shape[axis + 1 :]


def _by_value(shapes: Sequence[Shape], a: Plan, b: Plan, op: str) -> Witness | None:
    function = getattr(np, op, None)
    if not isinstance(function, np.ufunc) or function.nin != 2 or len(shapes) < 2:
        return None
    data = []
    start = 0
    for shape in shapes:
        count = elements(shape)
        data.append(np.arange(start, start + count, dtype=np.float64).reshape(shape))
        # Each operand continues counting, so that all elements differ.
        start += count if op == "add" else 0
    try:
        with np.errstate(all="ignore"):
            # More than two operands are combined one after the other.
            left, right = (functools.reduce(function, _views(plan, data)) for plan in (a, b))
    except TypeError:
        return None  # bitwise ops on floats; the caller falls back to add
    right = np.reshape(right, left.shape)
    differs = ~((left == right) | (np.isnan(left) & np.isnan(right)))
    if not differs.any():
        return None
    index = tuple(int(k) for k in np.argwhere(differs)[0])
    return Witness(tuple(shapes), op, index, left[index].item(), right[index].item())


def _views(plan: Plan, data: Sequence[Array]) -> tuple[Array, ...]:
    """The plan's views of the data, which may have an additional axis of extent 1."""
    return plan.views(*map(np.reshape, data, plan.operands))
