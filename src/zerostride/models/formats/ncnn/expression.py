"""Sizes as expressions of operands' sizes: ``0w,+(1h,2),-1`` of Reshape and Interp.

The language is that of ncnn's document 'expression'. What gives whole numbers for whole numbers is
worked out here; the rest is left to the engine.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from ....dims.dim import Number, plain
from ....dims.functions import maximum, minimum
from .sizes import Sizes, Unknown, Wrong, divided

#: Longest expression: a text parameter has no more.
MAX_TEXT = 255
_TOKEN = re.compile(r"\s*(?:[0-9][wdhc]|-?[0-9]{1,10}(?![.0-9eE])|[a-z0-9_+*/-]{1,20}(?=\()|[(),])")
_NAMES = {1: "w", 2: "hw", 3: "chw", 4: "cdhw"}


def _floored(a: Number, b: Number) -> Number:
    if (isinstance(a, int) and a < 0) or (isinstance(b, int) and b < 0):
        raise Unknown("a division of numbers below 0")
    return divided(a, b)


_BINARY: Mapping[str, Callable[[Number, Number], Number]] = MappingProxyType(
    {
        "+": lambda a, b: plain(a + b),
        "-": lambda a, b: plain(a - b),
        "*": lambda a, b: plain(a * b),
        "//": _floored,
        "max": lambda a, b: plain(maximum(a, b)),
        "min": lambda a, b: plain(minimum(a, b)),
    }
)
#: Of whole numbers these change nothing.
_WHOLE = frozenset({"trunc", "ceil", "floor", "round"})


def evaluate(text: str, shapes: Sequence[Sizes]) -> list[Number]:
    """The sizes that an expression lists, in its order (innermost first).

    >>> evaluate("*(0w,2),0h,-1", [(3, 4)])
    [8, 3, -1]

    Raises:
        Unknown: it holds what is not worked out here.
        Wrong: it is no expression.
    """
    if len(text) > MAX_TEXT:
        raise Unknown("an expression too long")
    tokens = _tokens(text)
    found: list[Number] = []
    at = 0
    while True:
        value, at = _value(tokens, at, shapes, 0)
        found.append(value)
        if at == len(tokens):
            return found
        if tokens[at] != ",":
            raise Wrong(f"the expression {text!r} is malformed")
        at += 1


def _tokens(text: str) -> list[str]:
    found: list[str] = []
    at = 0
    text = text.strip()
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise Unknown(f"the expression {text!r} is not worked out here")
        found.append(token[0].strip())
        at = token.end()
    return found


def _value(tokens: list[str], at: int, shapes: Sequence[Sizes], depth: int) -> tuple[Number, int]:
    if at >= len(tokens) or depth > 32:
        raise Wrong("an expression ends too early")
    token = tokens[at]
    if re.fullmatch(r"-?[0-9]+", token):
        return int(token), at + 1
    if re.fullmatch(r"[0-9][wdhc]", token):
        return _size(int(token[0]), token[1], shapes), at + 1
    if at + 1 >= len(tokens) or tokens[at + 1] != "(":
        raise Wrong(f"{token!r} in an expression")
    arguments: list[Number] = []
    at += 1
    while tokens[at] != ")":
        value, at = _value(tokens, at + 1, shapes, depth + 1)
        arguments.append(value)
        if at >= len(tokens) or tokens[at] not in (",", ")"):
            raise Wrong("an expression ends too early")
    if token in _WHOLE and len(arguments) == 1:
        return arguments[0], at + 1
    if token not in _BINARY or len(arguments) != 2:
        raise Unknown(f"{token} in an expression")
    return _BINARY[token](*arguments), at + 1


def _size(position: int, name: str, shapes: Sequence[Sizes]) -> Number:
    if position >= len(shapes):
        raise Wrong(f"operand {position} in an expression, of {len(shapes)}")
    shape = shapes[position]
    names = _NAMES[len(shape)]
    return shape[names.index(name)] if name in names else 1


__all__ = ["evaluate"]
