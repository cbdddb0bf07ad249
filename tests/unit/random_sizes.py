"""Hypothesis strategies of sizes and formulas over few symbols."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import settings
from hypothesis import strategies as st

from size_twins import COMPARISONS, Formula, Twin, applied, compared, joined, number, symbol
from zerostride.sizes.dim import Symbol

#: Enumeration takes its time on a busy machine.
slow = settings(deadline=None)

#: Symbols with both ends: what is said of all their values can be compared exactly.
BOXED = (Symbol("A", 0, 1), Symbol("B", 1, 3), Symbol("C", 2, 5), Symbol("D", 0, 3))
#: Symbols without a high end: enumeration can only contradict.
OPEN = (Symbol("N"), Symbol("M"), Symbol("K", 1))


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
    return _formulas(st.builds(compared, st.sampled_from(COMPARISONS), part, part))
