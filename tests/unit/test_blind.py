"""The campaign that learns engines blind: its comparison can fail."""

from __future__ import annotations

import sys

import pytest
from campaigns import blind
from campaigns.blind import BuiltIn, compared, differ, judge, outcome, words

import zerostride as zs
from zerostride.engines import find_engine
from zerostride.runtimes.learn.space import CRASHED, REFUSED, RESULT, Answer

RIGHT = zs.plan((2, 2), (2,))
LEFT = zs.plan((2, 2), (2,), engine="ncnn")
FAULT = zs.BroadcastError("", reason=zs.Reason.CRASH, silent=True)
REFUSAL = zs.BroadcastError("", reason=zs.Reason.DTYPE)


def test_outcomes_differ_by_kind_and_alignment() -> None:
    assert differ(RIGHT, LEFT)
    assert differ(RIGHT, REFUSAL)
    assert differ(FAULT, REFUSAL)
    assert not differ(RIGHT, RIGHT)
    assert not differ(REFUSAL, zs.BroadcastError("", reason=zs.Reason.RANK))


def test_the_engine_says_who_is_right() -> None:
    answer = Answer(RESULT, lambda plan: plan == RIGHT)
    assert judge(RIGHT, LEFT, [answer]) == "learnt"
    assert judge(LEFT, RIGHT, [answer]) == "hand-made"
    assert judge(FAULT, RIGHT, [answer]) == "hand-made"
    assert judge(LEFT, REFUSAL, [answer]) == "neither"
    assert judge(REFUSAL, RIGHT, [Answer(REFUSED)]) == "learnt"
    assert judge(REFUSAL, FAULT, [Answer(CRASHED)]) == "hand-made"


def test_a_row_is_asked_about_element_types() -> None:
    litert, openvino = find_engine("litert"), find_engine("openvino")
    assert words(outcome(litert, "add", "int8", ((2,), (2,)))) == "fault (crash)"
    assert words(outcome(litert, "add", "uint64", ((2,), (2,)))) == "refusal (dtype)"
    assert words(outcome(litert, "add", "float32", ((2,), (2,)))) == "result"
    assert words(outcome(openvino, "prelu", "int32", ((1,), (2,)))) == "refusal (one_way)"
    assert words(outcome(openvino, "prelu", "float32", ((1,), (2,)))) == "fault (one_way)"


def test_numpy_is_learnt_as_its_row_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blind, "names_of", lambda engine: {"add": "add"})
    with BuiltIn("numpy", sys.executable) as process:
        assert isinstance(process, BuiltIn)
        report = compared(process, cases=60, seconds=600.0, seed=1)
    assert report["questions"] > 50
    assert report["cases"] + report["unasked"] == 60
    assert all(group["learnt"] != "result" for group in report["groups"])
