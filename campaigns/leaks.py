"""``python -m campaigns leaks``: growth of memory at constant work, in KB per 10,000 calls."""

from __future__ import annotations

import contextlib
import gc
import os
import time
from collections.abc import Callable
from pathlib import Path

import click
import numpy as np

import zerostride as zs
from zerostride.runtimes.process import Process
from zerostride.runtimes.task import Form, Task

#: Names, shapes and programs come round again after so many calls: caches are full by then.
_ROUND = 300
_EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "tiny_vision.onnx"
_X, _Y = np.ones((8, 8), np.float32), np.ones(8, np.float32)
_fused = zs.fuse(lambda a, b: (a - b) * b + a)


def _refusals(k: int) -> None:
    with contextlib.suppress(zs.BroadcastError):
        zs.plan((k + 5, 3), (k + 6, 1))


def _symbols(k: int) -> None:
    plan = zs.plan((f"N{k}", 3), (1, f"M{k}"))
    str(plan)
    plan.bind(**{f"N{k}": 4, f"M{k}": 3})


def _child(k: int) -> None:
    with Process("numpy") as process:
        process.ask(Task(Form.OP, "add"), [_X, _Y])


#: What is done over and over, and how many calls are one look at the memory.
_WORK: dict[str, tuple[Callable[[int], object], int]] = {
    "plans": (lambda k: zs.plan((k + 2, 3, 4), (k + 2,), rule="pdpd", axis=0), 5000),
    "refusals": (_refusals, 5000),
    "symbols": (_symbols, 600),
    "sizes": (lambda k: str(zs.Dim(f"2*N{k}+max(M,{k % 9})")), 1500),
    "eager": (lambda k: zs.add(_X, _Y), 20_000),
    "signatures": (lambda k: _fused(np.ones((k + 1, 4), np.float32), _Y[:4]), 600),
    "functions": (lambda k: zs.fuse(lambda a, b: a * b + k)(_X, _Y), 300),
    "audits": (lambda k: zs.audit(_EXAMPLE, target="ncnn"), 5),
    "children": (_child, 3),
}


def _resident() -> int:
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * (os.sysconf("SC_PAGE_SIZE") // 1024)


@click.command("leaks")
@click.option("--seconds", default=20.0, show_default=True, help="Time per kind of work.")
@click.option("--only", multiple=True, type=click.Choice(list(_WORK)))
def leaks(seconds: float, only: tuple[str, ...]) -> None:
    """Do the same work over and over, and print by how much the process grows (Linux).

    The first half of the time fills caches; growth is measured in the second.
    """
    for name in only or _WORK:
        work, count = _WORK[name]
        begin, calls, rows = time.monotonic(), 0, list[tuple[int, int]]()
        while time.monotonic() - begin < seconds or len(rows) < 4:
            for _ in range(count):
                work(calls % _ROUND)
                calls += 1
            rows.append((calls, _resident()))
        (first, low), (last, high) = rows[len(rows) // 2 - 1], rows[-1]
        growth = (high - low) * 10_000 / (last - first)
        files = len(os.listdir("/proc/self/fd"))
        click.echo(f"{name:12}{calls:>9,} calls {growth:8.1f} KB per 10,000; {files} open files")
