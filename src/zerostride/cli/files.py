"""Files as the command line reads and writes them: arrays mapped, results whole or not at all."""

from __future__ import annotations

import os
import stat
import tempfile
import tokenize
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from ..errors import ZerostrideError

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
    with _replacing(path) as handle:
        np.save(handle, array, allow_pickle=False)


def write_whole(path: str, data: bytes) -> None:
    """Writes a file whole or not at all."""
    with _replacing(path) as handle:
        handle.write(data)


@contextmanager
def _replacing(path: str) -> Iterator[IO[bytes]]:
    """A temporary file beside the target, which takes its name when all went well."""
    # A link stays a link: what it points to is replaced.
    target = Path(os.path.realpath(path))
    made: str | None = None
    try:
        if target.exists() and not target.is_file():
            # Replacing /dev/null by a file would be a disaster, not an answer.
            raise ZerostrideError(f"{path}: not a regular file")
        with tempfile.NamedTemporaryFile(
            dir=target.parent, prefix=".zerostride-", delete=False
        ) as handle:
            made = handle.name
            yield handle
        os.chmod(made, _usual_rights())
        os.replace(made, target)
        made = None
    except OSError as error:
        raise ZerostrideError(f"{path}: {error.strerror or error}") from None
    finally:
        if made is not None:
            os.unlink(made)


def _usual_rights() -> int:
    """NamedTemporaryFile makes private files; others have what the umask leaves."""
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def physical_memory() -> int | None:
    """Bytes of memory this machine has, or None where the system does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None
