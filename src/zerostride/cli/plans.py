"""explain, compare and compute: commands about shapes and arrays."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import click
import numpy as np

from .. import explain as drawing
from ..comparison import compare as compare_shapes
from ..compute import functions
from ..errors import BroadcastError, ZerostrideError
from ..ops import find_op
from ..plan import Plan
from ..planner import plan, plan_to
from ..rules import whdc
from . import options
from .options import AxesType, ShapeType
from .shapes import open_array

_whdc = click.option("--whdc", "in_whdc", is_flag=True, help="Shapes are in ncnn's order w,h,d,c.")


@click.command()
@click.argument("shapes", nargs=-1, required=True, type=ShapeType())
@options.combine(options.rule, options.axis, options.broadcast, options.engine)
@click.option("--op", help="The op, where an engine's ops differ (prelu).")
@click.option("--to", "target", type=ShapeType(), help="Target shape of a Broadcast op.")
@options.mode
@click.option("--axes-mapping", type=AxesType(), help="Target axis of each data axis: 1,2.")
@click.option("--express", "other", help="Also say it in this rule, or on this engine.")
@click.option("--code", "language", help="Print source for this framework instead.")
@click.option("--svg", "svg_file", type=click.Path(dir_okay=False), help="Write the drawing here.")
@_whdc
@options.as_json
def explain(
    shapes: tuple[tuple[int, ...], ...],
    rule: str | None,
    axis: int | None,
    broadcast: int | None,
    engine: str | None,
    op: str | None,
    target: tuple[int, ...] | None,
    mode: str | None,
    axes_mapping: list[int] | None,
    other: str | None,
    language: str | None,
    svg_file: str | None,
    in_whdc: bool,
    as_json: bool,
) -> int:
    """Draw how SHAPES are combined, or why they are not.

    A shape is 2,3,4 or [2,3,4] or 2x3x4 or (), a .npy file, or MODEL.onnx:TENSOR.

    \b
    zerostride explain 2,3,4,5 3,4 --rule pdpd --axis 1
    zerostride explain 16 --to 1,16,50,50 --mode explicit --axes-mapping 1
    """
    if in_whdc:
        shapes = tuple(map(whdc, shapes))
    try:
        if target is not None:
            _refuse_extra(rule=rule, axis=axis, broadcast=broadcast)
            _single(shapes)
            made = plan_to(shapes[0], target, mode, axes_mapping, engine, op)
        else:
            _refuse_extra(mode=mode, axes_mapping=axes_mapping)
            made = plan(*shapes, rule=rule, axis=axis, broadcast=broadcast, engine=engine, op=op)
    except BroadcastError as error:
        if as_json:
            options.put_json(options.error_dict(error))
            return options.exit_status(error)
        raise
    if svg_file is not None:
        write_whole(svg_file, made.svg().encode())
    if as_json:
        options.put_json(_plan_dict(made, other))
    elif language is not None:
        click.echo(made.code(language))
    else:
        click.echo(made.explain(color=options.colored()))
        if other is not None:
            click.echo(f"in {other}: {made.express(other).describe()}")
    return 0


def _refuse_extra(**given: Any) -> None:
    for name, value in given.items():
        if value is not None:
            flag = "--" + name.replace("_", "-")
            needs = (
                "goes with --to" if name in ("mode", "axes_mapping") else "does not go with --to"
            )
            raise click.UsageError(f"{flag} {needs}")


def _single(shapes: tuple[Any, ...]) -> None:
    if len(shapes) != 1:
        raise click.UsageError(f"--to takes one data shape, not {len(shapes)}")


def _plan_dict(made: Plan, other: str | None) -> dict[str, Any]:
    answer = {"ok": True, **drawing.as_dict(made)}
    if other is not None:
        answer["express"] = made.express(other).as_dict()
    return answer


@click.command()
@click.argument("shapes", nargs=-1, required=True, type=ShapeType())
@click.option("--reference", default="numpy", show_default=True, help="What is meant: a rule.")
@options.axis
@_whdc
@options.as_json
def compare(
    shapes: tuple[tuple[int, ...], ...],
    reference: str,
    axis: int | None,
    in_whdc: bool,
    as_json: bool,
) -> int:
    """What every rule and engine makes of SHAPES; exit status 1 if one computes something else.

    \b
    zerostride compare 5,5 5
    """
    if in_whdc:
        shapes = tuple(map(whdc, shapes))
    found = compare_shapes(*shapes, reference=reference, axis=axis)
    if as_json:
        options.put_json(found.as_dict())
    else:
        click.echo(str(found))
    # Refusing is not lying: only what computes something else is a finding.
    trapped = any(row.silent or row.verdict in _TRAPS for row in found.rows)
    return options.FOUND if trapped else 0


_TRAPS = frozenset({"different", "same_here", "only_here"})


@click.command()
@click.argument("op")
@click.argument("files", nargs=-1, required=True, type=click.Path(dir_okay=False))
@options.combine(options.rule, options.axis, options.broadcast, options.engine)
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False), help="Write the result here (.npy)."
)
@options.as_json
def compute(
    op: str,
    files: tuple[str, ...],
    rule: str | None,
    axis: int | None,
    broadcast: int | None,
    engine: str | None,
    output: str | None,
    as_json: bool,
) -> int:
    """Compute OP over .npy FILES under any rule; the result is printed, or written with -o.

    \b
    zerostride compute add a.npy b.npy --rule ncnn -o c.npy
    """
    row = find_op(op)
    if len(files) != row.operands:
        raise click.UsageError(f"{row.name} takes {row.operands} arrays, {len(files)} were given")
    arrays = [open_array(file) for file in files]
    function = getattr(functions, row.name)
    result = np.asarray(function(*arrays, rule=rule, axis=axis, broadcast=broadcast, engine=engine))
    if output is not None:
        write_array(output, result)
    if as_json:
        facts = {"op": row.name, "shape": result.shape, "dtype": str(result.dtype)}
        options.put_json(
            {**facts, "output": output} if output else {**facts, "result": result.tolist()}
        )
    elif output is not None:
        click.echo(f"{output}: {row.name}, shape {result.shape}, {result.dtype}")
    else:
        click.echo(str(result))
    return 0


def write_array(path: str, array: np.ndarray[Any, Any]) -> None:
    """Writes a .npy file whole or not at all."""
    target = Path(path)
    with _replacing(target) as handle:
        np.save(handle, array, allow_pickle=False)


def write_whole(path: str, data: bytes) -> None:
    """Writes a file whole or not at all."""
    with _replacing(Path(path)) as handle:
        handle.write(data)


class _replacing:  # noqa: N801 - reads as a verb
    """A temporary file that takes the target's name when all went well."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __enter__(self) -> Any:
        try:
            self.handle = tempfile.NamedTemporaryFile(
                dir=self.target.parent, prefix=f".{self.target.name}.", delete=False
            )
        except OSError as error:
            raise ZerostrideError(f"{self.target}: {error.strerror}") from None
        return self.handle

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.handle.close()
        if kind is not None:
            os.unlink(self.handle.name)
            return
        # NamedTemporaryFile makes private files; give the usual rights.
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(self.handle.name, 0o666 & ~mask)
        os.replace(self.handle.name, self.target)
