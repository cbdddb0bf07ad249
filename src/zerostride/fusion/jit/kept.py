"""Machine code on disk: a program that one process compiled runs compiled in the next.

A file holds one body (`image`). Its name is a digest of all that its code depends on: the steps,
the instruction set, and the versions of zerostride, of the code that writes bodies, and of LLVM.
Code of a file is executed, so the folder and the file must belong to the user, and nobody else may
write to them; a file must be whole, by its own digest. Anything else counts as not kept.

`ZEROSTRIDE_CACHE=off` keeps nothing, and names another folder otherwise.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
import stat
import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ...system.cache_folder import cache_folder
from ...system.version import __version__
from ..schedule.program import Phase
from .image import Image

#: The most files and bytes that are kept; the oldest are removed. A body has some kilobytes.
MOST_FILES, MOST_BYTES = 4096, 64 << 20
#: The most bytes of one file.
LONGEST = 1 << 20
_MAGIC = b"zsbody1\n"
#: Scratch, whether it takes `past`, the entry, how many addresses, how many bytes.
_FACTS = struct.Struct("<q?III")
_DIGEST = hashlib.sha256().digest_size


@dataclass(frozen=True, slots=True)
class Kept:
    """A body's machine code, and what a call must give it."""

    image: Image
    scratch: int
    past: bool


def key_of(phase: Phase, *facts: object) -> str:
    """The name of a body's file.

    Args:
        phase: the phase; its shape, walks and stores do not matter to the code.
        facts: instruction set, splats, results, streamed, elements of every row, divides.
    """
    loads = tuple(load.dtype for load in phase.loads)
    steps = tuple((step.op, step.args, step.dtypes) for step in phase.steps)
    literals = tuple((repr(row.value), row.dtype) for row in phase.literals)
    text = repr((loads, literals, steps, facts, _versions()))
    return hashlib.sha256(text.encode()).hexdigest()


@functools.cache
def _versions() -> tuple[object, ...]:
    """What the code of equal steps depends on besides: sizes and times stand for contents."""
    package = Path(__file__).parents[2]
    files = [*Path(__file__).parent.iterdir(), package / "compute" / "limits.py"]
    llvm = importlib.util.find_spec("llvmlite")
    files += [Path(llvm.origin)] if llvm is not None and llvm.origin else []
    return __version__, *sorted(_stamps(files))


def _stamps(files: list[Path]) -> Iterator[tuple[str, int, int]]:
    for file in files:
        if file.suffix in (".py", ".ll"):
            facts = file.stat()
            yield file.name, facts.st_size, facts.st_mtime_ns


def read(key: str) -> Kept | None:
    """The body of this name; None if it is not kept, or its file is not to be trusted."""
    folder = cache_folder("code")
    if folder is None:
        return None
    try:
        if not _is_own(os.lstat(folder), stat.S_ISDIR):
            return None
        handle = os.open(folder / key, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
        with open(handle, "rb") as file:
            if not _is_own(os.fstat(handle), stat.S_ISREG):
                return None
            data = file.read(LONGEST + 1)
        return _decoded(data)
    except (OSError, ValueError, struct.error):
        return None


def _is_own(facts: os.stat_result, is_kind: object) -> bool:
    """Whether it is of a kind, belongs to the user, and only the user can write to it."""
    return (
        is_kind(facts.st_mode)  # type: ignore[operator]
        and facts.st_uid == os.geteuid()
        and not facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    )


def _decoded(data: bytes) -> Kept | None:
    start = len(_MAGIC) + _DIGEST
    digest, rest = data[len(_MAGIC) : start], data[start:]
    if len(data) > LONGEST or not data.startswith(_MAGIC):
        return None
    if hashlib.sha256(rest).digest() != digest:
        return None
    scratch, past, entry, count, size = _FACTS.unpack_from(rest)
    moved = struct.unpack_from(f"<{count}I", rest, _FACTS.size)
    code = rest[_FACTS.size + 4 * count :]
    if len(code) != size or entry >= size or any(spot + 8 > size for spot in moved):
        return None
    return Kept(Image(code, moved, entry), scratch, past)


def write(key: str, kept: Kept) -> None:
    """Keeps a body. A folder that cannot be written, or that others can write to, keeps nothing."""
    folder = cache_folder("code")
    if folder is None:
        return
    image = kept.image
    facts = (kept.scratch, kept.past, image.entry, len(image.moved), len(image.data))
    rest = _FACTS.pack(*facts) + struct.pack(f"<{len(image.moved)}I", *image.moved) + image.data
    data = _MAGIC + hashlib.sha256(rest).digest() + rest
    if len(data) > LONGEST:
        return
    from ...system.whole_files import write_whole  # its imports take as long as a first call

    with suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if _is_own(os.lstat(folder), stat.S_ISDIR):
            write_whole((folder / key, lambda file: file.write(data)))
            os.chmod(folder / key, 0o600)
            _keep_bounded(folder, len(data))


#: By folder, the files and bytes that this process may still write before it lists the folder.
_ROOM: dict[Path, tuple[int, int]] = {}


def _keep_bounded(folder: Path, size: int) -> None:
    """Keeps a folder within the limits after a file of `size` bytes was written.

    A listing of thousands of files takes longer than a write, so it makes room for an eighth of the
    limits at once. It never counts on more room: other processes write to the folder, too.
    """
    files, left = _ROOM.get(folder, (0, 0))
    if files < 1 or left < size:
        files, left = MOST_FILES // 8, MOST_BYTES // 8
        _trim(folder, MOST_FILES - files, MOST_BYTES - left)
        _ROOM[folder] = files, left
    else:
        _ROOM[folder] = files - 1, left - size


def _trim(folder: Path, most_files: int, most_bytes: int) -> None:
    """Removes the oldest files beyond these numbers."""
    entries = sorted(
        (facts.st_mtime, facts.st_size, entry.path)
        for entry in os.scandir(folder)
        for facts in (entry.stat(follow_symlinks=False),)
    )
    total = sum(size for _, size, _ in entries)
    count = len(entries)
    for _, size, path in entries:
        if count <= most_files and total <= most_bytes:
            break
        os.unlink(path)
        count, total = count - 1, total - size


__all__ = ["Kept", "key_of", "read", "write"]
