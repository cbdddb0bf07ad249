"""Shape inference of other tools, and a judge that finds wrong answers.

The whole: ``python -m campaigns inference --cases 5000``.
"""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from campaigns.shapes.expressions import expression
from campaigns.shapes.inference import (
    FIRST,
    LOOSER,
    UNKNOWNS,
    WRONG,
    generate,
    holds,
    judge,
    measure,
    truth,
)
from campaigns.shapes.inference_report import run
from campaigns.shapes.inferrers import (
    OPS,
    UNKNOWN,
    Answer,
    Asked,
    Claim,
    NotInferred,
    Tool,
    ask_openvino,
    ask_zerostride,
    name,
    number,
    onnx_claim,
    tools,
    unknowns,
)

pytestmark = pytest.mark.conformance

CASES = 300


def add(first: str, second: str, rule: str = "numpy") -> Asked:
    """The sum of two shapes, written as ``"N, 1"``."""
    shapes = (tuple(s.strip() for s in text.split(",") if s.strip()) for text in (first, second))
    return Asked("add", rule, *shapes)


def test_zerostride_is_never_wrong_and_never_looser() -> None:
    pytest.importorskip("openvino", reason="it says what pdpd gives")
    ours, *others = measure(tools(), list(generate(CASES, 1)))
    assert holds(ours), "\n".join([*ours.behind, *ours.examples.values()])
    assert ours.cases == CASES
    assert ours.tight > CASES * 0.95
    assert any(other.looser for other in others), "the cases tell nobody apart"


def test_zerostride_shows_the_name_of_equal_sizes() -> None:
    asked = add("?", "N", "none")
    assert not judge(asked, ask_zerostride(asked))


def test_same_seed_draws_the_same_cases_of_every_op() -> None:
    pytest.importorskip("openvino", reason="it says what pdpd gives")
    cases = list(generate(CASES, 5))
    assert cases == list(generate(CASES, 5))
    assert cases != list(generate(CASES, 6))
    assert len(set(cases)) == CASES
    assert cases[: len(FIRST)] == list(FIRST)
    assert {(case.op, case.rule) for case in cases} == set(OPS)
    assert max(len(unknowns(case)) for case in cases) == UNKNOWNS
    exist = sum(truth(case).rank is not None for case in cases)
    assert CASES * 0.7 < exist < CASES


#: Question, planted answer, and the kinds of flaws that are to be found.
PLANTED: list[tuple[Asked, Answer, list[str]]] = [
    (add("1", "N"), (name("N"),), []),
    (add("1", "N"), (UNKNOWN,), ["name"]),
    (add("1", "N"), (number(1),), ["wrong number"]),
    (add("1", "N"), None, ["rank"]),
    (add("1", "N"), (number(1), name("N")), ["wrong rank"]),
    (add("1", "N"), NotInferred("no"), ["refuses"]),
    (add("1", "0"), (number(0),), []),
    (add("1", "0"), (number(1),), ["wrong number"]),
    (add("1", "0"), (UNKNOWN,), ["number"]),
    (add("N", "5"), (number(5),), []),
    (add("N", "5"), (name("N"),), ["wrong name"]),
    (add("N", "M"), (name("N"),), ["wrong name"]),
    (add("N", "M"), (UNKNOWN,), ["expression"]),
    (add("N", "M"), (Claim(value=lambda v: v["N"] if v["M"] == 1 else v["M"]),), []),
    (add("N", "M"), (Claim(value=lambda v: max(v["N"], v["M"])),), ["wrong name"]),
    (add("1", "1..8"), (Claim(1, 8),), []),
    (add("1", "1..8"), (Claim(0, 8),), ["bounds"]),
    (add("1", "1..8"), (Claim(1, None),), ["bounds"]),
    (add("1", "1..8"), (Claim(2, 8),), ["wrong bounds"]),
    (add("1", "1..8"), (Claim(1, 7),), ["wrong bounds"]),
    (add("2..", "?"), (Claim(2, None),), []),
    (add("2..", "?"), (UNKNOWN,), ["bounds"]),
    (add("N, N", "5, 1"), (number(5), Claim(1, 5, lambda v: v["N"])), []),
    (add("N, N", "5, 1"), (number(5), name("N")), ["bounds"]),
    (add("N, N", "5, 1"), (UNKNOWN, UNKNOWN), ["number", "name"]),
    (add("2", "5"), NotInferred("no"), []),
    (add("2", "5"), (number(5),), ["accepts"]),
    (add("2", "5"), None, ["silent"]),
    (add("N, N", "2, 5", "none"), (name("N"), name("N")), ["accepts"]),
    (add("?", "N", "none"), (Claim(value=lambda v: v["x[0]"], named=False),), ["name"]),
    (add("", ""), (), []),
    (Asked("broadcast", "numpy", ("N",), ("1",)), (number(1),), []),
    (Asked("broadcast", "numpy", ("2",), ("5",)), (number(5),), ["accepts"]),
    (Asked("broadcast", "explicit", ("2",), ("2", "5"), axes=(0,)), NotInferred("no"), ["refuses"]),
    (Asked("add", "pdpd", ("2", "5"), ("2",), axis=0), (number(2), number(5)), []),
    (Asked("add", "pdpd", ("2", "5"), ("2",), axis=1), (number(2), number(5)), ["accepts"]),
]


# Numbered: an answer's text has the address of a function.
@pytest.mark.parametrize(("asked", "answer", "kinds"), PLANTED, ids=range(len(PLANTED)))
def test_judge_finds_a_planted_answer(asked: Asked, answer: Answer, kinds: list[str]) -> None:
    if asked.rule == "pdpd":
        pytest.importorskip("openvino")
    outcome = judge(asked, answer)
    assert [flaw.kind for flaw in outcome] == kinds
    assert {flaw.kind for flaw in outcome} <= {*WRONG, *LOOSER}


def test_tool_without_bounds_is_asked_without_bounds() -> None:
    told: list[Asked] = []

    def ask(asked: Asked) -> Answer:
        told.append(asked)
        return (UNKNOWN,)

    case = add("1", "1..8")
    with_bounds, without = measure([Tool("with", ask, bounds=True), Tool("without", ask)], [case])
    assert told == [case, add("1", "?")]
    assert (with_bounds.looser, without.tight) == (1, 1)


def test_looser_answer_is_counted_even_beside_a_wrong_one() -> None:
    wrong = Tool("wrong", lambda asked: (number(7),))
    loose = Tool("loose", lambda asked: (UNKNOWN,))
    tight = Tool("tight", lambda asked: (name("N"),))
    tallies = measure([wrong, loose, tight], [add("1", "N")])
    assert [(t.tight, t.looser, t.wrong, len(t.behind)) for t in tallies] == [
        (0, 0, 1, 1),
        (0, 1, 0, 1),
        (1, 0, 0, 0),
    ]
    assert [holds(tally) for tally in tallies] == [False, False, True]
    assert "behind loose, tight" in tallies[0].behind[0]


def test_command_fails_if_zerostride_is_wrong_or_looser(
    capsys: pytest.CaptureFixture[str],
) -> None:
    other = Tool("other", ask_zerostride, bounds=True)
    blind = Tool("zerostride", lambda asked: None, bounds=True)
    assert run(20, 0, True, [blind, other]) == 1
    assert json.loads(capsys.readouterr().out)["ok"] is False
    right = Tool("zerostride", ask_zerostride, bounds=True)
    assert run(20, 0, True, [right, replace(blind, name="other")]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["ok"] is True
    assert [tool["cases"] for tool in document["tools"]] == [
        sum(right.has(case) for case in generate(20, 0))
    ] * 2
    assert run(20, 0, False, [blind, other]) == 1
    assert "behind other" in capsys.readouterr().out
    assert run(20, 0, True, [right]) == 2


def test_invented_names_count_as_no_claim() -> None:
    names = frozenset({"N", "M"})
    assert onnx_claim("unk__0", names).value is None
    assert onnx_claim("N + unk__0", names).value is None


def test_openvino_keeps_a_name_beside_a_size_without_symbol() -> None:
    pytest.importorskip("openvino")
    asked = add("N", "?")
    assert not judge(asked, ask_openvino(asked))
    assert [flaw.kind for flaw in judge(asked, ask_openvino(asked, every=False))] == ["wrong name"]


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("2*N + floor(M/2)", 8),
        ("ceiling(M/2) - 1", 2),
        ("Max(1, N - 2*M)", 1),
        ("-(-M // 2)", 3),
        ("floor(N/2 + M/2) % 3", 1),
        ("N + K", None),
        ("N.real", None),
        ("__import__('os')", None),
        ("N +", None),
        ("N**N", None),
    ],
)
def test_expressions_evaluate_to_numbers_or_nothing(text: str, size: int | None) -> None:
    function = expression(text, frozenset({"N", "M"}))
    assert (None if function is None else function({"N": 3, "M": 5})) == size


def test_openvino_symbols_are_read_as_names() -> None:
    pytest.importorskip("openvino")
    answer = ask_openvino(add("N, 1", "1, M"))
    assert isinstance(answer, tuple)
    assert [str(claim) for claim in answer] == ["N", "M"]
    assert not judge(add("N, 1", "1, M"), answer)
