"""Functions of two 64-bit floats in plain Python, by the op table's names.

Infinity and NaN are results, as in NumPy, where Python's own operators raise. The last digit of
`pow`, `hypot`, `atan2` and the logarithms is the C library's. Ops of integers alone (those of bits)
and ops without a NumPy function of the name have no row.
"""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable, Mapping
from types import MappingProxyType

Function = Callable[[float, float], float]


def _divide(x: float, y: float) -> float:
    if y:
        return x / y
    if not x or math.isnan(x) or math.isnan(y):
        return math.nan
    return math.copysign(math.inf, x) * math.copysign(1.0, y)


def _floor_divide(x: float, y: float) -> float:
    if not y:
        return _divide(x, y)
    return math.nan if math.isinf(x) else x // y


def _remainder(x: float, y: float) -> float:
    return x % y if y and not math.isinf(x) else math.nan


def _fmod(x: float, y: float) -> float:
    return math.fmod(x, y) if y and not math.isinf(x) else math.nan


def _pow(x: float, y: float) -> float:
    odd = y % 2 == 1 if math.isfinite(y) else False
    try:
        return math.pow(x, y)
    except OverflowError:
        return -math.inf if x < 0 and odd else math.inf
    except ValueError:
        if x:
            return math.nan  # a fractional power of a number below 0
        return math.copysign(math.inf, x) if odd else math.inf


def _maximum(x: float, y: float) -> float:
    return x if x >= y or math.isnan(x) else y


def _minimum(x: float, y: float) -> float:
    return x if x <= y or math.isnan(x) else y


def _fmax(x: float, y: float) -> float:
    return x if x >= y or math.isnan(y) else y


def _fmin(x: float, y: float) -> float:
    return x if x <= y or math.isnan(y) else y


def _heaviside(x: float, y: float) -> float:
    if math.isnan(x):
        return x
    return y if not x else float(x > 0)


def _logaddexp(x: float, y: float) -> float:
    if x == y:  # infinities of one sign, too
        return x + math.log(2)
    if math.isnan(x) or math.isnan(y):
        return math.nan
    return max(x, y) + math.log1p(math.exp(-abs(x - y)))


def _logaddexp2(x: float, y: float) -> float:
    if x == y:
        return x + 1
    if math.isnan(x) or math.isnan(y):
        return math.nan
    return max(x, y) + math.log1p(2.0 ** -abs(x - y)) / math.log(2)


FLOATS: Mapping[str, Function] = MappingProxyType(
    {
        "add": operator.add,
        "subtract": operator.sub,
        "multiply": operator.mul,
        "divide": _divide,
        "floor_divide": _floor_divide,
        "remainder": _remainder,
        "fmod": _fmod,
        "pow": _pow,
        "maximum": _maximum,
        "minimum": _minimum,
        "fmax": _fmax,
        "fmin": _fmin,
        "heaviside": _heaviside,
        "copysign": math.copysign,
        "nextafter": math.nextafter,
        "hypot": math.hypot,
        "atan2": math.atan2,
        "logaddexp": _logaddexp,
        "logaddexp2": _logaddexp2,
        "equal": operator.eq,
        "not_equal": operator.ne,
        "less": operator.lt,
        "less_equal": operator.le,
        "greater": operator.gt,
        "greater_equal": operator.ge,
        "logical_and": lambda x, y: bool(x) and bool(y),
        "logical_or": lambda x, y: bool(x) or bool(y),
        "logical_xor": lambda x, y: bool(x) != bool(y),
    }
)


def in_single(number: float) -> float:
    """A number rounded to 32 bits, as a float; infinity beyond their range.

    >>> in_single(0.1), in_single(1e39)
    (0.10000000149011612, inf)
    """
    try:
        return float(struct.unpack("<f", struct.pack("<f", number))[0])
    except OverflowError:
        return math.copysign(math.inf, number)
