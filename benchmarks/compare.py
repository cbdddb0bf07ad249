"""python -m benchmarks: compares zerostride with other libraries, row by row, in one process."""

from __future__ import annotations

import argparse
import datetime
import os
import shlex
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from rich.console import Console
from rich.progress import Progress

import zerostride

from . import archive, machine, pages, peers, printing, rows, stream
from .check import difference
from .peers import LeftOut, Peer
from .results import Results, RowResult, summarise
from .rows import Row, Task, make_task
from .timing import Rounds, Sampler, in_turns, sampler

#: The name of the streaming limit among those that are timed.
_LIMIT = "limit"
#: Some two minutes for all rows.
QUICK = Rounds(most=15, seconds=1.5, least=5)
#: What a library raises when it is given what it does not take.
_REFUSALS = (TypeError, ValueError, RuntimeError, NotImplementedError)


@dataclass(frozen=True)
class _Ready:
    """Who takes part in a row."""

    samplers: dict[str, Sampler]
    left_out: dict[str, str]
    wrong: dict[str, str]


def run_row(
    row: Row, taking_part: Iterable[Peer], threads: int, rounds: Rounds, limit: bool = True
) -> RowResult:
    """Makes a row's task, and runs that."""
    return run_task(make_task(row, threads), taking_part, rounds, limit)


def run_task(
    task: Task, taking_part: Iterable[Peer], rounds: Rounds, limit: bool = True
) -> RowResult:
    """Prepares and checks every peer, times those that are right, and sums up."""
    row = task.row
    ready = _ready(task, taking_part)
    least = stream.sampler(task) if limit and ready.samplers else None
    times = in_turns(ready.samplers | ({_LIMIT: least} if least is not None else {}), rounds)
    volume = task.input_bytes + task.output_bytes
    timings = summarise(times, _LIMIT)
    return RowResult(
        row.name,
        row.title,
        row.dtype,
        volume,
        len(next(iter(times.values()), ())),
        volume / float(np.median(times[_LIMIT])) if _LIMIT in times else None,
        timings,
        ready.left_out,
        ready.wrong,
    )


def _ready(task: Task, taking_part: Iterable[Peer]) -> _Ready:
    """Prepares each peer, and has its result compared with NumPy's."""
    samplers: dict[str, Sampler] = {}
    left_out: dict[str, str] = {}
    wrong: dict[str, str] = {}
    for peer in taking_part:
        try:
            prepared = peer.prepare(task)
            found = difference(prepared, task)
        except LeftOut as reason:
            left_out[peer.name] = str(reason)
        except _REFUSALS as error:
            words = str(error).strip().splitlines() or [type(error).__name__]
            left_out[peer.name] = f"refused: {words[0][:120]}"
        else:
            if found:
                wrong[peer.name] = found
            else:
                if prepared.warm is not None:
                    prepared.warm()
                samplers[peer.name] = sampler(prepared.calls)
    return _Ready(samplers, left_out, wrong)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--rows", default="", help="names or patterns, separated by commas")
    parser.add_argument("--peers", default="", help="names or patterns, separated by commas")
    parser.add_argument("--rounds", type=int, help="the number of rounds")
    parser.add_argument("--threads", type=int, default=machine.processors())
    parser.add_argument("--quick", action="store_true", help="few rounds: about two minutes")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--list", action="store_true", help="print the rows and peers, and stop")
    parser.add_argument(
        "--write",
        action="store_true",
        help="keep the results in this processor's folder of results/",
    )
    return parser


def main(arguments: Sequence[str]) -> int:
    """The command."""
    parser = _parser()
    options = parser.parse_args(arguments)
    here = machine.describe()
    try:
        chosen = rows.choose(options.rows, here.last_cache)
        known = peers.choose(options.peers)
    except ValueError as error:
        parser.error(str(error))
    if options.threads < 1 or options.threads > here.cores:
        parser.error(f"--threads must be 1 to {here.cores}, the processors of this process")
    if options.list:
        printing.print_list(chosen, known)
        return 0
    rounds = QUICK if options.quick else Rounds()
    if options.rounds:
        rounds = Rounds(options.rounds, float("inf"), options.rounds)
    pin(options.threads)
    results = Results(
        here,
        datetime.datetime.now(datetime.UTC).date().isoformat(),
        shlex.join(["python", "-m", "benchmarks", *arguments]),
        options.threads,
        stream.how(),
        zerostride.backend(),
        {peer.name: peers.version(peer) or "not installed" for peer in known},
        _run(chosen, known, options.threads, rounds),
    )
    if options.json:
        sys.stdout.write(printing.as_json(results))
    else:
        printing.print_results(results)
    if options.write:
        archive.keep(archive.SINGLE, results.machine, printing.as_json(results))
        pages.write()
    return 0


def pin(threads: int) -> None:
    """Keeps the process to as many processors as threads, for libraries that cannot be told."""
    if threads < machine.processors() and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])


def _run(
    chosen: Sequence[Row], known: Sequence[Peer], threads: int, rounds: Rounds
) -> tuple[RowResult, ...]:
    installed = [peer for peer in known if peers.version(peer) is not None]
    results = []
    with Progress(console=Console(stderr=True), transient=True) as progress:
        work = progress.add_task("rows", total=len(chosen))
        for row in chosen:
            progress.update(work, description=row.name)
            results.append(run_row(row, installed, threads, rounds))
            progress.advance(work)
    return tuple(results)
