"""Real models and what each optimiser makes of them, each comparison with a bound in time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from .optimisers import Optimiser, optimisers
from .record import Record, file_digest
from .result import Row
from .worker import Worker

#: Bytes of a real model; larger ones take minutes.
LARGEST = 64 << 20
#: How far a row is: the whole optimiser alone, or its passes, too.
WHOLE, PASSES = "whole", "passes"


def measure(
    models: Sequence[Path], record: Record, seconds: float, *, passes: bool
) -> Iterator[Row]:
    """Yield the row of each model and each installed optimiser, those that hold included.

    Args:
        models: the files; larger ones than `LARGEST` are counted and left out.
        record: gets the results, step by step.
        seconds: the bound of making one model and of one comparison.
        passes: whether each pass is a step.
    """
    every = optimisers()
    for name, optimiser in every.items():
        record.data["optimisers"][name] = {
            "package": optimiser.package,
            "release": optimiser.release,
            "passes": list(optimiser.passes()),
        }
    record.data["seconds"] = seconds
    try:
        with Worker(seconds) as worker:
            for path in models:
                size = path.stat().st_size
                if size > LARGEST:
                    record.data["skipped"][path.name] = size
                    continue
                record.data["models"][path.name] = {"bytes": size}
                for optimiser in every.values():
                    yield _measured(path, optimiser, worker, record, passes=passes)
    finally:
        record.write()


def _measured(
    path: Path, optimiser: Optimiser, worker: Worker, record: Record, *, passes: bool
) -> Row:
    row = record.row(path.name, file_digest(path), optimiser.name, optimiser.release)
    wanted = PASSES if passes else WHOLE
    if row["done"] in (wanted, PASSES):
        return row
    differs = any(one.names_passes for one in record.results(row))
    for number, result in worker.results(
        path, optimiser.name, passes=passes, begin=row["steps"], differs=differs
    ):
        record.add(row, number, result.as_dict())
    row["done"] = wanted
    return row
