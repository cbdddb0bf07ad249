"""Files written beside their final place and put there together, or not at all."""

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
    """Where a model is to be written, links followed.

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
    """A name beside the goal to write to, with files of the same stem; they are gone afterwards."""
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
    """Takes the files away again if what follows fails."""
    try:
        yield
    except BaseException:
        _remove(files)
        raise


def install(staged: Path, goal: Path) -> None:
    """Gives staged files their names, the model last; the old files come back if that fails.

    Args:
        staged: the model as it was written; what goes with it has the same stem.
        goal: where the model goes.

    Raises:
        ModelError: one cannot be put there.
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
    """The rights that the old file had, or a new one gets; and on disk, before it takes a name."""
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


__all__ = ["check_goal", "install", "kept_if_done", "staging"]
