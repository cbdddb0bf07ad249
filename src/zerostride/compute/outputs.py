"""Checks of `out=`: whether an array can hold a result, and the error where it cannot.

Every call that writes into its caller's array uses these checks, calls with other libraries' arrays
too. So the messages are the same everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.plan import Plan
from ..errors import BroadcastError, Reason
from .foreign import has_own_arithmetic

#: The most candidates that NumPy tries to decide whether irregular strides overlap. Arrays of a
#: dozen axes take some hundreds.
_MOST_WORK = 100_000


def as_target(
    out: Any, shape: tuple[int, ...], plan: Plan | None = None, name: str = "out"
) -> NDArray[Any] | None:
    """`out` as the array to write to, or None; an array that cannot hold the result is refused.

    Args:
        out: an array, or a tuple of one.
        shape: the result's.
        plan: the result's plan, for messages.
        name: what the caller wrote where there are several outputs: "out[1]".

    Raises:
        BroadcastError: it has another shape.
        TypeError: it is not an array, or is a masked one.
        ValueError: it is read-only, or its elements share memory.
    """
    if isinstance(out, tuple):
        if len(out) != 1:
            raise TypeError(f"{name} is an array or a tuple of one, not of {len(out)}")
        (out,) = out
    if out is None:
        return None
    if not isinstance(out, np.ndarray):
        raise TypeError(f"{name} is an array, not {type(out).__name__}")
    if isinstance(out, np.ma.MaskedArray):
        raise TypeError(f"{name} is a masked array, whose mask would stay as it is; pass its data")
    if has_own_arithmetic(out):
        raise TypeError(
            f"{name} is a {type(out).__name__}, whose arithmetic is its own; pass np.asarray(out)"
        )
    check_shape(out.shape, shape, plan, name)
    if not out.flags.writeable:
        raise ValueError(f"{name} is read-only; give a new array, or a copy of it")
    if not out.flags.forc:
        check_places(out.shape, out.strides, out.itemsize, name)
    return out


def check_shape(
    shape: tuple[int, ...], result: tuple[int, ...], plan: Plan | None = None, name: str = "out"
) -> None:
    """Refuses an `out` to whose shape the result does not broadcast.

    Args:
        shape: the shape of `out`.
        result: the result's. As for NumPy's ufuncs, it may be broadcast into a larger `out`.
        plan: the result's plan, for the message.
        name: what the caller wrote where there are several outputs.

    >>> check_shape((5, 2, 3), (2, 3))
    >>> try:
    ...     check_shape((2, 4), (2, 3))
    ... except BroadcastError as error:
    ...     print(error)
    out does not fit the result
      out has shape (2, 4); the result has (2, 3), which is 3 along axis 1, where out has 4
      fix: give an out of shape (2, 3)
    """
    if shape == result:
        return
    lead = len(shape) - len(result)
    for axis, size in enumerate(result):
        if lead + axis >= 0 and size in (1, shape[lead + axis]):
            continue
        here = f"{shape[lead + axis]}" if lead + axis >= 0 else "none"
        raise BroadcastError(
            f"{name} has shape {shape}; the result has {result}, which is {size} along axis "
            f"{axis}, where {name} has {here}",
            reason=Reason.EXTENT_MISMATCH,
            rule=plan.rule if plan is not None else "",
            shapes=plan.operands if plan is not None else (),
            axis=axis,
            names=("data",) if plan is not None and len(plan.operands) == 1 else (),
            headline=f"{name} does not fit the result",
            hint=f"give an out of shape {result}",
        )


def check_places(
    shape: Sequence[int], strides: Sequence[int], itemsize: int, name: str = "out"
) -> None:
    """Refuses an `out` two of whose elements share memory.

    Args:
        shape: its shape.
        strides: in bytes.
        itemsize: bytes of an element.
        name: what the caller wrote where there are several outputs.

    >>> try:
    ...     check_places((3, 4), (8, 0), 8)
    ... except ValueError as error:
    ...     for part in str(error).split(": "):
    ...         print(part)
    out lies on itself
    its 4 elements along axis 1 are 0 bytes apart and share memory; a result has a value for each
    give a new array, or a copy (out.copy(), of a tensor out.clone())
    """
    axis = _shared_axis(shape, strides, itemsize)
    if axis is not None:
        raise ValueError(
            f"{name} lies on itself: its {shape[axis]} elements along axis {axis} are "
            f"{abs(strides[axis])} bytes apart and share memory; a result has a value for each: "
            f"give a new array, or a copy ({name}.copy(), of a tensor {name}.clone())"
        )


def _shared_axis(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> int | None:
    """The first axis along which elements share memory, or None."""
    if 0 in shape:
        return None
    steps = sorted((abs(s), n) for s, n in zip(strides, shape, strict=True) if n > 1)
    reach = itemsize  # bytes, from the first to the last of the axes before
    for step, size in steps:
        if step < reach:
            break
        reach += step * (size - 1)
    else:
        return None  # each axis steps over everything inside it
    for axis, (step, size) in enumerate(zip(strides, shape, strict=True)):
        if step == 0 and size > 1:
            return axis
    # Two elements that share memory differ along a first axis. Offsets depend on index differences
    # only, so it suffices to compare index 0 of that axis with the rest, the axes before it at 0.
    memory = np.zeros((), f"V{itemsize}")
    whole = np.lib.stride_tricks.as_strided(memory, tuple(shape), tuple(strides), writeable=False)
    work: Any = _MOST_WORK  # an integer; NumPy's stubs allow only two values
    for axis in range(len(shape)):
        before = (slice(1),) * axis
        first, rest = whole[*before, :1], whole[*before, 1:]
        try:
            if np.shares_memory(first, rest, max_work=work):
                return axis
        except np.exceptions.TooHardError:
            return None  # NumPy cannot decide
    return None


__all__ = ["as_target", "check_places", "check_shape"]
