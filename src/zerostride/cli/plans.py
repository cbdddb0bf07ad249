"""explain, compare and compute: commands about shapes and arrays."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import click
import numpy as np

from ..compute import functions, unary
from ..core.plan import Plan
from ..core.rules import MODES, RULES, whdc
from ..derive import explain as drawing
from ..derive.compare import compare as compare_shapes
from ..derive.samples import one_sample
from ..engines.planning import plan, plan_to
from ..engines.table import ENGINES, find_engine
from ..errors import BroadcastError, ZerostrideError
from ..models.reasons import REASONS, row_of_code
from ..ops import OPS, Op, find_op
from ..sizes import elements
from . import options
from .files import open_array, physical_memory, write_array, write_whole
from .options import AXES, SHAPE, SIZE, word_of
from .tables import put_text

_whdc = click.option("--whdc", "in_whdc", is_flag=True, help="Shapes are in ncnn's order w,h,d,c.")
#: Options that say how operands are aligned; with the engine, what is asked of `plan`.
_ALIGNING = ("rule", "axis", "broadcast")
_asked = options.combine(options.rule, options.axis, options.broadcast, options.engine)
_batch_axis = click.option(
    "--batch-axis",
    type=click.IntRange(0),
    help="The result's axis that counts samples: ncnn, which sees one, is asked without it.",
)


#: A code of a finding. No shape of one axis is called so.
_CODE = re.compile("ZS[0-9]{3}")


_op = click.option(
    "--op", type=word_of(lambda: OPS), help="The op, where an engine's ops differ (prelu)."
)


@click.command(short_help="Draw how shapes are combined, or why they are not.")
@click.argument("shapes", nargs=-1, required=True, type=SHAPE)
@_asked
@_op
@click.option("--to", "target", type=SHAPE, help="Target shape of a Broadcast op.")
@options.mode
@click.option("--axes-mapping", type=AXES, help="Target axis of each data axis: 1,2.")
@click.option(
    "--express",
    "other",
    type=word_of(lambda: (*RULES, *MODES, *ENGINES)),
    metavar="NAME",
    help="Also say it in this rule, or on this engine.",
)
@click.option(
    "--code",
    "language",
    type=word_of(lambda: _targets()),
    metavar="TARGET",
    help="Print source to paste instead: for numpy, torch, jax, tensorflow, paddle, mnn, onnx, "
    "openvino, openvino-ir, stablehlo, einops or ncnn.",
)
@options.facts
@click.option(
    "--set",
    "sizes",
    multiple=True,
    type=SIZE,
    help="A value for a size that is not known: N=4. May be given again.",
)
@click.option("--svg", "svg_file", type=click.Path(), help="Write the drawing here.")
@_batch_axis
@_whdc
@options.as_json
def explain(
    shapes: tuple[tuple[Any, ...], ...],
    op: str | None,
    target: tuple[Any, ...] | None,
    mode: str | None,
    axes_mapping: list[int] | None,
    other: str | None,
    language: str | None,
    facts: tuple[str, ...],
    sizes: tuple[tuple[str, int | str], ...],
    svg_file: str | None,
    batch_axis: int | None,
    in_whdc: bool,
    as_json: bool,
    **asked: Any,
) -> int:
    """Draw how SHAPES are combined, or why they are not; or say what a code of a finding means.

    A shape is 2,3,4 or [2,3,4] or 2x3x4 or (), a .npy file, or MODEL.onnx:TENSOR. A size that is
    not known is a name, ?, bounds or an expression: 'N,?,1..8,2*N+1'. Quote those: to a shell ?, *
    and parentheses are patterns.

    \b
    zerostride explain ZS103
    zerostride explain 2,3,4,5 3,4 --rule pdpd --axis 1
    zerostride explain N,1,H C,H --given 'N >= 1' --set C=3
    zerostride explain 1,16,8,8 16,1,1 --engine ncnn --batch-axis 0
    zerostride explain 16 --to 1,16,50,50 --mode explicit --axes-mapping 1
    """
    if len(shapes) == 1 and len(shapes[0]) == 1 and _CODE.fullmatch(str(shapes[0][0])):
        return _explain_code(str(shapes[0][0]), as_json=as_json)
    if in_whdc:
        shapes = tuple(map(whdc, shapes))
    engine = asked["engine"]
    shapes, note = _for_engine(shapes, engine, batch_axis, target)
    if target is not None:
        _refuse_extra(**{name: asked[name] for name in _ALIGNING})
        _single(shapes)
        result = plan_to(shapes[0], target, mode, axes_mapping, engine, op, facts or None)
    else:
        _refuse_extra(mode=mode, axes_mapping=axes_mapping)
        result = plan(*shapes, **asked, op=op, facts=facts or None)
    if sizes:
        result = result.bind(_values(sizes))
    if svg_file is not None:
        write_whole(svg_file, result.svg().encode())
    if as_json:
        options.put_json(_plan_dict(result, other, language))
    elif language is not None:
        click.echo(result.code(language))
    else:
        names = ("data",) if target is not None else ()
        words = result.express(other).describe(names) if other is not None else ""
        expressed = f"\nin {other}: {words}" if other is not None else ""
        color = options.colored()
        put_text(result.explain(color=color) + expressed + note, color=color)
    return 0


def _explain_code(code: str, *, as_json: bool) -> int:
    """Prints the meaning of a reason of findings."""
    row = row_of_code(code)
    if row is None:
        raise ZerostrideError(f"no reason has the code {code}; known: {REASONS[0].code} and others")
    if as_json:
        options.put_json({"ok": True, "code": row.code, "reason": row.name, "meaning": row.meaning})
    else:
        put_text(f"{row.code} {row.name}: {row.meaning}")
    return 0


def _for_engine(
    shapes: tuple[tuple[Any, ...], ...],
    engine: str | None,
    batch_axis: int | None,
    target: tuple[Any, ...] | None,
) -> tuple[tuple[tuple[Any, ...], ...], str]:
    """The shapes as the engine gets them, and a note on the batch axis where that matters."""
    row = None if engine is None else find_engine(engine)
    sees_one = row is not None and bool(row.samples)
    if batch_axis is None:
        outer = max(shapes, key=len)
        if not sees_one or target is not None or len(outer) < 2 or outer[0] != 1:
            return shapes, ""
        advice = "sees one sample at a time; where axis 0 is a batch, use --batch-axis 0"
        return shapes, f"\nnote: {engine} {advice}"
    if not sees_one or target is not None:
        names = ", ".join(name for name, other in ENGINES.items() if other.samples)
        raise click.UsageError(f"--batch-axis goes with --engine {names} and without --to")
    sample = one_sample(shapes, batch_axis)
    return sample, f"\nnote: {engine} is asked without axis {batch_axis}, the batch"


def _targets() -> Iterable[str]:
    from ..derive.code import TARGETS  # only completion and `plan.code` need it

    return TARGETS


def _values(sizes: tuple[tuple[str, int | str], ...]) -> dict[str, int | str]:
    values = dict(sizes)
    if len(values) < len(sizes):
        raise click.UsageError("--set gives one size two values")
    return values


def _refuse_extra(**extra: Any) -> None:
    for name, value in extra.items():
        if value is not None:
            flag = "--" + name.replace("_", "-")
            needs = (
                "goes with --to" if name in ("mode", "axes_mapping") else "does not go with --to"
            )
            raise click.UsageError(f"{flag} {needs}")


def _single(shapes: tuple[Any, ...]) -> None:
    if len(shapes) != 1:
        raise click.UsageError(f"--to takes one data shape, not {len(shapes)}")


def _plan_dict(result: Plan, other: str | None, language: str | None) -> dict[str, Any]:
    answer = {"ok": True, **drawing.as_dict(result)}
    if other is not None:
        answer["express"] = result.express(other).as_dict()
    if language is not None:
        answer["code"] = result.code(language)
    return answer


@click.command(short_help="What every rule and engine makes of the same shapes.")
@click.argument("shapes", nargs=-1, required=True, type=SHAPE)
@click.option(
    "--reference",
    default="numpy",
    show_default=True,
    type=word_of(lambda: RULES),
    metavar="RULE",
    help="What is meant: a rule.",
)
@options.axis
@options.engine
@click.option("--releases", is_flag=True, help="The engine's measured releases: what changed when.")
@_op
@click.option("--dtype", help="The element type; engines whose op does not take it refuse.")
@options.facts
@_batch_axis
@_whdc
@options.as_json
def compare(
    shapes: tuple[tuple[Any, ...], ...],
    reference: str,
    axis: int | None,
    engine: str | None,
    releases: bool,
    op: str | None,
    dtype: str | None,
    facts: tuple[str, ...],
    batch_axis: int | None,
    in_whdc: bool,
    as_json: bool,
) -> int:
    """What every rule and engine makes of SHAPES; exit status 1 if one computes something else.

    Of sizes that are not known: for which of them, with an example.

    \b
    zerostride compare 5,5 5
    zerostride compare H,W W --given 'H != W'
    zerostride compare 1,16,8,8 16,1,1 --batch-axis 0
    zerostride compare 5,2 2 --engine ncnn --releases
    zerostride compare 2,3,4 3 --op prelu
    """
    if releases and engine is None:
        raise click.UsageError("--releases needs --engine")
    if in_whdc:
        shapes = tuple(map(whdc, shapes))
    comparison = compare_shapes(
        *shapes,
        reference=reference,
        axis=axis,
        facts=facts or None,
        batch_axis=batch_axis,
        engine=engine,
        releases=releases,
        op=op,
        dtype=dtype,
    )
    if as_json:
        options.put_json(comparison.as_dict())
    else:
        put_text(str(comparison))
    # A refusal is no finding; a different result is.
    trapped = any(row.silent or row.verdict in _TRAPS for row in comparison.rows)
    return options.FOUND if trapped else 0


_TRAPS = frozenset({"different", "same_here", "only_here", "unknown"})


@click.command(short_help="Compute an op over .npy files under any rule.")
@click.argument("op", type=word_of(lambda: OPS))
@click.argument("files", nargs=-1, required=True, type=click.Path())
@_asked
@click.option("--dtype", help="What to compute in; for cast, what to convert to.")
@click.option(
    "-p",
    "--parameter",
    "parameters",
    multiple=True,
    help="A parameter of an activation: alpha=0.3. May be repeated.",
)
@click.option("-o", "--output", type=click.Path(), help="Write the result here (.npy).")
@options.as_json
def compute(
    op: str,
    files: tuple[str, ...],
    dtype: str | None,
    parameters: tuple[str, ...],
    output: str | None,
    as_json: bool,
    **asked: Any,
) -> int:
    """Compute OP over .npy FILES under any rule; the result is printed, or written with -o.

    \b
    zerostride compute add a.npy b.npy --rule ncnn -o c.npy
    zerostride compute elu a.npy -p alpha=0.3
    """
    row = find_op(op)
    if len(files) != row.tensors:
        takes = "1 array" if row.tensors == 1 else f"{row.tensors} arrays"
        raise click.UsageError(f"{row.name} takes {takes}, not {len(files)}")
    arrays = [open_array(file) for file in files]
    if row.tensors == 1:
        planned = plan(arrays[0].shape)
        _check_one(row, asked)
    else:
        op_there = row.name if asked["engine"] is not None else None
        planned = plan(*(array.shape for array in arrays), **asked, op=op_there)
    keywords = {name: value for name, value in asked.items() if value is not None}
    keywords |= _parameters(row, parameters)
    if dtype is not None:
        keywords["dtype"] = _dtype(dtype)
    elif row.name == "cast":
        raise click.UsageError("cast takes --dtype, what to convert to")
    home: Any = functions if hasattr(functions, row.name) else unary
    function = getattr(home, row.name)
    try:
        _check_fits(planned, _result_dtype(function, arrays, keywords))
        with np.errstate(all="ignore"):  # NaN and infinity are valid results
            result = np.asarray(function(*arrays, **keywords))
    except TypeError as error:
        raise ZerostrideError(str(error)) from None
    if as_json and output is None and result.size > MOST_JSON:
        raise click.UsageError(f"a result of {result.size} elements is no JSON; write it with -o")
    if output is not None:
        write_array(output, result)
    if as_json:
        facts = {"op": row.name, "shape": result.shape, "dtype": str(result.dtype)}
        answer = {"output": output} if output is not None else {"result": result.tolist()}
        options.put_json({"ok": True, **facts, **answer})
    elif output is not None:
        put_text(f"{output}: {row.name}, shape {result.shape}, {result.dtype}")
    else:
        click.echo(str(result))
    return 0


def _check_one(row: Op, asked: Mapping[str, Any]) -> None:
    """Refuses options that align operands if there is only one operand."""
    for name in _ALIGNING:
        if asked[name] is not None:
            raise click.UsageError(f"{row.name} takes one array: --{name} has nothing to align")
    if row.name == "cast" and asked["engine"] is not None:
        raise click.UsageError("what engines' casts give was not measured")


def _parameters(row: Op, words: Sequence[str]) -> dict[str, float]:
    """{"alpha": 0.3} from "alpha=0.3"."""
    values = {}
    for word in words:
        name, _, number = word.partition("=")
        if name not in row.parameters:
            has = f"it has {', '.join(row.parameters)}" if row.parameters else "it has none"
            raise click.UsageError(f"{row.name} has no parameter {name!r}; {has}")
        try:
            values[name] = float(number)
        except ValueError:
            raise click.UsageError(f"{word!r} is no NAME=NUMBER") from None
    return values


def _dtype(name: str) -> np.dtype[Any]:
    try:
        return np.dtype(name)
    except TypeError:
        raise click.UsageError(f"there is no dtype {name!r}") from None


#: The most numbers of a result that are printed as JSON; more belong in a file.
MOST_JSON = 1_000_000


def _result_dtype(
    function: Callable[..., Any], arrays: Sequence[np.ndarray[Any, Any]], keywords: dict[str, Any]
) -> np.dtype[Any] | None:
    """The op's result dtype, from one element of each operand; None if the op refuses."""
    try:
        ones = [np.ones((1,) * array.ndim, array.dtype) for array in arrays]
        return np.asarray(function(*ones, **keywords)).dtype
    except (BroadcastError, TypeError, ValueError):
        return None  # the computation refuses the operands, with their shapes in the message


def _check_fits(planned: Plan, dtype: np.dtype[Any] | None) -> None:
    """Refuses a result larger than memory before any work: systems overcommit memory."""
    if dtype is None:
        return
    size, memory = elements(planned.shape) * dtype.itemsize, physical_memory()
    if memory is not None and size > memory:
        raise ZerostrideError(
            f"the result {planned.shape} of {dtype} needs {size:,} bytes; "
            f"this machine has {memory:,}"
        )
