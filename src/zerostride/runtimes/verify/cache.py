"""What engines answered before, by content and release: one small file an answer."""

from __future__ import annotations

import hashlib
import json
import math
import os
from pathlib import Path
from typing import Any

from ...models.findings import Outcome
from ...system.version import __version__
from ...system.whole_files import write_whole
from .compare import Agreement

#: Files that are kept; beyond that the oldest go.
MOST = 20_000
#: Bytes of an entry; ours are far smaller.
_LONGEST = 65_536
#: Grows when what an entry says, or how operands are drawn and compared, changes.
_FORM = 2
#: Names another folder.
ENVIRONMENT = "ZEROSTRIDE_CACHE"


def folder() -> Path | None:
    """Where answers are kept: the user's cache folder, as XDG has it; None for who has no home."""
    named = os.environ.get(ENVIRONMENT)
    if named:
        return Path(named) / "verify"
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    try:
        return Path(base).expanduser() / "zerostride" / "verify"
    except RuntimeError:  # neither HOME nor a home of the user, as in containers
        return None


class Cache:
    """Answers by key. Whatever goes wrong with a file, the engine is asked again."""

    def __init__(self, engine: str, release: str, *, on: bool = True) -> None:
        named = folder()
        self.on = on and named is not None
        self.folder = named or Path()
        self._who = (_FORM, __version__, engine, release)
        self._written = 0

    def _path(self, key: str) -> Path:
        name = hashlib.sha256(repr((*self._who, key)).encode()).hexdigest()
        return self.folder / f"{name}.json"

    def get(self, key: str) -> Agreement | None:
        """The answer to a task, if it is there and whole."""
        if not self.on:
            return None
        try:
            with self._path(key).open("rb") as handle:
                entry = json.loads(handle.read(_LONGEST))
            return _checked(entry, key)
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None

    def put(self, key: str, answer: Agreement) -> None:
        """Keeps an answer. A crash is not kept: a machine without memory crashes, too."""
        if not self.on or answer.outcome is Outcome.CRASHED:
            return
        entry = {
            "key": key,
            "outcome": answer.outcome,
            "detail": answer.detail,
            "elements": answer.elements,
            "error": answer.error,
        }
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            data = json.dumps(entry).encode()
            write_whole((self._path(key), lambda file: file.write(data)))
            self._written += 1
        except OSError:
            self.on = False  # a folder that cannot be written to: the answer is there all the same

    def trim(self) -> None:
        """Removes the oldest entries beyond what is kept."""
        if not self._written:
            return
        try:
            entries = [(entry.stat().st_mtime, entry.path) for entry in os.scandir(self.folder)]
            for _, path in sorted(entries)[: max(0, len(entries) - MOST)]:
                os.unlink(path)
        except OSError:
            return  # another run trims it, too


def _checked(entry: Any, key: str) -> Agreement:
    """An entry as an answer; ValueError, KeyError or TypeError where it is none."""
    elements, error, detail = entry["elements"], entry["error"], entry["detail"]
    whole = isinstance(elements, int) and isinstance(error, int | float) and isinstance(detail, str)
    if entry["key"] != key or not whole or elements < 0 or math.isnan(error):
        raise ValueError("not an entry of this task")
    return Agreement(Outcome(entry["outcome"]), detail, elements, float(error))
