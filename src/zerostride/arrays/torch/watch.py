"""Waits for the import of PyTorch's compiler, to register zerostride (`compiler`).

A compiled function's callees have to be registered before it is compiled, and PyTorch may be
imported after zerostride. This module imports nothing itself.
"""

from __future__ import annotations

from ...system.imports import when_imported


def watch() -> None:
    """Registers zerostride's functions with PyTorch's compiler, once it is imported."""
    when_imported("torch._dynamo", _tell)


def _tell() -> None:
    from .compiler import register

    register()
