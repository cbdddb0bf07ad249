"""Calls of functions that lie in a higher module, which puts them there.

A module imports from modules below it alone. Where it has to call upwards, it calls a hook.
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
        """Calls go to this function from now on."""
        self._function = function

    def __call__(self, *args: P.args, **options: P.kwargs) -> R:
        """Calls the attached function."""
        return self._function(*args, **options)
