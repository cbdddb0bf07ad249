"""Floor 5: sizes through a whole model: every tensor's shape in terms of the inputs' sizes.

`flow` walks a graph once, in order. Each op has a row (:mod:`.table`) that says what comes out of
what goes in, and what must hold for that; nothing is guessed. What must hold is collected as needs.
"""

from .needs import Failure, Need
from .result import Counts, Flow
from .walk import flow

__all__ = ["Counts", "Failure", "Flow", "Need", "flow"]
