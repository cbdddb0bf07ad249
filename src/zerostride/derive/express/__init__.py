"""A plan under another rule: the least change of its operands.

`search` tries few shapes, least change first, and plans each: a returned expression is checked,
not derived. `merging` merges neighbouring axes where a rank limit stands in the way, `explicit`
inserts Broadcast ops where nothing else helps.
In: a Plan and a rule. Out: Expression, or NotExpressible.
"""

from .expression import Expression
from .search import express

__all__ = ["Expression", "express"]
