"""Ops of the table that libraries lack, or compute with other values, in common functions.

A function here takes arrays of one dtype and one rank from a namespace `xp` (PyTorch's, JAX's) and
gives zerostride's values. The argument of a branch that is not taken is replaced by one with a
finite derivative, so that the library's own gradients are right: NaN times 0 is NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Protocol

Array = Any

_TWICE = 2 * math.sqrt(2 / math.pi)
_CUBIC = 0.044715


class Namespace(Protocol):
    """The functions that the formulas use, and those that libraries name differently."""

    def zeros_like(self, x: Array, /) -> Array:
        """Zeros of an array's shape and dtype."""
        ...

    def cast_like(self, x: Array, like: Array, /) -> Array:
        """An array in another's dtype."""
        ...

    def is_real_float(self, x: Array, /) -> bool:
        """Whether an array is of real floats."""
        ...

    def is_signed(self, x: Array, /) -> bool:
        """Whether an array is of signed integers."""
        ...

    def bits(self, x: Array, /) -> int:
        """The width of an array's dtype."""
        ...

    def __getattr__(self, name: str, /) -> Callable[..., Array]: ...


class Renamed:
    """A library's functions; a subclass defines those that the library names differently."""

    def __init__(self, module: Any) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Callable[..., Any]:
        function: Callable[..., Any] = getattr(self._module, name)
        return function

    def bits(self, x: Array) -> int:
        """The width of an array's dtype."""
        return 8 * int(x.dtype.itemsize)


def formulas(xp: Namespace) -> Mapping[str, Callable[..., Array]]:
    """For each op that has a formula, its function."""
    return {**_arithmetic(xp), **_shifts(xp), **_smooth(xp), **_pieces(xp)}


def _arithmetic(xp: Namespace) -> Mapping[str, Callable[..., Array]]:
    where = xp.where

    def divided(whole: Callable[..., Array], at_zero: Callable[..., Array], minus: bool) -> Any:
        """Integer division: by 0 gives 0; by -1 negates (remainder 0), also the smallest one."""

        def divide(a: Array, b: Array) -> Array:
            if xp.is_real_float(a):
                return at_zero(a, b)
            nothing = xp.zeros_like(a)
            unsafe = b == 0
            if xp.is_signed(a):
                unsafe = unsafe | (b == -1)
            result = whole(a, where(unsafe, xp.cast_like(nothing + 1, b), b))
            if minus and xp.is_signed(a):
                result = where(b == -1, -a, result)
            return where(b == 0 if minus else unsafe, nothing, result)

        return divide

    def remainder(a: Array, b: Array) -> Array:
        result = xp.remainder(a, b)
        return where(result == 0, xp.copysign(result, b), result)

    def sign(x: Array) -> Array:
        return where(x != x, x, xp.sign(x)) if xp.is_real_float(x) else xp.sign(x)

    def heaviside(a: Array, b: Array) -> Array:
        return where(a != a, a, where(a == 0, b, xp.cast_like(a > 0, b)))

    def squared_difference(a: Array, b: Array) -> Array:
        return (a - b) * (a - b)

    return {
        "floor_divide": divided(xp.floor_divide, xp.floor_divide, True),
        "remainder": divided(xp.remainder, remainder, False),
        "fmod": divided(xp.fmod, xp.fmod, False),
        "sign": sign,
        "heaviside": heaviside,
        "squared_difference": squared_difference,
        "square": lambda x: x * x,
    }


def _shifts(xp: Namespace) -> Mapping[str, Callable[..., Array]]:
    where = xp.where

    def left(a: Array, b: Array) -> Array:
        nothing = xp.zeros_like(a)
        inside = (b >= 0) & (b < xp.bits(a))
        return where(inside, xp.left_shift(a, where(inside, b, xp.zeros_like(b))), nothing)

    def right(a: Array, b: Array) -> Array:
        inside = (b >= 0) & (b < xp.bits(a))
        shifted = xp.right_shift(a, where(inside, b, xp.zeros_like(b)))
        nothing = xp.zeros_like(a)
        return where(inside, shifted, where(a < 0, nothing - 1, nothing))

    return {"bitwise_left_shift": left, "bitwise_right_shift": right}


def _smooth(xp: Namespace) -> Mapping[str, Callable[..., Array]]:
    where = xp.where

    def times(x: Array, factor: Array) -> Array:
        """x times a factor that is 0 at minus infinity."""
        far = x == -math.inf
        return where(far, -xp.zeros_like(x), where(far, xp.zeros_like(x), x) * factor)

    def softplus(x: Array) -> Array:
        return xp.logaddexp(x, xp.zeros_like(x))

    def swish(x: Array, alpha: Array) -> Array:
        factor = xp.sigmoid(alpha * x)
        gone = (factor == 0) & (abs(x) == math.inf)
        return where(gone, -xp.zeros_like(x), where(gone, xp.zeros_like(x), x) * factor)

    def gelu(x: Array) -> Array:
        return times(x, xp.erfc(x * -math.sqrt(0.5)) / 2)

    def gelu_tanh(x: Array) -> Array:
        return times(x, xp.sigmoid(_TWICE * (x + _CUBIC * x * x * x)))

    def softsign(x: Array) -> Array:
        far = abs(x) == math.inf
        near = where(far, xp.zeros_like(x), x)
        return where(far, xp.sign(x), near / (1 + abs(near)))

    return {
        "softplus": softplus,
        "swish": swish,
        "gelu": gelu,
        "gelu_tanh": gelu_tanh,
        "softsign": softsign,
        "mish": lambda x: times(x, xp.tanh(softplus(x))),
        "rsqrt": lambda x: 1 / xp.sqrt(x),
        "reciprocal": lambda x: 1 / x,
    }


def _pieces(xp: Namespace) -> Mapping[str, Callable[..., Array]]:
    where = xp.where

    def below(x: Array) -> Array:
        """x where it is not above 0, else 0; NaN gives 0 here, the other branch keeps it."""
        return where(x <= 0, x, xp.zeros_like(x))

    def elu(x: Array, alpha: Array) -> Array:
        return where(x <= 0, alpha * xp.expm1(below(x)), x)

    def within(x: Array) -> Array:
        return xp.minimum(xp.maximum(x, xp.zeros_like(x)), xp.zeros_like(x) + 1)

    def hard_swish(x: Array) -> Array:
        far = x == -math.inf
        near = where(far, xp.zeros_like(x), x)
        return where(far, -xp.zeros_like(x), near * within(near / 6 + 0.5))

    def shrink(x: Array, bias: Array, lambd: Array) -> Array:
        return where(x < -lambd, x + bias, where(x > lambd, x - bias, xp.zeros_like(x)))

    return {
        "relu": lambda x: where(x <= 0, xp.zeros_like(x), x),
        "prelu": lambda x, slope: where(x < 0, x * slope, x),
        "leaky_relu": lambda x, alpha: where(x < 0, alpha * x, x),
        "thresholded_relu": lambda x, alpha: where(x > alpha, x, xp.zeros_like(x)),
        "elu": elu,
        "selu": lambda x, alpha, gamma: gamma * elu(x, alpha),
        "celu": lambda x, alpha: where(x <= 0, alpha * xp.expm1(below(x) / alpha), x),
        "hard_sigmoid": lambda x, alpha, beta: within(alpha * x + beta),
        "hard_swish": hard_swish,
        "shrink": shrink,
    }
