"""``python -m campaigns forks``: forks while threads are in their first fused calls."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import click

#: Forks of one nursery: what it prints is seen when they have ended.
_BATCH = 100
#: What ZEROSTRIDE_JIT is set to; compiled when called often, or at the first call.
_JITS = ("", "eager")


@click.command("forks")
@click.option("--forks", type=click.IntRange(1), default=10_000, show_default=True)
@click.option("--threads", type=click.IntRange(1), default=8, show_default=True)
@click.option("--jit", type=click.Choice(_JITS), multiple=True, help="Default: both.")
@click.option("--seed", type=int, default=1, show_default=True)
@click.option("--seconds", type=float, help="Time after which no batch begins.")
def forks(forks: int, threads: int, jit: Sequence[str], seed: int, seconds: float | None) -> None:
    """Fork while threads are in their first fused calls; count children that hang.

    Exit status 0: every child and every thread gave the right numbers. 1: one did not.
    """
    begin = time.monotonic()
    settings = jit or _JITS
    totals = {setting: Counter[str]() for setting in settings}
    for number, first in enumerate(range(0, forks, _BATCH)):
        if seconds is not None and time.monotonic() - begin > seconds:
            break
        setting = settings[number % len(settings)]
        totals[setting] += nursery(min(_BATCH, forks - first), threads, seed + number, setting)
        _show(totals, time.monotonic() - begin)
    sys.exit(any(count for one in totals.values() for end, count in one.items() if _bad(end)))


def nursery(forks: int, threads: int, seed: int, jit: str) -> Counter[str]:
    """Counts the forks of a nursery by their end; "inside": during a thread's first call."""
    done = subprocess.run(
        [sys.executable, "-m", "campaigns.fork_nursery", *map(str, (forks, threads, seed))],
        env={**os.environ, "ZEROSTRIDE_JIT": jit},
        cwd=Path(__file__).resolve().parents[1],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return Counter(json.loads(done.stdout.splitlines()[-1]))


def _bad(end: str) -> bool:
    return end not in ("right", "inside")


def _show(totals: dict[str, Counter[str]], seconds: float) -> None:
    for setting, counts in totals.items():
        ends = ", ".join(f"{count:,} {end}" for end, count in counts.items() if end != "inside")
        inside = counts["inside"]
        click.echo(
            f"{seconds:6.0f} s  ZEROSTRIDE_JIT={setting!r}: {ends or 'none yet'} "
            f"({inside:,} while a thread was in its first call)"
        )
