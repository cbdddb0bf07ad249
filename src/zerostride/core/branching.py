"""Runs a function that asks about open sizes, once for each combination of possible answers.

Where a question has two possible answers, the function is run once for each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

from ..errors import Misfit, Reason
from ..sizes import Asker
from ..sizes.budget import PARTS_A_STEP, work
from ..sizes.condition import Condition, all_of, eq, ge, negation
from ..sizes.dim import Atom, dim
from ..sizes.system import System

T = TypeVar("T")

#: Ways to go through one rule. ncnn's has 4 at most, pdpd's one for each axis of B.
MAX_LEAVES = 512


class Forks(Asker):
    """Answers from known facts. Where both answers are possible, it takes the script's, then yes.

    Attributes:
        start: the known facts, as far as they are a conjunction.
        script: the answers to the first questions, and whether each might have been the other.
        taken: the questions so far with their answers, and whether each might have been the other.
        required: further conditions of this way, beside the answers.
        system: the known facts and the answers; None where it has to be built anew.
        grown: the last question of the system was answered yes, and it holds that answer.
        behind: the system lacks an answer about an atom that nothing constrained.
    """

    __slots__ = (
        "behind", "grown", "required", "script", "start", "system", "taken", "touched",
    )  # fmt: skip

    def __init__(self, system: System, touched: frozenset[Atom], script: Script) -> None:
        super().__init__()
        self.start = system
        self.script = script
        self.taken: list[tuple[Condition, bool, bool]] = []
        self.required: list[Condition] = []
        self.touched = set(touched)
        self.system: System | None = None
        self.grown = self.behind = False

    @property
    def path(self) -> Condition:
        """The answers that might have been different."""
        forks = ((question, yes) for question, yes, fork in self.taken if fork)
        return all_of(question if yes else negation(question) for question, yes in forks)

    def equal(self, a: Any, b: Any) -> bool:
        """Are the two sizes equal, on this way?"""
        if type(a) is int and type(b) is int:
            return a == b
        return self._answer(eq(a, b))

    def is_one(self, a: Any) -> bool:
        """Is the size 1, on this way?"""
        return a == 1 if type(a) is int else self._answer(eq(a, 1))

    def is_above(self, a: Any, b: Any) -> bool:
        """Is `a` larger than `b`, on this way?"""
        return self._answer(ge(a, b + 1))

    def is_multiple(self, a: Any, of: Any) -> bool:
        """Is `a` a whole multiple of another size, on this way?"""
        return self.equal(a, 0) if self.equal(of, 0) else self._answer(eq(dim(a) % of, 0))

    def forbid(self, a: Any, b: Any, misfit: Callable[[], Misfit]) -> None:
        """Refuses the two being equal. Where that is not known, it requires that they differ."""
        equal = eq(a, b)
        if equal.always:
            raise misfit()
        if not equal.never:
            self.required.append(negation(equal))

    def _answer(self, question: Condition) -> bool:
        if question.always or question.never:
            return question.always
        position = len(self.taken)
        if position < len(self.script):
            yes, fork = self.script[position]
        else:
            yes, fork = self._decided(question)
        self.taken.append((question, yes, fork))
        self.touched.update(atom for monomial, _ in question.size.terms for atom in monomial)
        return yes

    def _decided(self, question: Condition) -> tuple[bool, bool]:
        """The answer, and whether the other answer is possible too."""
        atoms = {atom for monomial, _ in question.size.terms for atom in monomial}
        if self.touched.isdisjoint(atoms) and len(atoms) == 1:
            if self.grown:
                self.system = None
            self.behind = self.system is not None
            return True, True  # no fact constrains this atom
        # A contradiction with known facts is allowed: it leads to a leaf without values.
        if self.grown or self.system is None:
            work(PARTS_A_STEP * len(self.taken))
        if self.system is None:
            self.system = self.start.copy()
            self._learn(self.system)
        self.grown = False
        if_equal, unless = self.system.copy(), self.system.copy()
        if not if_equal.assume(question.kind, question.size):
            return False, False
        other = negation(question)
        if not unless.assume(other.kind, other.size):
            return True, False
        self.system, self.grown = None if self.behind else if_equal, True
        return True, True

    def _learn(self, system: System) -> None:
        """Assumes every answer so far."""
        self.behind = False
        for question, yes, fork in self.taken:
            if fork:
                literal = question if yes else negation(question)
                system.assume(literal.kind, literal.size)


#: Answers to questions in order, each with whether the other answer was possible.
Script: TypeAlias = tuple[tuple[bool, bool], ...]


def conjunction(facts: Condition) -> System:
    """The clauses of a condition that a System can hold."""
    system = System()
    for clause in facts.clauses:
        if clause.kind in ("==", "!=", ">="):
            system.assume(clause.kind, clause.size)
    return system


@dataclass(frozen=True, slots=True)
class Way(Generic[T]):
    """One way through a function that asks.

    Attributes:
        path: the answers it needs.
        required: the negation of what it forbids.
        outcome: its result, or the Misfit that it raises.
    """

    path: Condition
    required: Condition
    outcome: T | Misfit


def explore(run: Callable[[Asker], T], facts: Condition) -> Iterator[Way[T]]:
    """Every way through `run`.

    Raises:
        Misfit: there are more than MAX_LEAVES.
    """
    waiting: list[Script] = [()]
    system = conjunction(facts)
    touched = frozenset(
        atom for size in facts.sizes() for monomial, _ in size.terms for atom in monomial
    )
    for _ in range(MAX_LEAVES):
        if not waiting:
            return
        script = waiting.pop()
        asker = Forks(system, touched, script)
        result: T | Misfit
        try:
            result = run(asker)
        except Misfit as misfit:
            result = misfit
        answers = tuple((yes, fork) for _, yes, fork in asker.taken)
        waiting += [
            (*answers[:k], (False, True))
            for k in range(len(answers) - 1, len(script) - 1, -1)
            if answers[k][1]
        ]
        yield Way(asker.path, all_of(asker.required), result)
    raise Misfit(Reason.UNKNOWN_SIZE, f"more than {MAX_LEAVES} cases; give some sizes as numbers")
