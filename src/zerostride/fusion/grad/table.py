"""The derivatives of the op table's ops: how a result's cotangent becomes its arguments'.

A rule is a function of (g, y, *arguments): the cotangent of the result, the result, and all of the
op's arguments in the order of the table. It returns the cotangent of one argument in the result's
shape, before sums over stretched axes. It uses operators and zerostride's functions, as a user
would, so that it can compute arrays and can be traced.

Where a function has no derivative, the answer is PyTorch's, if PyTorch has the function:

=================================  ================================================================
`maximum`, `minimum` of equals     half to each
`fmax`, `fmin` of equals           all to the first; all to the other one where one is NaN
`abs` at 0, `copysign` of 0        0
`relu` at 0, `thresholded_relu`    0
`leaky_relu`, `prelu` at 0         that of the negative side; `elu`, `selu`, `celu`, too
`clip` at a limit                  to x; beyond it to the limit; to `high` where that is below `low`
`hard_sigmoid` at its corners      0
`hard_swish` at -3 and 3           0 and 1
`shrink` at its corners            0
`pow` of 0, by its exponent        0 if that is not negative
`atan2`, `hypot` at the origin     0; NaN
`sqrt` of a sum of squares of 0    0, as of PyTorch's norm and standard deviation
`min`, `max` of a NaN              NaN
=================================  ================================================================

Not PyTorch's: `heaviside` passes the cotangent to its second argument where that is the result
(PyTorch has no gradient of it).

`STEPS` are constant between their jumps: their derivative is 0. None in place of a rule also means
0. Results that are truth values or integers have no cotangent. So comparisons, `logical_*`,
`bitwise_*`, `isnan` and the like, `any`, `all`, `argmin` and `argmax` have no rule. The rules of
`cast` and of the reductions are in `vjp`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from ...compute.functions import (
    equal,
    floor_divide,
    greater,
    greater_equal,
    hypot,
    less,
    less_equal,
    logical_and,
    logical_or,
    pow,
    where,
)
from ...compute.unary import abs as absolute
from ...compute.unary import (
    cos,
    cosh,
    elu,
    exp,
    expm1,
    isnan,
    log,
    round,
    sigmoid,
    sign,
    sin,
    sinh,
    softplus,
    sqrt,
    square,
    tanh,
)
from ...ops.formulas import GELU_CUBIC, GELU_TWICE

#: Gives the cotangent of one argument from (g, y, *arguments); None is 0, as rule or as cotangent.
Rule = Callable[..., Any] | None

_LN2, _LN10 = math.log(2.0), math.log(10.0)
_TWO_OVER_ROOT_PI = 2 / math.sqrt(math.pi)
_ONE_OVER_ROOT_2PI = 1 / math.sqrt(2 * math.pi)


def _pow_by_base(g: Any, y: Any, a: Any, b: Any) -> Any:
    if isinstance(b, np.generic):  # a number: exponents that need no pow
        if b in (0, 1):
            return g if b else None
        if b in (2, 3):
            return g * (2 * a if b == 2 else 3 * square(a))
        less_by_1: Any = np.subtract(b, 1)
        return g * (b * pow(a, less_by_1))
    return where(equal(b, 0), 0, g * (b * pow(a, b - 1)))


def _pow_by_exponent(g: Any, y: Any, a: Any, b: Any) -> Any:
    if isinstance(a, np.generic) and np.greater(a, 0):
        return g * (y * log(a))
    nothing = logical_and(equal(a, 0), greater_equal(b, 0))
    return where(nothing, 0, g * (y * log(a)))


def _to_larger(g: Any, a: Any, b: Any) -> Any:
    """The cotangent of `a` in maximum(a, b); a NaN in either operand passes it to both."""
    return where(equal(a, b), g * 0.5, where(less(a, b), 0, g))


def _first_of_fmax(a: Any, b: Any) -> Any:
    return logical_or(greater_equal(a, b), isnan(b))


def _first_of_fmin(a: Any, b: Any) -> Any:
    return logical_or(less_equal(a, b), isnan(b))


def _angle(g: Any, a: Any, b: Any) -> Any:
    """g b / (a a + b b), without overflow of the squares; 0 at the origin."""
    length = hypot(a, b)
    return where(equal(length, 0), 0, g * (b / length / length))


def _within(x: Any, low: Any, high: Any) -> Any:
    return logical_and(greater_equal(x, low), less_equal(x, high))


def _gelu(g: Any, y: Any, x: Any) -> Any:
    # y / x is the share below x, without loss of digits where x is far below 0.
    below = where(equal(x, 0), 0.5, y / x)
    return g * (below + x * (exp(square(x) * -0.5) * _ONE_OVER_ROOT_2PI))


def _gelu_tanh(g: Any, y: Any, x: Any) -> Any:
    squared = square(x)
    factor = sigmoid(x * (squared * (GELU_TWICE * GELU_CUBIC) + GELU_TWICE))
    slope = squared * (3 * GELU_TWICE * GELU_CUBIC) + GELU_TWICE
    return g * (factor + x * slope * (factor * (1 - factor)))


def _mish(g: Any, y: Any, x: Any) -> Any:
    factor = tanh(softplus(x))
    return g * (factor + x * sigmoid(x) * (1 - square(factor)))


def _swish(g: Any, y: Any, x: Any, alpha: Any) -> Any:
    factor = sigmoid(x * alpha)
    return g * (factor + x * alpha * (factor * (1 - factor)))


def _swish_by_alpha(g: Any, y: Any, x: Any, alpha: Any) -> Any:
    factor = sigmoid(x * alpha)
    return g * (square(x) * (factor * (1 - factor)))


def _celu_by_alpha(g: Any, y: Any, x: Any, alpha: Any) -> Any:
    part = x / alpha
    return where(greater(x, 0), 0, g * (expm1(part) - part * exp(part)))


def _between(x: Any, alpha: Any, beta: Any) -> Any:
    """Whether hard_sigmoid's line is between 0 and 1."""
    line = x * alpha + beta
    return logical_and(greater(line, 0), less(line, 1))


def _hard_swish(g: Any, y: Any, x: Any) -> Any:
    middle = g * (x / 3 + 0.5)
    return where(less_equal(x, -3), 0, where(less(x, 3), middle, g))


def _unary(rule: Callable[[Any, Any, Any], Any]) -> tuple[Rule, ...]:
    return (rule,)


#: For each differentiable op, a rule for each argument.
RULES: Mapping[str, tuple[Rule, ...]] = MappingProxyType(
    {
        # Arithmetic.
        "add": (lambda g, y, a, b: g, lambda g, y, a, b: g),
        "subtract": (lambda g, y, a, b: g, lambda g, y, a, b: -g),
        "multiply": (lambda g, y, a, b: g * b, lambda g, y, a, b: g * a),
        "divide": (lambda g, y, a, b: g / b, lambda g, y, a, b: -(g / b * y)),
        "remainder": (lambda g, y, a, b: g, lambda g, y, a, b: -g * floor_divide(a, b)),
        "fmod": (lambda g, y, a, b: g, lambda g, y, a, b: -g * round((a - y) / b)),
        "pow": (_pow_by_base, _pow_by_exponent),
        "maximum": (
            lambda g, y, a, b: _to_larger(g, a, b),
            lambda g, y, a, b: _to_larger(g, b, a),
        ),
        "minimum": (
            lambda g, y, a, b: _to_larger(g, b, a),
            lambda g, y, a, b: _to_larger(g, a, b),
        ),
        "fmax": (
            lambda g, y, a, b: where(_first_of_fmax(a, b), g, 0),
            lambda g, y, a, b: where(_first_of_fmax(a, b), 0, g),
        ),
        "fmin": (
            lambda g, y, a, b: where(_first_of_fmin(a, b), g, 0),
            lambda g, y, a, b: where(_first_of_fmin(a, b), 0, g),
        ),
        "heaviside": (None, lambda g, y, a, b: where(equal(a, 0), g, 0)),
        "copysign": (
            lambda g, y, a, b: where(equal(a, 0), 0, where(equal(y, a), g, -g)),
            None,
        ),
        "hypot": (lambda g, y, a, b: g * (a / y), lambda g, y, a, b: g * (b / y)),
        "atan2": (lambda g, y, a, b: _angle(g, a, b), lambda g, y, a, b: -_angle(g, b, a)),
        "logaddexp": (
            lambda g, y, a, b: g * sigmoid(a - b),
            lambda g, y, a, b: g * sigmoid(b - a),
        ),
        "logaddexp2": (
            lambda g, y, a, b: g * sigmoid((a - b) * _LN2),
            lambda g, y, a, b: g * sigmoid((b - a) * _LN2),
        ),
        "squared_difference": (
            lambda g, y, a, b: g * (2 * (a - b)),
            lambda g, y, a, b: g * (2 * (b - a)),
        ),
        # Choices.
        "clip": (
            lambda g, y, x, low, high: where(_within(x, low, high), g, 0),
            lambda g, y, x, low, high: where(logical_and(less(low, high), less(x, low)), g, 0),
            lambda g, y, x, low, high: where(logical_or(less(high, low), greater(x, high)), g, 0),
        ),
        "where": (
            None,
            lambda g, y, c, a, b: where(c, g, 0),
            lambda g, y, c, a, b: where(c, 0, g),
        ),
        # Functions of one tensor.
        "negative": _unary(lambda g, y, x: -g),
        "positive": _unary(lambda g, y, x: g),
        "abs": _unary(lambda g, y, x: g * sign(x)),
        "sqrt": _unary(lambda g, y, x: g / (2 * y)),
        "rsqrt": _unary(lambda g, y, x: g * (y / x * -0.5)),
        "reciprocal": _unary(lambda g, y, x: -g * square(y)),
        "square": _unary(lambda g, y, x: g * (2 * x)),
        "exp": _unary(lambda g, y, x: g * y),
        "expm1": _unary(lambda g, y, x: g * exp(x)),
        "log": _unary(lambda g, y, x: g / x),
        "log1p": _unary(lambda g, y, x: g / (x + 1)),
        "log2": _unary(lambda g, y, x: g / (x * _LN2)),
        "log10": _unary(lambda g, y, x: g / (x * _LN10)),
        "sin": _unary(lambda g, y, x: g * cos(x)),
        "cos": _unary(lambda g, y, x: -g * sin(x)),
        "tan": _unary(lambda g, y, x: g * (square(y) + 1)),
        # (1 - x) (1 + x) keeps the digits that 1 - x x loses near 1.
        "asin": _unary(lambda g, y, x: g / sqrt((1 - x) * (1 + x))),
        "acos": _unary(lambda g, y, x: -g / sqrt((1 - x) * (1 + x))),
        "atan": _unary(lambda g, y, x: g / (square(x) + 1)),
        "sinh": _unary(lambda g, y, x: g * cosh(x)),
        "cosh": _unary(lambda g, y, x: g * sinh(x)),
        "tanh": _unary(lambda g, y, x: g * ((1 - y) * (1 + y))),
        "asinh": _unary(lambda g, y, x: g / hypot(x, 1)),
        "acosh": _unary(lambda g, y, x: g / (sqrt(x - 1) * sqrt(x + 1))),
        "atanh": _unary(lambda g, y, x: g / ((1 - x) * (1 + x))),
        "sigmoid": _unary(lambda g, y, x: g * (y * (1 - y))),
        "erf": _unary(lambda g, y, x: g * (exp(-square(x)) * _TWO_OVER_ROOT_PI)),
        # Activations.
        "prelu": (
            lambda g, y, x, slope: where(greater(x, 0), g, g * slope),
            lambda g, y, x, slope: where(greater(x, 0), 0, g * x),
        ),
        "relu": _unary(lambda g, y, x: where(less_equal(x, 0), 0, g)),
        "leaky_relu": (
            lambda g, y, x, alpha: where(greater(x, 0), g, g * alpha),
            lambda g, y, x, alpha: where(greater(x, 0), 0, g * x),
        ),
        "thresholded_relu": (lambda g, y, x, alpha: where(greater(x, alpha), g, 0), None),
        "elu": (
            lambda g, y, x, alpha: where(greater(x, 0), g, g * (alpha * exp(x))),
            lambda g, y, x, alpha: where(greater(x, 0), 0, g * expm1(x)),
        ),
        "selu": (
            lambda g, y, x, alpha, gamma: g * gamma * where(greater(x, 0), 1, alpha * exp(x)),
            lambda g, y, x, alpha, gamma: where(greater(x, 0), 0, g * (gamma * expm1(x))),
            lambda g, y, x, alpha, gamma: g * elu(x, alpha),
        ),
        "celu": (
            lambda g, y, x, alpha: where(greater(x, 0), g, g * exp(x / alpha)),
            _celu_by_alpha,
        ),
        "gelu": _unary(_gelu),
        "gelu_tanh": _unary(_gelu_tanh),
        "softplus": _unary(lambda g, y, x: g * sigmoid(x)),
        "softsign": _unary(lambda g, y, x: g / square(absolute(x) + 1)),
        "mish": _unary(_mish),
        "swish": (_swish, _swish_by_alpha),
        "hard_sigmoid": (
            lambda g, y, x, alpha, beta: where(_between(x, alpha, beta), g * alpha, 0),
            lambda g, y, x, alpha, beta: where(_between(x, alpha, beta), g * x, 0),
            lambda g, y, x, alpha, beta: where(_between(x, alpha, beta), g, 0),
        ),
        "hard_swish": _unary(_hard_swish),
        "shrink": (
            lambda g, y, x, bias, lambd: where(
                logical_or(less(x, -lambd), greater(x, lambd)), g, 0
            ),
            lambda g, y, x, bias, lambd: where(less(x, -lambd), g, where(greater(x, lambd), -g, 0)),
            None,
        ),
    }
)

#: Ops of floats that are constant between their jumps.
STEPS = frozenset({"floor_divide", "sign", "floor", "ceil", "round", "trunc", "nextafter"})
