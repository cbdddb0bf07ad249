"""The folder of a conversion: all of its files are written together, or none is.

`convert.json` says which files belong together. It is written last, so a run that was killed leaves
whole files that the next run does not trust.
"""

from __future__ import annotations

import errno
import filecmp
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from ...errors import ModelError
from ...system.whole_files import write_whole

#: The file that says which conversions in a folder are whole, for the next run.
STATE = "convert.json"
#: The errors of a full disk, a used-up quota and a limit on the size of files, as messages have
#: them; a child that meets the limit is ended by a signal.
_NO_ROOM = (*map(os.strerror, (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)), "SIGXFSZ")


def folder_at(path: Path) -> Path:
    """The folder, which is made.

    Raises:
        ModelError: it cannot be made.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise ModelError(
            f"{path}: no folder can be made there: it is a file; -o names the folder"
        ) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ModelError(f"{path}: no folder can be made there: {reason}") from None
    return path


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A temporary folder. The error of a full disk says which variable moves it."""
    with tempfile.TemporaryDirectory(prefix="zerostride-") as place:
        try:
            yield Path(place)
        except ModelError as error:
            if place not in str(error) or not is_no_room(str(error)):
                raise
            hint = "TMPDIR names the folder of temporary files"
            raise ModelError(f"{error} ({hint})") from None


def is_no_room(message: str) -> bool:
    """Whether an error's message is that of a full disk."""
    return any(words in message for words in _NO_ROOM)


def state_of(folder: Path) -> dict[str, Any]:
    """The files of whole conversions in a folder, by the first one's name; empty if unreadable."""
    try:
        state = json.loads((folder / STATE).read_bytes())
    except (OSError, ValueError):
        return {}
    return state if isinstance(state, dict) else {}


def digest(file: Path) -> str:
    """The file's SHA-256; "" if it cannot be read."""
    try:
        with file.open("rb") as content:
            return hashlib.file_digest(content, "sha256").hexdigest()
    except OSError:
        return ""


def put(staged: Path, folder: Path, own: Sequence[str], others: Mapping[str, bytes]) -> None:
    """Writes the files of a temporary folder into the folder, all together, the state last.

    Files that are there already stay as they are.

    Args:
        staged: the temporary folder, with a state of its own.
        folder: the folder.
        own: the names that another run's files may have; no other file is replaced.
        others: further files by name.

    Raises:
        ModelError: a file cannot be written. Then none has changed, unless it was the system that
            stopped in between.
    """
    writes: list[tuple[Path, Callable[[BinaryIO], object]]] = []
    for file in sorted(file for file in staged.rglob("*") if file.is_file()):
        name = file.relative_to(staged)
        if str(name) != STATE and not _is_there(folder / name, file, known=str(name) in own):
            writes.append((_goal(folder / name), partial(_copy, file, folder / name)))
    state = {**state_of(folder), **state_of(staged)}
    contents = {**others, **({STATE: json.dumps(state, indent=1).encode()} if state else {})}
    writes += [
        (_goal(folder / name), partial(_write, data, folder / name))
        for name, data in contents.items()
    ]
    try:
        write_whole(*writes)
    except OSError as error:
        where = error.filename2 or folder
        raise ModelError(f"{where}: {error.strerror or error}; nothing was written") from None


def _is_there(goal: Path, file: Path, *, known: bool) -> bool:
    """Whether the folder has the file.

    Raises:
        ModelError: it has another file of the name, which is not known as a conversion's.
    """
    if not goal.exists():
        return False
    if goal.is_file() and filecmp.cmp(file, goal, shallow=False):
        return True
    if not known:
        raise ModelError(
            f"{goal}: the model needs its data under this name, and something else is there; "
            "convert into an empty folder"
        )
    return False


def _goal(path: Path) -> Path:
    """Where a file goes, links followed; its folder is made."""
    goal = Path(os.path.realpath(path))
    if goal.exists() and not goal.is_file():
        raise ModelError(f"{path}: not a regular file")
    goal.parent.mkdir(parents=True, exist_ok=True)
    return goal


def _copy(file: Path, place: Path, goal: BinaryIO) -> None:
    with file.open("rb") as content, _named(place):
        shutil.copyfileobj(content, goal)
        _finish(goal)


def _write(data: bytes, place: Path, goal: BinaryIO) -> None:
    with _named(place):
        goal.write(data)
        _finish(goal)


def _finish(goal: BinaryIO) -> None:
    """Writes all to the disk, which may be full."""
    goal.flush()
    os.fsync(goal.fileno())


@contextmanager
def _named(place: Path) -> Iterator[None]:
    """Names the file in an error of writing."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        room = "; make room, then run the same command again" if is_no_room(reason) else ""
        raise ModelError(f"{place}: {reason}; nothing was written{room}") from None
