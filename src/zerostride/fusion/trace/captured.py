"""Arrays that a traced function takes from elsewhere: which it may take, and what they hold now.

Taken is plain data: what lies in this processor's memory, and is not to be differentiated, traced
by another library, lazy or named. It is read in each call from the object itself, so that a tensor
whose memory was exchanged, or a list that was written to, is seen as it is then. Everything else
belongs among the operands, where its library is known, and is refused at the user's line.
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
    """An array from elsewhere.

    Attributes:
        given: what the function met: an array, or what NumPy makes one of.
        name: what the function calls it; "" where that is not known.
        place: the line that met it first.
    """

    given: Any
    name: str
    place: str

    @property
    def is_steady(self) -> bool:
        """Whether it is an array of NumPy's, which the engine can read in each call."""
        return type(self.given) is np.ndarray

    def read(self) -> Any:
        """What it holds now: an array; a Python number where the library has it as one.

        Raises:
            TraceError: it is no plain data, or not any more.
            BroadcastError: a list that is no array.
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
        """The same, as an array of NumPy's where nobody is left who could change what it holds."""
        if self.is_steady or not _is_settled(self):
            return self
        return Captured(self.read(), self.name, self.place)

    def __str__(self) -> str:
        library, name = library_of(self.given), type(self.given).__name__
        what = name if library == "builtins" else f"{name} of {library}"
        article = "an" if what[0] in "AEIOaeio" else "a"
        return f"{self.name} ({what})" if self.name else f"{article} {what}"


def capture(value: Any) -> Captured:
    """What the line that is being executed takes from elsewhere."""
    check_elementwise(value)
    return Captured(value, called(value), str(current_place()))


def arrays_of(captured: Sequence[Captured]) -> tuple[Any, ...]:
    """What captured arrays hold now."""
    return tuple([array.read() for array in captured])


def _is_settled(captured: Captured) -> bool:
    """Whether what it holds cannot change: numbers, and of such tuples and lists that the function
    made itself."""
    kind = type(captured.given)
    if kind is tuple or (kind is list and _references(captured) <= _UNSHARED):
        return all(map(_is_number, captured.given))
    return _is_number(captured.given)


def _is_number(value: Any) -> bool:
    return type(value) in WEAK or isinstance(value, np.generic)


def _references(captured: Captured) -> int:
    return sys.getrefcount(captured.given)


#: As many as there are to an object that nothing else refers to.
_UNSHARED = _references(Captured([0], "", ""))


def _data_of(value: Any) -> Any:
    """NumPy's array of the memory that an object has.

    Raises:
        NotPlain: it is no plain data.
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
    """The array of an object that says it is like one, if that is there without being made."""
    try:
        return np.asarray(value.__array__(copy=False))
    except (TypeError, ValueError):
        raise NotPlain(
            "is no array in memory: it would be read as a whole in each call",
            f"{OPERAND}; or read it once, before: np.asarray(x)",
        ) from None
