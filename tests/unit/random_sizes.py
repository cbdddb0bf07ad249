"""Random sizes and formulas over few symbols, and their values by enumeration.

The value of an expression is worked out beside it, by Python's own arithmetic: nothing here asks
the code under test what it should be.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

from zerostride.sizes.condition import Condition, all_of, any_of, eq, ge, ne
from zerostride.sizes.dim import Dim, Number, Symbol, dim, of_atom
from zerostride.sizes.functions import broadcast_size, floordiv, maximum, minimum

Values = Mapping[Symbol, int]

#: Enumeration takes its time on a busy machine.
slow = settings(deadline=None)

#: Symbols with both ends: what is said of all their values can be compared exactly.
BOXED = (Symbol("A", 0, 1), Symbol("B", 1, 3), Symbol("C", 2, 5), Symbol("D", 0, 3))
#: Symbols without a high end: enumeration can only contradict.
OPEN = (Symbol("N"), Symbol("M"), Symbol("K", 1))
#: Where enumeration of those ends.
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


def points(symbols: Sequence[Symbol]) -> Iterator[dict[Symbol, int]]:
    """All values in the box."""
    ranges = [range(s.low, (END if s.high is None else s.high) + 1) for s in symbols]
    for point in itertools.product(*ranges):
        yield dict(zip(symbols, point, strict=True))


def evaluated(size: Number, values: Values) -> int | None:
    """The value of a size; None where it does not exist."""
    try:
        return dim(size).evaluate(values)
    except ArithmeticError:
        return None


def number(value: int) -> Twin:
    return Twin(dim(value), lambda values: value)


def symbol(which: Symbol) -> Twin:
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
    "%": (lambda a, b: a % b, lambda x, y: x % y if y > 0 else None),
    "max": (maximum, max),
    "min": (minimum, min),
    "bcast": (broadcast_size, _bcast),
}


def applied(kind: str, a: Twin, b: Twin) -> Twin:
    make, value = _OPERATIONS[kind]

    def both(values: Values) -> int | None:
        x, y = a.value(values), b.value(values)
        return None if x is None or y is None else value(x, y)

    return Twin(dim(make(a.size, b.size)), both)


def polynomials(symbols: Sequence[Symbol]) -> st.SearchStrategy[Twin]:
    atoms = st.sampled_from(symbols).map(symbol) | st.integers(-3, 4).map(number)
    return st.recursive(
        atoms,
        lambda part: st.builds(applied, st.sampled_from("+-*"), part, part),
        max_leaves=5,
    )


def sizes(symbols: Sequence[Symbol]) -> st.SearchStrategy[Twin]:
    """Polynomials and functions of them."""
    atoms = st.sampled_from(symbols).map(symbol) | st.integers(-3, 4).map(number)
    by_number = st.integers(1, 4).map(number)

    def larger(part: st.SearchStrategy[Twin]) -> st.SearchStrategy[Twin]:
        names = st.sampled_from(("+", "-", "*", "max", "min", "bcast"))
        return st.builds(applied, names, part, part) | st.builds(
            applied, st.sampled_from(("//", "%")), part, by_number
        )

    return st.recursive(atoms, larger, max_leaves=4)


def linear(symbols: Sequence[Symbol], count: int) -> st.SearchStrategy[Twin]:
    """``2*N - 3*M + 1``: a sum of at most `count` multiples of symbols, and a number."""
    term = st.builds(
        lambda which, factor: applied("*", symbol(which), number(factor)),
        st.sampled_from(symbols),
        st.sampled_from((1, 1, -1, 2, -2, 3)),
    )

    def summed(terms: list[Twin], last: int) -> Twin:
        total = number(last)
        for part in terms:
            total = applied("+", total, part)
        return total

    return st.builds(summed, st.lists(term, max_size=count), st.integers(-6, 6))


_KINDS: dict[str, tuple[Callable[..., Condition], Callable[[int, int], bool]]] = {
    "==": (eq, lambda x, y: x == y),
    "!=": (ne, lambda x, y: x != y),
    ">=": (ge, lambda x, y: x >= y),
}


def compared(kind: str, a: Twin, b: Twin) -> Formula:
    make, holds = _KINDS[kind]

    def truth(values: Values) -> bool | None:
        x, y = a.value(values), b.value(values)
        return None if x is None or y is None else holds(x, y)

    return Formula(make(a.size, b.size), truth)


def joined(kind: str, parts: Sequence[Formula]) -> Formula:
    def truth(values: Values) -> bool | None:
        listed = [part.truth(values) for part in parts]
        if None in listed:
            return None
        return all(listed) if kind == "and" else any(listed)

    return Formula((all_of if kind == "and" else any_of)(p.condition for p in parts), truth)


def _formulas(literals: st.SearchStrategy[Formula]) -> st.SearchStrategy[Formula]:
    return st.recursive(
        literals,
        lambda part: st.builds(
            joined, st.sampled_from(("and", "or")), st.lists(part, min_size=2, max_size=3)
        ),
        max_leaves=6,
    )


def decidable(symbols: Sequence[Symbol]) -> st.SearchStrategy[Formula]:
    """What is decided exactly: equations of two symbols, inequalities of one, any inequation."""
    zero = st.just(number(0))
    return _formulas(
        st.builds(compared, st.just("=="), linear(symbols, 2), zero)
        | st.builds(compared, st.just("!="), linear(symbols, 3), zero)
        | st.builds(compared, st.just(">="), linear(symbols, 1), zero)
    )


def formulas(symbols: Sequence[Symbol]) -> st.SearchStrategy[Formula]:
    """Any: products, functions, sizes that do not exist."""
    part = sizes(symbols)
    return _formulas(st.builds(compared, st.sampled_from(tuple(_KINDS)), part, part))
