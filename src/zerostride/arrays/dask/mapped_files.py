"""Mapped files in Dask's graphs: by name, not by content."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...fusion.schedule.blocks import mapping

if TYPE_CHECKING:
    import dask.array as da


@dataclass(frozen=True, slots=True)
class Mapped:
    """An array in a file, opened where a part of it is read.

    A `numpy.memmap` is pickled with all of its contents, too much for a graph. This object names
    the file: workers read their chunks themselves, and so need access to it under that name.

    Attributes:
        file: its path.
        dtype: of its elements.
        shape: of the array.
        offset: bytes before it in the file.
        order: "C" or "F".
    """

    file: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    offset: int
    order: Any

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        written = os.stat(self.file).st_mtime_ns  # changed contents get another token
        identity = (self.file, written, str(self.dtype), self.shape, self.offset, self.order)
        return "zerostride-mapped", *identity

    def __getitem__(self, key: Any) -> Any:
        array = np.memmap(self.file, self.dtype, "r", self.offset, self.shape, self.order)
        return array[key].view(np.ndarray)


def as_mapped(array: Any) -> Mapped | None:
    """The stand-in for a mapped array in a graph; None for other arrays and for parts of a file.

    >>> as_mapped(np.ones(3)) is None
    True
    """
    whole = mapping(array)
    if whole is None or whole.filename is None or array.dtype.hasobject:
        return None
    begin = whole.__array_interface__["data"][0]
    if array.__array_interface__["data"][0] != begin or array.nbytes != whole.nbytes:
        return None
    flags = array.flags
    if not (flags.c_contiguous or flags.f_contiguous):
        return None
    order = "C" if flags.c_contiguous else "F"
    return Mapped(str(whole.filename), array.dtype, array.shape, whole.offset, order)


def from_memmap(array: np.memmap[Any, Any], chunks: Any = "auto") -> da.Array:
    """A Dask array of a mapped file, whose tasks read their chunks by the file's name.

    `dask.array.from_array` of the array works with threads of one machine; to other processes it
    would send the whole contents.

    Args:
        array: a whole mapped file, as `numpy.memmap` returns it.
        chunks: as `dask.array.from_array` takes them.

    Raises:
        TypeError: it is not a mapped file, or is a part of one.
    """
    import dask.array as da

    mapped = as_mapped(array)
    if mapped is None:
        raise TypeError("from_memmap takes a whole numpy.memmap; map the part itself by offset=")
    return da.from_array(mapped, chunks=chunks, meta=np.empty((0,) * array.ndim, array.dtype))
