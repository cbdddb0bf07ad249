"""The folder of a conversion: all of its files are written together, or none is.

`convert.json` says which files belong together. It is written last, so a run that was killed leaves
whole files that the next run does not trust.
"""

from __future__ import annotations

import errno
import filecmp
import hashlib
import io
import json
import os
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ...errors import ModelError
from ...system.whole_files import write_whole
from ..task import Array

#: The file that says which conversions in a folder are whole, for the next run.
STATE = "convert.json"
#: The report, and how the conversion was done. It is no README.md: a user may have one there.
PAGE, RECORD = "report.html", "how.txt"
#: The most bytes of inputs that are written: a colleague gets the folder by mail.
_MOST_INPUTS = 64 << 20
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
            if tempfile.gettempdir() not in str(error) or not is_no_room(str(error)):
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


def input_files(runs: Sequence[Mapping[str, Array]]) -> dict[str, bytes]:
    """The inputs of each run: inputs.npz, inputs-2.npz; none if they are too large."""
    if sum(array.nbytes for run in runs for array in run.values()) > _MOST_INPUTS:
        return {}
    files = {}
    for number, run in enumerate(runs, 1):
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w") as archive:  # as np.savez, which takes no input "file"
            for name, array in run.items():
                with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as part:
                    np.lib.format.write_array(part, np.asarray(array), allow_pickle=False)
        files[f"inputs-{number}.npz" if number > 1 else "inputs.npz"] = content.getvalue()
    return files


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
    contents: dict[str, Callable[[BinaryIO], object]] = {}
    for file in sorted(file for file in staged.rglob("*") if file.is_file()):
        name = str(file.relative_to(staged))
        if name != STATE and not _is_there(folder / name, file, known=name in own):
            contents[name] = partial(_copy, file)
    contents |= {name: partial(_write, data) for name, data in others.items()}
    state = {**state_of(folder), **state_of(staged)}
    if state:
        contents[STATE] = partial(_write, json.dumps(state, indent=1).encode())
    done: list[str] = []

    def written(name: str, goal: BinaryIO) -> None:
        contents[name](goal)
        goal.flush()
        os.fsync(goal.fileno())  # here, not when it is closed, a full disk shows
        done.append(name)

    try:
        write_whole(*((_goal(folder / name), partial(written, name)) for name in contents))
    except OSError as error:
        names = [name for name in contents if name not in done]
        where, reason = folder / (names[0] if names else ""), error.strerror or str(error)
        room = "; make room, then run the same command again" if is_no_room(reason) else ""
        raise ModelError(f"{where}: {reason}; nothing was written{room}") from None


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


def _copy(file: Path, goal: BinaryIO) -> None:
    with file.open("rb") as content:
        shutil.copyfileobj(content, goal)


def _write(data: bytes, goal: BinaryIO) -> None:
    goal.write(data)
