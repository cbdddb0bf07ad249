"""Sizes that are numbers, and open sizes.

`shapes` reads whole numbers. `dim` holds the normal form of an expression such as ``2*N - 1``,
`condition` holds formulas over sizes, and `condition_text` writes them. `solve` decides them with
`system`, `parts` and `axioms`, and `simplify` shortens them. `budget` counts the work. `written`
reads shapes as people write them.
The modules of open sizes are loaded when the first open size appears.
In: numbers and words. Out: Dim, Condition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import Misfit, Reason
from . import hooks
from .shapes import (
    MAX_ELEMENTS,
    MAX_RANK,
    Answer,
    Asker,
    OpenSize,
    Shape,
    Size,
    Undecided,
    as_shape,
    as_tuple,
    brief,
    check_elements,
    elements,
    equal,
    is_array,
    is_one,
    is_open,
    is_plain,
    whole_numbers,
)

if TYPE_CHECKING:
    from .atoms import Interval
    from .condition import Condition, Decision
    from .dim import Dim


def _read_dim(value: Any) -> Dim:
    from .parse import as_dim, explained

    with explained(value):
        return as_dim(value)


def _read_condition(text: Any) -> Condition:
    from .parse import as_condition, explained

    with explained(text):
        if not isinstance(text, str):
            words = f"a condition is text such as 'N >= 1', not {brief(text)}"
            raise Misfit(Reason.ATTRIBUTE, words)
        return as_condition(text)


def _decide(condition: Condition, facts: Condition | None) -> Decision:
    from .solve import decide

    return decide(condition, facts)


def _bounds_under(size: Dim, facts: Condition) -> Interval:
    from .solve import bounds_under

    return bounds_under(size, facts)


hooks.read_dim.attach(_read_dim)
hooks.read_condition.attach(_read_condition)
hooks.decide.attach(_decide)
hooks.bounds_under.attach(_bounds_under)

__all__ = [
    "MAX_ELEMENTS",
    "MAX_RANK",
    "Answer",
    "Asker",
    "OpenSize",
    "Shape",
    "Size",
    "Undecided",
    "as_shape",
    "as_tuple",
    "brief",
    "check_elements",
    "elements",
    "equal",
    "is_array",
    "is_one",
    "is_open",
    "is_plain",
    "whole_numbers",
]
