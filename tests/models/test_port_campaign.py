"""The campaign of random graphs runs and finds errors."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import onnx
import pytest
from campaigns.__main__ import main
from campaigns.models.port_graphs import random_model
from campaigns.models.ports import _differs

import zerostride.models.port as porting


def test_same_seed_draws_the_same_valid_models() -> None:
    for turn in range(30):
        model = random_model(7, turn)
        onnx.checker.check_model(model)
        assert model == random_model(7, turn)
    assert random_model(7, 0) != random_model(8, 0)


def test_few_random_graphs_are_ported(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["port", "--graphs", "8", "--seed", "3", "--json", "--target", "ncnn"]
    assert main([*words, "--target", "stablehlo"]) == 0
    tallies = json.loads(capsys.readouterr().out)
    assert [tally["target"] for tally in tallies] == ["ncnn", "stablehlo"]
    assert all(tally["graphs"] == 8 and not tally["wrong"] for tally in tallies)
    assert sum(sum(tally["rewrites"].values()) for tally in tallies) > 10
    assert main(["port", "--graphs", "1", "--target", "nothing"]) == 2


def test_port_without_a_reason_is_wrong(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from dataclasses import replace

    whole = porting.port

    def silent(*words: Any, **more: Any) -> Any:
        report = whole(*words, **more)
        bare = tuple(replace(finding, notes=()) for finding in report.findings)
        return replace(report, findings=bare)

    monkeypatch.setattr(porting, "port", silent)
    assert main(["port", "--graphs", "8", "--seed", "3", "--target", "ncnn"]) == 1
    assert "left without a reason" in capsys.readouterr().out


def test_different_results_are_found() -> None:
    a = {"y": np.array([1.0, np.nan], np.float32)}
    assert _differs(a, {"y": a["y"].copy()}, exact=True) == ""
    assert "numbers" in _differs(a, {"y": a["y"] + 1}, exact=True)
    assert "numbers" in _differs(a, {"y": a["y"] + 1}, exact=False)
    assert _differs(a, {"y": a["y"] * np.float32(1 + 1e-6)}, exact=False) == ""
    assert "became" in _differs(a, {"y": a["y"].reshape(1, 2)}, exact=True)
    assert "outputs" in _differs(a, {"z": a["y"]}, exact=True)
    assert "does not take" in _differs(a, None, exact=False)
    assert _differs(None, None, exact=False) == ""
    truth, other = {"y": np.array([True] * 20)}, {"y": np.array([True] * 19 + [False])}
    assert "numbers" in _differs(truth, other, exact=False)
    assert _differs(truth, other, exact=False, half=True) == ""
    assert "numbers" in _differs(truth, {"y": ~truth["y"]}, exact=False, half=True)
