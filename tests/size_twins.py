"""Sizes and conditions beside their values by Python's own arithmetic.

Nothing here asks the code under test what a value should be.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from zerostride.sizes.condition import Condition, all_of, any_of, eq, ge, ne
from zerostride.sizes.dim import Dim, Number, Symbol, dim, of_atom
from zerostride.sizes.functions import broadcast_size, floordiv, maximum, minimum

Values = Mapping[Symbol, int]

#: The last value of a symbol without a high end.
END = 8


@dataclass
class Twin:
    """A size, and its value by Python alone; None where it does not exist."""

    size: Dim
    value: Callable[[Values], int | None]


@dataclass
class Formula:
    """A condition, and its truth by Python alone; None where a size in it does not exist."""

    condition: Condition
    truth: Callable[[Values], bool | None]


def points(symbols: Sequence[Symbol], end: int = END) -> Iterator[dict[Symbol, int]]:
    """All values in the box; `end` is the last value of a symbol without a high end."""
    ranges = [range(s.low, (end if s.high is None else s.high) + 1) for s in symbols]
    for point in itertools.product(*ranges):
        yield dict(zip(symbols, point, strict=True))


def evaluated(size: Number, values: Values) -> int | None:
    """The value of a size; None where it does not exist."""
    try:
        return dim(size).evaluate(values)
    except ArithmeticError:
        return None


def number(value: int) -> Twin:
    """A number."""
    return Twin(dim(value), lambda values: value)


def symbol(which: Symbol) -> Twin:
    """A symbol alone."""
    return Twin(of_atom(which), lambda values: values[which])


def _bcast(x: int, y: int) -> int | None:
    if x != y and 1 not in (x, y):
        return None
    return y if x == 1 else x


_OPERATIONS: dict[str, tuple[Callable[..., Any], Callable[[int, int], int | None]]] = {
    "+": (lambda a, b: a + b, lambda x, y: x + y),
    "-": (lambda a, b: a - b, lambda x, y: x - y),
    "*": (lambda a, b: a * b, lambda x, y: x * y),
    "//": (floordiv, lambda x, y: x // y if y > 0 else None),
    "/": (floordiv, lambda x, y: x // y if y > 0 else None),
    "%": (lambda a, b: a % b, lambda x, y: x % y if y > 0 else None),
    "max": (maximum, max),
    "min": (minimum, min),
    "bcast": (broadcast_size, _bcast),
}


def applied(kind: str, a: Twin, b: Twin) -> Twin:
    """Two sizes put together."""
    make, value = _OPERATIONS[kind]

    def both(values: Values) -> int | None:
        x, y = a.value(values), b.value(values)
        return None if x is None or y is None else value(x, y)

    return Twin(dim(make(a.size, b.size)), both)


_COMPARISONS: dict[str, tuple[Callable[..., Condition], Callable[[int, int], bool]]] = {
    "==": (eq, lambda x, y: x == y),
    "!=": (ne, lambda x, y: x != y),
    ">=": (ge, lambda x, y: x >= y),
}
COMPARISONS = tuple(_COMPARISONS)


def compared(kind: str, a: Twin, b: Twin) -> Formula:
    """A comparison of two sizes."""
    make, holds = _COMPARISONS[kind]

    def truth(values: Values) -> bool | None:
        x, y = a.value(values), b.value(values)
        return None if x is None or y is None else holds(x, y)

    return Formula(make(a.size, b.size), truth)


def joined(kind: str, parts: Sequence[Formula]) -> Formula:
    """All of the formulas ("and"), or any of them ("or")."""

    def truth(values: Values) -> bool | None:
        listed = [part.truth(values) for part in parts]
        if None in listed:
            return None
        return all(listed) if kind == "and" else any(listed)

    return Formula((all_of if kind == "and" else any_of)(p.condition for p in parts), truth)
