"""The drawing as plain text, optionally with terminal colours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.plan import Plan
from ...errors import columns, cut
from .facts import Fact, axis_names, blocks, cells, headline, names_of, result_cells, stretching

_STRETCHED, _WARNING, _RESULT, _END = "\x1b[36m", "\x1b[1;33m", "\x1b[1m", "\x1b[0m"


def explain(plan: Plan, names: Sequence[Any] = (), *, color: bool = False) -> str:
    """The aligned drawing of a plan, then its stretches and warnings in words.

    Args:
        plan: any plan.
        names: what to call the operands and, after them, the result; x, y, z ... otherwise.
        color: mark stretched sizes with ANSI colours. The caller checks the terminal and NO_COLOR.

    >>> import zerostride as zs
    >>> print(explain(zs.plan((2, 3, 4, 5), (3, 1), rule="paddle", axis=1)))
    rule 'paddle' axis=1 combines x and y
      x       2 3   4 5
      y       . 3 1→4 .
      result  2 3   4 5
      y stretches along result axes 0 (absent→2), 2 (1→4) and 3 (absent→5)
      the result has 120 elements, as many as x
    """
    lines = [headline(plan, names)]
    drawings, closing = blocks(plan, names)
    for title, case, case_facts in drawings:
        indent = "    " if title else "  "
        lines += [f"  {title}"] if title else []
        lines += [indent + line for line in drawn(case, names, color=color)]
        lines += [indent + _fact_line(fact, color) for fact in case_facts]
    return "\n".join(map(cut, [*lines, *("  " + _fact_line(fact, color) for fact in closing)]))


def drawn(plan: Plan, names: Sequence[Any] = (), *, color: bool = False) -> list[str]:
    """The operands over the result, in columns; of a plan whose alignment is one."""
    rows: list[Sequence[Any]] = [*cells(plan, names), result_cells(plan, names)]
    stretched = [stretching(plan, k) for k in range(len(plan.operands))] if color else []

    titles: tuple[str, ...] = names_of(plan, names)
    heads = plan.rule == "xarray"
    if heads:
        titles, rows = ("axes", *titles), [axis_names(plan), *rows]

    def paint(cell: str, row: int, axis: int) -> str:
        k = row - heads
        if k == len(plan.operands):
            return _RESULT + cell + _END
        return _STRETCHED + cell + _END if k >= 0 and axis in stretched[k] else cell

    return columns(titles, rows, paint if color else None)


def _fact_line(fact: Fact, color: bool) -> str:
    if fact.kind != "two_sided":
        return fact.text
    text = f"WARNING: {fact.text}"
    return _WARNING + text + _END if color else text
