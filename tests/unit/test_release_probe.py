"""Measuring another release: what pip installs, and the rows that a probe proposes."""

from __future__ import annotations

import pytest

from zerostride.engines import ENGINES
from zerostride.engines.releases import releases_of
from zerostride.errors import BadInput
from zerostride.runtimes.probe import release
from zerostride.runtimes.probe.case import Case
from zerostride.runtimes.probe.conformance import EngineReport, Judged, JudgedCase
from zerostride.system import children


@pytest.mark.parametrize(
    ("engine", "asked", "expected"),
    [
        ("ncnn", "20240820", "ncnn==1.0.20240820"),
        ("ncnn", "1.0.20240820", "ncnn==1.0.20240820"),
        ("onnxruntime", "1.29.0", "onnxruntime==1.29.0"),
        ("mnn", "3.2.0", "MNN==3.2.0"),
    ],
)
def test_requirement_names_the_wheel(engine: str, asked: str, expected: str) -> None:
    assert release.requirement(ENGINES[engine], asked) == expected


def test_failing_installation_is_bad_input() -> None:
    with pytest.raises(BadInput, match="no such wheel"):
        release.run_words(children.source("sys.exit('no such wheel')"))


def disagreement(outcome: str, op_type: int) -> JudgedCase:
    case = Case("ncnn", "BinaryOp", (2, 3), (1, 3), attrs={"op_type": op_type})
    return JudgedCase(case, Judged.DISAGREE, "(2, 3) from (2, 3), (1, 3)", outcome)


def test_unmeasured_release_that_agrees_is_only_listed() -> None:
    assert release.proposal(EngineReport("ncnn", "1.0.20250428")) == (
        'MEASURED["ncnn"]: add "20250428"'
    )


def test_measured_and_newer_releases_propose_nothing() -> None:
    assert "20250503" in releases_of(ENGINES["ncnn"])
    assert release.proposal(EngineReport("ncnn", "1.0.20250503")) == ""
    assert release.proposal(EngineReport("ncnn", "1.0.20990101")) == ""


def test_disagreements_become_a_change_for_each_kind() -> None:
    report = EngineReport("ncnn", "1.0.20250428")
    for outcome in ("gave (2, 3)", "gave (2, 3)", "refused: extract returned status -100"):
        report.add(disagreement(outcome, 0))
    text = release.proposal(report)
    assert text.count("    Change(") == 2
    assert 'CHANGES["ncnn"]: add, for 2 cases of BinaryOp' in text
    assert text.count('"20250503"') == 2  # the next measured release
    assert "ncnn 20250428, run: 3 generated cases by value" in text
    assert text.count("silent=frozenset()") == 1
