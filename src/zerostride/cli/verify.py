"""verify: runs a model's broadcasts, or the whole model, on a real engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from ..engines.table import ENGINES
from ..errors import ZerostrideError
from ..models.findings import Report
from ..report import headline, notes
from ..report.terminal_checks import check_lines
from . import inputs, options, reporting
from .next_command import after_verify
from .progress import bar
from .tables import put_lines, width

if TYPE_CHECKING:
    from ..models.options import ModelOptions


@click.command(short_help="Run a model's broadcasts on a real engine and compare.")
@click.argument("model", type=click.Path())
@click.option("--engine", required=True, type=options.engine_name, help="What runs them.")
@click.option("--whole", is_flag=True, help="Run the whole file, not its broadcasts.")
@click.option(
    "--against",
    type=click.Path(),
    help="Run this conversion of the model on the engine, on the same inputs; implies --whole.",
)
@inputs.options
@click.option("--node", help="Check this node alone.")
@click.option("--seed", type=click.IntRange(0), default=0, help="Of the random operands.")
@click.option("--cases", type=click.IntRange(1), default=1, help="Random operands a node.")
@click.option(
    "--timeout",
    type=click.FloatRange(0, min_open=True),
    help="Seconds for one answer; 20, and 300 for a whole model. Loading the engine may take 6 "
    "times as long: at least 60, at most 240.",
)
@click.option("--full", is_flag=True, help="Show a row for every check, those that agree too.")
@click.option("--no-cache", is_flag=True, help="Ask the engine again, whatever it said before.")
@options.of_model("batch_axis", "facts")
@click.option(
    "--python",
    "pythons",
    multiple=True,
    metavar="ENGINE=PATH",
    help="The interpreter for an engine that needs an environment of its own.",
)
@reporting.reports
@options.as_json
def verify(
    model: str,
    engine: str,
    whole: bool,
    against: str | None,
    feeds: dict[str, Any],
    node: str | None,
    seed: int,
    cases: int,
    timeout: float | None,
    full: bool,
    no_cache: bool,
    given: ModelOptions,
    pythons: tuple[str, ...],
    reports: tuple[str, ...],
    as_json: bool,
) -> int:
    """Run every broadcast of MODEL on --engine beside zerostride's own answer.

    Each becomes one op in the engine's own terms and runs in a child process on random data; a
    crash is an outcome. Exit status 0: all that ran agree. 1: something differs, was refused or
    crashed, or nothing could be run. 2: bad input, or the engine is not installed.

    \b
    zerostride verify model.onnx --engine ncnn
    """
    from ..runtimes.verify.checks import verify as run

    with bar(model) as told:
        report = run(
            model,
            engine,
            whole=whole,
            against=against,
            inputs=feeds,
            node=node,
            seed=seed,
            timeout=timeout,
            cases=cases,
            cache=not no_cache,
            batch_axis=given.batch_axis,
            facts=given.facts,
            sizes=given.sizes,
            input_shapes=given.input_shapes,
            pythons=pythons_of(pythons),
            progress=told,
        )
    reporting.save(reports, report)
    if as_json:
        options.put_json(report.as_dict())
    else:
        _show(report, given, full=full)
    return 0 if report.ok else options.FOUND


def pythons_of(words: Sequence[str]) -> dict[str, str]:
    """Interpreters by engine, from the words of --python."""
    chosen = {}
    for word in words:
        engine, equals, path = word.partition("=")
        if not equals or engine not in ENGINES or not path:
            raise ZerostrideError(f"--python {word[:80]!r}: write ENGINE=PATH, paddle=/bin/python")
        chosen[engine] = path
    return chosen


def _show(report: Report, given: ModelOptions, *, full: bool) -> None:
    """Prints what differs, then what agrees and what was not run in a line each."""
    put_lines([headline(report), *notes(report), *check_lines(report, width(), full=full)])
    command = after_verify(report, given)
    if command:
        click.echo(f"\nnext: {command}")
