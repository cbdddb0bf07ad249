"""A report as one HTML page: a summary, filters, and every finding with its drawings.

The page loads nothing, and suits print and phones. The script only filters; without it the page
shows everything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, pairwise

from ..models.findings import Finding, Report, Unread, Verdict
from ..models.sources import Evidence
from ..sizes.budget import WRITING_STEPS, allowance
from ..system.version import __version__
from . import page_work
from .drawing import drawings
from .groups import Group, grouped
from .markup import esc, page
from .plain import unread_text
from .sheet import Sheet
from .words import (
    OUTCOMES,
    TITLES,
    WORST,
    Reports,
    counted,
    headline,
    listed,
    mark_of,
    notes,
    readable,
    shapes_text,
    shown,
    total_line,
    totals,
)

#: The groups that are open at first: a page that begins with a list is read more easily.
_OPEN = 3
#: The widest strip of findings along a model; in a longer model some findings share a column.
_COLUMNS = 1000
#: The least number of findings for which there are filters.
_FILTERED = 5
#: The most groups whose plans are drawn as tables; later groups are text in one element. A page of
#: 10,000 different groups had 25 MB with 1,500 drawn and many elements for the rest; it now has
#: 14 MB and opens in 2 s (benchmarks/report_scale.py).
_DRAWN = 500
#: The legend of a drawing.
_LEGEND = (
    '<p class="legend">Drawings have a column for each axis of the result. '
    '<span class="p"><span class="w">1→5</span></span> stretches along the axis, '
    '<span class="p"><span class="w">·</span></span> is not there and is repeated, '
    '<span class="p"><span class="r">5</span></span> is the result.'
)


@allowance(WRITING_STEPS)
def html(reports: Reports) -> str:
    """One report or many as one self-contained page.

    Args:
        reports: a report of any command, or a list of reports and of models without one.
    """
    every = listed(reports)
    single = every[0] if len(every) == 1 and isinstance(every[0], Report) else None
    title = headline(single) if single is not None else total_line(every)
    return page(title, "".join(_Page(every).parts()))


class _Page:
    """The state of one page: numbers and counts that all its findings share."""

    def __init__(self, reports: Sequence[Report | Unread]) -> None:
        self.reports = reports
        self.read = [report for report in reports if isinstance(report, Report)]
        self.groups = {
            id(report): grouped(zip(report.findings, _known(report), strict=True))
            for report in self.read
        }
        self.every = [group for groups in self.groups.values() for group in groups]
        self.sources: dict[Evidence, int] = {}
        self.drawn = 0

    def parts(self) -> Iterator[str]:
        """The body of the page."""
        yield '<a class="skip" href="#findings">Skip to the findings</a>'
        yield self._header()
        yield "<main>"
        yield self._summary()
        yield self._filters()
        yield '<div id="findings">'
        if any(group.first.verdict is not Verdict.SAME for group in self.every):
            yield _LEGEND
        for number, report in enumerate(self.reports, 1):
            yield from self._report(number, report)
        yield '<p class="none" id="none" hidden>No finding matches the filters.</p></div>'
        yield self._sources()
        yield f"</main><footer>Made by zerostride {esc(__version__)}.</footer>"

    # The head of the page.

    def _header(self) -> str:
        commands = {report.command for report in self.read}
        title = TITLES.get(commands.pop(), "Report") if len(commands) == 1 else "Report"
        if len(self.reports) == 1 and self.read:
            (report,) = self.read
            about = f"<code>{esc(shown(report.model))}</code> "
            if report.equivalence is not None:
                about += f"and <code>{esc(shown(report.target))}</code>"
            else:
                about += f"on <strong>{esc(report.place)}</strong>"
        else:
            count = len(self.reports)
            places = sorted({report.place for report in self.read})
            about = f"{count} model{'' if count == 1 else 's'}"
            about += f" on <strong>{esc(', '.join(places))}</strong>" if places else ""
        return f'<header><p class="brand">zerostride</p><h1>{title}</h1><p>{about}</p></header>'

    def _summary(self) -> str:
        total = totals(self.reports)
        text = '<section aria-label="Summary" class="summary">'
        if len(self.reports) == 1 and self.read:
            (report,) = self.read
            if report.command != "audit" or report.baseline is not None:
                text += f'<p class="headline">{esc(headline(report))}</p>'
        text += _tiles(total) + _bar(total)
        if len(self.reports) == 1 and self.read:
            text += _along(self.read[0].findings)
        reasons = Counter(
            finding.reason
            for report in self.read
            for finding in report.findings
            if finding.verdict is not Verdict.SAME
        )
        if reasons:
            rows = "".join(
                f"<li><code>{esc(shown(reason))}</code> <strong>{count:,}</strong>"
                for reason, count in reasons.most_common()
            )
            text += f'<h2 class="minor">By reason</h2><ul class="reasons">{rows}</ul>'
        if len(self.reports) > 1:
            text += self._models()
        return text + "</section>"

    def _models(self) -> str:
        marks = [mark for mark, count in totals(self.reports).items() if count]
        head = "".join(f'<th scope="col">{esc(mark)}' for mark in marks)
        rows = []
        for number, report in enumerate(self.reports, 1):
            name = f'<tr><th scope="row"><a href="#m{number}">{esc(shown(report.model, 200))}</a>'
            if isinstance(report, Unread):
                rows.append(f'{name}<td class="unread" colspan="{max(1, len(marks))}">not read')
                continue
            counts = counted(report)
            rows.append(name + "".join(f"<td>{counts.get(mark) or '–'}" for mark in marks))
        return (
            '<div class="x"><table class="t models"><caption>By model</caption>'
            f'<thead><tr><th scope="col">model{head}</thead><tbody>{"".join(rows)}</table></div>'
        )

    def _filters(self) -> str:
        """The filter controls, hidden until the script runs."""
        findings = [finding for report in self.read for finding in report.findings]
        if len(findings) < _FILTERED:
            return ""
        counts = Counter(finding.verdict for finding in findings)
        chips = "".join(
            f'<button type="button" class="chip {verdict}" data-v="{verdict}" '
            f'aria-pressed="true">{mark_of(verdict)} <span>{counts[verdict]:,}</span></button>'
            for verdict in WORST
            if counts[verdict]
        )
        ops = _select("op", "Op", sorted({shown(finding.op, 200) for finding in findings}))
        reasons = _select("reason", "Reason", sorted({finding.reason for finding in findings}))
        return (
            '<form class="filters" role="search" aria-label="Filter the findings" hidden>'
            f'<div class="chips" role="group" aria-label="Verdicts">{chips}</div>{ops}{reasons}'
            '<label>Text <input type="search" id="text" placeholder="node, tensor, shape" '
            'title="Press / to search" autocomplete="off" spellcheck="false"></label>'
            '<button type="button" id="open">Open all</button>'
            '<output id="count" aria-live="polite"></output></form>'
        )

    # One model.

    def _report(self, number: int, report: Report | Unread) -> Iterator[str]:
        yield f'<section class="model" id="m{number}">'
        if isinstance(report, Unread):
            yield f"<h2>{esc(shown(report.model, 400))}</h2>"
            yield f'<p class="unread">Not read: {esc(unread_text(report))}</p></section>'
            return
        if len(self.reports) > 1:
            yield f"<h2>{esc(shown(report.model, 400))}</h2><p>{esc(headline(report))}</p>"
        yield "".join(f'<p class="note">{esc(note)}</p>' for note in notes(report))
        yield page_work.stale(report)
        yield page_work.changes(report)
        yield page_work.checks(report)
        yield page_work.bisection(report)
        yield page_work.equivalence(report)
        groups = sorted(
            self.groups[id(report)],
            key=lambda group: (group.accepted, WORST.index(group.first.verdict)),
        )
        if report.command in ("port", "convert") and any(
            g.first.verdict is not Verdict.SAME for g in groups
        ):
            yield "<h3>What is left</h3>"
        if report.command == "verify" and groups:
            yield "<h3>What the audit says</h3>"
        for group in groups:
            if group.first.verdict is not Verdict.SAME:
                yield self._group(group, report)
        yield self._same([group for group in groups if group.first.verdict is Verdict.SAME])
        yield page_work.needs(report)
        if report.before:
            yield "<details class='fold'><summary>The findings before the port</summary>"
            for group in grouped((finding, False) for finding in report.before):
                if group.first.verdict is not Verdict.SAME:
                    yield self._group(group, report, past=True)
            yield "</details>"
        yield "</section>"

    def _group(self, group: Group, report: Report, *, past: bool = False) -> str:
        """One finding, or several that differ in names alone."""
        sheet = Sheet(group.first, report.target)
        finding = sheet.finding
        count = len(group.findings)
        several = f' <span class="times">× {count:,} nodes</span>' if count > 1 else ""
        number = f' data-n="{count}"' if count > 1 else ""
        badge = ' <span class="known">known</span>' if group.accepted else ""
        self.drawn += 1
        kept = "" if past else ' class="f"'
        if self.drawn <= _DRAWN:
            body = f"<p>{esc(finding.message)}</p>{drawings(sheet)}{self._details(sheet)}"
        else:
            body = f"<pre>{esc(self._plainly(sheet), lines=True)}</pre>"
        return (
            f'<details{kept} data-v="{finding.verdict}" data-o="{esc(finding.op)}" '
            f'data-r="{esc(finding.reason)}"{number}{" open" if self.drawn <= _OPEN else ""}>'
            f'<summary><span class="badge {finding.verdict}">{sheet.mark}</span> '
            f"<strong>{esc(finding.op)}</strong> <code>{esc(finding.node)}</code> "
            f'<span class="shapes">{esc(sheet.shapes)}</span>{several}{badge}'
            f'<span class="reason">{esc(finding.reason)}</span></summary>'
            f"{body}{_nodes(group)}</details>"
        )

    def _details(self, sheet: Sheet) -> str:
        """The sections and sources of a finding."""
        rows = [(part.label, "".join(map(_span, part.spans))) for part in sheet.sections]
        sources = ", ".join(
            f'{esc(source.what)} ({source.how}) <a href="#s{number}">[{number}]</a>'
            for source, number in self._numbered(sheet)
        )
        rows += [("known from", sources)] if sources else []
        body = "".join(f"<dt>{label.capitalize()}<dd>{words}" for label, words in rows)
        return f"<dl>{body}</dl>" if rows else ""

    def _plainly(self, sheet: Sheet) -> str:
        """The same as text: a browser shows ten thousand of them."""
        drawn = [line for drawing in sheet.drawings for line in drawing.lines()]
        rows = [f"{part.label}: {part.text}" for part in sheet.sections]
        numbers = ", ".join(f"[{number}]" for _, number in self._numbered(sheet))
        rows += [f"known from: {numbers}"] if numbers else []
        return "\n".join([sheet.finding.message, *drawn, *rows])

    def _numbered(self, sheet: Sheet) -> list[tuple[Evidence, int]]:
        """The sources of a finding with their numbers on the page."""
        numbers = self.sources
        return [(one, numbers.setdefault(one, len(numbers) + 1)) for one in sheet.sources]

    def _sources(self) -> str:
        """The list of numbered sources."""
        if not self.sources:
            return ""
        items = "".join(
            f'<li id="s{number}"><strong>{esc(source.what)}</strong>, '
            f"{source.how}: {esc(source.source)}"
            for source, number in self.sources.items()
        )
        return f'<section class="sources"><h2>Sources</h2><ol>{items}</ol></section>'

    def _same(self, groups: Sequence[Group]) -> str:
        """The findings that are the same, as a list without drawings."""
        count = sum(len(group.findings) for group in groups)
        if not count:
            return ""
        rows = "".join(
            f'<tr class="f" data-v="same" data-o="{esc(finding.op)}" '
            f'data-r="{esc(finding.reason)}"><td>{esc(finding.op)}'
            f"<td><code>{esc(finding.node)}</code>{_remarks(finding)}"
            f"<td>{esc(shapes_text(finding))}"
            for group in groups
            for finding in map(readable, group.findings)
        )
        return (
            f'<details class="fold same"><summary><span class="badge same">same</span> {count:,} '
            f'broadcast{"" if count == 1 else "s"}</summary><div class="x"><table class="t">'
            '<thead><tr><th scope="col">op<th scope="col">node<th scope="col">shapes</thead>'
            f"<tbody>{rows}</table></div></details>"
        )


#: The tags of a span's style.
_TAGS = {
    "": "{}",
    "code": "<code>{}</code>",
    "fix": '<span class="fix">{}</span>',
    "good": '<strong class="good">{}</strong>',
    "bad": '<strong class="bad">{}</strong>',
}


def _span(span: tuple[str, str]) -> str:
    text, style = span
    return _TAGS[style].format(esc(text))


def _remarks(finding: Finding) -> str:
    """The notes of a finding that is the same, for example on an older release."""
    return "".join(f'<p class="fact">{esc(shown(note))}' for note in finding.notes)


def _known(report: Report) -> list[bool]:
    accepted = report.baseline.accepted if report.baseline is not None else frozenset()
    return [k in accepted for k in range(len(report.findings))]


#: The class of a mark, for its colour.
_KINDS = {mark_of(verdict): verdict for verdict in Verdict} | {
    mark.lower(): verdict for mark, _, verdict in OUTCOMES.values()
}


def _tiles(total: Mapping[str, int]) -> str:
    tiles = "".join(
        f'<li class="{_KINDS[mark]}{"" if count else " zero"}"><strong>{count:,}</strong> {mark}'
        for mark, count in total.items()
    )
    return f'<ul class="tiles">{tiles}</ul>' if any(total.values()) else ""


def _bar(total: Mapping[str, int]) -> str:
    """The shares as a bar; the tiles above have the numbers."""
    whole = sum(total.values())
    if not whole:
        return ""
    parts, left = [], 0.0
    for mark, count in total.items():
        width = 100 * count / whole
        if count:
            kind = _KINDS[mark]
            parts.append(f'<rect class="{kind}" x="{left:.3f}" width="{width:.3f}" height="1"/>')
        left += width
    return (
        '<svg class="bar" viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden="true">'
        f"{''.join(parts)}</svg>"
    )


def _along(findings: Sequence[Finding]) -> str:
    """The verdicts along the model, its first node at the left; neighbours alike are one bar."""
    count = len(findings)
    if count < _FILTERED or all(finding.verdict is Verdict.SAME for finding in findings):
        return ""
    columns = min(count, _COLUMNS)
    # Of findings that share a column the worst is shown.
    worst = [
        min((one.verdict for one in findings[first:last]), key=WORST.index)
        for first, last in pairwise(count * k // columns for k in range(columns + 1))
    ]
    bars, left = [], 0
    for verdict, run in groupby(worst):
        width = len(list(run))
        bars.append(f'<rect class="{verdict}" x="{left}" width="{width}" height="1"/>')
        left += width
    return (
        '<figure class="along"><figcaption>Along the model, from its first node to its last'
        f'</figcaption><svg class="bar" viewBox="0 0 {columns} 1" preserveAspectRatio="none" '
        f'role="img" aria-label="The verdicts of {count:,} broadcasts along the model">'
        f"{''.join(bars)}</svg></figure>"
    )


def _select(name: str, label: str, values: Sequence[str]) -> str:
    options = "".join(f'<option value="{esc(value)}">{esc(value)}</option>' for value in values)
    return (
        f'<label>{label} <select id="{name}"><option value="">all</option>'
        f"{options}</select></label>"
    )


def _nodes(group: Group) -> str:
    """The nodes of a group and their operands."""
    if len(group.findings) == 1:
        return ""
    items = "".join(
        f"<li><code>{esc(finding.node)}</code> <span>{esc(', '.join(finding.names))}</span>"
        for finding in map(readable, group.findings)
    )
    return (
        f'<details class="nodes"><summary>{len(group.findings):,} nodes alike</summary>'
        f"<ul>{items}</ul></details>"
    )
