"""Compares the installed release of an engine with the measured one, without importing it."""

from __future__ import annotations

import functools
import warnings

from ..errors import EngineVersionWarning
from .model import Engine
from .table import find_engine


@functools.cache
def installed(distribution: str) -> str | None:
    """The installed version of a distribution, or None; reads metadata only."""
    from importlib import metadata  # slow to import, and most callers never ask

    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def was_measured(engine: Engine) -> bool | None:
    """Whether the installed release is the measured one; None if there is nothing to compare.

    There is nothing to compare if none is installed, or if the engine was only read about. A
    release may leave out trailing parts: 2.13 covers 2.13.0 and 2.13.1+cpu.
    """
    version = installed(engine.distribution) if engine.run else None
    if version is None:
        return None
    begins = tuple(f"{release}." for release in engine.measured)
    return f"{version.partition('+')[0]}.".startswith(begins)


@functools.cache
def warn_if_unmeasured(name: str) -> None:
    """Warns, once per engine, if the installed release is not the measured one."""
    engine = find_engine(name)
    if engine.asked:
        return  # a release was named; which one is installed does not matter
    if was_measured(engine) is False:
        warnings.warn(
            f"{name} {installed(engine.distribution)} is installed; its row was measured on "
            f"{' and '.join(engine.measured[:2])}. "
            f"Measure it again: zerostride engines --measure {name}",
            EngineVersionWarning,
            stacklevel=3,
        )
