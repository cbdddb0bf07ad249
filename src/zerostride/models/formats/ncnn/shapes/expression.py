"""Sizes as expressions of operands' sizes: ``0w,+(1h,2),-1`` of Reshape and Interp.

The language is defined in ncnn's document 'expression'. Real numbers have 32 bits, and results are
truncated. With symbolic sizes only operations that give whole sizes are evaluated.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias

from .....ops.floats import FLOATS, in_single
from .....sizes.dim import Number, plain
from .....sizes.functions import maximum, minimum
from ....onnx_ops.sizes.facts import NoSizes, Unclear
from .call import Sizes, divided, named_sizes

#: Longest expression: a text parameter has no more.
MAX_TEXT = 255
_TOKEN = re.compile(
    r"\s*(?:[0-9][wdhcn]|-?[0-9]{1,10}(?:\.[0-9]{0,20})?(?:e[+-]?[0-9]{1,3})?(?![.0-9eE])"
    r"|[a-z0-9_+*/-]{1,20}(?=\()|[(),])"
)
#: A size, or a real number of 32 bits.
_Term: TypeAlias = Number | float


def _divided(a: Number, b: Number) -> Number:
    """As C divides: towards 0."""
    if isinstance(a, int) and isinstance(b, int) and b:
        return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    if (isinstance(a, int) and a < 0) or (isinstance(b, int) and b < 0):
        raise Unclear("a division of numbers below 0")
    return divided(a, b)


_BINARY: Mapping[str, Callable[[Number, Number], Number]] = MappingProxyType(
    {
        "+": lambda a, b: plain(a + b),
        "-": lambda a, b: plain(a - b),
        "*": lambda a, b: plain(a * b),
        "//": _divided,
        "max": lambda a, b: plain(maximum(a, b)),
        "min": lambda a, b: plain(minimum(a, b)),
    }
)
_BITS: Mapping[str, Callable[[int, int], int]] = MappingProxyType(
    {
        "and": operator.and_,
        "or": operator.or_,
        "xor": operator.xor,
        "lshift": operator.lshift,
        "rshift": operator.rshift,
    }
)
_UNARY: Mapping[str, Callable[[Any], Any]] = MappingProxyType(
    {
        "abs": abs,
        "neg": operator.neg,
        "sign": lambda a: a - a + (a > 0) - (a < 0),
        "square": lambda a: a * a,
    }
)
_divide = FLOATS["divide"]


def _floor(a: float) -> float:
    return float(math.floor(a)) if math.isfinite(a) else a


#: Of real numbers, always.
_REAL_BINARY: Mapping[str, Callable[[float, float], float]] = MappingProxyType(
    {
        "+": operator.add,
        "-": operator.sub,
        "*": operator.mul,
        "//": lambda a, b: _floor(in_single(_divide(a, b))),
        "max": FLOATS["maximum"],
        "min": FLOATS["minimum"],
        "/": _divide,
        **{name: FLOATS[name] for name in ("atan2", "fmod", "pow", "remainder", "logaddexp")},
    }
)


def _as_in_c(function: Callable[[float], float]) -> Callable[[float], float]:
    """A function of `math` that returns infinity and NaN as in C, and raises no error."""

    def computed(a: float) -> float:
        try:
            return function(a)
        except OverflowError:
            return math.copysign(math.inf, function(math.copysign(1.0, a)))
        except ValueError:
            if function in (math.log, math.log10) and a == 0:
                return -math.inf
            if function is math.atanh and abs(a) == 1:
                return math.copysign(math.inf, a)
            return math.nan

    return computed


_ANGLES = ("sin", "cos", "tan", "sinh", "cosh", "tanh")
_REAL_UNARY: Mapping[str, Callable[[float], float]] = MappingProxyType(
    {
        name: _as_in_c(getattr(math, name))
        for name in ("exp", "log", "log10", "sqrt", *_ANGLES, *(f"a{name}" for name in _ANGLES))
    }
    | {
        "rsqrt": lambda a: _divide(1.0, in_single(_REAL_UNARY["sqrt"](a))),
        "reciprocal": lambda a: _divide(1.0, a),
    }
)
#: Of whole numbers these change nothing.
_WHOLE: Mapping[str, Callable[[float], int]] = MappingProxyType(
    {"trunc": math.trunc, "ceil": math.ceil, "floor": math.floor, "round": round}
)


def evaluate(text: str, shapes: Sequence[Sizes]) -> list[Number]:
    """The sizes that an expression lists, in its order (innermost first).

    >>> evaluate("*(0w,2),0h,-1", [(3, 4)])
    [8, 3, -1]

    Raises:
        Unclear: it has an operation that is not evaluated here.
        NoSizes: it is not an expression.
    """
    if len(text) > MAX_TEXT:
        raise Unclear("an expression too long")
    tokens = _tokens(text)
    sizes: list[Number] = []
    at = 0
    while True:
        value, at = _value(tokens, at, shapes, 0)
        sizes.append(_cut_off(value))
        if at == len(tokens):
            return sizes
        if tokens[at] != ",":
            raise NoSizes(f"the expression {text!r} is malformed")
        at += 1


def _tokens(text: str) -> list[str]:
    tokens: list[str] = []
    at = 0
    text = text.strip()
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise Unclear(f"the expression {text!r} is not worked out here")
        tokens.append(token[0].strip())
        at = token.end()
    return tokens


def _cut_off(value: _Term) -> Number:
    if not isinstance(value, float):
        return value
    if not abs(value) < 2**31:
        raise NoSizes(f"an expression is {value}")
    return int(value)


def _value(tokens: list[str], at: int, shapes: Sequence[Sizes], depth: int) -> tuple[_Term, int]:
    if at >= len(tokens) or depth > 32:
        raise NoSizes("an expression ends too early")
    token = tokens[at]
    if re.fullmatch(r"-?[0-9]+", token):
        return int(token), at + 1
    if re.fullmatch(r"-?[0-9][0-9.e+-]*", token):
        number = float(token)
        if not math.isfinite(number):
            raise NoSizes(f"{token!r} in an expression")
        return (int(number) if number == int(number) else in_single(number)), at + 1
    if re.fullmatch(r"[0-9][wdhcn]", token):
        return _size(int(token[0]), token[1], shapes), at + 1
    if at + 1 >= len(tokens) or tokens[at + 1] != "(":
        raise NoSizes(f"{token!r} in an expression")
    arguments: list[_Term] = []
    at += 1
    while tokens[at] != ")":
        value, at = _value(tokens, at + 1, shapes, depth + 1)
        arguments.append(value)
        if at >= len(tokens) or tokens[at] not in (",", ")"):
            raise NoSizes("an expression ends too early")
    return _applied(token, arguments), at + 1


def _applied(name: str, terms: Sequence[_Term]) -> _Term:
    """A function of the language."""
    whole = [term for term in terms if not isinstance(term, float)]
    if len(whole) == len(terms):
        if name in _WHOLE and len(whole) == 1:
            return whole[0]
        if name in _BINARY and len(whole) == 2:
            return _BINARY[name](*whole)
    if any(not isinstance(term, int | float) for term in terms):
        raise Unclear(f"{name} in an expression")
    integers = [term for term in whole if isinstance(term, int)]
    reals = [in_single(term) for term in terms if isinstance(term, int | float)]
    if name in _UNARY and len(terms) == 1:
        return _UNARY[name](integers[0]) if integers else in_single(_UNARY[name](reals[0]))
    if name in _BITS and len(integers) == 2 and 0 <= integers[1] < 2**31:
        if "shift" in name and integers[1] > 31:
            raise NoSizes(f"a shift by {integers[1]}")
        return _BITS[name](*integers)
    if name in _WHOLE and len(terms) == 1:
        _cut_off(reals[0])  # no size, if it is too large
        return _WHOLE[name](reals[0])
    if name in _REAL_UNARY and len(terms) == 1:
        return in_single(_REAL_UNARY[name](reals[0]))
    if name in _REAL_BINARY and len(terms) == 2:
        return in_single(_REAL_BINARY[name](*reals))
    raise Unclear(f"{name} in an expression")


def _size(position: int, name: str, shapes: Sequence[Sizes]) -> Number:
    if position >= len(shapes):
        raise NoSizes(f"operand {position} in an expression, of {len(shapes)}")
    return named_sizes(shapes[position]).get(name, 1)  # a blob is one sample, so n is 1
