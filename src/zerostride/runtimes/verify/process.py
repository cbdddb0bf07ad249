"""An engine in a child process that may die: asked, and started again when it has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum

from ...errors import ZerostrideError
from ..probe import wire
from ..probe.isolation import START_SECONDS, Missing, Worker, interpreter_for
from .task import Array, Task, pack, unpack

#: Bytes of one message; its length is a number of 32 bits.
MAX_MESSAGE = 2**32 - 1
#: Loading an engine may take so many times the seconds of an answer, and so many seconds at least:
#: TensorFlow takes up to 30 where all cores are busy.
LOADING_TIMES, LEAST_LOADING = 6, 60.0
#: What installs an engine, where that is not an extra of its own name.
_EXTRAS = {"numpy": "zerostride"}


class ReplyKind(StrEnum):
    """What came back."""

    RESULT = "result"
    REFUSED = "refused"
    ABSENT = "absent"  # there is no way to call the engine for this
    CRASHED = "crashed"


@dataclass(frozen=True, slots=True)
class Reply:
    """An engine's answer: its arrays, or what it said, or how it died."""

    answer: ReplyKind
    message: str = ""
    arrays: tuple[Array, ...] = ()


class Process(Worker):
    """A child process that has one engine loaded and carries out tasks."""

    module = "zerostride.runtimes.verify.child"

    @property
    def start_seconds(self) -> float:
        """How long loading may take: several times an answer, for which the limit is stated."""
        return min(START_SECONDS, max(LEAST_LOADING, LOADING_TIMES * self.case_seconds))

    @property
    def ended(self) -> bool:
        """Whether there is no process to ask, so that the next task would start one."""
        return self._process is None or self._process.poll() is not None

    def carry_out(self, task: Task, arrays: Sequence[Array]) -> Reply:
        """The engine's answer; a crash is asked again in a fresh process.

        An earlier task may have ruined the memory of the one that died; what a fresh process
        answers is the task's own.
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


#: Processes that wait for the next verification, by engine and interpreter; None: none are kept.
_waiting: dict[tuple[str, str], Process] | None = None


@contextmanager
def engines_kept() -> Iterator[None]:
    """Inside, an engine's process is handed on from one verification to the next.

    Loading an engine takes seconds; of many verifications that would be most of the time.
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
    """The engine, loaded in a child process, which the caller hands to :func:`leave`.

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
    """Ends a process, or keeps it for who asks next."""
    key = process.engine, process.python
    if _waiting is None or process.ended or key in _waiting:
        process.stop()
    else:
        _waiting[key] = process
