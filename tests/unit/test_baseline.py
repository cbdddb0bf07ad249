"""Baselines: equal findings, new findings, stale entries, and bad files."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from reports import ROWS, audit_report, audited

import zerostride as zs
from zerostride.errors import ZerostrideError
from zerostride.models.audit.baseline import Baseline, entry_of, read_baseline
from zerostride.models.findings import Finding, Report, Unread, Verdict

WRONG = ("wrong", "Add", ((5, 5), (5,)))
FINE = ("fine", "Add", ((5, 5), (1, 5)))


def fingerprint(report: Report, **changes: Any) -> str:
    finding = replace(report.findings[0], **changes)
    return entry_of(finding, report).fingerprint


def test_fingerprint_depends_on_the_findings_meaning() -> None:
    report = audited(WRONG)
    here = fingerprint(report)
    assert len(here) == 16
    same = [
        replace(report, model="/elsewhere/sub/made.onnx"),
        replace(report, release="another"),
        replace(report, notes=("a note",)),
    ]
    assert {fingerprint(one) for one in same} == {here}
    # Neither the sentence nor the names of operands: an exporter renumbers them.
    assert fingerprint(report, message="other words", notes=("x",), witness=None) == here
    renamed = tuple((f"new_{name}", shape) for name, shape in report.findings[0].operands)
    assert fingerprint(report, operands=renamed) == here
    others = [
        fingerprint(replace(report, model="other.onnx")),
        fingerprint(replace(report, target="mnn")),
        fingerprint(replace(report, via="pnnx")),
        fingerprint(report, node="other"),
        fingerprint(report, op="Mul"),
        fingerprint(report, verdict=Verdict.REFUSED),
        fingerprint(report, reason="silent"),
        fingerprint(report, operands=(("x", (5, 5)), ("y", (5, 1)))),
        fingerprint(report, operands=(("x", (5, "N")), ("y", (5,)))),
        fingerprint(report, operands=(("x", (5, None)), ("y", (5,)))),
        fingerprint(report, operands=(("x", None), ("y", (5,)))),
    ]
    assert len({here, *others}) == len(others) + 1


def test_another_axis_of_the_models_rule_is_another_finding() -> None:
    report = audited(WRONG)
    plans = [zs.plan((5, 5, 5), (5,), rule="pdpd", axis=axis) for axis in (0, 1)]
    first, second = (fingerprint(report, source=plan) for plan in plans)
    assert first != second


def test_fingerprint_is_independent_of_other_nodes() -> None:
    alone = audited(WRONG)
    (finding,) = [one for one in audited(FINE, *ROWS[3:], WRONG).findings if one.node == "wrong"]
    assert entry_of(finding, alone) == entry_of(alone.findings[0], alone)
    # A node without a name is called by its position.
    first, later = (audited((f"Add_{k}", *WRONG[1:])) for k in (3, 17))
    assert fingerprint(first) == fingerprint(later)
    assert fingerprint(audited(("Add_x", *WRONG[1:]))) != fingerprint(first)


def judged(baseline: Baseline, *reports: Report | Unread) -> list[Report]:
    return [one for one in baseline.judged(reports) if isinstance(one, Report)]


def fresh(report: Report) -> list[Finding]:
    return list(report.fresh)


def test_only_new_findings_count() -> None:
    report = audited(WRONG, FINE)
    known = Baseline({}).updated([report])
    (same,) = judged(known, report)
    assert fresh(same) == []
    assert same.ok is False, "a baseline accepts, it does not make the same"
    more = audited(WRONG, FINE, ("new", *WRONG[1:]))
    (answer,) = judged(known, more)
    assert [finding.node for finding in fresh(answer)] == ["new"]
    assert answer.baseline is not None
    assert answer.baseline.accepted == {0}
    assert answer.baseline.stale == ()


def test_equal_entries_accept_as_many_findings() -> None:
    twice = audited(("Add_1", *WRONG[1:]), ("Add_2", *WRONG[1:]))
    known = Baseline({}).updated([twice])
    assert list(known.entries.values()) == [2]
    thrice = audited(*((f"Add_{k}", *WRONG[1:]) for k in range(3)))
    (answer,) = judged(known, thrice)
    assert len(fresh(answer)) == 1
    (answer,) = judged(known, audited(("Add_7", *WRONG[1:])))
    assert answer.baseline is not None
    assert len(answer.baseline.stale) == 1
    assert "(1 times)" not in answer.baseline.stale[0]


def test_stale_entry_is_named_if_its_model_was_audited() -> None:
    a, b = audited(WRONG, path="x/a.onnx"), audited(WRONG, path="b.onnx")
    known = Baseline({}).updated([a, b])
    fixed = audited(FINE, path="y/a.onnx")
    (answer,) = judged(known, fixed)
    assert answer.baseline is not None
    assert answer.baseline.stale == (
        "a.onnx on ncnn: different Add wrong (5,5) (5) [other_alignment]",
    )
    # Another target, or a model that could not be read, is no sign that a finding is gone.
    (answer,) = judged(known, audited(FINE, path="a.onnx", target="mnn"))
    assert answer.baseline is not None
    assert answer.baseline.stale == ()
    (answer,) = judged(known, fixed, Unread("z/a.onnx", "truncated"))
    assert answer.baseline is not None
    assert answer.baseline.stale == ()


def test_update_keeps_other_models_and_targets() -> None:
    a, b = audited(WRONG, path="a.onnx"), audited(WRONG, path="b.onnx")
    known = Baseline({}).updated([a, b])
    updated = known.updated([audited(FINE, path="a.onnx")])
    assert {entry.model for entry in updated.entries} == {"b.onnx"}
    assert known.updated([Unread("a.onnx", "no")]).entries == known.entries
    other = known.updated([audited(WRONG, path="a.onnx", target="tensorflow")])
    assert len(other.entries) == 2  # TensorFlow means the same


def test_written_baseline_can_be_read_back(tmp_path: Path) -> None:
    hostile = audited(("\ud800 \u2028 \x00 \"'<", *WRONG[1:]), path="\ud800.onnx")
    known = Baseline({}).updated([audit_report(), hostile])
    path = tmp_path / "known.json"
    path.write_text(known.to_json(), "ascii")
    assert read_baseline(path).entries == known.entries
    assert read_baseline(path).to_json() == known.to_json()
    lines = [line for line in known.to_json().splitlines() if "fingerprint" in line]
    assert len(lines) == len(known.entries), "a finding is a line of a diff"
    path.write_text(Baseline({}).to_json())
    assert read_baseline(path).entries == {}


ROW = {
    "model": "m.onnx",
    "target": "ncnn",
    "via": "",
    "node": "n",
    "op": "Add",
    "shapes": "(5,5) (5)",
    "verdict": "different",
    "reason": "silent",
}
BAD = {
    "empty": ("", "not a baseline"),
    "no JSON": ("nonsense", "not a baseline"),
    "bytes": (b"\xff\xfe\x00", "not a baseline"),
    "a list": ("[]", 'no list "findings"'),
    "a report": ('{"schema": 1, "findings": []}', "version None"),
    "deep": ("[" * 200_000, "not a baseline"),
    "a long number": ('{"baseline": 1' + "0" * 10_000 + ', "findings": []}', "not a baseline"),
    "newer": ('{"baseline": 2, "findings": []}', "reads version 1"),
    "true": ('{"baseline": true, "findings": []}', "version True"),
    "no findings": ('{"baseline": 1}', 'no list "findings"'),
    "findings of text": ('{"baseline": 1, "findings": "x"}', 'no list "findings"'),
    "not an object": ('{"baseline": 1, "findings": [1]}', "finding 1 is no object"),
    "missing": ([ROW, {**ROW, "node": None}], 'finding 2: "node" has to be text'),
    "a number": ([{**ROW, "op": 5}], 'finding 1: "op" has to be text'),
    "endless": ([{**ROW, "op": "x" * 200_000}], 'finding 1: "op" has to be text'),
    "verdict": ([{**ROW, "verdict": "fine"}], '"verdict" has to be one of same, '),
    "count": ([{**ROW, "count": 0}], '"count" has to be'),
    "count true": ([{**ROW, "count": True}], '"count" has to be'),
    "count huge": ([{**ROW, "count": 10**30}], '"count" has to be'),
}


@pytest.mark.parametrize("kind", BAD)
def test_invalid_file_is_one_line(kind: str, tmp_path: Path) -> None:
    content, message = BAD[kind]
    if isinstance(content, list):
        content = json.dumps({"baseline": 1, "findings": content})
    path = tmp_path / "known.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ZerostrideError) as caught:
        read_baseline(path)
    assert message in str(caught.value)
    assert str(caught.value).startswith(str(path))
    assert len(str(caught.value)) < 600
    assert str(caught.value).isprintable()


def test_missing_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ZerostrideError, match=r"nope\.json: there is no such baseline yet"):
        read_baseline(tmp_path / "nope.json")
    with pytest.raises(ZerostrideError, match="directory"):
        read_baseline(tmp_path)


def test_fingerprint_in_the_file_is_not_trusted(tmp_path: Path) -> None:
    path = tmp_path / "known.json"
    path.write_text(json.dumps({"baseline": 1, "findings": [{**ROW, "fingerprint": "0" * 16}]}))
    (entry,) = read_baseline(path).entries
    assert entry.fingerprint != "0" * 16
