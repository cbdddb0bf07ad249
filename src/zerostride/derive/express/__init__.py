"""A plan under another rule: the least change of its operands.

`search` tries a few shapes, least change first, and plans each, so a returned expression is
checked. `merging` merges neighbouring axes if a rank limit is exceeded. `explicit` inserts
Broadcast ops if nothing else works.
In: a Plan and a rule. Out: Expression, or NotExpressible.
"""

from .expression import Expression
from .search import express

__all__ = ["Expression", "express"]
