"""Audits of many models in several worker processes; answers come in order.

A worker is a Python process that reads tasks from its input and writes reports to its output. It is
started by name and not as a copy of this process, so a script needs no `if __name__ == "__main__"`.
A model that ends its worker does not stop the others.
"""

from __future__ import annotations

import os
import pickle
import queue
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...engines.table import find_engine
from ...engines.versions import warn_if_unmeasured
from ...errors import BroadcastError, ZerostrideError, printable
from ...system import children, frames
from ...system.child import Child
from ..findings import Report, Unread
from ..flow.input_sizes import UnknownSize
from ..options import ModelOptions
from .audited import Progress
from .run import audit_model

#: Seconds between checks for an interrupt while waiting.
_BEAT = 0.2
#: The most characters that are quoted of a worker's last output.
_LAST_WORDS = 300
#: The note on a model that lacks the name of a size or an input that an option has.
_NOT_HERE = "no size or input of it is called {!r}: what was given is for other models"
_NOT_STARTED = "its process could not be started"
_CHILD = """
load_package()
from zerostride.models.audit.many import serve
serve()
"""


def cores() -> int:
    """The number of processes that may run at once."""
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1


def audit_many(
    models: Sequence[str | Path | Unread],
    target: str,
    options: ModelOptions = ModelOptions(),  # noqa: B008 - frozen
    *,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> list[Report | Unread]:
    """Audits models, several at once.

    Args:
        models: files; an :class:`Unread` is returned as it is.
        target: an engine's name.
        options: as for :func:`~zerostride.models.audit.run.audit`.
        jobs: how many at once; the number of cores if None. 1: in this process.
        progress: called with the number of models done and of all.

    Returns:
        A report of each model, in their order, whatever `jobs` is; an :class:`Unread` for one that
        cannot be read or that ended its process.

    Raises:
        BroadcastError: there is no such engine.
        ZerostrideError: an option makes no sense, whatever the model.
    """
    find_engine(target)
    options.premises()  # raises once, not for each model
    warn_if_unmeasured(target)
    answers: list[Report | Unread | None] = [
        model if isinstance(model, Unread) else None for model in models
    ]
    tasks = [k for k, answer in enumerate(answers) if answer is None]
    count = min(jobs or cores(), len(tasks))
    total = len(models)
    done = total - len(tasks)

    def answered(k: int, answer: Report | Unread) -> None:
        nonlocal done
        answers[k] = answer
        done += 1
        if progress is not None:
            progress(done, total)

    names = {k: str(models[k]) for k in tasks}
    if count <= 1 or not sys.executable:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for k in tasks:
                answered(k, judged(names[k], target, options))
    else:
        _at_once(names, target, options, count, answered)
    _check_sizes(options, answers)
    return [answer for answer in answers if answer is not None]


def _audited(model: str, target: str, options: ModelOptions) -> Report:
    """The report of one of several models; a note names the given sizes that it does not have."""
    missing: list[str] = []
    while True:
        try:
            report = audit_model(model, target, options)
        except UnknownSize as error:
            if error.name in missing:
                raise
            missing.append(error.name)
            options = replace(
                options,
                sizes=_without(options.sizes, error.name),
                input_shapes=_without(options.input_shapes, error.name),
            )
        else:
            return replace(report, notes=(*report.notes, *map(_NOT_HERE.format, missing)))


def _without(given: Any, name: str) -> Any:
    """Sizes or shapes by name, without one of them."""
    if not isinstance(given, Mapping):
        return given
    return {key: value for key, value in given.items() if key != name}


def _check_sizes(options: ModelOptions, answers: Sequence[Report | Unread | None]) -> None:
    """Refuses the name of a size that no model has."""
    reports = [answer for answer in answers if isinstance(answer, Report)]
    for name in map(str, (*(options.sizes or ()), *(options.input_shapes or ()))):
        note = _NOT_HERE.format(name)
        if reports and all(note in report.notes for report in reports):
            raise UnknownSize(name, f"no size or input of any model is called {name!r}")


def judged(model: str, target: str, options: ModelOptions) -> Report | Unread:
    """The report of a model. One unreadable model does not stop the others."""
    try:
        return _audited(model, target, options)
    except (ZerostrideError, BroadcastError) as error:
        return Unread(model, str(error))
    except MemoryError:
        return Unread(model, f"{model}: not enough memory")
    except OSError as error:
        return Unread(model, f"{model}: {error.strerror or error}")
    except Exception as error:  # noqa: BLE001 - a fault of ours is one model's line, as in the CLI
        detail = printable(str(error))[:_LAST_WORDS]
        return Unread(
            model, f"{model}: internal error ({type(error).__name__}: {detail}); please report it"
        )


def _at_once(
    names: Mapping[int, str],
    target: str,
    options: ModelOptions,
    count: int,
    answered: Callable[[int, Report | Unread], None],
) -> None:
    """Distributes tasks to workers; one thread per worker waits for its answers."""
    waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
    ready: queue.SimpleQueue[tuple[int, Report | Unread]] = queue.SimpleQueue()
    for k in names:
        waiting.put(k)
    workers = [_Worker() for _ in range(count)]

    def tend(worker: _Worker) -> None:
        while not worker.stopped:
            try:
                k = waiting.get_nowait()
            except queue.Empty:
                break
            ready.put((k, worker.ask(names[k], target, options)))
        worker.end()

    threads = [threading.Thread(target=tend, args=(worker,), daemon=True) for worker in workers]
    try:
        for thread in threads:
            thread.start()
        left = len(names)
        while left:
            try:
                answered(*ready.get(timeout=_BEAT))
            except queue.Empty:
                continue
            left -= 1
    finally:
        for worker in workers:
            worker.stop()
        for thread in threads:
            thread.join(_BEAT * 5)


class _Worker:
    """A process that audits models one after the other; it starts with the first task."""

    def __init__(self) -> None:
        self.stopped = False
        self._child: Child | None = None
        self._lock = threading.Lock()

    def ask(self, model: str, target: str, options: ModelOptions) -> Report | Unread:
        """The worker's answer; if the worker ended, how it ended and its last line."""
        try:
            child = self._started()
            child.send({}, pickle.dumps((model, target, options)))
            answer = pickle.loads(child.receive()[1])
        except (OSError, ValueError, frames.Closed, pickle.PickleError) as error:
            return Unread(model, f"{model}: {self.end() or f'{_NOT_STARTED}: {error}'}")
        return answer if isinstance(answer, Report | Unread) else Unread(model, str(answer))

    def _started(self) -> Child:
        with self._lock:
            if self.stopped:
                raise frames.Closed
            if self._child is None:
                self._child = Child(children.source(_CHILD))
            return self._child

    def end(self) -> str:
        """Ends the process, and says how it ended; the next model gets a new one."""
        with self._lock:
            child, self._child = self._child, None
        if child is None:
            return ""
        ending = child.end()
        cause = f"by {ending.signal}" if ending.signal else f"with status {ending.status}"
        last = printable(ending.last_line)[:_LAST_WORDS]
        return f"the process that read it was ended {cause}{f': {last}' if last else ''}"

    def stop(self) -> None:
        """Kills the process; the thread that waits for its answer ends it."""
        with self._lock:
            self.stopped = True
            if self._child is not None:
                self._child.kill()


def serve() -> None:
    """The loop of a worker: answers tasks until its input ends.

    Its output carries answers alone; what libraries print goes to the error output. It ignores
    interrupts: the parent handles them and ends its workers.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    warnings.simplefilter("ignore")  # the parent has warned once
    questions, answers = os.dup(0), frames.take_output(errors=True)
    while True:
        try:
            model, target, options = pickle.loads(frames.receive(questions)[1])
            frames.send(answers, {}, pickle.dumps(judged(model, target, options)))
        except frames.Closed:
            return
