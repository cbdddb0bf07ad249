"""verify: runs a model's broadcasts, or the whole model, on a real engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from ..engines.table import ENGINES
from ..errors import ZerostrideError
from ..report import shapes_text, shown
from . import options, reporting, tables
from .progress import bar

if TYPE_CHECKING:
    from ..models.findings import Report
    from ..models.options import ModelOptions

#: The words and style of each outcome.
STYLES = {
    "agrees": "green",
    "differs": "bold red",
    "refused": "yellow",
    "crashed": "bold magenta",
    "not_run": "dim",
}


@click.command(short_help="Run a model's broadcasts on a real engine and compare.")
@click.argument("model", type=click.Path())
@click.option("--engine", required=True, type=options.engine_name, help="What runs them.")
@click.option("--whole", is_flag=True, help="Run the whole file, not its broadcasts.")
@click.option(
    "--against",
    type=click.Path(),
    help="Run this conversion of the model on the engine, on the same inputs; implies --whole.",
)
@click.option("--node", help="Check this node alone.")
@click.option("--seed", type=click.IntRange(0), default=0, help="Of the random operands.")
@click.option("--cases", type=click.IntRange(1), default=1, help="Random operands a node.")
@click.option(
    "--timeout",
    type=click.FloatRange(0, min_open=True),
    help="Seconds for one answer; 20, and 300 for a whole model. Loading the engine may take 6 "
    "times as long: at least 60, at most 240.",
)
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
    node: str | None,
    seed: int,
    cases: int,
    timeout: float | None,
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
            node=node,
            seed=seed,
            timeout=timeout,
            cases=cases,
            cache=not no_cache,
            batch_axis=given.batch_axis,
            facts=given.facts,
            sizes=given.sizes,
            input_shapes=given.input_shapes,
            pythons=_pythons(pythons),
            progress=told,
        )
    reporting.save(reports, report)
    if as_json:
        options.put_json(report.as_dict())
    else:
        _show(report, whole=whole or against is not None)
    return 0 if report.ok else options.FOUND


def _pythons(words: Sequence[str]) -> dict[str, str]:
    chosen = {}
    for word in words:
        engine, equals, path = word.partition("=")
        if not equals or engine not in ENGINES or not path:
            raise ZerostrideError(f"--python {word[:80]!r}: write ENGINE=PATH, paddle=/bin/python")
        chosen[engine] = path
    return chosen


def _show(report: Report, *, whole: bool) -> None:
    """Prints the headline, notes, and a row per check with the audit's verdict."""
    counts: dict[str, int] = {}
    for check in report.checks:
        counts[str(check.outcome)] = counts.get(str(check.outcome), 0) + 1
    summary = ", ".join(f"{count} {name}" for name, count in counts.items()) or "nothing to run"
    click.echo(f"{shown(report.model)} on {report.target} {report.release}: {summary}")
    for note in report.notes:
        click.echo(f"note: {shown(note, 600)}")
    if report.checks:
        _table(report, whole=whole)


def _table(report: Report, *, whole: bool) -> None:
    from rich.table import Table
    from rich.text import Text

    console = tables.console()
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("outcome", no_wrap=True)
    if not whole:
        table.add_column("audit", no_wrap=True)
        table.add_column("node", overflow="fold")
    table.add_column("output" if whole else "op", no_wrap=True, max_width=24)
    roomy = console.width >= tables.ROOMY
    if roomy:
        table.add_column("shapes", overflow="fold")
    table.add_column("numbers", justify="right", no_wrap=True)
    table.add_column("error", justify="right", no_wrap=True)
    table.add_column("", overflow="fold")
    verdicts = [""] * len(report.checks) if whole else [str(f.verdict) for f in report.findings]
    for check, verdict in zip(report.checks, verdicts, strict=True):
        outcome = str(check.outcome)
        cells = [Text(outcome, STYLES[outcome])]
        if not whole:
            cells += [Text(verdict), Text(shown(check.node, 200))]
        cells.append(Text(shown(check.op, 60)))
        if roomy:
            cells.append(Text(shapes_text(check)))
        ran = outcome in ("agrees", "differs")
        cells.append(Text(str(check.elements) if ran else ""))
        cells.append(Text(f"{check.error:.2g}" if ran else ""))
        cells.append(Text(shown(check.detail, 300) + (" (known)" if check.cached else "")))
        table.add_row(*cells)
    tables.put_table(console, table)
