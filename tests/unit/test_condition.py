"""Formulas over sizes: construction, values, and text."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_sizes import BOXED, OPEN, formulas, slow

import zerostride as zs
from size_twins import Formula, points
from zerostride.sizes.condition import (
    ALWAYS,
    NEVER,
    Condition,
    all_of,
    any_of,
    eq,
    ge,
    ne,
    negation,
)
from zerostride.sizes.dim import Dim, Symbol, dim, of_atom
from zerostride.sizes.functions import broadcast_size

N, M, K, H = (of_atom(Symbol(name)) for name in "NMKH")
BOXED_N = of_atom(Symbol("N", 1, 8))


# Making them.


def test_trivial_conditions_are_always_or_never() -> None:
    for always in (N >= 0, eq(N, N), ne(2 * N, 1), BOXED_N <= 8, ge(N + 1, N), ALWAYS):
        assert always.always
        assert len(always) == 0
    for never in (N < 0, eq(N, N + 1), eq(2 * N, 3), BOXED_N >= 9, NEVER):
        assert never.never
        assert len(never) == 1
    assert ALWAYS != NEVER


def test_equal_conditions_have_one_form() -> None:
    assert eq(N, M) == eq(M, N) == eq(2 * M, 2 * N)
    assert ge(2 * N, 3) == (N >= 2) == (N > 1) == (dim(2) <= N)
    assert all_of([eq(N, 1), eq(M, 1)]) == all_of([eq(M, 1), eq(N, 1), eq(M, 1)])
    assert hash(any_of([eq(N, 1), eq(M, 1)])) == hash(any_of([eq(M, 1), eq(N, 1)]))
    assert eq(N, 1) != ne(N, 1)
    assert eq(N, 1) != 1
    assert N.differs(M) == ne(N, M)


def test_joined_conditions_leave_out_what_another_implies() -> None:
    one, two = eq(N, 1), eq(M, 2)
    either, both = any_of([one, two]), all_of([one, two])
    assert all_of([either, one]) == any_of([one, both]) == one
    assert all_of([either, one, K >= 3]) == all_of([one, K >= 3])
    assert any_of([both, eq(K, 1)]) != any_of([one, eq(K, 1)])


def test_joined_conditions_have_no_duplicates() -> None:
    one, two = eq(N, 1), eq(M, 2)
    assert all_of([]) is ALWAYS
    assert any_of([]) is NEVER
    assert all_of([one]) is one
    assert all_of([one, ALWAYS, one]) == one
    assert any_of([one, NEVER]) == one
    assert all_of([one, NEVER]).never
    assert any_of([one, ALWAYS]).always
    assert all_of([one, negation(one)]).never
    assert any_of([one, negation(one)]).always
    assert list(all_of([one, all_of([two, N >= 3])])) == [one, two, N >= 3]
    assert (one & two)[1] == two
    assert (one | two).kind == "or"
    assert ~(one | two) == ne(N, 1) & ne(M, 2)


# Truth.


@slow
@given(formulas(BOXED))
def test_truth_negation_and_substitution_agree(formula: Formula) -> None:
    condition, opposite = formula.condition, negation(formula.condition)
    for values in points(BOXED):
        right = formula.truth(values)
        if right is None:
            continue
        assert condition.evaluate(values) == right
        assert opposite.evaluate(values) != right
        some = {s: v for s, v in values.items() if s in BOXED[::2]}
        assert condition.substitute(some).evaluate(values) == right
        assert condition({s.name: v for s, v in values.items()}) == right


def test_missing_size_makes_its_part_false() -> None:
    size = broadcast_size(N, M)
    at = {Symbol("N"): 2, Symbol("M"): 3, Symbol("K"): 1}
    assert not eq(size, 3).evaluate(at)
    assert not ne(size, 3).evaluate(at)
    assert any_of([eq(size, 3), eq(K, 1)]).evaluate(at)
    divided = eq(N // M, 2)
    assert not divided.evaluate({**at, Symbol("M"): 0})
    assert divided.substitute({Symbol("M"): 0}).never


def test_symbol_without_value_is_an_error() -> None:
    with pytest.raises(KeyError):
        eq(N, M)(N=3)
    assert eq(N, M)(N=3, M=3, W=9)
    assert not eq(N, M)({"N": 3, "M": 4})


@slow
@given(formulas(OPEN))
def test_condition_can_be_pickled(formula: Formula) -> None:
    again = pickle.loads(pickle.dumps(formula.condition))
    assert again == formula.condition
    assert hash(again) == hash(formula.condition)
    assert {*again.symbols} == {*formula.condition.symbols}


# Words.


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        (ALWAYS, "always"),
        (NEVER, "never"),
        (eq(N - M, 0), "M == N"),
        (eq(N, 1), "N == 1"),
        (ne(2 * N, 6), "N != 3"),
        (N >= 1, "N >= 1"),
        (N < 8, "N <= 7"),
        (N > M + 2, "N >= M + 3"),
        (all_of([N >= 1, N <= 8]), "1 <= N <= 8"),
        (all_of([N <= 8, eq(M, 1), N >= 1]), "M == 1 and 1 <= N <= 8"),
        (all_of([N >= 1, N <= 8, N <= 9]), "1 <= N <= 9 and N <= 8"),
        (all_of([N + M >= 2, N + M <= 5]), "2 <= M + N <= 5"),
        (eq(N % 8, 0), "N % 8 == 0"),
        (ne((2 * N + M) % 8, 3), "(M + 2*N) % 8 != 3"),
        (N % 8 >= 2, "N % 8 >= 2"),
        (N % 8 < 2, "N % 8 <= 1"),
        (eq(N // 2, M), "M == N // 2"),
        (any_of([eq(N, M), eq(N, 1)]), "M == N or N == 1"),
        (
            all_of([any_of([eq(N, M), eq(N, 1)]), eq(K, 2)]),
            "(M == N or N == 1) and K == 2",
        ),
        (any_of([all_of([eq(N, M), eq(N, 1)]), eq(K, 2)]), "M == N and N == 1 or K == 2"),
        (eq(broadcast_size(N, M), K), "K == bcast(M, N)"),
    ],
)
def test_condition_is_printed_as_text(condition: Condition, text: str) -> None:
    assert str(condition) == text
    assert repr(condition) == f"<Condition {text}>"
    assert zs.Condition.parse(text) == condition


#: Symbols as text makes them: plain names, and no bounds.
PLAIN = tuple(Symbol(name) for name in ("N", "batch_size", "max", "seq.len"))


@slow
@given(formulas(PLAIN))
def test_printed_condition_can_be_parsed(formula: Formula) -> None:
    text = str(formula.condition)
    assert zs.Condition.parse(text) == formula.condition


@slow
@given(formulas(PLAIN), st.sampled_from(["{}", " ( {} ) ", "\t{}\n"]))
def test_spaces_and_parentheses_change_nothing(formula: Formula, around: str) -> None:
    if not (formula.condition.always or formula.condition.never):
        assert zs.Condition.parse(around.format(formula.condition)) == formula.condition


def test_printed_condition_is_valid_python() -> None:
    for text in ("1 <= N <= 8 and (M == N or N % 8 == 3)", "max(M, N) // 2 >= K"):
        condition = zs.Condition.parse(text)
        for n in range(5):
            values = {"N": n, "M": 3, "K": 1}
            names = {**values, "max": max}
            needed = {symbol.name: values[symbol.name] for symbol in condition.symbols}
            assert condition(needed) == eval(str(condition), names)


def test_unnamed_sizes_are_named_in_conditions() -> None:
    size = Dim(Symbol("x[0]", 0, None, named=False))
    assert str(size) == "?"
    assert str(eq(size, 3)) == "x[0] == 3"


def test_a_condition_of_a_thousand_symbols_is_decided_or_left_open():
    """Values for so many symbols are not tried one by one."""
    pairs = all_of(ge(Dim(f"N{k}") * Dim(f"M{k}"), 4) for k in range(600))
    assert pairs.decide().answer.name in ("YES", "NO", "UNKNOWN")
