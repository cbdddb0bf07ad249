"""python -m benchmarks fuse: fused functions compared with other libraries; first calls; memory."""

from __future__ import annotations

import argparse
import datetime
import json
import shlex
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from rich.console import Console
from rich.progress import Progress

import zerostride

from . import archive, machine, pages, stream
from .compare import QUICK, pin, run_task
from .fused import first, peak, printing
from .fused.peers import PEERS
from .fused.results import FusedResults, compiled_by
from .fused.rows import FusedRow, choose, make_task
from .peers import BASELINE, LeftOut, Peer, version
from .peers import choose as choose_peers
from .printing import print_list
from .results import Results
from .timing import Rounds

_PARTS = ("hot", "first", "peak")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks fuse", description=__doc__)
    parser.add_argument("--rows", default="", help="names or patterns, separated by commas")
    parser.add_argument("--peers", default="", help="names or patterns, separated by commas")
    parser.add_argument("--rounds", type=int, help="the number of rounds")
    parser.add_argument("--threads", type=int, default=machine.processors())
    parser.add_argument(
        "--parts", default=",".join(_PARTS), help=f"of {', '.join(_PARTS)}, separated by commas"
    )
    parser.add_argument("--quick", action="store_true", help="few rounds, and first calls once")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--list", action="store_true", help="print the rows and peers, and stop")
    parser.add_argument(
        "--write",
        action="store_true",
        help="keep the results in this processor's folder of results/",
    )
    parser.add_argument("--child", choices=(*first.KINDS, "peak"), help=argparse.SUPPRESS)
    return parser


def main(arguments: Sequence[str]) -> int:
    """The command."""
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        rows = choose(options.rows)
        known = choose_peers(options.peers, PEERS)
    except ValueError as error:
        parser.error(str(error))
    parts = set(options.parts.split(","))
    if parts - set(_PARTS):
        parser.error(f"--parts are of {', '.join(_PARTS)}")
    if options.threads < 1 or options.threads > machine.processors():
        parser.error(f"--threads must be 1 to {machine.processors()}, this process's processors")
    if options.list:
        print_list(rows, known)
        return 0
    pin(options.threads)
    if options.child:
        print(json.dumps(_child(options.child, rows[0], known[-1].name, options.threads)))
        return 0
    results = _run(options, rows, known, parts, shlex.join(arguments))
    if options.json:
        sys.stdout.write(printing.as_json(results))
    else:
        printing.print_results(results)
    if options.write:
        archive.keep(archive.FUSED, results.hot.machine, printing.as_json(results))
        pages.write()
    return 0


def _child(kind: str, row: FusedRow, peer: str, threads: int) -> Any:
    """What a fresh process measures, or why it cannot be."""
    try:
        if kind == "peak":
            return asdict(peak.child(row, threads))
        return asdict(first.child(row, peer, threads, kind))
    except LeftOut as reason:
        return str(reason)


def _run(
    options: argparse.Namespace,
    rows: Sequence[FusedRow],
    known: Sequence[Peer],
    parts: set[str],
    arguments: str,
) -> FusedResults:
    """Measures the parts that were asked for, a row at a time."""
    rounds = QUICK if options.quick else Rounds()
    if options.rounds:
        rounds = Rounds(options.rounds, float("inf"), options.rounds)
    here, threads = machine.describe(), options.threads
    installed = [peer for peer in known if version(peer) is not None]
    hot, results = [], FusedResults(_empty(here, threads, known, arguments), compiled_by())
    with Progress(console=Console(stderr=True), transient=True) as progress:
        work = progress.add_task("rows", total=len(rows))
        for row in rows:
            progress.update(work, description=row.name)
            if "hot" in parts:
                hot.append(run_task(make_task(row, threads), installed, rounds))
            if "first" in parts:
                _first_calls(results, row, installed, threads, options.quick)
            if "peak" in parts:
                results.peak[row.name] = peak.in_child(row, threads)
            progress.advance(work)
    return replace(results, hot=replace(results.hot, rows=tuple(hot)))


def _empty(here: machine.Machine, threads: int, known: Sequence[Peer], arguments: str) -> Results:
    return Results(
        here,
        datetime.datetime.now(datetime.UTC).date().isoformat(),
        f"python -m benchmarks fuse {arguments}".strip(),
        threads,
        stream.how(),
        zerostride.backend(),
        {peer.name: version(peer) or "not installed" for peer in known},
        (),
    )


def _first_calls(
    results: FusedResults, row: FusedRow, installed: Sequence[Peer], threads: int, once: bool
) -> None:
    results.first[row.name] = {
        peer.name: first.in_child(row, peer.name, threads, "first", once=once) for peer in installed
    }
    results.cold[row.name] = first.in_child(row, BASELINE, threads, "cold", once=once)
    if results.compiled:
        again = first.in_child(row, BASELINE, threads, "interpreted", once=once)
        results.interpreted[row.name] = again
        results.kept[row.name] = first.in_child(row, BASELINE, threads, "kept", once=once)
