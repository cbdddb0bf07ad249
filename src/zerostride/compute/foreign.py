"""Whether an operand is another library's array, decided by its type and without an import.

The native engine takes calls with NumPy's arrays, and types in `PLAIN` need no test. Foreign
operands go to `zerostride.arrays.dispatch`, which is imported at the first one.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ..core.hooks import find_dispatch, find_library

if TYPE_CHECKING:
    from types import ModuleType

#: The fix for an array that a fused function may not take from an enclosing scope.
OPERAND = "make it an operand: a parameter of the function, passed in the call"


class NotPlain(Exception):  # noqa: N818 - caught inside, never seen by a user
    """An array that a fused function may not take from an enclosing scope.

    Attributes:
        reason: why, as the end of a sentence about it: "requires a gradient".
        hint: what to do.
    """

    def __init__(self, reason: str, hint: str = OPERAND) -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint


#: Types that NumPy takes, which are never foreign.
PLAIN = frozenset({np.ndarray, bool, int, float, complex, list, tuple, str, type(None)})


def is_foreign(operand: Any) -> bool:
    """Whether an operand is an array of a library that `zerostride.arrays` has an adapter for.

    >>> is_foreign(np.zeros(3)), is_foreign([1, 2])
    (False, False)
    """
    kind = type(operand)
    return kind not in PLAIN and _is_foreign(kind)


def any_foreign(operands: Iterable[Any]) -> bool:
    """Whether an operand is foreign."""
    for operand in operands:  # a generator would cost more than the test
        kind = type(operand)
        if kind not in PLAIN and _is_foreign(kind):
            return True
    return False


def _is_foreign(kind: type) -> bool:
    return find_library(kind) is not None


def library_of(operand: Any) -> str:
    """What messages call the library of an array.

    >>> library_of(np.zeros(3))
    'numpy'
    """
    row = find_library(type(operand))
    return type(operand).__module__.partition(".")[0] if row is None else str(row.name)


def has_own_arithmetic(value: Any) -> bool:
    """Whether a value is an array of NumPy's kind that gives ufuncs another meaning.

    >>> has_own_arithmetic(np.zeros(3)), has_own_arithmetic(np.zeros(3).view(np.recarray))
    (False, False)
    """
    own = type(value).__array_ufunc__ if isinstance(value, np.ndarray) else None
    return own is not None and own is not np.ndarray.__array_ufunc__


@functools.cache
def dispatch() -> ModuleType:
    """The module that hands operands to their library's adapter."""
    return cast("ModuleType", find_dispatch())
