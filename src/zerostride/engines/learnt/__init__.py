"""Rows of engines that were learnt from a runner: a form of broadcasting with deviations.

`forms` are the ways to place and stretch operands, `traits` describe where an engine deviates,
`row` makes a Rule of both, and `file` reads the files in which learnt engines are kept.
In: a file. Out: a row of the engine table.
"""

from .forms import FORMS, PLACES, STRETCHES, Form
from .row import ANSWERS, EFFECTS, Deviation, LearntRow
from .traits import TRAITS, Literal, Test, Trait

__all__ = [
    "ANSWERS",
    "EFFECTS",
    "FORMS",
    "PLACES",
    "STRETCHES",
    "TRAITS",
    "Deviation",
    "Form",
    "LearntRow",
    "Literal",
    "Test",
    "Trait",
]
