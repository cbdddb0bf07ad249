"""port: a model rewritten so that another engine means the same by it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ..report import finding_text, headline, json_text, notes, told
from ..report.plain import change_text
from . import options, reporting
from .progress import of_nodes

if TYPE_CHECKING:
    from ..models.findings import Report
    from ..models.options import ModelOptions

#: The most changes and findings that are shown without --full: some screens.
MOST_SHOWN = 40


@click.command(short_help="Rewrite a model so that another engine means the same by it.")
@click.argument("model", type=click.Path())
@click.option("--target", required=True, type=options.engine_name, help="The engine to port to.")
@click.option(
    "-o",
    "--output",
    type=click.Path(),
    metavar="FILE",
    help="Where the model goes, of the same format; it may be MODEL itself.",
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
    that was written, before that takes its name. What cannot be rewritten stays as it is.

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
        _show(answer, full=full)
    return 0 if answer.ok else options.FOUND


def _show(answer: Report, *, full: bool) -> None:
    """Prints the changes node by node, then the remaining findings."""
    click.echo(headline(answer))
    for note in notes(answer):
        click.echo(note)
    findings = list(answer.findings) if full else list(told(answer))
    parts = [change_text(change) for change in answer.changes]
    parts += [finding_text(finding) for finding in findings]
    shown = parts if full else parts[:MOST_SHOWN]
    for part in shown:
        click.echo("\n" + part)
    if len(shown) < len(parts):
        click.echo(f"\n{headline(answer)}\nand {len(parts) - len(shown)} more; --full shows all")
