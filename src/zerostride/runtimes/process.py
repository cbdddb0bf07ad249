"""An engine in a child process that may die: started, asked, and started again after a crash.

A child may be another interpreter, for engines that need their own environment.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from ..errors import BadInput, ZerostrideError
from ..system import children, frames
from ..system.child import Child, Ending
from .runners import RUNNERS
from .task import Array, Reply, ReplyKind, Task, pack, unpack

#: Seconds for one answer: an op takes milliseconds; one that takes this long hangs.
CASE_SECONDS = 20.0
#: Seconds for a whole model.
MODEL_SECONDS = 300.0
#: The limit for loading an engine: a multiple of that of an answer, between two numbers of seconds.
#: TensorFlow takes up to 30 where all cores are busy.
LOADING_TIMES, LEAST_LOADING, MOST_LOADING = 6, 60.0, 240.0
#: Names the interpreter of an engine: ZEROSTRIDE_PYTHON_PADDLE=/path/to/python.
ENVIRONMENT = "ZEROSTRIDE_PYTHON_"


class Missing(ZerostrideError):  # noqa: N818 - a fact to report by name, not a failure
    """The engine is not installed for the interpreter that was to run it."""


class NotStarted(BadInput):
    """The child does not start, so nothing is known about the engine."""


def own_folder(name: str) -> Path:
    """The folder of the environment of an engine, or a converter, that needs one of its own."""
    return Path.home() / ".cache" / "zerostride" / name


def interpreter_for(engine: str, chosen: dict[str, str] | None = None) -> str:
    """The interpreter that runs an engine: chosen, from the environment, or this one.

    An engine that needs an environment of its own (`RunnerRow.apart`), and is not installed for
    this interpreter, has that of its folder, if there is one.

    Raises BadInput if it cannot be run.
    """
    name = ENVIRONMENT + engine.upper()
    path = (chosen or {}).get(engine) or os.environ.get(name) or sys.executable
    row = RUNNERS.get(engine)
    if path == sys.executable and row is not None and row.apart and find_spec(engine) is None:
        own = own_folder(engine) / "bin" / "python"
        path = str(own) if own.exists() else path
    if not os.access(path, os.X_OK) or Path(path).is_dir():
        raise BadInput(f"{path}, the interpreter for {engine}, is not a program that can be run")
    return path


class Process:
    """A child process that has one engine loaded and carries out tasks. A context manager.

    Args:
        engine: a name of `runners.RUNNERS`.
        python: the interpreter; see :func:`interpreter_for`.
        seconds: the limit of one answer.
        memory: the most bytes that the child may take beyond those of the loaded engine.
    """

    #: The module that the child runs, with the engine's name as argument.
    module = "zerostride.runtimes.child"

    def __init__(
        self,
        engine: str,
        python: str = sys.executable,
        seconds: float = CASE_SECONDS,
        memory: int | None = None,
    ) -> None:
        self.engine = engine
        self.python = python
        self.seconds = seconds
        self.memory = memory
        self.version = ""
        self.most_axes: int | None = None
        self._child: Child | None = None

    def __enter__(self) -> Process:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def loading_seconds(self) -> float:
        """The limit for loading, a multiple of the limit for an answer."""
        return min(MOST_LOADING, max(LEAST_LOADING, LOADING_TIMES * self.seconds))

    @property
    def ended(self) -> bool:
        """Whether no child runs, so that the next task starts one."""
        return self._child is None or self._child.ended

    def takes(self, shapes: Sequence[tuple[int, ...]]) -> bool:
        """Whether the child's NumPy makes such operands; for NumPy itself that is the question."""
        most = self.most_axes
        return most is None or self.engine == "numpy" or max(map(len, shapes), default=0) <= most

    def start(self) -> None:
        """Starts the child and waits until the engine is loaded.

        Raises Missing if the engine is not installed, NotStarted if the child fails before that.
        """
        words = [self.engine, *([] if self.memory is None else [str(self.memory)])]
        child = self._child = Child(
            children.module(self.module, *words, python=self.python),
            # Tasks are small, so threads only compete.
            {"OMP_NUM_THREADS": "1", **os.environ},
        )
        limit = self.loading_seconds
        try:
            header, _ = child.receive(limit)
        except (frames.Closed, frames.TooLate) as error:
            child.kill()  # no effect if it has ended; that status is kept
            ending = self._end()
            late = isinstance(error, frames.TooLate)
            detail = f"not loaded after {limit:g} s" if late else _words(ending)
            detail += f": {ending.last_line}" if ending.last_line else ""
            raise NotStarted(f"the worker for {self.engine} does not start ({detail})") from error
        if "missing" in header:
            self.stop()
            raise Missing(str(header["missing"]))
        self.version = str(header["version"])
        self.most_axes = int(header["most_axes"])

    def ask(self, task: Task, arrays: Sequence[Array], *, again: bool = True) -> Reply:
        """The engine's answer to a task; after a crash the next task starts a new child.

        Args:
            task: the computation.
            arrays: its operands.
            again: repeat a task that crashed in a new child. An earlier task may have corrupted
                the memory of the first; the second answer counts.
        """
        reply = self._once(task, arrays)
        crashed = reply.kind is ReplyKind.CRASHED
        return self._once(task, arrays) if again and crashed else reply

    def _once(self, task: Task, arrays: Sequence[Array]) -> Reply:
        headers, payload = pack(arrays)
        if len(payload) > frames.MOST_BYTES:
            message = f"{len(payload)} bytes of operands are too many to send"
            return Reply(ReplyKind.ABSENT, message)
        if self._child is None:
            self.start()
        child = self._child
        assert child is not None
        try:
            child.send({"task": task.as_dict(), "arrays": headers}, payload, self.seconds)
            header, body = child.receive(self.seconds)
        except frames.Closed:
            return Reply(ReplyKind.CRASHED, f"the engine's process ended: {_words(self._end())}")
        except frames.TooLate:
            self._end()
            return Reply(ReplyKind.CRASHED, f"no answer in {self.seconds:g} s")
        results = unpack(header["arrays"], body)
        return Reply(ReplyKind(header["answer"]), str(header["message"]), tuple(results))

    def stop(self) -> None:
        """Ends the child, if it runs."""
        if self._child is not None:
            self._end()

    def _end(self) -> Ending:
        child, self._child = self._child, None
        assert child is not None
        return child.end()


def _words(ending: Ending) -> str:
    return ending.signal or f"exit status {ending.status}"


#: Idle processes for the next verification, by engine and interpreter; None: none are kept.
_waiting: dict[tuple[str, str], Process] | None = None


@contextmanager
def engines_kept() -> Iterator[None]:
    """A context in which verifications share engine processes.

    Loading an engine takes seconds, which would be most of the time of many verifications.
    """
    global _waiting
    before, _waiting = _waiting, {}
    try:
        yield
    finally:
        kept, _waiting = _waiting, before
        for process in (kept or {}).values():
            process.stop()


def _install(engine: str) -> str:
    """The command that installs an engine."""
    row = RUNNERS[engine]
    if row.apart:
        return environment_command(engine, row.distribution)
    return f"pip install '{row.distribution}'"


def environment_command(name: str, distributions: str) -> str:
    """The command that makes an environment of its own, with these distributions."""
    place = own_folder(name)
    return f"python3 -m venv {place} && {place}/bin/pip install {distributions}"


@contextmanager
def running(
    engine: str,
    seconds: float,
    pythons: dict[str, str] | None = None,
    *,
    memory: int | None = None,
) -> Iterator[Process]:
    """The engine, loaded in a child process; one that waits is used again.

    Args:
        engine: a name of `runners.RUNNERS`.
        seconds: the limit of one answer.
        pythons: interpreters by engine, for engines that need an environment of their own.
        memory: the limit of the child's memory, as of :class:`Process`.

    Raises:
        ZerostrideError: it is not installed, or its process does not start.
    """
    python = interpreter_for(engine, pythons)
    key = engine, python
    waiting = _waiting if memory is None and _waiting is not None else {}
    process = waiting.pop(key, None) or Process(engine, python, memory=memory)
    process.seconds = seconds
    try:
        if process.ended:
            process.stop()
            process.start()
        yield process
    except Missing as error:
        raise ZerostrideError(
            f"{engine} is not installed for {python} ({error}): {_install(engine)}, "
            f"or name an interpreter that has it (--python {engine}=..., "
            f"{ENVIRONMENT}{engine.upper()})"
        ) from None
    finally:
        if waiting is not _waiting or process.ended or key in waiting:
            process.stop()
        else:
            waiting[key] = process
