"""Limits for the work on questions about sizes, in steps instead of seconds.

A question has its own budget, so its answer does not depend on earlier questions. A whole command
has an allowance. It is charged when the command first asks a question, even if the answer was kept
from another command. So the same command gives the same answers in any process. Each condition
that is made is charged, too: all questions about open sizes make some.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

#: Steps before a question is given up as unknown. A pair of rank-4 shapes with eight different
#: symbols takes some hundred; the limit is reached in a fraction of a second.
MAX_STEPS = 20_000
#: Steps of a question that is asked after the allowance of its command is used up.
POOR_STEPS = 100
#: The part of an allowance that such questions may take; after it they stay unknown.
OVERDRAFT = 8


#: Steps of one command, 5 to 20 microseconds each. Models in use take up to 52,000.
COMMAND_STEPS = 250_000
#: The part of them for the sizes of a model's tensors; the other half judges its nodes.
FLOW_STEPS = COMMAND_STEPS // 2
#: Steps that writing a report may take: it puts decided conditions into words.
WRITING_STEPS = 50_000
#: Answers that are kept for the process.
MOST_ANSWERS = 1 << 12

#: Conditions or sizes that can be combined or compared in about one step.
PARTS_A_STEP = 4

Answering = TypeVar("Answering", bound=Callable[..., Any])


class GivenUpError(Exception):
    """The budget of one question is used up."""


class SpentError(ArithmeticError):
    """The work that one command may take is used up."""

    def __init__(self) -> None:
        super().__init__("the work that one command may take is used up")


class _Allowance:
    """Steps that all questions of one command may take together, and the questions asked."""

    __slots__ = ("answers", "asked", "least", "left")

    def __init__(self, steps: int) -> None:
        self.left = steps
        self.least = -(steps // OVERDRAFT)
        self.asked: set[Hashable] = set()
        self.answers: dict[Hashable, Any] = {}


_allowance: ContextVar[_Allowance | None] = ContextVar("allowance", default=None)


@contextmanager
def allowance(steps: int = COMMAND_STEPS) -> Iterator[None]:
    """Bounds the steps of all questions inside; later questions are given up sooner.

    So a model with thousands of dependent conditions takes seconds instead of hours. An allowance
    inside another one is a part of it: what comes afterwards keeps the rest.
    """
    around = _allowance.get()
    inside = _Allowance(steps if around is None else min(steps, around.left))
    if around is not None:
        inside.asked = around.asked
    token = _allowance.set(inside)
    before = inside.left
    try:
        yield
    finally:
        _allowance.reset(token)
        if around is not None:
            around.left -= before - inside.left


def used_up() -> bool:
    """Whether the allowance of the command around is used up."""
    shared = _allowance.get()
    return shared is not None and shared.left <= 0


def overdrawn() -> bool:
    """Whether even the short questions have used up their part."""
    shared = _allowance.get()
    return shared is not None and shared.left <= shared.least


def process_cache(size: int, *, typed: bool = False) -> Callable[[Answering], Answering]:
    """Caches answers for the process; no command is charged for the work on them.

    What is in the cache depends on earlier commands; what a command is charged must not.
    """

    def decorate(function: Answering) -> Answering:
        @functools.lru_cache(size, typed=typed)
        @functools.wraps(function)
        def answer(*arguments: Hashable, **options: Hashable) -> Any:
            token = _allowance.set(None)
            try:
                return function(*arguments, **options)
            finally:
                _allowance.reset(token)

        return answer  # type: ignore[return-value]

    return decorate


def charge(steps: int, question: Hashable = None) -> None:
    """Takes steps from the allowance. A named question is charged once."""
    shared = _allowance.get()
    if shared is None:
        return
    if question is not None:
        if question in shared.asked:
            return
        shared.asked.add(question)
    shared.left -= steps


def work(parts: int) -> None:
    """Counts the work of combining or comparing conditions, apart from questions to the solver.

    Raises:
        SpentError: the command has no allowance left, not even for short questions.
    """
    shared = _allowance.get()
    if shared is not None:
        if shared.left <= shared.least:
            raise SpentError
        shared.left -= 1 + parts // PARTS_A_STEP


class Same:
    """A value as a key: equal only to itself, and never compared by content."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def answer_cache(function: Answering) -> Answering:
    """Caches the answers of a function that asks the solver.

    The answers depend on the allowance, so a command with an allowance keeps its own.
    """
    for_all = functools.lru_cache(MOST_ANSWERS)(function)

    @functools.wraps(function)
    def answer(*arguments: Hashable) -> Any:
        shared = _allowance.get()
        if shared is None:
            return for_all(*arguments)
        key = (function, arguments)
        if key not in shared.answers:
            shared.answers[key] = function(*arguments)
        return shared.answers[key]

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
        """Counts steps; raises GivenUpError beyond the limit."""
        self.spent += steps
        if self.spent > self.limit:
            raise GivenUpError


__all__ = [
    "COMMAND_STEPS",
    "FLOW_STEPS",
    "MAX_STEPS",
    "PARTS_A_STEP",
    "POOR_STEPS",
    "WRITING_STEPS",
    "Budget",
    "GivenUpError",
    "Same",
    "SpentError",
    "allowance",
    "answer_cache",
    "charge",
    "overdrawn",
    "process_cache",
    "used_up",
    "work",
]
