"""Arrays that a traced function takes from an enclosing scope, and their present contents.

Plain data may be captured: arrays in this processor's memory that are not differentiated, traced by
another library, lazy or named. Each call reads the object itself, so it sees a tensor whose memory
was exchanged, or a list that was written to. Other arrays have to be operands, where their library
computes them; they are refused at the user's line.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...compute.foreign import (
    OPERAND,
    NotPlain,
    dispatch,
    has_own_arithmetic,
    is_foreign,
    library_of,
)
from ...compute.semantics import WEAK
from ...errors import BroadcastError, Reason, TraceError
from .operands import check_elementwise
from .source import called, current_place


@dataclass(frozen=True, slots=True, eq=False)
class Captured:
    """An array from an enclosing scope.

    Attributes:
        given: the object: an array, or an object that NumPy converts to one.
        name: its name in the function, or "".
        place: the first line that used it.
    """

    given: Any
    name: str
    place: str

    @property
    def is_steady(self) -> bool:
        """Whether it is a NumPy array, which the engine can read in each call."""
        return type(self.given) is np.ndarray

    def read(self) -> Any:
        """Its present contents: an array; a Python number if its library treats it as one.

        Raises:
            TraceError: it is not plain data, or no longer.
            BroadcastError: a list that is not an array.
        """
        if type(self.given) is np.ndarray:
            return self.given
        try:
            return _data_of(self.given)
        except NotPlain as error:
            raise TraceError(
                f"{self} is taken from outside of the fused function, and {error.reason}",
                self.place,
                error.hint,
            ) from None
        except ValueError as error:
            raise BroadcastError(
                f"{self} is taken from outside of the fused function, and is no array: {error}",
                reason=Reason.BAD_EXTENT,
                place=self.place,
            ) from None

    def settled(self) -> Captured:
        """This, as a NumPy array if nothing else can change its contents any more."""
        if self.is_steady or not _is_settled(self):
            return self
        return Captured(self.read(), self.name, self.place)

    def __str__(self) -> str:
        library, name = library_of(self.given), type(self.given).__name__
        what = name if library == "builtins" else f"{name} of {library}"
        article = "an" if what[0] in "AEIOaeio" else "a"
        return f"{self.name} ({what})" if self.name else f"{article} {what}"


def capture(value: Any) -> Captured:
    """Captures an object that the current line takes from an enclosing scope."""
    check_elementwise(value)
    return Captured(value, called(value), str(current_place()))


def arrays_of(captured: Sequence[Captured]) -> tuple[Any, ...]:
    """The present contents of captured arrays."""
    return tuple([array.read() for array in captured])


def _is_settled(captured: Captured) -> bool:
    """Whether its contents cannot change: numbers, and tuples and lists of numbers that the
    function created itself."""
    kind = type(captured.given)
    if kind is tuple or (kind is list and _references(captured) <= _UNSHARED):
        return all(map(_is_number, captured.given))
    return _is_number(captured.given)


def _is_number(value: Any) -> bool:
    return type(value) in WEAK or isinstance(value, np.generic)


def _references(captured: Captured) -> int:
    return sys.getrefcount(captured.given)


#: The reference count of an object that nothing else refers to.
_UNSHARED = _references(Captured([0], "", ""))


def _data_of(value: Any) -> Any:
    """NumPy's array of an object's memory.

    Raises:
        NotPlain: it is not plain data.
        ValueError: a list whose rows differ in length.
    """
    if isinstance(value, np.ma.MaskedArray):
        raise NotPlain("is masked: its mask would be lost", "take its data, or fill it first")
    if has_own_arithmetic(value):
        raise NotPlain(
            "its arithmetic, as that of units, would be lost", "take np.asarray(x) of it"
        )
    if is_foreign(value):
        return dispatch().data_of(value)
    if isinstance(value, list | tuple) and any(map(is_foreign, value)):
        return np.asarray([_part(part) for part in value])
    if not isinstance(value, np.ndarray | np.generic) and hasattr(type(value), "__array__"):
        return _without_copy(value)
    return np.asarray(value)


def _part(value: Any) -> Any:
    try:
        return _data_of(value)
    except NotPlain as error:
        raise NotPlain(f"holds what {error.reason}", error.hint) from None


def _without_copy(value: Any) -> NDArray[Any]:
    """The array of an object with `__array__`, if it needs no copy."""
    try:
        return np.asarray(value.__array__(copy=False))
    except (TypeError, ValueError):
        raise NotPlain(
            "is no array in memory: it would be read as a whole in each call",
            f"{OPERAND}; or read it once, before: np.asarray(x)",
        ) from None
