"""A report as plain text, for a terminal or a file."""

from __future__ import annotations

from collections.abc import Sequence

from ..models.bisection import Bisection
from ..models.findings import Change, Check, Finding, Outcome, Report, Unread
from ..sizes.budget import WRITING_STEPS, allowance
from .bisection import culprit_lines, stage_rows
from .equivalence import equivalence_lines
from .sheet import WHERE, Sheet
from .words import (
    LONGEST_NAME,
    MARKS,
    OUTCOMES,
    Reports,
    counted,
    headline,
    listed,
    mark_of,
    notes,
    shapes_text,
    shown,
    told,
    total_line,
    totals,
)


@allowance(WRITING_STEPS)
def text(reports: Reports, *, full: bool = False) -> str:
    """One report or many in full sentences: findings with drawing, numbers and fix.

    Args:
        reports: the reports; several are followed by a table of all models.
        full: include findings that are the same.
    """
    every = listed(reports)
    parts = [_one(report, full) for report in every]
    if len(every) > 1:
        parts.append(overview(every))
    return "\n\n".join(parts)


def _one(report: Report | Unread, full: bool) -> str:
    if isinstance(report, Unread):
        return unread_text(report)
    parts = [headline(report), *notes(report), *stale_lines(report)]
    parts += ["\n" + change_text(change) for change in report.changes]
    if report.bisection is not None:
        return "\n".join([*parts, *bisection_lines(report.bisection, full)])
    if report.equivalence is not None:
        return "\n".join([*parts, *equivalence_lines(report.equivalence)])
    if report.checks:
        parts += ["", *check_lines(report)]
    if report.command == "verify" and not full:
        return "\n".join(parts)  # the table of checks has the audit's verdicts
    findings = report.findings if full else told(report)
    parts += ["\n" + finding_text(finding) for finding in findings]
    return "\n".join(parts)


def bisection_lines(bisection: Bisection, full: bool) -> list[str]:
    """The culprits, and with `full` a table of every tensor."""
    lines = ["", *_columns(stage_rows(bisection))] if full and bisection.stages else []
    for culprit in bisection.culprits:
        lines += ["", *culprit_lines(culprit)]
    return lines


def unread_text(report: Unread) -> str:
    """The reason why a model has no report; most messages already begin with its name."""
    detail = shown(report.detail)
    return detail if detail.startswith(shown(report.model)) else f"{shown(report.model)}: {detail}"


def stale_lines(report: Report) -> list[str]:
    """The entries of a baseline that the model no longer has."""
    stale = report.baseline.stale if report.baseline is not None else ()
    return [f"stale: can be removed from the baseline: {shown(line)}" for line in stale]


def finding_text(finding: Finding) -> str:
    """One finding with everything a reader needs to act on it."""
    sheet = Sheet(finding)
    mark, _ = MARKS[finding.verdict]
    finding = sheet.finding
    lines = [
        f"{mark}  {finding.op} {finding.node}  [{finding.code} {finding.reason}]",
        f"  {finding.message}",
    ]
    lines += [f"  {line}" for drawing in sheet.drawings for line in drawing.lines()]
    lines += [f"  {s.label}: {shown(s.text)}" for s in sheet.sections if s.label != WHERE]
    return "\n".join(lines)


def change_text(change: Change) -> str:
    """One rewrite of a port: its description, the lines before and after, and the proof."""
    lines = [f"{shown(change.op, LONGEST_NAME)} {shown(change.node, LONGEST_NAME)}  [{change.by}]"]
    lines.append(f"  {shown(change.words)}")
    lines += [f"  - {shown(line)}" for line in change.before]
    lines += [f"  + {shown(line)}" for line in change.after]
    return "\n".join([*lines, f"  {computed_words(change)}"])


def computed_words(change: Change) -> str:
    """The proof of a change: the numbers that a port computed, and what holds for every size."""
    proven = _EVERY_SIZE.get(change.every_size, "")
    if not change.elements:
        return f"not computed: there are no numbers in its result{proven}"
    numbers = "number" if change.elements == 1 else "numbers"
    return f"computed before and after: {change.elements:,} {numbers}, equal{proven}"


_EVERY_SIZE = {
    "equal": "; proven for every size",
    "rounded": "; proven for every size, but for rounding",
}


#: The cells of a check, and how a check that was computed is told from one that was not.
CHECK_CELLS = ("answer", "audit", "node", "op", "shapes", "numbers", "largest error", "")
_RAN = frozenset({Outcome.AGREES, Outcome.DIFFERS})
_ORDER = (Outcome.DIFFERS, Outcome.CRASHED, Outcome.REFUSED, Outcome.NOT_RUN, Outcome.AGREES)


def check_lines(report: Report) -> list[str]:
    """The table of agreement: failures first, each with the audit's verdict."""
    return _columns([CHECK_CELLS, *(check_row(*pair) for pair in checked(report))])


def checked(report: Report) -> list[tuple[Check, Finding | None]]:
    """Checks with the audit's finding of the same node, agreement last."""
    beside = [check.node for check in report.checks] == [one.node for one in report.findings]
    findings = report.findings if beside else [None for _ in report.checks]
    pairs = list(zip(report.checks, findings, strict=True))
    return sorted(pairs, key=lambda pair: _ORDER.index(pair[0].outcome))


def check_row(check: Check, finding: Finding | None) -> tuple[str, ...]:
    """One check as the cells of a table, with the audit's verdict."""
    audit = "" if finding is None else mark_of(finding.verdict)
    detail = shown(check.detail, 300)
    if check.cached:
        detail = f"{detail} (from the cache)".strip()
    ran = check.outcome in _RAN
    return (
        OUTCOMES[check.outcome][0],
        audit,
        shown(check.node, LONGEST_NAME) or "(the model)",
        shown(check.op, LONGEST_NAME),
        shapes_text(check),
        f"{check.elements:,}" if ran else "",
        f"{check.error:.1e}" if ran else "",
        detail,
    )


def overview(reports: Sequence[Report | Unread]) -> str:
    """A table with a row per model, and the sum."""
    marks = [mark for mark, count in totals(reports).items() if count]
    rows = [("model", *marks, "")]
    for report in reports:
        if isinstance(report, Unread):
            rows.append((shown(report.model, LONGEST_NAME), *("" for _ in marks), "NOT READ"))
            continue
        counts = counted(report)
        extra = ""
        if report.baseline is not None:
            extra = f"{len(report.baseline.accepted)} known, {len(report.fresh)} new"
        cells = (str(counts.get(mark) or "") for mark in marks)
        rows.append((shown(report.model, LONGEST_NAME), *cells, extra))
    return "\n".join([total_line(reports), *_columns(rows)])


def _columns(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
