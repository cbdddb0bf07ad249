"""A plan drawn as an HTML table: operands in columns over the result, stretched cells hatched.

A table, not a picture: a screen reader reads it, a phone scrolls it, and ten thousand of them are a
few megabytes. Closing tags that HTML lets one leave out are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..errors import BroadcastError
from ..explain import explain
from ..explain.facts import blocks, cells, names_of, result_cells, stretching
from ..models.findings import Finding
from ..plan import Plan
from .markup import esc
from .words import after_fix, names_for, refusal

#: Facts that stand below a drawing; the table shows the others.
_TOLD = frozenset(
    {"stretch", "identical", "dropped", "order", "two_sided", "may_stretch", "needs", "given"}
)
#: Axes of a table; a plan of more is written as text.
_MOST_AXES = 32


def drawings(finding: Finding, target: str, *, tables: bool) -> str:
    """The plans of a finding side by side: in the model, on the target, after the fix.

    Args:
        finding: as it may be shown (`readable`).
        target: the engine.
        tables: draw them; else they are text, which costs a browser less.
    """
    parts = [_drawn("In the model", finding.source, finding, tables)]
    if finding.source != finding.target or finding.target is None:
        parts.append(_drawn(f"On {target}", finding.target, finding, tables))
    else:
        parts = [_drawn(f"In the model and on {target}", finding.source, finding, tables)]
    fixed = after_fix(finding)
    if fixed is not None:
        names = finding.names[: len(fixed.operands)]
        swapped = finding.fix is not None and finding.fix.swapped
        parts.append(_plan("After the fix", fixed, names[::-1] if swapped else names, tables))
    made = "".join(parts)
    return f'<div class="plans">{made}</div>' if made else ""


def _drawn(title: str, plan: Plan | BroadcastError | None, finding: Finding, tables: bool) -> str:
    if isinstance(plan, Plan):
        return _plan(title, plan, names_for(finding, plan), tables)
    if isinstance(plan, BroadcastError) and plan.rows:
        said = esc("\n".join(refusal(plan, finding)), lines=True)
        return f'<figure class="no"><figcaption>{esc(title)}</figcaption><pre>{said}</pre></figure>'
    return ""


def _plan(title: str, plan: Plan, names: Sequence[str], tables: bool) -> str:
    head = f"<figure><figcaption>{esc(title)} <small>{esc(plan.rule.label)}</small></figcaption>"
    if not tables or plan.rank > _MOST_AXES:
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
    """The axis numbers, a row an operand, the result."""
    yield "<tr><td>" + "".join(f'<th scope="col">{axis}' for axis in range(plan.rank))
    *operands, result = names_of(plan, names)
    for k, name in enumerate(operands):
        wide = stretching(plan, k)
        yield f'<tr><th scope="row">{esc(name)}'
        row = cells(plan, k, names)
        yield "" if row else "<td>()"
        for axis, cell in enumerate(row):
            kind = ' class="w"' if axis in wide else ' class="e"' if cell is None else ""
            # An operand that lacks the axis is read again and again along it, as a 1 is.
            yield f"<td{kind}>{'·' if cell is None else esc(cell)}"
    yield f'<tr class="r"><th scope="row">{esc(result)}'
    yield "".join(f"<td>{esc(cell)}" for cell in result_cells(plan, names)) or "<td>()"
