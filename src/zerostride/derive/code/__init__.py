"""A plan as source code for another framework.

`targets` has one row per framework: a sequence of parts, each a text that is written once or an
:class:`Each` that is written for every operand. A reshape is written only if the framework's own
alignment would put the operand elsewhere. Open sizes are read from the operands.
In: a Plan, a target. Out: source to paste.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...core.plan import Plan
from .source import code
from .targets import TARGETS, Each, Target


def guard_code(plan: Plan, names: Sequence[str] = ()) -> str:
    """A plan's conditions as assertions over real shapes; `Guard.code` calls it.

    Raises:
        BroadcastError: the shapes do not determine a size in a condition, or a name cannot be used.
    """
    from .symbols import guard_source

    return guard_source(plan, names, whole=True)


__all__ = ["TARGETS", "Each", "Target", "code", "guard_code"]
