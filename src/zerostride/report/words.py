"""Text that all forms of a report share: headlines, notes, and printable names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from ..attention.plan import AttentionPlan
from ..core.alignment import apply
from ..core.plan import Plan
from ..derive.explain.facts import row_of
from ..errors import BroadcastError, cut, printable, render
from ..models.findings import Check, Finding, Outcome, Report, Unread, Verdict

if TYPE_CHECKING:
    from ..models.shapes import Shapes

#: The mark of a verdict in text, and its colour on terminals.
MARKS = {
    Verdict.SAME: ("same", "green"),
    Verdict.SAME_HERE: ("SAME HERE", "yellow"),
    Verdict.DIFFERENT: ("DIFFERENT", "red"),
    Verdict.REFUSED: ("REFUSED", "magenta"),
    Verdict.UNKNOWN: ("unknown", "cyan"),
}
#: The same for the outcome of a check, and the verdict whose colour it has on a page.
OUTCOMES = {
    Outcome.AGREES: ("agrees", "green", Verdict.SAME),
    Outcome.DIFFERS: ("DIFFERS", "bold red", Verdict.DIFFERENT),
    Outcome.REFUSED: ("REFUSED", "yellow", Verdict.REFUSED),
    Outcome.CRASHED: ("CRASHED", "bold magenta", Verdict.DIFFERENT),
    Outcome.NOT_RUN: ("not run", "dim", Verdict.UNKNOWN),
}

#: The most characters of a name and of a sentence. Names come from files: exporters make some of
#: 200 characters, and a hostile file may have one of a million.
LONGEST_NAME, LONGEST_LINE = 200, 2000
#: The most notes that are shown; a file without its weights has one note per weight.
MOST_NOTES = 10

#: The argument of a renderer: a report, or a list of reports and of models without one.
Reports: TypeAlias = Report | Sequence[Report | Unread]

#: The titles of reports, by command.
TITLES = {
    "audit": "Broadcast audit",
    "port": "Port",
    "convert": "Conversion",
    "verify": "Verification",
    "bisect": "Bisection",
    "equivalent": "Equivalence",
}


def counted_noun(count: int, noun: str) -> str:
    """A count and its noun, in the singular or the plural.

    >>> counted_noun(1, "node"), counted_noun(2000, "broadcast")
    ('1 node', '2,000 broadcasts')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def listed(reports: Reports) -> list[Report | Unread]:
    """One report or many, as a list."""
    return [reports] if isinstance(reports, Report) else list(reports)


def shown(words: object, most: int = LONGEST_LINE) -> str:
    """Text from a file as one line for a terminal: no control characters, no endless names.

    >>> shown("a\\x1b[31mb"), shown("x" * 50, 9)
    ('a\\\\x1b[31mb', 'xxx...xxx')
    """
    return printable(cut(str(words), most))


def notes(result: Report | Shapes) -> list[str]:
    """The notes of a result for a reader: the first of them, and how many more there are."""
    lines = [f"note: {shown(note)}" for note in result.notes[:MOST_NOTES]]
    more = len(result.notes) - len(lines)
    return [*lines, f"note: and {more} more like these"] if more else lines


def headline(report: Report) -> str:
    """The report in a line."""
    where = f"{shown(report.model)} on {report.place}"
    if report.command == "verify":
        return f"{where}: {_computed(report)}"
    if report.bisection is not None:
        count = len(report.bisection.culprits)
        culprits = counted_noun(count, "culprit") if count else "no culprits"
        return f"{where}: {counted_noun(report.bisection.compared, 'tensor')} compared, {culprits}"
    if report.equivalence is not None:
        from .equivalence import verdict_words

        return (
            f"{shown(report.model)} and {shown(report.target)}: {verdict_words(report.equivalence)}"
        )
    if report.command == "convert":
        return _converted(report)
    if report.command != "port":
        return f"{where}: {_broadcasts(report.findings)}{_accepted(report)}"
    count = len(report.changes)
    if not count:
        done = "nothing to change" if report.ok else "nothing changed"
    else:
        done = counted_noun(count, "change")
    if report.output:
        written = f", written to {shown(report.output)}"
    else:
        written = ", nothing written" if report.result is None else ", as the report's result"
    return f"{where}: {done}{written if count else ''}; {_broadcasts(report.findings)}"


def _converted(report: Report) -> str:
    """The headline of a conversion: how it ended, then what is behind that."""
    release, _, build = report.release.partition("-")  # OpenVINO's has the names of its branches
    place = report.place.replace(f"{release}-{build}", release) if build else report.place
    where = f"{shown(report.model)} on {place}"
    if report.output is None:
        return f"{where}: not converted; {_broadcasts(report.findings)}"
    end = "converted and proven" if report.ok else "converted, not proven"
    changes = f"; {counted_noun(len(report.changes), 'change')}" if report.changes else ""
    return f"{where}: {end}; {_computed(report)}; {_broadcasts(report.findings)}{changes}"


def _broadcasts(findings: Sequence[Finding]) -> str:
    tally = Counter(finding.verdict for finding in findings)
    counts = ", ".join(
        f"{tally[verdict]} {mark_of(verdict)}" for verdict in Verdict if tally[verdict]
    )
    total = len(findings)
    return counted_noun(total, "broadcast") + (f": {counts}" if counts else "")


def _accepted(report: Report) -> str:
    if report.baseline is None:
        return ""
    return f"; {len(report.baseline.accepted)} known, {len(report.fresh)} new"


def _computed(report: Report) -> str:
    tally = Counter(check.outcome for check in report.checks)
    order = (Outcome.DIFFERS, Outcome.CRASHED, Outcome.REFUSED, Outcome.AGREES, Outcome.NOT_RUN)
    counts = ", ".join(
        outcome_words(outcome, tally[outcome]) for outcome in order if tally[outcome]
    )
    return counted_noun(len(report.checks), "check") + (f": {counts}" if counts else "")


def outcome_words(outcome: Outcome, count: int) -> str:
    """A count of checks with an outcome.

    >>> outcome_words(Outcome.AGREES, 1), outcome_words(Outcome.DIFFERS, 2)
    ('1 agrees', '2 differ')
    """
    word = OUTCOMES[outcome][0].lower()
    plural = {Outcome.AGREES: "agree", Outcome.DIFFERS: "differ"}.get(outcome, word)
    return f"{count:,} {word if count == 1 else plural}"


#: The order of verdicts: silent errors first.
WORST = (Verdict.DIFFERENT, Verdict.REFUSED, Verdict.SAME_HERE, Verdict.UNKNOWN, Verdict.SAME)


def told(report: Report) -> list[Finding]:
    """The findings that are neither the same nor accepted, the worst first."""
    return sorted(report.fresh, key=lambda finding: WORST.index(finding.verdict))


def mark_of(verdict: Verdict) -> str:
    """A verdict's mark in a sentence."""
    return MARKS[verdict][0].lower()


def counted(report: Report) -> Mapping[str, int]:
    """The number of each verdict, or of each outcome of a verification, by mark."""
    if report.command == "verify":
        tally = Counter(check.outcome for check in report.checks)
        return {OUTCOMES[outcome][0].lower(): tally[outcome] for outcome in Outcome}
    return {mark_of(verdict): count for verdict, count in report.counts.items()}


def readable(finding: Finding) -> Finding:
    """The finding, with all text from the file made printable."""
    operands = tuple(
        (shown(name, LONGEST_NAME), shape and tuple(map(_size, shape)))
        for name, shape in finding.operands
    )
    return replace(
        finding,
        node=shown(finding.node, LONGEST_NAME),
        op=shown(finding.op, LONGEST_NAME),
        operands=operands,
        message=shown(finding.message),
        notes=tuple(map(shown, finding.notes)),
    )


def _size(size: Any) -> Any:
    return shown(size, LONGEST_NAME) if isinstance(size, str) else size


def names_for(finding: Finding, plan: Plan | AttentionPlan | BroadcastError) -> tuple[str, ...]:
    """The names of a drawing's rows; a bidirectional target's sizes may not be the result's."""
    planned = isinstance(plan, Plan) and plan.rule == "bidirectional"
    return finding.names[:1] if planned else finding.names


def refusal(side: AttentionPlan | BroadcastError, finding: Finding) -> list[str]:
    """The refusal with the model's names, without a hint: the finding has its own fix.

    An attention is drawn in words, too.
    """
    if isinstance(side, AttentionPlan):
        return side.explain().splitlines()
    return render(side, finding.names, hint=False).splitlines()


def after_fix(finding: Finding) -> Plan | None:
    """The target's plan of the fixed node; None where no table's rule can plan it."""
    fix = finding.fix
    row = None if fix is None else row_of(fix.rule)
    if fix is None or row is None:
        return None
    try:
        return apply(row, fix.shapes, fix.attributes, engine=fix.rule.engine, op=fix.rule.op)
    except BroadcastError:
        return None


def shape_text(shape: Sequence[Any] | None) -> str:
    """A shape, as in tables.

    >>> shape_text((5, "N", None)), shape_text(None)
    ('(5,N,?)', '(unknown)')
    """
    if shape is None:
        return "(unknown)"
    return "(" + ",".join("?" if size is None else shown(size, 60) for size in shape) + ")"


def shapes_text(judged: Finding | Check) -> str:
    """The operands' shapes, one after the other."""
    return shown(" ".join(shape_text(shape) for _, shape in judged.operands))


def totals(reports: Sequence[Report | Unread]) -> dict[str, int]:
    """The counts over many models, by mark, in the order of verdicts and outcomes."""
    total: dict[str, int] = {}
    for report in reports:
        if isinstance(report, Report):
            for mark, count in counted(report).items():
                total[mark] = total.get(mark, 0) + count
    return total


def total_line(reports: Sequence[Report | Unread]) -> str:
    """Many models in a line."""
    read = [report for report in reports if isinstance(report, Report)]
    counts = ", ".join(f"{count} {mark}" for mark, count in totals(reports).items() if count)
    missing = len(reports) - len(read)
    line = counted_noun(len(reports), "model")
    line += f", {missing} not read" if missing else ""
    return line + (f": {counts}" if counts else "")
