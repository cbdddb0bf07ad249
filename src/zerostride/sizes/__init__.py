"""Floor 0: sizes. Whole numbers in `sizes`; sizes that are not known yet in the other modules.

`dim` has the normal form of an expression, `atoms` what it is made of, `functions` the functions in
it that are no polynomials; `condition` the formulas over sizes, `solve` what decides them, `axioms`
what functions mean there; `parse` reads text. They are loaded when the first size appears that is
not a number.
"""

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
