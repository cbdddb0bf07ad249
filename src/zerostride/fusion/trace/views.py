"""The axes of a view of a value: indices, transposition, and shapes that differ by ones."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from ...errors import BroadcastError, Reason
from .graph import Axes
from .source import refuse

_WHERE = "choose by values with zs.where(condition, a, b); cut outside of the fused function"


def one_axis(axis: Any, rank: int) -> int:
    """An axis counted from 0.

    >>> one_axis(-1, 3)
    2
    """
    if isinstance(axis, str):
        refuse(
            f"axis {axis!r} is a name, and axes of values have places",
            "count the axis, from 0 or from the end; or do that outside, where arrays have names",
        )
    place = operator.index(axis)
    if not -rank <= place < rank:
        raise BroadcastError(f"axis {place} of an array of {rank} axes", reason=Reason.AXIS_RANGE)
    return place % rank


def some_axes(axis: Any, rank: int) -> tuple[int, ...]:
    """Axes counted from 0, rising; all for None.

    >>> some_axes((-1, 0), 3), some_axes(None, 2)
    ((0, 2), (0, 1))
    """
    if axis is None:
        return tuple(range(rank))
    axes = axis if isinstance(axis, tuple | list) else (axis,)
    places = sorted(one_axis(item, rank) for item in axes)
    if len({*places}) < len(places):
        raise BroadcastError(f"axis {axis!r} names one twice", reason=Reason.DUPLICATE_AXES)
    return tuple(places)


def indexed(shape: tuple[int, ...], key: Any) -> Axes:
    """The axes of value[key]: new ones and whole ones; an index drops an axis of one element."""
    keys = list(key) if isinstance(key, tuple) else [key]
    for index in keys:
        if hasattr(type(index), "__zerostride_trace__") or not (
            index is None or index is Ellipsis or _is_simple(index)
        ):
            refuse("elements are chosen by values, which cannot be fused", _WHERE)
    rank = sum(index is not None and index is not Ellipsis for index in keys)
    if rank > len(shape):
        raise IndexError(f"{rank} indices for an array of {len(shape)} axes")
    ellipses = sum(index is Ellipsis for index in keys)
    if ellipses > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    if not ellipses:
        keys.append(Ellipsis)
    axes: list[int | None] = []
    axis = 0
    for index in keys:
        if index is None:
            axes.append(None)
        elif index is Ellipsis:
            rest = len(shape) - rank
            axes.extend(range(axis, axis + rest))
            axis += rest
        else:
            if _keeps(index, shape[axis]):
                axes.append(axis)
            axis += 1
    return tuple(axes)


def _is_simple(index: Any) -> bool:
    if hasattr(type(index), "__zerostride_trace__") or type(index) is bool:
        return False
    return isinstance(index, slice) or hasattr(index, "__index__")


def _keeps(index: Any, size: int) -> bool:
    """Whether an axis is kept; an index drops it, which is allowed where it has extent 1."""
    if isinstance(index, slice):
        if len(range(*index.indices(size))) != size or (size > 1 and index.step not in (None, 1)):
            refuse(f"a slice of {size} elements that leaves some out cannot be fused", _WHERE)
        return True
    if not -size <= operator.index(index) < size:
        raise IndexError(f"index {index} is out of bounds for an axis of {size} elements")
    if size != 1:
        refuse(f"one of {size} elements cannot be taken in a fused function", _WHERE)
    return False


def ordered(rank: int, order: Any) -> Axes:
    """The axes of a transposed value; reversed for None."""
    if order is None:
        return tuple(reversed(range(rank)))
    places = tuple(one_axis(axis, rank) for axis in order)
    if sorted(places) != list(range(rank)):
        raise ValueError(f"axes {order!r} are no order of the {rank} axes")
    return places


def reshaped(shape: tuple[int, ...], sizes: Any) -> Axes:
    """The axes of a value in a shape that differs by axes of extent 1."""
    wanted = [operator.index(size) for size in (sizes if hasattr(sizes, "__iter__") else (sizes,))]
    if wanted.count(-1) == 1:
        wanted[wanted.index(-1)] = _missing(shape, wanted)
    long = [axis for axis, size in enumerate(shape) if size != 1]
    if [shape[axis] for axis in long] != [size for size in wanted if size != 1]:
        refuse(
            f"{shape} is reshaped to {tuple(wanted)}, which merges or splits axes",
            "reshape outside of the fused function; inside, axes of extent 1 come and go",
        )
    rest = iter(long)
    return tuple(None if size == 1 else next(rest) for size in wanted)


def _missing(shape: Sequence[int], wanted: Sequence[int]) -> int:
    """The size that -1 stands for."""
    total = rest = 1
    for size in shape:
        total *= size
    for size in wanted:
        rest *= size if size != -1 else 1
    if rest == 0 or total % rest:
        raise ValueError(f"cannot reshape array of shape {tuple(shape)} into {tuple(wanted)}")
    return total // rest


def squeezed(shape: tuple[int, ...], axis: Any) -> Axes:
    """The axes left after removing those of extent 1: all of them, or those named."""
    if axis is None:
        return tuple(k for k, size in enumerate(shape) if size != 1)
    gone = some_axes(axis, len(shape))
    if any(shape[k] != 1 for k in gone):
        raise ValueError("cannot select an axis to squeeze out which has size not equal to one")
    return tuple(k for k in range(len(shape)) if k not in gone)
