"""``python -m campaigns learn``: made-up engines, learnt and compared with fresh questions.

A made-up engine is a form of broadcasting with limits and faults that depend on ranks and sizes. It
answers as an engine does; the learner sees answers alone.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import click

from zerostride.core.plan import Plan
from zerostride.engines.learnt import (
    ANSWERS,
    EFFECTS,
    FORMS,
    TRAITS,
    Deviation,
    LearntRow,
    Literal,
    Test,
)
from zerostride.errors import Reason
from zerostride.runtimes.learn.learner import Learner, agrees
from zerostride.runtimes.learn.shapes import Question, draw
from zerostride.runtimes.learn.space import CRASHED, REFUSED, RESULT, Answer

#: Fresh questions to each engine.
FRESH = 3000
#: A row may be wrong on this share of fresh questions.
MOST_WRONG = 0.001
#: Numbers of a made-up trait of ranks, and of one of sizes.
_RANKS, _SIZES = range(1, 7), (16, 32, 64, 100, 128, 200, 256)
_FAULTS = tuple(effect for effect in EFFECTS if effect not in (ANSWERS, "unknown"))


@dataclass(frozen=True, slots=True)
class Judged:
    """A made-up engine, what was learnt of it, and fresh questions.

    Attributes:
        truth: the engine.
        learnt: its row.
        questions: how many the learner asked.
        wrong: fresh questions that the row answers otherwise than the engine.
        not_understood: fresh questions for which the row predicts no answer.
    """

    truth: LearntRow
    learnt: LearntRow
    questions: int
    wrong: tuple[Question, ...]
    not_understood: int

    @property
    def ok(self) -> bool:
        """Whether the row is right, or says that it is not understood."""
        return len(self.wrong) <= MOST_WRONG * FRESH


def made_up(rng: random.Random) -> LearntRow:
    """A random engine: a form with at most two faults; one in three does not refuse misfits."""
    faults = [_fault(rng) for _ in range(rng.randint(0, 2))]
    if rng.random() < 0.3:
        names = ("any", "any", "operand_is_empty", "one_element", "first_is_lower")
        faults.append(Deviation((Literal(rng.choice(names)),), ANSWERS))
    return LearntRow(rng.choice(FORMS), tuple(faults))


def _fault(rng: random.Random) -> Deviation:
    literals = [_literal(rng, rng.choice(list(TRAITS)[1:]))]
    if rng.random() < 0.3:
        literals.append(Literal("stretching_above"))
    return Deviation(tuple(literals), rng.choice(_FAULTS))


def _literal(rng: random.Random, name: str) -> Literal:
    trait = TRAITS[name]
    if trait.test is Test.TRUE:
        return Literal(name)
    if trait.test is Test.MULTIPLE:
        return Literal(name, rng.choice((4, 8)))
    return Literal(name, rng.choice(_SIZES if trait.sized else _RANKS))


def engine_of(truth: LearntRow) -> Callable[[Question], Answer]:
    """The engine of a row: it answers a question by a result, a refusal or its end."""

    def ask(question: Question) -> Answer:
        outcome = truth.outcome(question)
        if isinstance(outcome, Plan):
            return Answer(RESULT, lambda plan: plan == outcome)
        if outcome.reason is Reason.CRASH:
            return Answer(CRASHED)
        return Answer(RESULT if outcome.silent else REFUSED)

    return ask


def judge(seed: int) -> Judged:
    """Learns the made-up engine of a seed, and compares."""
    truth = made_up(random.Random(seed))
    learner = Learner(engine_of(truth), seed=seed)
    row = learner.learn()
    fresh = random.Random(f"fresh:{seed}")
    wrong: list[Question] = []
    not_understood = 0
    for _ in range(FRESH):
        question = draw(fresh, 2)
        agreed = agrees(row.outcome(question), engine_of(truth)(question))
        not_understood += agreed is None
        if agreed is False:
            wrong.append(question)
    return Judged(truth, row, len(learner.answers), tuple(wrong), not_understood)


def _words(judged: Judged) -> Iterator[str]:
    for name, row in (("engine", judged.truth), ("learnt", judged.learnt)):
        yield f"  {name}: {row.form.place}, {row.form.stretch}"
        for deviation in row.deviations:
            yield f"    {' and '.join(map(str, deviation.when)) or 'always'}: {deviation.then}"
    yield f"  wrong: {judged.wrong[:3]}"


@click.command()
@click.option("--engines", type=click.IntRange(1), default=30, show_default=True)
@click.option("--seed", type=int, default=0, show_default=True, help="Of the first engine.")
def learn(engines: int, seed: int) -> int:
    """Learn made-up engines; exit status 1 if a row is wrong where it says that it knows."""
    results = []
    for number in range(seed, seed + engines):
        judged = judge(number)
        results.append(judged)
        share = judged.not_understood / FRESH
        click.echo(
            f"{number}: {judged.questions} questions, {len(judged.wrong)} of {FRESH} wrong, "
            f"{share:.1%} not understood"
        )
        if not judged.ok:
            click.echo("\n".join(_words(judged)))
    errors = sum(not judged.ok for judged in results)
    whole = sum(judged.not_understood == 0 for judged in results)
    click.echo(f"{errors} of {engines} engines are wrong; {whole} are understood in full")
    return 1 if errors else 0
