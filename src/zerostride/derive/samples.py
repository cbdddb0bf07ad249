"""Shapes without the axis that counts samples, as engines without a batch axis hold them."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import BroadcastError, Reason
from ..sizes import Shape, brief, whole_numbers


def one_sample(shapes: Sequence[Shape], batch_axis: int) -> tuple[Shape, ...]:
    """Right-aligned operands without one axis of their result, the one that counts samples.

    Raises:
        BroadcastError: no operand has that axis, or one stretches along it: samples of such an
            engine do not see each other.

    >>> one_sample([(1, 16, 8, 8), (16, 1, 1)], 0)
    ((16, 8, 8), (16, 1, 1))
    """
    rank = max(map(len, shapes), default=0)
    number = whole_numbers((batch_axis,))
    if number is None:
        raise BroadcastError(
            f"batch_axis is the number of an axis of the result, not {brief(batch_axis)}",
            reason=Reason.ATTRIBUTE,
            shapes=shapes,
        )
    if not 0 <= batch_axis < rank:
        raise BroadcastError(
            f"batch axis {batch_axis} of a result of {rank} axes",
            reason=Reason.AXIS_RANGE,
            shapes=shapes,
        )
    inside = rank - 1 - batch_axis
    counts = [shape[len(shape) - 1 - inside] if len(shape) > inside else 1 for shape in shapes]
    # The data are what has the most axes of an extent above 1.
    data = max(range(len(shapes)), key=lambda k: sum(size != 1 for size in shapes[k]))
    if counts[data] == 1 and any(isinstance(count, int) and count != 1 for count in counts):
        raise BroadcastError(
            f"operand {data} has one sample along axis {batch_axis}, the batch, and another one "
            "stretches it; the engine has no such axis",
            reason=Reason.WRONG_RESULT,
            shapes=shapes,
            hint="if the batch is another axis, name it",
            silent=True,
        )
    return tuple(
        shape[: len(shape) - 1 - inside] + shape[len(shape) - inside :]
        if len(shape) > inside
        else shape
        for shape in shapes
    )
