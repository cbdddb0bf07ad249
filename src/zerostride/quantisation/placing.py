"""Finds the axes of a tensor on which a scale lies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import Misfit, Reason
from ..sizes import Shape, brief, whole_numbers
from .model import Placement


class Advised(Exception):  # noqa: N818 - internal: `planning` makes a BroadcastError of it
    """A misfit and what to do about it."""

    def __init__(self, misfit: Misfit, hint: str | None = None, *, silent: bool = False) -> None:
        super().__init__(misfit.detail)
        self.silent = silent
        self.misfit = misfit
        self.hint = hint


def refuse(reason: Reason, detail: str, hint: str | None = None) -> Advised:
    """The exception for a scale that does not fit."""
    return Advised(Misfit(reason, detail), hint)


@dataclass(frozen=True, slots=True)
class Placed:
    """A scale on a tensor.

    Attributes:
        placement: how it lies.
        blocks: for each axis of the tensor, how many neighbours share a number.
        mapping: for each axis of the scale, the tensor's axis, or None for one that is dropped.
    """

    placement: Placement
    blocks: Shape
    mapping: tuple[int | None, ...]


def is_number(shape: Shape) -> bool:
    """Whether a scale is one number: of no axes, or a vector of one (ONNX has both).

    >>> is_number(()), is_number((1,)), is_number((1, 1))
    (True, True, False)
    """
    return shape in ((), (1,))


def place(x: Shape, scale: Shape, axis: Any, block: Any, default_axis: int | None = 1) -> Placed:
    """Where a scale lies on a tensor; raises Advised if it does not fit.

    >>> place((2, 6), (6,), None, None)
    Placed(placement=<Placement.AXIS: 'axis'>, blocks=(2, 1), mapping=(1,))
    """
    if block is not None:
        return _blocked(x, scale, axis, block, default_axis)
    one_index = default_axis is None and axis is not None and scale == (1,)
    if is_number(scale) and not one_index:
        return Placed(Placement.TENSOR, x, (None,) * len(scale))
    if len(scale) == 1:
        return _vector(x, scale[0], _one_axis(x, axis, default_axis))
    return _every_axis(x, scale, axis)


def _one_axis(x: Shape, axis: Any, default: int | None) -> int:
    """The axis of a vector, counted from the front."""
    if axis is None:
        if default is None:
            raise refuse(
                Reason.ATTRIBUTE,
                "a vector of scales lies along an axis, and this engine has no default for it",
                f"name the axis: axis={_fitting(x) or 0}",
            )
        axis = default
    number = whole_numbers((axis,))
    if number is None:
        raise refuse(
            Reason.ATTRIBUTE, f"an axis is a whole number, not {brief(axis)}", "write axis=1"
        )
    (k,) = number
    if not -len(x) <= k < len(x):
        valid = f"{-len(x)} .. {len(x) - 1}" if x else "none: it has no axes"
        hint = "pass one number as scale" if not x else "write axis=0" if len(x) == 1 else None
        raise refuse(Reason.AXIS_RANGE, f"axis {k} of x; its axes are {valid}", hint)
    return k % len(x)


def _fitting(x: Shape, size: int | None = None) -> int | None:
    fits = [k for k, n in enumerate(x) if n == size]
    return fits[0] if fits else None


def _vector(x: Shape, size: int, axis: int) -> Placed:
    if x[axis] != size:
        other = _fitting(x, size)
        hint = f"axis {other} of x has that size: write axis={other}" if other is not None else None
        raise refuse(
            Reason.EXTENT_MISMATCH, f"{size} scales for the {x[axis]} indices of axis {axis}", hint
        )
    blocks = tuple(1 if k == axis else n for k, n in enumerate(x))
    return Placed(Placement.AXIS, blocks, (axis,))


def _every_axis(x: Shape, scale: Shape, axis: Any) -> Placed:
    """A scale of the tensor's rank that is 1 where it repeats."""
    if len(scale) != len(x):
        aligned = (1,) * (len(x) - len(scale)) + scale
        fits = len(scale) < len(x) and all(s in (1, n) for s, n in zip(aligned, x, strict=True))
        raise refuse(
            Reason.RANK,
            f"a scale has one number, one axis, or the {len(x)} axes of x; this one has "
            f"{len(scale)}",
            f"reshape it to {aligned}" if fits else None,
        )
    if axis is not None:
        raise refuse(
            Reason.ATTRIBUTE,
            f"a scale of {len(scale)} axes lies on all axes of x, and axis= names one",
            "leave out axis=, or name the size of a block: block=32",
        )
    for k, (size, full) in enumerate(zip(scale, x, strict=True)):
        if size not in (1, full):
            run = -(-full // size) if size else 0
            wanted = tuple(-(-n // run) if j == k else n for j, n in enumerate(x)) if run else ()
            hint = f"write axis={k}, block={run}" if wanted == scale else None
            raise refuse(
                Reason.EXTENT_MISMATCH,
                f"{size} scales for the {full} indices of axis {k}, and neither is 1",
                hint,
            )
    blocks = tuple(full if size == 1 else 1 for size, full in zip(scale, x, strict=True))
    return Placed(Placement.AXES, blocks, tuple(range(len(x))))


def _blocked(x: Shape, scale: Shape, axis: Any, block: Any, default: int | None) -> Placed:
    """A number for each run of elements along one axis, or along several."""
    several = isinstance(axis, Sequence) and not isinstance(axis, str)
    axes = axis if several else (axis,)
    sizes = block if isinstance(block, Sequence) and not isinstance(block, str) else (block,)
    runs = whole_numbers(sizes)
    if runs is None or any(run < 1 for run in runs) or len(runs) != len(axes):
        raise refuse(
            Reason.ATTRIBUTE,
            f"block is a whole number from 1 for each axis, not {brief(block)}",
            "write axis=1, block=32, or axis=(0, 1), block=(128, 128)",
        )
    places = [_one_axis(x, each, 1 if default is None else default) for each in axes]
    if len(set(places)) != len(places):
        raise refuse(Reason.DUPLICATE_AXES, f"axis {brief(axis)} names an axis twice")
    blocks = [1] * len(x)
    for place_, run in zip(places, runs, strict=True):
        blocks[place_] = run
    wanted = tuple(-(-n // run) for n, run in zip(x, blocks, strict=True))
    if scale != wanted:
        words = " and ".join(
            f"{run} along axis {place_}" for place_, run in zip(places, runs, strict=True)
        )
        raise refuse(
            Reason.EXTENT_MISMATCH,
            f"blocks of {words} have scales of shape {wanted}, not {scale}",
            _turned(x, scale, runs[0]) if len(places) == 1 else None,
        )
    return Placed(Placement.BLOCK, tuple(blocks), tuple(range(len(x))))


def _turned(x: Shape, scale: Shape, run: int) -> str | None:
    """The axis whose blocks have scales of this shape."""
    if len(scale) != len(x):
        return None
    for axis in range(len(x)):
        if scale == tuple(-(-n // run) if k == axis else n for k, n in enumerate(x)):
            return f"they are of blocks along axis {axis}: write axis={axis}"
    return None
