"""A report as Markdown for a pull request: a headline, a table, and folded details.

Every text from a file is in code, where Markdown, HTML, mentions and links have no effect.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ..models.bisection import Culprit
from ..models.findings import Change, Check, Finding, Outcome, Report, Unread
from ..sizes.budget import WRITING_STEPS, allowance
from .bisection import DIFFERENCES
from .equivalence import unequal
from .plain import change_text, checked, finding_text, stale_lines, unread_text
from .sheet import Sheet
from .words import (
    OUTCOMES,
    TITLES,
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
)

#: The most characters of a comment on code hosts; bytes are counted, to be safe.
LIMIT = 65_536
#: Bytes reserved for closing tags and the sentence about omissions.
_RESERVE = 600
#: The share of the room for tables; details get the rest.
_FOR_TABLES = 0.6
#: The most characters of a cell.
_CELL = 120


@allowance(WRITING_STEPS)
def markdown(reports: Reports, *, limit: int = LIMIT) -> str:
    """One report or many as Markdown, short enough for a comment.

    Args:
        reports: a report of any command, or a list of reports and of models without one.
        limit: the most bytes of the text. A sentence at the end counts omitted parts.
    """
    every = listed(reports)
    paper = _Paper(limit - _RESERVE)
    paper.put(_head(every))
    rows = list(_rows(every))
    if len(every) == 1:  # the headline has it
        left = paper.rows(_HEADER[:1] + _HEADER[2:], [row[:1] + row[2:] for row in rows])
    else:
        left = paper.rows(_HEADER, rows)
    details = list(_details(every))
    untold = paper.details(details)
    return paper.finished(_missing(left, "row") + _missing(untold, "detail"))


_HEADER = ("", "model", "node", "op", "shapes", "why", "fix")


class _Paper:
    """Text of limited size."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.whole = room
        self.parts: list[str] = []

    def put(self, text: str) -> bool:
        """Adds a part if there is room for it."""
        size = len(text.encode("utf-8", "backslashreplace")) + 1
        if size > self.room:
            return False
        self.room -= size
        self.parts.append(text)
        return True

    def rows(self, header: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
        """Adds a table of the first rows that fit; returns the number of other rows."""
        if not rows:
            return 0
        kept = self.room - int(self.whole * _FOR_TABLES)
        self.put("")
        self.put(_row(header))
        self.put(_row(["---"] * len(header)))
        for done, row in enumerate(rows):
            if self.room < kept or not self.put(_row(row)):
                return len(rows) - done
        return 0

    def details(self, details: Sequence[tuple[str, str]]) -> int:
        """Adds the folded texts that fit; returns the number of others."""
        left = 0
        for title, body in details:
            fence = "`" * max(3, 1 + _longest_run(body))
            folded = (
                f"\n<details><summary>{title}</summary>\n\n{fence}text\n{body}\n{fence}\n\n"
                "</details>"
            )
            left += not self.put(folded)
        return left

    def finished(self, missing: Sequence[str]) -> str:
        """The whole text."""
        if missing:
            names = " and ".join(missing)
            self.parts.append(f"\n_Left out for want of room: {names}. The HTML report has all._")
        return "\n".join(self.parts) + "\n"


def _missing(count: int, what: str) -> list[str]:
    return [f"{count:,} more {what}{'' if count == 1 else 's'}"] if count else []


def _head(reports: Sequence[Report | Unread]) -> str:
    report = reports[0] if len(reports) == 1 else None
    if isinstance(report, Report):
        mark = "✅" if _fine(report) else "❌"
        lines = [f"### {mark} {TITLES[report.command]}", "", code(headline(report))]
        lines += [f"- {code(note)}" for note in notes(report)]
    else:
        fine = all(isinstance(report, Report) and _fine(report) for report in reports)
        lines = [f"### {'✅' if fine else '❌'} Broadcasts", "", total_line(reports)]
    return "\n".join(lines)


def _fine(report: Report) -> bool:
    """Whether no finding is new."""
    if report.bisection is not None or report.equivalence is not None:
        return report.ok
    outcomes = {check.outcome for check in report.checks}
    if report.command == "verify":
        return outcomes <= {Outcome.AGREES, Outcome.NOT_RUN} and outcomes != {Outcome.NOT_RUN}
    return not report.fresh and not report.lacks and (report.command != "convert" or report.ok)


def _rows(reports: Sequence[Report | Unread]) -> Iterator[tuple[str, ...]]:
    """The rows of the table: unread models, failed checks, new findings, changes."""
    for report in reports:
        if isinstance(report, Unread):
            yield ("not read", code(report.model), "", "", "", code(unread_text(report)), "")
            continue
        model = code(report.model)
        for check, _ in checked(report):
            if check.outcome is not Outcome.AGREES:
                yield _check_row(model, check)
        for culprit in report.bisection.culprits if report.bisection is not None else ():
            yield _culprit_row(model, culprit)
        for verdict, name, lines in unequal(report.equivalence) if report.equivalence else ():
            why = lines[1] if name and len(lines) > 1 else lines[0]
            yield (verdict, model, code(name), "", "", code(why), "")
        for change in report.changes:
            yield _change_row(model, change)
        for finding in _findings(report):
            yield _finding_row(model, finding)


def _findings(report: Report) -> list[Finding]:
    """The new findings; none for a verification, which is about answers."""
    return [] if report.command == "verify" else told(report)


def _finding_row(model: str, finding: Finding) -> tuple[str, ...]:
    sheet = Sheet(finding)
    finding = sheet.finding
    cells = (finding.node, finding.op, sheet.shapes, finding.reason, sheet.fix)
    return (sheet.mark, model, *map(code, cells))


def _change_row(model: str, change: Change) -> tuple[str, ...]:
    cells = (code(change.node), code(change.op), "", code(change.by), code(change.words))
    return ("changed", model, *cells)


def _check_row(model: str, check: Check) -> tuple[str, ...]:
    cells = (code(check.node), code(check.op), code(shapes_text(check)), code(check.detail))
    return (OUTCOMES[check.outcome][0].lower(), model, *cells, "")


def _culprit_row(model: str, culprit: Culprit) -> tuple[str, ...]:
    operands = ", ".join(f"{name} {shape}" for name, shape in culprit.inputs)
    cells = (code(culprit.node), code(culprit.op), code(operands), code(culprit.judged.detail))
    words = code(culprit.cause) if culprit.cause else ""
    return (DIFFERENCES[culprit.judged.difference].lower(), model, *cells, words)


def _details(reports: Sequence[Report | Unread]) -> Iterator[tuple[str, str]]:
    """Titles and texts that are folded: a table of models, changes, findings."""
    if len(reports) > 1:
        yield "Every model", "\n".join(_model_lines(reports))
    for report in reports:
        if isinstance(report, Unread):
            continue
        stale = stale_lines(report)
        if stale:
            yield "Known findings that are gone", "\n".join(stale)
        for change in report.changes:
            title = f"changed: {entities(shown(change.op, _CELL))} "
            yield title + entities(shown(change.node, _CELL)), change_text(change)
        for verdict, name, lines in unequal(report.equivalence) if report.equivalence else ():
            yield f"{verdict}: {entities(shown(name or 'sizes', _CELL))}", "\n".join(lines)
        for finding in _findings(report):
            title = f"{mark_of(finding.verdict)}: {entities(shown(finding.op, _CELL))} "
            yield title + entities(shown(finding.node, _CELL)), finding_text(finding)


def _model_lines(reports: Sequence[Report | Unread]) -> Iterator[str]:
    for report in reports:
        if isinstance(report, Unread):
            yield unread_text(report)
            continue
        counts = ", ".join(f"{count} {mark}" for mark, count in counted(report).items() if count)
        yield f"{shown(report.model)}: {counts or 'nothing that broadcasts'}"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


_PLAIN = re.compile(r"[^`|\\]+")


def code(words: object) -> str:
    r"""Text as code that fits a table: in backticks, or as entities if it contains backticks.

    >>> code("a*b@c <i>"), code("a|b`"), code("")
    ('`a*b@c <i>`', '<code>a&#124;b&#96;</code>', '')
    """
    text = shown(words, _CELL).strip()
    if not text:
        return ""
    if _PLAIN.fullmatch(text):
        return f"`{text}`"
    return f"<code>{entities(text)}</code>"


def entities(text: str) -> str:
    """Text without markup: all characters but letters, digits and blanks as entities.

    >>> entities("a_b c")
    'a&#95;b c'
    """
    return re.sub(r"[^A-Za-z0-9 ]", lambda match: f"&#{ord(match[0])};", text)


def _longest_run(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)
