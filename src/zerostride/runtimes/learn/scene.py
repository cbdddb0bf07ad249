"""The answers so far beside open questions, and the search for a row that explains them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ...core.plan import Plan
from ...engines.learnt import ANSWERS, TRAITS, Deviation, Form, LearntRow, Test
from .shapes import Question, between, by_rank
from .space import (
    CRASHED,
    REFUSED,
    RESULT,
    Answer,
    Bits,
    Candidate,
    Fits,
    Literals,
    Planner,
    candidates,
    deviation_of,
    forms_for,
    smallest_region,
    splitting,
    untested,
)

#: The first questions of the pool, which are enough to tell forms apart.
FEW = 400
#: A spent budget leaves a region that is not understood, if there were few surprises and
#: deviations, and the region has at most this share of questions. Otherwise nothing is understood.
FEW_SURPRISES, FEW_DEVIATIONS, MOST_DOUBTED = 4, 3, 0.5
#: A rival form explains at least this share of the results that the best one does.
NEAR = 0.9
#: The most deviations of a row.
MOST_DEVIATIONS = 8


@dataclass(slots=True)
class _Left:
    """The answers that no deviation has explained yet.

    Attributes:
        bits: literals by the asked questions.
        unexplained: the answers that neither the form nor a deviation explains.
        misfit: the questions that the form refuses.
        free: answers that are not understood; any deviation may be wrong there.
        decided: those that a deviation decided; later ones need not be right there.
    """

    bits: Bits
    unexplained: Bits
    misfit: Bits
    free: Bits
    decided: Bits = field(init=False)

    def __post_init__(self) -> None:
        self.decided = self.free

    def candidates(
        self, effects: Sequence[tuple[str | Form, Bits]], of_shapes: Bits
    ) -> list[Candidate]:
        """The deviations that explain the most."""
        every = np.ones(len(self.bits), bool)
        asked: list[tuple[int, str | Form, Bits, Bits]] = []
        for then, mask in effects:
            right = mask | (self.free if isinstance(then, Form) else self.decided)
            wanted = self.unexplained & right
            wanted = wanted & self.misfit if then == ANSWERS else wanted
            asked.append((int(wanted.sum()), then, wanted, right))
        listed: list[Candidate] = []
        for most, then, wanted, right in sorted(asked, key=lambda row: -row[0]):
            least = listed[0].covered if listed else 1
            if most < least:
                break
            allowed = of_shapes if then == ANSWERS or isinstance(then, Form) else every
            more = candidates(self.bits, wanted, right, then, allowed, least)
            listed = more if more and more[0].covered > least else listed + more
        return listed

    def explain(self, candidate: Candidate) -> Bits:
        """Takes a deviation; the answers that it explains."""
        covers = self.bits[list(candidate.literals)].all(axis=0)
        covers = covers & self.misfit if candidate.then == ANSWERS else covers
        seen = covers & self.unexplained
        self.unexplained = self.unexplained & ~covers
        if not isinstance(candidate.then, Form):
            self.decided = self.decided | covers
        return seen


class Scene:
    """The answers so far beside the pool, and the search for a row that explains them.

    Attributes:
        planner: of the op's kind.
        asked: the questions that have answers.
        open: those that may be asked.
        doubt: the weight of the rivals that no question was found to tell apart, at most.
    """

    def __init__(
        self,
        planner: Planner,
        fits: Fits,
        answers: dict[Question, Answer],
        pool: Sequence[Question],
    ) -> None:
        self.planner = planner
        self._kept_fits = fits
        self.asked = list(answers)
        self._answers = list(answers.values())
        count = len(self.asked[0])
        self._near = _refined(self.asked, self._answers) + _ranks_between(answers, count)
        self.open = [q for q in dict.fromkeys((*pool, *self._near)) if q not in answers]
        self.doubt = 0.0
        kinds = np.array([answer.kind for answer in self._answers])
        self._refused: Bits = kinds == REFUSED
        self._crashed: Bits = kinds == CRASHED
        self._result: Bits = kinds == RESULT

    def base(self, forms: Sequence[Form]) -> tuple[list[Form], list[Form]]:
        """The forms that explain the most results, the most frequent form first.

        Two lists: those whose misfits have one kind of answer most often; and rivals that explain
        as many results, or nearly as many and are more frequent; the most frequent first.
        """
        ranked: list[tuple[int, int, Form]] = []
        for form in forms:
            fits, misfit = self.fits(form)
            refused = int((misfit & self._refused).sum())
            usual = max(refused, int((misfit & self._result).sum()))
            ranked.append((int(fits.sum()), usual, form))
        ranked.sort(key=lambda row: -row[0] - row[1])
        most = max((fits, usual) for fits, usual, _ in ranked)
        best = [form for fits, usual, form in ranked if (fits, usual) == most]
        frequent = forms[: forms.index(best[0])]
        near = [
            form
            for fits, _, form in ranked
            if fits == most[0] or (fits >= NEAR * most[0] and form in frequent)
        ]
        return best, sorted((form for form in near if form not in best), key=forms.index)

    def parting(self, row: LearntRow, forms: Sequence[Form]) -> Question | None:
        """The open question for which forms have the most different plans.

        A question that the row's deviations decide would tell nothing.
        """
        if len(forms) < 2:
            return None
        few = self.open[:FEW]
        plans = zip(*(self.planner.plans(form, few) for form in forms), strict=True)
        counts = np.array([len(set(row)) for row in plans])
        order = np.argsort(-counts, kind="stable")[: int((counts > 1).sum())]
        return next((few[k] for k in order if self._is_open(row, few[k])), None)

    def _is_open(self, row: LearntRow, question: Question) -> bool:
        """Whether no deviation decides a question."""
        (plan,) = self.planner.plans(row.form, [question])
        return plan is None or not row.decides(question, plan)

    def fits(self, form: Form) -> tuple[Bits, Bits]:
        """The questions whose results are the form's, and those that the form refuses."""
        return self._kept_fits.of(form, self.asked, self._answers)

    def _right(self, form: Form) -> Bits:
        fits, misfit = self.fits(form)
        return fits | (misfit & self._refused)

    def literals(self, form: Form) -> tuple[Literals, Bits]:
        """The literals of all questions, the asked ones first; and which have a plan."""
        questions = [*self.asked, *self.open]
        plans = self.planner.plans(form, questions)
        planned = np.array([plan is not None for plan in plans])
        return Literals(self.planner.measures, form, questions, plans), planned

    def explain(self, form: Form, most: int = MOST_DEVIATIONS) -> tuple[LearntRow, Question | None]:
        """The row of a form with deviations, and a question on which deviations differ.

        Args:
            form: the form.
            most: the most deviations; the answers that they leave are a region not understood.
        """
        literals, planned = self.literals(form)
        none = np.zeros(len(planned), bool)
        deviations, left, question = self._listed(form, literals, planned, most, none)
        if left.unexplained.any():
            unknown, region = self._not_understood(literals, left.unexplained)
            # Answers of the region spoiled what holds elsewhere.
            others, rest, other = self._listed(form, literals, planned, most, region)
            if not rest.unexplained.any() and len(others) <= len(deviations):
                deviations, question = others, other
            deviations.insert(0, unknown)
        return LearntRow(form, tuple(deviations)), question

    def _listed(
        self, form: Form, literals: Literals, planned: Bits, most: int, region: Bits
    ) -> tuple[list[Deviation], _Left, Question | None]:
        """Deviations, what they leave, and a question on which they differ from others.

        Args:
            form: the form.
            literals: of all questions.
            planned: which of them have a plan.
            most: the most deviations.
            region: questions whose answers need no explanation: they are not understood.
        """
        cut = len(self.asked)
        unexplained = ~self._right(form) & ~region[:cut]
        left = _Left(literals.bits[:, :cut], unexplained, self.fits(form)[1], region[:cut])
        effects = self._effects(form)
        deviations: list[Deviation] = []
        question: Question | None = None
        while left.unexplained.any() and len(deviations) < most:
            listed = left.candidates(effects, ~literals.of_plan)
            if not listed:
                break
            best = _best(listed, literals)
            rivals = [c for c in listed if c.then == best.then and c.covered == best.covered]
            other = self._telling(form, rivals, literals, planned, region)
            question = question or other
            seen = left.explain(best)
            example = min((self.asked[k] for k in np.flatnonzero(seen)), key=_weight)
            deviations.append(deviation_of(literals, best, example))
        return deviations, left, question

    def _effects(self, form: Form) -> list[tuple[str | Form, Bits]]:
        """Every effect of a deviation, and the answers that it predicts."""
        fits, misfit = self.fits(form)
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
        for other in forms_for(len(self.asked[0])):
            if other == form:
                continue
            fits, _ = self.fits(other)
            if (fits & ~right).any():
                rows.append((other, self._right(other)))
        return rows

    def _telling(
        self,
        form: Form,
        rivals: Sequence[Candidate],
        literals: Literals,
        planned: Bits,
        region: Bits,
    ) -> Question | None:
        """The open question outside a region that tells rivals of one effect apart.

        It is one on which the effect differs from the form.
        """
        cut, then = len(self.asked), rivals[0].then
        differs = ~region[cut:]
        if isinstance(then, Form):
            plans = zip(*(self.planner.plans(f, self.open) for f in (form, then)), strict=True)
            differs = differs & np.array([not _same(a, b) for a, b in plans], dtype=bool)
        elif then == ANSWERS:
            differs = differs & ~planned[cut:]
        elif then == "refuses":  # a misfit is refused anyway
            differs = differs & planned[cut:]
        split = splitting(rivals, literals.bits[:, cut:] & differs, literals.weights)
        if split is None:
            return None
        self.doubt = max(self.doubt, split[1])
        return self.open[split[0]]

    def against(self, mine: Form) -> Iterator[Question]:
        """Asked questions that a form explains; each other one, if it can, gets two wrong."""
        forms = forms_for(len(self.asked[0]))
        wrong = np.array([~self._right(form) for form in forms]) & self._right(mine)
        left = np.full(len(forms), 2)
        while True:
            scores = wrong[left > 0].sum(axis=0)
            best = int(scores.argmax())
            if not scores[best]:
                return
            yield self.asked[best]
            left -= wrong[:, best]
            wrong[:, best] = False

    def varied(self, row: LearntRow, count: int) -> list[Question]:
        """Asked questions that differ as much as they can."""
        plans = self.planner.plans(row.form, self.asked)
        literals = Literals(self.planner.measures, row.form, self.asked, plans)
        none = np.zeros((len(literals.bits), 0), bool)
        return [self.asked[k] for k in untested(none, literals.bits, literals.weights, count)]

    def doubted(self, row: LearntRow, surprises: Sequence[Question]) -> LearntRow:
        """The row of a spent budget: not understood where its last surprises were.

        The region is one literal that holds for all of them. Where none holds for few enough
        questions, nothing is understood.
        """
        literals, _ = self.literals(row.form)
        questions, among = [*self.asked, *self.open], set(surprises)
        held = literals.bits[:, [question in among for question in questions]].all(axis=1)
        shares = np.where(held & ~literals.of_plan, literals.bits.mean(axis=1), 1.0)
        best = int(shares.argmin())
        example = (surprises or self.asked)[0]
        many = len(surprises) > FEW_SURPRISES or len(row.deviations) > FEW_DEVIATIONS
        if many or not surprises or shares[best] > MOST_DOUBTED:
            return LearntRow(row.form, (Deviation((), "unknown", example),))
        unknown = Deviation((literals.rows[best],), "unknown", example)
        return replace(row, deviations=(unknown, *row.deviations))

    def partly(self, row: LearntRow, doubt: float) -> LearntRow:
        """The first deviations of a row; where others decide is a region that is not understood.

        Where that is too large, nothing is understood.

        Args:
            row: it has too many deviations, or rivals of them are left.
            doubt: the weight that rivals of the first deviations may have.
        """
        literals, _ = self.literals(row.form)
        place = {literal: k for k, literal in enumerate(literals.rows)}
        best, least = self.doubted(row, []), MOST_DOUBTED
        for most in range(len(row.deviations)):
            self.doubt = 0.0
            shorter, _ = self.explain(row.form, most)
            region = [place[literal] for literal in shorter.deviations[0].when]
            share = float(literals.bits[region].all(axis=0).mean())
            if self.doubt <= doubt and share < least:
                best, least = shorter, share
        return best

    def aside(self, form: Form) -> tuple[LearntRow, Question | None] | None:
        """The row of a form with the smallest region that leaves few deviations elsewhere.

        The region is one literal without a number, is not understood, and has at most
        `MOST_DOUBTED` of the questions. Also a question that tells the deviations from others.
        """
        literals, planned = self.literals(form)
        shares = literals.bits.mean(axis=1)
        for k in np.argsort(shares, kind="stable"):
            literal, region = literals.rows[k], literals.bits[k]
            inside = np.flatnonzero(region[: len(self.asked)])
            numbered = TRAITS[literal.name].test is not Test.TRUE
            if literals.of_plan[k] or numbered or not len(inside):
                continue
            if shares[k] > MOST_DOUBTED:
                break
            self.doubt = 0.0
            deviations, left, question = self._listed(
                form, literals, planned, FEW_DEVIATIONS, region
            )
            if not left.unexplained.any():
                example = min((self.asked[place] for place in inside), key=_weight)
                unknown = Deviation((literal,), "unknown", example)
                return LearntRow(form, (unknown, *deviations)), question
        return None

    def _not_understood(self, literals: Literals, leftover: Bits) -> tuple[Deviation, Bits]:
        """The smallest region with the answers that nothing explains; and all questions in it."""
        bits = literals.bits[:, : len(self.asked)]
        every = np.ones(len(bits), bool)
        region = smallest_region(bits, leftover, ~literals.of_plan)
        region = region or smallest_region(bits, leftover, every)
        when = tuple(literals.rows[k] for k in region)
        example = min((self.asked[k] for k in np.flatnonzero(leftover)), key=_weight)
        whole: Bits = np.logical_and.reduce(literals.bits[list(region)])
        return Deviation(when, "unknown", example), whole


def _best(listed: Sequence[Candidate], literals: Literals) -> Candidate:
    """The candidate that explains the most with the fewest words."""

    def order(candidate: Candidate) -> tuple[int, int, int, int, bool, tuple[int, ...]]:
        rows = [literals.rows[k] for k in candidate.literals]
        sized = sum(TRAITS[literal.name].sized for literal in rows)  # which open sizes cannot tell
        negations = sum(not literal.holds for literal in rows)
        other = isinstance(candidate.then, Form)
        return (-candidate.covered, len(rows), sized, negations, other, candidate.literals)

    return min(listed, key=order)


def length(row: LearntRow) -> tuple[bool, int, int]:
    """Rows are compared by what they leave open, then by their words."""
    unknown = any(deviation.then == "unknown" for deviation in row.deviations)
    return unknown, len(row.deviations), sum(len(d.when) for d in row.deviations)


def _same(one: Plan | None, other: Plan | None) -> bool:
    """Whether two forms compute the same."""
    if one is None or other is None:
        return one is other
    return (one.shape, one.aligned) == (other.shape, other.aligned)


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
    table = by_rank(count)
    near = []
    for kind in range(len(table[-1])):
        rows = [(rank, row[kind]) for rank, row in enumerate(table) if kind < len(row)]
        asked = [(rank, answers[row].kind) for rank, row in rows if row in answers]
        for (low, answer), (high, other) in itertools.pairwise(asked):
            if answer != other and high - low > 1:
                near.append(table[(low + high) // 2][kind])
    return near


__all__ = ["FEW", "Scene", "length"]
