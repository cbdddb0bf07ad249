"""A plan drawn as an HTML table: operands in columns over the result, stretched cells hatched.

A table suits screen readers and phones, and ten thousand of them take a few megabytes. Closing tags
that HTML makes optional are omitted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..core.plan import Plan
from ..derive.explain import explain
from ..derive.explain.facts import blocks, cells, names_of, result_cells, stretching
from .markup import esc
from .sheet import Sheet
from .words import refusal

#: The facts below a drawing; the table shows the others.
_TOLD = frozenset(
    {"stretch", "identical", "dropped", "order", "two_sided", "may_stretch", "needs", "given"}
)
#: The most axes of a table; a plan with more is written as text.
_MOST_AXES = 32


def drawings(sheet: Sheet) -> str:
    """The plans of a finding as tables side by side."""
    pictures = "".join(
        figure(title, drawing.plan, drawing.names)
        if isinstance(drawing.plan, Plan)
        else f'<figure class="no"><figcaption>{esc(title)}</figcaption>'
        f"<pre>{esc(chr(10).join(refusal(drawing.plan, sheet.finding)), lines=True)}</pre></figure>"
        for drawing in (*sheet.drawings, *sheet.fixed)
        for title in [drawing.title[0].upper() + drawing.title[1:]]
    )
    return f'<div class="plans">{pictures}</div>' if pictures else ""


def figure(title: str, plan: Plan, names: Sequence[str]) -> str:
    """One plan as a table with a title."""
    head = f"<figure><figcaption>{esc(title)} <small>{esc(plan.rule.label)}</small></figcaption>"
    if plan.rank > _MOST_AXES:
        return f"{head}<pre>{esc(explain(plan, names), lines=True)}</pre></figure>"
    drawn, closing = blocks(plan, names)
    parts = [head]
    for title_of_case, case, facts in drawn:
        if title_of_case:
            parts.append(f'<p class="case">{esc(title_of_case)}')
        parts.append(f'<div class="x"><table class="p">{"".join(_rows(case, names))}</table></div>')
        parts += [_fact(kind, words) for kind, words in facts if kind in _TOLD]
    parts += [_fact(kind, words) for kind, words in closing]
    return "".join([*parts, "</figure>"])


def _fact(kind: str, words: str) -> str:
    warning = "<strong>Warning:</strong> " if kind == "two_sided" else ""
    return f'<p class="fact">{warning}{esc(words)}'


def _rows(plan: Plan, names: Sequence[str]) -> Iterator[str]:
    """The rows: axis numbers, each operand, the result."""
    yield "<tr><td>" + "".join(f'<th scope="col">{axis}' for axis in range(plan.rank))
    *operands, result = names_of(plan, names)
    for k, (name, row) in enumerate(zip(operands, cells(plan, names), strict=True)):
        wide = stretching(plan, k)
        yield f'<tr><th scope="row">{esc(name)}'
        yield "" if row else "<td>()"
        for axis, cell in enumerate(row):
            kind = ' class="w"' if axis in wide else ' class="e"' if cell is None else ""
            # An operand without the axis is repeated along it, like a 1.
            yield f"<td{kind}>{'·' if cell is None else esc(cell)}"
    yield f'<tr class="r"><th scope="row">{esc(result)}'
    yield "".join(f"<td>{esc(cell)}" for cell in result_cells(plan, names)) or "<td>()"
