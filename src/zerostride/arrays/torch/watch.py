"""Waits for PyTorch: its compiler has to know zerostride, and strict mode watches its operations.

PyTorch may be imported after zerostride, or never. This module imports nothing itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ...core.strict_mode import add_watch
from ...system.imports import when_imported

if TYPE_CHECKING:
    from ...core.strict_mode import Strict


def watch() -> None:
    """Registers zerostride's functions with PyTorch's compiler once it is imported, and the watch
    of PyTorch's operations with strict mode.
    """
    when_imported("torch._dynamo", _tell)
    add_watch(_open)


def _tell() -> None:
    from .compiler import register

    register()


def _open(limits: Strict) -> Callable[[], object]:
    from ...lint.torch_watch import opened

    return opened(limits)
