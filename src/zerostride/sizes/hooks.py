"""Functions that the values of this room call, and that work on these values.

`zerostride.sizes` attaches each; the modules are loaded when they are first called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..system.hooks import Hook

if TYPE_CHECKING:
    from .atoms import Interval
    from .condition import Condition, Decision
    from .dim import Dim

#: A size from text or a number: `parse`.
read_dim: Hook[[Any], Dim] = Hook()
#: A condition from text: `parse`.
read_condition: Hook[[str], Condition] = Hook()
#: Whether a condition holds for any values: `solve`.
decide: Hook[[Condition, Condition | None], Decision] = Hook()
#: The least and largest value of a size where a condition holds: `solve`.
bounds_under: Hook[[Dim, Condition], Interval] = Hook()
