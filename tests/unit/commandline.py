"""The command line for tests: in this process, or in a separate process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

from warm import Answer

Run = Callable[..., Answer]


def start(arguments: Sequence[str], **given: Any) -> subprocess.Popen[bytes]:
    """Starts the command line as a process of its own, which an interrupt reaches.

    A shell's background jobs have it ignored, and what they start inherits that.
    """
    environment = {**os.environ, **given.pop("env", {})}
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return subprocess.Popen(
            [sys.executable, "-m", "zerostride", *arguments],
            env=environment,
            **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **given},
        )
    finally:
        signal.signal(signal.SIGINT, before)
