"""`plan_quantization`: a tensor, its scale and its zero point become a QuantizationPlan."""

from __future__ import annotations

import math
from typing import Any

from ..core.plan import Plan, RuleUse
from ..errors import BroadcastError, Misfit, Reason
from ..sizes import Shape, as_shape, brief, is_array, is_open, whole_numbers
from .model import Placement, QuantizationPlan, Quantizer
from .placing import Advised, Placed, is_number, place, refuse
from .rows import NEWEST_OPSET, OLDEST_OPSET, STANDARD, find_quantizer
from .words import NAMES


def plan_quantization(
    x: Any,
    scale: Any,
    zero_point: Any = None,
    axis: Any = None,
    block: Any = None,
    engine: str | None = None,
    opset: int | None = None,
) -> QuantizationPlan:
    """How a scale and a zero point lie on a tensor: which elements share a number.

    Args:
        x: the tensor's shape, or an array.
        scale: the scale's shape, or an array: `()` or `(1,)` for one number, a vector along `axis`,
            the tensor's rank with 1 where it repeats, or with `block` a number for each block.
        zero_point: the zero point's shape, or an array; that of the scale, or one number.
        axis: the axis of a vector, or of blocks; 1 if left out, as in ONNX. Several for blocks of
            several axes.
        block: the elements of a block (ONNX's block_size); a size for each of several axes. The
            last block may have fewer.
        engine: ask what that engine's measured release takes.
        opset: ONNX's opset, for engines that read ONNX files: 10 or newer; the newest if left out.

    Returns:
        A frozen value. Equal values mean the same.

    Raises:
        BroadcastError: the scale does not fit, or the engine or the opset lacks the placement.

    Source: ONNX, QuantizeLinear and DequantizeLinear of opsets 10 to 25.

    >>> import zerostride as zs
    >>> print(zs.plan_quantization((4, 64), (4, 2), axis=1, block=32))
    rule 'quantization' axis=1 block=32: a scale for each block of 32 along axis 1
      x      4 2 32
      scale  4 2  .
    8 scales for 256 elements
    >>> zs.plan_quantization((2, 3), (3,)) == zs.plan_quantization((2, 3), (1, 3))
    True
    """
    attributes = {"axis": axis, "block": block, "opset": opset}
    options = {name: value for name, value in attributes.items() if value is not None}
    row = STANDARD if engine is None else find_quantizer(engine)
    use = RuleUse("quantization", options, engine)
    written = (x, scale) if zero_point is None else (x, scale, zero_point)
    shapes: tuple[Any, ...] = tuple(map(_written, written))
    try:
        shapes = tuple(map(_shape, shapes))
        return _plan(shapes, axis, block, opset, row, use)
    except Advised as problem:
        misfit, hint, silent = problem.misfit, problem.hint, problem.silent
    except Misfit as problem:
        misfit, hint, silent = problem, None, False
    raise BroadcastError(
        misfit.detail,
        reason=misfit.reason,
        rule=use,
        shapes=shapes,
        names=NAMES[: len(shapes)],
        hint=hint,
        silent=silent,
    )


def _written(value: Any) -> Any:
    """An array's shape; a number is of rank 0."""
    if is_array(value) or hasattr(value, "dtype"):
        return tuple(value.shape)
    return () if isinstance(value, int | float) and not isinstance(value, bool) else value


def _shape(value: Any) -> Shape:
    if is_open(value):
        raise refuse(
            Reason.UNKNOWN_SIZE,
            f"{brief(value)} has sizes that are no numbers; a quantisation is planned of numbers",
        )
    return as_shape(value)


def _plan(
    shapes: tuple[Shape, ...], axis: Any, block: Any, opset: Any, row: Quantizer, use: RuleUse
) -> QuantizationPlan:
    """Places the parameters, asks the row, and splits the axes."""
    x, scale, *zero = shapes
    if len(x) < row.least_rank:
        raise Advised(
            Misfit(Reason.CRASH, f"a tensor of {len(x)} axes ends the process of {row.name}"),
            f"reshape x to have {row.least_rank} axes",
            silent=True,
        )
    placed = place(x, scale, axis, block, row.default_axis)
    if zero and not row.zeros:
        raise refuse(Reason.ATTRIBUTE, f"{row.name} has no zero points", "leave it out")
    others = [_zero_point(x, scale, shape, placed, row) for shape in zero]
    padding = tuple(-n % b if b > 1 and n else 0 for n, b in zip(x, placed.blocks, strict=True))
    padding = tuple(p if b < n else 0 for p, b, n in zip(padding, placed.blocks, x, strict=True))
    _check_row(x, placed, row, _opset(opset, row), use, one=scale == (1,))
    if row.divides and placed.placement is Placement.BLOCK and math.prod(scale) != 1:
        _check_blocks(x, placed.blocks, row, bool(zero))
    return _split(shapes, (placed, *others), padding, use)


def _zero_point(x: Shape, scale: Shape, zero: Shape, placed: Placed, row: Quantizer) -> Placed:
    """The place of the zero point: the scale's, or one number for all."""
    if zero == scale or (is_number(zero) and is_number(scale)):
        return Placed(placed.placement, placed.blocks, placed.mapping[: len(zero)])
    if zero == () and row.shared:
        return Placed(Placement.TENSOR, x, ())
    shared = "" if not row.shared else ", or one number of shape ()"
    raise refuse(
        Reason.EXTENT_MISMATCH,
        f"the zero point has the scale's shape {scale}{shared}, not {zero}",
        f"repeat it: np.full({scale}, zero_point)" if is_number(zero) else None,
    )


def _opset(opset: Any, row: Quantizer) -> int | None:
    """The opset that is asked about, or None where there are none."""
    if not any(row.placements.values()):
        if opset is not None:
            raise refuse(Reason.ATTRIBUTE, f"{row.name} has no opsets", "leave out opset=")
        return None
    if opset is None:
        return NEWEST_OPSET
    number = whole_numbers((opset,))
    if number is None or not OLDEST_OPSET <= number[0] <= NEWEST_OPSET:
        raise refuse(
            Reason.ATTRIBUTE,
            f"ONNX quantises in opsets {OLDEST_OPSET} to {NEWEST_OPSET}, not {brief(opset)}",
        )
    return number[0]


_WORDS = {
    Placement.TENSOR: "one scale for the tensor",
    Placement.AXIS: "a vector of scales along an axis",
    Placement.AXES: "a scale of the tensor's rank without block=",
    Placement.BLOCK: "a scale for each block",
}


def _check_row(
    x: Shape,
    placed: Placed,
    row: Quantizer,
    opset: int | None,
    use: RuleUse,
    *,
    one: bool,
) -> None:
    """Refuses what the row, or an older opset, has not."""
    since = row.placements.get(placed.placement)
    if row.vector_axis is not None and placed.placement is Placement.AXIS:
        _check_vector(x, placed, row.vector_axis, row)
    words = _WORDS[placed.placement]
    if since is None:
        listed = "; ".join(_WORDS[each] for each in row.placements)
        raise refuse(Reason.NO_RULE, f"{row.name} does not take {words}", f"it takes {listed}")
    if opset is not None and not since and "opset" in use.attributes:
        raise refuse(Reason.NO_RULE, f"ONNX has no {words.removeprefix('a ')}", "leave out opset=")
    if opset is not None and opset < since:
        raise refuse(
            Reason.NO_RULE,
            f"{words} begins with opset {since}, and this is opset {opset}",
            f"write opset={since}",
        )
    if row.vectors and placed.placement is Placement.BLOCK and placed.mapping == (0,) and one:
        raise refuse(
            Reason.NO_RULE,
            f"{row.name} takes a scale of shape (1,) for one number, and then no block",
            "leave out block=",
        )
    several = sum(block > 1 for block in placed.blocks) > 1
    if placed.placement is Placement.BLOCK and several and row is not STANDARD:
        raise refuse(Reason.NO_RULE, f"{row.name} takes blocks along one axis")


def _check_vector(x: Shape, placed: Placed, axis: int, row: Quantizer) -> None:
    """Refuses a vector of scales on another axis, and one that the engine reads wrongly."""
    if placed.mapping != (axis,):
        raise refuse(
            Reason.AXIS_RANGE,
            f"a vector of scales lies on axis {axis} on {row.name}",
            f"write axis={axis}" if axis == 0 else None,
        )
    if len(x) == 1:  # ncnn
        raise Advised(
            Misfit(Reason.WRONG_RESULT, f"{row.name} reads the first scale alone"),
            "add an axis of 1 behind",
            silent=True,
        )
    if row.packs and x[axis] > row.packs and x[0] > 1:
        raise Advised(
            Misfit(
                Reason.WRONG_RESULT,
                f"{row.name} mixes up a vector of more than {row.packs} scales for several samples",
            ),
            "quantise one sample at a time",
            silent=True,
        )


def _check_blocks(x: Shape, blocks: Shape, row: Quantizer, zero: bool) -> None:
    """Refuses the blocks that an engine which splits axes has not."""
    if not zero:
        raise refuse(
            Reason.ATTRIBUTE, f"{row.name} refuses blocks without a zero point", "pass zeros"
        )
    if any(n % block for n, block in zip(x, blocks, strict=True) if block):
        raise refuse(
            Reason.EXTENT_MISMATCH,
            f"{row.name} refuses blocks that do not divide their axis",
            "pad x to a multiple of the block",
        )


def _split(
    shapes: tuple[Shape, ...], placed: tuple[Placed, ...], padding: Shape, use: RuleUse
) -> QuantizationPlan:
    """The plan over split axes: an axis of n is two if its block is neither 1 nor all of it."""
    x, first = shapes[0], placed[0]
    split: list[int] = []
    place_of: list[int] = []  # the axis of the split shape on which each axis of x begins
    for n, b in zip(x, first.blocks, strict=True):
        place_of.append(len(split))
        split += [-(-n // b), b] if 1 < b < n else [n]
    mapping: list[tuple[int | None, ...]] = [tuple(range(len(split)))]
    for each in placed:
        mapping.append(tuple(None if k is None else place_of[k] for k in each.mapping))
    plan = Plan(tuple(split), (tuple(split), *shapes[1:]), tuple(mapping), use)
    axes = tuple(k for k, (n, b) in enumerate(zip(x, first.blocks, strict=True)) if b < n)
    blocks = tuple(min(b, n) for n, b in zip(x, first.blocks, strict=True))
    return QuantizationPlan(x, plan, blocks, first.placement, axes, padding, use)
