"""Sizes and conditions as text.

A size: ``3``, ``N``, ``?``, ``-1``, ``1..8``, ``0..``, ``..8``, and sums, differences, products,
``//``, ``%``, ``max(..)``, ``min(..)`` and ``bcast(..)`` of numbers and names. A condition:
comparisons of sizes, chained as in mathematics, joined with ``and`` and ``or``. Text is not
trusted: its length and depth are limited.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn, TypeVar

from ..errors import BroadcastError, Misfit, Reason
from .atoms import Number, Symbol
from .budget import process_cache
from .condition import ALWAYS, NEVER, Condition, all_of, any_of, eq, ge, ne
from .dim import Dim, dim, of_atom, plain
from .functions import broadcast_size, floordiv, maximum, minimum
from .shapes import MAX_ELEMENTS, brief

#: Longest text of one size or condition.
MAX_TEXT = 1000
#: OpenVINO's IR writes an unknown size like this, beside ``?``.
UNKNOWN = "-1"
#: Words that join comparisons, so that no size has such a name.
_JOINING = ("and", "or")
#: Parentheses within parentheses.
MAX_DEPTH = 32

_RANGE = re.compile(r"\s*(?:(\?)|(\d{1,20})?\s*\.\.\s*(\d{1,20})?)\s*", re.ASCII)
_TOKEN = re.compile(r"\s*([0-9]+|[^\W\d]\w*(?:\.\w+)*|\|\||&&|//|[<>=!]=|[-+*/%(),<>])\s*")
_NAME = re.compile(r"[A-Za-z_]\w*(?:\.\w+)*")
_NUMBER = re.compile(r"\s*\d{1,20}\s*", re.ASCII)
_count = itertools.count(1)


def as_dim(value: Any) -> Dim:
    """A size from a whole number or from text; an unnamed one (``?``) is a new size."""
    if isinstance(value, str):
        parsed = read(value)
        return parsed if isinstance(parsed, Dim) else unnamed(*parsed, f"?{next(_count)}")
    from .shapes import whole_number

    return dim(whole_number(value))


@process_cache(1 << 12)
def read(text: str) -> Dim | tuple[int, int | None]:
    """An expression, or the bounds of an unnamed size; raises a Misfit if the text is malformed."""
    if len(text) <= MAX_TEXT and _NAME.fullmatch(text) and text not in _JOINING:
        return symbol(text)
    if _NUMBER.fullmatch(text):
        return dim(_bounded(int(text)))
    if text.strip() == UNKNOWN:
        return 0, None
    match = _RANGE.fullmatch(text)
    if match is None or (match[1] is None and match[2] is None and match[3] is None):
        return _SizeReader(text).whole_size()
    low = 0 if match[2] is None else _bounded(int(match[2]))
    high = None if match[3] is None else _bounded(int(match[3]))
    if high is not None and high < low:
        raise Misfit(Reason.BAD_EXTENT, f"the size {text.strip()} has its bounds in disorder")
    return dim(low) if low == high else (low, high)


def unnamed(low: int, high: int | None, name: str) -> Dim:
    """A size known by its bounds alone; `name` is what conditions call it."""
    return of_atom(Symbol(name, low, high, named=False))


#: Python's assignment operators, to hint that a condition was meant.
_ONE_SIGN = re.compile(r"(?<![<>=!])=(?!=)")


@contextmanager
def explained(value: object) -> Iterator[None]:
    """Turns a Misfit into an error for callers."""
    try:
        yield
    except Misfit as misfit:
        hint = "write N, ?, 1..8, 2*N + 1; conditions as N >= 1 or N % 8 == 0"
        if isinstance(value, str) and _ONE_SIGN.search(value):
            hint = "an equality has two signs, N == 16"
        raise BroadcastError(misfit.detail, reason=misfit.reason, hint=hint) from None


@process_cache(1 << 10)
def as_condition(text: str) -> Condition:
    """A condition from text; raises a Misfit if the text is malformed."""
    if text.strip() in ("always", "never"):
        return ALWAYS if text.strip() == "always" else NEVER
    return _SizeReader(text).whole_condition()


def symbol(name: str) -> Dim:
    """The size of this name; the name may have any characters."""
    return of_atom(Symbol(name))


def _bounded(number: int) -> int:
    if number > MAX_ELEMENTS:
        raise Misfit(Reason.BAD_EXTENT, f"a size of {number} is not in 0 .. 2^63-1")
    return number


T = TypeVar("T")

_COMPARISONS: dict[str, Callable[[Dim, Dim], Condition]] = {
    "==": eq,
    "!=": ne,
    ">=": ge,
    "<=": lambda a, b: ge(b, a),
    ">": lambda a, b: ge(a, b + 1),
    "<": lambda a, b: ge(b, a + 1),
}


class _SizeReader:
    """Recursive descent over the tokens of one text."""

    def __init__(self, text: str) -> None:
        self.text = text
        if len(text) > MAX_TEXT:
            raise Misfit(Reason.BAD_EXTENT, f"{len(text)} characters are too many for a size")
        self.tokens: list[str] = []
        position = 0
        while position < len(text):
            match = _TOKEN.match(text, position)
            if match is None:
                if not text[position:].strip():
                    break
                self.fail()
            self.tokens.append(match[1])
            position = match.end()
        self.depth = 0

    def fail(self) -> NoReturn:
        raise Misfit(
            Reason.BAD_EXTENT,
            f"{brief(self.text)} is no size: a number, a name, ?, 1..8, or as 2*N + 1",
        )

    def take(self, *tokens: str) -> str | None:
        if self.tokens and self.tokens[0] in tokens:
            return self.tokens.pop(0)
        return None

    def whole_size(self) -> Dim:
        size = self._ended(self.sum)
        if not size.terms and not 0 <= size.const <= MAX_ELEMENTS:
            raise Misfit(Reason.BAD_EXTENT, f"a size of {brief(size.const)} is not in 0 .. 2^63-1")
        return size

    def whole_condition(self) -> Condition:
        return self._ended(self.either)

    def _ended(self, part: Callable[[], T]) -> T:
        try:
            result = part()
        except (ArithmeticError, RecursionError):
            self.fail()
        if self.tokens:
            self.fail()
        return result

    def either(self) -> Condition:
        parts = [self.both()]
        while self.take("or", "||"):
            parts.append(self.both())
        return any_of(parts)

    def both(self) -> Condition:
        parts = [self.comparison()]
        while self.take("and", "&&"):
            parts.append(self.comparison())
        return all_of(parts)

    def comparison(self) -> Condition:
        grouped = self._group()
        if grouped is not None:
            return grouped
        sizes, signs = [self.sum()], []
        while sign := self.take(*_COMPARISONS):
            signs.append(sign)
            sizes.append(self.sum())
        if not signs:
            self.fail()
        pairs = zip(sizes, signs, sizes[1:], strict=False)
        return all_of(_COMPARISONS[sign](a, b) for a, sign, b in pairs)

    def _group(self) -> Condition | None:
        """A condition in parentheses; None where the parenthesis opens a size."""
        tokens, depth = self.tokens.copy(), self.depth
        if not self.take("(") or depth >= MAX_DEPTH:
            return None
        self.depth += 1
        try:
            condition = self.either()
            if self.take(")"):
                return condition
        except Misfit:
            pass  # the text may still be a size
        finally:
            self.depth = depth
        self.tokens = tokens
        return None

    def sum(self) -> Dim:
        total = self.product()
        while sign := self.take("+", "-"):
            part = self.product()
            total = total + part if sign == "+" else total - part
        return total

    def product(self) -> Dim:
        total = self.factor()
        while sign := self.take("*", "//", "%"):
            part = self.factor()
            if sign == "*":
                total = total * part
            else:
                quotient = floordiv(total, part)
                total = quotient if sign == "//" else total - quotient * part
        return total

    def factor(self) -> Dim:
        if not self.tokens:
            self.fail()
        token = self.tokens.pop(0)
        negative = False
        while token == "-" and self.tokens:
            negative = not negative
            token = self.tokens.pop(0)
        size = self._unsigned(token)
        return -size if negative else size

    def _unsigned(self, token: str) -> Dim:
        if token == "(":
            return self._inside(self.sum)
        if token.isascii() and token.isdigit():
            return dim(_bounded(int(token)) if len(token) <= 20 else self.fail())
        if not (token[0].isalpha() or token[0] == "_") or token in _JOINING:
            self.fail()
        if token.lower() in _FUNCTIONS and self.take("("):
            return self._inside(lambda: self._call(_FUNCTIONS[token.lower()]))
        return symbol(token)

    def _inside(self, part: Callable[[], Dim]) -> Dim:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.fail()
        size = part()
        if not self.take(")"):
            self.fail()
        self.depth -= 1
        return size

    def _call(self, function: Callable[..., Dim]) -> Dim:
        sizes = [self.sum()]
        while self.take(","):
            sizes.append(self.sum())
        return function(*sizes)


_FUNCTIONS: dict[str, Callable[..., Dim]] = {
    "bcast": broadcast_size,
    "max": maximum,
    "min": minimum,
}


def read_shape(shape: tuple[Any, ...], prefix: str) -> tuple[Number, ...]:
    """A shape whose sizes may be numbers, text, None (not known) or Dims.

    Args:
        shape: the sizes.
        prefix: the operand's name: words call an unnamed size ``prefix[axis]``.
    """
    from .shapes import whole_number

    sizes: list[Number] = []
    for axis, size in enumerate(shape):
        if size is None:
            size = "?"
        if isinstance(size, str):
            parsed = read(size)
            if not isinstance(parsed, Dim):
                parsed = unnamed(*parsed, f"{prefix}[{axis}]")
            sizes.append(plain(parsed))
        elif isinstance(size, Dim):
            sizes.append(plain(size))
        else:
            number = whole_number(size)
            if not 0 <= number <= MAX_ELEMENTS:
                raise Misfit(Reason.BAD_EXTENT, f"a size of {brief(number)} is not in 0 .. 2^63-1")
            sizes.append(number)
    return tuple(sizes)
