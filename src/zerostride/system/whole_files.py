"""Files that are written whole or not at all, and what a killed run left of them.

A file is written under a name of its own beside its place and takes the place when it is whole. A
process that is killed meanwhile leaves the file; the next one that writes into the folder takes it
away, when it is old and the process that made it is gone.
"""

from __future__ import annotations

import functools
import os
import re
import secrets
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

#: Seconds for which a file that nobody seems to own is left: clocks, and machines that share a
#: folder, may differ by hours.
_KEPT_FOR = 24 * 3600
_TEMPORARY = re.compile(r"\.zerostride-(\d{1,10})-[0-9a-f]{16}(\..*)?", re.DOTALL)
#: What the ends of names begin with that keep the files which are being replaced.
OLD = ".old"


def temporary_name(goal: Path) -> Path:
    """A name beside a file that nothing has, which tells who made it."""
    return goal.with_name(f".zerostride-{os.getpid()}-{secrets.token_hex(8)}{goal.suffix}")


def write_whole(*writes: tuple[Path, Callable[[BinaryIO], object]]) -> None:
    """Writes files beside their places, and then gives them these, in order.

    Args:
        writes: each file, links followed, and what writes its content.

    Raises:
        OSError: one cannot be written; none has changed, unless the last step failed.
    """
    temporary: list[Path] = []
    try:
        for goal, write in writes:
            sweep(goal.parent)
            temporary.append(temporary_name(goal))
            with temporary[-1].open("xb") as file:
                write(file)
        for name, (goal, _) in zip(temporary, writes, strict=True):
            os.replace(name, goal)
    finally:
        for name in temporary:
            with suppress(OSError):
                name.unlink(missing_ok=True)


@functools.lru_cache(64)  # once a process: the folder of the cache has many files
def sweep(folder: Path) -> None:
    """Takes away what killed processes of this user left in a folder, more than a day ago.

    A file stays whose process lives, that a link stands for, that is another user's, or that is the
    only copy of a file which was being replaced. On Windows all stay: it cannot be asked there
    whether a process lives.
    """
    if os.name != "posix":
        return
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            match = _TEMPORARY.fullmatch(entry.name)
            if match is None:
                continue
            with suppress(OSError):  # another process sweeps, too
                if _is_left(entry.stat(follow_symlinks=False), match):
                    os.unlink(entry.path)


def _is_left(status: os.stat_result, name: re.Match[str]) -> bool:
    process, end = name.groups(default="")
    return (
        stat.S_ISREG(status.st_mode)
        and status.st_uid == os.geteuid()
        and time.time() - status.st_mtime > _KEPT_FOR
        and not (end.startswith(OLD) and status.st_nlink == 1)
        and not _lives(int(process))
    )


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):  # another user's
        return True
    return True
