"""The axes along which terms move, and views that keep them."""

from __future__ import annotations

import itertools

from .places import Places, axes_in, lone_axis, own_places
from .term import CONCAT, VIEW, Shape, Term

#: Operands of one sum, product or concatenation: each may be a sum of sums.
MOST_PARTS = 500


def continues(term: Term, axis: int) -> bool:
    """Whether a term is a concatenation along an axis, of not too many operands."""
    return term.op == CONCAT and term.attributes == (axis,) and len(term.args) <= MOST_PARTS


def axes_of(term: Term) -> set[int]:
    """The axes of a term along which it moves."""
    if term.op == VIEW:
        return axes_in(term.places)
    return {axis for axis, size in enumerate(term.shape) if size != 1}


def spreads(inner: Shape, shape: Shape, places: Places) -> bool:
    """Whether a view only repeats a tensor along further axes."""
    axes = [lone_axis(place) for place in places]
    known = [axis for axis in axes if axis is not None]
    return (
        len(known) == len(axes)
        and all(a < b for a, b in itertools.pairwise(known))
        and all(shape[axis] == size for axis, size in zip(known, inner, strict=True))
    )


def kept_axis(inner: Shape, axis: int, shape: Shape, places: Places) -> int | None:
    """The axis of a view that is one of its tensor's, whole; None if that is cut or mixed."""
    along = lone_axis(places[axis])
    if along is None or shape[along] != inner[axis]:
        return None
    others = axes_in([*places[:axis], *places[axis + 1 :]])
    return None if along in others else along


def places_of(term: Term) -> Places:
    """The places at which a term reads its base."""
    return term.places if term.op == VIEW else own_places(term.shape)


__all__ = ["MOST_PARTS", "axes_of", "continues", "kept_axis", "places_of", "spreads"]
