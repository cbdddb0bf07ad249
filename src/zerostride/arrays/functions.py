"""Ops of the table as functions of an array API namespace: its own by name, or made of them.

A composition takes the namespace, and operands in the dtype that it computes in, of shapes that the
namespace broadcasts. It has NumPy's values where the standard leaves them open: integers divided by
zero give 0, shifts beyond the width give what is left, NaN goes where NumPy's goes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

Composition = Callable[..., Any]

#: Ops that the namespace has by the table's name, whose values the standard gives.
NAMED = frozenset(
    {
        *("add", "subtract", "multiply", "divide", "maximum", "minimum", "copysign", "nextafter"),
        *("hypot", "atan2", "logaddexp", "equal", "not_equal", "less", "less_equal", "greater"),
        *("greater_equal", "logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or"),
        *("bitwise_xor", "where", "negative", "positive", "abs", "sign", "sqrt", "square", "exp"),
        *("expm1", "log", "log1p", "log2", "log10", "sin", "cos", "tan", "asin", "acos", "atan"),
        *("sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "floor", "ceil", "round", "trunc"),
        *("isnan", "isinf", "isfinite", "logical_not", "bitwise_invert", "erf"),
    }
)
#: Ops that the standard has for truth values; others compute these as uint8.
OF_BOOLS = frozenset(
    {
        *("equal", "not_equal", "logical_and", "logical_or", "logical_xor", "logical_not", "where"),
        *("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_invert"),
    }
)
#: Ops whose operands are truth values: what is not 0 is true.
LOGICAL = frozenset({"logical_and", "logical_or", "logical_xor", "logical_not"})
COMPARISONS = frozenset({"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"})
#: Ops of the bits of a number, which have to have its own width.
OF_BITS = frozenset({"nextafter", "copysign"})


def is_whole(xp: Any, x: Any) -> bool:
    """Whether its dtype is one of integers."""
    return bool(xp.isdtype(x.dtype, "integral"))


def _unless_zero(function: str) -> Composition:
    """A division: integers by zero give 0."""

    def divided(xp: Any, x: Any, y: Any) -> Any:
        if not is_whole(xp, x):
            return getattr(xp, function)(x, y)
        none = y == 0
        quotient = getattr(xp, function)(x, xp.where(none, xp.ones_like(y), y))
        return xp.where(none, xp.zeros_like(quotient), quotient)

    return divided


_remainder = _unless_zero("remainder")


def _fmod(xp: Any, x: Any, y: Any) -> Any:
    if not is_whole(xp, x):
        return xp.copysign(xp.remainder(xp.abs(x), xp.abs(y)), x)
    rest = _remainder(xp, x, y)
    return xp.where((rest != 0) & ((x < 0) != (y < 0)), rest - y, rest)


def _pow(xp: Any, x: Any, y: Any) -> Any:
    signed = is_whole(xp, x) and not xp.isdtype(x.dtype, "unsigned integer")
    if signed and 0 not in (*x.shape, *y.shape) and xp.any(y < 0):
        raise ValueError("Integers to negative integer powers are not allowed.")
    return xp.pow(x, y)


def _fmax(xp: Any, x: Any, y: Any) -> Any:
    return _without_nan(xp, xp.maximum(x, y), x, y)


def _fmin(xp: Any, x: Any, y: Any) -> Any:
    return _without_nan(xp, xp.minimum(x, y), x, y)


def _without_nan(xp: Any, chosen: Any, x: Any, y: Any) -> Any:
    return xp.where(xp.isnan(x), y, xp.where(xp.isnan(y), x, chosen))


def _heaviside(xp: Any, x: Any, y: Any) -> Any:
    step = xp.astype(x > 0, x.dtype)
    return xp.where(xp.isnan(x), x, xp.where(x == 0, y, step))


def _logaddexp2(xp: Any, x: Any, y: Any) -> Any:
    most = xp.maximum(x, y)
    apart = xp.where(x == y, xp.zeros_like(x), xp.abs(x - y))  # of equal infinities, too
    return most + xp.log1p(xp.exp(apart * -math.log(2))) * (1 / math.log(2))


def _squared_difference(xp: Any, x: Any, y: Any) -> Any:
    difference = x - y
    return difference * difference


def _shift(name: str, rest: Composition) -> Composition:
    """A shift by any count: what is at or beyond the width, or below 0, leaves `rest`."""

    def shifted(xp: Any, x: Any, y: Any) -> Any:
        beyond = (y < 0) | (y >= xp.iinfo(x.dtype).bits)
        moved = getattr(xp, name)(x, xp.where(beyond, xp.zeros_like(y), y))
        return xp.where(beyond, rest(xp, x), moved)

    return shifted


def _clip(xp: Any, x: Any, low: Any, high: Any) -> Any:
    return xp.minimum(xp.maximum(x, low), high)


def _prelu(xp: Any, x: Any, slope: Any) -> Any:
    return xp.where(x < 0, x * slope, x)


def _relu(xp: Any, x: Any) -> Any:
    return xp.where(x <= 0, xp.zeros_like(x), x)


def _sigmoid(xp: Any, x: Any) -> Any:
    small = xp.exp(-xp.abs(x))
    return xp.where(x >= 0, 1 / (1 + small), small / (1 + small))


def _softplus(xp: Any, x: Any) -> Any:
    return xp.log1p(xp.exp(-xp.abs(x))) + xp.maximum(x, xp.zeros_like(x))


def _no_product(xp: Any, x: Any, product: Any) -> Any:
    """x times a factor whose limit at minus infinity is 0: -0 there, not -inf * 0."""
    return xp.where(x == -math.inf, -xp.zeros_like(x), product)


def _mish(xp: Any, x: Any) -> Any:
    # tanh(log(1 + e)) is a quotient of polynomials in e; this one is exact for small e, too.
    e = xp.exp(-xp.abs(x))
    positive = (1 + 2 * e) / (1 + 2 * e + 2 * e * e)
    negative = (e * e + 2 * e) / (e * e + 2 * e + 2)
    return xp.where(x >= 0, x * positive, _no_product(xp, x, x * negative))


def _swish(xp: Any, x: Any, alpha: Any) -> Any:
    factor = _sigmoid(xp, alpha * x)
    return xp.where((factor == 0) & xp.isinf(x), -xp.zeros_like(x), x * factor)


def _gelu(xp: Any, x: Any) -> Any:
    return _no_product(xp, x, x * (0.5 * (1 + xp.erf(x * math.sqrt(0.5)))))


def _gelu_tanh(xp: Any, x: Any) -> Any:
    inner = 2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)
    return _no_product(xp, x, x * _sigmoid(xp, inner))


def _below_zero(xp: Any, x: Any) -> Any:
    return xp.where(x <= 0, x, xp.zeros_like(x))


def _elu(xp: Any, x: Any, alpha: Any) -> Any:
    return xp.where(x <= 0, alpha * xp.expm1(_below_zero(xp, x)), x)


def _celu(xp: Any, x: Any, alpha: Any) -> Any:
    return xp.where(x <= 0, alpha * xp.expm1(_below_zero(xp, x) / alpha), x)


def _unit(xp: Any, x: Any) -> Any:
    """Within 0 and 1; NaN stays."""
    return _clip(xp, x, xp.zeros_like(x), xp.ones_like(x))


def _shrink(xp: Any, x: Any, bias: Any, lambd: Any) -> Any:
    inner = xp.where(x > lambd, x - bias, xp.zeros_like(x))
    return xp.where(x < -lambd, x + bias, inner)


def _softsign(xp: Any, x: Any) -> Any:
    return xp.where(xp.isinf(x), xp.sign(x), x / (1 + xp.abs(x)))


#: What is made of other functions, by the names of the op table.
COMPOSED: Mapping[str, Composition] = MappingProxyType(
    {
        "floor_divide": _unless_zero("floor_divide"),
        "remainder": _remainder,
        "fmod": _fmod,
        "pow": _pow,
        "fmax": _fmax,
        "fmin": _fmin,
        "heaviside": _heaviside,
        "logaddexp2": _logaddexp2,
        "squared_difference": _squared_difference,
        "bitwise_left_shift": _shift("bitwise_left_shift", lambda xp, x: xp.zeros_like(x)),
        "bitwise_right_shift": _shift(
            "bitwise_right_shift",
            lambda xp, x: (
                xp.where(x < 0, -xp.ones_like(x), xp.zeros_like(x))
                if not xp.isdtype(x.dtype, "unsigned integer")
                else xp.zeros_like(x)
            ),
        ),
        "clip": _clip,
        "prelu": _prelu,
        "relu": _relu,
        "rsqrt": lambda xp, x: 1 / xp.sqrt(x),
        "reciprocal": lambda xp, x: 1 / x,
        "sigmoid": _sigmoid,
        "softplus": _softplus,
        "mish": _mish,
        "swish": _swish,
        "gelu": _gelu,
        "gelu_tanh": _gelu_tanh,
        "leaky_relu": lambda xp, x, alpha: xp.where(x < 0, alpha * x, x),
        "thresholded_relu": lambda xp, x, alpha: xp.where(x > alpha, x, xp.zeros_like(x)),
        "elu": _elu,
        "selu": lambda xp, x, alpha, gamma: gamma * _elu(xp, x, alpha),
        "celu": _celu,
        "hard_sigmoid": lambda xp, x, alpha, beta: _unit(xp, alpha * x + beta),
        "hard_swish": lambda xp, x: _no_product(xp, x, x * _unit(xp, x / 6 + 0.5)),
        "shrink": _shrink,
        "softsign": _softsign,
    }
)
#: Functions of the namespace that a composition needs and the standard does not have.
NEEDS: Mapping[str, tuple[str, ...]] = MappingProxyType({"gelu": ("erf",)})


def saturated(xp: Any, x: Any, dtype: Any) -> Any:
    """Floats as integers: without their fraction, at the ends of the range beyond it, 0 for NaN."""
    info = xp.iinfo(dtype)
    x = xp.trunc(xp.where(xp.isnan(x), xp.zeros_like(x), x))
    # Powers of two, which every float holds; the largest integers are none.
    above, below = x >= math.ldexp(1.0, info.bits - (info.min < 0)), x < float(info.min)
    inside = xp.astype(xp.where(above | below, xp.zeros_like(x), x), dtype)
    most, least = xp.full_like(inside, info.max), xp.full_like(inside, info.min)
    return xp.where(above, most, xp.where(below, least, inside))
