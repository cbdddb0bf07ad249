"""Floor 6: a report put before a reader: plain text for a terminal, a page for a browser.

What a machine reads is `Report.to_json`. Text here is made of findings and plans alone, and asks no
rule anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from .errors import BroadcastError, render
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


def headline(report: Report) -> str:
    """The report in a line."""
    counts = ", ".join(
        f"{count} {MARKS[verdict][0].lower()}" for verdict, count in report.counts.items() if count
    )
    via = f" via {report.via}" if report.via else ""
    total = len(report.findings)
    return (
        f"{report.model} on {report.target} {report.release}{via}: "
        f"{total} broadcast{'' if total == 1 else 's'}" + (f": {counts}" if counts else "")
    )


def text(report: Report, *, full: bool = False) -> str:
    """The report in full sentences: what is not the same, with drawing, numbers and fix.

    Args:
        report: what the audit found.
        full: findings that are the same too.
    """
    shown = report.findings if full else report.worst()
    parts = [headline(report)]
    parts += [f"note: {note}" for note in report.notes]
    parts += ["\n" + finding_text(finding) for finding in shown]
    return "\n".join(parts)


def finding_text(finding: Finding) -> str:
    """One finding with everything a reader needs to act on it."""
    mark, _ = MARKS[finding.verdict]
    lines = [f"{mark}  {finding.op} {finding.node}  [{finding.reason}]", f"  {finding.message}"]
    lines += _indented(_drawings(finding))
    if finding.witness is not None:
        lines.append(f"  shown by: {finding.witness}")
    if finding.fix is not None:
        lines.append(f"  fix: {finding.fix.describe(finding.names)}")
    return "\n".join(lines)


def _drawings(finding: Finding) -> Sequence[str]:
    """The model's plan and the target's, each drawn where there is one."""
    drawings: list[str] = []
    for title, plan in (("in the model", finding.source), ("on the target", finding.target)):
        if isinstance(plan, Plan):
            drawings += [f"{title}:", *_indented(explain(plan, finding.names).splitlines())]
        elif isinstance(plan, BroadcastError) and plan.rows:
            drawings += [f"{title}:", *_indented(_error(plan, finding))]
    if finding.source == finding.target:
        drawings = drawings[: len(drawings) // 2]
    return drawings


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
    notes = "".join(f"<p>note: {escape(note)}</p>" for note in report.notes)
    title = escape(headline(report))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{title}</title><style>{_STYLE}</style></head>"
        f"<body><h1>Broadcast audit</h1><p>{title}</p>{notes}{sections}</body></html>"
    )


def _section(finding: Finding) -> str:
    mark, _ = MARKS[finding.verdict]
    parts = [
        f'<section class="{finding.verdict}"><h2>{escape(mark)} {escape(finding.op)} '
        f"<code>{escape(finding.node)}</code></h2><p>{escape(finding.message)} "
        f"<code>{escape(finding.reason)}</code></p>"
    ]
    if finding.verdict is not Verdict.SAME:
        for title, plan in (("In the model", finding.source), ("On the target", finding.target)):
            if isinstance(plan, Plan):
                parts.append(f"<figure><figcaption>{title}</figcaption>{svg(plan, finding.names)}")
                parts.append("</figure>")
            elif isinstance(plan, BroadcastError):
                parts.append(
                    f"<p>{title}</p><pre>{escape(chr(10).join(_error(plan, finding)))}</pre>"
                )
    if finding.witness is not None:
        parts.append(f"<p>Shown by: {escape(str(finding.witness))}</p>")
    if finding.fix is not None:
        parts.append(f"<p>Fix: {escape(finding.fix.describe(finding.names))}</p>")
    return "".join([*parts, "</section>"])
