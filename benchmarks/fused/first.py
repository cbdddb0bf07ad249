"""The time of first calls, each in a new process.

The library is imported and has computed another expression before, so that what its modules and
its compiler take to come up is not counted; nothing of this one has been seen, and caches on disk
are empty, unless code that an earlier process left there is measured. A few calls follow: what is
fast without being hot.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from dataclasses import dataclass
from typing import Any

from .. import stream
from ..children import in_fresh_process
from ..peers import BASELINE
from . import peers
from .rows import FusedRow, another, make_task

#: How many calls follow the first, by what is asked for: of an expression that is new, of the
#: first of a process, with machine code of an earlier process on disk, and without the compiled
#: tier, as often as a tier would take to be ready.
_EARLY = {"first": 5, "cold": 5, "kept": 5, "interpreted": 40}
KINDS = tuple(_EARLY)
#: How often it is measured; once where that takes so many seconds.
_TIMES, _LONG = 3, 0.5
_LIMIT_SAMPLES = 5


@dataclass(frozen=True)
class First:
    """Seconds of a peer's calls in a fresh process."""

    first: float
    #: The median of the calls that follow.
    early: float
    #: The streaming limit of the same bytes; None where it was not asked for.
    limit: float | None


def child(row: FusedRow, name: str, threads: int, kind: str) -> First:
    """Measures a peer in this process, which nothing was computed in before. "cold": nor is now."""
    peer = peers.PEERS[name]
    if kind != "cold":
        _call(peer.prepare(make_task(another(row), threads, judged=False)))
    task = make_task(row, threads, judged=False)
    prepared = peer.prepare(task)
    seconds = [_call(prepared) for _ in range(1 + _EARLY[kind])]
    least = stream.sampler(task) if name == BASELINE and kind != "cold" else None
    limit = None
    if least is not None:
        limit = statistics.median(least() for _ in range(_LIMIT_SAMPLES))
    return First(seconds[0], statistics.median(seconds[1:]), limit)


def _call(prepared: Any) -> float:
    began = time.perf_counter()
    prepared.calls[0]()
    return time.perf_counter() - began


def in_child(row: FusedRow, name: str, threads: int, kind: str, *, once: bool) -> First | str:
    """Has it measured by processes of its own: the median of them, or why there is none."""
    arguments = ["fuse", "--child", kind, "--rows", row.name, "--peers", name]
    caches = ("TORCHINDUCTOR_CACHE_DIR", "NUMBA_CACHE_DIR", "ZEROSTRIDE_CACHE")
    found: list[First] = []
    while len(found) < (1 if once else _TIMES):
        with tempfile.TemporaryDirectory() as empty:
            environment = dict.fromkeys(caches, empty)
            if kind == "interpreted":
                environment["ZEROSTRIDE_JIT"] = "0"
            command = [*arguments, "--threads", str(threads)]
            try:
                if kind == "kept":
                    in_fresh_process(command, {**environment, "ZEROSTRIDE_JIT": "eager"})
                said = in_fresh_process(command, environment)
            except RuntimeError as error:
                return str(error)
        if isinstance(said, str):
            return said
        found.append(First(**said))
        if found[0].first > _LONG:
            break
    limits = [one.limit for one in found if one.limit is not None]
    return First(
        statistics.median(one.first for one in found),
        statistics.median(one.early for one in found),
        statistics.median(limits) if limits else None,
    )
