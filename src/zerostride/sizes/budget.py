"""How much work questions about sizes may take, counted in steps and not in seconds.

A question has a budget of its own, so its answer depends on nothing that was asked before. A whole
command has an allowance: a question is charged when the command asks it first, whether or not the
answer is kept from another command. The same command gives the same answers so, in any process.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from .system import MAX_STEPS, GivenUpError

#: Steps of a question that is asked when the allowance of its command is used up.
POOR_STEPS = 100
#: The part of an allowance that such questions may take; then none is looked at any more.
OVERDRAFT = 8


#: Steps of one command, 5 to 20 microseconds each; models in use take up to 40,000.
COMMAND_STEPS = 250_000
#: Steps that writing a report may take: it asks for words what was decided already.
WRITING_STEPS = 50_000
#: Answers that are kept for the process.
KEPT = 1 << 12

#: Conditions, or sizes, that take about one step to put together or to compare.
PARTS_A_STEP = 4

Answering = TypeVar("Answering", bound=Callable[..., Any])


class SpentError(ArithmeticError):
    """The work that one command may take is used up."""

    def __init__(self) -> None:
        super().__init__("the work that one command may take is used up")


class _Allowance:
    """Steps that all questions of one command may take together, and what it asked already."""

    __slots__ = ("asked", "kept", "least", "left")

    def __init__(self, steps: int) -> None:
        self.left = steps
        self.least = -(steps // OVERDRAFT)
        self.asked: set[Hashable] = set()
        self.kept: dict[Hashable, Any] = {}


_allowance: ContextVar[_Allowance | None] = ContextVar("allowance", default=None)


@contextmanager
def allowance(steps: int = COMMAND_STEPS) -> Iterator[None]:
    """Bounds what all questions inside may take: later ones are then left unknown sooner.

    A model with thousands of conditions that all hang together ends in seconds so, not in hours.
    Inside another allowance this one adds nothing: a command has one.
    """
    if _allowance.get() is not None:
        yield
        return
    token = _allowance.set(_Allowance(steps))
    try:
        yield
    finally:
        _allowance.reset(token)


def used_up() -> bool:
    """Whether the allowance of the command around is used up."""
    shared = _allowance.get()
    return shared is not None and shared.left <= 0


def overdrawn() -> bool:
    """Whether even short questions have used up what they may."""
    shared = _allowance.get()
    return shared is not None and shared.left <= shared.least


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


def work(parts: int) -> None:
    """Counts what is put together or compared beside the questions to the solver.

    Raises:
        SpentError: the command has no allowance left, not even for short questions.
    """
    shared = _allowance.get()
    if shared is not None:
        if shared.left <= shared.least:
            raise SpentError
        shared.left -= 1 + parts // PARTS_A_STEP


class Same:
    """A value as a key: equal to itself alone, and never compared part by part."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def kept(function: Answering) -> Answering:
    """Keeps the answers of a function that asks questions.

    What a command may find out depends on its allowance: its answers are kept for itself alone.
    """
    for_all = functools.lru_cache(KEPT)(function)

    @functools.wraps(function)
    def answer(*arguments: Hashable) -> Any:
        shared = _allowance.get()
        if shared is None:
            return for_all(*arguments)
        key = (function, arguments)
        if key not in shared.kept:
            shared.kept[key] = function(*arguments)
        return shared.kept[key]

    return answer  # type: ignore[return-value]


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


__all__ = [
    "COMMAND_STEPS",
    "PARTS_A_STEP",
    "POOR_STEPS",
    "WRITING_STEPS",
    "Budget",
    "Same",
    "SpentError",
    "allowance",
    "charge",
    "kept",
    "overdrawn",
    "used_up",
    "work",
]
