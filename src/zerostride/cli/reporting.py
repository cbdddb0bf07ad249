"""Shared by commands that end in reports: report files, verdicts that fail, exit status."""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence

import click

from ..errors import ZerostrideError
from ..models.findings import Outcome, Report, Unread, Verdict
from ..report import FORMS, form_of, rendered
from .files import write_whole
from .options import BAD_INPUT, FOUND, Parsed

_FAILING = tuple(str(verdict) for verdict in Verdict if verdict is not Verdict.SAME)
#: Words of --fail-on that stand for several verdicts.
ANY, NONE = "any", "none"


def _verdicts(text: str) -> frozenset[str]:
    """Verdicts that fail, with commas between them; "any" stands for all that are not `same`."""
    words = [word.strip() for word in text.split(",")]
    for word in words:
        if word not in (*_FAILING, ANY, NONE):
            names = ", ".join((*_FAILING, ANY, NONE))
            raise ZerostrideError(f"{word[:80]!r} is no verdict that can fail; known: {names}")
    if NONE in words and len(words) > 1:
        raise ZerostrideError("'none' goes with no other verdict")
    return frozenset(_FAILING) if ANY in words else frozenset(words) - {NONE}


def _last_verdict(begun: str) -> list[str]:
    """Completions of the last verdict in a list."""
    before, comma, word = begun.rpartition(",")
    others = {*_FAILING, ANY, NONE}.difference(before.split(","))
    known = [verdict for verdict in (*_FAILING, ANY, NONE) if verdict in others]
    return [f"{before}{comma}{verdict}" for verdict in known if verdict.startswith(word)]


def _report_file(path: str) -> str:
    """The path, if its form is known and it can be written: an audit may take minutes."""
    if os.path.isdir(path) and not path.endswith(tuple(FORMS)):
        raise ZerostrideError(f"{path} is a folder; name the report's file, such as report.html")
    form_of(path)
    folder = os.path.dirname(path) or "."
    if not os.path.isdir(folder):
        raise ZerostrideError(f"{path}: there is no folder {folder}")
    return path


#: A file that a report is written to; the end of its name chooses the form.
_REPORT_FILE = Parsed("file", _report_file)
fail_on = click.option(
    "--fail-on",
    type=Parsed("verdicts", _verdicts, _last_verdict),
    default=ANY,
    metavar="VERDICTS",
    help=f"Verdicts for which the exit status is 1, with commas: {', '.join(_FAILING)}; "
    "any (if not given), none.",
)
_report = functools.partial(
    click.option,
    multiple=True,
    type=_REPORT_FILE,
    metavar="FILE",
    help=f"Write a report to FILE as well, by its end {' '.join(FORMS)}. May be given again.",
)
reports = _report("--report", "reports")
#: An audit makes nothing but its report, so -o is that.
audit_reports = _report("--report", "-o", "--output", "reports")


def save(paths: Sequence[str], reports: Report | Sequence[Report | Unread]) -> None:
    """Writes a report, or the reports of many models, to files, each whole or not at all."""
    for path in paths:
        write_whole(path, rendered(path, reports))


def status(reports: Sequence[Report | Unread], failing: frozenset[str]) -> int:
    """The exit status: 2 if a model could not be read, 1 if something new fails, else 0."""
    if any(isinstance(report, Unread) for report in reports):
        return BAD_INPUT
    return FOUND if any(_fails(report, failing) for report in reports) else 0


def _fails(report: Report | Unread, failing: frozenset[str]) -> bool:
    if isinstance(report, Unread):
        return True
    disagree = any(check.outcome is not Outcome.AGREES for check in report.checks)
    refused = bool(failing and report.lacks)
    fresh = any(str(finding.verdict) in failing for finding in report.fresh)
    return disagree or refused or fresh
