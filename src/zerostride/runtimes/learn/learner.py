"""Learns how an op of an engine broadcasts, from answers alone.

The learner asks a ladder of questions, takes the form that explains the most answers, and covers
the rest by deviations. Where several deviations explain the same answers, it asks the question on
which they differ most. It stops when fresh random questions bring no surprise. Answers that no
deviation explains make a region that is not understood.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from ...core.plan import Plan
from ...engines.learnt import FORMS, Deviation, LearntRow
from ...errors import BroadcastError, Reason
from .directed import Directed
from .scene import Scene, length
from .shapes import Question, draw, ladder, single
from .space import (
    CRASHED,
    REFUSED,
    RESULT,
    Answer,
    Fits,
    Planner,
    forms_for,
)

Ask = Callable[[Question], Answer]
#: The most questions of an op.
BUDGET = 300
#: Fresh random questions in a row that agree, after which the learner stops.
CONFIRMING = 40
#: Questions in a row that test what no answer has tested; the same.
DIRECTED = 40
#: The same, of questions that the form refuses.
DIRECTED_MISFITS = 16
#: The same, of questions that a deviation decides.
INSIDE = 8
#: The same, for each form that explains as many results.
APART = 2
#: Questions that are kept for a test of the row while deviations are told apart.
KEPT = CONFIRMING + 20
#: The same, for a row with a region that is set aside, while the other one is not trusted.
ASIDE = KEPT + 60
#: Questions that are compared for where deviations differ.
POOL = 1200
#: Where the budget is spent while rival deviations of more than this weight differ, nothing is
#: understood.
OPEN_DOUBT = 0.02
#: A row with more deviations than this explains answers one by one; the last ones are not trusted.
TRUSTED = 5
#: After so many surprises such a row is given up.
HOPELESS = 16
#: Forms that explain the most answers, and are tried with deviations.
TRIED = 3


@dataclass(slots=True)
class Learner:
    """Learns one op.

    Attributes:
        ask: the engine.
        count: the number of operands.
        planner: of this op's kind, which the learners of one engine share.
        seed: of the random questions.
        budget: the most questions.
        late: whether no time is left, as if the budget were spent.
        answers: every question with its answer, in order.
    """

    ask: Ask
    count: int = 2
    planner: Planner = field(default_factory=Planner)
    seed: int = 0
    budget: int = BUDGET
    late: Callable[[], bool] = lambda: False
    answers: dict[Question, Answer] = field(default_factory=dict)
    _fits: Fits = field(init=False)
    _pool: list[Question] = field(init=False)
    _rng: random.Random = field(init=False)
    _doubt: float = field(init=False, default=0.0)
    _tried_aside: bool = field(init=False, default=False)
    _agreeing: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self._rng = random.Random(f"learn:{self.seed}")
        self._fits = Fits(self.planner)
        self._pool = list(dict.fromkeys(draw(self._rng, self.count) for _ in range(POOL)))

    def learn(self) -> LearntRow:
        """The row."""
        for question in ladder(self.count):
            self._ask(question)
        if not self.answers:  # no time was left
            return LearntRow(FORMS[0], (Deviation((), "unknown"),))
        surprises: dict[Question, int] = {}
        while True:
            row, open_doubt = self._explained()
            if open_doubt and not self._tried_aside:
                self._tried_aside = True
                if (aside := self._aside(row)) is not None:
                    return aside
                continue
            surprise = next(self._surprises(row), None)
            long = len(row.deviations) > TRUSTED
            if surprise is not None:
                surprises[surprise] = len(self.answers)
                if len(surprises) >= HOPELESS and long:
                    return self._partly(row, surprises)
            elif long:
                return self._partly(row, surprises)
            elif open_doubt or (self.late() and self._agreeing < CONFIRMING):
                return self._scene().doubted(row, [])
            elif self._spent() and not self._tested(row, surprises):
                return self._scene().doubted(row, list(surprises))
            else:
                return row

    def _aside(self, row: LearntRow) -> LearntRow | None:
        """A row with a region that is not understood, whose rivals are left; None if it fails.

        Questions tell its deviations apart, outside the region, and test them.
        """
        while not self._spent(CONFIRMING - 1):
            scene = self._scene()
            aside = scene.aside(row.form)
            if aside is None:
                return None
            shorter, question = aside
            if question is None or scene.doubt <= OPEN_DOUBT:
                fresh = [q for q in self._fresh() if self._ask(q) is not None]
                agreed = all(self._agreed(shorter, q) is not False for q in fresh)
                return shorter if agreed and len(fresh) == CONFIRMING else None
            if self._ask(question) is None:
                return None
        return None

    def _partly(self, row: LearntRow, surprises: Mapping[Question, int]) -> LearntRow:
        """The first deviations of a row that is not trusted; the rest is not understood.

        Args:
            row: of all answers.
            surprises: with the number of answers by then.
        """
        scene = self._scene()
        if self._doubt < math.inf:
            partly = scene.partly(row, OPEN_DOUBT)
            if self._tested(partly, surprises):
                return partly
        return scene.doubted(row, [])

    def _tested(self, row: LearntRow, surprises: Mapping[Question, int]) -> bool:
        """Whether enough answers have agreed with a row since the last surprise that it explains.

        Surprises where the row is not understood say nothing of it.
        """
        explained = (n for q, n in surprises.items() if self._agreed(row, q) is not None)
        return len(self.answers) - max(explained, default=0) >= CONFIRMING

    def _agreed(self, row: LearntRow, question: Question) -> bool | None:
        """Whether a row predicts an answer that there is; None where it predicts none."""
        outcome = row.outcome(question, to_target=self.planner.to_target)
        return agrees(outcome, self.answers[question])

    def telling(self, row: LearntRow, count: int) -> list[Question]:
        """Asked questions that show a row.

        First those with operands of one element, for which engines have code of their own; then
        the examples of deviations, those that other forms get wrong, and varied ones.
        """
        scene = self._scene()
        examples = [row.example for row in row.deviations]
        others = scene.against(row.form)
        chosen = (*single(self.count), *examples, *others, *scene.varied(row, count))
        return [question for question in dict.fromkeys(chosen) if question in self.answers][:count]

    def _ask(self, question: Question) -> Answer | None:
        """The answer; None where the budget is spent."""
        if question not in self.answers:
            if self._spent():
                return None
            self.answers[question] = self.ask(question)
        return self.answers[question]

    def _spent(self, kept: int = 0) -> bool:
        """Whether the budget is spent, up to some questions that are kept, or the time."""
        return len(self.answers) >= self.budget - kept or self.late()

    def _surprises(self, row: LearntRow) -> Iterator[Question]:
        """New questions whose answers differ from the row's.

        First those beside the numbers of deviations; then by turns those that a deviation decides,
        those on which a rival form has another plan, and untested ones; then random ones.
        """
        directed = Directed(self._scene())
        sources = (
            directed.inside(row, INSIDE),
            directed.apart(row, APART),
            directed.untested(row, DIRECTED, misfit=False),
            directed.untested(row, DIRECTED_MISFITS, misfit=True),
        )
        turns = itertools.chain.from_iterable(itertools.zip_longest(*sources))
        beside = itertools.chain(directed.edges(row), (q for q in turns if q is not None))
        left = max(0, self.budget - len(self.answers) - CONFIRMING - 1)
        for question in itertools.chain(itertools.islice(beside, left), self._fresh()):
            if self._ask(question) is None:
                return
            self._agreeing += 1
            if not self._agreed(row, question):
                self._agreeing = 0
                yield question

    def _fresh(self) -> Iterator[Question]:
        for _ in range(CONFIRMING):
            yield draw(self._rng, self.count)

    def _scene(self) -> Scene:
        return Scene(self.planner, self._fits, self.answers, self._pool)

    def _explained(self) -> tuple[LearntRow, bool]:
        """The row that explains every answer so far, after questions to choose among several.

        Also whether several are left that differ, because the budget is spent, or enough of it for
        a row that is not trusted.
        """
        while True:
            row, question = self._once()
            if question is None:
                return row, False
            if len(row.deviations) > TRUSTED and self._spent(ASIDE) and not self._tried_aside:
                return row, True
            if self._spent(KEPT) or self._ask(question) is None:
                return row, self._doubt > OPEN_DOUBT

    def _once(self) -> tuple[LearntRow, Question | None]:
        """A row for the answers so far, and the question that would tell more."""
        scene = self._scene()
        best, others = scene.base(forms_for(self.count))
        row, other = scene.explain(best[0])
        if row.deviations:
            rivals = (*others[:1], *best[1:], *others[1:])[:TRIED]
            rows = [(row, other), *map(scene.explain, rivals)]
            row, other = min(rows, key=lambda explained: length(explained[0]))
        question = scene.parting(row, best if row.form in best else [row.form, *best])
        self._doubt = math.inf if question is not None else scene.doubt
        return row, question or other


def agrees(outcome: Plan | BroadcastError, answer: Answer) -> bool | None:
    """Whether an answer is the predicted one; None where it is predicted as not understood."""
    if isinstance(outcome, Plan):
        return answer.kind == RESULT and answer.matches(outcome)
    if outcome.reason is Reason.NOT_UNDERSTOOD:
        return None
    if outcome.reason is Reason.CRASH:
        return answer.kind == CRASHED
    return (answer.kind != REFUSED) if outcome.silent else answer.kind == REFUSED


__all__ = ["BUDGET", "Ask", "Learner", "agrees"]
