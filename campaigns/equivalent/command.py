"""The command: random models and mutants, or real models, and what optimisers make of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.progress import track
from rich.table import Table

from ..commands import cases, first, seed

if TYPE_CHECKING:
    from .judge import Tally

#: Pairs that are printed of each kind.
_SHOWN = 20
#: Bytes of a real model; larger ones take minutes.
_LARGEST = 64 << 20


@click.command()
@click.argument("models", nargs=-1, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@cases(500)
@first
@seed
@click.option("--passes", is_flag=True, help="Also each pass of onnxoptimizer.")
@click.option("--json", "as_json", is_flag=True)
def equivalent(
    models: tuple[Path, ...], cases: int, first: int, seed: int, passes: bool, as_json: bool
) -> int:
    """Compare models with what optimisers make of them, for every size, and with ONNX Runtime.

    Without MODELS, models are drawn, and mutants beside them. The optimisers are those that are
    installed: onnxsim, onnxslim, onnxoptimizer, onnxscript, onnxruntime.
    """
    # Only this campaign needs the packages that write these models.
    from .judge import judge

    if models:
        tally = _real(models, passes=passes)
    else:
        every = track(judge(cases, seed, first, passes=passes), "models", total=cases)
        *_, tally = every
    if as_json:
        click.echo(json.dumps([[*key, count] for key, count in sorted(tally.counts.items())]))
    else:
        _show(tally)
    return 1 if tally.faults else 0


def _real(models: tuple[Path, ...], *, passes: bool) -> Tally:
    import onnx

    from .judge import Tally, compare
    from .optimisers import optimisers

    tally = Tally()
    every = dict(optimisers(passes=passes))
    for path in track(models, "models"):
        if path.stat().st_size > _LARGEST:
            continue
        model = onnx.load(str(path))
        for name, optimise in every.items():
            try:
                other = optimise(model)
            except Exception as error:  # noqa: BLE001 - whatever an optimiser raises
                tally.counts[name, "not made", type(error).__name__] += 1
                continue
            compare(tally, name, path.name, model, other, runs=False)
    return tally


def _show(tally: Tally) -> None:
    console = Console()
    table = Table("second model", "verdict", "runs show", "pairs")
    for (name, verdict, runs), count in sorted(tally.counts.items()):
        table.add_row(name, verdict, runs, str(count))
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
