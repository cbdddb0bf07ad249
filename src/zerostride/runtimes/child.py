"""The child process: loads one engine and carries out tasks until its input ends.

Run as ``python -m zerostride.runtimes.child ENGINE [MEMORY]``. Frames go to the standard output;
what the engine itself prints is discarded.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from ..system import frames
from ..system.limits import limit_memory
from .runners import Absent, Refused, Runner, load_runner
from .task import Array, Form, Task, pack, unpack

#: Exceptions from bugs of our runners; engines refuse by other exceptions.
_FAULTS = (AttributeError, ImportError, KeyError, NameError, StopIteration)


def main(engine: str, memory: str = "") -> int:
    """Carries out tasks from the standard input; returns the exit status.

    Args:
        engine: its name.
        memory: the most bytes beyond those in use once the engine is loaded; "": any number.
    """
    questions, answers = os.dup(0), frames.take_output(errors=False)
    try:
        runner = load_runner(engine)
    except ImportError as error:
        frames.send(answers, {"missing": str(error)})
        return 0
    if memory:
        limit_memory(int(memory))
    frames.send(answers, {"version": runner.version, "most_axes": _MOST_AXES})
    while True:
        try:
            header, payload = frames.receive(questions)
            task = Task.from_dict(header["task"])
            frames.send(answers, *answer(engine, runner, task, (header["arrays"], payload)))
        except frames.Closed:
            return 0


#: The most axes of an array, which NumPy does not tell in the same way in all releases.
_MOST_AXES = 32 if np.__version__.startswith("1.") else 64
#: Arrays as `pack` writes them.
Packed: TypeAlias = tuple[Sequence[Mapping[str, Any]], bytes]


def answer(engine: str, runner: Runner, task: Task, packed: Packed) -> tuple[dict[str, Any], bytes]:
    """The engine's answer to a task on packed operands, as a frame."""
    try:
        arrays = _operands(engine, packed)
        results, body = pack([np.asarray(result) for result in runner.run(task, arrays)])
        if len(body) > frames.MOST_BYTES:
            raise Absent(f"{len(body)} bytes of results are too many to send")
    except Exception as error:  # noqa: BLE001 - whatever an engine raises is an answer
        return {"arrays": [], **_without_result(error, runner, task)}, b""
    return {"answer": "result", "message": "", "arrays": results}, body


def _operands(engine: str, packed: Packed) -> Sequence[Array]:
    """The arrays of a message. NumPy 1 has no arrays of more than 32 axes, NumPy 2 none of 65."""
    try:
        return unpack(*packed)
    except ValueError as error:
        if engine == "numpy":
            raise Refused(str(error)) from error
        raise Absent(f"NumPy {np.__version__} makes no such operand: {error}") from error


def _without_result(error: Exception, runner: Runner, task: Task) -> dict[str, str]:
    message = _short(type(error).__name__, runner.words(error))
    if isinstance(error, Absent):
        return {"answer": "absent", "message": str(error)}
    # Of a call by name all refusals are known; of a model's computation they are not.
    if not isinstance(error, (Refused, *runner.refusals)) and (
        task.form is Form.CALL or isinstance(error, _FAULTS)
    ):
        return {"answer": "broken", "message": f"the runner failed: {message}"}
    return {"answer": "refused", "message": message}


#: Characters of a long message that are kept, from its beginning and from its end.
_BEGINNING, _END = 80, 115


def _short(kind: str, words: str) -> str:
    if len(words) > _BEGINNING + _END + 5:
        words = f"{words[:_BEGINNING]} ... {words[-_END:]}"
    return f"{kind}: {words}" if words else kind


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
