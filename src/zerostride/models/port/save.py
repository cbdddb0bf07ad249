"""Files written beside their final place and moved there together, or not at all."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from ...errors import ModelError
from ...system.whole_files import OLD, sweep, temporary_name


def check_goal(path: Path) -> Path:
    """The path where a model is to be written, links followed.

    Raises:
        ModelError: no file can be written there.
    """
    try:
        goal = Path(os.path.realpath(path))
        if goal.exists() and not stat.S_ISREG(goal.stat().st_mode):
            raise ModelError(f"{path}: not a regular file")
        if not goal.parent.is_dir():
            raise ModelError(f"{path}: there is no folder {str(goal.parent)!r}")
    except OSError as error:
        raise ModelError(f"{path}: {error.strerror or error}") from None
    except ModelError:
        raise
    except ValueError as error:  # a NUL in the name
        raise ModelError(f"{path}: {error}") from None
    return goal


@contextmanager
def staging(goal: Path) -> Iterator[Path]:
    """A temporary name beside the goal; files of its stem are removed afterwards."""
    sweep(goal.parent)
    path = temporary_name(goal)
    try:
        yield path
    except ModelError as error:
        error.args = (str(error).replace(str(path), str(goal)), *error.args[1:])
        raise
    finally:
        _remove(_of_stem(path))


def _of_stem(path: Path) -> list[Path]:
    """The files beside a path whose names begin like its own."""
    with suppress(OSError):
        return [file for file in path.parent.iterdir() if file.name.startswith(f"{path.stem}.")]
    return []


def _remove(files: Iterable[Path]) -> None:
    for file in files:
        with suppress(OSError):
            file.unlink(missing_ok=True)


@contextmanager
def kept_if_done(files: Sequence[Path]) -> Iterator[None]:
    """Removes the files again if the block fails."""
    try:
        yield
    except BaseException:
        _remove(files)
        raise


def install(staged: Path, goal: Path) -> None:
    """Gives staged files their names, the model last; restores the old files if that fails.

    Args:
        staged: the written model; files that belong to it have the same stem.
        goal: the final path of the model.

    Raises:
        ModelError: a file cannot be moved there.
    """
    rest = [file for file in _of_stem(staged) if file != staged]
    done: list[tuple[Path, Path | None]] = []
    try:
        for k, file in enumerate((*rest, staged)):
            place = goal.with_name(goal.stem + file.name.removeprefix(staged.stem))
            if place.exists() and not place.is_file():
                raise ModelError(f"{place}: not a regular file")
            old = None
            if place.exists():
                old = staged.with_name(f"{staged.stem}{OLD}{k}")
                _keep(place, old)
            _finish(file, place)
            done.append((place, old))
            os.replace(file, place)
    except OSError as error:
        _restore(done)
        raise ModelError(f"{error.filename or goal}: {error.strerror or error}") from None
    except ModelError:
        _restore(done)
        raise


def _keep(file: Path, name: Path) -> None:
    """A second name for a file that is about to be replaced."""
    try:
        os.link(file, name)
    except OSError:  # not every file system has links
        shutil.copy2(file, name)


def _finish(file: Path, place: Path) -> None:
    """Gives a file the old file's rights, or those of a new file, and flushes it to disk."""
    if place.exists():
        rights = stat.S_IMODE(place.stat().st_mode)
    else:
        mask = os.umask(0)
        os.umask(mask)
        rights = 0o666 & ~mask
    os.chmod(file, rights)
    with file.open("rb") as handle:
        os.fsync(handle.fileno())


def _restore(done: Sequence[tuple[Path, Path | None]]) -> None:
    for place, old in reversed(done):
        with suppress(OSError):
            if old is None:
                place.unlink(missing_ok=True)
            elif old.exists():
                os.replace(old, place)
