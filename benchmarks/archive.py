"""The results of each processor: `results/PROCESSOR/RESULTS.json`, `FUSE.json`, `EQUIVALENT.json`.

A run replaces only the files of its own processor. `pages` writes the Markdown beside them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from .fused.first import First
from .fused.results import FusedResults
from .machine import Machine
from .memory import Use
from .results import Results, RowResult, Timing

#: This folder: the pages of benchmarks lie here.
HERE = Path(__file__).parent
#: The folder with a folder for each processor.
RESULTS = "results"
#: Names of the files, without ending: results of single ops, and of fused functions.
SINGLE, FUSED = "RESULTS", "FUSE"
#: Of two models compared for every size.
EQUIVALENT = "EQUIVALENT"


def keep(name: str, machine: Machine, text: str, root: Path = HERE) -> Path:
    """Writes a run's JSON into the folder of its processor, and returns the file."""
    path = root / RESULTS / machine.slug / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def single_results(root: Path = HERE) -> Iterator[tuple[Path, Results]]:
    """The runs of single ops, each with its folder."""
    for folder, data in _kept(root, SINGLE):
        yield folder, _results(data)


def fused_results(root: Path = HERE) -> Iterator[tuple[Path, FusedResults]]:
    """The runs of fused functions, each with its folder."""
    for folder, data in _kept(root, FUSED):
        yield folder, _fused(data)


def equivalent_results(root: Path = HERE) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The runs of compared models, each with its folder."""
    for path in sorted((root / RESULTS).glob(f"*/{EQUIVALENT}.json")):
        yield path.parent, json.loads(path.read_text("utf-8"))


def _kept(root: Path, name: str) -> Iterator[tuple[Path, dict[str, Any]]]:
    for path in sorted((root / RESULTS).glob(f"*/{name}.json")):
        data = json.loads(path.read_text("utf-8"))
        del data["goals"]  # judged again, by the goals of today
        yield path.parent, data


def _results(data: Mapping[str, Any]) -> Results:
    machine = data["machine"]
    rows = tuple(map(_row, data["rows"]))
    caches = tuple(machine["caches"])
    return Results(**{**data, "machine": Machine(**{**machine, "caches": caches}), "rows": rows})


def _row(data: Mapping[str, Any]) -> RowResult:
    timings = {name: Timing(**timing) for name, timing in data["timings"].items()}
    return RowResult(**{**data, "timings": timings})


def _fused(data: Mapping[str, Any]) -> FusedResults:
    return FusedResults(
        _results(data["hot"]),
        data["compiled"],
        {row: _firsts(by_peer) for row, by_peer in data["first"].items()},
        _firsts(data["cold"]),
        _firsts(data.get("kept", {})),
        _firsts(data["interpreted"]),
        {row: use if isinstance(use, str) else Use(**use) for row, use in data["peak"].items()},
    )


def _firsts(data: Mapping[str, Any]) -> dict[str, First | str]:
    return {key: one if isinstance(one, str) else First(**one) for key, one in data.items()}
