"""A child process that answers questions and is started again after a crash; both ends.

Standard library alone: an engine's own interpreter imports this, too.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import struct
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import Self


def send(stream: Any, message: Any) -> None:
    data = pickle.dumps(message, protocol=4)
    stream.write(struct.pack("<q", len(data)) + data)
    stream.flush()


def receive(stream: Any) -> Any:
    """The next message; EOFError where the other side is gone."""
    head = stream.read(8)
    if len(head) < 8:
        raise EOFError
    data = stream.read(struct.unpack("<q", head)[0])
    return pickle.loads(data)


class Absent(Exception):  # noqa: N818 - an answer
    """The engine has no such op, or the runner does not know it."""


def serve(load: Callable[[], Callable[[Any], tuple[str, Any]]]) -> None:
    """The child's life: what `load` gives answers questions until nobody asks any more."""
    answers = os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)  # engines print; answers have a channel of their own
    os.dup2(nowhere, 2)
    try:
        answer = load()
    except ImportError as error:
        send(answers, ("missing", str(error)))
        return
    send(answers, ("ready", ""))
    while True:
        try:
            question = receive(sys.stdin.buffer)
        except EOFError:
            return
        try:
            send(answers, answer(question))
        except Absent as error:
            send(answers, ("absent", str(error)))
        except Exception as error:  # noqa: BLE001 - whatever an engine raises is how it refuses
            send(answers, ("refused", f"{type(error).__name__}: {error}"[:300]))


class Asked:
    """The other end: starts the child, again after it died. Use as a context manager.

    Args:
        command: what starts it.
        seconds: after these it is given up: a question takes milliseconds, and an engine that
            reads past its weights may never come back.
    """

    def __init__(self, command: Sequence[str], seconds: float) -> None:
        self.command = command
        self.seconds = seconds
        self.missing = ""
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self._start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def answer(self, question: Any) -> tuple[str, Any]:
        """("result", ...), ("refused", line), ("absent", op) or ("crashed", exit status)."""
        if self._process is None:
            self._start()
        process = self._process
        assert process is not None
        assert process.stdout is not None
        try:
            send(process.stdin, question)
            if not select.select([process.stdout], [], [], self.seconds)[0]:
                process.kill()
                return "crashed", self._stop()
            answer: tuple[str, Any] = receive(process.stdout)
        except (EOFError, BrokenPipeError):
            return "crashed", self._stop()
        return answer

    def _start(self) -> None:
        self._process = subprocess.Popen(
            self.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={"OMP_NUM_THREADS": "1", **os.environ},
        )
        try:
            word, said = receive(self._process.stdout)
        except EOFError:
            word, said = "missing", f"the process ended with status {self._stop()}"
        if word == "missing":
            self.missing = str(said) or "not installed"

    def _stop(self) -> int:
        process, self._process = self._process, None
        if process is None:
            return 0
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(BrokenPipeError):  # it died with a question half read
            process.stdin.close()
        try:
            code = process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
        process.stdout.close()
        return code
