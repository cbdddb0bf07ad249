"""Waits for the imports of other packages, and imports nothing itself.

A package that zerostride adds to may be imported after zerostride, or never.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


class _Finder:
    """On `sys.meta_path`: finds the awaited modules, as the other finders do, and adds to their
    loaders.

    Attributes:
        calls: for each awaited module, the functions to call after its import.
    """

    def __init__(self) -> None:
        self.calls: dict[str, list[Callable[[], object]]] = {}

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        """The module's spec; None for modules that nobody waits for."""
        if name not in self.calls:
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(name, path, target)
            if spec is not None:
                if spec.loader is not None:
                    loader: Any = _Loader(spec.loader, self)
                    spec.loader = loader
                return spec
        return None

    def loaded(self, name: str) -> None:
        """Calls the functions that wait for a module."""
        calls = self.calls.pop(name, [])
        if not self.calls and self in sys.meta_path:
            sys.meta_path.remove(self)
        for call in calls:
            call()


class _Loader:
    """A loader that tells the finder after it has loaded its module."""

    def __init__(self, loader: Any, finder: _Finder) -> None:
        self._loader = loader
        self._finder = finder

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def exec_module(self, module: Any) -> None:
        """Loads the module."""
        self._loader.exec_module(module)
        self._finder.loaded(module.__name__)


_FINDER = _Finder()


def when_imported(name: str, call: Callable[[], object]) -> None:
    """Calls a function after the import of a module; at once if that has begun.

    >>> when_imported("json", lambda: print("json is here"))
    json is here
    """
    if name in sys.modules:
        call()
        return
    _FINDER.calls.setdefault(name, []).append(call)
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)


__all__ = ["when_imported"]
