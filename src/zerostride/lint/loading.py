"""The import hook: it rewrites modules of the project under test when they are imported."""

from __future__ import annotations

import ast
import os
import sys
import threading
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from . import checks
from .rewrite import MODULE, rewritten

#: Folders of installed packages, which are not under test.
_INSTALLED = frozenset({"site-packages", "dist-packages", "node_modules", ".tox", ".nox"})
_OURS = str(Path(__file__).resolve().parent.parent) + os.sep
#: Another rewriter's step that runs first, such as pytest's of assertions: (tree, source, path).
Before = Callable[[ast.Module, bytes, str], None]


class Scope:
    """The files under test: those below some folders that are not installed.

    >>> scope = Scope([Path("/project")])
    >>> scope.has("/project/src/a.py"), scope.has("/project/.venv/lib/site-packages/a.py")
    (True, False)
    """

    def __init__(self, roots: Sequence[Path]) -> None:
        self.roots = tuple(sorted({f"{path}{os.sep}" for root in roots for path in _both(root)}))
        prefixes = {Path(p).resolve() for p in (sys.prefix, sys.base_prefix)}
        # An environment inside of the project; the project itself may be inside an environment.
        self._environments = tuple(
            f"{prefix}{os.sep}"
            for prefix in prefixes
            if f"{prefix}{os.sep}".startswith(self.roots) and f"{prefix}{os.sep}" not in self.roots
        )

    def has(self, path: str | None) -> bool:
        """Whether a file is under test."""
        if not path or not path.endswith(".py"):
            return False
        real = os.path.realpath(path)
        if real.startswith((_OURS, *self._environments)) or not (
            real.startswith(self.roots) or path.startswith(self.roots)
        ):
            return False
        # The root itself may be inside such a folder.
        root = next(r for r in self.roots if real.startswith(r) or path.startswith(r))
        below = real.removeprefix(root) if real.startswith(root) else path.removeprefix(root)
        return _INSTALLED.isdisjoint(Path(below).parts)


def _both(root: Path) -> tuple[Path, Path]:
    return root.absolute(), root.resolve()


class Finder(MetaPathFinder):
    """Stands before all other finders, and changes how they load modules under test.

    Attributes:
        scope: the files under test.
        unchecked: modules under test that another loader loads, or whose expressions nest too
            deeply to be rewritten.
    """

    def __init__(self, scope: Scope, hook: Any = None, before: Before | None = None) -> None:
        self.scope = scope
        self.unchecked: list[str] = []
        self._hook = hook
        self._asked: set[tuple[int, str]] = set()
        self._before = before

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The other finders' spec, with a loader that rewrites if the module is under test."""
        # Guards against re-entrant finders: another finder may ask all others as this one does.
        question = (threading.get_ident(), name)
        if question in self._asked:
            return None
        self._asked.add(question)
        try:
            return self._find(name, path, target)
        finally:
            self._asked.discard(question)

    def _find(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None
    ) -> ModuleSpec | None:
        # pytest may run within pytest: two of these finders would ask each other without end.
        watchers = [self, *(finder for finder in sys.meta_path if isinstance(finder, Finder))]
        for finder in sys.meta_path:
            if isinstance(finder, Finder) or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                watching = next(
                    (watcher for watcher in watchers if watcher.scope.has(spec.origin)), self
                )
                return watching._watched(spec)
        return None

    def _watched(self, spec: ModuleSpec) -> ModuleSpec:
        loader = spec.loader
        if not spec.has_location or not self.scope.has(spec.origin):
            return spec
        if type(loader) is SourceFileLoader:
            spec.loader = _Loader(loader.name, loader.path, self.unchecked)
        elif loader is not None and loader is self._hook and self._before is not None:
            spec.loader = _Around(loader, self._before, self.unchecked)
        else:
            self.unchecked.append(spec.name)
        return spec

    def install(self) -> tuple[str, ...]:
        """Inserts the finder before all others. Returns the modules under test that were imported
        earlier: they are not checked.
        """
        sys.meta_path.insert(0, self)
        return tuple(
            name
            for name, module in sorted(sys.modules.items())
            if self.scope.has(getattr(module, "__file__", None))
        )

    def remove(self) -> None:
        """Removes the finder; rewritten modules stay rewritten."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)


def compiled(source: bytes, path: str, before: Before | None = None) -> CodeType | None:
    """A module's rewritten code; None if its expressions nest too deeply."""
    tree = _parsed(source, path, before)
    try:
        return _code(rewritten(tree, source), path)
    except RecursionError:
        return None


def _parsed(source: bytes, path: str, before: Before | None) -> ast.Module:
    tree = ast.parse(source, filename=path)
    if before is not None:
        before(tree, source, path)
    return tree


def _code(tree: ast.Module | bytes, path: str) -> CodeType:
    code: CodeType = compile(tree, path, "exec", dont_inherit=True)
    return code


class _Loader(SourceFileLoader):
    """Loads a rewritten module from its source: the cached bytecode is neither read nor written."""

    def __init__(self, name: str, path: str, unchecked: list[str]) -> None:
        super().__init__(name, path)
        self._unchecked = unchecked

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        source = self.get_data(path)
        code = compiled(source, path)
        if code is None:
            self._unchecked.append(fullname)
            code = _code(source, path)
        return code

    def exec_module(self, module: ModuleType) -> None:
        vars(module)[MODULE] = checks
        super().exec_module(module)


class _Around(Loader):
    """Also rewrites a module that pytest rewrites: pytest's assertions first, so that their text is
    unchanged.
    """

    def __init__(self, loader: Any, before: Before, unchecked: list[str]) -> None:
        self._loader = loader
        self._before = before
        self._unchecked = unchecked

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Unchanged."""
        return None

    def exec_module(self, module: ModuleType) -> None:
        """Runs the module's rewritten code."""
        path = str(module.__spec__.origin if module.__spec__ else module.__file__)
        source = Path(path).read_bytes()
        code = compiled(source, path, self._before)
        if code is None:
            self._unchecked.append(module.__name__)
            code = _code(_parsed(source, path, self._before), path)
        vars(module)[MODULE] = checks
        exec(code, vars(module))
