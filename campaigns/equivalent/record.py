"""The record of real models: docs/optimisers.json, written as the campaign goes on.

A row holds of one model and one optimiser. It is made again if the model's file, the optimiser's
release or the sources of the comparison have changed. Steps that leave a model as it was have no
entry: they are the passes of `optimisers` that a finished row does not name.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ..evidence import ROOT, digest
from .result import UNCHANGED, Result, Row, results_of

RECORD = ROOT / "docs" / "optimisers.json"
#: The files that a verdict depends on.
SOURCES = (
    *("src/zerostride/models/equivalent", "src/zerostride/models/equivalence.py"),
    *("src/zerostride/models/flow", "src/zerostride/models/onnx_ops", "src/zerostride/sizes"),
    *("src/zerostride/runtimes/equivalent", "campaigns/equivalent/steps.py"),
    "campaigns/equivalent/passes.py",
)
#: Seconds between two writings.
_PAUSE = 5.0


class Record:
    """The rows of a campaign over real models.

    Args:
        path: its file; None: it is kept in memory.

    Attributes:
        data: what is written: `optimisers` with their releases and passes, `models` with their
            nodes and bytes, `skipped` with the bytes of each, and `rows`.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.sources = digest(SOURCES)
        self.data: dict[str, Any] = {"optimisers": {}, "models": {}, "skipped": {}, "rows": []}
        if path is not None and path.exists():
            self.data.update(json.loads(path.read_text("utf-8")))
        self._written = time.monotonic()

    def row(self, model: str, file: str, optimiser: str, release: str) -> Row:
        """The row of a model and an optimiser: the one that still holds, or a new one.

        Args:
            model: the model's name.
            file: a digest of its file.
            optimiser: the optimiser's name.
            release: its release.
        """
        of = {"model": model, "optimiser": optimiser}
        holds = {**of, "file": file, "release": release, "sources": self.sources}
        rows: list[Row] = self.data["rows"]
        for row in rows:
            if all(row[key] == value for key, value in holds.items()):
                return row
        rows[:] = [row for row in rows if any(row[key] != value for key, value in of.items())]
        rows.append({**holds, "done": "", "steps": 0, "results": []})
        return rows[-1]

    def add(self, row: Row, number: int, result: Mapping[str, Any]) -> None:
        """Adds the result of a step, and writes the record now and then."""
        row["steps"] = number + 1
        if result["end"] != UNCHANGED:
            row["results"].append(dict(result))
        if time.monotonic() - self._written > _PAUSE:
            self.write()

    def results(self, row: Row) -> list[Result]:
        """The results of a row's steps; see :func:`results_of`."""
        return results_of(row, self.data["optimisers"][row["optimiser"]]["passes"])

    def write(self) -> None:
        """Writes the file, a row in each line, so that a stop leaves the old or the new one."""
        self._written = time.monotonic()
        if self.path is None:
            return
        self.data["rows"].sort(key=lambda row: (row["model"], row["optimiser"]))
        new = self.path.with_suffix(".new")
        new.write_text(_text(self.data), "utf-8")
        os.replace(new, self.path)


def _text(data: Mapping[str, Any]) -> str:
    """JSON with an entry in each line."""
    parts = []
    for name, value in data.items():
        words = json.dumps(value, ensure_ascii=False)
        if isinstance(value, list):
            words = _joined("[]", (json.dumps(one, ensure_ascii=False) for one in value))
        elif isinstance(value, dict):
            entries = sorted(value.items())
            words = _joined(
                "{}", (f"{json.dumps(k)}: {json.dumps(v, ensure_ascii=False)}" for k, v in entries)
            )
        parts.append(f"{json.dumps(name)}: {words}")
    return _joined("{}", parts) + "\n"


def _joined(ends: str, lines: Iterable[str]) -> str:
    return f"{ends[0]}\n" + ",\n".join(lines) + f"\n{ends[1]}"


def file_digest(path: Path) -> str:
    """A digest of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]
