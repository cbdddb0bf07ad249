"""Files as the command line reads and writes them: arrays mapped, results whole or not at all."""

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
    """A .npy file, mapped and not read; never unpickled.

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
            warnings.simplefilter("ignore")  # sizes that overflow are refused a line further on
            return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
    except OSError as error:
        raise ZerostrideError(f"{path}: {error.strerror or error}") from None
    except _HEADER_ERRORS as error:
        raise ZerostrideError(f"{path}: not a plain .npy array ({error})") from None


#: A header is a Python literal, and whatever reading one can raise, a bad file makes it raise.
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
    # A link stays a link: what it points to is replaced.
    target = Path(os.path.realpath(path))
    try:
        if target.exists() and not target.is_file():
            # Replacing /dev/null by a file would be a disaster, not an answer.
            raise ZerostrideError(f"{path}: not a regular file")
        whole_files.write_whole((target, write))
    except OSError as error:
        raise ZerostrideError(f"{path}: {error.strerror or error}") from None


def physical_memory() -> int | None:
    """Bytes of memory this machine has, or None where the system does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None
