"""Questions that test a row where it may be wrong, beside random ones."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...core.plan import Plan
from ...engines.learnt import ANSWERS, TRAITS, Deviation, Form, LearntRow, Literal, Test
from ...sizes import Asker
from .scene import FEW, Scene
from .shapes import Question, between
from .space import Literals, forms_for, untested

#: Questions on each side of a deviation's number.
EDGES = 3
#: Forms that are told apart from that of a row which explains every answer.
MOST_RIVALS = 8


@dataclass(frozen=True, slots=True)
class _Around:
    """A literal of a deviation whose number is sought.

    Attributes:
        literal: it.
        rest: the deviation's other literals.
        earlier: the deviations that go before it.
        form: of the row.
    """

    literal: Literal
    rest: tuple[Literal, ...]
    earlier: tuple[Deviation, ...]
    form: Form

    def takes(self, question: Question, plan: Plan) -> bool:
        """Whether the literal alone decides a question."""
        return all(other.test(question, plan, Asker()) for other in self.rest) and not any(
            deviation.holds(question, plan, Asker())
            for deviation in self.earlier
            if deviation.then != ANSWERS  # which decides of misfits alone
        )


class Directed:
    """Open questions of a scene that test a row."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene

    def apart(self, row: LearntRow, count: int) -> Iterator[Question]:
        """Open questions on which a rival of the row's form has another plan.

        Of each rival first the one that stretches the fewest axes, where no fault hides its plan.

        Args:
            row: the row so far.
            count: the most questions for each of the first rivals.
        """
        best, others = self._scene.base(forms_for(len(self._scene.asked[0])))
        plans, questions = self._scene.planner.plans, self._scene.open
        mine = plans(row.form, questions)
        for place, rival in enumerate((*best, *others)):
            rows = zip(questions, mine, plans(rival, questions), strict=True)
            differ = [
                (q, other) for q, plan, other in rows if plan != other and not row.decides(q, plan)
            ]
            planned = [(q, other) for q, other in differ if other is not None]
            if planned:
                yield min(planned, key=lambda pair: _stretched(pair[1]))[0]
            if place < MOST_RIVALS:
                yield from (q for q, _ in differ[:count])

    def untested(self, row: LearntRow, count: int, *, misfit: bool) -> Iterator[Question]:
        """Open questions that test what no answer has tested.

        Args:
            row: the row so far.
            count: the most questions.
            misfit: whether the form refuses them, or has a plan.
        """
        literals, planned = self._scene.literals(row.form)
        cut = len(self._scene.asked)
        fits, misfits = self._scene.fits(row.form)
        tested = np.flatnonzero(misfits if misfit else fits)
        return self._unlike(literals, tested, cut + np.flatnonzero(planned[cut:] != misfit), count)

    def inside(self, row: LearntRow, count: int) -> Iterator[Question]:
        """Open questions that a deviation decides, unlike those for which it was seen.

        Args:
            row: the row so far.
            count: the most questions of a deviation.
        """
        literals, planned = self._scene.literals(row.form)
        questions = [*self._scene.asked, *self._scene.open]
        plans = self._scene.planner.plans(row.form, questions)
        free = np.ones(len(questions), bool)
        for deviation in row.deviations:
            holds = map(deviation.holds, questions, plans, itertools.repeat(Asker()))
            held = free & np.fromiter(holds, bool, len(questions))
            if deviation.then in (ANSWERS, "refuses"):  # misfits are refused without it
                held &= ~planned if deviation.then == ANSWERS else planned
            free &= ~held
            places, cut = np.flatnonzero(held), len(self._scene.asked)
            yield from self._unlike(literals, places[places < cut], places[places >= cut], count)

    def _unlike(
        self, literals: Literals, tested: NDArray[np.intp], places: NDArray[np.intp], count: int
    ) -> Iterator[Question]:
        """The questions of some places that differ most from tested ones."""
        places = places[:FEW]
        bits, cut = literals.bits, len(self._scene.asked)
        chosen = untested(bits[:, tested], bits[:, places], literals.weights, count)
        return (self._scene.open[places[k] - cut] for k in chosen)

    def edges(self, row: LearntRow) -> list[Question]:
        """Open questions with a plan on both sides of each number of a deviation.

        Those that an earlier deviation decides would tell nothing.
        """
        questions = self._scene.open
        plans = self._scene.planner.plans(row.form, questions)
        planned = [(q, plan) for q, plan in zip(questions, plans, strict=True) if plan is not None]
        chosen: list[Question] = []
        for place, deviation in enumerate(row.deviations):
            earlier = row.deviations[:place]
            for literal in deviation.when:
                if TRAITS[literal.name].test is Test.ABOVE:
                    rest = tuple(other for other in deviation.when if other != literal)
                    around = _Around(literal, rest, earlier, row.form)
                    chosen += self._beside(around, planned)
        return chosen

    def _beside(self, around: _Around, planned: Sequence[tuple[Question, Plan]]) -> list[Question]:
        """The questions nearest to a literal's number."""
        inside = [(question, plan) for question, plan in planned if around.takes(question, plan)]
        questions, plans = [q for q, _ in inside], [plan for _, plan in inside]
        name, number = around.literal.name, around.literal.number
        sizes = self._scene.planner.measures.of(around.form, questions, plans)(name).tolist()
        ordered = sorted(range(len(inside)), key=lambda k: abs(sizes[k] - number))
        below = [k for k in ordered if 0 <= sizes[k] <= number]
        above = [k for k in ordered if sizes[k] > number]
        chosen = [questions[k] for k in (*below[:EDGES], *above[:EDGES])]
        halves = (half for k in above[:EDGES] for half in _halves(questions[k], sizes[k], number))
        return [*(half for half in halves if self._takes(around, half)), *chosen]

    def _takes(self, around: _Around, question: Question) -> bool:
        """Whether a question has a plan, and tells of a literal's number."""
        (plan,) = self._scene.planner.plans(around.form, [question])
        return plan is not None and around.takes(question, plan)


def _stretched(plan: Plan) -> int:
    """How many axes of operands a plan stretches."""
    return sum(
        size == 1 and whole != 1
        for aligned in plan.aligned
        for size, whole in zip(aligned, plan.shape, strict=True)
    )


def _halves(question: Question, size: int, number: int) -> Iterator[Question]:
    """The question with one of its extents made smaller, so that a size lies half way to a number.

    The size may be an extent, or a product of extents.
    """
    aim = (size + number + 1) // 2
    for extent in sorted({x for shape in question for x in shape if x > 2}, reverse=True):
        smaller = extent * aim // size
        if 1 < smaller < extent:
            yield between(question, extent, smaller)


__all__ = ["Directed"]
