"""Measures another release of an engine: an environment for it, by pip.

In: an engine, a release. Out: an interpreter that has it.
"""

from __future__ import annotations

from pathlib import Path

from ...engines.model import Engine
from ...engines.releases import short
from ...errors import BadInput
from ...system import children
from ..environment import install, make_environment, run_words

#: Further imports of an engine's runner.
_BESIDE = {"onnxruntime": ("onnx",)}


def environment(engine: Engine, release: str, folder: Path) -> str:
    """Makes an environment with a release of an engine, by pip; returns its interpreter.

    Raises:
        BadInput: pip has no wheel of it for this Python.
    """
    wanted = (requirement(engine, release), *_BESIDE.get(engine.name, ()))
    python = make_environment(folder, wanted)
    try:
        run_words(children.source(f"import {engine.module}", python=python))
    except BadInput:  # wheels of 2023 were built against NumPy 1
        install(python, ("numpy<2",))
    return python


def requirement(engine: Engine, release: str) -> str:
    """The requirement for pip: "ncnn==1.0.20240820"."""
    prefix = engine.release.removesuffix(short(engine.release))
    return f"{engine.distribution}=={prefix}{short(release)}"
