"""Read untrusted model files: regular, bounded, not empty; their weights; write temporary files."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path

from ...errors import ModelError, ZerostrideError


def content(file: Path, what: str, most: int, beyond: str) -> bytes:
    """The bytes of a file.

    Args:
        file: its path.
        what: the file's kind for the message about a folder: ".onnx".
        most: the greatest number of bytes.
        beyond: the end of the message about a larger file.

    Raises:
        ModelError: the file does not exist, is a folder or a pipe, is too large or empty.
    """
    try:
        status = file.stat()
        if stat.S_ISDIR(status.st_mode):
            raise ModelError(f"{file}: a folder; name the {what} file in it")
        if not stat.S_ISREG(status.st_mode):
            # Reading a pipe or a device may never end.
            raise ModelError(f"{file}: not a regular file")
        if status.st_size > most:
            raise ModelError(f"{file}: {status.st_size} bytes; {beyond}")
        if not status.st_size:
            raise ModelError(f"{file}: the file is empty")
        return file.read_bytes()
    except OSError as error:
        raise ModelError(f"{file}: {error.strerror or error}") from None
    except ModelError:  # ModelError is a ValueError
        raise
    except ValueError as error:  # a NUL in the name
        raise ModelError(f"{file}: {error}") from None


def section(file: Path, start: int, count: int, what: str) -> bytes:
    """Bytes of a file that was checked before: weights, which are read when they are needed.

    Args:
        file: its path.
        start: the first byte.
        count: the number of bytes.
        what: the name of the bytes for messages.

    Raises:
        ModelError: the file has gone, or is too short.
    """
    try:
        with file.open("rb") as data:
            data.seek(start)
            raw = data.read(count)
    except OSError as error:
        raise ModelError(f"{file}: {error.strerror or error}") from None
    if len(raw) < count:
        raise ModelError(f"{file}: too short for {what}")
    return raw


def write_scratch(path: Path, write: Callable[[Path], object]) -> None:
    """Writes a file into a temporary folder; ZerostrideError if the folder has no room for it."""
    try:
        write(path)
    except OSError as error:
        raise ZerostrideError(
            f"{path.parent}: {error.strerror or error} (TMPDIR names the folder of temporary files)"
        ) from None
