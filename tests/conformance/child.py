"""A child process that may die: asks it question after question, and starts it again."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any

from compound_worker import receive, send

WORKER = Path(__file__).with_name("compound_worker.py")
#: A question takes milliseconds; an engine that reads past its weights may never come back.
SECONDS = 60.0


class Child:
    """One engine in a process of its own, given up after SECONDS. Use as a context manager.

    ZEROSTRIDE_PYTHON_PADDLE (and so on) names the interpreter of an engine that needs its own.
    """

    def __init__(self, engine: str) -> None:
        self.engine = engine
        self.missing = ""
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Child:
        self._start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()

    def ask(self, question: dict[str, Any]) -> tuple[str, Any]:
        """("result", array), ("refused", line), ("absent", op) or ("crashed", exit status)."""
        if self._process is None:
            self._start()
        process = self._process
        assert process is not None
        assert process.stdout is not None
        try:
            send(process.stdin, question)
            if not select.select([process.stdout], [], [], SECONDS)[0]:
                process.kill()
                return "crashed", self._stop()
            answer: tuple[str, Any] = receive(process.stdout)
        except (EOFError, BrokenPipeError):
            return "crashed", self._stop()
        return answer

    def _start(self) -> None:
        python = os.environ.get(f"ZEROSTRIDE_PYTHON_{self.engine.upper()}", sys.executable)
        self._process = subprocess.Popen(
            [python, str(WORKER), self.engine],
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
