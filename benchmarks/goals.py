"""The goals, and the number of rows that reach them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .peers import BASELINE
from .results import Results, RowResult

#: Level with the best peer, and in the lower quartile of the pairs.
LEVEL, LEVEL_QUARTILE = 1.0, 0.95
#: Where the best peer is below this share of the streaming limit there is something to gain.
ROOM, GAIN = 0.8, 1.5
#: Of the streaming limit, where the working set exceeds the last cache.
LARGE_SHARE = 0.9
#: Of NumPy's time, for a tiny call.
TINY_COST = 0.5
_TINY = ("tiny", "tiny_new", "number", "number_new")


@dataclass(frozen=True)
class Goal:
    """One aim."""

    text: str
    value: str
    reached: bool
    #: Rows that fall short: name and by how much.
    short: tuple[str, ...] = ()


def judge(results: Results) -> list[Goal]:
    """The aims of which the run has rows."""
    rows = [row for row in results.rows if BASELINE in row.timings]
    goals = (level(rows), _gain(rows), _large(rows, results.machine.last_cache), _tiny(rows))
    return [goal for goal in goals if goal is not None]


def level(rows: list[RowResult]) -> Goal | None:
    """How many rows are as fast as the best peer; None where there is no peer."""
    beside = compared(rows)
    if not beside:
        return None
    short = [row for row in beside if not is_level(row)]
    return Goal(
        f"level with the best peer (ratio ≥ {LEVEL}, lower quartile ≥ {LEVEL_QUARTILE})",
        f"{len(beside) - len(short)} of {len(beside)} rows",
        not short,
        tuple(_against_best(row) for row in short),
    )


def compared(rows: Iterable[RowResult]) -> list[RowResult]:
    """The rows that zerostride and a peer computed."""
    return [row for row in rows if BASELINE in row.timings and row.best is not None]


def best_ratios(rows: Iterable[RowResult]) -> list[float]:
    """The best peer's time over zerostride's, of each compared row."""
    ratios = (row.timings[row.best or BASELINE].ratio for row in compared(rows))
    return [ratio for ratio in ratios if ratio is not None]


def is_level(row: RowResult) -> bool:
    """Whether zerostride is as fast as the best peer."""
    best = row.timings[row.best or BASELINE]
    assert best.ratio is not None
    assert best.quartile is not None
    return best.ratio >= LEVEL and best.quartile >= LEVEL_QUARTILE


def _against_best(row: RowResult) -> str:
    best = row.timings[row.best or BASELINE]
    return f"{row.name}: {best.ratio:.2f} ({best.quartile:.2f}) of {row.best}"


def geometric_mean(values: Sequence[float]) -> float:
    """Of ratios."""
    return math.exp(sum(map(math.log, values)) / len(values))


def _gain(rows: list[RowResult]) -> Goal | None:
    """Where the best peer leaves room, by how much zerostride is faster."""
    ratios = []
    for row in rows:
        best = row.timings[row.best] if row.best is not None else None
        if best and best.ratio and best.share is not None and best.share < ROOM:
            ratios.append(best.ratio)
    if not ratios:
        return None
    mean = geometric_mean(ratios)
    return Goal(
        f"geometric mean over the best peer ≥ {GAIN} where that is below {ROOM} of the limit",
        f"{mean:.2f} on {len(ratios)} rows",
        mean >= GAIN,
    )


def _large(rows: list[RowResult], last_cache: int) -> Goal | None:
    shares = {
        row.name: share
        for row in rows
        if row.bytes > last_cache and (share := row.timings[BASELINE].share) is not None
    }
    if not shares:
        return None
    short = tuple(f"{name}: {share:.2f}" for name, share in shares.items() if share < LARGE_SHARE)
    return Goal(
        f"≥ {LARGE_SHARE} of the limit beyond the last cache ({last_cache >> 20} MiB)",
        f"{min(shares.values()):.2f} at least, on {len(shares)} rows",
        not short,
        short,
    )


def _tiny(rows: list[RowResult]) -> Goal | None:
    costs = {}
    for row in rows:
        beside = row.timings.get("numpy")
        if row.name in _TINY and beside is not None and beside.ratio:
            costs[row.name] = 1 / beside.ratio
    if not costs:
        return None
    short = tuple(f"{name}: {cost:.2f}" for name, cost in costs.items() if cost > TINY_COST)
    return Goal(
        f"a tiny call costs ≤ {TINY_COST} of NumPy's",
        ", ".join(f"{cost:.2f}" for cost in costs.values()),
        not short,
        short,
    )
