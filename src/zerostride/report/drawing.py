"""A plan drawn as an HTML table: operands in columns over the result, stretched cells hatched.

A table suits screen readers and phones, and ten thousand of them take a few megabytes. Closing tags
that HTML makes optional are omitted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from ..core.plan import Plan
from ..derive.explain import explain
from ..derive.explain.facts import blocks, cells, names_of, result_cells, stretching
from ..errors import BroadcastError, columns
from ..models.findings import Finding
from .markup import esc
from .words import after_fix, names_for, refusal

#: The facts below a drawing; the table shows the others.
_TOLD = frozenset(
    {"stretch", "identical", "dropped", "order", "two_sided", "may_stretch", "needs", "given"}
)
#: The most axes of a table; a plan with more is written as text.
_MOST_AXES = 32


#: A plan or a refusal, with its title and the names of its operands.
_Side: TypeAlias = tuple[str, Plan | BroadcastError, Sequence[str]]


def _sides(finding: Finding, target: str) -> list[_Side]:
    """The plans of a finding: in the model, on the target, after the fix."""
    sides: list[_Side] = []
    alike = finding.source is not None and finding.source == finding.target
    both = ((f"In the model and on {target}", finding.source),)
    each = (("In the model", finding.source), (f"On {target}", finding.target))
    for title, plan in both if alike else each:
        if isinstance(plan, Plan):
            sides.append((title, plan, names_for(finding, plan)))
        elif isinstance(plan, BroadcastError) and plan.rows:
            sides.append((title, plan, finding.names))
    fixed = after_fix(finding)
    if fixed is not None:
        names = finding.names[: len(fixed.operands)]
        swapped = finding.fix is not None and finding.fix.swapped
        sides.append(("After the fix", fixed, names[::-1] if swapped else names))
    return sides


def drawings(finding: Finding, target: str) -> str:
    """The plans of a finding as tables side by side.

    Args:
        finding: the finding, made printable by `readable`.
        target: the engine.
    """
    pictures = "".join(
        _plan(title, plan, names)
        if isinstance(plan, Plan)
        else f'<figure class="no"><figcaption>{esc(title)}</figcaption>'
        f"<pre>{esc(chr(10).join(refusal(plan, finding)), lines=True)}</pre></figure>"
        for title, plan, names in _sides(finding, target)
    )
    return f'<div class="plans">{pictures}</div>' if pictures else ""


def drawn_lines(finding: Finding, target: str) -> list[str]:
    """The plans of a finding as lines of text: only the columns."""
    lines: list[str] = []
    for title, plan, names in _sides(finding, target):
        if isinstance(plan, BroadcastError):
            lines += [f"{title}:", *(f"  {line}" for line in refusal(plan, finding)[1:])]
            continue
        lines.append(f"{title}, {plan.rule.label}:")
        for title_of_case, case, _ in blocks(plan, names)[0] if plan.open else [("", plan, ())]:
            rows = [*(cells(case, k, names) for k in range(len(case.operands)))]
            rows.append(result_cells(case, names))
            lines += [f"  {title_of_case}"] if title_of_case else []
            lines += [f"  {line}" for line in columns(names_of(case, names), rows)]
    return lines


def _plan(title: str, plan: Plan, names: Sequence[str]) -> str:
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
    for k, name in enumerate(operands):
        wide = stretching(plan, k)
        yield f'<tr><th scope="row">{esc(name)}'
        row = cells(plan, k, names)
        yield "" if row else "<td>()"
        for axis, cell in enumerate(row):
            kind = ' class="w"' if axis in wide else ' class="e"' if cell is None else ""
            # An operand without the axis is repeated along it, like a 1.
            yield f"<td{kind}>{'·' if cell is None else esc(cell)}"
    yield f'<tr class="r"><th scope="row">{esc(result)}'
    yield "".join(f"<td>{esc(cell)}" for cell in result_cells(plan, names)) or "<td>()"
