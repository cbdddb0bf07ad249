"""The command line in processes of their own that start fast.

A server imports zerostride and its packages once. Each call is a fork of it, and then a process
as any other: with its folder, environment, streams and limits, with its own children, and ended by
Python as `python -m zerostride` is ended. Tests of the start of a process, of signals and of
terminals start a real one.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import threading
import warnings
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import FrameType
from typing import IO, Any, NamedTuple

_MOST = 1 << 20  # bytes of a call
_SECONDS = 300  # only ends a command that hangs
_IMPORTED = (
    "onnx",
    "rich.console",
    "rich.table",
    "zerostride.cli.main",
    "zerostride.models.audit.run",
    "zerostride.models.port.run",
    "zerostride.models.formats.onnx.reader",
)


class Answer(NamedTuple):
    """The result of a command."""

    status: int
    out: str
    err: str


def run(
    words: Sequence[object],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdout: IO[Any] | None = None,
    stderr: IO[Any] | None = None,
    merged: bool = False,
    most: int | None = None,
    memory: int | None = None,
    calls: int | None = None,
) -> subprocess.CompletedProcess[str]:
    """Runs `zerostride` with words, and waits for its end.

    Args:
        words: the words of the command.
        cwd: its folder; None: this process's.
        env: its environment; None: this process's.
        stdout: a file for its output; None: the result keeps it.
        stderr: the same of its error output.
        merged: its error output goes to its output.
        most: the bytes of the longest file that it may write.
        memory: the bytes of address space that it may take beside what it has at its start.
        calls: how many calls of functions it may make; one more ends it with status 99.
    """
    call = {
        "words": [str(word) for word in words],
        "folder": str(cwd or Path.cwd()),
        "environment": dict(os.environ if env is None else env),
        "limits": {"RLIMIT_FSIZE": most, "RLIMIT_AS": memory},
        "calls": calls,
    }
    out, err = _Kept(stdout), _Kept(stderr)
    server = _server()
    files = [out.file, out.file if merged else err.file]
    socket.send_fds(server, [json.dumps(call).encode()], files)
    texts = out.text(), err.text()
    answer = server.recv(64)
    assert answer, "the server of tests/warm.py has ended"
    status = os.waitstatus_to_exitcode(int(answer))
    return subprocess.CompletedProcess(["zerostride", *map(str, words)], status, *texts)


class _Kept:
    """A file for an output; without one, a pipe that a thread reads."""

    def __init__(self, file: IO[Any] | None) -> None:
        self._read: list[str] = []
        self._reader: threading.Thread | None = None
        if file is not None:
            self.file = file.fileno()
            return
        end, self.file = os.pipe()
        self._reader = threading.Thread(target=self._read_all, args=(end,))
        self._reader.start()

    def _read_all(self, end: int) -> None:
        with open(end, encoding="utf-8", newline="") as stream:
            self._read.append(stream.read())

    def text(self) -> str:
        """All that was written to the pipe, after its last writer has closed it; "" for a file."""
        if self._reader is None:
            return ""
        os.close(self.file)
        self._reader.join()
        return self._read[0]


@cache
def _server() -> socket.socket:
    """The connection to the server, which ends when this process ends."""
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _MOST)
    its.set_inheritable(True)
    command = [sys.executable, "-P", __file__, str(its.fileno())]
    os.posix_spawn(sys.executable, command, {**os.environ, "OPENBLAS_NUM_THREADS": "1"})
    its.close()
    atexit.register(ours.close)
    return ours


def _next_call(connection: socket.socket) -> dict[str, Any]:
    """Forks for each call; returns in the fork, whose standard streams are the call's."""
    while True:
        text, files, _, _ = socket.recv_fds(connection, _MOST, 2)
        if not text:
            sys.exit()
        process = os.fork()
        if process == 0:
            connection.close()
            nothing = os.open(os.devnull, os.O_RDONLY)
            for number, file in enumerate((nothing, *files)):
                os.dup2(file, number)
            os.closerange(3, max(nothing, *files) + 1)
            call: dict[str, Any] = json.loads(text)
            return call
        for file in files:
            os.close(file)
        connection.send(str(os.waitpid(process, 0)[1]).encode())


def _limit(**limits: int | None) -> None:
    """Limits of this process; that of its address space is beside what it has now."""
    import resource  # POSIX's alone

    for name, most in limits.items():
        if most is None:
            continue
        if name == "RLIMIT_AS":
            used = int(Path("/proc/self/statm").read_text().split()[0])
            most += used * resource.getpagesize()
        resource.setrlimit(getattr(resource, name), (most, most))


def _count(most: int) -> None:
    """Ends this process after so many calls of functions, Python's and built-in ones."""
    left = most

    def counted(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal left
        left -= event in ("call", "c_call")
        if left < 0:
            os.write(2, b"more calls of functions than the test allows\n")
            os._exit(99)

    sys.setprofile(counted)


def _open_streams() -> None:
    """The streams of Python, as it opens them when it starts."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        errors = "backslashreplace" if name == "stderr" else "strict"
        number = ("stdin", "stdout", "stderr").index(name)
        file = open(number, mode, encoding="utf-8", errors=errors, closefd=False)  # noqa: SIM115
        file.reconfigure(line_buffering=name == "stderr")
        setattr(sys, name, file)
        setattr(sys, f"__{name}__", file)


def _serve(descriptor: int) -> None:
    for name in _IMPORTED:
        try:
            importlib.import_module(name)
        except ImportError:  # of a package that is not installed
            continue
    gc.freeze()  # a fork shares what is imported, and looks at none of it when it ends
    with warnings.catch_warnings():  # Python counts NumPy's threads
        warnings.simplefilter("ignore", DeprecationWarning)
        call = _next_call(socket.socket(fileno=descriptor))
    os.chdir(call["folder"])
    os.environ.clear()
    os.environ.update(call["environment"])
    signal.alarm(_SECONDS)
    _limit(**call["limits"])
    _open_streams()
    if call["calls"] is not None:
        _count(call["calls"])
    sys.argv = ["zerostride", *call["words"]]
    runpy.run_module("zerostride", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    _serve(int(sys.argv[1]))
