"""Floor 6: a report put before a reader: plain text for a terminal, a page for a browser.

What a machine reads is `Report.to_json`. Text here is made of findings and plans alone, and asks no
rule anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from html import escape
from typing import Any

from .errors import BroadcastError, printable, render
from .explain import explain, svg
from .models.findings import Finding, Report, Verdict
from .plan import Plan

#: How a verdict is marked in text, and its colour for terminals that have some.
MARKS = {
    Verdict.SAME: ("same", "green"),
    Verdict.SAME_HERE: ("SAME HERE", "yellow"),
    Verdict.DIFFERENT: ("DIFFERENT", "red"),
    Verdict.REFUSED: ("REFUSED", "magenta"),
    Verdict.UNKNOWN: ("unknown", "cyan"),
}

#: Characters of a name and of a sentence that are shown. Names come from files: exporters make some
#: of 200 characters, and a hostile file one of a million.
LONGEST_NAME, LONGEST_LINE = 200, 2000
#: Notes that are shown; a file without its weights has one for each of them.
MOST_NOTES = 10


def shown(words: object, most: int = LONGEST_LINE) -> str:
    """Text from a file as one line for a terminal: no control characters, no endless names.

    >>> shown("a\\x1b[31mb"), shown("x" * 50, 9)
    ('a\\\\x1b[31mb', 'xxx...xxx')
    """
    line = str(words)
    if len(line) > most:
        half = (most - 3) // 2
        line = f"{line[:half]}...{line[-half:]}"
    return printable(line)


def notes(report: Report) -> list[str]:
    """The report's notes for a reader: the first of them, and how many more there are."""
    lines = [f"note: {shown(note)}" for note in report.notes[:MOST_NOTES]]
    more = len(report.notes) - len(lines)
    return [*lines, f"note: and {more} more like these"] if more else lines


def headline(report: Report) -> str:
    """The report in a line."""
    counts = ", ".join(
        f"{count} {MARKS[verdict][0].lower()}" for verdict, count in report.counts.items() if count
    )
    via = f" via {report.via}" if report.via else ""
    total = len(report.findings)
    return (
        f"{shown(report.model)} on {report.target} {report.release}{via}: "
        f"{total} broadcast{'' if total == 1 else 's'}" + (f": {counts}" if counts else "")
    )


def text(report: Report, *, full: bool = False) -> str:
    """The report in full sentences: what is not the same, with drawing, numbers and fix.

    Args:
        report: what the audit found.
        full: findings that are the same too.
    """
    findings = report.findings if full else report.worst()
    parts = [headline(report), *notes(report)]
    parts += ["\n" + finding_text(finding) for finding in findings]
    return "\n".join(parts)


def finding_text(finding: Finding) -> str:
    """One finding with everything a reader needs to act on it."""
    mark, _ = MARKS[finding.verdict]
    finding = readable(finding)
    lines = [f"{mark}  {finding.op} {finding.node}  [{finding.reason}]", f"  {finding.message}"]
    lines += _indented(_drawings(finding))
    if finding.witness is not None:
        lines.append(f"  shown by: {shown(finding.witness)}")
    if finding.fix is not None:
        lines.append(f"  fix: {finding.fix.describe(finding.names)}")
    lines += [f"  note: {note}" for note in finding.notes]
    return "\n".join(lines)


def readable(finding: Finding) -> Finding:
    """The finding with every text that comes from the file as it may be shown."""
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
    )


def _size(size: Any) -> Any:
    return shown(size, LONGEST_NAME) if isinstance(size, str) else size


def _drawings(finding: Finding) -> Sequence[str]:
    """The model's plan and the target's, each drawn where there is one."""
    drawings: list[str] = []
    for title, plan in (("in the model", finding.source), ("on the target", finding.target)):
        if isinstance(plan, Plan):
            drawings += [f"{title}:", *_indented(explain(plan, _names(finding, plan)).splitlines())]
        elif isinstance(plan, BroadcastError) and plan.rows:
            drawings += [f"{title}:", *_indented(_error(plan, finding))]
    if finding.source == finding.target:
        drawings = drawings[: len(drawings) // 2]
    return drawings


def _names(finding: Finding, plan: Plan) -> tuple[str, ...]:
    """What the rows of a drawing are called; mode bidirectional may not give the target's sizes."""
    return finding.names[:1] if plan.rule == "bidirectional" else finding.names


def _error(error: BroadcastError, finding: Finding) -> list[str]:
    """The refusal under the model's names; the finding's own fix keeps the model's meaning."""
    return render(error, finding.names, hint=False).splitlines()


def _indented(lines: Sequence[str]) -> list[str]:
    return ["  " + line for line in lines]


_STYLE = """
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}
section{border-left:.3rem solid var(--c);padding:.1rem 1rem;margin:1.5rem 0;overflow-x:auto}
h2{font-size:1.05rem;overflow-wrap:anywhere}code,pre{font-family:ui-monospace,monospace}
pre{overflow-x:auto}.same{--c:#2a7}.same_here{--c:#c90}.different{--c:#c33}.refused{--c:#a3a}
.unknown{--c:#38a}
@media (prefers-color-scheme:dark){body{background:#16181c;color:#e6e6e6}}
"""


def html(report: Report) -> str:
    """The report as one self-contained page: no scripts, nothing loaded from elsewhere."""
    sections = "".join(map(_section, report.findings))
    remarks = "".join(f"<p>{escape(note)}</p>" for note in notes(report))
    title = escape(headline(report))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{title}</title><style>{_STYLE}</style></head>"
        f"<body><h1>Broadcast audit</h1><p>{title}</p>{remarks}{sections}</body></html>"
    )


def _section(finding: Finding) -> str:
    mark, _ = MARKS[finding.verdict]
    finding = readable(finding)
    parts = [
        f'<section class="{finding.verdict}"><h2>{escape(mark)} {escape(finding.op)} '
        f"<code>{escape(finding.node)}</code></h2><p>{escape(finding.message)} "
        f"<code>{escape(finding.reason)}</code></p>"
    ]
    if finding.verdict is not Verdict.SAME:
        for title, plan in (("In the model", finding.source), ("On the target", finding.target)):
            if isinstance(plan, Plan):
                parts.append(
                    f"<figure><figcaption>{title}</figcaption>{svg(plan, _names(finding, plan))}"
                )
                parts.append("</figure>")
            elif isinstance(plan, BroadcastError):
                parts.append(
                    f"<p>{title}</p><pre>{escape(chr(10).join(_error(plan, finding)))}</pre>"
                )
    if finding.witness is not None:
        parts.append(f"<p>Shown by: {escape(shown(finding.witness))}</p>")
    if finding.fix is not None:
        parts.append(f"<p>Fix: {escape(finding.fix.describe(finding.names))}</p>")
    parts += [f"<p>Note: {escape(note)}</p>" for note in finding.notes]
    return "".join([*parts, "</section>"])
