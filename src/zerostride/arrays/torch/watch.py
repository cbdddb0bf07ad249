"""Waits for the import of PyTorch's compiler, to register zerostride (`compiler`).

A compiled function's callees have to be registered before it is compiled, and PyTorch may be
imported after zerostride. So this module watches for the import of `torch._dynamo`, and for no
other; it imports nothing itself.
"""

from __future__ import annotations

import sys
from typing import Any

_COMPILER = "torch._dynamo"


class _Watch:
    """On `sys.meta_path`: finds one module, as the other finders do, and adds to its loader."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        """The module's spec; None for all other modules."""
        if name != _COMPILER:
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(name, path, target)
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _Telling(spec.loader, self)  # type: ignore[assignment]
                return spec
        return None


class _Telling:
    """A loader that registers zerostride after loading its module."""

    def __init__(self, loader: Any, watch: _Watch) -> None:
        self._loader = loader
        self._watch = watch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def exec_module(self, module: Any) -> None:
        """Loads the module."""
        self._loader.exec_module(module)
        if self._watch in sys.meta_path:
            sys.meta_path.remove(self._watch)
        _tell()


def watch() -> None:
    """Registers zerostride's functions with PyTorch's compiler, once it is imported."""
    if _COMPILER in sys.modules:
        _tell()
    elif not any(type(finder) is _Watch for finder in sys.meta_path):
        sys.meta_path.insert(0, _Watch())


def _tell() -> None:
    from .compiler import register

    register()
