"""The parts of the page that only some reports have: rewrites, checks, needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..models.bisection import Culprit
from ..models.equivalence import Sameness
from ..models.findings import Change, Report
from .bisection import culprit_lines, stage_rows
from .bisection_plot import error_plot
from .drawing import figure
from .equivalence import SAMENESS, narrower_lines, output_lines, sizes_lines
from .markup import esc
from .plain import CHECK_CELLS, check_row, checked, computed_words, stale_lines
from .words import LONGEST_NAME, OUTCOMES, shown

#: Needs of a model that are listed; a model in use has some ten.
_MOST_NEEDS = 200
#: The cells of an output of two models.
EQUIVALENCE_CELLS = ("verdict", "output", "in the second", "result")


def changes(report: Report) -> str:
    """The changes of a port: lines before and after, and how many numbers were computed."""
    if report.command not in ("port", "convert"):
        return ""
    if not report.changes:
        return '<p class="none">Nothing was rewritten.</p>'
    return "<h3>What was rewritten</h3>" + "".join(map(_change, report.changes))


def _change(change: Change) -> str:
    sides = "".join(_side(name, lines) for name, lines in _sides(change))
    return (
        f'<article class="change"><h4><strong>{esc(shown(change.op, LONGEST_NAME))}</strong> '
        f"<code>{esc(shown(change.node, LONGEST_NAME))}</code> "
        f'<span class="reason">{esc(shown(change.by, LONGEST_NAME))}</span></h4>'
        f'<p>{esc(shown(change.words))}</p><div class="diff">{sides}</div>'
        f'<p class="fact">{esc(computed_words(change))}</p></article>'
    )


def _sides(change: Change) -> Iterator[tuple[str, tuple[str, ...]]]:
    yield "before", change.before
    yield "after", change.after


def _side(name: str, lines: tuple[str, ...]) -> str:
    text = "\n".join(esc(shown(line)) for line in lines)
    head = f'<figure class="{name}"><figcaption>{name.title()}</figcaption>'
    return f"{head}<pre>{text}</pre></figure>"


def bisection(report: Report) -> str:
    """The error along the depth of the model, the culprits, and every tensor in a table."""
    if report.bisection is None:
        return ""
    titles, *rows = stage_rows(report.bisection)
    if not rows:
        return '<p class="none">Nothing was computed.</p>'
    head = "".join(f"<th>{esc(title)}" for title in titles)
    lines = ("<tr>" + "".join(f"<td>{esc(cell)}" for cell in row) for row in rows)
    return (
        error_plot(report.bisection)
        + "".join(map(_culprit, report.bisection.culprits))
        + f'<div class="x"><table class="t"><thead><tr>{head}<tbody>{"".join(lines)}</table></div>'
    )


def equivalence(report: Report) -> str:
    """The verdict of each output, and the runs behind it."""
    if report.equivalence is None:
        return ""
    result = report.equivalence
    rows = [
        (SAMENESS[output.verdict], output.name, output.other, [*output_lines(output)])
        for output in result.outputs
    ]
    narrower = narrower_lines(result)
    if narrower:
        rows.append((SAMENESS[Sameness.DIFFERENT], "", "", narrower))
    body = "".join(
        f'<tr><td><span class="badge {kind}">{mark.lower()}</span>'
        f"<td>{_code(name)}<td>{_code(other)}<td>{words if name else ''}{_facts(lines)}"
        for (mark, words, kind), name, other, lines in rows
    )
    head = "".join(f'<th scope="col">{name}' for name in EQUIVALENCE_CELLS)
    return (
        '<div class="x"><table class="t"><caption>The outputs of both models</caption>'
        f"<thead><tr>{head}</thead><tbody>{body}</table></div>{_facts(sizes_lines(result))}"
    )


def _code(name: str) -> str:
    return f"<code>{esc(shown(name, LONGEST_NAME))}</code>" if name else ""


def _facts(lines: Iterable[str]) -> str:
    return "".join(f'<p class="fact">{esc(line)}</p>' for line in lines)


def _culprit(culprit: Culprit) -> str:
    text = "\n".join(culprit_lines(culprit, drawn=False))
    titles = ("In the model", "On the other side")
    pairs = zip(titles, culprit.plans or (), strict=False)
    figures = "".join(figure(title, plan, culprit.names) for title, plan in pairs)
    plans = f'<div class="plans">{figures}</div>' if figures else ""
    return f'<pre class="culprit">{esc(text, lines=True)}</pre>{plans}'


def checks(report: Report) -> str:
    """The table of agreement."""
    if report.command not in ("verify", "convert"):
        return ""
    if not report.checks:
        return '<p class="none">Nothing was computed.</p>'
    rows = []
    for check, mark in checked(report):
        cells = map(esc, check_row(check, mark))
        answer, audit, node, op, shapes, numbers, error, detail = cells
        rows.append(
            f'<tr><td><span class="badge {OUTCOMES[check.outcome][2]}">{answer.lower()}</span>'
            f'<td>{audit}<td><code>{node}</code><td>{op}<td>{shapes}<td class="n">{numbers}'
            f'<td class="n">{error}<td>{detail}'
        )
    head = "".join(f'<th scope="col">{name or "detail"}' for name in CHECK_CELLS)
    return (
        '<div class="x"><table class="t checks"><caption>What the engine answered</caption>'
        f"<thead><tr>{head}</thead><tbody>{''.join(rows)}</table></div>"
    )


def needs(report: Report) -> str:
    """The model's own needs of open sizes."""
    if not report.needs:
        return ""
    items = "".join(
        f"<li><code>{esc(shown(need.condition))}</code> at <code>{esc(shown(need.node_path, 200))}"
        f"</code> ({esc(shown(need.op, 200))}): {esc(shown(need.words))}"
        for need in report.needs[:_MOST_NEEDS]
    )
    more = len(report.needs) - _MOST_NEEDS
    items += f"<li>and {more:,} more" if more > 0 else ""
    title = "What the model needs of its sizes"
    return f'<details class="fold"><summary>{title}</summary><ul>{items}</ul></details>'


def stale(report: Report) -> str:
    """The entries of a baseline that the model no longer has."""
    items = "".join(f"<li>{esc(line)}" for line in stale_lines(report))
    return f'<ul class="stale">{items}</ul>' if items else ""
