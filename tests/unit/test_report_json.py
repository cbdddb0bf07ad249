"""Reports as JSON, which follows its schema."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reports import KINDS, audit_report, equivalent_reports

from sampled import few
from zerostride.models.findings import Known, Unread, Verdict
from zerostride.models.report_json import _Writer, plain
from zerostride.report import json_text

SCHEMA = Path(__file__).parents[2] / "docs" / "schema" / "report.schema.json"


def test_json_is_an_object_for_one_and_a_list_for_many() -> None:
    one = json.loads(json_text(audit_report()))
    assert one == json.loads(audit_report().to_json())
    many = json.loads(json_text([audit_report(), Unread("b.onnx", "no")]))
    assert many[0] == one
    assert many[1] == {"ok": False, "reason": "bad_input", "detail": "no", "model": "b.onnx"}
    plan = one["findings"][1]["target"]
    assert plan["evidence"]["run"] is True
    assert "ncnn" in plan["evidence"]["source"]


@pytest.mark.parametrize("indent", [None, 2, 4])
def test_streamed_json_equals_the_whole_document(indent: int | None) -> None:
    report = audit_report()
    whole = json.dumps(plain(report.as_dict()), indent=indent, default=str, allow_nan=False)
    assert report.to_json(indent) == whole
    empty = replace(report, findings=())
    assert json.loads(empty.to_json(indent))["findings"] == []


def validator() -> Any:
    library = pytest.importorskip("jsonschema", reason="reports are checked against their schema")
    schema = json.loads(SCHEMA.read_text("utf-8"))
    library.Draft202012Validator.check_schema(schema)
    return library.Draft202012Validator(schema)


@pytest.mark.parametrize("kind", KINDS)
def test_json_follows_its_schema(kind: str) -> None:
    report = replace(KINDS[kind](), baseline=Known(frozenset({0}), ("gone",)))
    for reports in (report, [report, Unread("b.onnx", "no")]):
        validator().validate(json.loads(json_text(reports)))


@pytest.mark.parametrize("target", few(1, ["ncnn", "openvino", "tensorflow"]))
def test_json_of_the_examples_follows_its_schema(target: str) -> None:
    pytest.importorskip("onnx", reason="examples are ONNX files")
    from zerostride.models.audit.many import audit_many

    examples = sorted((SCHEMA.parents[2] / "examples").glob("*.onnx"))
    reports = audit_many(examples, target, jobs=1)
    assert len(reports) > 5
    validator().validate(json.loads(json_text(reports)))


def test_json_of_two_models_follows_its_schema() -> None:
    reports = equivalent_reports()
    for verdict, report in reports.items():
        data = json.loads(json_text(report))
        validator().validate(data)
        assert data["command"] == "equivalent"
        if verdict != "sizes":
            assert data["equivalence"]["verdict"] == verdict
    narrower = json.loads(json_text(reports["sizes"]))["equivalence"]["narrower"]
    assert narrower["error"] == "Infinity"
    wrong = json.loads(json_text(reports["different"]))
    assert wrong["equivalence"]["outputs"][0]["difference"]["sizes"]
    del wrong["equivalence"]["outputs"][0]["region"]
    assert not validator().is_valid(wrong)


def test_schema_can_refuse() -> None:
    check = validator()
    data = json.loads(json_text(audit_report()))
    for wrong in (
        {**data, "schema": 2},
        {**data, "more": 1},
        {key: value for key, value in data.items() if key != "needs"},
        {**data, "findings": [{**data["findings"][0], "verdict": "fine"}]},
        [data, {"ok": False}],
    ):
        assert not check.is_valid(wrong)


def test_schema_lists_every_code() -> None:
    defs = json.loads(SCHEMA.read_text("utf-8"))["$defs"]
    assert set(defs["verdict"]["enum"]) == set(Verdict)
    from zerostride.models.findings import Outcome

    assert set(defs["outcome"]["enum"]) == set(Outcome)


DATA = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(DATA, st.sampled_from([None, 2]))
def test_json_data_is_written_in_json_form(data: Any, indent: int | None) -> None:
    assert _Writer(indent).value(data, 0) == json.dumps(plain(data), indent=indent)
