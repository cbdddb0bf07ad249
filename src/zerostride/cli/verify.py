"""verify: runs a model's broadcasts, or the whole model, on a real engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from ..engines.table import ENGINES
from ..errors import ZerostrideError
from ..models.findings import Check, Outcome, Report
from ..report import shapes_text, shown
from ..report.table import Column
from ..report.words import OUTCOMES
from . import inputs, options, reporting
from .progress import bar
from .tables import put_table

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
        _show(report, whole=whole or against is not None or bool(feeds))
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


def _show(report: Report, *, whole: bool) -> None:
    """Prints the headline, notes, and a row per check with the audit's verdict."""
    counts = Counter(str(check.outcome) for check in report.checks)
    summary = ", ".join(f"{count} {name}" for name, count in counts.items()) or "nothing to run"
    click.echo(f"{shown(report.model)} on {report.target} {report.release}: {summary}")
    for note in report.notes:
        click.echo(f"note: {shown(note, 600)}")
    if report.checks:
        _put(report, whole=whole)


#: A whole model has outputs, and no nodes or verdicts.
_COLUMNS = (
    Column("outcome", folds=False),
    Column("audit", folds=False),
    Column("node"),
    Column("op", 24, folds=False),
    Column("shapes", roomy=True),
    Column("numbers", folds=False, right=True),
    Column("error", folds=False, right=True),
    Column(""),
)


def _row(check: Check, verdict: str) -> list[str]:
    ran = check.outcome in (Outcome.AGREES, Outcome.DIFFERS)
    return [
        str(check.outcome),
        verdict,
        shown(check.node, 200),
        shown(check.op, 60),
        shapes_text(check),
        str(check.elements) if ran else "",
        f"{check.error:.2g}" if ran else "",
        shown(check.detail, 300) + (" (known)" if check.cached else ""),
    ]


def _put(report: Report, *, whole: bool) -> None:
    """Prints a row per check."""
    styles = [OUTCOMES[check.outcome][1] for check in report.checks]
    verdicts = [""] * len(report.checks) if whole else [str(f.verdict) for f in report.findings]
    rows = [_row(*pair) for pair in zip(report.checks, verdicts, strict=True)]
    columns = list(_COLUMNS)
    if whole:
        columns[3] = replace(columns[3], title="output")
        columns, rows = [columns[0], *columns[3:]], [[row[0], *row[3:]] for row in rows]
    put_table(columns, rows, styles)
