"""port: a model rewritten so that another engine means the same by it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ..report import headline, json_text, notes, told
from ..report.next_command import after_port
from ..report.plain import change_text
from ..report.terminal import MOST_DRAWN, cause_table, causes_of
from ..report.terminal_checks import change_table
from . import options, outputs, reporting
from .progress import of_nodes
from .tables import put_lines, put_text, width

if TYPE_CHECKING:
    from ..models.findings import Report
    from ..models.options import ModelOptions


@click.command(short_help="Rewrite a model so that another engine means the same by it.")
@click.argument("model", type=click.Path())
@options.target(required=True, type=options.release_name, help="The engine to port to.")
@click.option(
    "-o",
    "--output",
    type=outputs.model_file,
    metavar="FILE",
    help="The file of the ported model, of the same format; it may be MODEL itself.",
)
@options.of_model("via", "batch_axis", "facts")
@click.option("--dry-run", is_flag=True, help="Write nothing; show what would be done.")
@click.option("--full", is_flag=True, help="Show every change, and findings that are the same.")
@reporting.reports
@options.as_json
def port(
    model: str,
    target: str,
    output: str | None,
    given: ModelOptions,
    dry_run: bool,
    full: bool,
    reports: tuple[str, ...],
    as_json: bool,
) -> int:
    """Rewrite MODEL so that every broadcast means on --target what it means in the model.

    Each rewrite is proven: planned, computed on random numbers, and computed again from the file
    that was written, before that takes its name, and compared for every size. What cannot be
    rewritten stays as it is.

    Exit status 0: all means the same now. 1: something is left. 2: a file cannot be read or
    written, or a check failed; nothing is written then.

    \b
    zerostride port model.onnx --target ncnn -o model.ncnn.onnx
    zerostride port model.onnx --target ncnn --dry-run
    """
    from ..models.port.run import port_model

    if output is None and not dry_run:
        raise click.UsageError("name an output (-o FILE), or look first (--dry-run)")
    if output is not None and dry_run:
        raise click.UsageError("--dry-run writes nothing: leave out -o")
    with of_nodes(model) as told:
        answer = port_model(model, target, output, given, dry_run=dry_run, progress=told)
    reporting.save(reports, answer)
    if as_json:
        click.echo(json_text(answer), nl=False)
    else:
        _show(answer, given, dry_run=dry_run, full=full)
    return 0 if answer.ok else options.FOUND


def _show(answer: Report, given: ModelOptions, *, dry_run: bool, full: bool) -> None:
    """Prints a table of the changes and one of what is left; a few changes in full."""
    put_lines([headline(answer), *notes(answer), *change_table(answer.changes, width())])
    if full or len(answer.changes) <= MOST_DRAWN:
        for change in answer.changes:
            put_text("\n" + change_text(change))
    causes = causes_of(list(answer.findings) if full else told(answer))
    if causes:
        put_lines(["\nleft", *cause_table(causes, width(), full=full, why="not ported: ")])
    command = after_port(answer, given, dry_run=dry_run)
    if command:
        put_text(f"\nnext: {command}")
