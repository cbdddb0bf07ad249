"""bisect: finds the first node at which two runs of a model differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ..report import text
from . import inputs, options, reporting
from .progress import bar
from .verify import pythons_of

if TYPE_CHECKING:
    from ..models.options import ModelOptions


@click.command(short_help="Find the first node at which two runs of a model differ, and why.")
@click.argument("model", type=click.Path())
@click.argument("other", type=click.Path(), required=False)
@inputs.options
@click.option("--engine", type=options.engine_name, help="What runs MODEL.")
@click.option("--other-engine", type=options.engine_name, help="What runs OTHER.")
@click.option("--seed", type=click.IntRange(0), default=0, help="Of inputs that are not given.")
@click.option(
    "--timeout",
    type=click.FloatRange(0, min_open=True),
    help="Seconds for one answer of an engine; 300 if not given.",
)
@options.of_model("via", "batch_axis", "facts")
@click.option(
    "--python",
    "pythons",
    multiple=True,
    metavar="ENGINE=PATH",
    help="The interpreter for an engine that needs an environment of its own.",
)
@reporting.reports
@click.option("--all", "every", is_flag=True, help="Show every tensor, not the culprits alone.")
@options.as_json
def bisect(
    model: str,
    other: str | None,
    feeds: dict[str, Any],
    engine: str | None,
    other_engine: str | None,
    seed: int,
    timeout: float | None,
    given: ModelOptions,
    pythons: tuple[str, ...],
    reports: tuple[str, ...],
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

    with bar(model) as told:
        report = run(
            model,
            other,
            inputs=feeds,
            engine=engine,
            other_engine=other_engine,
            seed=seed,
            timeout=timeout,
            via=given.via,
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
        click.echo(text(report, full=every))
    return 0 if report.ok else options.FOUND
