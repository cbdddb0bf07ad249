"""Runs an engine in a child process, and continues with the next case if the process ends.

One persistent worker per engine answers the cases. If it ends or takes too long, the outcome is
`crashed`, and a new worker continues. A worker may be another interpreter, for engines that need
their own environment.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType

from ...system import children
from . import wire
from .case import Answer, BadInput, Case, EngineOutcome

#: Importing the largest engine takes seconds; on a busy machine many.
START_SECONDS = 240.0
#: A case takes milliseconds; one that takes this long hangs.
CASE_SECONDS = 20.0
#: Names the interpreter of an engine: ZEROSTRIDE_PYTHON_PADDLE=/path/to/python.
ENVIRONMENT = "ZEROSTRIDE_PYTHON_"


class Missing(Exception):  # noqa: N818 - a fact to report by name, not a failure
    """The engine is not installed for the interpreter that was to run it."""


class NoWorker(BadInput):
    """The worker does not start, so nothing is known about the engine."""


def interpreter_for(engine: str, chosen: dict[str, str] | None = None) -> str:
    """The interpreter that runs an engine: chosen, from the environment, or this one.

    Raises BadInput if it cannot be run.
    """
    name = ENVIRONMENT + engine.upper()
    path = (chosen or {}).get(engine) or os.environ.get(name) or sys.executable
    if not os.access(path, os.X_OK) or Path(path).is_dir():
        raise BadInput(f"{path}, the interpreter for {engine}, is not a program that can be run")
    return path


class Worker:
    """A child process that has one engine loaded. Use as a context manager."""

    #: The module that the process runs, with the engine's name as argument.
    module = "zerostride.runtimes.probe.worker"

    @property
    def start_seconds(self) -> float:
        """How long loading the engine may take."""
        return START_SECONDS

    def __init__(self, engine: str, python: str, case_seconds: float = CASE_SECONDS) -> None:
        self.engine = engine
        self.python = python
        self.case_seconds = case_seconds
        self.version = ""
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Worker:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Starts the process and waits until the engine is loaded.

        Raises Missing if the engine is not installed, NoWorker if the process fails before that.
        """
        self._process = subprocess.Popen(
            children.module(self.module, self.engine, python=self.python),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,  # output before the worker closes it fits into the pipe
            # Cases are tiny, so threads only compete.
            env={"OMP_NUM_THREADS": "1", **os.environ},
            bufsize=0,
        )
        limit = self.start_seconds
        try:
            header, _ = wire.receive(self._output, limit)
        except (wire.Closed, wire.TooLate) as error:
            self._process.kill()  # no effect if it has ended; that status is kept
            assert self._process.stderr is not None
            lines = self._process.stderr.read().decode(errors="replace").strip().splitlines()
            died = self._reap()
            if isinstance(error, wire.TooLate):
                died = f"not loaded after {limit:g} s"
            detail = f"{died}: {lines[-1]}" if lines else died
            raise NoWorker(f"the worker for {self.engine} does not start ({detail})") from error
        if "missing" in header:
            self.stop()
            raise Missing(str(header["missing"]))
        self.version = str(header["version"])

    def ask(self, case: Case) -> EngineOutcome:
        """The engine's answer; after a crash, which is an answer too, a new process starts."""
        if self._process is None:
            self.start()
        try:
            wire.send(self._input, case.to_json(), seconds=self.case_seconds)
            return wire.unpack_outcome(*wire.receive(self._output, self.case_seconds))
        except wire.Closed:
            return EngineOutcome(Answer.CRASHED, message=self._reap())
        except wire.TooLate:
            self._reap()
            return EngineOutcome(Answer.CRASHED, message=f"no answer in {self.case_seconds:g} s")

    def stop(self) -> None:
        """Ends the process, if it runs."""
        if self._process is not None:
            self._reap()

    def _reap(self) -> str:
        """Ends the process and says how it ended."""
        process = self._process
        assert process is not None
        self._process = None
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.close()
        process.stderr.close()
        try:
            # A worker exits when its input ends; one that hangs is killed.
            code = process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
        process.stdout.close()
        return signal.Signals(-code).name if code < 0 else f"exit status {code}"

    @property
    def _input(self) -> int:
        assert self._process is not None
        assert self._process.stdin is not None
        return self._process.stdin.fileno()

    @property
    def _output(self) -> int:
        assert self._process is not None
        assert self._process.stdout is not None
        return self._process.stdout.fileno()


def ask_all(worker: Worker, cases: Iterable[Case]) -> Iterator[tuple[Case, EngineOutcome]]:
    """Each case with its outcome, in order.

    A crashed case is repeated in a new process, because an earlier case may have corrupted the
    memory of the first. The second outcome counts.
    """
    for case in cases:
        outcome = worker.ask(case)
        if outcome.answer is Answer.CRASHED:
            outcome = worker.ask(case)
        yield case, outcome
