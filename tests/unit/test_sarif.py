"""Reports as SARIF: what a code host or an editor reads of them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("onnx", reason="the models are ONNX files")

from onnx import parser
from sarif_pydantic import Sarif

import zerostride as zs
from zerostride.models.audit.baseline import Baseline, entry_of
from zerostride.models.bisection import Bisection, Culprit
from zerostride.models.equivalence import Sameness
from zerostride.models.findings import Check, Outcome, Unread, Verdict
from zerostride.models.ir.origin import Origin
from zerostride.models.judging import Difference, Judged
from zerostride.report.files import form_of
from zerostride.report.sarif import sarif

EXAMPLES = Path(__file__).parents[2] / "examples"


def run_of(reports: Any) -> dict[str, Any]:
    """The only run of a log, after the package of typed objects has read it."""
    text = sarif(reports)
    Sarif.model_validate_json(text)
    (run,) = json.loads(text)["runs"]
    result: dict[str, Any] = run
    return result


@pytest.fixture(scope="module")
def report() -> Any:
    return zs.audit(EXAMPLES / "tiny_vision.onnx", "ncnn", via="none")


def test_findings_are_results_under_their_codes(report: Any) -> None:
    run = run_of(report)
    findings = [one for one in report.findings if one.verdict is not Verdict.SAME]
    assert [result["ruleId"] for result in run["results"]] == [one.code for one in findings]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert rules == sorted({one.code for one in findings})
    for result, finding in zip(run["results"], findings, strict=True):
        assert rules[result["ruleIndex"]] == finding.code
        assert finding.message in result["message"]["text"]
        (place,) = result["locations"]
        assert place["logicalLocations"] == [{"fullyQualifiedName": finding.node}]
        assert place["physicalLocation"]["artifactLocation"]["uri"].endswith("tiny_vision.onnx")
        fingerprint = entry_of(finding, report).fingerprint
        assert result["partialFingerprints"]["zerostride/v1"] == fingerprint
    levels = {result["properties"]["verdict"]: result["level"] for result in run["results"]}
    assert levels == {"different": "error", "refused": "error", "same_here": "warning"}


def test_a_line_of_source_comes_first(report: Any) -> None:
    origin = Origin("encoder", "aten.add.Tensor", "my model.py", 37, "x + self.bias")
    finding = replace(report.worst()[0], origin=origin, source_fix="x + self.bias[:, None]")
    (result,) = run_of(replace(report, findings=(finding,)))["results"]
    place = result["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": "my%20model.py"}, "region": {"startLine": 37}}
    assert len(result["relatedLocations"]) == 1
    assert "x + self.bias[:, None]" in result["message"]["text"]


def test_known_findings_are_suppressed(report: Any) -> None:
    (judged,) = Baseline({}).updated([report]).judged([report])
    for result in run_of(judged)["results"]:
        assert result["suppressions"] == [{"kind": "external", "justification": "in the baseline"}]


def test_checks_that_fail_and_models_that_were_not_read(report: Any) -> None:
    checks = (Check("", "y", (), Outcome.DIFFERS, "1 of 2"), Check("", "z", (), Outcome.AGREES))
    verified = replace(report, command="verify", checks=checks)
    run = run_of([verified, Unread("no\x1b.onnx", "no\x1b.onnx: not there")])
    (result,) = run["results"]
    assert result["ruleId"] == "verify/differs"
    assert "y" in result["message"]["text"]
    (invocation,) = run["invocations"]
    assert not invocation["executionSuccessful"]
    (notification,) = invocation["toolExecutionNotifications"]
    assert notification["message"]["text"] == "no\\x1b.onnx: not there"


def test_github_sees_every_result_as_an_alert_of_its_own(report: Any) -> None:
    def alerts(reports: Any) -> list[str]:
        results = run_of(reports)["results"]
        return [result["partialFingerprints"]["primaryLocationLineHash"] for result in results]

    check = Check("n", "Add", (("x", (2,)), ("y", (2,))), Outcome.DIFFERS, "1 of 2")
    others = (replace(check, node="m"), replace(check, op="Mul"), replace(check, operands=()))
    checks = (check, *others, replace(check, outcome=Outcome.CRASHED), check)
    verified = replace(report, command="verify", checks=checks)
    both = alerts([report, verified])
    assert len(both) == len(set(both)) > len(checks)
    assert alerts([report, replace(verified, release="other")]) == both, "a later run's are equal"
    wrong = replace(check, detail="2 of 2", error=2.0, cached=True)
    assert alerts(replace(verified, checks=(wrong,))) == alerts(replace(verified, checks=(check,)))


def test_culprits_of_a_bisection_are_results(report: Any) -> None:
    judged = Judged(Difference.NUMBERS, 1.0, 2, 4, "[0] is 1, expected 2")
    culprit = Culprit("n\x1b", "Add", ("n",), "y", "out0", (("x", (2,)),), 1.0, judged)
    bisected = replace(
        report, command="bisect", findings=(), bisection=Bisection((), (culprit, culprit))
    )
    run = run_of(bisected)
    assert [result["ruleId"] for result in run["results"]] == ["bisect/numbers"] * 2
    first, second = (result["partialFingerprints"] for result in run["results"])
    assert first["zerostride/v1"] == second["zerostride/v1"]
    assert first["primaryLocationLineHash"] != second["primaryLocationLineHash"]
    assert "2 of 4 numbers differ; [0] is 1" in run["results"][0]["message"]["text"]
    (place,) = run["results"][0]["locations"]
    assert place["logicalLocations"] == [{"fullyQualifiedName": "n\\x1b"}]


def test_outputs_of_two_models_that_are_not_equal_are_results() -> None:
    def model(outputs: str) -> Any:
        text = '<ir_version: 8, opset_import: ["" : 17]> g (float[N,4] x)'
        return parser.parse_model(f"{text} => (float[N,4] y, float[N,4] w) {outputs}")

    one = model("{ y = Relu(x) w = Tanh(x) }")
    other = model("{ y = Relu(x) w = Softmax(x) }")
    compared = zs.equivalent(one, other)
    (result,) = run_of(compared)["results"]
    assert (result["ruleId"], result["level"]) == ("equivalent/different", "error")
    assert result["locations"][0]["logicalLocations"] == [{"fullyQualifiedName": "w"}]
    assert compared.equivalence.outputs[1].difference.detail in result["message"]["text"]
    assert not run_of(zs.equivalent(one, one))["results"]
    moved = run_of(replace(compared, target=f"elsewhere/{compared.target}"))
    assert moved["results"][0]["partialFingerprints"] == result["partialFingerprints"]
    outputs = [replace(o, verdict=Sameness.UNDECIDED) for o in compared.equivalence.outputs]
    undecided = replace(compared.equivalence, outputs=tuple(outputs))
    results = run_of(replace(compared, equivalence=undecided))["results"]
    assert [one["ruleId"] for one in results] == ["equivalent/undecided"] * 2
    assert {one["level"] for one in results} == {"warning"}


def test_a_report_file_may_be_sarif() -> None:
    assert form_of("out/findings.SARIF") is sarif
