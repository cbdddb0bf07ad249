"""Where in a user's function something was written, and refusals that show it."""

from __future__ import annotations

import dis
import inspect
import linecache
import os
import sys
from dataclasses import dataclass
from types import FrameType, TracebackType
from typing import Any, NoReturn

import numpy as np

from ..errors import BroadcastError, TraceError

#: Folders whose frames are not the user's.
_OURS = tuple(
    os.path.dirname(os.path.abspath(path)) + os.sep
    for path in (os.path.dirname(__file__), np.__file__)
)  # zerostride's folder, of which this file's is one

#: Errors whose message is what they were made of.
_PLAIN = (TypeError, ValueError, IndexError, AttributeError, OverflowError, ZeroDivisionError)
#: What the user's own `raise` is.
_RAISES = frozenset({dis.opmap["RAISE_VARARGS"], dis.opmap["RERAISE"]})
#: Characters of a line that are shown.
_LONGEST = 160


@dataclass(frozen=True, slots=True)
class Place:
    """A line of source.

    Attributes:
        filename: the file.
        line: its number in the file, from 1.
        function: the function it stands in.
        text: the line itself; "" where the source is not to be had.
    """

    filename: str
    line: int
    function: str
    text: str

    def __str__(self) -> str:
        where = f"{self.filename}:{self.line} in {self.function}"
        text = self.text if len(self.text) <= _LONGEST else self.text[:_LONGEST] + " …"
        return f"{where}\n    {text}" if text else where


def current_place() -> Place:
    """The line that is being executed, of the innermost function that is not zerostride's or
    NumPy's.

    >>> current_place().line > 0
    True
    """
    frame = sys._getframe(1)
    while frame.f_back is not None and _is_ours(frame.f_code.co_filename):
        frame = frame.f_back
    return _place(frame, frame.f_lineno)


def _place(frame: FrameType, line: int) -> Place:
    filename = frame.f_code.co_filename
    text = linecache.getline(filename, line, frame.f_globals).strip()
    return Place(filename, line, frame.f_code.co_name, text)


def tell_place(error: Exception, function: Any) -> None:
    """Adds the user's line to what an error says, unless the user raised it.

    Args:
        error: one that is being handled; its traceback begins with a frame of zerostride's.
        function: what is traced; where it begins is told of errors of what it returned.
    """
    last = _last_of_the_user(error.__traceback__)
    if last is None:
        place = place_of(function)
    elif last.tb_next is None and last.tb_frame.f_code.co_code[last.tb_lasti] in _RAISES:
        return
    else:
        place = str(_place(last.tb_frame, last.tb_lineno))
    if not place:
        return
    if isinstance(error, TraceError | BroadcastError):
        error.place = error.place or place
    elif type(error) in _PLAIN and len(error.args) == 1 and isinstance(error.args[0], str):
        if place not in error.args[0]:
            error.args = ("\n  ".join([error.args[0], place]),)
    elif place not in getattr(error, "__notes__", ()):
        error.add_note(place)


def _last_of_the_user(traceback: TracebackType | None) -> TracebackType | None:
    found = None
    while traceback is not None:
        if not _is_ours(traceback.tb_frame.f_code.co_filename):
            found = traceback
        traceback = traceback.tb_next
    return found


def place_of(function: Any) -> str:
    """Where a function begins, as a place is shown; "" where that is not known, or is here."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None or _is_ours(code.co_filename):
        return ""
    text = linecache.getline(code.co_filename, code.co_firstlineno).strip()
    return str(Place(code.co_filename, code.co_firstlineno, code.co_name, text))


def _is_ours(filename: str) -> bool:
    return os.path.abspath(filename).startswith(_OURS)


def refuse(detail: str, hint: str) -> NoReturn:
    """Raises the TraceError of the user's current line."""
    raise TraceError(detail, str(current_place()), hint)


def no_out(out: Any) -> None:
    """Refuses an `out` within a traced function."""
    if out is not None:
        refuse(
            "out= in a fused function would write before all is computed",
            "leave it out, and give out= to the fused call",
        )
