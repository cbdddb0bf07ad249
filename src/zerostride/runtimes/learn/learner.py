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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ...core.plan import Plan
from ...engines.learnt import ANSWERS, Deviation, Form, LearntRow
from ...errors import BroadcastError, Reason
from .shapes import RANKS, Question, between, draw, ladder, of_rank
from .space import (
    CRASHED,
    REFUSED,
    RESULT,
    Answer,
    Bits,
    Candidate,
    Literals,
    Measures,
    Planner,
    candidates,
    deviation_of,
    forms_for,
    smallest_region,
    splitting,
    untested,
)

Ask = Callable[[Question], Answer]
#: The most questions of an op.
BUDGET = 300
#: Fresh random questions in a row that agree, after which the learner stops.
CONFIRMING = 40
#: Questions in a row that test what no answer has tested; the same.
DIRECTED = 40
#: Questions that are compared for where deviations differ.
POOL = 1200
#: The first questions of the pool, which are enough to tell forms apart.
FEW = 400
#: Where the budget is spent while rival deviations of more than this weight differ, nothing is
#: understood.
OPEN_DOUBT = 0.02
#: A spent budget leaves a region that is not understood, if there were few surprises and
#: deviations, and the region has at most this share of questions. Otherwise nothing is understood.
FEW_SURPRISES, FEW_DEVIATIONS, MOST_DOUBTED = 4, 3, 0.5
#: A row with more deviations than this explains answers one by one, and is not trusted.
TRUSTED = 5
#: Forms that explain the most answers, and are tried with deviations.
RIVALS = 3
#: The most deviations of a row.
MOST_DEVIATIONS = 8


@dataclass(slots=True)
class Learner:
    """Learns one op.

    Attributes:
        ask: the engine.
        count: the number of operands.
        to_target: the last shape is a target.
        seed: of the random questions.
        budget: the most questions.
        late: whether no time is left, as if the budget were spent.
        answers: every question with its answer, in order.
    """

    ask: Ask
    count: int = 2
    to_target: bool = False
    seed: int = 0
    budget: int = BUDGET
    late: Callable[[], bool] = lambda: False
    answers: dict[Question, Answer] = field(default_factory=dict)
    _planner: Planner = field(init=False)
    _measures: Measures = field(init=False, default_factory=Measures)
    _pool: list[Question] = field(init=False)
    _rng: random.Random = field(init=False)
    _doubt: float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        self._rng = random.Random(f"learn:{self.seed}")
        self._planner = Planner(to_target=self.to_target)
        self._pool = list(dict.fromkeys(draw(self._rng, self.count) for _ in range(POOL)))

    def learn(self) -> LearntRow:
        """The row."""
        for question in ladder(self.count):
            self._ask(question)
        surprises: list[Question] = []
        while True:
            row, open_doubt = self._explained()
            surprise = next(self._surprises(row), None)
            if surprise is not None:
                surprises.append(surprise)
            elif self._spent() or open_doubt:
                late = [] if open_doubt else surprises
                return self._scene().doubted(row, late)
            elif len(row.deviations) > TRUSTED:
                return self._scene().doubted(row, [])
            else:
                return row

    def telling(self, row: LearntRow, count: int) -> list[Question]:
        """Asked questions that show a row: the examples of its deviations, then varied ones."""
        examples = [row.example for row in row.deviations if row.example in self.answers]
        return list(dict.fromkeys((*examples, *self._scene().varied(row, count))))[:count]

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
        """New questions whose answers differ from the row's: untested ones, then random ones."""
        scene = self._scene()
        for question in itertools.chain(scene.untested(row, DIRECTED), self._fresh()):
            answer = self._ask(question)
            if answer is None:
                return
            if not agrees(row.outcome(question, to_target=self.to_target), answer):
                yield question

    def _fresh(self) -> Iterator[Question]:
        for _ in range(CONFIRMING):
            yield draw(self._rng, self.count)

    def _scene(self) -> _Scene:
        return _Scene(self._planner, self._measures, self.answers, self._pool)

    def _explained(self) -> tuple[LearntRow, bool]:
        """The row that explains every answer so far, after questions to choose among several.

        Also whether several are left that differ, because the budget is spent.
        """
        while True:
            row, question = self._once()
            if question is None:
                return row, False
            if self._spent(CONFIRMING + DIRECTED) or self._ask(question) is None:
                return row, self._doubt > OPEN_DOUBT

    def _once(self) -> tuple[LearntRow, Question | None]:
        """A row for the answers so far, and the question that would tell more."""
        scene = self._scene()
        best, others = scene.base(forms_for(self.count))
        rows = [scene.explain(form) for form in (*best, *others)[:RIVALS]]
        row, other = min(rows, key=lambda explained: _length(explained[0]))
        question = scene.parting(row, best if row.form in best else [row.form, *best])
        self._doubt = math.inf if question is not None else scene.doubt
        return row, question or other


@dataclass(slots=True)
class _Left:
    """The answers that no deviation has explained yet.

    Attributes:
        bits: literals by the asked questions.
        unexplained: the answers that neither the form nor a deviation explains.
        misfit: the questions that the form refuses.
        decided: those that a deviation decided; later ones need not be right there.
    """

    bits: Bits
    unexplained: Bits
    misfit: Bits
    decided: Bits = field(init=False)

    def __post_init__(self) -> None:
        self.decided = np.zeros(len(self.unexplained), bool)

    def candidates(
        self, effects: Sequence[tuple[str | Form, Bits]], of_shapes: Bits
    ) -> list[Candidate]:
        """The deviations that explain the most, of every effect."""
        every = np.ones(len(self.bits), bool)
        return [
            candidate
            for then, mask in effects
            for candidate in candidates(
                self.bits,
                self.unexplained & self.misfit if then == ANSWERS else self.unexplained,
                mask if isinstance(then, Form) else mask | self.decided,
                then,
                of_shapes if then == ANSWERS or isinstance(then, Form) else every,
            )
        ]

    def explain(self, candidate: Candidate) -> Bits:
        """Takes a deviation; the answers that it explains."""
        covers = self.bits[list(candidate.literals)].all(axis=0)
        covers = covers & self.misfit if candidate.then == ANSWERS else covers
        seen = covers & self.unexplained
        self.unexplained = self.unexplained & ~covers
        if not isinstance(candidate.then, Form):
            self.decided = self.decided | covers
        return seen


class _Scene:
    """The answers so far beside the pool, and the search for a row that explains them."""

    def __init__(
        self,
        planner: Planner,
        measures: Measures,
        answers: dict[Question, Answer],
        pool: Sequence[Question],
    ) -> None:
        self._planner = planner
        self._measures = measures
        self._asked = list(answers)
        self._answers = list(answers.values())
        count = len(self._asked[0])
        self._near = _refined(self._asked, self._answers) + _ranks_between(answers, count)
        self._open = [q for q in dict.fromkeys((*pool, *self._near)) if q not in answers]
        self.doubt = 0.0
        kinds = np.array([answer.kind for answer in self._answers])
        self._refused: Bits = kinds == REFUSED
        self._crashed: Bits = kinds == CRASHED
        self._result: Bits = kinds == RESULT

    def base(self, forms: Sequence[Form]) -> tuple[list[Form], list[Form]]:
        """The forms that explain the most results, the most frequent form first.

        Two lists: those whose misfits have one kind of answer most often, and the others.
        """
        ranked: list[tuple[int, int, Form]] = []
        for form in forms:
            fits, misfit = self._fits(form)
            refused = int((misfit & self._refused).sum())
            usual = max(refused, int((misfit & self._result).sum()))
            ranked.append((int(fits.sum()), usual, form))
        most = max(score for score, _, _ in ranked)
        tied = [(usual, form) for score, usual, form in ranked if score == most]
        usual = max(usual for usual, _ in tied)
        best = [form for count, form in tied if count == usual]
        return best, [form for count, form in tied if count < usual]

    def parting(self, row: LearntRow, forms: Sequence[Form]) -> Question | None:
        """The open question for which forms have the most different plans.

        A question that the row's deviations decide would tell nothing.
        """
        if len(forms) < 2:
            return None
        to_target = self._planner.to_target
        few = [q for q in self._open[:FEW] if self._is_open(row, q, to_target=to_target)]
        if not few:
            return None
        plans = zip(*(self._planner.plans(form, few) for form in forms), strict=True)
        counts = [len(set(row)) for row in plans]
        place = int(np.argmax(counts))
        return few[place] if counts[place] > 1 else None

    def _is_open(self, row: LearntRow, question: Question, *, to_target: bool) -> bool:
        """Whether no deviation decides a question."""
        if not row.deviations:
            return True
        outcome = row.outcome(question, to_target=to_target)
        if isinstance(outcome, Plan):
            return True
        return self._planner.plans(row.form, [question])[0] is None

    def _fits(self, form: Form) -> tuple[Bits, Bits]:
        """The questions whose results are the form's, and those that the form refuses."""
        return self._planner.fits(form, self._asked, self._answers)

    def _right(self, form: Form) -> Bits:
        fits, misfit = self._fits(form)
        return fits | (misfit & self._refused)

    def _literals(self, form: Form) -> tuple[Literals, Bits]:
        """The literals of all questions, the asked ones first; and which have a plan."""
        questions = [*self._asked, *self._open]
        plans = self._planner.plans(form, questions)
        planned = np.array([plan is not None for plan in plans])
        return Literals(self._measures, form, questions, plans), planned

    def explain(self, form: Form) -> tuple[LearntRow, Question | None]:
        """The row of a form with deviations, and a question on which deviations differ."""
        literals, planned = self._literals(form)
        left = _Left(literals.bits[:, : len(self._asked)], ~self._right(form), self._fits(form)[1])
        effects = self._effects(form)
        deviations: list[Deviation] = []
        question: Question | None = None
        while left.unexplained.any() and len(deviations) < MOST_DEVIATIONS:
            listed = left.candidates(effects, ~literals.of_plan)
            if not listed:
                break
            best = _best(listed, literals)
            rivals = [c for c in listed if c.then == best.then and c.covered == best.covered]
            question = question or self._telling(rivals, best.then, literals, planned)
            seen = left.explain(best)
            example = min((self._asked[k] for k in np.flatnonzero(seen)), key=_weight)
            deviations.append(deviation_of(literals, best, example))
        if left.unexplained.any():
            deviations.insert(0, self._not_understood(literals, left.bits, left.unexplained))
        return LearntRow(form, tuple(deviations)), question

    def _effects(self, form: Form) -> list[tuple[str | Form, Bits]]:
        """Every effect of a deviation, and the answers that it predicts."""
        fits, misfit = self._fits(form)
        return [
            (ANSWERS, ~misfit | ~self._refused),
            ("refuses", self._refused),
            ("crashes", self._crashed),
            ("garbles", self._result & ~fits),
            *self._other_forms(form, self._right(form)),
        ]

    def _other_forms(self, form: Form, right: Bits) -> list[tuple[str | Form, Bits]]:
        """Forms that explain an answer that the base form does not."""
        rows: list[tuple[str | Form, Bits]] = []
        for other in forms_for(len(self._asked[0])):
            if other == form:
                continue
            fits, _ = self._fits(other)
            if (fits & ~right).any():
                rows.append((other, self._right(other)))
        return rows

    def _telling(
        self, rivals: Sequence[Candidate], then: str | Form, literals: Literals, planned: Bits
    ) -> Question | None:
        """The open question that tells rivals of one effect apart."""
        cut = len(self._asked)
        open_bits, open_planned = literals.bits[:, cut:], planned[cut:]
        # A misfit is refused with a deviation that refuses, and without it.
        where = {ANSWERS: ~open_planned, "refuses": open_planned}
        telling = open_bits & where[then] if then in where else open_bits
        split = splitting(rivals, telling, literals.weights)
        if split is None:
            return None
        self.doubt = max(self.doubt, split[1])
        return self._open[split[0]]

    def varied(self, row: LearntRow, count: int) -> list[Question]:
        """Asked questions that differ as much as they can."""
        plans = self._planner.plans(row.form, self._asked)
        literals = Literals(self._measures, row.form, self._asked, plans)
        none = np.zeros((len(literals.bits), 0), bool)
        return [self._asked[k] for k in untested(none, literals.bits, literals.weights, count)]

    def untested(self, row: LearntRow, count: int) -> Iterator[Question]:
        """Open questions with a plan that test what no answer has tested."""
        literals, planned = self._literals(row.form)
        cut = len(self._asked)
        fits, _ = self._fits(row.form)
        places = np.flatnonzero(planned[cut:])[:FEW]
        chosen = untested(
            literals.bits[:, :cut][:, fits],
            literals.bits[:, cut:][:, places],
            literals.weights,
            count,
        )
        return (self._open[places[k]] for k in chosen)

    def doubted(self, row: LearntRow, surprises: Sequence[Question]) -> LearntRow:
        """The row of a spent budget: not understood where its last surprises were.

        The region is one literal that holds for all of them. Where none holds for few enough
        questions, nothing is understood.
        """
        literals, _ = self._literals(row.form)
        questions, among = [*self._asked, *self._open], set(surprises)
        held = literals.bits[:, [question in among for question in questions]].all(axis=1)
        shares = np.where(held & ~literals.of_plan, literals.bits.mean(axis=1), 1.0)
        best = int(shares.argmin())
        example = (surprises or self._asked)[0]
        many = len(surprises) > FEW_SURPRISES or len(row.deviations) > FEW_DEVIATIONS
        if many or not surprises or shares[best] > MOST_DOUBTED:
            return LearntRow(row.form, (Deviation((), "unknown", example),))
        unknown = Deviation((literals.rows[best],), "unknown", example)
        return replace(row, deviations=(unknown, *row.deviations))

    def _not_understood(self, literals: Literals, bits: Bits, leftover: Bits) -> Deviation:
        """The smallest region with the answers that nothing explains."""
        every = np.ones(len(bits), bool)
        region = smallest_region(bits, leftover, ~literals.of_plan)
        region = region or smallest_region(bits, leftover, every)
        when = tuple(literals.rows[k] for k in region)
        example = min((self._asked[k] for k in np.flatnonzero(leftover)), key=_weight)
        return Deviation(when, "unknown", example)


def _best(listed: Sequence[Candidate], literals: Literals) -> Candidate:
    """The candidate that explains the most with the fewest words."""

    def order(candidate: Candidate) -> tuple[int, int, int, bool, tuple[int, ...]]:
        negations = sum(not literals.rows[k].holds for k in candidate.literals)
        other = isinstance(candidate.then, Form)
        return (-candidate.covered, len(candidate.literals), negations, other, candidate.literals)

    return min(listed, key=order)


def _length(row: LearntRow) -> tuple[bool, int, int]:
    """Rows are compared by what they leave open, then by their words."""
    unknown = any(deviation.then == "unknown" for deviation in row.deviations)
    return unknown, len(row.deviations), sum(len(d.when) for d in row.deviations)


def _weight(question: Question) -> tuple[int, int]:
    """Simple questions come first."""
    return sum(map(len, question)), sum(map(sum, question))


def _refined(asked: Sequence[Question], answers: Sequence[Answer]) -> list[Question]:
    """Questions between two that differ in a size alone and got answers of different kinds."""
    by_skeleton: dict[tuple[tuple[bool, ...], ...], list[tuple[int, str, Question]]] = {}
    for question, answer in zip(asked, answers, strict=True):
        size = max((size for shape in question for size in shape), default=0)
        if size > 8:
            skeleton = tuple(tuple(s == size for s in shape) for shape in question)
            by_skeleton.setdefault(skeleton, []).append((size, answer.kind, question))
    near = []
    for rows in by_skeleton.values():
        rows.sort(key=lambda row: row[0])
        for (low, kind, _), (high, other, question) in itertools.pairwise(rows):
            if kind != other and high - low > 1:
                near.append(between(question, high, (low + high) // 2))
    return near


def _ranks_between(answers: dict[Question, Answer], count: int) -> list[Question]:
    """Questions of a rank between two of the ladder that got answers of different kinds."""
    table = [of_rank(rank, count) for rank in range(RANKS[-1] + 1)]
    near = []
    for kind in range(len(table[-1])):
        rows = [(rank, row[kind]) for rank, row in enumerate(table) if kind < len(row)]
        asked = [(rank, answers[row].kind) for rank, row in rows if row in answers]
        for (low, answer), (high, other) in itertools.pairwise(asked):
            if answer != other and high - low > 1:
                near.append(table[(low + high) // 2][kind])
    return near


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
