"""Runs a package's C++ in a child process, for answers about a file that may end the process.

Packages of engines may read past the end of a malformed file, print messages, hang or take all
memory. A child runs under limits of time and memory, and its answer has a file of its own, since
packages print to the standard streams. Its output before it ended is used.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from typing import NamedTuple

from ...sizes import MAX_RANK
from ...system import children
from ...system.child import Child, Ending

#: Most bytes of an answer about a hundred thousand tensors.
MAX_ANSWER = 1 << 26
#: Engines do not compute with larger sizes.
MAX_SIZE = 2**31 - 1
#: Most characters of a child's last message.
_SHOWN = 160
#: Keeps the output for the answer; what packages print is discarded.
_PROLOGUE = """
import os
answer = os.fdopen(os.dup(1), "wb")
os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
"""


class ChildAnswer(NamedTuple):
    """A child's output, and its failure; None if it succeeded."""

    output: bytes
    failure: str | None


def ask(
    source: str,
    *words: str,
    seconds: float,
    question: bytes = b"",
    most: int = MAX_ANSWER,
    environment: Mapping[str, str] | None = None,
    python: str | None = None,
    shown: int = _SHOWN,
) -> ChildAnswer:
    """The answer of Python source in a child.

    Args:
        source: it writes bytes to `answer`; see :func:`~zerostride.system.children.source`.
        words: its arguments, in `sys.argv[1:]`.
        seconds: the longest time.
        question: its standard input.
        most: the most bytes of the answer.
        environment: the child's environment variables; None: this process's.
        python: the interpreter; None: this one.
        shown: most characters of its last message.
    """
    with tempfile.TemporaryFile() as output:
        try:
            command = children.source(_PROLOGUE + source, *words, python=python)
            child = Child(command, environment, output)
        except (OSError, ValueError) as error:
            return ChildAnswer(b"", f"it could not be started apart: {error}")
        in_time = child.finish(question, seconds)
        ending = child.end()
        output.seek(0)
        late = f"it took longer than {seconds:g} s"
        return ChildAnswer(output.read(most), _failure(ending, shown) if in_time else late)


def _failure(ending: Ending, shown: int) -> str | None:
    if not ending.status:
        return None
    if ending.signal is not None:
        return f"it was ended by {ending.signal}"
    return ending.last_line[:shown] or f"it ended with status {ending.status}"


def shapes_in(output: bytes) -> dict[str, tuple[int, ...]]:
    """The shapes in an answer of one JSON line per tensor: its name and sizes, or null.

    Lines that were cut off, or hold no shape, are skipped.
    """
    shapes: dict[str, tuple[int, ...]] = {}
    for line in output.decode("utf-8", "replace").splitlines():
        try:
            name, shape = json.loads(line)
        except (ValueError, TypeError):
            continue
        if isinstance(name, str) and _is_shape(shape):
            shapes[name] = tuple(shape)
    return shapes


def _is_shape(shape: object) -> bool:
    return (
        isinstance(shape, list)
        and len(shape) <= MAX_RANK
        and all(type(size) is int and 0 <= size <= MAX_SIZE for size in shape)
    )
