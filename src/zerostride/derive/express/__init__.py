"""Floor 3: saying a plan in another rule.

A plan can be expressed under a rule if the operands can be reshaped (ones put in or taken out, the
data untouched) so that the rule makes the same plan of them. The few shapes worth trying are tried,
least change first, and each is planned: what is returned has been checked, not derived.
"""

from .expression import Expression
from .search import express

__all__ = ["Expression", "express"]
