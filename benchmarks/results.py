"""The measured results, as data."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from .machine import Machine
from .peers import BASELINE


@dataclass(frozen=True)
class Timing:
    """A peer in a row."""

    #: Median of a call.
    seconds: float
    #: Its time over zerostride's in the same round: the median, and the lower quartile. None
    #: without zerostride.
    ratio: float | None
    quartile: float | None
    #: The streaming limit's time over its own in the same round: the median. None for tiny rows.
    share: float | None


@dataclass(frozen=True)
class RowResult:
    """A row, measured."""

    name: str
    title: str
    dtype: str
    #: Bytes that must be read and written.
    bytes: int
    rounds: int
    #: The streaming limit in bytes a second; None for tiny rows.
    limit: float | None
    timings: dict[str, Timing]
    #: Who cannot take the row, and why.
    left_out: dict[str, str] = field(default_factory=dict)
    #: Whose result is not right, and how: these are not timed.
    wrong: dict[str, str] = field(default_factory=dict)

    @property
    def best(self) -> str | None:
        """The fastest of the others."""
        others = {name: t.ratio for name, t in self.timings.items() if name != BASELINE}
        known = {name: ratio for name, ratio in others.items() if ratio is not None}
        return min(known, key=known.__getitem__) if known else None


@dataclass(frozen=True)
class Results:
    """A run."""

    machine: Machine
    date: str
    command: str
    threads: int
    limit: str
    backend: str
    versions: dict[str, str]
    rows: tuple[RowResult, ...]


def summarise(times: dict[str, np.ndarray], limit: str) -> dict[str, Timing]:
    """Medians of the rounds' pairs; `limit` is the name under which the streaming limit ran."""
    own, least = times.get(BASELINE), times.get(limit)
    timings = {}
    for name, seconds in times.items():
        if name == limit:
            continue
        ratios = None if own is None else seconds / own
        timings[name] = Timing(
            float(np.median(seconds)),
            None if ratios is None else float(np.median(ratios)),
            None if ratios is None else float(np.quantile(ratios, 0.25)),
            None if least is None else float(np.median(least / seconds)),
        )
    return timings
