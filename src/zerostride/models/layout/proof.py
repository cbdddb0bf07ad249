"""The proof of a layout change: both ways computed on random data, and the effect of no change."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...core.plan import Plan
from ...derive.counterexample import Witness, smallest
from ...sizes import Shape, elements
from ..ir.graph import Array
from .images import Perm

#: Results of up to so many elements are computed at their own sizes. Larger sizes are renamed
#: 2, 3, 4 ... first, which preserves equality and 1.
MOST_ELEMENTS = 1 << 10
#: A result of many axes may be large even at the smallest sizes.
MOST_ELEMENTS_RENAMED = 1 << 16
#: A model repeats its blocks; a proof takes a tenth of a millisecond.
CACHE_SIZE = 4096
#: The rank of an operand after the change, and the kind of change.
Row = tuple[int, str]


class Proof(NamedTuple):
    """The result of a proof.

    Attributes:
        fault: the operand whose change is wrong, or None.
        words: the computation, in words.
        witness: the numbers if the image is transposed and the other operands are unchanged.
    """

    fault: int | None
    words: str
    witness: Witness | None = None


@functools.lru_cache(CACHE_SIZE)
def prove(
    plan: Plan, operands: tuple[Shape, ...], perm: Perm, rows: tuple[Row, ...], op: str
) -> Proof:
    """Computes a change of layout.

    Args:
        plan: how the model lays the operands out.
        operands: the plan's operands: plans with the same meaning may have others.
        perm: the axes of the result in their new order.
        rows: the change of each operand.
        op: the op that a witness computes, by its name in NumPy; "" for none.
    """
    small = _small(plan)
    if small is None:
        return Proof(None, "not computed: sizes are open or too large")
    rng = np.random.default_rng(0)
    result = tuple(small.shape[axis] for axis in perm)
    data = [rng.uniform(0.5, 2, shape) for shape in small.operands]
    for k, (array, view) in enumerate(zip(data, small.views(*data), strict=True)):
        changed = np.broadcast_to(_changed(array, small, k, perm, rows[k]), result)
        if not np.array_equal(changed, view.transpose(perm)):
            return Proof(k, "computed both ways: not equal")
    shown = "x".join(map(str, small.shape))
    return Proof(None, f"computed both ways at {shown}: equal", _witness(small, perm, rows, op))


def _small(plan: Plan) -> Plan | None:
    """The plan at sizes small enough to compute; None where sizes are open."""
    if plan.open is not None or not all(isinstance(size, int) for size in plan.shape):
        return None
    if elements(plan.shape) <= MOST_ELEMENTS and 0 not in plan.shape:
        return plan
    # A size of 0 leaves no data to compare; another size replaces it.
    free = 1 + max(size for shape in (plan.shape, *plan.operands) for size in shape)
    sizes = smallest([tuple(n or free for n in shape) for shape in (plan.shape, *plan.operands)])
    if elements(sizes[0]) > MOST_ELEMENTS_RENAMED:
        return None
    return Plan(sizes[0], sizes[1:], plan.axes_mapping, plan.rule)


def _changed(array: Array, small: Plan, k: int, perm: Perm, row: Row) -> Array:
    """The changed operand: reshaped, or its aligned form transposed and reshaped."""
    rank, how = row
    aligned = small.aligned[k]
    shape = tuple(aligned[axis] for axis in perm)[len(perm) - rank :]
    if how in ("stays", "reshape"):
        return array.reshape(shape)
    return array.reshape(aligned).transpose(perm).reshape(shape)


def _witness(small: Plan, perm: Perm, rows: Sequence[Row], name: str) -> Witness | None:
    if not name or all(how in ("stays", "image") for _, how in rows):
        return None
    op = getattr(np, name, None)
    if not isinstance(op, np.ufunc) or len(rows) != 2 or not _takes_floats(op):
        name, op = "add", np.add  # an op of bits, for example; add shows the difference
    start, data = 0, []
    for shape in small.operands:
        data.append(np.arange(start, start + elements(shape), dtype=np.float64).reshape(shape))
        start += elements(shape)
    views = [view.transpose(perm) for view in small.views(*data)]
    left = [
        _changed(array, small, k, perm, row) if row[1] == "image" else array
        for k, (array, row) in enumerate(zip(data, rows, strict=True))
    ]
    shapes = tuple(map(np.shape, left))
    with np.errstate(all="ignore"):
        right = _folded(op, views)
        try:
            wrong = _folded(op, left)
        except ValueError:
            return Witness(shapes, name, (), list(right.shape), "refused: they do not broadcast")
    if wrong.shape != right.shape:
        return Witness(shapes, name, (), list(right.shape), list(wrong.shape))
    differs = np.argwhere(~((wrong == right) | (np.isnan(wrong) & np.isnan(right))))
    if not len(differs):
        return None
    index = tuple(int(axis) for axis in differs[0])
    return Witness(shapes, name, index, right[index].item(), wrong[index].item())


def _takes_floats(op: np.ufunc) -> bool:
    """Whether it is an op of two numbers that may be fractions."""
    return any(kinds.startswith("dd->") for kinds in op.types)


def _folded(op: np.ufunc, arrays: Sequence[Array]) -> Array:
    """The op over all operands, one after the other."""
    result = arrays[0]
    for array in arrays[1:]:
        result = np.asarray(op(result, array))
    return result
