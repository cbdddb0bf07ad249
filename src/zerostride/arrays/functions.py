"""Ops of the table as functions of an array API namespace: its own by name, or compositions.

A composition takes operands in the dtype in which it computes, of shapes that the namespace
broadcasts. Where the standard leaves values open, it gives NumPy's: integers divided by zero give
0, shifts beyond the width shift all bits out, NaN propagates as in NumPy. Most are `formulas`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from .formulas import formulas

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
#: Ops that the standard defines for truth values; others compute truth values as uint8.
OF_BOOLS = frozenset(
    {
        *("equal", "not_equal", "logical_and", "logical_or", "logical_xor", "logical_not", "where"),
        *("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_invert"),
    }
)
#: Ops whose operands are truth values: numbers other than 0 are true.
LOGICAL = frozenset({"logical_and", "logical_or", "logical_xor", "logical_not"})
COMPARISONS = frozenset({"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"})
#: Ops of a number's bits, which need its own width.
OF_BITS = frozenset({"nextafter", "copysign"})


class _Standard:
    """A namespace with the names that the formulas use, and with ops that no namespace has."""

    def __init__(self, xp: Any, own: Mapping[str, Composition]) -> None:
        self._xp, self._own = xp, own

    def __getattr__(self, name: str) -> Composition:
        function: Composition = self._own[name] if name in self._own else getattr(self._xp, name)
        return function

    # Functions that formulas need.

    def cast_like(self, x: Any, like: Any) -> Any:
        return self._xp.astype(x, like.dtype)

    def is_real_float(self, x: Any) -> bool:
        return bool(self._xp.isdtype(x.dtype, "real floating"))

    def is_signed(self, x: Any) -> bool:
        return bool(self._xp.isdtype(x.dtype, "signed integer"))

    def bits(self, x: Any) -> int:
        return int(self._xp.iinfo(x.dtype).bits)

    def left_shift(self, a: Any, b: Any) -> Any:
        return self.bitwise_left_shift(a, b)

    def right_shift(self, a: Any, b: Any) -> Any:
        return self.bitwise_right_shift(a, b)

    def fmod(self, a: Any, b: Any) -> Any:
        if not self._xp.isdtype(a.dtype, "integral"):
            return self.copysign(self.remainder(abs(a), abs(b)), a)
        rest = self.remainder(a, b)
        return self.where((rest != 0) & ((a < 0) != (b < 0)), rest - b, rest)

    # Ops without a formula, and ops whose formula needs functions that the standard lacks.

    def pow(self, a: Any, b: Any) -> Any:
        if self.is_signed(a) and 0 not in (*a.shape, *b.shape) and self.any(b < 0):
            raise ValueError("Integers to negative integer powers are not allowed.")
        return self._xp.pow(a, b)

    def fmax(self, a: Any, b: Any) -> Any:
        return self._without_nan(self.maximum(a, b), a, b)

    def fmin(self, a: Any, b: Any) -> Any:
        return self._without_nan(self.minimum(a, b), a, b)

    def _without_nan(self, chosen: Any, a: Any, b: Any) -> Any:
        return self.where(self.isnan(a), b, self.where(self.isnan(b), a, chosen))

    def logaddexp2(self, a: Any, b: Any) -> Any:
        most = self.maximum(a, b)
        apart = self.where(a == b, self.zeros_like(a), abs(a - b))  # 0 also for equal infinities
        return most + self.log1p(self.exp(apart * -math.log(2))) * (1 / math.log(2))

    def clip(self, x: Any, low: Any, high: Any) -> Any:
        return self.minimum(self.maximum(x, low), high)

    def sigmoid(self, x: Any) -> Any:
        small = self.exp(-abs(x))
        return self.where(x >= 0, 1 / (1 + small), small / (1 + small))

    def softplus(self, x: Any) -> Any:
        return self.log1p(self.exp(-abs(x))) + self.maximum(x, self.zeros_like(x))

    def mish(self, x: Any) -> Any:
        # tanh(log(1 + e)) is a quotient of polynomials in e; this one is also exact for small e.
        e = self.exp(-abs(x))
        positive = (1 + 2 * e) / (1 + 2 * e + 2 * e * e)
        negative = (e * e + 2 * e) / (e * e + 2 * e + 2)
        return self.where(x >= 0, x * positive, self._limited(x, x * negative))

    def gelu(self, x: Any) -> Any:
        return self._limited(x, x * (0.5 * (1 + self.erf(x * math.sqrt(0.5)))))

    def _limited(self, x: Any, product: Any) -> Any:
        """x times a factor whose limit at minus infinity is 0: -0 there, not -inf * 0."""
        return self.where(x == -math.inf, -self.zeros_like(x), product)


_OWN = ("pow", "fmax", "fmin", "logaddexp2", "clip", "sigmoid", "softplus", "mish", "gelu")


def compositions(
    xp: Any, own: Mapping[str, Composition] = MappingProxyType({})
) -> Mapping[str, Composition]:
    """The ops composed of other functions, by the names of the op table.

    Args:
        xp: an array API namespace.
        own: functions of the library for ops that the namespace lacks, or computes differently.
    """
    standard = _Standard(xp, own)
    return {
        **{name: formula for name, formula in formulas(standard).items() if name not in NAMED},
        **{name: getattr(standard, name) for name in _OWN},
    }


#: Functions of the namespace that a composition needs and the standard lacks.
NEEDS: Mapping[str, tuple[str, ...]] = MappingProxyType({"gelu": ("erf",)})


def saturated(xp: Any, x: Any, dtype: Any) -> Any:
    """Floats as integers: truncated and saturated, 0 for NaN."""
    info = xp.iinfo(dtype)
    x = xp.trunc(xp.where(xp.isnan(x), xp.zeros_like(x), x))
    # Limits are powers of two, which every float holds; the largest integers are not.
    above, below = x >= math.ldexp(1.0, info.bits - (info.min < 0)), x < float(info.min)
    inside = xp.astype(xp.where(above | below, xp.zeros_like(x), x), dtype)
    most, least = xp.full_like(inside, info.max), xp.full_like(inside, info.min)
    return xp.where(above, most, xp.where(below, least, inside))
