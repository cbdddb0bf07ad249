"""Deciding formulas: every answer against all values in a box."""

from __future__ import annotations

import itertools
import random
from collections import Counter

import pytest
from hypothesis import given, settings
from random_sizes import BOXED, OPEN, decidable, formulas, linear, sizes, slow

import zerostride as zs
from size_twins import Formula, Twin, evaluated, points
from work import calls_of
from zerostride.sizes import Answer, budget
from zerostride.sizes.budget import allowance
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
from zerostride.sizes.dim import Dim, Symbol, applied, dim, of_atom
from zerostride.sizes.functions import broadcast_size, choose, floordiv, maximum
from zerostride.sizes.parse import as_condition
from zerostride.sizes.simplify import pinned, simplified
from zerostride.sizes.solve import (
    bounds_under,
    complement,
    decide,
    excludes,
    exists,
    implies,
    satisfiable,
    values_for,
)
from zerostride.sizes.system import System

N, M, K, H = (of_atom(Symbol(name)) for name in "NMKH")
BIT = of_atom(Symbol("A", 0, 1))
FEW = BOXED[:3]


def check_values(condition: Condition, symbols: tuple[Symbol, ...]) -> Answer:
    """Values that are found are good; returns whether there are some."""
    answer, values = satisfiable(condition), values_for(condition, symbols)
    assert (values is not None) == (answer is Answer.YES)
    if values is not None:
        assert {*values} == {*symbols, *condition.symbols}
        assert condition.evaluate(values)
        for symbol, value in values.items():
            assert symbol.low <= value
            assert symbol.high is None or value <= symbol.high
    return answer


# What is decided exactly: linear, and one symbol in what is left over.


@slow
@given(decidable(BOXED))
def test_linear_formulas_are_always_decided(formula: Formula) -> None:
    holds = any(formula.truth(values) for values in points(BOXED))
    answer = check_values(formula.condition, BOXED)
    assert answer is (Answer.YES if holds else Answer.NO)


@slow
@given(decidable(OPEN))
def test_unbounded_linear_formulas_are_always_decided(formula: Formula) -> None:
    answer = check_values(formula.condition, OPEN)
    assert answer is not Answer.UNKNOWN
    if answer is Answer.NO:
        assert not any(formula.truth(values) for values in points(OPEN))


@slow
@given(decidable(FEW), decidable(FEW))
def test_implication_is_exact(a: Formula, b: Formula) -> None:
    given_, condition = a.condition, b.condition
    pairs = {(a.truth(values), b.truth(values)) for values in points(FEW)}
    assert implies(given_, condition) == ((True, False) not in pairs)
    assert excludes(given_, condition) == ((True, True) not in pairs)
    decision = decide(condition, given_)
    if (True, False) not in pairs:
        assert decision.answer is Answer.YES
    elif (True, True) not in pairs:
        assert decision.answer is Answer.NO
    else:
        assert decision.answer is Answer.UNKNOWN
        assert "it holds for" in decision.reason


@slow
@given(linear(FEW, 3), decidable(FEW))
def test_bounds_are_tight(twin: Twin, formula: Formula) -> None:
    listed = [twin.value(values) for values in points(FEW) if formula.truth(values)]
    if listed:
        assert bounds_under(twin.size, formula.condition) == (min(listed), max(listed))


@slow
@given(decidable(FEW), decidable(FEW))
def test_simplified_condition_is_equal_and_minimal(a: Formula, b: Formula) -> None:
    simple = simplified(b.condition, a.condition)
    for values in points(FEW):
        if a.truth(values):
            assert simple.evaluate(values) == b.truth(values)
    assert sum(1 for _ in simple.sizes()) <= sum(1 for _ in b.condition.sizes())


# Everything else: nothing is guessed.


@slow
@given(formulas(FEW))
def test_no_answer_is_wrong(formula: Formula) -> None:
    condition = formula.condition
    holds = [condition.evaluate(values) for values in points(FEW)]
    answer = check_values(condition, FEW)
    assert answer is not Answer.NO or not any(holds)
    assert answer is not Answer.YES or any(holds)
    opposite = complement(condition)
    for values, held in zip(points(FEW), holds, strict=True):
        assert opposite.evaluate(values) != held


def test_the_order_of_clauses_decides_nothing() -> None:
    """An equality of two symbols is put into heavier clauses, wherever it stands."""
    clauses = [eq(N, M), eq(N + N, floordiv(N + K, 3) % 3)]
    for ordered in (clauses, clauses[::-1]):
        condition = all_of(ordered)
        assert satisfiable(condition) is Answer.YES
        values = values_for(condition)
        assert values is not None
        assert condition.evaluate(values)


@slow
@given(formulas(OPEN))
def test_no_unbounded_answer_is_wrong(formula: Formula) -> None:
    if check_values(formula.condition, OPEN) is Answer.NO:
        assert not any(formula.condition.evaluate(values) for values in points(OPEN))


@slow
@given(formulas(FEW), formulas(FEW), sizes(FEW))
def test_no_proof_is_wrong(a: Formula, b: Formula, twin: Twin) -> None:
    given_, condition = a.condition, b.condition
    allowed = [values for values in points(FEW) if given_.evaluate(values)]
    if implies(given_, condition):
        assert all(condition.evaluate(values) for values in allowed)
    if excludes(given_, condition):
        assert not any(condition.evaluate(values) for values in allowed)
    simple = simplified(condition, given_)
    low, high = bounds_under(twin.size, given_)
    put = pinned(twin.size, given_)
    for values in allowed:
        assert simple.evaluate(values) == condition.evaluate(values)
        value = evaluated(twin.size, values)
        if value is not None:
            assert low is None or low <= value
            assert high is None or value <= high
            assert evaluated(put, values) == value


@slow
@given(sizes(BOXED))
def test_exists_gives_the_condition_of_a_size(twin: Twin) -> None:
    where = exists(twin.size)
    for values in points(BOXED):
        assert where.evaluate(values) == (evaluated(twin.size, values) is not None)


def test_few_questions_stay_unknown() -> None:
    """Of any formulas at all, of functions and products too."""
    answers: Counter[Answer] = Counter()

    @settings(max_examples=300, database=None, derandomize=True, deadline=None)
    @given(formulas(FEW))
    def ask(formula: Formula) -> None:
        answers[satisfiable(formula.condition)] += 1

    ask()
    assert answers[Answer.UNKNOWN] < 0.05 * answers.total()
    assert min(answers[Answer.YES], answers[Answer.NO]) > 30


# By example.


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("3*N == 2*M and N == 4", Answer.YES),
        ("3*N == 2*M and N == 5", Answer.NO),
        ("6*N + 4*M == 7", Answer.NO),
        ("3*N == 2*M and 5*M == 3*K and N == 2 and K != 5", Answer.NO),
        ("N % 8 == 0 and N % 12 == 6", Answer.NO),
        ("N % 8 == 0 and 1 <= N <= 7", Answer.NO),
        ("N % 8 == 0 and 1 <= N <= 8", Answer.YES),
        ("N // 4 == 2 and N >= 11", Answer.YES),
        ("N // 4 == 2 and N >= 12", Answer.NO),
        ("max(N, M) == 3 and N + M == 7", Answer.NO),
        ("min(N, 3) == 3 and N <= 2", Answer.NO),
        ("bcast(N, M) == 4 and N == 3", Answer.NO),
        ("bcast(N, M) == 4 and N == 1 and M != 4", Answer.NO),
        ("bcast(N, M) == 1 and N == 1", Answer.YES),
        ("N * M == 6 and N == 4", Answer.NO),
        ("N >= 9223372036854775807", Answer.YES),
    ],
)
def test_examples_are_decided(text: str, answer: Answer) -> None:
    assert satisfiable(zs.Condition.parse(text)) is answer


def test_many_inequations_in_a_small_interval_are_decided() -> None:
    """Candidates are counted from the ends of intervals, and never lie outside."""
    bits = [of_atom(Symbol(f"b{k}", 0, 1)) for k in range(6)]
    different = [ne(a, b) for a, b in itertools.pairwise(bits)]
    assert satisfiable(all_of(different)) is Answer.YES
    assert satisfiable(all_of([*different, eq(bits[0], bits[5])])) is Answer.NO
    low = of_atom(Symbol("low", 2, 4))
    assert satisfiable(all_of([ne(low, bits[0] + 3), ne(low, bits[0] + 2)])) is Answer.YES


def test_sum_of_sizes_that_do_not_broadcast_proves_nothing() -> None:
    """What fails where N and M do not fit is not implied, although it cannot be false beside it."""
    both = broadcast_size(N, M)
    fits = any_of([eq(N, M), eq(N, 1), eq(M, 1)])
    apart = all_of([N >= 2, M >= 2, ne(N, M)])
    assert not implies(apart, eq(both, 7))
    assert not implies(apart, ne(both, 7))
    assert excludes(apart, eq(both, 7))
    assert implies(fits, any_of([eq(both, N), eq(both, M)]))
    assert satisfiable(all_of([apart, any_of([eq(K, 1), eq(both, K)])])) is Answer.YES
    whole = all_of([fits, any_of([eq(both, K), eq(K, 1)])])
    assert not implies(eq(K, 1), whole)
    assert implies(all_of([eq(K, 1), fits]), whole)


def test_complement_respects_missing_sizes() -> None:
    apart = {Symbol("N"): 2, Symbol("M"): 3}
    literal = eq(broadcast_size(N, M), 3)
    assert not literal.evaluate(apart)
    assert not negation(literal).evaluate(apart)
    assert complement(literal).evaluate(apart)
    assert complement(eq(N, 3)) == ne(N, 3)


def test_only_the_chosen_case_has_to_exist() -> None:
    size = dim(choose([(eq(N, 1), broadcast_size(K, M)), (N >= 2, K)]))
    apart = all_of([K >= 2, M >= 2, ne(K, M)])
    assert satisfiable(all_of([apart, eq(size, 5)])) is Answer.YES
    assert satisfiable(all_of([apart, eq(size, 5), N <= 1])) is Answer.NO
    assert bounds_under(size, all_of([apart, K <= 9])) == (2, 9)


def test_quotient_by_a_size_is_not_any_number() -> None:
    quotient = floordiv(N, M)
    assert satisfiable(all_of([eq(quotient, 3), eq(M, 0)])) is Answer.NO
    assert satisfiable(all_of([eq(quotient, 3), ne(quotient, 3)])) is Answer.NO
    assert satisfiable(eq(quotient, 3)) is not Answer.NO


def test_bounds_of_inexact_sizes_stay_within_the_sizes_own() -> None:
    few = of_atom(Symbol("few", 0, 8))
    assert bounds_under(few, eq(few, N - M)) == (0, 8)
    assert bounds_under(maximum(few, 3), few >= 2) == (3, 8)
    assert bounds_under(few, few <= 5) == (0, 5)
    assert bounds_under(few, all_of([ne(few, 0), ne(few, 8), ne(few, 1)])) == (2, 7)
    assert bounds_under(few, eq(few, 9)) == (0, 8)  # of no values: those of all


def test_pinned_adds_no_symbols() -> None:
    equation = eq(3 * N, 2 * M)
    assert pinned(N, equation) == N
    assert pinned(N, all_of([equation, eq(M, 6)])) == 4
    assert pinned(M + 1, all_of([equation, eq(N, 4)])) == 7
    assert type(pinned(2 * N, eq(N, 3))) is int
    assert pinned(N, N >= 3) == N
    assert pinned(N, all_of([eq(N, 3), eq(N, 4)])) == N


def test_decisions_have_reasons() -> None:
    assert str(decide(eq(2 * N, 7))) == "no: for no values"
    assert str(decide(N >= 1, N >= 2)) == "yes: for all values where N >= 2"
    assert str(decide(eq(N, 3))) == "unknown: it holds for N=3, not for N=2"
    assert "beyond what is decided" in str(decide(eq(N * N * N + M * M * M, K * K * K + 1001)))


def test_examples_are_simplified() -> None:
    parse = zs.Condition.parse
    for text, simple in (
        ("N >= 1 and N >= 3", "N >= 3"),
        ("N == 3 or N >= 2", "N >= 2"),
        ("(N == M or N == 1) and N >= 2", "M == N and N >= 2"),
        ("N == 3 and (M == N or M == 3)", "N == 3 and M == 3"),
        ("N >= 2 and N <= 1", "never"),
        ("N >= 0 or M == 2", "always"),
    ):
        assert simplified(parse(text)) == parse(simple)
    assert simplified(eq(N, M) | eq(N, 1), N >= 2) == eq(N, M)


# The system itself: what the driver of rules uses.


def test_unsolvable_system_gives_unknown() -> None:
    low, high, mid = (of_atom(Symbol(name, 0, 2**62)) for name in ("low", "high", "mid"))
    assert satisfiable(all_of([low > high, high > low])) is Answer.NO  # opposite
    system = System()
    assert system.assume(">=", low - high - 1)
    assert system.assume(">=", high - mid - 1)
    assert system.assume(">=", mid - low - 1)  # each tightens the next by one, 2^62 times
    assert not system.exact
    assert satisfiable(all_of([low > high, high > mid, mid > low])) is not Answer.YES
    terms = [of_atom(Symbol(f"t{k}")) for k in range(20)]
    system = System()
    assert system.assume("==", N - sum(terms, dim(0)))
    assert system.assume("!=", N * N * N - 3)  # too long when put in
    assert not system.exact


def test_copies_are_independent() -> None:
    system = System()
    assert system.assume(">=", N - 2)
    twin = system.copy()
    assert twin.assume("==", N - 5)
    assert not twin.copy().assume("==", N - 6)
    assert system.assume("==", N - 6)


# Time.


@pytest.mark.parametrize(
    "condition",
    [
        all_of(
            any_of([eq(a, b), eq(a, 1), eq(b, 1)])
            for k in range(64)
            for a, b in [(of_atom(Symbol(f"a{k}")), of_atom(Symbol(f"b{k}")))]
        ),
        any_of(eq(N, k) for k in range(300)),
        all_of(ne(N, k) for k in range(300)),
        all_of(any_of([eq(N, k), eq(M, k), eq(K, k)]) for k in range(40)),
        all_of(
            ge(of_atom(Symbol(f"a{k}")), of_atom(Symbol(f"a{(k + 1) % 40}")) + 1) for k in range(40)
        ),
        all_of(ge(a * b, c * 2 + 1) for a in (N, M, K) for b in (N, M, H) for c in (K, H)),
        all_of(any_of([ne(N, M + k), ge(N, M * k + 3)]) for k in range(60)),
        all_of(any_of([eq(BIT, k), eq(N, M + k), eq(N + M, K + k)]) for k in range(30)),
    ],
    ids=lambda condition: str(condition)[:30],
)
def test_every_question_takes_bounded_work(condition: Condition) -> None:
    def ask() -> None:
        satisfiable(condition)
        satisfiable(complement(condition))
        bounds_under(N, condition)

    assert calls_of(ask) < 2_000_000


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("N*M >= 1 and N*M == 0", Answer.NO),
        ("N*M == 0 and N*M >= 1", Answer.NO),
        ("N*M == 3 and N*M == 4", Answer.NO),
        ("3 <= N*M and N*M == 3", Answer.YES),
        ("N >= 1 and M >= 1 and ((N + 31) // 32)*((M + 31) // 32) == 0", Answer.NO),
        ("N >= 0 and ((N + 31) // 32)*((M + 31) // 32) == 0", Answer.YES),
        ("N >= 33 and (N + 31) // 32 - K == 0 and K*M + K == 1", Answer.NO),
        ("N + M >= 200 and K >= 1", Answer.YES),
        ("N + M + 200 >= 1 and N + M >= 2000", Answer.YES),
        ("N + M >= 200 and N + M <= 199", Answer.NO),
    ],
)
def test_products_and_sums_are_decided(text: str, answer: Answer) -> None:
    assert satisfiable(as_condition(text)) is answer
    if answer is Answer.YES:
        values = values_for(as_condition(text))
        assert values is not None
        assert as_condition(text).evaluate(values)


def test_values_are_from_the_least_of_their_size_on() -> None:
    n, k = of_atom(Symbol("N")), of_atom(Symbol("K", 1))
    condition = all_of([ne(k + n, 1), eq(n, n // 2 + (n // 4) * 4), ne(n, 0)])
    assert check_values(condition, (Symbol("N"), Symbol("K", 1))) is Answer.YES


@pytest.mark.parametrize("seed", range(40))
def test_bounds_of_quotients_and_products_exclude_no_solution(seed: int) -> None:
    """Beside every point of a small box: what has a solution there is never denied."""
    rng = random.Random(seed)
    atoms = [
        "N",
        "M",
        "(N + 3) // 4",
        "(M + 1) // 2",
        "N*M",
        "((N + 3) // 4)*M",
        "N*((M + 1) // 2)",
    ]
    clauses = []
    for _ in range(rng.randint(2, 4)):
        left, right = rng.sample(atoms, 2)
        factor = rng.choice((1, 1, 2, 4))
        sign = rng.choice((">=", "<=", "==", "!="))
        other = rng.choice((right, str(rng.randint(0, 9))))
        clauses.append(f"{factor}*({left}) {sign} {other} + {rng.randint(0, 4)}")
    condition = as_condition(" and ".join(clauses))
    box = ({Symbol("N"): n, Symbol("M"): m} for n in range(9) for m in range(9))
    if any(condition.evaluate(point) for point in box):
        assert satisfiable(condition) is not Answer.NO


def test_box_without_solutions_is_decided() -> None:
    """No bound and no remainder alone shows it: B is even, so 2, and then C is above its end."""
    a, b, c = (of_atom(Symbol(*row)) for row in (("A", 0, 1), ("B", 1, 3), ("C", 2, 5)))
    assert satisfiable(eq(2 * a + 3 * b + 6 - 2 * c, 0)) is Answer.NO
    assert satisfiable(eq(2 * a + 3 * b + 4 - 2 * c, 0)) is Answer.YES
    assert implies(ALWAYS, ne(2 * a + 3 * b + 6 - 2 * c, 0))


@pytest.mark.slow
def test_a_thousand_clauses_need_no_recursion() -> None:
    clauses = [
        any_of([eq(a, 1), eq(a, 2)]) for a in (of_atom(Symbol(f"s{k}")) for k in range(1100))
    ]
    assert satisfiable(all_of(clauses)) in (Answer.YES, Answer.UNKNOWN)


def test_always_and_never_are_decided() -> None:
    assert satisfiable(ALWAYS) is Answer.YES
    assert satisfiable(NEVER) is Answer.NO
    assert values_for(ALWAYS, [Symbol("N"), Symbol("A", 0, 1)]) == {
        Symbol("N"): 2,
        Symbol("A", 0, 1): 1,
    }
    assert simplified(NEVER) is NEVER
    assert isinstance(pinned(Dim("N"), ALWAYS), Dim)


def test_facts_about_other_symbols_cost_a_question_nothing() -> None:
    def steps_left() -> int:
        shared = budget._allowance.get()
        assert shared is not None
        return shared.left

    def spent(others: int) -> int:
        facts = all_of(ge(of_atom(Symbol(f"S{k}")), 1) for k in range(others)) & ge(N, 2)
        with allowance(100_000):
            assert excludes(facts, eq(N, 1))  # the facts are sorted once
            before = steps_left()
            assert implies(facts, ge(N + M, 1))
            return before - steps_left()

    assert spent(200) == spent(2)


def test_facts_without_symbols_and_about_other_symbols_count() -> None:
    nowhere = all_of([ge(N, 1), ge(M, 5), ge(3 - M, 0)])
    assert implies(nowhere, eq(N, 7))
    assert excludes(nowhere, eq(N, 7))
    missing = all_of([ge(N, 1), eq(applied("floordiv", (dim(0), dim(0))), 1)])
    assert excludes(missing, eq(N, 7))
