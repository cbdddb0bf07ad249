"""The line of user code that runs an operation of PyTorch."""

from __future__ import annotations

import functools
import os
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import torch

from .source import Expression, expression, is_allowed, is_deliberate

_TORCH = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
#: Files of PyTorch that only pass a call on.
_PASSING = frozenset({f"{_TORCH}overrides.py", f"{_TORCH}_tensor.py"})
_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_STANDARD = sysconfig.get_path("stdlib") + os.sep
_INSTALLED = frozenset({"site-packages", "dist-packages"})


@dataclass(frozen=True, slots=True)
class Site:
    """Where an operation runs.

    Attributes:
        frame: the innermost frame outside of PyTorch.
        inner: the frame of PyTorch's own code that runs the operation; None if `frame` does.
        user: the innermost frame outside of PyTorch and of installed packages, or None.
    """

    frame: FrameType
    inner: FrameType | None
    user: FrameType | None

    def is_allowed(self) -> bool:
        """Whether a comment allows the line, or the user's line that called the package."""
        frames = {self.frame, self.user} - {None}
        return any(is_allowed(expression(frame)) for frame in frames if frame is not None)

    def is_deliberate(self, count: int) -> bool:
        """Whether the source of the operation shows that it is meant."""
        frame = self.inner or self.frame
        return is_deliberate(expression(frame), frame, count)

    def is_exempt(self, modules: Sequence[str]) -> bool:
        """Whether the operation is the own code of one of these modules or packages."""
        frames = [self.frame] if self.inner is None else [self.frame, self.inner]
        names = [str(frame.f_globals.get("__name__")) for frame in frames]
        return any(f"{name}.".startswith(f"{module}.") for name in names for module in modules)

    @property
    def package(self) -> str:
        """The installed package whose line this is; "" for the user's own."""
        if not is_installed(self.frame.f_code.co_filename):
            return ""
        return str(self.frame.f_globals.get("__name__", "")).partition(".")[0]


def site_of(frame: FrameType, function: Any) -> Site | None:
    """The site of a call of a function of PyTorch.

    Args:
        frame: the frame that PyTorch called the mode from.
        function: the function.

    Returns:
        None for operations of zerostride itself, of code that PyTorch generated, and of threads
        without a line of Python outside of PyTorch.
    """
    code = getattr(function, "__code__", None)
    inner: FrameType | None = None
    at: FrameType | None = frame
    while at is not None and at.f_code.co_filename.startswith(_TORCH):
        if inner is None and at.f_code.co_filename not in _PASSING and at.f_code is not code:
            inner = at
        at = at.f_back
    if at is None or at.f_code.co_filename.startswith((_OURS, "<eval_with_key>")):
        return None
    user: FrameType | None = at
    while user is not None and is_installed(user.f_code.co_filename):
        user = user.f_back
    return Site(at, inner, user)


@functools.lru_cache(4096)
def is_installed(path: str) -> bool:
    """Whether a file belongs to an installed package, PyTorch included, or to Python."""
    return path.startswith(("<frozen", _STANDARD)) or not _INSTALLED.isdisjoint(Path(path).parts)


def shown(path: str) -> str:
    """A file as a person names it: from the present folder, or within its installed package."""
    parts = Path(path).parts
    for k, part in enumerate(parts):
        if part in _INSTALLED:
            return str(Path(*parts[k + 1 :]))
    try:
        below = Path(path).is_relative_to(Path.cwd())
    except OSError:  # the folder was removed
        below = False
    return str(Path(path).relative_to(Path.cwd())) if below else path


__all__ = ["Expression", "Site", "is_installed", "shown", "site_of"]
