"""DLPack: a library's arrays in this processor's memory as NumPy's, without a copy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

#: DLPack's device number of this processor's memory.
CPU = 1


def is_here(array: Any) -> bool:
    """Whether an array reports that it lies in this processor's memory."""
    device = getattr(array, "__dlpack_device__", None)
    return device is not None and int(device()[0]) == CPU


def to_numpy(array: Any) -> NDArray[Any]:
    """NumPy's array of the same memory.

    Raises:
        TypeError: the library does not hand it out.

    >>> x = np.arange(3)
    >>> to_numpy(x).ctypes.data == x.ctypes.data
    True
    """
    try:
        return np.from_dlpack(array)
    except (BufferError, RuntimeError) as error:
        name = type(array).__name__
        raise TypeError(f"this {name} cannot be read where it lies: {error}") from error


def writable(array: Any) -> NDArray[Any]:
    """NumPy's array of the memory of an `out`.

    Raises:
        TypeError: the library's arrays cannot be written to.
    """
    target = to_numpy(array)
    if not target.flags.writeable:
        library = type(array).__module__.partition(".")[0]
        raise TypeError(f"out is read-only; leave it out, and {library} makes the array")
    return target
