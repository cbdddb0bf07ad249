"""Rows that other packages add to the tables, by entry points.

A package names a row in its metadata, in the group of a table (`GROUPS`); the entry point has the
row's name. Entry points are read only when a name is unknown or a table is listed, because reading
the metadata of all installed packages takes milliseconds. Only the requested row is loaded.

A row is left out, with a warning that names the package and the entry point, if its name is taken,
if its entry point does not load, or if the object is not a row. A faulty package breaks no call.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ..errors import PluginWarning

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_T = TypeVar("_T")
#: The tables that take rows of other packages, with the type of a row.
GROUPS: Mapping[str, str] = {
    "zerostride.engines": "an Engine (zerostride.engines)",
    "zerostride.rules": "a Rule (zerostride.core.alignment)",
    "zerostride.formats": "a Format (zerostride.models.formats)",
    "zerostride.arrays": "a Row (zerostride.arrays.table)",
}
#: By group, functions that list rows in a user's files, as if they were entry points.
FILES: dict[str, Callable[[], Iterable[Any]]] = {}


class Plugins:
    """The entry points of all groups, read once."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a package that is being loaded may use a table
        self._found: dict[str, dict[str, list[EntryPoint]]] | None = None

    def named(self, group: str) -> Mapping[str, list[EntryPoint]]:
        """The entry points of a group by name; several if packages collide."""
        with self._lock:
            if self._found is None:
                self._found = self._read()
            return self._found[group]

    @staticmethod
    def _read() -> dict[str, dict[str, list[EntryPoint]]]:
        from importlib import metadata  # slow to import, and most callers never ask

        entries: dict[str, dict[str, list[EntryPoint]]] = {group: {} for group in GROUPS}
        try:
            every = metadata.entry_points()
            for group, names in entries.items():
                for point in every.select(group=group):
                    names.setdefault(point.name, []).append(point)
        except Exception as error:  # noqa: BLE001 - another package's metadata may be broken
            _warn(f"the entry points of installed packages cannot be read: {error_line(error)}")
        for group, files in FILES.items():
            for point in files():
                entries[group].setdefault(point.name, []).append(point)
        return entries

    def forget(self) -> None:
        """Discards the entry points; they are read again, with packages installed since."""
        with self._lock:
            self._found = None
        for table in TABLES:
            table.forget()
        for clear in CACHES:
            clear()


class Table(Mapping[str, _T], Generic[_T]):
    """A table of named rows: its own, followed by those of other packages.

    Looking up an own row does not read entry points.
    """

    def __init__(
        self,
        group: str,
        kind: type[_T],
        own: Iterable[_T],
        accept: Callable[[_T, str], _T],
        name_of: Callable[[_T], str],
    ) -> None:
        """Makes a table.

        Args:
            group: of the entry points.
            kind: the type of a row.
            own: the rows of this package.
            accept: checks another package's row and returns the row to add. Its second argument is
                the package, in words. Raises ValueError for a row that cannot be added.
            name_of: a row's name.
        """
        self.group = group
        self._kind = kind
        self._own = MappingProxyType({name_of(row): row for row in own})
        self._accept = accept
        self._name_of = name_of
        self._added: dict[str, _T | None] = {}  # None: loading it has failed
        self._sources: dict[str, str] = {}
        self._lock = threading.RLock()
        TABLES.append(self)

    def __getitem__(self, name: str) -> _T:
        if not isinstance(name, str):
            raise KeyError(name)  # a list, for example, has no hash
        row = self._own.get(name)
        if row is None:
            row = self._find(name)
        if row is None:
            raise KeyError(name)
        return row

    def __iter__(self) -> Iterator[str]:
        self._load_all()
        return iter([*self._own, *(name for name, row in self._added.items() if row is not None)])

    def __len__(self) -> int:
        self._load_all()
        return len(self._own) + sum(row is not None for row in self._added.values())

    def __repr__(self) -> str:
        return f"<the table of {self.group}: {', '.join(self._own)}>"

    @property
    def own(self) -> Mapping[str, _T]:
        """The rows of this package alone."""
        return self._own

    def source(self, name: str) -> str:
        """The package that a row is from, with its release; "" of an own row.

        >>> from zerostride.engines import ENGINES
        >>> ENGINES.source("ncnn")
        ''
        """
        source = self._sources.get(name, "") if name not in self._own else ""
        return "" if source == _OURS else source

    def forget(self) -> None:
        """Discards the rows of other packages, so that they are looked up again."""
        with self._lock:
            self._added.clear()
            self._sources.clear()

    def _find(self, name: str) -> _T | None:
        if not name:
            return None
        with self._lock:
            if name not in self._added:
                points = PLUGINS.named(self.group).get(name)
                if points is None:
                    return None
                with self._trying(name):
                    self._added[name] = self._load(name, points)
            return self._added.get(name)  # loading it may have called `forget`

    def _load_all(self) -> None:
        for name, points in list(PLUGINS.named(self.group).items()):
            if name in self._own:
                with self._lock:
                    if name not in self._added:
                        with self._trying(name):
                            self._refuse(points, f"there is one of that name in {_OURS}")
            else:
                self._find(name)

    @contextmanager
    def _trying(self, name: str) -> Iterator[None]:
        """Marks a row as absent while it is loaded, also for its own package. If loading is
        interrupted, or a warning is an error, the row is tried again.
        """
        self._added[name] = None
        try:
            yield
        except BaseException:
            self._added.pop(name, None)
            raise

    def _load(self, name: str, points: list[EntryPoint]) -> _T | None:
        if len(points) > 1:
            packages = " and ".join(map(package_of, points))
            self._refuse(points, f"{packages} have one of that name each, and neither is taken")
            return None
        (point,) = points
        try:
            loaded: Any = point.load()
            if callable(loaded) and not isinstance(loaded, self._kind):
                loaded = loaded()
        except (Exception, SystemExit) as error:  # noqa: BLE001 - an import may raise anything
            self._refuse(points, f"it does not load: {error_line(error)}")
            return None
        try:
            row = self._accept(self._checked(point, loaded), package_of(point))
        except (ValueError, TypeError, AttributeError) as error:
            self._refuse(points, str(error))
            return None
        self._sources[name] = package_of(point)
        return row

    def _checked(self, point: EntryPoint, loaded: Any) -> _T:
        if not isinstance(loaded, self._kind):
            raise ValueError(f"it is a {type(loaded).__name__}, not {GROUPS[self.group]}")
        if self._name_of(loaded) != point.name:
            raise ValueError(f"its row is named {self._name_of(loaded)!r}; both names must be one")
        return loaded

    def _refuse(self, points: list[EntryPoint], why: str) -> None:
        for point in points[:1]:
            _warn(
                f"{package_of(point)}: the entry point {point.name!r} of {self.group} "
                f"({point.value}) is left out: {why}"
            )


def package_of(point: EntryPoint) -> str:
    """The package of an entry point, with its release."""
    distribution = point.dist
    if distribution is None:
        return point.value.partition(":")[0]
    return f"{distribution.name} {distribution.version}"


def error_line(error: BaseException) -> str:
    """An error on one line."""
    words = " ".join(str(error).split())
    return f"{type(error).__name__}: {words}" if words else type(error).__name__


def _warn(words: str) -> None:
    warnings.warn(words, PluginWarning, stacklevel=2)


_OURS = "zerostride"
#: Every table, so that `forget` reaches all of them.
TABLES: list[Table[Any]] = []
#: Functions that clear caches of answers by rows' names, for `forget`.
CACHES: list[Callable[[], object]] = []
PLUGINS = Plugins()


__all__ = ["CACHES", "FILES", "GROUPS", "PLUGINS", "Table", "error_line", "package_of"]
