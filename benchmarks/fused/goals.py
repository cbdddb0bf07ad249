"""The goals of fused functions, and the number of rows that reach them."""

from __future__ import annotations

from ..goals import GAIN, Goal, best_ratios, geometric_mean, level
from ..memory import Use
from ..peers import BASELINE
from ..printing import seconds_text
from .first import First
from .peak import ALLOWED
from .results import BOUND, FusedResults, early_share, memory_bound

#: Of the streaming limit, where a row is bound by memory: hot, and in the first calls.
HOT_SHARE, EARLY_SHARE = 0.9, 0.75
#: Seconds that a first call takes beyond what the next take.
FIRST = 5e-3


def judge(results: FusedResults) -> list[Goal]:
    """The aims of which the run has figures."""
    rows = [row for row in results.hot.rows if BASELINE in row.timings]
    goals = (level(rows), _gain(results), _hot(results), _early(results), _first(results))
    return [goal for goal in (*goals, _peak(results)) if goal is not None]


def _gain(results: FusedResults) -> Goal | None:
    ratios = best_ratios(results.hot.rows)
    if not ratios:
        return None
    mean = geometric_mean(ratios)
    text = f"geometric mean over the best peer of each row ≥ {GAIN}"
    return Goal(text, f"{mean:.2f} on {len(ratios)} rows", mean >= GAIN)


def _hot(results: FusedResults) -> Goal | None:
    shares = {
        row.name: row.timings[BASELINE].share
        for row in results.hot.rows
        if BASELINE in row.timings and memory_bound(row)
    }
    text = f"≥ {HOT_SHARE} of the limit, hot, where bound by memory (somebody reaches {BOUND})"
    return _shares(text, shares, HOT_SHARE)


def _early(results: FusedResults) -> Goal | None:
    bound = {row.name for row in results.hot.rows if memory_bound(row)}
    shares = {
        name: early_share(by_peer.get(BASELINE))
        for name, by_peer in results.first.items()
        if name in bound or not results.hot.rows
    }
    text = f"≥ {EARLY_SHARE} of the limit in the calls after the first, on the same rows"
    return _shares(text, shares, EARLY_SHARE)


def _shares(text: str, shares: dict[str, float | None], least: float) -> Goal | None:
    known = {name: share for name, share in shares.items() if share is not None}
    if not known:
        return None
    short = tuple(f"{name}: {share:.2f}" for name, share in known.items() if share < least)
    value = f"{len(known) - len(short)} of {len(known)} rows, {min(known.values()):.2f} at least"
    return Goal(text, value, not short, short)


def _first(results: FusedResults) -> Goal | None:
    calls = {
        name: one
        for name, by_peer in results.first.items()
        if isinstance(one := by_peer.get(BASELINE), First)
    }
    if not calls:
        return None
    more = {name: one.first - one.early for name, one in calls.items()}
    short = tuple(f"{name}: {seconds_text(t)}" for name, t in more.items() if t >= FIRST)
    in_all = sum(one.first < FIRST for one in calls.values())
    return Goal(
        f"a first call takes less than {seconds_text(FIRST)} more than the next ones",
        f"{len(calls) - len(short)} of {len(calls)} rows; {in_all} take less in all",
        not short,
        short,
    )


def _peak(results: FusedResults) -> Goal | None:
    uses = {name: use for name, use in results.peak.items() if isinstance(use, Use)}
    if not uses:
        return None
    most = max(max(use.first, use.again) for use in uses.values()) / (1 << 20)
    short = tuple(name for name, use in uses.items() if not use.fits)
    text = f"peak memory: operands, result and {ALLOWED >> 20} MiB"
    return Goal(text, f"{most:.2f} MiB at most, on {len(uses)} rows", not short, short)
