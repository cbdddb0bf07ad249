"""The shapes that movements make: axes inserted and removed, a reshape's target, repeats.

Sizes are numbers, expressions, or None where nothing is known. Files, flow, execution and ports ask
here, so that a 0 or a −1 in a reshape's target means the same everywhere.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, TypeAlias

from ...sizes import elements
from ...sizes.dim import plain
from ...sizes.functions import exact_quotient
from .rewrite import RewriteStep

#: Sizes: numbers, expressions, names, or None.
Sizes: TypeAlias = Sequence[Any]


def at_rank(shape: Sizes, rank: int) -> tuple[Any, ...]:
    """The shape laid out at a rank: with ones before its axes, as NumPy does.

    >>> at_rank((3, 4), 4)
    (1, 1, 3, 4)
    """
    return (*(1,) * (rank - len(shape)), *shape)


def inserted(shape: Sizes, axes: Collection[int]) -> tuple[Any, ...]:
    """The shape with axes of extent 1 inserted; `axes` are the result's, from 0.

    >>> inserted((3, 4), (0, 2))
    (1, 3, 1, 4)
    """
    rest = iter(shape)
    return tuple(1 if axis in axes else next(rest) for axis in range(len(shape) + len(axes)))


def removed(shape: Sizes, axes: Collection[int]) -> tuple[Any, ...]:
    """The shape without some axes, from 0."""
    return tuple(size for axis, size in enumerate(shape) if axis not in axes)


def repeats(old: Sizes, new: Sizes) -> tuple[int, ...] | None:
    """The repeats per axis that expand a shape to one of the same rank; None if it does not.

    >>> repeats((1, 3), (4, 3)), repeats((2, 3), (4, 3))
    ((4, 1), None)
    """
    if len(old) != len(new) or any(a not in (1, b) for a, b in zip(old, new, strict=True)):
        return None
    return tuple(1 if a == b else b for a, b in zip(old, new, strict=True))


def with_kept(target: Sizes, shape: Sizes) -> tuple[Any, ...]:
    """A reshape's target in which a 0 is the data's size at its axis, if the data has the axis.

    >>> with_kept((0, -1), (2, 3, 4))
    (2, -1)
    """
    return tuple(
        shape[axis] if isinstance(size, int) and size == 0 and axis < len(shape) else size
        for axis, size in enumerate(target)
    )


def filled(target: Sizes, shape: Sizes | None) -> tuple[Any, ...] | None:
    """A reshape's target with its −1 replaced by the remaining size.

    Args:
        target: sizes without a 0 that means the data's size.
        shape: the data's sizes; None if the rank is unknown.

    Returns:
        None if the target does not have as many elements as the data. Where sizes are unknown, a
        remaining size is None, and nothing is compared.

    >>> filled((6, -1), (2, 3, 4)), filled((5, -1), (2, 3, 4)), filled((5, -1), (2, None))
    ((6, 4), None, (5, None))
    """
    rest = [size for size in target if size != -1]
    known = shape is not None and None not in shape and None not in rest
    if len(rest) == len(target):
        fits = not known or elements(shape or ()) == elements(rest)
        return tuple(target) if fits else None
    left: Any = None
    if known:
        quotient = exact_quotient(elements(shape or ()), elements(rest))
        if quotient is None or len(target) - len(rest) > 1:
            return None
        left = plain(quotient)
    return tuple(left if size == -1 else size for size in target)


def moved(step: RewriteStep, shape: Sizes | None) -> tuple[Any, ...] | None:
    """The shape after a reshape, expand, tile, unsqueeze or squeeze; None if it is unknown.

    Raises:
        ValueError: the step does not fit the shape; gives the reason.
    """
    if step.op == "expand":
        return tuple(step.shape or ())
    if step.op == "tile":
        if shape is None or len(shape) != len(step.shape or ()):
            raise ValueError(f"{shape} is not repeated by {step.shape}")
        pairs = zip(shape, step.shape or (), strict=True)
        return tuple(size if count == 1 else count * size for size, count in pairs)
    if step.op == "reshape":
        new = filled(step.shape or (), shape)
        if new is None:
            raise ValueError(f"{shape} has not as many elements as {step.shape}")
        return new
    if shape is None:
        return None
    axes = step.axes
    rank = len(shape) + (len(axes) if step.op == "unsqueeze" else 0)
    if sorted(set(axes)) != list(axes) or any(not 0 <= axis < rank for axis in axes):
        raise ValueError(f"axes {axes} of a tensor of {rank} axes")
    if step.op == "unsqueeze":
        return inserted(shape, axes)
    if any(shape[axis] not in (1, None) for axis in axes):
        raise ValueError(f"axes {axes} of {tuple(shape)} are not all of extent 1")
    return removed(shape, axes)
