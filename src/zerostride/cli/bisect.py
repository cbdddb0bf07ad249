"""bisect: finds the first node at which two runs of a model differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ..report import text
from ..report.next_command import after_bisect
from . import engine_runs, options
from .tables import put_text

if TYPE_CHECKING:
    from ..models.findings import Report


@click.command(short_help="Find the first node at which two runs of a model differ, and why.")
@click.argument("model", type=click.Path())
@click.argument("other", type=click.Path(), required=False)
@click.option("--engine", type=options.engine_name, help="What runs MODEL.")
@click.option("--other-engine", type=options.engine_name, help="What runs OTHER.")
@engine_runs.options(
    "Of inputs that are not given.",
    "Seconds for one answer of an engine; 300 if not given.",
    *("via", "batch_axis", "facts"),
)
@click.option(
    "--repro",
    type=click.Path(file_okay=False),
    metavar="FOLDER",
    help="Write the first culprit alone: repro.py, repro.npz and repro.onnx.",
)
@click.option("--all", "every", is_flag=True, help="Show every tensor, not the culprits alone.")
@options.as_json
def bisect(
    model: str,
    other: str | None,
    engine: str | None,
    other_engine: str | None,
    asked: engine_runs.EngineRun,
    repro: str | None,
    every: bool,
    as_json: bool,
) -> int:
    """Run MODEL and OTHER, another file of the same model, and compare every tensor.

    Without OTHER the same file runs on --engine and on --other-engine. Exit status 0: all tensors
    agree. 1: some node differs. 2: bad input, or an engine is not installed.

    \b
    zerostride bisect model.onnx model.mnn --input x=photo.png --std 255
    """
    from ..runtimes.bisect.run import bisect as run

    def find(model: str, **keywords: Any) -> Report:
        report = run(model, other, engine=engine, other_engine=other_engine, **keywords)
        if repro is not None and report.culprit is not None and report.culprit.repro is not None:
            report.culprit.repro.save(repro)
        return report

    def show(report: Report) -> None:
        put_text(text(report, full=every))
        command = after_bisect(report, asked.model)
        if command:
            put_text(f"\nnext: {command}")

    return asked.carry_out(find, model, None if as_json else show)
