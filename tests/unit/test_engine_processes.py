"""Engine processes that stop, and many open files; with NumPy alone."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import numpy as np
import pytest

from zerostride.runtimes import process as process_module
from zerostride.runtimes.process import NotStarted, Process
from zerostride.runtimes.task import Form, ReplyKind, Task
from zerostride.system import child as child_module

resource = pytest.importorskip("resource", reason="limits of a process are POSIX's")


@pytest.mark.parametrize("count", [10, 1_000_000])
def test_stopped_worker_is_given_up_and_restarted(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of many operands it reads none: writing them must end, too. A fresh process answers."""
    monkeypatch.setattr(child_module, "_PATIENCE", 0.1)
    process = Process("numpy", sys.executable, 1.0)
    process.start()
    try:
        task, operands = Task(Form.OP, "add"), [np.ones(count)] * 2
        assert process._child is not None
        process._child._process.send_signal(signal.SIGSTOP)
        once = process.ask(task, operands, again=False)
        assert (str(once.kind), once.message) == ("crashed", "no answer in 1 s")
        process.seconds = 60
        assert process.ask(task, operands).kind == "result"
        process._child.kill()
        assert process.ask(task, [np.ones(2)] * 2).kind == "result"
    finally:
        process.stop()


def test_operand_that_numpy_cannot_make_is_an_answer() -> None:
    """As 33 axes are for the child's NumPy 1. The same child answers the next task."""
    task = Task(Form.OP, "add")
    question = {"task": task.as_dict(), "arrays": [{"shape": [1] * 65, "dtype": "<f4"}] * 2}
    with Process("numpy", sys.executable) as process:
        child = process._child
        assert child is not None
        child.send(question, bytes(8), 60)
        header, _ = child.receive(60)
        assert header["answer"] == "refused"
        assert "maximum supported dimension" in header["message"]
        assert process.ask(task, [np.ones(2)] * 2).kind == "result"
        assert process._child is child


@pytest.mark.parametrize(("seconds", "loading"), [(0.5, 60), (20, 120), (300, 240), (1e9, 240)])
def test_loading_may_take_longer_than_an_answer(seconds: float, loading: float) -> None:
    assert Process("numpy", sys.executable, seconds).loading_seconds == loading


def test_engine_that_does_not_load_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_module, "LEAST_LOADING", 0.2)
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nexec sleep 1000\n")
    python.chmod(0o755)
    with pytest.raises(NotStarted, match=r"does not start \(not loaded after 0\.6 s\)"):
        Process("numpy", str(python), 0.1).start()


def test_worker_starts_with_very_many_open_files() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < 1200:
        resource.setrlimit(resource.RLIMIT_NOFILE, (1200, hard))
    opened = [os.open(os.devnull, os.O_RDONLY) for _ in range(1040)]
    try:
        with Process("numpy") as process:
            task = Task(Form.OP, "subtract")
            assert process.ask(task, [np.ones((2, 3)), np.ones(3)]).kind is ReplyKind.RESULT
    finally:
        for one in opened:
            os.close(one)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_memory_is_bounded_beyond_the_loaded_engine() -> None:
    if not sys.platform.startswith("linux"):
        pytest.skip("reads the memory in use from /proc")
    task = Task(Form.TO, "expand", target=(1 << 25,))  # 256 MiB of doubles
    with Process("numpy", memory=1 << 27) as process:
        reply = process.ask(task, [np.ones(1)])
        assert reply.kind is ReplyKind.REFUSED
        assert "MemoryError" in reply.message
        small = process.ask(Task(Form.TO, "expand", target=(3,)), [np.ones(1)])
        assert small.kind is ReplyKind.RESULT
    with Process("numpy") as process:
        assert process.ask(task, [np.ones(1)]).kind is ReplyKind.RESULT
