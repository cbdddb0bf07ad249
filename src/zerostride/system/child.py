"""A child process: started, asked, given up after a time, and ended.

Engines, readers of files and audits run code that may crash, hang or print. So they run in a child.
Its questions and answers are frames, or its answer is a file; its error output is a file.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from typing import IO, Any, NamedTuple

from . import frames

#: The most bytes that are read of a child's error output, from its end.
_LAST_BYTES = 1 << 16
#: Seconds in which a child ends by itself once its input is closed.
_PATIENCE = 2.0


class Ending(NamedTuple):
    """How a child ended.

    Attributes:
        status: its exit status; the negative number of the signal that ended it.
        last_line: the last line of its error output.
    """

    status: int
    last_line: str

    @property
    def signal(self) -> str | None:
        """The name of the signal that ended it."""
        try:
            return signal.Signals(-self.status).name if self.status < 0 else None
        except ValueError:
            return f"signal {-self.status}"


#: What engines must not send, nor keep an identity for, about a stranger's model: ONNX Runtime
#: has a variable for it, OpenVINO sends nothing in continuous integration.
_NO_TELEMETRY = {"ORT_DISABLE_TELEMETRY": "1", "CI": "true"}


class Child:
    """A running child process.

    Args:
        command: from :mod:`~zerostride.system.children`.
        environment: its environment variables; None: this process's.
        output: a file for its output; None: frames.

    Raises:
        OSError, ValueError: it does not start.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str] | None = None,
        output: IO[bytes] | None = None,
    ) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed when the child ends
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=output or subprocess.PIPE,
                stderr=self._errors,
                env={**_NO_TELEMETRY, **(os.environ if environment is None else environment)},
                bufsize=0,
            )
        except BaseException:
            self._errors.close()
            raise

    @property
    def ended(self) -> bool:
        """Whether the process has ended."""
        return self._process.poll() is not None

    def send(
        self, header: dict[str, Any], payload: bytes = b"", seconds: float | None = None
    ) -> None:
        """Sends a frame; raises as :func:`~zerostride.system.frames.send`."""
        assert self._process.stdin is not None
        frames.send(self._process.stdin.fileno(), header, payload, seconds)

    def receive(self, seconds: float | None = None) -> tuple[dict[str, Any], bytes]:
        """The next frame; raises as :func:`~zerostride.system.frames.receive`."""
        assert self._process.stdout is not None
        return frames.receive(self._process.stdout.fileno(), seconds)

    def finish(self, question: bytes, seconds: float) -> bool:
        """Sends all of its input and waits for its end; False if it is killed after `seconds`."""
        try:
            self._process.communicate(question, timeout=seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            return False
        except BaseException:  # Ctrl-C: it would go on to write
            self.kill()
            self._process.wait()
            raise
        return True

    def kill(self) -> None:
        """Kills the process, if it runs; any thread may call this."""
        self._process.kill()

    def end(self) -> Ending:
        """Closes its input and waits for its end, or kills it; then frees its files."""
        process = self._process
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()
        with self._errors as errors:
            size = errors.seek(0, os.SEEK_END)
            errors.seek(max(size - _LAST_BYTES, 0))
            lines = errors.read().decode("utf-8", "replace").strip().splitlines()
        return Ending(process.returncode, lines[-1] if lines else "")
