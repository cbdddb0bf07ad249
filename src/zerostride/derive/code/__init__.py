"""Floor 3: a plan as source that a person can paste into another framework.

One table, :data:`TARGETS`: a target is a sequence of parts, each a text that is written once or an
:class:`Each` that is written for every operand. Reshapes appear only where a target's own
right-alignment would not put the operand in the same place. Sizes that are not known are read from
the operands' shapes, after which the plan's conditions are asserted.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...core.plan import Plan
from .source import code
from .targets import TARGETS, Each, Target


def guard_code(plan: Plan, names: Sequence[str] = ()) -> str:
    """A plan's conditions as assertions over real shapes; `Guard.code` calls it.

    Raises:
        BroadcastError: a condition speaks of a size that the shapes do not tell, or a name cannot
            be used.
    """
    from .symbols import guard_source

    return guard_source(plan, names, whole=True)


__all__ = ["TARGETS", "Each", "Target", "code", "guard_code"]
