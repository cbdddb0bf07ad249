"""Counter-examples where the target drops the batch axis."""

from __future__ import annotations

from collections.abc import Sequence

from ...derive.counterexample import MOST_ELEMENTS, Planner, Witness, differing, smallest
from ...errors import BroadcastError
from ...sizes import Shape, elements


def find_batch_witness(
    shapes: Sequence[Shape], source: Planner, target: Planner, batch: Sequence[int | None], op: str
) -> Witness | None:
    """Numbers on which two plans differ where the target holds operands without a batch axis.

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
        witness = differing(tried, a, b, op)
        if witness is not None:
            return witness
    return None


def _wide(shape: Shape) -> Shape:
    """The shape without axes of 1: dropping a batch of one loses nothing."""
    return tuple(size for size in shape if size != 1)


def _without(shape: Shape, axis: int | None) -> Shape:
    return shape if axis is None else shape[:axis] + shape[axis + 1 :]
