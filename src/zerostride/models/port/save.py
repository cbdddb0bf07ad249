"""Files written beside their final place and put there together, or not at all."""

from __future__ import annotations

import filecmp
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from ...errors import ModelError


def check_goal(path: Path) -> Path:
    """Where a model is to be written, links followed.

    Raises:
        ModelError: no file can be written there.
    """
    goal = Path(os.path.realpath(path))
    try:
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
    """A folder beside the goal, on the same file system, gone afterwards.

    Raises:
        ModelError: it cannot be made.
    """
    try:
        folder = Path(tempfile.mkdtemp(prefix=".zerostride-", dir=goal.parent))
    except OSError as error:
        raise ModelError(f"{goal.parent}: {error.strerror or error}") from None
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def install(files: Sequence[Path], folder: Path, goal: Path) -> tuple[Path, ...]:
    """Puts staged files in their places, the model last; the old ones stay if that fails.

    A file that the model only refers to (external data) takes nobody's place: one of the same name
    must have the same bytes.

    Args:
        files: the staged files, the model first.
        folder: where they are staged.
        goal: where the model goes.

    Returns:
        Where they are now.

    Raises:
        ModelError: one cannot be put there.
    """
    places = [goal.parent / file.relative_to(folder) for file in files]
    kept = folder / "replaced"
    done: list[tuple[Path, Path | None]] = []
    try:
        kept.mkdir()
        pairs = list(zip(files, places, strict=True))
        for k, (file, place) in enumerate((*pairs[1:], pairs[0])):
            if _is_there(file, place, goal):
                continue
            place.parent.mkdir(parents=True, exist_ok=True)
            old = None
            if place.exists():
                old = kept / str(k)
                os.link(place, old)
            _finish(file, place)
            done.append((place, old))
            os.replace(file, place)
    except OSError as error:
        _restore(done)
        raise ModelError(f"{error.filename or goal}: {error.strerror or error}") from None
    except ModelError:
        _restore(done)
        raise
    return tuple(places)


def _is_there(file: Path, place: Path, goal: Path) -> bool:
    """Whether a staged file is in its place already."""
    if not place.exists():
        return False
    if not place.is_file():
        raise ModelError(f"{place}: not a regular file")
    if file.samefile(place):
        return True
    if place.stem == goal.stem:
        return False
    if filecmp.cmp(file, place, shallow=False):
        return True
    raise ModelError(
        f"{place}: the model refers to a file of this name, and another one is there; "
        "write the model to an empty folder"
    )


def _finish(file: Path, place: Path) -> None:
    """The rights that the old file had, or a new one gets; a link to other data becomes a copy."""
    if file.stat().st_nlink > 1:
        copy = file.with_name(file.name + ".copy")
        shutil.copyfile(file, copy)
        os.replace(copy, file)
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


__all__ = ["check_goal", "install", "staging"]
