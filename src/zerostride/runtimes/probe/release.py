"""Measures another release of an engine: an environment for it, by pip.

In: an engine, a release. Out: an interpreter that has it.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from ...engines.model import Engine
from ...engines.releases import short
from ...errors import BadInput
from ...system import children

#: Runs a module, as ``python -m`` would.
_RUN = """
import runpy
runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)
"""
#: Further imports of an engine's runner.
_BESIDE = {"onnxruntime": ("onnx",)}


def environment(engine: Engine, release: str, folder: Path) -> str:
    """Makes an environment with a release of an engine, by pip; returns its interpreter.

    Raises:
        BadInput: pip has no wheel of it for this Python.
    """
    run_words(children.source(_RUN, "venv", str(folder)))
    python = str(folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))
    pip = ("pip", "install", "--quiet", "--only-binary", ":all:")
    wanted = (requirement(engine, release), *_BESIDE.get(engine.name, ()))
    run_words(children.source(_RUN, *pip, *wanted, python=python))
    try:
        run_words(children.source(f"import {engine.module}", python=python))
    except BadInput:  # wheels of 2023 were built against NumPy 1
        run_words(children.source(_RUN, *pip, "numpy<2", python=python))
    return python


def requirement(engine: Engine, release: str) -> str:
    """The requirement for pip: "ncnn==1.0.20240820"."""
    prefix = engine.release.removesuffix(short(engine.release))
    return f"{engine.distribution}=={prefix}{short(release)}"


def run_words(words: Sequence[str]) -> None:
    """Runs a command; raises BadInput with its last line if it fails."""
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()[-1]
        raise BadInput(f"the environment cannot be made: {last}")
