"""Intervals of values: the results of `bounds` for each node of a graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Mask = NDArray[np.bool_]

#: Dtypes of nodes whose values are known to a few units in the last place.
FLOATS = frozenset({"float16", "bfloat16", "float32", "float64"})


@dataclass(frozen=True, slots=True)
class Bounds:
    """A node's values.

    Attributes:
        value: the reference's, as it holds them.
        low: the least that is right; `value` itself where it is exact.
        high: the largest.
        open: where anything is right, or None.
    """

    value: Any
    low: Any
    high: Any
    open: Mask | None = None

    @property
    def exact(self) -> bool:
        """Whether every element is known to the bit."""
        return self.low is self.value and self.high is self.value and self.open is None


def exactly(value: Any) -> Bounds:
    """A value that is known to the bit."""
    return Bounds(value, value, value)


def tidy(bounds: Bounds) -> Bounds:
    """As exact as it is: intervals of one value are dropped, open truth values are intervals."""
    if bounds.exact:
        return bounds
    low, high, opened = bounds.low, bounds.high, bounds.open
    if bounds.value.dtype.kind == "c":  # they have no order
        apart = ~alike(low, high) if opened is None else ~alike(low, high) | opened
        return Bounds(bounds.value, bounds.value, bounds.value, apart if apart.any() else None)
    if opened is not None and not opened.any():
        opened = None
    if opened is not None and bounds.value.dtype == np.bool_:
        low, high, opened = low & ~opened, high | opened, None
    if alike(low, bounds.value).all() and alike(high, bounds.value).all():
        low = high = bounds.value
    return Bounds(bounds.value, low, high, opened)


def alike(one: Array, other: Array) -> Mask:
    """Equal to the bit, but for those of NaN."""
    same = np.asarray(one == other)
    if one.dtype.kind not in "biuO":
        if one.dtype.kind != "c":
            same = same & (np.signbit(one) == np.signbit(other))
        same = same | np.asarray((one != one) & (other != other))
    return same


def straddles(given: Bounds) -> Mask:
    """Marks the intervals with 0 inside."""
    return np.asarray((given.low < 0) & (given.high > 0) | both_zeros(given))


def both_zeros(given: Bounds) -> Mask:
    """Marks the intervals that are 0 of an unknown sign."""
    if given.low.dtype.kind != "f":
        return np.zeros(given.low.shape, np.bool_)
    zero = (given.low == 0) & (given.high == 0)
    return np.asarray(zero & (np.signbit(given.low) != np.signbit(given.high)))


def is_float(array: Any) -> bool:
    """Whether values are floats that the engine has."""
    return bool(array.dtype.kind == "f" and array.dtype.itemsize <= 8)


def moved(low: Array, high: Array, by: Any, above: Any = None) -> tuple[Array, Array]:
    """An interval wider by so much on both sides (or else `above`), in the dtype that it has."""
    wide: Any = np.longdouble if low.dtype.itemsize == 8 else np.float64
    down: Any = np.asarray(by, wide)
    up: Any = np.asarray(by if above is None else above, wide)
    least = np.where(np.isfinite(low), low.astype(wide) - down, low).astype(low.dtype)
    most = np.where(np.isfinite(high), high.astype(wide) + up, high).astype(high.dtype)
    return least, most


def spacing(array: Array) -> Array:
    """Units in the last place; of infinity and NaN 0."""
    drawn: Array = np.spacing(np.where(np.isfinite(array), np.abs(array), 0))
    return np.where(np.isfinite(array), drawn, 0)


def lower(one: Array, other: Array, *, highest: bool = False) -> Array:
    """The lower (or higher) of two, -0 below 0; NaN gives way."""
    if one.dtype.kind == "b":
        return one | other if highest else one & other
    if one.dtype.kind != "f":
        return np.maximum(one, other) if highest else np.minimum(one, other)
    taken: Mask = (other > one if highest else other < one) | (one != one)
    zeros = (one == 0) & (other == 0)
    taken |= zeros & (np.signbit(one) if highest else np.signbit(other))
    return np.where(taken, other, one)
