"""Places in a user's source, and refusals that show them."""

from __future__ import annotations

import dis
import inspect
import linecache
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from types import FrameType, TracebackType
from typing import Any, NoReturn

import numpy as np

from ... import errors
from ...errors import BroadcastError, TraceError

#: Folders of code that is not the user's.
_OURS = tuple(
    os.path.dirname(os.path.abspath(path)) + os.sep for path in (errors.__file__, np.__file__)
)

#: Libraries whose code is not the user's either.
_LIBRARIES = ("torch", "jax", "dask", "xarray", "pandas", "cupy", "array_api_strict", "scipy")
#: Errors whose message is their only argument.
_PLAIN = (TypeError, ValueError, IndexError, AttributeError, OverflowError, ZeroDivisionError)
#: The opcodes of the user's own `raise`.
_RAISES = frozenset({dis.opmap["RAISE_VARARGS"], dis.opmap["RERAISE"]})
#: Where PyTorch's modules keep parameters, buffers and submodules.
_OF_MODULES = ("_parameters", "_buffers", "_modules")
#: The depth to which an object is searched for (`model.layer.weight`), and the most parts of a
#: container that are searched.
_DEEPEST, _MOST = 3, 100
#: Characters of a line that are shown.
_LONGEST = 160


@dataclass(frozen=True, slots=True)
class Place:
    """A line of source.

    Attributes:
        filename: the file.
        line: its number in the file, from 1.
        function: the function it stands in.
        text: the line itself; "" where the source is not available.
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
    """The line that is being executed, of the innermost function that is not zerostride's,
    NumPy's or an array library's.

    >>> current_place().line > 0
    True
    """
    frame = _current_frame()
    return _place(frame, frame.f_lineno)


def _current_frame() -> FrameType:
    frame = sys._getframe(1)
    while frame.f_back is not None and _is_ours(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def called(target: Any) -> str:
    """The name of an object in the function that is being executed, or a path to it from a name.

    >>> weights = {"bias": [1.0]}
    >>> called(weights), called(weights["bias"]), called([1.0])
    ('weights', "weights['bias']", '')
    """
    frame = _current_frame()
    code = frame.f_code
    words = {*code.co_names, *code.co_varnames, *code.co_freevars, *code.co_cellvars}
    variables = {**frame.f_globals, **frame.f_locals}
    ahead = [(name, variables[name]) for name in sorted(words & variables.keys())]
    for _ in range(_DEEPEST):
        for name, value in ahead:
            if value is target:
                return name
        ahead = [
            (name + part, held)
            for name, value in ahead
            for part, held in _parts(value, code.co_names)
        ]
    return ""


def is_written(number: Any) -> bool:
    """Whether a number is written in the function that is being executed: as it is, or by the name
    of a variable that the function does not set."""
    frame = _current_frame()
    code, outer = frame.f_code, frame.f_globals
    if any(type(one) is type(number) and one == number for one in code.co_consts):
        return True
    named = [frame.f_locals.get(name) for name in code.co_freevars]
    return any(one is number for one in (*named, *(outer.get(name) for name in code.co_names)))


def is_of_scope(path: str) -> bool:
    """Whether a path of :func:`called` begins with a name that the function itself does not set."""
    code = _current_frame().f_code
    root = path.partition(".")[0].partition("[")[0]
    return bool(root) and root not in {*code.co_varnames, *code.co_cellvars}


def is_in_place() -> bool:
    """Whether the line that is being executed is at an in-place operator, such as `y += x`."""
    frame = _current_frame()
    here = (
        instruction
        for instruction in dis.get_instructions(frame.f_code)
        if instruction.offset == frame.f_lasti
    )
    return any(
        instruction.opname == "BINARY_OP" and instruction.argrepr.endswith("=")
        for instruction in here
    )


def _parts(value: Any, names: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """An object's parts and how they are written; its attributes are those in `names`."""
    if type(value) is dict:
        yield from ((f"[{key!r}]", item) for key, item in islice(value.items(), _MOST))
    elif type(value) in (list, tuple):
        yield from ((f"[{k}]", item) for k, item in enumerate(islice(value, _MOST)))
    held = getattr(value, "__dict__", {})
    for kept in (held, *(held.get(name) for name in _OF_MODULES)):
        if isinstance(kept, Mapping):
            yield from ((f".{name}", kept[name]) for name in names if name in kept)


def _place(frame: FrameType, line: int) -> Place:
    filename = frame.f_code.co_filename
    text = linecache.getline(filename, line, frame.f_globals).strip()
    return Place(filename, line, frame.f_code.co_name, text)


def tell_place(error: Exception, function: Any) -> None:
    """Adds the user's line to an error's message, unless the user raised it.

    Args:
        error: the error being handled; its traceback begins with a frame of zerostride.
        function: the traced function; errors of its results show the line where it begins.
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
    last = None
    while traceback is not None:
        if not _is_ours(traceback.tb_frame.f_code.co_filename):
            last = traceback
        traceback = traceback.tb_next
    return last


def place_of(function: Any) -> str:
    """The line where a function begins, as a place is shown; "" if unknown or zerostride's own."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None or _is_ours(code.co_filename):
        return ""
    text = linecache.getline(code.co_filename, code.co_firstlineno).strip()
    return str(Place(code.co_filename, code.co_firstlineno, code.co_name, text))


def _is_ours(filename: str) -> bool:
    """Whether a file is zerostride's, NumPy's, or of a library whose arrays meet values."""
    path = os.path.abspath(filename)
    return path.startswith(_OURS) or path.startswith(tuple(_folders()))


def _folders() -> Iterator[str]:
    for name in _LIBRARIES:
        file = getattr(sys.modules.get(name), "__file__", None)
        if file:
            yield os.path.dirname(os.path.abspath(file)) + os.sep


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
