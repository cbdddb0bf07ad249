"""Floor 0: how much work questions about sizes may take, counted in steps and not in seconds.

A question has a budget of its own, so its answer depends on nothing that was asked before. A whole
command has an allowance: a question is charged when the command asks it first, whether or not the
answer is kept from another command. The same command gives the same answers so, in any process.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from .system import MAX_STEPS, GivenUpError

#: Steps of a question that is asked when the allowance of its command is used up.
POOR_STEPS = 100


class _Allowance:
    """Steps that all questions of one command may take together, and what it asked already."""

    __slots__ = ("asked", "left")

    def __init__(self, steps: int) -> None:
        self.left = steps
        self.asked: set[Hashable] = set()


_allowance: ContextVar[_Allowance | None] = ContextVar("allowance", default=None)


@contextmanager
def allowance(steps: int) -> Iterator[None]:
    """Bounds what all questions inside may take: later ones are then left unknown sooner.

    A model with thousands of conditions that all hang together ends in seconds so, not in hours.
    """
    token = _allowance.set(_Allowance(steps))
    try:
        yield
    finally:
        _allowance.reset(token)


def used_up() -> bool:
    """Whether the allowance of the command around is used up."""
    shared = _allowance.get()
    return shared is not None and shared.left <= 0


def charge(steps: int, question: Hashable = None) -> None:
    """Takes steps from the allowance; those of a question that has a name once."""
    shared = _allowance.get()
    if shared is None:
        return
    if question is not None:
        if question in shared.asked:
            return
        shared.asked.add(question)
    shared.left -= steps


class Budget:
    """Counts the steps of one question.

    Attributes:
        spent: steps taken so far.
        limit: steps that it may take.
    """

    __slots__ = ("limit", "spent")

    def __init__(self, limit: int | None = None) -> None:
        self.spent = 0
        self.limit = (POOR_STEPS if used_up() else MAX_STEPS) if limit is None else limit

    def spend(self, steps: int) -> None:
        """Counts steps; GivenUpError where they are too many."""
        self.spent += steps
        if self.spent > self.limit:
            raise GivenUpError


__all__ = ["POOR_STEPS", "Budget", "allowance", "charge", "used_up"]
