"""Size expressions of ONNX Runtime's inference (sympy's form) as functions of their names."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, TypeAlias

#: Numbers for the sizes that are not known: by name, or "x[0]" where there is none.
Values: TypeAlias = Mapping[str, int]


def expression(text: str, names: frozenset[str]) -> Callable[[Values], int] | None:
    """A size as sympy writes it, as a function of the names; None where others are in it."""
    try:
        tree = ast.parse(text, mode="eval").body
        _exact(tree, dict.fromkeys(names, 1))
    except ZeroDivisionError:
        pass  # of ones alone
    except (SyntaxError, ValueError, KeyError, RecursionError, MemoryError):
        return None

    def value(values: Values) -> int:
        number = _exact(tree, values)
        if number.denominator != 1:
            raise ArithmeticError(f"{text} is no whole number")
        return int(number)

    return value


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "floor": math.floor,
    "ceiling": math.ceil,
    "Max": max,
    "Min": min,
    "Mod": operator.mod,
}
_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


def _exact(tree: ast.expr, values: Values) -> Fraction:
    """The number of an expression; KeyError or ValueError of what is none of these sizes."""
    match tree:
        case ast.Constant(value=int(value)):
            return Fraction(value)
        case ast.Name(id=name):
            return Fraction(values[name])
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_exact(operand, values)
        case ast.BinOp(left=left, op=sign, right=right):
            return Fraction(_OPERATORS[type(sign)](_exact(left, values), _exact(right, values)))
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
            return Fraction(_FUNCTIONS[name](*(_exact(a, values) for a in arguments)))
    raise ValueError(f"{ast.dump(tree)[:80]} is no size")
