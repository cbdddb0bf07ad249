"""Functions that a higher module attaches and a lower module calls.

A room imports only from rooms below it. Where it has to call one above, it calls a hook.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class Hook(Generic[P, R]):
    """A function that another module attaches.

    >>> double = Hook[[int], int]()
    >>> double.attach(lambda number: 2 * number)
    >>> double(21)
    42
    """

    __slots__ = ("_function",)

    def attach(self, function: Callable[P, R]) -> None:
        """Sets the function that later calls run."""
        self._function = function

    def __call__(self, *args: P.args, **options: P.kwargs) -> R:
        """Calls the attached function."""
        return self._function(*args, **options)
