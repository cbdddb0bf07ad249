"""The libraries: a row each. Nothing here imports one."""

from __future__ import annotations

import importlib
import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np

from ..core.plugins import Table

if TYPE_CHECKING:
    from .model import Adapter


@dataclass(frozen=True, slots=True)
class Row:
    """A library.

    Attributes:
        name: its name in messages.
        roots: the first parts of the module names of its arrays' types.
        types: the names of those types; their subclasses are arrays of the library, too.
        module: the module with its `ADAPTER`.
        takes: the libraries whose arrays it combines with its own.
        made: how to convert a NumPy array to the library, for messages.
        lowered: how to convert the library's array to NumPy.
    """

    name: str
    roots: tuple[str, ...]
    types: tuple[str, ...]
    module: str
    takes: frozenset[str] = frozenset()
    made: str = "its namespace's asarray(x)"
    lowered: str = "numpy.from_dlpack(x)"


_HERE = __name__.rpartition(".")[0]
_NUMPY = frozenset({"numpy"})

ROWS: tuple[Row, ...] = (
    Row(
        name="torch",
        roots=("torch",),
        # Numbers that PyTorch traces belong to it too.
        types=("Tensor", "SymInt", "SymFloat", "SymBool"),
        module=f"{_HERE}.torch.adapter",
        made="torch.from_numpy(x)",
        lowered="x.numpy()",
    ),
    Row(
        name="jax",
        roots=("jax", "jaxlib"),
        types=("Array", "ArrayImpl", "PRNGKeyArray", "Tracer"),
        module=f"{_HERE}.jax.adapter",
        takes=_NUMPY,
        made="jax.numpy.asarray(x)",
        lowered="numpy.asarray(x)",
    ),
    Row(
        name="cupy",
        roots=("cupy",),
        types=("ndarray",),
        module=f"{_HERE}.generic",
        made="cupy.asarray(x)",
        lowered="cupy.asnumpy(x)",
    ),
    Row(
        name="dask",
        roots=("dask",),
        types=("Array",),
        module=f"{_HERE}.dask.adapter",
        takes=_NUMPY,
        made="dask.array.from_array(x)",
        lowered="x.compute()",
    ),
    Row(
        name="xarray",
        roots=("xarray",),
        types=("DataArray", "Variable", "Dataset", "DataTree"),
        module=f"{_HERE}.xarray.adapter",
        takes=frozenset({"numpy", "dask", "cupy", "array_api_strict", "jax"}),
        made="xarray.DataArray(x, dims=...)",
        lowered="x.data",
    ),
    Row(
        name="array_api_strict",
        roots=("array_api_strict",),
        types=("Array",),
        module=f"{_HERE}.strict_",
        made="array_api_strict.asarray(x)",
    ),
)
#: The row of types with an array API namespace that have no other row.
_OTHERS = Row("", (), (), f"{_HERE}.generic")


#: Modules whose types are never another library's arrays.
_NO_LIBRARIES = frozenset({"builtins", "collections", "abc", "typing", "numpy", "zerostride"})


def _accept(row: Row, package: str) -> Row:
    """Another package's row: of one library, by the name of its module."""
    if row.roots != (row.name,):
        raise ValueError(f"roots are ({row.name!r},), the one module that the entry point is named")
    return row


#: The libraries by name; entry points of the group `zerostride.arrays` add to them.
_ADDED: Table[Row] = Table("zerostride.arrays", Row, ROWS, _accept, operator.attrgetter("name"))
#: A cache by type. Programs have a handful of types, unless they create types in a loop.
_KNOWN: dict[type, Row | None] = {}
_MOST = 1024


def find_row(kind: type) -> Row | None:
    """The row of a type, or None if it is not another library's array type.

    >>> find_row(dict) is None
    True
    """
    if kind in _KNOWN:
        return _KNOWN[kind]
    if len(_KNOWN) >= _MOST:
        _KNOWN.clear()
    row = _KNOWN[kind] = _search(kind)
    return row


def _search(kind: type) -> Row | None:
    if issubclass(kind, np.ndarray | np.generic) or hasattr(kind, "__zerostride_trace__"):
        return None
    for base in kind.__mro__:
        root = str(base.__module__).partition(".")[0]
        for row in ROWS:
            if root in row.roots and base.__name__ in row.types:
                return row
    for base in kind.__mro__:
        root = str(base.__module__).partition(".")[0]
        added = None if root in _NO_LIBRARIES else _ADDED.get(root)
        if added is not None and base.__name__ in added.types:
            return added
    if hasattr(kind, "__array_namespace__"):
        name = kind.__module__.partition(".")[0]
        return Row(name, (name,), (kind.__name__,), _OTHERS.module)
    return None


_ADAPTERS: dict[str, Adapter] = {}


def adapter(row: Row) -> Adapter:
    """The adapter of a row, imported when it is first asked for."""
    loaded = _ADAPTERS.get(row.module)
    if loaded is None:
        loaded = cast("Adapter", importlib.import_module(row.module).ADAPTER)
        _ADAPTERS[row.module] = loaded
    return loaded
