"""The bytes of a model file, from strangers: a regular file, bounded, not empty."""

from __future__ import annotations

import stat
from pathlib import Path

from ...errors import ModelError


def content(file: Path, what: str, most: int, beyond: str) -> bytes:
    """The bytes of a file.

    Args:
        file: its path.
        what: the files that are meant, for who named a folder: ".onnx".
        most: how many bytes it may have.
        beyond: what is said of one that has more.

    Raises:
        ModelError: there is no such file, or it is a folder, a pipe, too large or empty.
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
    except ModelError:  # a ValueError, too
        raise
    except ValueError as error:  # a NUL in the name
        raise ModelError(f"{file}: {error}") from None
