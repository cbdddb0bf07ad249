"""Traits of shapes and plans by which an engine's limits and faults are described.

A learnt row writes a trait as words: "rank_above 4", "not stretches". Several hold together.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from ...core.plan import Plan
from ...sizes import Asker, Shape, Size
from ..limits import count_runs, is_empty

#: Measures shapes, or a plan. Each of the sizes may decide; a truth value is 0 or 1.
OfShapes = Callable[[tuple[Shape, ...], Asker], Sequence[Size]]
OfPlan = Callable[[Plan, Asker], Sequence[Size]]


class Test(StrEnum):
    """How a measure is compared with the literal's number."""

    ABOVE = "above"  # a size is larger
    EQUAL = "equal"  # a size is this one
    MULTIPLE = "multiple"  # a size is a multiple
    TRUE = "true"  # the literal has no number


@dataclass(frozen=True, slots=True)
class Trait:
    """A row: a property of shapes, or of the plan that a form gives for them.

    Attributes:
        words: for people; {n} is the number.
        test: how the measure is compared.
        of_shapes: the measure of shapes; None: it measures the plan.
        of_plan: the measure of a plan.
        sized: it measures sizes, and not ranks or counts.
    """

    words: str
    test: Test
    of_shapes: OfShapes | None = None
    of_plan: OfPlan | None = None
    sized: bool = False

    def measure(
        self, shapes: tuple[Shape, ...], plan: Plan | None, asker: Asker
    ) -> Sequence[Size] | None:
        """The measure; None for a trait of a plan without one."""
        if self.of_shapes is not None:
            return self.of_shapes(shapes, asker)
        if plan is None or self.of_plan is None:
            return None
        return self.of_plan(plan, asker)


def _is_smaller(shapes: tuple[Shape, ...], operand: int, asker: Asker) -> bool:
    """Whether an operand has fewer elements than another one."""
    others = (shape for k, shape in enumerate(shapes) if k != operand)
    return any(_fewer(shapes[operand], other, asker) for other in others)


def _fewer(shape: Shape, other: Shape, asker: Asker) -> bool:
    """Whether a shape has fewer elements than another; extents that both have decide nothing."""
    if _has_zero((other,), asker) or _has_zero((shape,), asker):
        return not _has_zero((other,), asker)
    more, fewer = [size for size in other if not asker.is_one(size)], []
    for size in shape:
        if not asker.is_one(size):
            same = next((k for k, rest in enumerate(more) if asker.equal(size, rest)), None)
            if same is None:
                fewer.append(size)
            else:
                del more[same]
    if not more or not fewer:
        return bool(more)
    return asker.is_above(math.prod(more), math.prod(fewer))


def _single(shape: Shape, asker: Asker) -> bool:
    return all(map(asker.is_one, shape))


def _square(shapes: tuple[Shape, ...], asker: Asker) -> bool:
    return any(asker.equal(a, b) for shape in shapes for a, b in itertools.pairwise(shape))


def _moves(plan: Plan, asker: Asker, operand: int) -> bool:
    return any(
        asker.is_one(size) and not asker.is_one(whole)
        for size, whole in zip(plan.aligned[operand], plan.shape, strict=True)
    )


def _movers(plan: Plan, asker: Asker) -> int:
    return sum(_moves(plan, asker, k) for k in range(len(plan.aligned)))


def _moves_along(plan: Plan, asker: Asker, axis: int) -> bool:
    if not plan.shape or asker.is_one(plan.shape[axis]):
        return False
    return any(asker.is_one(row[axis]) for row in plan.aligned)


def _moves_inside(plan: Plan, asker: Asker) -> bool:
    return any(_moves_along(plan, asker, axis) for axis in range(1, plan.rank - 1))


def _to_zero(plan: Plan, asker: Asker) -> bool:
    return any(
        asker.equal(whole, 0) and asker.is_one(row[axis])
        for axis, whole in enumerate(plan.shape)
        for row in plan.aligned
    )


def _has_zero(shapes: tuple[Shape, ...], asker: Asker) -> bool:
    return any(asker.equal(size, 0) for shape in shapes for size in shape)


def _empty_below(shapes: tuple[Shape, ...], asker: Asker) -> bool:
    """Whether an operand without elements has fewer axes than one with elements."""
    full = max((len(x) for x in shapes if not _has_zero((x,), asker)), default=0)
    return any(_has_zero((x,), asker) and len(x) < full for x in shapes)


def _one_shape(shapes: tuple[Shape, ...], asker: Asker) -> bool:
    first, *others = shapes
    return all(len(x) == len(first) and all(map(asker.equal, first, x)) for x in others)


def _only_to_zero(plan: Plan, asker: Asker) -> bool:
    """Whether operands stretch, and along axes without elements alone."""
    axes = [axis for axis in range(plan.rank) if _moves_along(plan, asker, axis)]
    return bool(axes) and all(asker.equal(plan.shape[axis], 0) for axis in axes)


def _empty_unlike(plan: Plan, asker: Asker) -> bool:
    """Whether the first operand without elements has another shape than the result."""
    for shape in plan.operands:
        if any(asker.equal(size, 0) for size in shape):
            return len(shape) != plan.rank or not all(map(asker.equal, shape, plan.shape))
    return False


def _divides(shapes: tuple[Shape, ...], asker: Asker) -> bool:
    """Whether the second operand fills the first by whole repetitions, right-aligned."""
    first, second = shapes[:2]
    pairs = zip(reversed(first), reversed(second), strict=False)
    return len(second) <= len(first) and all(asker.is_multiple(a, b) for a, b in pairs)


def _differ(shapes: tuple[Shape, ...], asker: Asker) -> bool:
    """Whether NumPy's rule refuses shapes."""
    rank = _most(shapes)
    rows = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    return any(
        not (asker.is_one(a) or asker.is_one(b) or asker.equal(a, b))
        for column in zip(*rows, strict=True)
        for a, b in itertools.pairwise(column)
    )


def _within(shapes: tuple[Shape, ...], asker: Asker) -> bool:
    """Whether no extent of the second operand is above the first's, right-aligned."""
    return all(
        asker.is_one(b) or asker.equal(a, b) or asker.is_above(a, b)
        for a, b in zip(reversed(shapes[0]), reversed(shapes[1]), strict=False)
    )


def _zero_at_second(shapes: tuple[Shape, ...], asker: Asker) -> bool:
    """Whether NumPy's rule refuses shapes, and where it does the second operand has extent 0."""
    pairs = list(zip(reversed(shapes[0]), reversed(shapes[1]), strict=False))
    differ = [(a, b) for a, b in pairs if _differ(((a,), (b,)), asker)]
    return bool(differ) and all(asker.equal(b, 0) for _, b in differ)


def _fills_last(shapes: tuple[Shape, ...], asker: Asker) -> bool:
    count = math.prod(shapes[1])
    return bool(shapes[0]) and asker.equal(count, shapes[0][-1])


def _wide(shape: Shape, asker: Asker) -> int:
    return sum(not asker.is_one(size) for size in shape)


def _most(shapes: tuple[Shape, ...]) -> int:
    return max(map(len, shapes))


def _least(shapes: tuple[Shape, ...]) -> int:
    return min(map(len, shapes))


def _number(words: str, measure: Callable[[tuple[Shape, ...]], int], test: Test) -> Trait:
    """A trait of ranks."""
    return Trait(words, test, of_shapes=lambda shapes, _: (measure(shapes),))


def _sizes(
    words: str, measure: Callable[[tuple[Shape, ...]], Sequence[Size]], test: Test = Test.ABOVE
) -> Trait:
    """A trait of sizes."""
    return Trait(words, test, of_shapes=lambda shapes, _: measure(shapes), sized=True)


def _true(words: str, measure: Callable[[tuple[Shape, ...], Asker], bool]) -> Trait:
    """A trait of shapes without a number."""
    return Trait(words, Test.TRUE, of_shapes=lambda shapes, asker: (measure(shapes, asker),))


def _of_plan(words: str, measure: Callable[[Plan, Asker], bool]) -> Trait:
    """A trait of a plan without a number."""
    return Trait(words, Test.TRUE, of_plan=lambda plan, asker: (measure(plan, asker),))


_ABOVE, _EQUAL = Test.ABOVE, Test.EQUAL

TRAITS: Mapping[str, Trait] = MappingProxyType(
    {
        "any": _true("always", lambda s, _: True),
        "rank_above": _number("an operand has more than {n} axes", _most, _ABOVE),
        "ranks_above": _number("every operand has more than {n} axes", _least, _ABOVE),
        "first_rank": _number("the first operand has {n} axes", lambda s: len(s[0]), _EQUAL),
        "second_rank": _number("the second operand has {n} axes", lambda s: len(s[1]), _EQUAL),
        "second_rank_above": _number(
            "the second operand has more than {n} axes", lambda s: len(s[1]), _ABOVE
        ),
        "third_rank": _number(
            "the third operand has {n} axes", lambda s: len(s[2]) if len(s) > 2 else -1, _EQUAL
        ),
        "rank_gap_above": _number(
            "ranks differ by more than {n}", lambda s: _most(s) - _least(s), _ABOVE
        ),
        "first_is_lower": _true(
            "the first operand has fewer axes than another", lambda s, _: len(s[0]) < _most(s)
        ),
        "second_is_lower": _true(
            "the second operand has fewer axes than another", lambda s, _: len(s[1]) < _most(s)
        ),
        "first_is_smaller": _true(
            "the first operand has fewer elements than another",
            lambda s, asker: _is_smaller(s, 0, asker),
        ),
        "second_is_smaller": _true(
            "the second operand has fewer elements than another",
            lambda s, asker: _is_smaller(s, 1, asker),
        ),
        "operand_is_empty": _true("an operand has no elements", _has_zero),
        "operands_are_empty": _true(
            "every operand has no elements",
            lambda s, asker: all(_has_zero((shape,), asker) for shape in s),
        ),
        "lower_is_empty": _true(
            "an operand has no elements, and one with more axes has some", _empty_below
        ),
        "one_shape": _true("the operands have one shape", _one_shape),
        "one_element": _true(
            "an operand has one element", lambda s, asker: any(_single(x, asker) for x in s)
        ),
        "first_one_element": _true(
            "the first operand has one element", lambda s, asker: _single(s[0], asker)
        ),
        "second_one_element": _true(
            "the second operand has one element", lambda s, asker: _single(s[1], asker)
        ),
        "second_divides": _true(
            "each extent of the second operand divides the first's, right-aligned", _divides
        ),
        "first_divides": _true(
            "each extent of the first operand divides the second's, right-aligned",
            lambda s, asker: _divides(s[1::-1], asker),
        ),
        "second_within_first": _true(
            "no extent of the second operand is above the first's, right-aligned", _within
        ),
        "misfits_at_second_zero": _true(
            "sizes do not fit, and only where the second operand's extent is 0", _zero_at_second
        ),
        "second_fills_last_axis": _true(
            "the second operand has as many elements as the first's last extent", _fills_last
        ),
        "second_extents_above": Trait(
            "the second operand has more than {n} extents other than 1",
            _ABOVE,
            of_shapes=lambda s, asker: (_wide(s[1], asker),),
        ),
        "numpy_refuses": _true("NumPy's rule refuses the shapes", _differ),
        "square": _true("an operand has two neighbouring axes of one extent", _square),
        "extent_above": _sizes(
            "an operand has an extent above {n}", lambda s: [size for shape in s for size in shape]
        ),
        "last_extent_above": _sizes(
            "an operand's last extent is above {n}", lambda s: [shape[-1] for shape in s if shape]
        ),
        "first_extent_above": _sizes(
            "an operand's outermost extent is above {n}",
            lambda s: [shape[0] for shape in s if shape],
        ),
        "elements_above": _sizes(
            "an operand has more than {n} elements", lambda s: list(map(math.prod, s))
        ),
        "last_extent_multiple": _sizes(
            "an operand's last extent is a multiple of {n}",
            lambda s: [shape[-1] for shape in s if shape],
            Test.MULTIPLE,
        ),
        "stretching_above": Trait(
            "more than {n} operands stretch", _ABOVE, of_plan=lambda p, asker: (_movers(p, asker),)
        ),
        "first_stretches": _of_plan(
            "the first operand stretches", lambda p, asker: _moves(p, asker, 0)
        ),
        "second_stretches": _of_plan(
            "the second operand stretches", lambda p, asker: _moves(p, asker, len(p.aligned) > 1)
        ),
        "third_stretches": _of_plan(
            "the third operand stretches",
            lambda p, asker: len(p.aligned) > 2 and _moves(p, asker, 2),
        ),
        "stretches_last_axis": _of_plan(
            "an operand stretches along the last axis", lambda p, asker: _moves_along(p, asker, -1)
        ),
        "stretches_outermost_axis": _of_plan(
            "an operand stretches along the outermost axis",
            lambda p, asker: _moves_along(p, asker, 0),
        ),
        "stretches_inner_axis": _of_plan(
            "an operand stretches along an axis between", _moves_inside
        ),
        "runs_above": Trait(
            "more than {n} runs of axes that stretch alike",
            _ABOVE,
            of_plan=lambda p, asker: (count_runs(p, asker),),
        ),
        "empty": _of_plan("the result has no elements", is_empty),
        "stretches_to_zero": _of_plan("an extent of 1 meets one of 0", _to_zero),
        "stretches_only_to_zero": _of_plan(
            "operands stretch along axes of extent 0 alone", _only_to_zero
        ),
        "empty_unlike_result": _of_plan(
            "the first operand without elements has another shape than the result", _empty_unlike
        ),
        "result_above": Trait(
            "the result has more than {n} elements",
            _ABOVE,
            of_plan=lambda p, _: (math.prod(p.shape),),
            sized=True,
        ),
    }
)


def compare(test: Test, measure: Sequence[Size], number: int, asker: Asker) -> bool:
    """Whether a measure passes a test; of open sizes the asker decides."""
    if test is Test.TRUE:
        return bool(measure[0])
    known = [size for size in measure if isinstance(size, int)]
    others = (size for size in measure if not isinstance(size, int))
    if test is Test.ABOVE:
        above = any(size > number for size in known)
        return above or any(asker.is_above(size, number) for size in others)
    if test is Test.EQUAL:
        return number in known or any(asker.equal(size, number) for size in others)
    multiple = any(size % number == 0 for size in known)
    return multiple or any(asker.is_multiple(size, number) for size in others)


@dataclass(frozen=True, slots=True)
class Literal:
    """A trait at a number, or its negation.

    >>> Literal.read("not rank_above 4").words
    'an operand has more than 4 axes'
    """

    name: str
    number: int = 0
    holds: bool = True

    @staticmethod
    def read(words: str) -> Literal:
        """The literal of a file; raises ValueError for an unknown one."""
        parts = words.split()
        holds = parts[:1] != ["not"]
        name, *numbers = parts if holds else parts[1:]
        if name not in TRAITS or len(numbers) > 1:
            raise ValueError(f"there is no trait {words!r}")
        return Literal(name, int(numbers[0]) if numbers else 0, holds)

    def __str__(self) -> str:
        number = "" if TRAITS[self.name].test is Test.TRUE else f" {self.number}"
        return f"{'' if self.holds else 'not '}{self.name}{number}"

    @property
    def words(self) -> str:
        """The trait, for people; whether it holds is not in it."""
        return TRAITS[self.name].words.format(n=self.number)

    @property
    def of_plan(self) -> bool:
        """Whether it tests the plan of a form."""
        return TRAITS[self.name].of_plan is not None

    def test(self, shapes: tuple[Shape, ...], plan: Plan | None, asker: Asker) -> bool:
        """Whether it holds; without a plan none of a plan does, nor its negation."""
        trait = TRAITS[self.name]
        measure = trait.measure(shapes, plan, asker)
        return (
            measure is not None and compare(trait.test, measure, self.number, asker) is self.holds
        )


__all__ = ["TRAITS", "Literal", "Test", "Trait", "compare"]
