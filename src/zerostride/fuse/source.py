"""Where in a user's function something was written, and refusals that show it."""

from __future__ import annotations

import inspect
import linecache
import os
import sys
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from ..errors import TraceError

#: Folders whose frames are not the user's.
_OURS = tuple(
    os.path.dirname(os.path.abspath(path)) + os.sep
    for path in (os.path.dirname(__file__), np.__file__)
)  # zerostride's folder, of which this file's is one

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
    filename, line = frame.f_code.co_filename, frame.f_lineno
    text = linecache.getline(filename, line, frame.f_globals).strip()
    return Place(filename, line, frame.f_code.co_name, text)


def place_of(function: Any) -> str:
    """Where a function begins, as a place is shown; "" where that is not known."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None:
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
