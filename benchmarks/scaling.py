"""python -m benchmarks scaling: time by size, by rank, and with one thread and all.

Sizes are the bytes read and written, from 10 B to 1 GB, of a sum of two arrays of one shape.
Ranks go from 1 to 16: of every two neighbouring axes one operand is stretched along the first and
the other along the second, so that no two axes merge.
"""

from __future__ import annotations

import argparse
import datetime
import json
import shlex
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import Progress

from . import compare, machine, peers
from .chart import Axis, Line, chart
from .peers import Peer
from .printing import markdown, new_console, new_table, seconds_text
from .rows import Operand, Row, Shape
from .timing import Rounds

#: Bytes of an element of each of the two operands and of the result.
_ELEMENT = 12
#: Steps of a decade.
_STEPS = 2
#: Elements of the result in every rank: 2 to this.
_RANK_BITS = 20
_RANKS = 16
_ROUNDS = Rounds(most=30, seconds=3.0, least=5)
_QUICK = Rounds(most=7, seconds=0.7, least=3)


@dataclass(frozen=True)
class Point:
    """One measurement."""

    peer: str
    threads: int
    #: Bytes, or the rank.
    at: float
    seconds: float


def size_rows(largest: float) -> list[tuple[float, Row]]:
    """Bytes and row, from one element on."""
    rows: dict[int, Row] = {}
    step = 0
    while (size := 10 ** (1 + step / _STEPS)) <= largest * 1.001:
        count = max(1, round(size / _ELEMENT))
        rows[count] = Row(f"size_{count}", (Operand((count,)), Operand((count,))))
        step += 1
    return [(count * _ELEMENT, row) for count, row in rows.items()]


def rank_rows() -> list[tuple[float, Row]]:
    """Rank and row."""
    return [(float(rank), _rank_row(rank)) for rank in range(1, _RANKS + 1)]


def _rank_row(rank: int) -> Row:
    bits = [_RANK_BITS * (k + 1) // rank - _RANK_BITS * k // rank for k in range(rank)]
    extents = [1 << b for b in bits]

    def stretched(parity: int) -> Shape:
        return tuple(1 if k % 2 == parity else n for k, n in enumerate(extents))

    return Row(f"rank_{rank}", (Operand(stretched(1)), Operand(stretched(0))))


def measure(
    rows: Sequence[tuple[float, Row]], known: Sequence[Peer], rounds: Rounds, label: str
) -> list[Point]:
    """Every row, with one thread and with all."""
    counts = sorted({1, machine.processors()})
    points = []
    with Progress(console=Console(stderr=True), transient=True) as progress:
        work = progress.add_task(label, total=len(rows) * len(counts))
        for at, row in rows:
            for threads in counts:
                # NumPy has one thread however many there may be.
                here = [peer for peer in known if threads == 1 or peer.name != "numpy"]
                result = compare.run_row(row, here, threads, rounds, limit=False)
                points += [
                    Point(name, threads, at, timing.seconds)
                    for name, timing in result.timings.items()
                ]
                progress.advance(work)
    return points


def lines(points: Sequence[Point]) -> list[Line]:
    """One line for each peer and number of threads; fewer threads are dashed."""
    most = max(point.threads for point in points)
    found = []
    for name, threads in dict.fromkeys((point.peer, point.threads) for point in points):
        own = [(p.at, p.seconds) for p in points if (p.peer, p.threads) == (name, threads)]
        title = f"{name}, {threads} thread{'s' * (threads > 1)}"
        found.append(Line(title, name, own, dashed=threads < most and name != "numpy"))
    return found


def bytes_text(size: float) -> str:
    """A size with its unit, for powers of ten and what lies between."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= scale * 0.9995:
            return f"{size / scale:.3g} {unit}"
    return f"{size:.0f} B"


def _tick(seconds: float) -> str:
    return seconds_text(seconds).replace(".00", "").replace(".0", "")


def _table(points: Sequence[Point], head: str, name_of: dict[float, str]) -> list[list[str]]:
    """Rows of cells, the head first."""
    series = list(dict.fromkeys((point.peer, point.threads) for point in points))
    cells = [[head, *(f"{name}, {threads}" for name, threads in series)]]
    known = {(p.peer, p.threads, p.at): p.seconds for p in points}
    for at, text in name_of.items():
        values = [known.get((*one, at)) for one in series]
        cells.append([text, *("·" if v is None else seconds_text(v) for v in values)])
    return cells


def main(arguments: Sequence[str]) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks scaling", description=__doc__)
    parser.add_argument("--peers", default="numpy,torch", help="names or patterns (not jax)")
    parser.add_argument("--largest", type=float, default=1e9, help="bytes of the largest size")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument(
        "--write", action="store_true", help="write SCALING.md and its pictures beside this file"
    )
    options = parser.parse_args(arguments)
    try:
        # JAX takes the number of threads from the process, once.
        chosen = [one for one in peers.choose(options.peers) if one.name != "jax"]
    except ValueError as error:
        parser.error(str(error))
    known = [one for one in chosen if peers.version(one) is not None]
    rounds = _QUICK if options.quick else _ROUNDS
    by_size, by_rank = size_rows(options.largest), rank_rows()
    sizes = measure(by_size, known, rounds, "sizes")
    ranks = measure(by_rank, known, rounds, "ranks")
    tables = [
        _table(sizes, "bytes", {at: bytes_text(at) for at, _ in by_size}),
        _table(ranks, "rank", {at: f"{at:.0f}" for at, _ in by_rank}),
    ]
    if options.json:
        print(json.dumps({"sizes": [*map(asdict, sizes)], "ranks": [*map(asdict, ranks)]}))
    else:
        for table in tables:
            _print(table)
    if options.write:
        command = shlex.join(["python", "-m", "benchmarks", "scaling", *arguments])
        _write(Path(__file__).parent, sizes, ranks, tables, command)
    return 0


def _print(table: list[list[str]]) -> None:
    head, *rows = table
    new_console().print(new_table(head, rows))


def _write(
    folder: Path,
    sizes: Sequence[Point],
    ranks: Sequence[Point],
    tables: list[list[list[str]]],
    command: str,
) -> None:
    time = Axis("time of a call", _tick)
    pictures = {
        "scaling-size.svg": chart(
            "a + b, two arrays of one shape (float32)",
            lines(sizes),
            Axis("bytes read and written", bytes_text),
            time,
        ),
        "scaling-rank.svg": chart(
            f"Both operands stretched in turns, {1 << _RANK_BITS:,} elements (float32)",
            lines(ranks),
            Axis("rank", lambda rank: f"{rank:.0f}", logarithmic=False),
            time,
        ),
    }
    for name, picture in pictures.items():
        (folder / name).write_text(picture, "utf-8")
    here = machine.describe()
    text = [
        "# Time against size, rank and threads",
        "",
        f"Made by `{command}` on {datetime.datetime.now(datetime.UTC).date().isoformat()}"
        f" ({here.processor}, {here.cores} cores, {', '.join(here.caches)}); not edited by hand."
        " Medians; the columns name peer and threads.",
    ]
    for name, table in zip(pictures, tables, strict=True):
        text += ["", f"![{name}]({name})", "", *markdown(table)]
    (folder / "SCALING.md").write_text("\n".join(text) + "\n", "utf-8")
