"""Functions that values of this room call, and that compute with these values.

`zerostride.sizes` attaches each. Their modules are loaded at the first call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..system.hooks import Hook

if TYPE_CHECKING:
    from .atoms import Interval
    from .condition import Condition, Decision
    from .dim import Dim

#: Reads a size from text or a number: `parse`.
read_dim: Hook[[Any], Dim] = Hook()
#: Reads a condition from text: `parse`.
read_condition: Hook[[str], Condition] = Hook()
#: Decides whether a condition holds: `solve`.
decide: Hook[[Condition, Condition | None], Decision] = Hook()
#: The least and greatest value of a size where a condition holds: `solve`.
bounds_under: Hook[[Dim, Condition], Interval] = Hook()
