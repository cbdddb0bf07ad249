"""An audit for a terminal: findings by cause, the worst ones drawn, what it means."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from ..attention.plan import AttentionPlan
from ..core.plan import Plan
from ..derive.explain.facts import blocks, facts
from ..derive.explain.text import drawn
from ..errors import Reason, cut
from ..models.audit.delegated import outcome_of
from ..models.findings import Finding, Report, Verdict
from ..models.reasons import REASONS, Cause
from .groups import Group, grouped
from .sheet import WHERE, Drawing, Sheet
from .table import Column, Heading, Line, Row, cells_of, headed, table, wrapped
from .words import (
    LONGEST_LINE,
    LONGEST_NAME,
    MARKS,
    WORST,
    counted_noun,
    mark_of,
    refusal,
    shapes_text,
    shown,
)

#: The most rows of a table without --full: with three drawings about a screen and a half.
MOST_ROWS = 20
#: The least rows of a cause, however many causes there are; the most names in a row.
LEAST_ROWS, MOST_NAMES = 2, 3
#: The most characters of a cell without --full; sizes of dynamic models are long.
LONGEST_CELL = 160
#: Drawings that are shown without --details.
MOST_DRAWN = 3
#: Blanks between drawings side by side.
_BETWEEN = 4
_MEANING = {str(row.name): row.meaning for row in REASONS}
#: The predicate of each verdict in the plural and the singular.
_PREDICATES = {
    Verdict.DIFFERENT: (
        "compute something else without an error",
        "computes something else without an error",
    ),
    Verdict.REFUSED: ("are refused", "is refused"),
    Verdict.SAME_HERE: ("agree at these sizes only", "agrees at these sizes only"),
    Verdict.UNKNOWN: ("cannot be judged", "cannot be judged"),
    Verdict.SAME: ("mean the same", "means the same"),
}
#: Reasons that lie in the model, and its predicate: some engines compute something all the same.
_INVALID = frozenset({Cause.INVALID, Cause.MIXED_TYPES})
_NOT_VALID = ("are not valid in the model itself", "is not valid in the model itself")
#: Reasons that lie in the op, whatever its shapes.
_OF_OPS = frozenset(
    {Reason.NO_OP, Cause.NOT_MODELLED, Cause.NOT_MEASURED, Cause.CUSTOM_OP, Cause.FOLDED}
)
_COLUMNS = (
    Column("nodes", right=True),
    Column("op", 24),
    Column("node"),
    Column("shapes", roomy=True),
    Column("not the same where", roomy=True),
    Column("fix", roomy=True),
    Column("not ported because", roomy=True),
)


@dataclass(frozen=True, slots=True)
class CauseGroup:
    """Findings with the same verdict and reason, and among them the kinds that are alike."""

    kinds: tuple[Group, ...]

    @property
    def first(self) -> Finding:
        """A finding of the kind that most nodes have."""
        return self.kinds[0].first

    @property
    def count(self) -> int:
        """The number of findings."""
        return sum(len(kind.findings) for kind in self.kinds)


def causes_of(findings: Sequence[Finding]) -> list[CauseGroup]:
    """The causes of findings: the worst verdict first, then the cause of most findings."""
    by_cause: dict[tuple[Verdict, str], list[Group]] = {}
    for kind in kinds_of(findings):
        by_cause.setdefault((kind.first.verdict, kind.first.reason), []).append(kind)
    causes = [
        CauseGroup(tuple(sorted(kinds, key=lambda kind: -len(kind.findings))))
        for kinds in by_cause.values()
    ]
    return sorted(causes, key=lambda cause: (WORST.index(cause.first.verdict), -cause.count))


def kinds_of(findings: Sequence[Finding]) -> list[Group]:
    """The findings that are alike; where the op alone is the reason, whatever their shapes."""
    kinds: dict[Hashable, list[Finding]] = {}
    for number, group in enumerate(grouped((finding, False) for finding in findings)):
        first = group.first
        key = (first.verdict, first.reason, first.op) if first.reason in _OF_OPS else number
        kinds.setdefault(key, []).extend(group.findings)
    return [Group(tuple(kind)) for kind in kinds.values()]


def cause_table(
    causes: Sequence[CauseGroup], width: int, *, full: bool = False, why: str = ""
) -> list[Line]:
    """The table of causes.

    Args:
        causes: from :func:`causes_of`.
        width: the most characters of a line.
        full: show every kind, and the name of every node.
        why: how a note begins that a column shows.
    """
    total = sum(len(cause.kinds) for cause in causes)
    most = max(MOST_ROWS // max(len(causes), 1), LEAST_ROWS)
    rows: list[Row] = []
    for cause in causes:
        kinds = cause.kinds if full or total <= MOST_ROWS else cause.kinds[:most]
        rows.append(_heading(cause))
        rows += [_row(kind, why, full=full) for kind in kinds]
        hidden = cause.kinds[len(kinds) :]
        if hidden:
            count = sum(len(kind.findings) for kind in hidden)
            words = f"{counted_noun(len(hidden), 'more kind')} of them: --full lists all"
            rows.append([str(count), "", words, "", "", "", ""])
    return table(_COLUMNS, rows, width)


def _heading(cause: CauseGroup) -> Heading:
    finding = cause.first
    mark, style = MARKS[finding.verdict]
    count = counted_noun(cause.count, "node")
    reason = f"{finding.code} {finding.reason}, {count}: {_MEANING[finding.reason]}"
    return Heading(mark, reason, style)


def _row(kind: Group, why: str, *, full: bool) -> list[str]:
    sheet = Sheet(kind.first)
    names = [shown(finding.node, LONGEST_NAME) for finding in kind.findings]
    shapes = [*dict.fromkeys(map(shapes_text, kind.findings))]
    longest = LONGEST_LINE if full else LONGEST_CELL
    where = "" if kind.first.when is None else shown(kind.first.when, longest)
    return [
        str(len(names)),
        sheet.finding.op,
        first_of(names, len(names) if full else MOST_NAMES),
        shown(first_of(shapes, len(shapes) if full else 1), longest),
        where,
        sheet.fix,
        next((n.removeprefix(why) for n in sheet.finding.notes if why and n.startswith(why)), ""),
    ]


def first_of(words: Sequence[str], most: int = MOST_NAMES) -> str:
    """The first of some names, and how many more there are."""
    more = len(words) - most
    return ", ".join(words[:most]) + (f" and {more} more" if more > 0 else "")


def worst_of(causes: Sequence[CauseGroup]) -> list[Finding]:
    """One finding for each drawing: of the worst verdict first, of each of its causes in turn."""
    firsts = []
    for verdict in WORST[:-1]:
        columns = [cause.kinds for cause in causes if cause.first.verdict is verdict]
        turns = zip_longest(*columns)
        firsts += [kind.first for turn in turns for kind in turn if kind is not None]
    return firsts[:MOST_DRAWN]


def brief(finding: Finding, target: str, width: int) -> list[Line]:
    """A finding in few lines: the message, the drawings side by side, numbers and fix."""
    sheet = Sheet(finding, target)
    mark, style = MARKS[finding.verdict]
    words = f"{sheet.finding.op} {sheet.finding.node}  [{finding.code} {finding.reason}]"
    lines = headed(Heading(mark, words, style), width)
    lines += map(Line, wrapped(sheet.finding.message, width, "  "))
    lines += [Line(f"    {line}".rstrip()) for line in _drawings(sheet, width - 4)]
    for warning in _warnings(sheet):
        lines += headed(Heading("  WARNING:", warning, "bold yellow"), width)
    for section in sheet.sections:
        if section.label != WHERE:
            lines += map(Line, wrapped(f"{section.label}: {shown(section.text)}", width, "  "))
    return lines


def _drawings(sheet: Sheet, width: int) -> Iterator[str]:
    """The drawings side by side, or one below the other."""
    parts = [[f"{drawing.title}:", *_lines(drawing)] for drawing in sheet.drawings]
    widths = [max(map(cells_of, part)) for part in parts]
    if max(widths, default=0) > width:
        yield f"--finding {shlex.quote(sheet.finding.node)} draws it, in {max(widths)} columns"
    elif sum(widths) + _BETWEEN * (len(parts) - 1) > width:
        yield from (line for part in parts for line in part)
    else:
        for lines in zip_longest(*parts, fillvalue=""):
            placed = (
                line + " " * (w - cells_of(line)) for line, w in zip(lines, widths, strict=True)
            )
            yield (" " * _BETWEEN).join(placed)


def _lines(drawing: Drawing) -> Iterator[str]:
    """The operands over the result; of a refusal, the operands and the place."""
    if isinstance(drawing.plan, AttentionPlan):
        yield from (line.removeprefix("  ") for line in drawing.lines()[1:])
        return
    if not isinstance(drawing.plan, Plan):
        lines = refusal(drawing.plan, drawing.finding)[1:]
        # The message already says that the engine does not refuse.
        yield from (
            line.removeprefix("  ") for line in lines[: -1 if drawing.plan.silent else None]
        )
        return
    for title, case, rows in blocks(drawing.plan, drawing.names)[0]:
        if title:
            yield title
        yield from (cut(line) for line in drawn(case, drawing.names))
        yield from (fact.text for fact in rows if fact.kind == "dropped")


def _warnings(sheet: Sheet) -> Iterator[str]:
    """The warnings of the model's own plan."""
    for drawing in sheet.drawings[:1]:
        if isinstance(drawing.plan, Plan):
            yield from (
                fact.text for fact in facts(drawing.plan, drawing.names) if fact.kind == "two_sided"
            )


def meaning(report: Report, causes: Sequence[CauseGroup]) -> str:
    """The meaning of the findings, in a sentence."""
    tally = Counter[tuple[str, str]]()
    for cause in sorted(causes, key=lambda cause: WORST.index(cause.first.verdict)):
        invalid = cause.first.reason in _INVALID
        tally[_NOT_VALID if invalid else _PREDICATES[cause.first.verdict]] += cause.count
    parts = [
        f"{counted_noun(count, 'node')} {one if count == 1 else many}"
        for (many, one), count in tally.items()
    ]
    kinds = [kind for cause in causes for kind in cause.kinds]
    fixes = [finding.fix for kind in kinds for finding in kind.findings if finding.fix is not None]
    limited = sum(fix.only_if is not None for fix in fixes)
    return f"on {report.target} {', '.join(parts)}{_fixes(len(fixes), limited, tally.total())}"


def _fixes(fixed: int, limited: int, total: int) -> str:
    """How many nodes have a fix; and how many of these have one for some sizes alone."""
    if not fixed:
        return ""
    have = "has" if fixed == 1 else "have"
    who = f"{fixed} of them" if fixed < total else "it" if total == 1 else "all"
    some = "" if not limited else f", {limited} of them" if limited < fixed else ","
    return f"; {who} {have} a checked fix{some + ' for some sizes alone' if limited else ''}"


def summary(report: Report, findings: Sequence[Finding], width: int) -> list[Line]:
    """Whether a model is clean for its target, the ops that keep it from being clean, and a fix.

    A delegate that leaves ops to the CPU has rows by outcome, another engine by verdict.
    """
    goal = "GPU-clean" if report.target.endswith("-gpu") else f"clean for {report.target}"
    if not findings and not report.lacks:
        return [Line(f"{goal}: yes")]
    by_title: dict[str, list[Finding]] = {}
    for finding in findings:
        by_title.setdefault(outcome_of(finding) or mark_of(finding.verdict), []).append(finding)
    rows = list[Row]()
    for title, some in by_title.items():
        ops = Counter(shown(finding.op, LONGEST_NAME) for finding in some).most_common()
        fixes = Counter(Sheet(finding).fix for finding in some if finding.fix is not None)
        fix = first_of([fix for fix, _ in fixes.most_common()], 1)
        rows.append([title, str(len(some)), ", ".join(f"{n} {op}" for op, n in ops), fix])
    rows += [["no conversion", str(len(paths)), op, ""] for op, paths in report.lacks.items()]
    columns = [Column(f"{goal}: no", folds=False), Column("nodes", right=True), Column("ops")]
    return table([*columns, Column("fix", roomy=True)], rows, width)
