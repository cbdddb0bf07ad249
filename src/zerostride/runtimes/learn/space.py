"""The hypotheses of the learner, as matrices over questions.

A hypothesis is a form of broadcasting with deviations. A deviation is one literal or two; it is
valid if it is right on every answer that it covers. All of them are tested at once: of a matrix of
literals by questions, `both` counts the questions that each pair of literals covers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...core.alignment import Rule, apply
from ...core.plan import Plan
from ...engines.learnt import FORMS, TRAITS, Deviation, Form, LearntRow, Literal, Test, Trait
from ...errors import BroadcastError
from ...sizes import Asker
from .shapes import Question

Bits = NDArray[np.bool_]
REFUSED, CRASHED, RESULT = "refused", "crashed", "result"


@dataclass(frozen=True, slots=True)
class Answer:
    """An engine's answer to a question.

    Attributes:
        kind: REFUSED, CRASHED or RESULT.
        matches: whether a result is that of a plan.
        message: of a refusal or a crash.
    """

    kind: str
    matches: Callable[[Plan], bool] = lambda plan: False
    message: str = ""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A deviation that explains answers.

    Attributes:
        literals: rows of the matrix of literals; one or two.
        then: the effect or the form.
        covered: the number of unexplained answers that it explains, less `PAIR_COST` for two
            literals.
    """

    literals: tuple[int, ...]
    then: str | Form
    covered: int


class Planner:
    """The plans of questions by each form, and the measures of traits; each computed once.

    All ops of an engine share them, because every op is asked much the same questions.

    Attributes:
        to_target: the last shape is a target.
        measures: of the questions and their plans.
    """

    def __init__(self, *, to_target: bool = False) -> None:
        self.to_target = to_target
        self.measures = Measures()
        self._plans: dict[Form, dict[Question, Plan | None]] = {}
        self._rules: dict[tuple[Form, int], Rule] = {}

    def plans(self, form: Form, questions: Sequence[Question]) -> list[Plan | None]:
        """The plans of questions; None where the form refuses."""
        kept = self._plans.setdefault(form, {})
        for question in questions:
            if question not in kept:
                kept[question] = self._planned(form, question)
        return [kept[question] for question in questions]

    def _planned(self, form: Form, question: Question) -> Plan | None:
        count = len(question)
        rule = self._rules.get((form, count))
        if rule is None:
            rule = LearntRow(form).rule("", to_target=self.to_target, count=count)
            self._rules[form, count] = rule
        try:
            return apply(rule, question, {})
        except BroadcastError:
            return None


class Fits:
    """Whether the answers of one op are those of each form; each compared once."""

    def __init__(self, planner: Planner) -> None:
        self._planner = planner
        self._kept: dict[Form, list[tuple[bool, bool]]] = {}

    def of(
        self, form: Form, asked: Sequence[Question], answers: Sequence[Answer]
    ) -> tuple[Bits, Bits]:
        """The answers that are the form's results, and the questions that the form refuses.

        Args:
            form: the form.
            asked: every question so far, in order; those of an earlier call come first.
            answers: their answers.
        """
        kept = self._kept.setdefault(form, [])
        start = len(kept)
        new = self._planner.plans(form, asked[start:])
        for plan, answer in zip(new, answers[start:], strict=True):
            fit = plan is not None and answer.kind == RESULT and answer.matches(plan)
            kept.append((fit, plan is None))
        table = np.array(kept[: len(asked)], dtype=bool).reshape(-1, 2)
        return table[:, 0], table[:, 1]


#: The numbers of a trait whose sizes are multiples of one.
_MULTIPLES = (2, 4, 8, 16)
#: A measure that was not taken yet, and one of nothing.
_OPEN, _NOTHING = -2, -1


class Measures:
    """What traits measure of questions and their plans by a form, computed once.

    A measure is one number: the largest size, a truth value, or for a trait of multiples the bits
    of those of `_MULTIPLES` that divide a size.
    """

    def __init__(self) -> None:
        self._places: dict[Question, int] = {}
        self._kept: dict[tuple[str, Form | None], NDArray[np.int64]] = {}

    def of(
        self, form: Form, questions: Sequence[Question], plans: Sequence[Plan | None]
    ) -> Callable[[str], NDArray[np.int64]]:
        """The measures of the trait of a name, one for each question; -1: it measures nothing."""
        counted = self._places
        places = np.array([counted.setdefault(q, len(counted)) for q in questions], np.intp)
        return lambda name: self._named(name, form, places, questions, plans)

    def _named(
        self,
        name: str,
        form: Form,
        places: NDArray[np.intp],
        questions: Sequence[Question],
        plans: Sequence[Plan | None],
    ) -> NDArray[np.int64]:
        trait = TRAITS[name]
        key = (name, None if trait.of_plan is None else form)
        kept = self._kept.get(key, np.zeros(0, np.int64))
        if len(kept) < len(self._places):
            more = np.full(2 * len(self._places) - len(kept), _OPEN)
            kept = self._kept[key] = np.concatenate([kept, more])
        for k in np.flatnonzero(kept[places] == _OPEN).tolist():
            kept[places[k]] = _measured(trait, questions[k], plans[k])
        return kept[places]


def _measured(trait: Trait, question: Question, plan: Plan | None) -> int:
    """The measure of one question as a number."""
    sizes = [int(x) for x in trait.measure(question, plan, Asker()) or () if isinstance(x, int)]
    if trait.test is Test.MULTIPLE:
        return sum(1 << k for k, n in enumerate(_MULTIPLES) if any(x % n == 0 for x in sizes))
    return max(sizes, default=_NOTHING)


class Literals:
    """Every literal that tells questions apart, and the questions for which it holds."""

    def __init__(
        self,
        measures: Measures,
        form: Form,
        questions: Sequence[Question],
        plans: Sequence[Plan | None],
    ) -> None:
        gathered: dict[bytes, tuple[Literal, Bits]] = {}
        planned = np.array([plan is not None for plan in plans])
        of = measures.of(form, questions, plans)
        for name, trait in TRAITS.items():
            for number, bits in _tested(trait.test, of(name)):
                for holds, held in ((True, bits), (False, ~bits)):
                    held = held & planned if trait.of_plan is not None else held
                    if held.any():
                        key = held.tobytes() + bytes([trait.of_plan is not None])
                        gathered.setdefault(key, (Literal(name, number, holds), held))
        self.rows = [literal for literal, _ in gathered.values()]
        self.bits: Bits = np.array([bits for _, bits in gathered.values()])
        self.of_plan: Bits = np.array([literal.of_plan for literal in self.rows])
        self.weights = self._weights()

    def _weights(self) -> NDArray[np.float64]:
        """How likely each literal is: each trait counts the same, a negation half."""
        names = Counter((literal.name, literal.holds) for literal in self.rows)
        return np.array([(1.0 if x.holds else 0.5) / names[x.name, x.holds] for x in self.rows])


def _tested(test: Test, values: NDArray[np.int64]) -> Iterator[tuple[int, Bits]]:
    """The numbers at which a trait is tried, and the questions that pass there."""
    if test is Test.TRUE:
        yield 0, values > 0
    elif test is Test.MULTIPLE:
        for k, number in enumerate(_MULTIPLES):
            yield number, (values >> k) & 1 > 0
    else:
        for number in np.unique(values):
            if number >= 0:
                yield int(number), values > number if test is Test.ABOVE else values == number


def both(bits: Bits) -> NDArray[np.int32]:
    """For each pair of rows, the number of columns where both hold.

    Bits are counted in whole words. A product of matrices would take BLAS, whose threads wait for
    each other where the engine keeps the cores busy.

    >>> both(np.array([[True, True, False], [False, True, True]])).tolist()
    [[2, 1], [1, 2]]
    """
    packed = np.packbits(bits, axis=1)
    words = np.zeros((len(bits), -(-packed.shape[1] // 8) * 8), np.uint8)
    words[:, : packed.shape[1]] = packed
    counts = np.zeros((len(bits), len(bits)), np.int32)
    for word in words.view(np.uint64).T:
        counts += np.bitwise_count(word[:, None] & word)
    return counts


#: A deviation of two literals explains more than this many answers beyond one of one literal.
PAIR_COST = 2


def candidates(
    bits: Bits, wanted: Bits, right: Bits, then: str | Form, allowed: Bits, least: int = 1
) -> list[Candidate]:
    """The valid deviations of one effect that explain the most answers.

    Args:
        bits: literals by questions.
        wanted: the questions to explain, whose answers the effect predicts.
        right: the questions whose answers the effect predicts.
        then: the effect or the form.
        allowed: the literals that may be used.
        least: the fewest answers that a deviation must explain.
    """
    explained = bits[:, wanted].sum(axis=1)
    single = explained * (allowed & ~bits[:, ~right].any(axis=1))
    least = max(least, int(single.max(initial=0)))
    # A pair explains no more than each of its literals does.
    index = np.flatnonzero(allowed & (explained >= least))
    if not index.size:
        return []
    # Literals that hold for the same answers are one row here.
    alike: dict[bytes, list[int]] = {}
    for k, packed in zip(index, np.packbits(bits[index], axis=1), strict=True):
        alike.setdefault(packed.tobytes(), []).append(int(k))
    named = list(alike.values())
    rows = bits[[first for first, *_ in named]]
    counts = np.where(both(rows[:, ~right]) > 0, 0, both(rows[:, wanted]))
    cost = PAIR_COST * ~np.eye(len(rows), dtype=bool)
    counts = np.where(counts > 0, np.maximum(counts - cost, 1), 0)
    best = int(counts.max())
    if best < least:
        return []
    listed = [
        Candidate((k,), then, best)
        for row in np.flatnonzero(np.diag(counts) == best)
        for k in named[row]
    ]
    pairs = (
        (min(i, j), max(i, j))
        for a, b in np.argwhere(np.triu(counts == best, 1))
        for i in named[a]
        for j in named[b]
    )
    return listed + [Candidate((i, j), then, best) for i, j in pairs]


#: How likely a deviation of two literals is, relative to one.
_PAIR = 0.1


def splitting(
    rivals: Sequence[Candidate], bits: Bits, weights: NDArray[np.float64]
) -> tuple[int, float] | None:
    """The question on which rival deviations differ most, and the weight of the smaller side.

    None: they agree.

    Args:
        rivals: deviations that explain the same answers.
        bits: literals by the questions to choose from.
        weights: of the literals.
    """
    if len(rivals) < 2 or not bits.shape[1]:
        return None
    ends = np.array([(c.literals[0], c.literals[-1]) for c in rivals])
    single = ends[:, 0] == ends[:, 1]
    weight = weights[ends[:, 0]] * np.where(single, 1.0, _PAIR * weights[ends[:, 1]])
    holds = bits[ends[:, 0]] & bits[ends[:, 1]]
    share = weight @ holds / weight.sum()
    balance = np.minimum(share, 1 - share)
    best = int(balance.argmax())
    return (best, float(balance[best])) if balance[best] > LEAST_DOUBT else None


#: Rivals whose weights differ by less on every question are not told apart.
LEAST_DOUBT = 0.001


def untested(tested: Bits, bits: Bits, weights: NDArray[np.float64], count: int) -> Iterator[int]:
    """The questions that test the most pairs of literals that no answer has tested.

    Args:
        tested: literals by the answered questions.
        bits: literals by the questions to choose from.
        weights: of the literals.
        count: how many to choose.
    """
    light = weights.astype(np.float32)
    left = np.outer(light, light) * (both(tested) == 0)
    columns = bits.T.astype(np.float32)
    scores = np.einsum("ql,ql->q", columns @ left, columns)
    for _ in range(min(count, len(columns))):
        best = int(scores.argmax())
        if scores[best] <= _NOTHING_LEFT:
            return
        yield best
        held = np.flatnonzero(bits[:, best])
        block = np.ix_(held, held)
        mine = columns[:, held]
        scores -= np.einsum("ql,ql->q", mine @ left[block], mine)
        left[block] = 0


#: A score of less than this is left over from rounding.
_NOTHING_LEFT = 1e-4


def smallest_region(bits: Bits, leftover: Bits, allowed: Bits) -> tuple[int, ...]:
    """The one or two literals that hold for all leftover questions and for the fewest others.

    A second one halves the region at least. Otherwise it would only leave out what was not asked.
    """
    index = np.flatnonzero(allowed & bits[:, leftover].all(axis=1))
    if not index.size:
        return ()
    counts = both(bits[index])
    i, j = np.unravel_index(int(counts.argmin()), counts.shape)
    alone = int(counts.diagonal().argmin())
    if 2 * counts[i, j] > counts[alone, alone]:
        return (int(index[alone]),)
    return tuple(sorted({int(index[i]), int(index[j])}))


def forms_for(count: int) -> list[Form]:
    """The forms that place so many operands."""
    return [form for form in FORMS if form.takes(count)]


def deviation_of(literals: Literals, candidate: Candidate, example: Question) -> Deviation:
    """The deviation of a candidate."""
    when = tuple(literals.rows[k] for k in candidate.literals)
    return Deviation(when, candidate.then, example)


__all__ = [
    "CRASHED",
    "REFUSED",
    "RESULT",
    "Answer",
    "Candidate",
    "Fits",
    "Literals",
    "Measures",
    "Planner",
    "candidates",
    "deviation_of",
    "forms_for",
    "smallest_region",
    "splitting",
    "untested",
]
