"""Python scripts in a separate process, for effects on the whole process."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

from zerostride.compute import native

needs_native = pytest.mark.skipif(
    not native.backend().startswith("native"),
    reason="the native engine is not in use: installed without a compiler, or ZEROSTRIDE_BACKEND",
)

# An interrupt interrupts, also where the tests run in the background of a shell that ignores it.
_HEAD = (
    "import signal\n"
    "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    "import numpy as np\n"
    "import zerostride as zs\n"
)


def start(code: str, **environment: str) -> subprocess.Popen[str]:
    """A script that runs, with np and zs imported, and its output in pipes."""
    return subprocess.Popen(
        [sys.executable, "-c", _HEAD + textwrap.dedent(code)],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(code: str, timeout: float = 300, **environment: str) -> str:
    """A script's output; the test fails if it fails, is killed, or takes longer."""
    process = start(code, **environment)
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        pytest.fail(f"still running after {timeout} s:\n{out}{err}")
    assert process.returncode == 0, f"status {process.returncode}:\n{out}{err}"
    return out
