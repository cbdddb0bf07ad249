"""A verification and a port for a terminal: what differs first, what is alike folded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from ..errors import Reason
from ..models.findings import Change, Check, Finding, Outcome, Report, Verdict
from .plain import checked
from .table import Column, Line, Row, table, wrapped
from .terminal import MOST_ROWS, first_of
from .words import LONGEST_NAME, OUTCOMES, counted_noun, mark_of, outcome_words, shapes_text, shown

#: The most reasons for which nodes were not run that get a line each.
_MOST_REASONS = 5
#: The characters of a reason.
_LONGEST_REASON = 300
_CHECKS = (
    Column("outcome", folds=False),
    Column("audit", folds=False),
    Column("node"),
    Column("op", 24),
    Column("shapes", roomy=True),
    Column("numbers", folds=False, right=True),
    Column("error", folds=False, right=True),
    Column("what", roomy=True),
)
_OP = 3
#: The most ops that a line names; more outputs of a whole model have no names there.
_MOST_OPS = 8
#: The verdicts with which an outcome goes; another one is a mistake of the audit.
_GOES_WITH = {
    Outcome.AGREES: {Verdict.SAME, Verdict.SAME_HERE, Verdict.UNKNOWN},
    Outcome.DIFFERS: {Verdict.DIFFERENT, Verdict.UNKNOWN},
}


def check_lines(report: Report, width: int, *, full: bool = False) -> list[Line]:
    """Disagreements in a table, then a line for all that agree and for each reason of the others.

    Args:
        report: a verification.
        width: the most characters of a line.
        full: show a row for every check.
    """
    pairs = checked(report)
    rows = [pair for pair in pairs if full or _tells(*pair)]
    lines: list[Line] = []
    if rows:
        most = len(rows) if full else MOST_ROWS
        cells = [_row(*pair) for pair in rows[:most]]
        columns = list(_CHECKS)
        if not any(check.node for check, _ in rows):  # the outputs of a whole model
            columns[_OP] = replace(columns[_OP], title="output")
        lines += table(columns, cells, width, [OUTCOMES[check.outcome][1] for check, _ in rows])
        if len(rows) > most:
            lines.append(Line(f"and {len(rows) - most} more; --full lists all"))
    if not full:
        folded = [pair for pair in pairs if not _tells(*pair)]
        agreeing = [check for check, _ in folded if check.outcome is Outcome.AGREES]
        others = [pair for pair in folded if pair[0].outcome is not Outcome.AGREES]
        lines += map(Line, wrapped(_agreeing(agreeing), width)) if agreeing else ()
        lines += [Line(part) for line in _not_run(others) for part in wrapped(line, width)]
    return lines


def _tells(check: Check, finding: Finding | None) -> bool:
    """Whether a check has a row: something went wrong, or the audit expected another outcome."""
    if check.outcome is Outcome.NOT_RUN:
        return False
    if check.outcome is not Outcome.AGREES:
        return True
    return finding is not None and finding.verdict not in _GOES_WITH[Outcome.AGREES]


def _row(check: Check, finding: Finding | None) -> list[str]:
    ran = check.outcome in _GOES_WITH
    return [
        OUTCOMES[check.outcome][0],
        "" if finding is None else mark_of(finding.verdict),
        shown(check.node, LONGEST_NAME),
        shown(check.op, LONGEST_NAME),
        shapes_text(check),
        f"{check.elements:,}" if ran else "",
        f"{check.error:.2g}" if ran else "",
        shown(check.detail.removeprefix(f"{check.op}: "), _LONGEST_REASON)
        + " (cached)" * check.cached,
    ]


def _agreeing(checks: Sequence[Check]) -> str:
    ops = Counter(shown(check.op, LONGEST_NAME) for check in checks)
    named = ", ".join(f"{count} {op}" for op, count in ops.most_common(_MOST_OPS))
    if len(ops) > _MOST_OPS:
        whole = not any(check.node for check in checks)
        named = "outputs" if whole else f"{named} and {len(ops) - _MOST_OPS} more"
    numbers = counted_noun(sum(check.elements for check in checks), "number")
    error = max(check.error for check in checks)
    cached = sum(check.cached for check in checks)
    known = f", {cached} from the cache" if cached else ""
    words = outcome_words(Outcome.AGREES, len(checks))
    return f"{words}: {named} ({numbers}, largest error {error:.2g}{known})"


def _not_run(pairs: Sequence[tuple[Check, Finding | None]]) -> list[str]:
    """A line for the ops that the engine lacks, and one for each other reason."""
    reasons: dict[str, Counter[str]] = {}
    for check, finding in pairs:
        lacks = finding is not None and finding.reason == Reason.NO_OP
        reason = "the engine lacks the op" if lacks else shown(check.detail, _LONGEST_REASON)
        reasons.setdefault(reason, Counter())[shown(check.op, LONGEST_NAME)] += 1
    lines = [
        f"{outcome_words(Outcome.NOT_RUN, ops.total())}, {reason}: "
        + ", ".join(f"{count} {op}" for op, count in ops.most_common())
        for reason, ops in [*reasons.items()][:_MOST_REASONS]
    ]
    more = len(reasons) - _MOST_REASONS
    if more > 0:
        lines.append(f"and {counted_noun(more, 'more reason')}; --full lists all")
    return lines


def change_table(changes: Sequence[Change], width: int) -> list[Line]:
    """The changes of a port: a row for each kind of change of an op."""
    kinds: dict[tuple[str, str, str], list[Change]] = {}
    for change in changes:
        what = change.words.partition(":")[0]
        kinds.setdefault((change.op, what, change.by), []).append(change)
    rows: list[Row] = []
    for (op, what, _), alike in kinds.items():
        names = [shown(change.node, LONGEST_NAME) for change in alike]
        numbers = sum(change.elements for change in alike)
        cells = [str(len(alike)), shown(op, LONGEST_NAME), first_of(names), shown(what)]
        rows.append([*cells, f"{numbers:,} equal" if numbers else "not computed"])
    columns = [Column("changed", right=True), Column("op", 24), Column("node"), Column("how")]
    return table([*columns, Column("numbers", right=True)], rows, width)
