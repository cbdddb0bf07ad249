"""convert: a model brought to an engine, with proof."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..report import headline, notes, told
from ..report.next_command import after_convert
from ..report.table import wrapped
from ..report.terminal import cause_table, causes_of
from ..report.terminal_checks import change_table, check_lines
from ..system.interrupts import INTERRUPTED
from . import engine_runs, options, outputs
from .tables import put_lines, put_text, width

if TYPE_CHECKING:
    from ..models.findings import Report


@click.command(short_help="Port a model, convert it for an engine, and prove the result there.")
@click.argument("model", type=click.Path())
@options.target(
    required=True,
    type=options.engine_name,
    help="The engine: ncnn, openvino, mnn, litert, litert-gpu or executorch.",
)
@click.option(
    "-o",
    "--output",
    required=True,
    type=outputs.folder,
    metavar="FOLDER",
    help="A folder: for the ported model, converted files, report.html, inputs.npz and how.txt.",
)
@click.option(
    "--dequantize",
    is_flag=True,
    help="Convert a copy of a quantised ONNX model in floats, without its rounding.",
)
@engine_runs.options(
    "Of inputs that are not given.",
    "Seconds for the conversion, and for the run; 600 and 300 if not given.",
    *("batch_axis", "facts"),
)
@options.as_json
def convert(
    model: str,
    target: str,
    output: str,
    dequantize: bool,
    asked: engine_runs.EngineRun,
    as_json: bool,
) -> int:
    """Bring MODEL, an ONNX or .pt2 file, to the engine --target, with proof.

    The model is ported, converted by the engine's own converter in a child process, and run on the
    engine beside itself, on the same inputs. A second call does not convert again. For LiteRT the
    converted file is ported, and MODEL may be a .tflite file, which is ported alone.

    Exit status 0: every broadcast means the same, and the outputs agree. 1: something is left or
    differs, or the conversion failed. 2: bad input, or a package is not installed.

    \b
    zerostride convert model.onnx --target ncnn -o out/
    """
    from ..runtimes.convert.run import convert as run

    show = None if as_json else partial(_show, folder=output)
    try:
        return asked.carry_out(
            partial(run, to=target, output=output, dequantize=dequantize), model, show
        )
    except KeyboardInterrupt:
        words = f"interrupted; every file in {output} is whole, and the same command goes on"
        put_text(f"zerostride: {words}", err=True)
        return INTERRUPTED  # click would print an empty line


def _show(report: Report, folder: str) -> None:
    """Prints how it ended, what changed, how the outputs compare, what is left, and the files."""
    columns = width()
    put_lines(wrapped(headline(report), columns))
    for note in notes(report):
        put_lines(wrapped(note, columns))
    put_lines([*change_table(report.changes, columns), *check_lines(report, columns)])
    causes = causes_of([finding for finding in told(report) if not finding.holds])
    if causes:
        put_lines(["\nleft", *cause_table(causes, columns, why="not ported: ")])
    put_text()
    if report.output is not None:
        put_text(f"file: {report.output}")
    put_text(f"report: {Path(folder) / 'report.html'}")
    command = after_convert(report, folder)
    if command:
        put_text(f"next: {command}")
