"""A finding's labelled parts, which every form of a report prints, and the codes of reasons."""

from __future__ import annotations

import hashlib
import html as markup
import json

import pytest
from reports import audit_report, audited

from zerostride.errors import Reason
from zerostride.models.reasons import REASONS, Cause, code_of
from zerostride.report import finding_text, html, markdown
from zerostride.report.sheet import WHERE, Sheet

#: Codes that were added since.
LATER = frozenset({"ZS116", "ZS117", "ZS118", "ZS119", "ZS227", "ZS228"})
#: Codes and names as they were given out. A row is added, and none is changed.
GIVEN_OUT = {101: "same_plan", 103: "size_trap", 107: "silent", 115: "layout", 226: "plugin"}
GIVEN_OUT |= {118: "accident", 119: "outer_growth", 227: "limit", 228: "not_understood"}


def test_every_reason_has_one_code() -> None:
    names = [str(row.name) for row in REASONS]
    assert sorted(names) == sorted([*map(str, Cause), *map(str, Reason)])
    assert len({row.code for row in REASONS}) == len(REASONS)
    for row in REASONS:
        assert code_of(row.name) == row.code
        assert row.meaning.endswith(".")
        assert "\n" not in row.meaning
    for number, name in GIVEN_OUT.items():
        assert code_of(name) == f"ZS{number}"
    first = [row for row in REASONS if row.code not in LATER]
    listed = "".join(f"{row.code}{row.name}" for row in first)
    assert hashlib.sha256(listed.encode()).hexdigest()[:16] == "da03ce1a35cd1c57", (
        "a code has changed"
    )


def test_finding_has_the_code_of_its_reason() -> None:
    for finding in audit_report().findings:
        assert finding.code == code_of(finding.reason)
    data = json.loads(audit_report().to_json())
    assert [finding["code"] for finding in data["findings"][1:4]] == ["ZS104", "ZS104", "ZS103"]


def test_every_form_prints_the_sections() -> None:
    report = audit_report()
    page, table = html(report), markdown(report)
    checked = 0
    for finding in (one for one in report.fresh if one.node != "wrong_again"):  # grouped
        sheet = Sheet(finding, report.target)
        told = finding_text(finding)
        for section in sheet.sections:
            checked += 1
            assert markup.escape(section.spans[0][0], quote=False) in page
            if section.label != WHERE:
                assert f"  {section.label}: {section.text}" in told
        assert not sheet.fix or sheet.fix in markup.unescape(table)
    assert checked == 8


def test_equal_plans_are_drawn_once_and_whole() -> None:
    # The two plans are equal, and what is said of them differs in length.
    (trap,) = audited(("here", "Mul", ((3, 5), (5,)))).findings
    drawings = Sheet(trap, "ncnn").drawings
    assert [drawing.title for drawing in drawings] == ["in the model and on ncnn"]
    told = finding_text(trap)
    assert told.count("in the model and on the target:") == 1
    for line in drawings[0].lines()[1:]:
        assert line in told


@pytest.mark.parametrize("target", ["ncnn", "openvino"])
def test_divergence_has_its_source(target: str) -> None:
    from zerostride.engines import ENGINES

    shapes = {"ncnn": ((5, 5), (5,)), "openvino": ((2,) * 13, (1,) * 13)}[target]
    (finding,) = audited(("n", "Add", shapes), target=target).findings
    rows = finding.divergences
    assert all(row in ENGINES[target].divergences for row in rows)
    assert bool(rows) == (target == "openvino")
    sources = Sheet(finding, target).sources
    for row in rows:
        assert row.text in finding.message
        assert any(row.source == source.source for source in sources)
