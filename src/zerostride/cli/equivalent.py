"""equivalent: whether two models mean the same for every size."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING

import click

from ..errors import ZerostrideError, printable
from ..report import text
from ..report.next_command import after_equivalent
from . import options, reporting
from .files import write_whole
from .tables import put_text

if TYPE_CHECKING:
    from ..models.options import ModelOptions


def _witness(path: str) -> str:
    """The path, if its folder exists: a comparison may take minutes."""
    folder = os.path.dirname(path) or "."
    if not os.path.isdir(folder):
        raise ZerostrideError(f"{path}: there is no folder {folder}")
    if os.path.isdir(path):
        raise ZerostrideError(f"{path} is a folder; name a file, such as witness.npz")
    return path


@click.command(short_help="Prove that two models mean the same for every size, or show where not.")
@click.argument("model", type=click.Path())
@click.argument("other", type=click.Path())
@click.option("--seed", type=click.IntRange(0), default=0, help="Of the inputs of the runs.")
@click.option(
    "--timeout",
    type=click.FloatRange(0, min_open=True),
    help="Seconds for one answer of an engine; 300 if not given.",
)
@click.option(
    "--witness",
    type=options.Parsed("file", _witness),
    metavar="FILE.npz",
    help="Write the inputs and both results of a run that shows a difference.",
)
@click.option(
    "--region",
    type=click.Path(file_okay=False),
    metavar="FOLDER",
    help="Write the nodes that are not shown to be the same, as two model files.",
)
@reporting.reports
@options.of_model("facts")
@options.as_json
def equivalent(
    model: str,
    other: str,
    seed: int,
    timeout: float | None,
    witness: str | None,
    region: str | None,
    reports: tuple[str, ...],
    given: ModelOptions,
    as_json: bool,
) -> int:
    """Compare MODEL with OTHER, such as what an optimiser made of it, for every open size.

    Each output is equal, equal but for rounding, different (a run shows it), or undecided (the
    nodes in question are named). Exit status 0: all are equal, perhaps but for rounding. 1: one is
    different or undecided, or one model works for sizes for which the other does not. 2: bad input.

    \b
    zerostride equivalent model.onnx optimised.onnx
    """
    from ..runtimes.equivalent.run import equivalent as run

    report = run(
        model,
        other,
        seed=seed,
        timeout=timeout,
        facts=given.facts,
        sizes=given.sizes,
        input_shapes=given.input_shapes,
    )
    result = report.equivalence
    assert result is not None
    if witness is not None and result.arrays:
        import numpy as np

        content = io.BytesIO()
        np.savez(content, **result.arrays)
        write_whole(witness, content.getvalue())
    if region is not None and result.regions:
        os.makedirs(region, exist_ok=True)
        for name, data in result.regions.items():
            write_whole(os.path.join(region, name), data)
    reporting.save(reports, report)
    if as_json:
        options.put_json(report.as_dict())
    else:
        put_text(text(report))
        if witness is not None:
            wrote = "has the inputs and both results of the run that shows the difference"
            absent = "is not written: no run of both models shows a difference"
            put_text(f"\n{printable(witness)} {wrote if result.arrays else absent}")
        if region is not None:
            wrote = "has the nodes in question: first.onnx and second.onnx"
            absent = "is not written: no nodes are in question, or they are not those of ONNX files"
            put_text(f"\n{printable(region)} {wrote if result.regions else absent}")
        command = after_equivalent(report, given, witness, region)
        if command:
            put_text(f"\nnext: {command}")
    return 0 if report.ok else options.FOUND
