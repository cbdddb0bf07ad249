"""verify: runs a model's broadcasts, or the whole model, on a real engine."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from ..models.findings import Report
from ..report import headline, notes
from ..report.next_command import after_verify
from ..report.terminal_checks import check_lines
from . import engine_runs, options
from .tables import put_lines, put_text, width

if TYPE_CHECKING:
    from ..models.options import ModelOptions


@click.command(short_help="Run a model's broadcasts on a real engine and compare.")
@click.argument("model", type=click.Path())
@options.target(
    type=options.engine_name,
    help="What runs them. Not given: the engine that reads the file of --against.",
)
@click.option("--whole", is_flag=True, help="Run the whole file, not its broadcasts.")
@click.option(
    "--against",
    type=click.Path(),
    help="Run this conversion of the model on the engine, on the same inputs; implies --whole.",
)
@click.option("--node", help="Check this node alone.")
@click.option("--cases", type=click.IntRange(1), default=1, help="Random operands a node.")
@click.option("--full", is_flag=True, help="Show a row for every check, those that agree too.")
@click.option("--no-cache", is_flag=True, help="Ask the engine again, whatever it said before.")
@engine_runs.options(
    "Of the random operands.",
    "Seconds for one answer; 20, and 300 for a whole model. Loading the engine may take 6 times as "
    "long: at least 60, at most 240.",
    *("via", "batch_axis", "facts"),
)
@options.as_json
def verify(
    model: str,
    target: str | None,
    whole: bool,
    against: str | None,
    node: str | None,
    cases: int,
    full: bool,
    no_cache: bool,
    asked: engine_runs.EngineRun,
    as_json: bool,
) -> int:
    """Run every broadcast of MODEL on --target beside zerostride's own answer.

    Each becomes one op in the engine's own terms and runs in a child process on random data; a
    crash is an outcome. Exit status 0: all that ran agree. 1: something differs, was refused or
    crashed, or nothing could be run. 2: bad input, or the engine is not installed.

    \b
    zerostride verify model.onnx --target ncnn
    """
    from ..models.formats import format_of
    from ..runtimes.runners import RUNNERS
    from ..runtimes.verify.checks import verify as run

    engine = target
    if engine is None:
        engine = "" if against is None else format_of(against).engine or ""
        if not engine:
            raise click.UsageError(f"Missing option '--target'. Choose from: {', '.join(RUNNERS)}")
    how: dict[str, Any] = {"whole": whole, "against": against, "node": node, "cases": cases}
    return asked.carry_out(
        partial(run, engine=engine, cache=not no_cache, **how),
        model,
        None if as_json else partial(_show, given=asked.model, full=full, against=against),
    )


def _show(report: Report, given: ModelOptions, *, full: bool, against: str | None) -> None:
    """Prints what differs, then what agrees and what was not run in a line each."""
    put_lines([headline(report), *notes(report), *check_lines(report, width(), full=full)])
    command = after_verify(report, given, against)
    if command:
        put_text(f"\nnext: {command}")
