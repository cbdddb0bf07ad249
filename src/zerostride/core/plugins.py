"""Rows that other packages add to the tables, by entry points.

A package names a row in its metadata, in the group of a table (`GROUPS`); the entry point has the
row's name. Nothing is looked for until a name is not known or a table is listed, because reading
the metadata of all that is installed takes milliseconds; only the row that is asked for is loaded.

What cannot be added is warned of, with the package and the entry point, and left out: a name that
is taken, an entry point that does not load, an object that is no row. Nothing of it breaks a call.
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
#: The tables that take rows, and what a row is.
GROUPS: Mapping[str, str] = {
    "zerostride.engines": "an Engine (zerostride.engines)",
    "zerostride.rules": "a Rule (zerostride.core.alignment)",
    "zerostride.formats": "a Format (zerostride.models.formats)",
    "zerostride.arrays": "a Row (zerostride.arrays.table)",
}


class Plugins:
    """The entry points of all groups, read once."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a package may ask while it is being loaded
        self._found: dict[str, dict[str, list[EntryPoint]]] | None = None

    def named(self, group: str) -> Mapping[str, list[EntryPoint]]:
        """The entry points of a group by name; several where packages collide."""
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
        except Exception as error:  # noqa: BLE001 - somebody's broken metadata
            _warn(f"the entry points of installed packages cannot be read: {said(error)}")
        return entries

    def forget(self) -> None:
        """What was read is read again when it is needed: packages were installed meanwhile."""
        with self._lock:
            self._found = None
        for table in TABLES:
            table.forget()


class Table(Mapping[str, _T], Generic[_T]):
    """A table of named rows: its own, and after them those of other packages.

    Own rows are found without a look at anything else.
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
            kind: what a row is.
            own: the rows of this package.
            accept: looks at another package's row (its second argument is the package, in words),
                and gives the row to add; raises ValueError for one that cannot be.
            name_of: a row's name.
        """
        self.group = group
        self._kind = kind
        self._own = MappingProxyType({name_of(row): row for row in own})
        self._accept = accept
        self._name_of = name_of
        self._added: dict[str, _T | None] = {}  # None: it was tried, and cannot be
        self._sources: dict[str, str] = {}
        self._lock = threading.RLock()
        TABLES.append(self)

    def __getitem__(self, name: str) -> _T:
        if not isinstance(name, str):
            raise KeyError(name)  # a list has no hash
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
        return self._sources.get(name, "") if name not in self._own else ""

    def forget(self) -> None:
        """The rows of other packages are looked for again when they are needed."""
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
            return self._added.get(name)  # it may have had the table forget

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
        """A row is none while it is loaded, to itself too; it is tried again where that was
        interrupted, or a warning is an error."""
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
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever it does when imported
            self._refuse(points, f"it does not load: {said(error)}")
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


def said(error: BaseException) -> str:
    """An error on one line."""
    words = " ".join(str(error).split())
    return f"{type(error).__name__}: {words}" if words else type(error).__name__


def _warn(words: str) -> None:
    warnings.warn(words, PluginWarning, stacklevel=2)


_OURS = "zerostride"
#: Every table, to be told to forget.
TABLES: list[Table[Any]] = []
PLUGINS = Plugins()


__all__ = ["GROUPS", "PLUGINS", "Table", "package_of", "said"]
