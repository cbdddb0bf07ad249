"""Write files completely or not at all, and remove the remains of killed runs.

A file is first written beside its place under a temporary name, then renamed. A killed process
leaves the temporary file behind. The next process that writes into the folder removes it if it is
old and its writer has ended.
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

#: Seconds for which a file without a living writer is kept: clocks, and machines that share a
#: folder, may differ by hours.
_KEPT_FOR = 24 * 3600
_TEMPORARY = re.compile(r"\.zerostride-(\d{1,10})-[0-9a-f]{16}(\..*)?", re.DOTALL)
#: The start of the suffix of a temporary name that keeps a file which is being replaced.
OLD = ".old"


def temporary_name(goal: Path) -> Path:
    """An unused name beside a file; it holds the writer's process number."""
    return goal.with_name(f".zerostride-{os.getpid()}-{secrets.token_hex(8)}{goal.suffix}")


def write_whole(*writes: tuple[Path, Callable[[BinaryIO], object]]) -> None:
    """Writes files beside their places, then renames them into place, in order.

    Args:
        writes: each file, links followed, with the function that writes its content.

    Raises:
        OSError: a file cannot be written. No file has changed, unless a rename failed.
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


@functools.lru_cache(64)  # once a process: the cache folder has many files
def sweep(folder: Path) -> None:
    """Removes temporary files of this user's killed processes that are more than a day old.

    Kept are files whose process lives, links, files of other users, and the only copy of a file
    that was being replaced. On Windows all are kept, because it offers no way to ask whether a
    process lives.
    """
    if os.name != "posix":
        return
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            match = _TEMPORARY.fullmatch(entry.name)
            if match is None:
                continue
            with suppress(OSError):  # another process may sweep too
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
    except (OSError, OverflowError):  # the process is another user's
        return True
    return True
