"""Finds the model files that arguments name: files, folders and patterns."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from ...errors import ZerostrideError
from ..findings import Unread
from . import FORMATS
from .other_files import advice_for

#: Most models of one call. More are a mistake, such as a search from the root of a disk.
MOST_MODELS = 100_000
#: Most folder entries that a search visits.
MOST_ENTRIES = 2_000_000
#: Marks near the beginning of model files whose suffix other files use too. A search takes only
#: files with the mark. A file that the caller names is read without it.
_MARKS = {".xml": b"<net", ".param": b"7767517", ".json": b'"pir"'}
_BEGINNING = 65_536
#: Folders of installed packages, whose models are their tests'.
_INSTALLED = frozenset({"node_modules", "site-packages"})


def suffixes() -> tuple[str, ...]:
    """The suffixes of model files."""
    return tuple(suffix for row in FORMATS.values() for suffix in row.suffixes)


def find_models(words: Sequence[str]) -> list[str | Unread]:
    """The models that words name, each once, in the order of the words.

    A file is one model. A folder means the model files in it and below it, ordered by path; hidden
    files and folders, links to folders, links out of the folder, virtual environments and installed
    packages are skipped. A pattern (`*`,
    `?`, `[...]`, `**`) means the model files and folders that match it, unless a file has that
    name.

    Raises:
        ZerostrideError: more models or folder entries than the limits.
    """
    models: dict[str, str | Unread] = {}
    for word in words:
        for model in _named(word):
            key = model if isinstance(model, str) else f"\0{model.model}"
            models.setdefault(os.path.normpath(key), model)
            if len(models) > MOST_MODELS:
                raise ZerostrideError(f"{word}: there are more than {MOST_MODELS:,} models")
    return list(models.values())


def is_single(words: Sequence[str]) -> bool:
    """Whether words name one model file, without a search."""
    return len(words) == 1 and not os.path.isdir(words[0]) and not _is_pattern(words[0])


def _is_pattern(word: str) -> bool:
    return glob.has_magic(word) and not os.path.lexists(word)


def _named(word: str) -> Iterator[str | Unread]:
    if os.path.isdir(word):
        yield from _or_nothing(word, _in_folder(word))
    elif _is_pattern(word):
        yield from _or_nothing(word, _matching(word))
    else:
        yield word


def _or_nothing(word: str, models: Iterator[str | Unread]) -> Iterator[str | Unread]:
    """The models, or one Unread without models: an empty search is probably a mistake."""
    nothing = True
    for model in models:
        nothing = False
        yield model
    if nothing:
        why = advice_for(Path(word)) or f"no model files there ({' '.join(suffixes())})"
        yield Unread(word, f"{word}: {why}")


def _matching(pattern: str) -> Iterator[str | Unread]:
    try:
        matches = sorted(glob.iglob(pattern, recursive=True))
    except (OSError, ValueError) as error:
        raise ZerostrideError(f"{pattern}: {error}") from None
    for match in matches:
        if os.path.isdir(match):
            # A pattern with ** also matches the files below a folder.
            if "**" not in pattern:
                yield from _in_folder(match)
        elif _is_model(Path(match)):
            yield match


def _in_folder(folder: str) -> Iterator[str | Unread]:
    root = os.path.realpath(folder)
    looked = 0
    failures: list[OSError] = []
    for here, folders, files in os.walk(folder, onerror=failures.append):
        folders[:] = sorted(name for name in folders if not _is_left_out(here, name))
        looked += len(folders) + len(files)
        if looked > MOST_ENTRIES:
            raise ZerostrideError(f"{folder}: there are more than {MOST_ENTRIES:,} files")
        for name in sorted(files):
            path = Path(here, name)
            if not name.startswith(".") and _stays(path, root) and _is_model(path):
                yield str(path)
    for error in failures:
        yield Unread(str(error.filename), f"{error.filename}: {error.strerror}")


def _is_left_out(here: str, name: str) -> bool:
    """Whether a search leaves a folder out: hidden ones, and those of installed packages."""
    return name.startswith(".") or name in _INSTALLED or Path(here, name, "pyvenv.cfg").is_file()


def _stays(path: Path, root: str) -> bool:
    """Whether a file is in the folder, or a link to a file in it."""
    if not path.is_symlink():
        return True
    real = os.path.realpath(path)
    return os.path.commonpath((root, real)) == root


def _is_model(path: Path) -> bool:
    """Whether a file of a search is a model, by its name, or by the mark near its beginning."""
    name = path.name.lower()
    if not name.endswith(suffixes()) or not path.is_file():
        return False
    mark = next((mark for suffix, mark in _MARKS.items() if name.endswith(suffix)), None)
    if mark is None:
        return True
    if name.endswith(".pnnx.param"):
        return False  # pnnx's own graph beside ncnn's file, with ops that ncnn lacks
    try:
        with path.open("rb") as file:
            return mark in file.read(_BEGINNING)
    except OSError:
        return True  # the reader reports why it cannot be read
