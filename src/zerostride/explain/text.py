"""The drawing as plain text, with terminal colours if asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import columns
from ..plan import Plan
from .facts import cells, facts, headline, names_of

_STRETCHED, _WARNING, _RESULT, _END = "\x1b[36m", "\x1b[1;33m", "\x1b[1m", "\x1b[0m"


def explain(plan: Plan, names: Sequence[Any] = (), *, color: bool = False) -> str:
    """The aligned drawing of a plan, then in words what stretches, and warnings.

    Args:
        plan: any plan.
        names: what to call the operands and, after them, the result; x, y, z ... otherwise.
        color: mark what stretches with ANSI colours. Whether the terminal wants them (and
            NO_COLOR) is the caller's to know.

    >>> import zerostride as zs
    >>> print(explain(zs.plan((2, 3, 4, 5), (3, 1), rule="paddle", axis=1)))
    rule 'paddle' axis=1 combines x and y
      x       2 3   4 5
      y       . 3 1→4 .
      result  2 3   4 5
      y stretches along result axes 0 (absent→2), 2 (1→4) and 3 (absent→5)
      the result has 120 elements, as many as x
    """
    rows: list[Sequence[Any]] = [cells(plan, k) for k in range(len(plan.operands))]
    rows.append(plan.shape)

    def paint(cell: str, row: int, axis: int) -> str:
        if row == len(plan.operands):
            return _RESULT + cell + _END
        return _STRETCHED + cell + _END if axis in plan.stretched[row] else cell

    drawing = columns(names_of(plan, names), rows, paint if color else None)
    lines = [headline(plan, names), *("  " + line for line in drawing)]
    for kind, text in facts(plan, names):
        if kind == "two_sided":
            text = f"WARNING: {text}"
            lines.append("  " + (_WARNING + text + _END if color else text))
        else:
            lines.append("  " + text)
    return "\n".join(lines)
