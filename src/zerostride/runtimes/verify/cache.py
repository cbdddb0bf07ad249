"""Earlier answers of engines, by task and release: one small file an answer."""

from __future__ import annotations

import hashlib
import json
import math
import os
from pathlib import Path
from typing import Any

from ...models.findings import Outcome
from ...system.cache_folder import cache_folder
from ...system.version import __version__
from ...system.whole_files import write_whole
from .compare import Agreement

#: The most files that are kept; the oldest are removed.
MOST = 20_000
#: The most bytes of an entry that is read; ours are far smaller.
_LONGEST = 65_536
#: Grows when the form of an entry changes, or how operands are drawn and compared.
_FORM = 2


class Cache:
    """Answers by key. If a file cannot be read, the engine is asked again."""

    def __init__(self, engine: str, release: str, *, on: bool = True) -> None:
        named = cache_folder("verify")
        self.on = on and named is not None
        self.folder = named or Path()
        self._who = (_FORM, __version__, engine, release)
        self._written = 0

    def _path(self, key: str) -> Path:
        name = hashlib.sha256(repr((*self._who, key)).encode()).hexdigest()
        return self.folder / f"{name}.json"

    def get(self, key: str) -> Agreement | None:
        """The answer to a task, if its file exists and is complete."""
        if not self.on:
            return None
        try:
            with self._path(key).open("rb") as handle:
                entry = json.loads(handle.read(_LONGEST))
            return _checked(entry, key)
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None

    def put(self, key: str, answer: Agreement) -> None:
        """Stores an answer. A crash is not stored: it may come from a lack of memory."""
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
            self.on = False  # the folder cannot be written; the answer is still valid

    def trim(self) -> None:
        """Removes the oldest entries beyond the limit."""
        if not self._written:
            return
        try:
            entries = [(entry.stat().st_mtime, entry.path) for entry in os.scandir(self.folder)]
            for _, path in sorted(entries)[: max(0, len(entries) - MOST)]:
                os.unlink(path)
        except OSError:
            return  # another run trims it, too


def _checked(entry: Any, key: str) -> Agreement:
    """The answer of an entry; ValueError, KeyError or TypeError if it is malformed."""
    elements, error, detail = entry["elements"], entry["error"], entry["detail"]
    whole = isinstance(elements, int) and isinstance(error, int | float) and isinstance(detail, str)
    if entry["key"] != key or not whole or elements < 0 or math.isnan(error):
        raise ValueError("not an entry of this task")
    return Agreement(Outcome(entry["outcome"]), detail, elements, float(error))
