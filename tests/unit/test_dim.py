"""Open sizes: their normal form, their functions, their values."""

from __future__ import annotations

import itertools
import math
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_sizes import BOXED, OPEN, polynomials, sizes, slow

import zerostride as zs
from size_twins import Twin, evaluated, points
from zerostride.sizes import Answer
from zerostride.sizes.condition import all_of, eq
from zerostride.sizes.dim import (
    MAX_NESTED,
    MAX_TERMS,
    Dim,
    Symbol,
    dim,
    lone_symbol,
    of_atom,
)
from zerostride.sizes.functions import (
    broadcast_size,
    choose,
    exact_quotient,
    floordiv,
    maximum,
    minimum,
)

N, M, K = (of_atom(Symbol(name)) for name in "NMK")


# The normal form.


def test_equal_polynomials_are_equal_and_hash_alike() -> None:
    assert 2 * N + N == 3 * N
    assert hash(2 * N + N) == hash(3 * N)
    assert (N + M) * (N - M) == N * N - M * M
    assert N - N == 0
    assert N != M
    assert N + 1 != N


@slow
@given(polynomials(OPEN), polynomials(OPEN))
def test_polynomials_are_equal_exactly_if_their_values_are(a: Twin, b: Twin) -> None:
    # Degree 5 at most in each of three symbols: they agree on 9 x 9 x 8 points, or not at all.
    same = all(a.value(values) == b.value(values) for values in points(OPEN))
    assert (a.size == b.size) == same


@slow
@given(polynomials(OPEN), polynomials(OPEN), polynomials(OPEN))
def test_arithmetic_obeys_the_laws_of_a_ring(a: Twin, b: Twin, c: Twin) -> None:
    x, y, z = a.size, b.size, c.size
    assert x + y == y + x
    assert x * y == y * x
    assert (x + y) + z == x + (y + z)
    assert (x * y) * z == x * (y * z)
    assert x * (y + z) == x * y + x * z
    assert x - x == 0


def test_symbols_of_one_name_keep_a_consistent_order() -> None:
    alike = [Symbol("N"), Symbol("N", 1), Symbol("N", 0, 3), Symbol("N", 0, 3, named=False)]
    a, b, c, d = map(of_atom, alike)
    for one, other in itertools.permutations((a, b, c, d), 2):
        assert one != other
        assert one + other == other + one
        assert one * other == other * one
        assert maximum(one, other) == maximum(other, one)
        assert broadcast_size(one, other) == broadcast_size(other, one)
    assert a + b + c + d == d + c + b + a


def test_functions_of_one_text_keep_a_consistent_order() -> None:
    one = dim(choose([(eq(K, 1), N), (eq(K, 2), M)]))
    other = dim(choose([(eq(K, 3), N), (eq(K, 4), M)]))
    assert str(one) == str(other)
    assert one != other
    assert one + other == other + one


def test_size_hashes_like_the_number_or_text_that_it_equals() -> None:
    for size, same in (
        (N - N + 3, 3),
        (2 * N + 1, "2*N + 1"),
        (N, "N"),
        (floordiv(N, 2), "N // 2"),
    ):
        assert size == same
        assert hash(size) == hash(same)
        assert {same: "found"}[size] == "found"
    assert dim(3) != "3"  # it could not hash like both
    assert (N == None) is False  # noqa: E711 - whatever it is compared with


@pytest.mark.parametrize("other", [2.0, "M", None, (1,), 1j])
def test_other_types_are_no_sizes(other: Any) -> None:
    for use in ["+", "-", "*", ">=", "<=", ">", "<"]:
        with pytest.raises(TypeError):
            eval(f"N {use} other", {"N": N, "other": other})
    with pytest.raises(TypeError):
        N.equals(other)
    with pytest.raises(TypeError):
        dim(other)


def test_numpy_integers_are_numbers() -> None:
    assert dim(np.int64(3)) == 3  # type: ignore[arg-type]
    assert type(dim(np.int64(3)).const) is int  # type: ignore[arg-type]


def test_size_has_a_limit() -> None:
    long = sum((of_atom(Symbol(f"s{k}")) for k in range(17)), dim(0))
    assert MAX_TERMS < 17 * 17
    with pytest.raises(OverflowError):
        long * long
    nested = N
    for _ in range(MAX_NESTED):
        nested = floordiv(3 * nested + 1, 2)
    with pytest.raises(OverflowError):
        floordiv(3 * nested + 1, 2)


def test_nested_remainders_take_bounded_memory() -> None:
    def remainders(count: int) -> Dim:
        size = N
        for k in range(count):
            size = size % of_atom(Symbol(f"s{k}"))
        return size

    assert len(str(remainders(6))) > 2 * len(str(remainders(5)))
    with pytest.raises(OverflowError):
        remainders(20)


# What a reader sees.


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (N, "N"),
        (dim(0), "0"),
        (-N, "-N"),
        (M - 2 * N - 3, "M - 2*N - 3"),
        (N * N * M, "M*N*N"),
        (floordiv(N, 2), "N // 2"),
        (floordiv(N, 2) + 1, "(N // 2) + 1"),
        (-floordiv(N + 1, 2), "-((N + 1) // 2)"),
        (floordiv(M, 2 * N), "M // (2*N)"),
        (floordiv(2 * M, N), "2*M // N"),
        (2 * floordiv(maximum(M, N), maximum(K, N)), "2*(max(M, N) // max(K, N))"),
        (2 * maximum(N, 3), "2*max(3, N)"),
        (broadcast_size(N, M, K), "bcast(K, M, N)"),
    ],
)
def test_size_is_printed_as_text(size: Dim, text: str) -> None:
    assert str(size) == text
    assert repr(size) == f"Dim({text!r})"


def test_unnamed_sizes_show_their_bounds_and_differ() -> None:
    listed = [zs.Dim(text) for text in ("?", "1..8", "2..", "..4", "3..3")]
    assert [str(size) for size in listed] == ["?", "1..8", "2..", "0..4", "3"]
    assert zs.Dim("?") != zs.Dim("?")
    assert zs.Dim("1..8").interval == (1, 8)


def test_names_cannot_act_on_a_terminal() -> None:
    odd = of_atom(Symbol("\x1b[31m\nN"))
    assert str(odd).isprintable()
    assert str(odd >= 2).isprintable()


# Functions.


@slow
@given(sizes(BOXED))
def test_values_bounds_and_substitution_agree(twin: Twin) -> None:
    low, high = twin.size.interval
    for values in points(BOXED):
        right = twin.value(values)
        if right is None:
            continue
        assert evaluated(twin.size, values) == right
        assert low is not None
        assert high is not None
        assert low <= right <= high
        some = {s: v for s, v in values.items() if s in BOXED[:2]}
        assert evaluated(twin.size.substitute(some), values) == right


@slow
@given(sizes(OPEN))
def test_open_bounds_contain_the_values(twin: Twin) -> None:
    low, high = twin.size.interval
    for values in points(OPEN):
        right = twin.value(values)
        if right is not None:
            assert low is None or low <= right
            assert high is None or right <= high


@slow
@given(sizes(OPEN), sizes(OPEN))
def test_order_of_arguments_makes_no_difference(a: Twin, b: Twin) -> None:
    x, y = a.size, b.size
    assert maximum(x, y) == maximum(y, x)
    assert minimum(x, y) == minimum(y, x)
    assert maximum(x, x) == x


@pytest.mark.parametrize("known", [0, 1, 5])
def test_extremes_drop_redundant_arguments(known: int) -> None:
    at_least = of_atom(Symbol("N", known))
    assert maximum(at_least, known) == maximum(known, at_least) == at_least
    assert minimum(at_least, known) == minimum(known, at_least) == known


def test_divisor_below_one_gives_no_value() -> None:
    quotient = floordiv(N, M - 3)
    for value in (0, 2, 3):
        with pytest.raises(ZeroDivisionError):
            quotient.evaluate({Symbol("N"): 4, Symbol("M"): value})
        with pytest.raises(ZeroDivisionError):
            quotient.substitute({Symbol("M"): value})
    assert quotient.evaluate({Symbol("N"): 4, Symbol("M"): 5}) == 2
    with pytest.raises(ZeroDivisionError):
        floordiv(N, 0)


def test_broadcast_size_combines_sizes() -> None:
    assert broadcast_size(N, 1) == N
    assert broadcast_size(N, 5) == 5
    assert broadcast_size() == 1
    both = broadcast_size(N, M)
    assert broadcast_size(both, K) == broadcast_size(N, broadcast_size(M, K))
    for n, m in itertools.product(range(4), repeat=2):
        value = evaluated(both, {Symbol("N"): n, Symbol("M"): m})
        assert value == (m if n == 1 else n if m in (1, n) else None)


def test_choose_evaluates_the_chosen_case() -> None:
    size = dim(choose([(eq(N, 1), M), (N >= 2, N * K)]))
    n, m, k = Symbol("N"), Symbol("M"), Symbol("K")
    assert size.evaluate({n: 1, m: 5, k: 7}) == 5
    assert size.evaluate({n: 2, m: 5, k: 7}) == 14
    with pytest.raises(ArithmeticError):
        size.evaluate({n: 0, m: 5, k: 7})
    assert size.substitute({n: 1}) == M
    with pytest.raises(ArithmeticError):
        size.substitute({n: 0})
    assert choose([(eq(N, 1), M), (eq(N, 2), M)]) == M


def test_unchosen_case_may_have_no_value() -> None:
    size = dim(choose([(eq(N, 1), K // M), (N >= 2, K)]))
    without = dim(size.substitute({Symbol("M"): 0}))
    assert without.evaluate({Symbol("N"): 2, Symbol("K"): 7}) == 7
    assert evaluated(without, {Symbol("N"): 1, Symbol("K"): 7}) is None


@slow
@given(polynomials(OPEN), polynomials(OPEN))
def test_exact_quotients_are_exact(a: Twin, b: Twin) -> None:
    if b.size != 0:
        assert exact_quotient(a.size * b.size, b.size) == a.size
    quotient = exact_quotient(a.size, b.size)
    assert quotient is None or quotient * b.size == a.size


# The two questions.


@slow
@given(polynomials(BOXED), st.integers(-3, 3))
def test_answers_are_never_guessed(twin: Twin, number: int) -> None:
    by_name = {twin.value(values) == number for values in points(BOXED)}
    answer = twin.size.equal_to(number)
    if answer is not Answer.UNKNOWN:
        assert by_name == {answer is Answer.YES}
    assert twin.size.is_one() is twin.size.equal_to(1)


def test_divisibility_decides_equality() -> None:
    assert (2 * N + 1).equal_to(0) is Answer.NO
    assert (2 * N + 4 * M).equal_to(3) is Answer.NO
    assert (2 * N).equal_to(4) is Answer.UNKNOWN
    assert (N + 1).equal_to(N) is Answer.NO


# As a value.


def test_pickled_size_keeps_its_facts() -> None:
    for size in (dim(3), N, floordiv(N * M + 1, 3), broadcast_size(N, M), N.under(N >= 3)):
        again = pickle.loads(pickle.dumps(size))
        assert again == size
        assert hash(again) == hash(size)
        assert again.interval == size.interval
    assert pickle.loads(pickle.dumps(Symbol("N", 1, 3))) == Symbol("N", 1, 3)


def test_constant_size_converts_to_a_number() -> None:
    assert int(N - N + 3) == 3
    assert (N - N + 3).constant == 3
    with pytest.raises(TypeError, match="bind its symbols first"):
        int(N)
    with pytest.raises(KeyError):
        N.evaluate({})


def test_lone_symbol_is_recognised() -> None:
    assert lone_symbol(N) == Symbol("N")
    for other in (N + 1, 2 * N, N * N, dim(1), 3, None, floordiv(N, 2)):
        assert lone_symbol(other) is None


def test_symbols_of_arguments_are_listed() -> None:
    size = maximum(N, floordiv(M, 2)) + dim(choose([(all_of([K >= 3]), 1), (K <= 2, 2)]))
    assert {symbol.name for symbol in size.symbols} == {"N", "M", "K"}
    assert math.prod(size.evaluate({Symbol(s): 4 for s in "NMK"}) for _ in range(2)) == 25


def test_unnamed_sizes_have_hashes_of_their_own() -> None:
    """Written alike, a thousand of them in one table would take a million comparisons."""
    assert len({hash(zs.Dim("?")) for _ in range(100)}) == 100
    assert zs.Dim("?") == "?"  # for shapes in tests; as a key it is found by itself alone
    size = zs.Dim("?") + zs.Dim("N")
    assert {size: 1}[size + 0] == 1


def test_products_of_very_many_factors_are_refused() -> None:
    """Squares of squares would double the factors with each."""
    size = zs.Dim("N")
    for _ in range(6):
        size = size * size
    with pytest.raises(OverflowError, match="too many factors"):
        size * zs.Dim("M")
