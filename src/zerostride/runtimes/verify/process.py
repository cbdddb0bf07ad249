"""An engine in a child process, which is restarted after a crash."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum

from ...errors import ZerostrideError
from ..probe import wire
from ..probe.isolation import START_SECONDS, Missing, Worker, interpreter_for
from .task import Array, Task, pack, unpack

#: The most bytes of one message, whose length is a number of 32 bits.
MAX_MESSAGE = 2**32 - 1
#: The limit for loading an engine: a multiple of that of an answer, and a least number of seconds.
#: TensorFlow takes up to 30 where all cores are busy.
LOADING_TIMES, LEAST_LOADING = 6, 60.0
#: What pip installs for an engine, where it is not the extra of the engine's name.
_EXTRAS = {"numpy": "zerostride"}


class ReplyKind(StrEnum):
    """The kind of a reply."""

    RESULT = "result"
    REFUSED = "refused"
    ABSENT = "absent"  # the engine cannot be called for this
    CRASHED = "crashed"


@dataclass(frozen=True, slots=True)
class Reply:
    """An engine's answer: its arrays, its message, or how its process ended."""

    answer: ReplyKind
    message: str = ""
    arrays: tuple[Array, ...] = ()


class Process(Worker):
    """A child process that has one engine loaded and carries out tasks."""

    module = "zerostride.runtimes.verify.child"

    @property
    def start_seconds(self) -> float:
        """The limit for loading in seconds, a multiple of the limit for an answer."""
        return min(START_SECONDS, max(LEAST_LOADING, LOADING_TIMES * self.case_seconds))

    @property
    def ended(self) -> bool:
        """Whether no process runs, so that the next task starts one."""
        return self._process is None or self._process.poll() is not None

    def carry_out(self, task: Task, arrays: Sequence[Array]) -> Reply:
        """The engine's answer. A crashed task is repeated in a new process.

        An earlier task may have corrupted the memory of the first process; the second answer
        counts.
        """
        reply = self._once(task, arrays)
        return self._once(task, arrays) if reply.answer is ReplyKind.CRASHED else reply

    def _once(self, task: Task, arrays: Sequence[Array]) -> Reply:
        headers, payload = pack(arrays)
        if len(payload) > MAX_MESSAGE:
            return Reply(ReplyKind.ABSENT, f"{len(payload)} bytes of operands are too many to send")
        if self._process is None:
            self.start()
        try:
            question = {"task": task.as_dict(), "arrays": headers}
            wire.send(self._input, question, payload, self.case_seconds)
            header, body = wire.receive(self._output, self.case_seconds)
        except wire.Closed:
            return Reply(ReplyKind.CRASHED, f"the engine's process ended: {self._reap()}")
        except wire.TooLate:
            self._reap()
            return Reply(ReplyKind.CRASHED, f"no answer in {self.case_seconds:g} s")
        results = unpack(header.get("arrays", ()), body)
        return Reply(ReplyKind(header["answer"]), str(header["message"]), tuple(results))


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


def start(engine: str, seconds: float, pythons: dict[str, str] | None = None) -> Process:
    """The engine, loaded in a child process; the caller passes it to :func:`leave` afterwards.

    Raises:
        ZerostrideError: it is not installed, or its process does not start.
    """
    python = interpreter_for(engine, pythons)
    process = _waiting.pop((engine, python), None) if _waiting is not None else None
    if process is not None:
        process.case_seconds = seconds
        return process
    process = Process(engine, python, seconds)
    try:
        process.start()
    except Missing as error:
        extra = _EXTRAS.get(engine, f"zerostride[{engine}]")
        raise ZerostrideError(
            f"{engine} is not installed for {process.python} ({error}): pip install '{extra}', or "
            f"name an interpreter that has it (--python {engine}=..., "
            f"ZEROSTRIDE_PYTHON_{engine.upper()})"
        ) from None
    return process


def leave(process: Process) -> None:
    """Ends a process, or keeps it for the next verification."""
    key = process.engine, process.python
    if _waiting is None or process.ended or key in _waiting:
        process.stop()
    else:
        _waiting[key] = process
