"""Speed claims of the documentation: each holds on every processor that was measured."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

# The benchmarks are run from a checkout, and are no part of the package.
sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.archive import single_results
from benchmarks.goals import geometric_mean
from benchmarks.results import Results, RowResult, Timing

ROOT = Path(__file__).parents[2]
#: "Three times as fast": NumPy's time over zerostride's, the geometric mean of all rows.
FAST = 3.0
#: "Simple loops are slow": NumPy's loop takes this many times zerostride's time.
SLOW = 2.0
RUNS = {folder.name: results for folder, results in single_results()}


def timing(results: Results, row: str, peer: str) -> Timing:
    """The figures of a peer in a row."""
    (found,) = (one for one in results.rows if one.name == row)
    return found.timings[peer]


def beats_numpy(results: Results) -> bool:
    timings = [row.timings["numpy"] for row in results.rows if "numpy" in row.timings]
    ratios = [one.ratio for one in timings if one.ratio is not None]
    return len(ratios) > len(results.rows) / 2 and geometric_mean(ratios) >= FAST


def short_rows_are_slow(results: Results) -> bool:
    ratio = timing(results, "by_3", "numpy").ratio
    return ratio is not None and ratio >= SLOW


#: The page, the claim as it stands there, and what the results have to show.
CLAIMS: tuple[tuple[str, str, Callable[[Results], bool]], ...] = (
    ("README.md", "over all benchmarks it is three times as fast as NumPy", beats_numpy),
    ("docs/index.md", "computes with them faster than NumPy", beats_numpy),
    ("docs/howto/normalise.md", "Simple loops are slow for a row of three", short_rows_are_slow),
)


@pytest.mark.parametrize(("page", "claim", "holds"), CLAIMS, ids=[row[0] for row in CLAIMS])
def test_claim_holds_on_every_processor(
    page: str, claim: str, holds: Callable[[Results], bool]
) -> None:
    assert claim in " ".join((ROOT / page).read_text("utf-8").split())
    assert RUNS
    assert [name for name, results in RUNS.items() if not holds(results)] == []


def with_timing(results: Results, rows: Iterable[str], peer: str, changed: Timing) -> Results:
    """The results with other figures of a peer in some rows."""

    def row(one: RowResult) -> RowResult:
        timings = {**one.timings, peer: changed}
        return dataclasses.replace(one, timings=timings) if one.name in rows else one

    return dataclasses.replace(results, rows=tuple(map(row, results.rows)))


def test_slow_processor_breaks_the_claims() -> None:
    results = next(iter(RUNS.values()))
    slow = Timing(1.0, 1.0, 1.0, 1.0)
    every = [row.name for row in results.rows]
    assert not beats_numpy(with_timing(results, every, "numpy", slow))
    assert not short_rows_are_slow(with_timing(results, ["by_3"], "numpy", slow))
