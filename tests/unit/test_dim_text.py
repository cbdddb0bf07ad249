"""Sizes and conditions as text: parsing, and hostile text."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_sizes import sizes, slow

import zerostride as zs
from size_twins import Twin
from work import calls_of
from zerostride.errors import Reason
from zerostride.sizes.condition import all_of, any_of, eq, ne
from zerostride.sizes.dim import Dim, Symbol, of_atom
from zerostride.sizes.functions import broadcast_size, floordiv, maximum, minimum
from zerostride.sizes.parse import MAX_DEPTH, MAX_TEXT
from zerostride.sizes.simplify import simplified
from zerostride.sizes.solve import complement, satisfiable

T = TypeVar("T")
N, M, K = (of_atom(Symbol(name)) for name in "NMK")


# What is read.


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("3", 3),
        (" 3 ", 3),
        ("N", N),
        ("2*N + 1", 2 * N + 1),
        ("2 * (N+M) - N", N + 2 * M),
        ("-N + M", M - N),
        ("--N", N),
        ("-(N - 3) * 2", 6 - 2 * N),
        ("N // 2", floordiv(N, 2)),
        ("(N + 1)//2//2", floordiv(floordiv(N + 1, 2), 2)),
        ("N % 8", N - 8 * floordiv(N, 8)),
        ("2*N // M", floordiv(2 * N, M)),
        ("max(N, M, 1)", maximum(N, M, 1)),
        ("MIN(N, 2)", minimum(N, 2)),
        ("bcast(N, M)", broadcast_size(N, M)),
        ("max", of_atom(Symbol("max"))),
        ("max + min(max, 2)", of_atom(Symbol("max")) + minimum(of_atom(Symbol("max")), 2)),
        ("batch_size.0", of_atom(Symbol("batch_size.0"))),
        ("größe", of_atom(Symbol("größe"))),
        ("9223372036854775807", 2**63 - 1),
        ("N - N + 4", 4),
    ],
)
def test_text_is_parsed_as_a_size(text: str, size: Dim) -> None:
    assert zs.Dim(text) == size


@pytest.mark.parametrize(
    ("text", "interval"),
    [
        ("?", (0, None)),
        ("1..8", (1, 8)),
        (" 1 .. 8 ", (1, 8)),
        ("2..", (2, None)),
        ("..4", (0, 4)),
        ("0..", (0, None)),
        ("5..5", (5, 5)),
    ],
)
def test_unnamed_sizes_are_parsed(text: str, interval: tuple[int, int | None]) -> None:
    assert zs.Dim(text).interval == interval


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("N >= 1", N >= 1),
        ("N > 1", N >= 2),
        ("N < M", M >= N + 1),
        ("N != 3", ne(N, 3)),
        ("1 <= N <= 8", all_of([N >= 1, N <= 8])),
        ("N == M == 3", all_of([eq(N, M), eq(M, 3)])),
        ("N == 1 or M == 1 and K == 1", any_of([eq(N, 1), all_of([eq(M, 1), eq(K, 1)])])),
        ("(N == 1 or M == 1) and K == 1", all_of([any_of([eq(N, 1), eq(M, 1)]), eq(K, 1)])),
        ("N == 1 || M == 1 && K == 1", any_of([eq(N, 1), all_of([eq(M, 1), eq(K, 1)])])),
        ("((N)) + 1 == (M)", eq(N + 1, M)),
        ("(N + 1) * 2 == 4", eq(N, 1)),
        ("(((N == 1)))", eq(N, 1)),
        ("N % 8 == 0", eq(N % 8, 0)),
        ("always >= 1", of_atom(Symbol("always")) >= 1),
    ],
)
def test_text_is_parsed_as_a_condition(text: str, condition: zs.Condition) -> None:
    assert zs.Condition.parse(text) == condition


def test_always_and_never_are_parsed() -> None:
    assert zs.Condition.parse("always").always
    assert zs.Condition.parse(" never ").never
    assert zs.Condition.parse("N >= 0").always


@slow
@given(sizes(tuple(Symbol(name) for name in ("N", "M", "seq_len"))))
def test_printed_size_can_be_parsed(twin: Twin) -> None:
    if twin.size.terms:
        assert zs.Dim(str(twin.size)) == twin.size


# What is refused.


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "\n", "+", "N +", "N M", "2N", "N *", "* N", "N ** 2", "N / 2", "2.5", "1e3"),
        *("(N", "N)", "()", "N,", "max(", "max()", "max(N", "max(N,)", "max(N M)", "f(N)"),
        *("-2", "3 - 5", "9223372036854775808", "9" * 30, "9" * 5000, "N // 0", "N % 0", "0 // 0"),
        *("8..1", "1..2..3", "N..8", "...", "-1..3", "??", "1..99999999999999999999"),
        *("²", "²N", "٣", "N + ²", "½", "Ⅷ", "N\x00", "\x1b[31m", "\udcff", "N; M", "N = 1"),
        *(
            "or",
            "and",
            "N == 1",
            "N >= M",
            "not N",
            "N if M else K",
            "lambda: 0",
            "__import__('os')",
        ),
    ],
)
def test_invalid_size_text_is_refused(text: str) -> None:
    with pytest.raises(zs.BroadcastError) as caught:
        zs.Dim(text)
    assert caught.value.reason is Reason.BAD_EXTENT
    message = str(caught.value)
    assert len(message) < 300
    assert all(c == "\n" or c.isprintable() for c in message)


@pytest.mark.parametrize(
    "text",
    [
        *("", "N", "N + 1", "N == ", "== 1", "N == 1 or", "or N == 1", "N == 1 and and M == 1"),
        *("N == 1 M == 1", "(N == 1", "N == 1)", "(N == 1) + 1", "N = 1", "N <> 1", "not N == 1"),
        *("N == ²", "N == 1 | M == 1", "always and N == 1", "N >= M >=", "1..8 == N", "? == 1"),
        *("max(N == 1, 2) == 1", "N // 0 == 1", "N == 99999999999999999999"),
    ],
)
def test_invalid_condition_text_is_refused(text: str) -> None:
    with pytest.raises(zs.BroadcastError):
        zs.Condition.parse(text)


@pytest.mark.parametrize("text", ["N = 16", "N=16", "N >= 1 and M = 2"])
def test_single_equals_sign_gets_a_hint(text: str) -> None:
    with pytest.raises(zs.BroadcastError, match="an equality has two signs, N == 16"):
        zs.plan(("N", 3), (3,), facts=text)
    with pytest.raises(zs.BroadcastError) as refused:
        zs.plan(("N", 3), (3,), facts="N >= ")
    assert "two signs" not in str(refused.value)


@pytest.mark.parametrize("value", [None, 2.5, b"N", ["N"], True, float("nan"), object()])
def test_invalid_values_are_refused(value: object) -> None:
    with pytest.raises(zs.BroadcastError):
        zs.Dim(value)  # type: ignore[arg-type]


def test_length_and_depth_are_bounded() -> None:
    long = "N" * MAX_TEXT
    assert zs.Dim(long) == of_atom(Symbol(long))
    with pytest.raises(zs.BroadcastError, match="characters are too many"):
        zs.Dim(long + "N")
    deep = "(" * MAX_DEPTH + "N" + ")" * MAX_DEPTH
    assert zs.Dim(deep) == N
    with pytest.raises(zs.BroadcastError):
        zs.Dim(f"({deep})")


# Hostile text.


def read_or_refused(read: Callable[[str], T], text: str) -> T | None:
    """What the text says; None if it is refused as it should be."""
    try:
        return read(text)
    except zs.BroadcastError as error:
        refused = error
    assert refused.reason is Reason.BAD_EXTENT
    assert len(str(refused)) < 300
    assert all(c == "\n" or c.isprintable() for c in str(refused))
    return None


def _fill(part: str, between: str = "") -> str:
    return between.join([part] * ((MAX_TEXT - 1) // (len(part) + len(between))))


HOSTILE = [
    _fill("("),
    _fill("(", "") + "N",
    "(" * 300 + "N" + ")" * 300,
    "(" * 30 + "N == 1" + ")" * 30,
    "(" * 31 + "N" + ")" * 31 + " == 1 or " + "(" * 31 + "M",
    _fill("-") + "N",
    _fill("max("),
    "max(" * 31 + "N" + ",M)" * 31,
    _fill("N", "%"),
    _fill("N%M%K%H", "%"),
    "N" + "%7%5%3" * 150,
    "%".join(["N", *(f"s{k}" for k in range(200))]),
    "N" + "//2" * 300,
    "N" + "//M" * 300,
    _fill("(N+1)", "*"),
    _fill("(N+M+K)", "*"),
    _fill("N", "*"),
    _fill("999999999999999999", "*"),
    _fill("999999999999999999*N", "*"),
    "max(" + ",".join(f"s{k}" for k in range(200)) + ")",
    "bcast(" + ",".join(f"s{k}" for k in range(200)) + ")",
]
HOSTILE_CONDITIONS = [
    *(f"{text} == 1" for text in HOSTILE if len(text) < MAX_TEXT - 5),
    *(f"{text[:480]} >= {text[:480]}" for text in HOSTILE),
    _fill("N == 1", " or "),
    " or ".join(f"N == {k}" for k in range(80)),
    " and ".join(f"N != {k}" for k in range(80)),
    " and ".join(f"(N == {k} or M == {k} or K == {k})" for k in range(25)),
    " and ".join(f"(N != M+{k} or N*M >= {k})" for k in range(30)),
    " and ".join(f"s{k} > s{(k + 1) % 60}" for k in range(60)),
    _fill("N<M<K<N<"),
    "N" + " <= M <= N" * 80,
    " and ".join(f"({a}=={b} or {a}==1 or {b}==1)" for a, b in itertools.combinations("abcdef", 2)),
    "bcast(a,b,c,d,e,f,g,h) == max(a,b,c,d,e,f,g,h) and a != b and b != c and c != d",
    "N*N*N + M*M*M == K*K*K and N >= 1 and M >= 1 and K >= 1",
    " and ".join(f"N % {k} == {k - 1}" for k in range(2, 30)),
]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:12])
def test_hostile_sizes_take_bounded_work(text: str) -> None:
    def ask() -> None:
        size = read_or_refused(zs.Dim, text)
        if size is not None:
            assert len(str(size)) < 100_000
            size.interval  # noqa: B018 - computed when looked at
            hash(size)
            size.is_one()

    assert calls_of(ask) < 3_000_000


@pytest.mark.parametrize("text", HOSTILE_CONDITIONS, ids=lambda text: text[:12])
def test_hostile_conditions_take_bounded_work(text: str) -> None:
    def ask() -> None:
        condition = read_or_refused(zs.Condition.parse, text)
        if condition is not None:
            satisfiable(condition)
            satisfiable(complement(condition))
            assert len(str(condition)) < 100_000

    assert calls_of(ask) < 3_000_000


def test_hostile_text_is_simplified_with_bounded_work() -> None:
    for text in HOSTILE_CONDITIONS:
        condition = read_or_refused(zs.Condition.parse, text)
        if condition is not None:
            assert calls_of(lambda: simplified(condition)) < 1_000_000, text  # noqa: B023


@slow
@given(st.text(alphabet="NM012()+-*/%=<>!., \n?²maxbcstorand&|", max_size=40))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    for read in (zs.Dim, zs.Condition.parse):
        size = read_or_refused(read, text)
        assert size is None or str(size).isprintable()


@slow
@given(st.text(max_size=20))
def test_any_characters_are_parsed_or_refused(text: str) -> None:
    size = read_or_refused(zs.Dim, text)
    assert size is None or str(size).isprintable()


def test_text_minus_one_is_an_unnamed_size() -> None:
    assert zs.Dim("-1").interval == (0, None)
    assert zs.plan(("-1", "1..10"), (3, "?")).operands[0] == ("?", "1..10")
