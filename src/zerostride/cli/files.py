"""Files of the command line: arrays are mapped, results are written whole or not at all."""

from __future__ import annotations

import os
import stat
import tokenize
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ..errors import ZerostrideError
from ..system import whole_files

_NPY, _ZIP = b"\x93NUMPY", b"PK"


def open_array(path: str) -> np.ndarray[Any, Any]:
    """The array of a .npy file, memory-mapped; pickled data is refused.

    Raises:
        ZerostrideError: it cannot be opened, or holds no plain array.
    """
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise ZerostrideError(f"{path}: not a regular file")
        with open(path, "rb") as handle:
            start = handle.read(len(_NPY))
        if start[: len(_ZIP)] == _ZIP:
            raise ZerostrideError(f"{path}: an archive of arrays; give a single .npy file")
        if start != _NPY:
            raise ZerostrideError(f"{path}: not a .npy file")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # overflowing sizes are refused below
            return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
    except OSError as error:
        raise ZerostrideError(f"{path}: {error.strerror or error}") from None
    except _HEADER_ERRORS as error:
        raise ZerostrideError(f"{path}: not a plain .npy array ({error})") from None


#: A header is a Python literal; a bad file can raise any exception of its parser.
_HEADER_ERRORS = (
    EOFError,
    MemoryError,
    OverflowError,
    RecursionError,
    SyntaxError,
    TypeError,
    ValueError,
    tokenize.TokenError,
)


def write_array(path: str, array: np.ndarray[Any, Any]) -> None:
    """Writes a .npy file whole or not at all."""
    _write(path, lambda file: np.save(file, array, allow_pickle=False))


def write_whole(path: str, data: bytes) -> None:
    """Writes a file whole or not at all."""
    _write(path, lambda file: file.write(data))


def _write(path: str, write: Callable[[BinaryIO], object]) -> None:
    # A link stays a link; its target is replaced.
    target = Path(os.path.realpath(path))
    try:
        if target.exists() and not target.is_file():
            # A device such as /dev/null must not be replaced by a file.
            raise ZerostrideError(f"{path}: not a regular file")
        whole_files.write_whole((target, write))
    except OSError as error:
        raise ZerostrideError(f"{path}: {error.strerror or error}") from None


def physical_memory() -> int | None:
    """Bytes of this machine's memory, or None if the system does not report it."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None
