"""Compares the installed release of an engine with the measured ones, without importing it."""

from __future__ import annotations

import functools
import warnings

from ..errors import EngineVersionWarning
from .installed import installed
from .model import Engine
from .releases import releases_of, short
from .table import ENGINES, find_engine


def was_measured(engine: Engine) -> bool | None:
    """Whether the installed release is a measured one; None if there is nothing to compare.

    There is nothing to compare if none is installed, or if the engine was only read about.
    """
    version = installed(engine.distribution) if engine.run else None
    return None if version is None else has_row(engine, version)


def has_row(engine: Engine, version: str) -> bool:
    """Whether a version of an engine was measured.

    A measured release may leave out trailing parts: 2.13 covers 2.13.0 and 2.13.1+cpu.
    """
    begins = tuple(f"{release.partition('+')[0]}." for release in releases_of(engine))
    return f"{short(version.partition('+')[0])}.".startswith(begins)


@functools.cache
def warn_if_unmeasured(name: str) -> None:
    """Warns, once per engine, if the installed release is not a measured one."""
    engine = find_engine(name)
    if engine.asked:
        return  # a release was named; which one is installed does not matter
    if was_measured(engine) is False:
        again = f"Measure it: zerostride engines --measure {name}"
        if name not in ENGINES.own:
            again = "Learn it again: zerostride engines learn RUNNER.py"
        warnings.warn(
            f"{name} {installed(engine.distribution)} is installed and was not measured; the row "
            f"of {short(engine.release)} is used. {again}",
            EngineVersionWarning,
            stacklevel=3,
        )
