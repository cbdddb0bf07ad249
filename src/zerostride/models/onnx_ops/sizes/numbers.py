"""Arithmetic on the numbers of small tensors, such as shapes that exporters compute.

Whole numbers are exact. Floats are quotients, used only where rounding cannot change a size:
float32 holds every whole number to 2^24 and float64 to 2^53, and exporters compute sizes along one
axis in float32. A number that is not certain is None.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ....sizes import MAX_ELEMENTS
from ....sizes.condition import Condition, eq, ge
from ....sizes.dim import Number, plain
from ....sizes.functions import floordiv, maximum, minimum
from .facts import (
    MAX_CONTENT,
    Content,
    Element,
    Fact,
    OpCall,
    Real,
    at_least,
    count_of,
    low_of,
    rounded_up,
)

Function: TypeAlias = Callable[..., Element]

#: Largest denominator. A product with a power of two is exact; quotients by larger numbers come too
#: close to whole numbers to be told apart in float32.
MAX_DIVISOR = 1 << 10


def array(fact: Fact) -> npt.NDArray[Any] | None:
    """The numbers of a tensor in its shape; None if they are unknown."""
    if fact.content is None or fact.shape is None or count_of(fact.shape) != len(fact.content):
        return None
    flat: npt.NDArray[Any] = np.empty(len(fact.content), object)
    flat[:] = fact.content
    return flat.reshape(fact.shape)


def listed(values: npt.NDArray[Any]) -> Content:
    """Numbers in row-major order; None if there are too many, or none is known."""
    if values.size > MAX_CONTENT:
        return None
    content = tuple(values.reshape(-1).tolist())
    return content if not content or any(item is not None for item in content) else None


def filled(shape: tuple[Any, ...], value: Element) -> Content:
    """The numbers of a tensor filled with one number."""
    count = count_of(shape)
    return None if count is None or value is None else (value,) * count


def exact(value: float) -> Element:
    """A float of the file as a quotient."""
    return Real(*value.as_integer_ratio()) if math.isfinite(value) else None


# Functions of numbers.


#: Greatest factor of a size: with larger ones a product with a size may overflow 32 bits.
MAX_FACTOR = 1 << 20


#: Greatest number in a quotient's numerator: squares of squares double its digits.
MAX_TOP = MAX_ELEMENTS**2


def _bounded(value: Number) -> Element:
    """A result that fits 64 bits; None if it does not or may not fit."""
    value = plain(value)
    if isinstance(value, int):
        return None if abs(value) > MAX_ELEMENTS else value
    far = abs(value.const) > MAX_ELEMENTS or any(abs(n) > MAX_FACTOR for _, n in value.terms)
    return None if far else value


def _both(
    whole: Callable[[Number, Number], Number | None],
    real: Callable[[Real, Real], Element] | None = None,
) -> Function:
    def compute(a: Element, b: Element) -> Element:
        if a is None or b is None:
            return None
        if isinstance(a, Real) and isinstance(b, Real):
            return real(a, b) if real is not None else None
        if isinstance(a, Real) or isinstance(b, Real):
            return None
        result = whole(a, b)
        return None if result is None else _bounded(result)

    return compute


def _real(top: Number, bottom: int) -> Element:
    if bottom < 0:
        top, bottom = -top, -bottom
    top = plain(top)
    parts = [top] if isinstance(top, int) else [top.const, *(f for _, f in top.terms)]
    if max(map(abs, parts)) > MAX_TOP:
        return None
    shared = math.gcd(bottom, *parts)
    if shared > 1:
        bottom //= shared
        top = plain(floordiv(top, shared))
    return Real(top, bottom) if abs(bottom) <= MAX_DIVISOR else None


def _add_real(a: Real, b: Real) -> Element:
    if not _may_add(a, b):
        return None
    return _real(a.top * b.bottom + b.top * a.bottom, a.bottom * b.bottom)


def _subtract_real(a: Real, b: Real) -> Element:
    if not _may_add(a, b):
        return None
    return _real(a.top * b.bottom - b.top * a.bottom, a.bottom * b.bottom)


def _multiply_real(a: Real, b: Real) -> Element:
    # A float factor of a file is exact only if it has few binary digits. A rounded quotient cannot
    # be undone: N / 49 * 49 is not N for all N.
    if not (_is_binary(a.bottom) and _is_binary(b.bottom)):
        return None
    return _real(a.top * b.top, a.bottom * b.bottom)


def _may_add(a: Real, b: Real) -> bool:
    """Whether a float sum is exact enough: one term is whole, or both denominators are binary."""
    return 1 in (a.bottom, b.bottom) or (_is_binary(a.bottom) and _is_binary(b.bottom))


def _is_binary(divisor: int) -> bool:
    """Whether a division of a float by it is exact."""
    return divisor & (divisor - 1) == 0


def _divide_real(a: Real, b: Real) -> Element:
    if not isinstance(b.top, int) or b.top == 0 or not _is_binary(a.bottom):
        return None
    return _real(a.top * b.bottom, a.bottom * b.top)


#: Whether a number is certainly at least another.
Sure: TypeAlias = Callable[[Number, int], bool]


def division(sure: Sure) -> Function:
    """ONNX's Div of integers rounds to zero, which is rounding down for numbers from 0 on."""

    def compute(a: Number, b: Number) -> Number | None:
        if isinstance(a, int) and isinstance(b, int):
            if b == 0:
                return None
            return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        return floordiv(a, b) if sure(a, 0) and sure(b, 1) else None

    return _both(compute, _divide_real)


def modulo(truncated: bool, sure: Sure) -> Function:
    """The remainder with the divisor's sign; with `fmod`, the dividend's."""

    def compute(a: Number, b: Number) -> Number | None:
        if isinstance(a, int) and isinstance(b, int):
            if b == 0:
                return None
            return int(math.fmod(a, b)) if truncated and max(abs(a), abs(b)) < 2**53 else a % b
        if sure(b, 1) and (not truncated or sure(a, 0)):
            return a - floordiv(a, b) * b
        return None

    return _both(compute)


def _power(a: Number, b: Number) -> Number | None:
    if not isinstance(b, int) or not 0 <= b <= 62:
        return None
    if isinstance(a, int):
        return int(a**b)
    total: Number = 1
    for _ in range(b if b <= 4 else 0):
        total = total * a
    return total if b <= 4 else None


def truth(condition: Condition) -> Element:
    """1 if a condition always holds, 0 if it never holds, else None."""
    return int(condition.always) if condition.always or condition.never else None


def _compare(make: Callable[[Number, Number], Condition]) -> Function:
    def real(a: Real, b: Real) -> Element:
        return truth(make(a.top * b.bottom, b.top * a.bottom))

    return _both(lambda a, b: truth(make(a, b)), real)  # type: ignore[arg-type, return-value]


def _less(a: Number, b: Number) -> Condition:
    return ge(b, a + 1)


def _extreme(pick: Callable[[Number, Number], Number]) -> Function:
    def real(a: Real, b: Real) -> Element:
        return _real(pick(a.top * b.bottom, b.top * a.bottom), a.bottom * b.bottom)

    return _both(pick, real)


def _logic(settling: int) -> Function:
    """And, Or: one operand may decide the result alone."""

    def compute(a: Element, b: Element) -> Element:
        if settling in (a, b):
            return settling
        return None if a is None or b is None else 1 - settling

    return compute


def _xor(a: Number, b: Number) -> Number | None:
    return a ^ b if isinstance(a, int) and isinstance(b, int) else None


#: Ops of two numbers. Ops of more operands (Max, Sum) are folded.
BINARY: Mapping[str, Function] = MappingProxyType(
    {
        "Add": _both(operator.add, _add_real),
        "Sum": _both(operator.add, _add_real),
        "Sub": _both(operator.sub, _subtract_real),
        "Mul": _both(operator.mul, _multiply_real),
        "Pow": _both(_power),
        "Max": _extreme(maximum),
        "Min": _extreme(minimum),
        "Equal": _compare(eq),
        "Less": _compare(_less),
        "Greater": _compare(lambda a, b: _less(b, a)),
        "LessOrEqual": _compare(lambda a, b: ge(b, a)),
        "GreaterOrEqual": _compare(ge),
        "And": _logic(0),
        "Or": _logic(1),
        "Xor": _both(_xor),
    }
)


def _negative(a: Element) -> Element:
    if isinstance(a, Real):
        return Real(plain(-a.top), a.bottom)
    return None if a is None else _bounded(-a)


def _absolute(a: Element) -> Element:
    top = a.top if isinstance(a, Real) else a
    if top is None:
        return None
    low = low_of(top)
    if isinstance(top, int):
        top = abs(top)
    elif low is None or low < 0:
        top = maximum(top, -top)
    return Real(plain(top), a.bottom) if isinstance(a, Real) else _bounded(top)


def _floor(a: Element) -> Element:
    return Real(plain(floordiv(a.top, a.bottom)), 1) if isinstance(a, Real) else None


def _ceiling(a: Element) -> Element:
    return Real(rounded_up(a.top, a.bottom), 1) if isinstance(a, Real) else None


def _not(a: Element) -> Element:
    return 1 - a if isinstance(a, int) and a in (0, 1) else None


def _sign(a: Element) -> Element:
    return (a > 0) - (a < 0) if isinstance(a, int) else None


UNARY: Mapping[str, Function] = MappingProxyType(
    {
        "Neg": _negative,
        "Abs": _absolute,
        "Floor": _floor,
        "Ceil": _ceiling,
        "Not": _not,
        "Sign": _sign,
        "Identity": lambda a: a,
    }
)

#: TensorProto's types: floats wide enough for sizes, integers of 32 and 64 bits, bool.
_FLOATS, _INTEGERS, _BOOL = (1, 11), (6, 7, 12, 13), 9


def cast(kind: int) -> Function:
    """A number converted to another type."""

    def compute(a: Element) -> Element:
        if a is None:
            return None
        if kind in _FLOATS:
            return a if isinstance(a, Real) else Real(a, 1)
        if kind in _INTEGERS:
            if not isinstance(a, Real):
                return a
            if isinstance(a.top, int):
                return _bounded(int(Fraction(a.top, a.bottom)))
            # A cast rounds to zero.
            return floordiv(a.top, a.bottom) if at_least(a.top, 0) or a.bottom == 1 else None
        if kind == _BOOL:
            truth_value = truth(eq(a.top if isinstance(a, Real) else a, 0))
            return 1 - truth_value if isinstance(truth_value, int) else None
        return None

    return compute


# Tensors of numbers.


def attempted(function: Function, *numbers: Element) -> Element:
    """The function's result; None if the expression becomes too long."""
    try:
        return function(*numbers)
    except ArithmeticError:
        return None


def apply(function: Function, operands: Sequence[Fact], shape: tuple[Any, ...] | None) -> Content:
    """The known numbers of an element-wise op."""
    if shape is None or count_of(shape) is None or all(fact.content is None for fact in operands):
        return None
    rows = []
    for fact in operands:
        values = array(fact)
        if values is None:
            # Another operand may still decide the result.
            if fact.shape is None or count_of(fact.shape) is None:
                return None
            values = np.full(fact.shape, None, object)
        try:
            rows.append(np.broadcast_to(values, shape))
        except ValueError:
            return None  # an old version's rule, which aligns operands differently from NumPy
    results: npt.NDArray[Any] = np.empty(shape, object)
    for index in np.ndindex(*results.shape):
        numbers: list[Any] = [row[index] for row in rows]
        results[index] = attempted(function, *numbers)
    return listed(results)


def arithmetic(call: OpCall, shape: tuple[Any, ...] | None) -> Content:
    """The numbers of an element-wise op of the tables; None for other ops."""
    facts = [fact for fact in call.facts if fact is not None]
    function = BINARY.get(call.op)
    if call.op == "Div":
        function = division(call.sure)
    elif call.op == "Mod":
        function = modulo(bool(call.integer("fmod")), call.sure)
    if function is None or len(facts) < 2:
        return facts[0].content if function is not None and facts else None
    total = facts[0]
    for fact in facts[1:]:
        total = Fact(shape, apply(function, (total, fact), shape))
        if len(facts) > 2 and total.content is None:
            return None
    return total.content


def choice(condition: Element, yes: Element, no: Element) -> Element:
    """One number of a Where: the picked one, or the common one if the condition is unknown."""
    if isinstance(condition, int):
        return yes if condition else no
    return yes if yes == no else None


def folded(function: Function, values: npt.NDArray[Any], axis: int) -> npt.NDArray[Any]:
    """An array with one axis reduced by a function of two numbers; the axis keeps size 1."""
    moved = np.moveaxis(values, axis, 0)
    results = np.empty(moved.shape[1:], object)
    for index in np.ndindex(*results.shape):
        column = moved[(slice(None), *index)]
        total = column[0]
        for item in column[1:]:
            total = attempted(function, total, item)
        results[index] = total
    return np.expand_dims(results, axis)
