"""Reports as SARIF 2.1.0, which code hosts and editors show beside the source (OASIS, 2020).

A result has the finding's code as its rule, the model file and the line of PyTorch source as
places, the node as a logical place, and the fingerprint that baselines use. GitHub reads only the
fingerprint `primaryLocationLineHash`, and shows results with equal ones as a single alert. It has
the same digits and a count, since a model has no lines to tell its nodes apart. The message has
the fix: SARIF's own fixes replace text at a column, and a model has none.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib.metadata import version
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from ..models.audit.baseline import Entry, entry_of, entry_of_node, shapes_of
from ..models.bisection import Culprit
from ..models.equivalence import Sameness
from ..models.findings import Check, Finding, Outcome, Report, Unread, Verdict
from ..models.judging import Difference
from ..models.reasons import REASONS
from .bisection import culprit_lines
from .equivalence import unequal
from .plain import checked, finding_text
from .words import OUTCOMES, Reports, listed, shown

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS: Mapping[Verdict, str] = {
    Verdict.DIFFERENT: "error",
    Verdict.REFUSED: "error",
    Verdict.SAME_HERE: "warning",
    Verdict.UNKNOWN: "note",
}
_FINGERPRINT = "zerostride/v1"
_OF_GITHUB = "primaryLocationLineHash"


def sarif(reports: Reports) -> str:
    """A log of one run: findings that are not the same, failed checks, culprits, other outputs."""
    every = listed(reports)
    results = [result for report in every for result in _results(report)]
    ids = sorted({result["ruleId"] for result in results})
    seen: Counter[str] = Counter()
    for result in results:
        result["ruleIndex"] = ids.index(result["ruleId"])
        fingerprints = result["partialFingerprints"]
        digits = fingerprints[_FINGERPRINT]
        seen[digits] += 1
        fingerprints[_OF_GITHUB] = f"{digits}:{seen[digits]}"
    unread = [report for report in every if isinstance(report, Unread)]
    driver = {
        "name": "zerostride",
        "semanticVersion": version("zerostride"),
        "rules": [{"id": rule, "shortDescription": {"text": _RULES[rule]}} for rule in ids],
    }
    invocation = {
        "executionSuccessful": not unread,
        "toolExecutionNotifications": [
            {
                "level": "error",
                "message": {"text": shown(report.detail, 2000)},
                "locations": [{"physicalLocation": _file(report.model)}],
            }
            for report in unread
        ],
    }
    run: dict[str, Any] = {
        "tool": {"driver": driver},
        "invocations": [invocation],
        "results": results,
    }
    targets = sorted({_target(report) for report in every if isinstance(report, Report)})
    if targets:  # GitHub keeps the runs of a commit apart by this id
        run["automationDetails"] = {"id": f"zerostride/{'+'.join(targets)}/"}
    log = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=2, allow_nan=False) + "\n"


#: Every rule by its id: the codes of findings, the outcomes of checks, differences.
_RULES: Mapping[str, str] = {
    **{row.code: row.meaning for row in REASONS},
    **{
        f"verify/{outcome}": f"The engine's answer: {OUTCOMES[outcome][0].lower()}."
        for outcome in Outcome
    },
    **{
        f"bisect/{difference}": f"The result of a node differs: {difference}."
        for difference in Difference
    },
    "equivalent/different": "Two models differ: a run shows it.",
    "equivalent/undecided": "Two models are neither proven to be equal nor seen to differ.",
}


def _results(report: Report | Unread) -> Iterator[dict[str, Any]]:
    if isinstance(report, Unread):
        return
    for check, _ in checked(report):
        if check.outcome not in (Outcome.AGREES, Outcome.NOT_RUN):
            yield _of_check(report, check)
    for culprit in report.bisection.culprits if report.bisection is not None else ():
        yield _of_culprit(report, culprit)
    for verdict, name, lines in unequal(report.equivalence) if report.equivalence else ():
        yield _of_output(report, verdict, name, lines)
    if report.command != "verify":
        accepted = report.baseline.accepted if report.baseline is not None else frozenset()
        for k, finding in enumerate(report.findings):
            if finding.verdict is not Verdict.SAME:
                yield _of_finding(report, finding, accepted=k in accepted)


def _of_finding(report: Report, finding: Finding, *, accepted: bool) -> dict[str, Any]:
    places = [{"physicalLocation": _file(report.model), **_node(finding.node)}]
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "level": _LEVELS[finding.verdict],
        "message": {"text": finding_text(finding)},
        "locations": places,
        **_fingerprint(entry_of(finding, report)),
        "properties": {"target": report.target, "via": report.via, "verdict": finding.verdict},
    }
    if accepted:
        result["suppressions"] = [{"kind": "external", "justification": "in the baseline"}]
    if finding.origin is not None and finding.origin.file and finding.origin.line > 0:
        result["locations"] = [
            {
                "physicalLocation": _file(finding.origin.file, finding.origin.line),
                **_node(finding.node),
            }
        ]
        result["relatedLocations"] = places
    return result


def _of_check(report: Report, check: Check) -> dict[str, Any]:
    words = OUTCOMES[check.outcome][0].lower()
    text = f"{shown(check.op)} {words} on {report.place}: {shown(check.detail)}"
    shapes = " ".join(shapes_of(check.operands))
    entry = entry_of_node(report, check.node, check.op, shapes, check.outcome, "verify")
    return {
        "ruleId": f"verify/{check.outcome}",
        "level": "error",
        "message": {"text": text},
        "locations": [{"physicalLocation": _file(report.model), **_node(check.node)}],
        **_fingerprint(entry),
    }


def _of_culprit(report: Report, culprit: Culprit) -> dict[str, Any]:
    difference, shapes = culprit.judged.difference, " ".join(shapes_of(culprit.inputs))
    entry = entry_of_node(report, culprit.node, culprit.op, shapes, difference, "bisect")
    return {
        "ruleId": f"bisect/{difference}",
        "level": "error",
        "message": {"text": "\n".join(culprit_lines(culprit))},
        "locations": [{"physicalLocation": _file(report.model), **_node(culprit.node)}],
        **_fingerprint(entry),
    }


def _of_output(report: Report, verdict: Sameness, name: str, lines: list[str]) -> dict[str, Any]:
    """An output of two models that are not equal; "" for sizes that only one of them takes."""
    entry = entry_of_node(report, name, "", "", verdict, "equivalent")
    text = f"{shown(report.model)} and {shown(report.target)}: " + "\n".join(lines)
    return {
        "ruleId": f"equivalent/{verdict}",
        "level": "error" if verdict is Sameness.DIFFERENT else "warning",
        "message": {"text": text},
        "locations": [{"physicalLocation": _file(report.model), **_node(name)}],
        **_fingerprint(replace(entry, target=_target(report))),
    }


def _target(report: Report) -> str:
    """The engine, or the name of the second model without its folders."""
    return report.target if report.equivalence is None else PurePath(report.target).name


def _fingerprint(entry: Entry) -> dict[str, Any]:
    """The identity of a result, which is the same in later runs."""
    return {"partialFingerprints": {_FINGERPRINT: entry.fingerprint}}


def _file(path: str, line: int = 1) -> dict[str, Any]:
    """A line of a file; code hosts show nothing without a line, and a model counts as one."""
    name = PurePath(path).as_posix().encode("utf-8", "replace")
    return {"artifactLocation": {"uri": quote(name)}, "region": {"startLine": line}}


def _node(path: str) -> dict[str, Any]:
    """The node as a logical place; the outputs of a whole model have none."""
    return {"logicalLocations": [{"fullyQualifiedName": shown(path)}]} if path else {}
