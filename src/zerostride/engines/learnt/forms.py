"""The forms of broadcasting: where operands lie, and which of them may stretch.

A learnt row names a form by two words. Each pair of words is a rule.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ...core.alignment import Alignment, Attributes
from ...core.plan import Plan
from ...core.rules import align_ncnn, right_aligned
from ...errors import Misfit, Reason
from ...sizes import Asker, Shape
from ..aligns import bhwc, equal_ranks, equal_ranks_or_scalar

#: Places the axes of operands: the result's rank, and for each operand the axes where it lands.
Places = tuple[int, tuple[tuple[int | None, ...], ...]]


@dataclass(frozen=True, slots=True)
class Place:
    """A way to place operands.

    Attributes:
        lay: from an Asker and shapes to places; raises Misfit.
        words: for people.
        pairs: it places two operands only.
    """

    lay: Callable[[Asker, tuple[Shape, ...]], Places]
    words: str
    pairs: bool = False


def _right(asker: Asker, shapes: tuple[Shape, ...]) -> Places:
    return right_aligned(shapes)


def _left(asker: Asker, shapes: tuple[Shape, ...]) -> Places:
    return max(map(len, shapes)), tuple(tuple(range(len(shape))) for shape in shapes)


def _channel(asker: Asker, shapes: tuple[Shape, ...]) -> Places:
    """Right-aligned, but a second operand of one axis as long as axis 1 lies on axis 1."""
    first, second = shapes
    rank, places = right_aligned(shapes)
    if len(second) == 1 and len(first) > 1 and asker.equal(second[0], first[1]):
        return rank, (places[0], (1,))
    return rank, places


def _always_channel(asker: Asker, shapes: tuple[Shape, ...]) -> Places:
    """Right-aligned, but a second operand of one axis lies on axis 1."""
    first, second = shapes
    rank, places = right_aligned(shapes)
    return rank, (places[0], (1,)) if len(second) == 1 and len(first) > 1 else places


def _matching(asker: Asker, shapes: tuple[Shape, ...]) -> Places:
    """Right-aligned, but a vector that does not fit there lies on the only axis of its extent."""
    first, second = shapes
    rank, places = right_aligned(shapes)
    if len(second) != 1 or len(first) < 2:
        return rank, places
    if asker.is_one(second[0]) or asker.is_one(first[-1]) or asker.equal(second[0], first[-1]):
        return rank, places
    axes = [axis for axis, size in enumerate(first) if asker.equal(size, second[0])]
    return rank, (places[0], (axes[0],)) if len(axes) == 1 else places


def _bias(asker: Asker, shapes: tuple[Shape, ...]) -> Places:
    """Right-aligned, but a bias lies on the first operand's last axis or axis 1, which it fills.

    A bias has one extent above 1, at any of its axes. The result has the first's rank. A bias
    without elements fits nowhere.
    """
    first, second = shapes
    ones = [asker.is_one(size) for size in second]
    zeros = [asker.equal(size, 0) for size in second]
    wide = [k for k in range(len(second)) if not (ones[k] or zeros[k])]
    if len(wide) == 1 and len(first) > 1:
        for place in (len(first) - 1, 1):
            if asker.equal(first[place], second[wide[0]]):
                if any(zeros):
                    raise Misfit(Reason.EXTENT_MISMATCH, "the second operand has no elements")
                lies = tuple(place if axis == wide[0] else None for axis in range(len(second)))
                return len(first), (tuple(range(len(first))), lies)
    return right_aligned(shapes)


def _column(asker: Asker, shapes: tuple[Shape, ...]) -> Places:
    """Right-aligned, after an operand of one axis got another of extent 1 behind it."""
    rank = max(2, *map(len, shapes))
    behind = [1 if len(shape) == 1 else 0 for shape in shapes]
    places = (
        tuple(range(rank - len(shape) - last, rank - last))
        for shape, last in zip(shapes, behind, strict=True)
    )
    return rank, tuple(places)


def _of(align: Callable[[Asker, tuple[Shape, ...], Attributes], Alignment]) -> Callable[..., Place]:
    """A place of an align function."""

    def lay(asker: Asker, shapes: tuple[Shape, ...]) -> Places:
        alignment = align(asker, shapes, {})
        return alignment.rank, alignment.mapping

    return lambda words, **more: Place(lay, words, **more)


PLACES: Mapping[str, Place] = MappingProxyType(
    {
        "right": Place(_right, "Right-aligned"),
        "left": Place(_left, "Left-aligned"),
        "equal_ranks": _of(equal_ranks)("Axis by axis, operands of one rank"),
        "ranks_or_scalar": _of(equal_ranks_or_scalar)("Operands of one rank, or of rank 0"),
        "ncnn": _of(align_ncnn)(
            "Left-aligned; a vector that differs from the outermost extent: right-aligned",
            pairs=True,
        ),
        "channel": Place(
            _channel, "Right-aligned; a vector as long as axis 1 lies on axis 1", pairs=True
        ),
        "always_channel": Place(
            _always_channel,
            "Right-aligned; a second operand of one axis lies on axis 1",
            pairs=True,
        ),
        "matching": Place(
            _matching,
            "Right-aligned; a vector that does not fit there lies on the only axis of its extent",
            pairs=True,
        ),
        "bias": Place(
            _bias,
            "Right-aligned; a second operand of one extent above 1 lies on the first's last axis, "
            "or on axis 1, if it is as long",
            pairs=True,
        ),
        "column": Place(
            _column, "Right-aligned; an operand of one axis is a column, and results are matrices"
        ),
        "bhwc": _of(bhwc)(
            "Each operand lies as batch, height, width, channels by its own rank", pairs=True
        ),
    }
)

#: Which operands may stretch, in words.
STRETCHES: Mapping[str, str] = MappingProxyType(
    {
        "all": "along each axis sizes are equal or one of them is 1",
        "one": "one operand stretches to the other",
        "first": "only the first operand stretches",
        "first_of_any_rank": "only the first operand stretches; the second may lack outer axes",
        "second": "only the second operand stretches",
        "absent": "sizes are equal; an operand repeats along axes that it lacks",
        "absent_second": "sizes are equal; the second operand repeats along axes that it lacks",
    }
)


@dataclass(frozen=True, slots=True)
class Form:
    """A form: a place and a stretch.

    >>> from zerostride.sizes import Asker
    >>> Form("left", "all").align(Asker(), ((5, 5), (5,))).mapping
    ((0, 1), (0,))
    """

    place: str
    stretch: str

    @property
    def words(self) -> str:
        """A sentence."""
        usual = f"{PLACES[self.place].words}; {STRETCHES[self.stretch]}."
        return _WORDS.get((self.place, self.stretch), usual)

    @property
    def rule_name(self) -> str:
        """The name of the rule: that of the table where it is one of them."""
        return _RULE_NAMES.get((self.place, self.stretch), f"{self.place}_{self.stretch}")

    def takes(self, count: int) -> bool:
        """Whether it places so many operands."""
        return count == 2 or not PLACES[self.place].pairs

    def align(self, asker: Asker, shapes: tuple[Shape, ...]) -> Alignment:
        """Places operands of these shapes; raises Misfit where one lacks axes and may not."""
        rank, mapping = PLACES[self.place].lay(asker, shapes)
        moving = _MOVING.get(self.stretch, frozenset(range(len(shapes))))
        for k, places in enumerate(mapping):
            if k in moving or len(places) == rank:
                continue
            padded = shapes[1 - k][: rank - len(places)]
            if self.stretch not in _OF_ANY_RANK or not all(map(asker.is_one, padded)):
                detail = f"operand {k} has {len(places)} axes, the result {rank}"
                raise Misfit(Reason.RANK, detail)
        along = () if self.stretch.startswith("absent") else range(rank)
        stretch = tuple(along if k in moving else () for k in range(len(shapes)))
        return Alignment(rank, mapping, stretch)

    def check(self, plan: Plan, asker: Asker) -> None:
        """Raises Misfit where more than one operand stretches, of a form with one."""
        if self.stretch != "one":
            return
        moving = sum(not all(map(asker.equal, aligned, plan.shape)) for aligned in plan.aligned)
        if moving > 1:
            raise Misfit(Reason.ONE_WAY, "both operands would stretch")


#: Words of a form that are plainer than those of its place and its stretch.
_WORDS: Mapping[tuple[str, str], str] = MappingProxyType(
    {("equal_ranks", "absent"): "Operands of one shape."}
)
#: Forms that are rules of the table.
_RULE_NAMES: Mapping[tuple[str, str], str] = MappingProxyType(
    {("right", "all"): "numpy", ("ncnn", "all"): "ncnn"}
)
#: The operands that may stretch, or lack axes; of the other forms all may.
_MOVING: Mapping[str, frozenset[int]] = MappingProxyType(
    {
        "first": frozenset({0}),
        "first_of_any_rank": frozenset({0}),
        "second": frozenset({1}),
        "absent_second": frozenset({1}),
    }
)
#: The stretches in which an operand may lack axes though it does not stretch.
_OF_ANY_RANK = frozenset({"first_of_any_rank"})


def _differ(form: Form) -> bool:
    """Whether no other form before it means the same."""
    same_ranks = form.place == "equal_ranks" and form.stretch == "absent_second"
    any_rank = form.stretch in _OF_ANY_RANK and form.place != "right"
    return not same_ranks and not any_rank


#: Every form, the most frequent first.
FORMS: tuple[Form, ...] = tuple(
    form for form in itertools.starmap(Form, itertools.product(PLACES, STRETCHES)) if _differ(form)
)

__all__ = ["FORMS", "PLACES", "STRETCHES", "Form"]
