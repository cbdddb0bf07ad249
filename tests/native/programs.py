"""The C++ programs of native/tests: built, and run here or in emulation."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

# What is computed by approximation, and so may differ in its last digits between instruction sets.
# Every other op has one answer.
APPROXIMATE = frozenset(
    [
        "exp",
        "expm1",
        "log",
        "log1p",
        "log2",
        "log10",
        "sin",
        "cos",
        "tan",
        "asin",
        "acos",
        "atan",
        "sinh",
        "cosh",
        "tanh",
        "asinh",
        "acosh",
        "atanh",
        "erf",
        "sigmoid",
        "rsqrt",
        "pow",
        "atan2",
        "hypot",
        "logaddexp",
        "logaddexp2",
        "elu",
        "selu",
        "celu",
        "gelu",
        "gelu_tanh",
        "softplus",
        "mish",
        "swish",
    ]
)


def build(*options: str) -> None:
    """Runs native/develop.py."""
    done = subprocess.run(
        [sys.executable, ROOT / "native" / "develop.py", *options], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def run(command: list[str | Path], timeout: float) -> list[str]:
    """The lines that a program printed. It finds faults itself, and its status says so."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
    assert done.returncode == 0, f"status {done.returncode}\n{done.stderr}"
    return done.stdout.splitlines()


def exact(lines: list[str]) -> dict[str, str]:
    """Checksums by op and dtype, of the ops that have one answer."""
    rows = [line.split() for line in lines]
    return {f"{op} {dtype}": sum_ for op, dtype, sum_ in rows if op not in APPROXIMATE}
