"""The installed release of an engine against the measured one. Nothing here imports an engine."""

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
    """Whether the installed release is the measured one; None where there is nothing to compare.

    That is: none is installed, or the engine was read about and never run.
    A release may leave out trailing parts: 2.13 covers 2.13.0 and 2.13.1+cpu.
    """
    version = installed(engine.distribution) if engine.run else None
    if version is None:
        return None
    begins = tuple(f"{release}." for release in engine.measured)
    return f"{version.partition('+')[0]}.".startswith(begins)


@functools.cache
def warn_if_unmeasured(name: str) -> None:
    """Warns, once an engine, when the installed release is not the measured one."""
    engine = find_engine(name)
    if was_measured(engine) is False:
        warnings.warn(
            f"{name} {installed(engine.distribution)} is installed; its row was measured on "
            f"{' and '.join(engine.measured[:2])}. "
            f"Measure it again: zerostride engines --measure {name}",
            EngineVersionWarning,
            stacklevel=3,
        )
