"""shapes: every tensor's shape in a model, and what the model needs of its sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ..errors import printable
from ..report import LONGEST_NAME, notes, shown
from ..report.table import Column
from . import options
from .tables import put_table, put_text

if TYPE_CHECKING:
    from ..models.options import ModelOptions
    from ..models.shapes import Shapes


@click.command(short_help="Every tensor's shape in a model, and what the model needs.")
@click.argument("model", type=click.Path())
@options.of_model("facts")
@click.option("--only", metavar="TEXT", help="Only tensors whose name contains this.")
@click.option("--constants", is_flag=True, help="Show constants, too.")
@click.option(
    "-o", "--output", type=click.Path(), help="Write the model here with the shapes it lacks."
)
@options.as_json
def shapes(
    model: str,
    given: ModelOptions,
    only: str | None,
    constants: bool,
    output: str | None,
    as_json: bool,
) -> int:
    """The shape of every tensor of MODEL in terms of its inputs' sizes, and what it needs.

    Exit status 0: some sizes make the model work. 1: a node fails for all sizes, or contradicts
    what the file says. 2: the model cannot be read, or --output not be written.

    \b
    zerostride shapes model.onnx --set batch=1
    """
    from ..models.shapes import shapes_of

    sized = shapes_of(model, given, output)
    if as_json:
        tensors = [t.as_dict() for t in sized.tensors if only is None or only in t.name]
        options.put_json({**sized.as_dict(), "tensors": tensors, "output": output})
    else:
        _show(sized, only, constants)
        if output is not None:
            put_text(f"written to {printable(output)}")
    return 0 if sized.ok else options.FOUND


def _show(sized: Shapes, only: str | None, constants: bool) -> None:
    rows = [
        (shown(tensor.name, LONGEST_NAME), tensor.role, shown(tensor.text))
        for tensor in sized.tensors
        if (only is None or only in tensor.name) and (tensor.role != "constant" or constants)
    ]
    if rows:
        put_table([Column("tensor"), Column(""), Column("shape")], rows)
    else:
        put_text("no tensor is called so" if only else "no tensors")
    if sized.needs:
        put_text("\nfor these shapes the model needs")
        for need in sized.needs:
            maybe = "" if need.certain else " (where its branch or its loop is run)"
            put_text(f"  {shown(need.condition)} at {shown(need.node_path, 200)}{maybe}")
            put_text(f"    {shown(need.words)}")
    for failure in sized.failures:
        put_text(f"\nno sizes make {shown(failure.node_path, 200)} work: {shown(failure.words)}")
    for note in notes(sized):
        put_text(note)
