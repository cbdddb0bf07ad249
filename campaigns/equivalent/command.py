"""The command: random models and mutants, or real models, and what optimisers make of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.progress import track
from rich.table import Table

from ..commands import cases, first, seed
from .result import UNCHANGED
from .tally import NOT_RUN, Tally

if TYPE_CHECKING:
    from .result import Row

#: Pairs that are printed of each kind.
_SHOWN = 20


@click.command()
@click.argument("models", nargs=-1, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@cases(500)
@first
@seed
@click.option("--mutants", type=click.IntRange(0), default=4, help="Of each drawn model.")
@click.option("--passes", is_flag=True, help="Also each pass of each optimiser.")
@click.option("--limit", type=float, default=120, help="Seconds for a pair of real models.")
@click.option("--write", is_flag=True, help="Keep results of MODELS in docs/optimisers.json.")
@click.option("--json", "as_json", is_flag=True)
def equivalent(
    models: tuple[Path, ...],
    cases: int,
    first: int,
    seed: int,
    mutants: int,
    passes: bool,
    limit: float,
    write: bool,
    as_json: bool,
) -> int:
    """Compare models with what optimisers make of them, for every size, and with ONNX Runtime.

    Without MODELS, models are drawn, and mutants beside them. The optimisers are those that are
    installed: onnxsim, onnxslim, onnxoptimizer, onnxscript, onnxruntime. Of an optimiser that
    changed the meaning of a model, every pass is tried alone.

    With --write, a later call goes on where this one stopped: results hold until a model's file,
    an optimiser's release or the sources of the comparison change. docs/generate.py then writes
    docs/optimisers.md.
    """
    if models:
        tally = _real(models, limit, passes=passes, write=write)
    else:
        tally = _drawn(cases, seed, first, mutants, passes=passes)
    if as_json:
        click.echo(json.dumps([[*key, count] for key, count in sorted(tally.counts.items())]))
    else:
        _show(tally)
    return 1 if tally.faults else 0


def _drawn(cases: int, seed: int, first: int, mutants: int, *, passes: bool) -> Tally:
    # Only this campaign needs the packages that write these models.
    from .judge import judge

    *_, tally = track(
        judge(cases, seed, first, mutants, passes=passes),
        "models",
        total=cases,
        console=Console(stderr=True),
    )
    return tally


def _real(models: tuple[Path, ...], limit: float, *, passes: bool, write: bool) -> Tally:
    from .optimisers import optimisers
    from .real import measure
    from .record import RECORD, Record

    record = Record(RECORD if write else None)
    rows: Iterator[Row] = measure(models, record, limit, passes=passes)
    total = len(models) * len(optimisers())
    tally = Tally()
    for row in track(rows, "models", total=total, console=Console(stderr=True)):
        results = record.results(row)
        tally.add(row["optimiser"], row["model"], [(one, NOT_RUN) for one in results])
    for name, size in record.data["skipped"].items():
        click.echo(f"{name}: left out, it has {size >> 20} MiB")
    return tally


def _show(tally: Tally) -> None:
    console = Console()
    table = Table("second model", "end", "runs show", "pairs")
    for (name, end, runs), count in sorted(tally.counts.items()):
        if end != UNCHANGED:  # most passes leave most models as they are
            table.add_row(name, end, runs, str(count))
    console.print(table)
    for title, lines in (
        ("contradicted by runs", tally.faults),
        ("undecided", tally.undecided),
        ("an optimiser changed the meaning", tally.different),
    ):
        if lines:
            console.print(f"{title}: {len(lines)}")
        for line in lines[:_SHOWN]:
            console.print(f"  {line}", markup=False, highlight=False)
    open_ones, every = tally.regions
    console.print(f"{open_ones:,} of {every:,} compared outputs are undecided")
    click.echo(tally.words)
