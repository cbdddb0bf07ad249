"""Formulas of ops in common functions, for libraries that lack an op or give it other values.

A formula takes a namespace `xp` (PyTorch's, JAX's, NumPy's, the array API's) and the op's
operands, arrays of one dtype and one rank, and gives zerostride's values. The argument of a branch
that is not taken is replaced by one with a finite derivative, so that the library's own gradients
are right: NaN times 0 is NaN.
"""

# ruff: noqa: D103 - the rows say what they compute

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol

Array = Any

#: Factors in gelu's approximation: sigmoid(GELU_TWICE * (x + GELU_CUBIC x**3)).
GELU_TWICE, GELU_CUBIC = 2 * math.sqrt(2 / math.pi), 0.044715


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


# Arithmetic


def _whole_division(
    xp: Namespace, whole: Callable[..., Array], a: Array, b: Array, *, quotient: bool
) -> Array:
    """Integer division: by 0 gives 0; by -1 negates (remainder 0), also the smallest one."""
    nothing = xp.zeros_like(a)
    unsafe = b == 0
    if xp.is_signed(a):
        unsafe = unsafe | (b == -1)
    result = whole(a, xp.where(unsafe, xp.cast_like(nothing + 1, b), b))
    if quotient and xp.is_signed(a):
        result = xp.where(b == -1, -a, result)
    return xp.where(b == 0 if quotient else unsafe, nothing, result)


def floor_divide(xp: Namespace, a: Array, b: Array) -> Array:
    if xp.is_real_float(a):
        return xp.floor_divide(a, b)
    return _whole_division(xp, xp.floor_divide, a, b, quotient=True)


def remainder(xp: Namespace, a: Array, b: Array) -> Array:
    if xp.is_real_float(a):
        result = xp.remainder(a, b)
        return xp.where(result == 0, xp.copysign(result, b), result)
    return _whole_division(xp, xp.remainder, a, b, quotient=False)


def fmod(xp: Namespace, a: Array, b: Array) -> Array:
    if xp.is_real_float(a):
        return xp.fmod(a, b)
    return _whole_division(xp, xp.fmod, a, b, quotient=False)


def sign(xp: Namespace, x: Array) -> Array:
    return xp.where(x != x, x, xp.sign(x)) if xp.is_real_float(x) else xp.sign(x)


def heaviside(xp: Namespace, a: Array, b: Array) -> Array:
    return xp.where(a != a, a, xp.where(a == 0, b, xp.cast_like(a > 0, b)))


def squared_difference(xp: Namespace, a: Array, b: Array) -> Array:
    return (a - b) * (a - b)


def square(xp: Namespace, x: Array) -> Array:
    return x * x


def rsqrt(xp: Namespace, x: Array) -> Array:
    return 1 / xp.sqrt(x)


def reciprocal(xp: Namespace, x: Array) -> Array:
    return 1 / x


# Shifts


def bitwise_left_shift(xp: Namespace, a: Array, b: Array) -> Array:
    inside = (b >= 0) & (b < xp.bits(a))
    shifted = xp.left_shift(a, xp.where(inside, b, xp.zeros_like(b)))
    return xp.where(inside, shifted, xp.zeros_like(a))


def bitwise_right_shift(xp: Namespace, a: Array, b: Array) -> Array:
    inside = (b >= 0) & (b < xp.bits(a))
    shifted = xp.right_shift(a, xp.where(inside, b, xp.zeros_like(b)))
    nothing = xp.zeros_like(a)
    return xp.where(inside, shifted, xp.where(a < 0, nothing - 1, nothing))


# Smooth activations


def _times(xp: Namespace, x: Array, factor: Array) -> Array:
    """x times a factor that is 0 at minus infinity."""
    far = x == -math.inf
    return xp.where(far, -xp.zeros_like(x), xp.where(far, xp.zeros_like(x), x) * factor)


def softplus(xp: Namespace, x: Array) -> Array:
    return xp.logaddexp(x, xp.zeros_like(x))


def swish(xp: Namespace, x: Array, alpha: Array) -> Array:
    factor = xp.sigmoid(alpha * x)
    gone = (factor == 0) & (abs(x) == math.inf)
    return xp.where(gone, -xp.zeros_like(x), xp.where(gone, xp.zeros_like(x), x) * factor)


def gelu(xp: Namespace, x: Array) -> Array:
    return _times(xp, x, xp.erfc(x * -math.sqrt(0.5)) / 2)


def gelu_tanh(xp: Namespace, x: Array) -> Array:
    return _times(xp, x, xp.sigmoid(GELU_TWICE * (x + GELU_CUBIC * x * x * x)))


def softsign(xp: Namespace, x: Array) -> Array:
    far = abs(x) == math.inf
    near = xp.where(far, xp.zeros_like(x), x)
    return xp.where(far, xp.sign(x), near / (1 + abs(near)))


def mish(xp: Namespace, x: Array) -> Array:
    return _times(xp, x, xp.tanh(softplus(xp, x)))


# Activations by pieces


def _below(xp: Namespace, x: Array) -> Array:
    """x where it is not above 0, else 0; NaN gives 0 here, the other branch keeps it."""
    return xp.where(x <= 0, x, xp.zeros_like(x))


def _within(xp: Namespace, x: Array) -> Array:
    """x within 0 and 1."""
    return xp.minimum(xp.maximum(x, xp.zeros_like(x)), xp.zeros_like(x) + 1)


def relu(xp: Namespace, x: Array) -> Array:
    return xp.where(x <= 0, xp.zeros_like(x), x)


def prelu(xp: Namespace, x: Array, slope: Array) -> Array:
    return xp.where(x < 0, x * slope, x)


def leaky_relu(xp: Namespace, x: Array, alpha: Array) -> Array:
    return xp.where(x < 0, alpha * x, x)


def thresholded_relu(xp: Namespace, x: Array, alpha: Array) -> Array:
    return xp.where(x > alpha, x, xp.zeros_like(x))


def elu(xp: Namespace, x: Array, alpha: Array) -> Array:
    return xp.where(x <= 0, alpha * xp.expm1(_below(xp, x)), x)


def selu(xp: Namespace, x: Array, alpha: Array, gamma: Array) -> Array:
    return gamma * elu(xp, x, alpha)


def celu(xp: Namespace, x: Array, alpha: Array) -> Array:
    return xp.where(x <= 0, alpha * xp.expm1(_below(xp, x) / alpha), x)


def hard_sigmoid(xp: Namespace, x: Array, alpha: Array, beta: Array) -> Array:
    return _within(xp, alpha * x + beta)


def hard_swish(xp: Namespace, x: Array) -> Array:
    far = x == -math.inf
    near = xp.where(far, xp.zeros_like(x), x)
    return xp.where(far, -xp.zeros_like(x), near * _within(xp, near / 6 + 0.5))


def shrink(xp: Namespace, x: Array, bias: Array, lambd: Array) -> Array:
    return xp.where(x < -lambd, x + bias, xp.where(x > lambd, x - bias, xp.zeros_like(x)))
