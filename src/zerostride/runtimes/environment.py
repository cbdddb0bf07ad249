"""Environments of their own for releases of engines, made by pip."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from ..errors import BadInput
from ..system import children

#: Runs a module, as ``python -m`` would.
_RUN = """
import runpy
runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)
"""


def make_environment(folder: Path, requirements: Sequence[str]) -> str:
    """Makes an environment that has packages; returns its interpreter.

    Raises:
        BadInput: pip has no wheels of them for this Python.
    """
    run_words(children.source(_RUN, "venv", str(folder)))
    python = str(folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))
    install(python, requirements)
    return python


def install(python: str, requirements: Sequence[str]) -> None:
    """Installs wheels for an interpreter.

    Raises:
        BadInput: pip has none for it.
    """
    pip = ("pip", "install", "--quiet", "--only-binary", ":all:")
    run_words(children.source(_RUN, *pip, *requirements, python=python))


def run_words(words: Sequence[str]) -> None:
    """Runs a command; raises BadInput with its last line if it fails."""
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()[-1]
        raise BadInput(f"the environment cannot be made: {last}")


__all__ = ["install", "make_environment", "run_words"]
