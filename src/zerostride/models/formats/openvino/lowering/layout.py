"""Rows of :mod:`.elements` for layers that rearrange, gather, reduce or make tensors."""

from __future__ import annotations

from typing import Any

from .....sizes import MAX_RANK
from ....ir.graph import FileShape, Value
from ...lowering import (
    ELEMENT_TYPES,
    EVERY,
    FAR,
    NoEquivalent,
    becomes,
    checked,
    choice,
    if_given,
    one,
    table,
    whole,
)
from ..tensors import element_type
from .writer import IrWriter


def _type_number(text: str) -> int:
    kind = element_type(text)
    number = None if kind is None else ELEMENT_TYPES.get(kind.dtype or "")
    if number is None:
        raise NoEquivalent
    return number


def _shape_of(w: IrWriter) -> None:
    kind = _type_number(w.text("output_type", "i64"))
    if kind == ELEMENT_TYPES["int64"]:
        return w.last("Shape", w.input(0))
    return w.last("Cast", w.op("Shape", w.input(0)), to=kind)


def _reshape(w: IrWriter) -> None:
    target = w.input(1)
    literal = not w.flag("special_zero")
    if literal and target.content is not None and {0, -1} <= set(target.content):
        raise NoEquivalent
    return w.last("Reshape", w.input(0), target, allowzero=int(literal))


def _axes(w: IrWriter, position: int) -> Value:
    """Axes as a vector, as in ONNX; unknown axes stay if they are a vector."""
    axes = w.input(position)
    if axes.content is not None:
        return w.ints(*w.content(position))
    if axes.shape is None or len(axes.shape) != 1:
        raise NoEquivalent
    return axes


def _squeeze(w: IrWriter) -> None:
    axes = w.optional(1)
    if axes is None or axes.shape == (0,):  # no axes means all axes of extent 1
        return w.last("Squeeze", w.input(0))
    if w.flag("allow_axis_skip"):
        raise NoEquivalent
    return w.last("Squeeze", w.input(0), _axes(w, 1))


def _transpose(w: IrWriter) -> None:
    order = w.content(1)
    attributes = {"perm": order} if order else {}
    return w.last("Transpose", w.input(0), **attributes)


def _split(w: IrWriter) -> None:
    count = w.whole("num_splits")
    if count != len(w.node.outputs):
        raise NoEquivalent
    return w.last("Split", w.input(0), None, axis=w.one(1), num_outputs=count)


def _variadic_split(w: IrWriter) -> None:
    axis, lengths = w.one(1), w.input(2)
    if lengths.content is not None and -1 in lengths.content:
        parts, shape = list(w.content(2)), w.input(0).shape
        if shape is None or not -len(shape) <= axis < len(shape) or parts.count(-1) > 1:
            raise NoEquivalent
        whole = shape[axis]
        if not isinstance(whole, int):
            raise NoEquivalent
        parts[parts.index(-1)] = whole - sum(parts) - 1
        lengths = w.ints(*parts)
    return w.last("Split", w.input(0), lengths, axis=axis)


def _mask(w: IrWriter, name: str, count: int) -> tuple[int, ...]:
    mask = w.listed(name)
    return (mask + (0,) * count)[:count]


def _strided_slice(w: IrWriter) -> None:
    """Slices along the first axes; a mask of 1 ignores a bound, adds an axis or removes one.

    An added axis has an entry in the bounds but no axis of the data.
    """
    begin, end = w.input(1), w.input(2)
    if not begin.shape or len(begin.shape) != 1 or not isinstance(begin.shape[0], int):
        raise NoEquivalent
    count = begin.shape[0]
    if count > MAX_RANK:
        raise NoEquivalent
    steps = w.content(3) if w.optional(3) is not None else (1,) * count
    if len(steps) != count or any(_mask(w, "ellipsis_mask", count)):
        raise NoEquivalent
    new, gone = (_mask(w, f"{name}_axis_mask", count) for name in ("new", "shrink"))
    free = [_mask(w, f"{name}_mask", count) for name in ("begin", "end")]
    entries = [k for k in range(count) if not new[k]]
    axes = range(len(entries))
    if any(new) or any(gone):
        # A removed axis must have one index, which only known bounds show.
        starts, ends = list(w.content(1)), list(w.content(2))
        if len(starts) != count or len(ends) != count:
            raise NoEquivalent
        for k in entries:
            if gone[k]:
                ends[k] = starts[k] + 1 if starts[k] != -1 else FAR
        if any(free[0][k] or steps[k] != 1 for k in entries if gone[k]):
            raise NoEquivalent
        free[1] = tuple(int(bool(f) and not g) for f, g in zip(free[1], gone, strict=True))
        starts, ends = ([listed[k] for k in entries] for listed in (starts, ends))
        begin, end = w.ints(*starts), w.ints(*ends)
    steps = tuple(steps[k] for k in entries)
    bounds = []
    for value, mask, side in zip((begin, end), free, (0, 1), strict=True):
        open_ = [mask[k] for k in entries]
        # A reversed slice begins at the last index and ends before the first.
        ends_ = {(0, True): 0, (0, False): FAR, (1, True): FAR, (1, False): -FAR}
        far = [ends_[side, step > 0] for step in steps]
        bounds.append(_left_open(w, value, open_, far))
    cut = (w.input(0), *bounds, w.ints(*axes), w.ints(*steps))
    if not any(new) and not any(gone):
        return w.last("Slice", *cut)
    dropped = [place for place, k in enumerate(entries) if gone[k]]
    added = [k - sum(gone[:k]) for k in range(count) if new[k]]
    kept = w.node.outputs[0].shape
    if kept is not None:
        kept = tuple(size for axis, size in enumerate(kept) if axis not in added)
    part = w.op("Slice", *cut, shape=_with_ones(kept, dropped))
    if not added:
        return w.last("Squeeze", part, w.ints(*dropped))
    if dropped:
        part = w.op("Squeeze", part, w.ints(*dropped), shape=kept)
    return w.last("Unsqueeze", part, w.ints(*added))


def _with_ones(shape: FileShape, axes: list[int]) -> FileShape:
    """A shape with extents of 1 inserted at these axes of the result."""
    if shape is None:
        return None
    sizes = list(shape)
    for axis in axes:
        sizes.insert(axis, 1)
    return tuple(sizes)


def _left_open(w: IrWriter, value: Value, mask: list[int], far: list[int]) -> Value:
    """The bounds, with `far` in place of masked ones."""
    if not any(mask):
        return value
    if value.shape != (len(mask),):
        raise NoEquivalent
    if value.content is not None:
        pairs = zip(value.content, mask, far, strict=True)
        numbers = [limit if out else number for number, out, limit in pairs]
        if all(isinstance(number, int) for number in numbers):
            return w.ints(*(int(number) for number in numbers if isinstance(number, int)))
    if value.dtype != "int64":
        value = w.op("Cast", value, dtype="int64", to=ELEMENT_TYPES["int64"])
    chosen = Value(f"{w.node.name}~mask", (len(mask),), True, tuple(mask), dtype="bool")
    return w.op("Where", chosen, w.ints(*far), value, dtype="int64")


def _gather_nd(w: IrWriter) -> None:
    batch = w.whole("batch_dims", 0)
    if batch > 1 and w.node.version < 8:
        raise NoEquivalent  # GatherND-5 merges the batch axes
    return w.last("GatherND", w.input(0), w.input(1), batch_dims=batch)


def _range(w: IrWriter) -> None:
    inputs = tuple(w.input(position) for position in range(3))
    kinds = {value.dtype for value in (*inputs, w.node.outputs[0])}
    if len(kinds) > 1:
        raise NoEquivalent
    return w.last("Range", *inputs)


def _reduce(w: IrWriter) -> None:
    axes = _axes(w, 1)
    keep: dict[str, Any] = {"keepdims": int(w.flag("keep_dims")), "noop_with_empty_axes": 1}
    if not w.kind.startswith("ReduceLogical"):
        return w.last(w.kind, w.input(0), axes, **keep)
    # And is the minimum of truth values, Or the maximum.
    numbers = w.op(
        "Cast", w.input(0), dtype="int32", shape=w.input(0).shape, to=ELEMENT_TYPES["int32"]
    )
    name = "ReduceMin" if w.kind.endswith("And") else "ReduceMax"
    reduced = w.op(name, numbers, axes, shape=w.node.outputs[0].shape, **keep)
    return w.last("Cast", reduced, to=ELEMENT_TYPES["bool"])


def _pad(w: IrWriter) -> None:
    mode = w.text("pad_mode")
    if mode not in ("constant", "edge", "reflect"):
        raise NoEquivalent
    pads = w.op("Concat", w.input(1), w.input(2), axis=0)
    if pads.dtype != "int64":
        pads = w.op("Cast", pads, dtype="int64", to=ELEMENT_TYPES["int64"])
    value = w.optional(3) if mode == "constant" else None
    return w.last("Pad", w.input(0), pads, value, mode=mode)


def _tile(w: IrWriter) -> None:
    if w.input(1).shape != (w.rank(0),):
        raise NoEquivalent  # ONNX wants a number for every axis
    return w.last("Tile", w.input(0), w.input(1))


def _top_k(w: IrWriter) -> None:
    if w.text("sort", "value") != "value" or _type_number(w.text("index_element_type")) != 7:
        raise NoEquivalent
    count = w.op("Reshape", w.input(1), w.ints(1), allowzero=1)
    largest = int(w.text("mode") == "max")
    return w.last("TopK", w.input(0), count, axis=w.whole("axis"), largest=largest, sorted=1)


def _no_batch(w: IrWriter) -> None:
    if w.whole("batch_dims", 0):
        raise NoEquivalent


def _replaces(w: IrWriter) -> None:
    if w.text("reduction", "none") != "none":
        raise NoEquivalent


def _wide_indices(w: IrWriter) -> None:
    if _type_number(w.text("output_type", "i64")) != ELEMENT_TYPES["int64"]:
        raise NoEquivalent


def _is_image(w: IrWriter) -> None:
    if w.rank() != 4:
        raise NoEquivalent


def _equation(w: IrWriter) -> str:
    return str(w.node.attributes.get("equation", ""))


_BLOCKS = {"blocksize": whole("block_size", 1)}
_REDUCTIONS = "Sum Mean Max Min Prod L1 L2 LogicalAnd LogicalOr"
#: Op to row.
ROWS = table(
    {
        "Convert": becomes("Cast", to=lambda w: _type_number(w.text("destination_type"))),
        "ConvertLike": becomes("CastLike", 0, 1),
        "ShapeOf": _shape_of,
        "Reshape": _reshape,
        "Squeeze": _squeeze,
        "Unsqueeze": becomes("Unsqueeze", 0, lambda w: _axes(w, 1)),
        "Transpose": _transpose,
        "Concat": becomes("Concat", EVERY, axis=whole("axis")),
        "Split": _split,
        "VariadicSplit": _variadic_split,
        "Slice": becomes("Slice", 0, 1, 2, if_given(4), 3),
        "StridedSlice": _strided_slice,
        "Gather": checked(_no_batch, becomes("Gather", 0, 1, axis=one(2))),
        "GatherElements": becomes("GatherElements", 0, 1, axis=whole("axis")),
        "GatherND": _gather_nd,
        "ScatterNDUpdate": checked(_replaces, becomes("ScatterND", 0, 1, 2)),
        "ScatterElementsUpdate": checked(
            _replaces, becomes("ScatterElements", 0, 1, 2, axis=one(3))
        ),
        "Range": _range,
        "Pad": _pad,
        "Tile": _tile,
        "TopK": _top_k,
        "NonZero": checked(_wide_indices, "NonZero"),
        "DepthToSpace": checked(
            _is_image,
            becomes(
                "DepthToSpace",
                mode=choice("mode", {"blocks_first": "DCR", "depth_first": "CRD"}),
                **_BLOCKS,
            ),
        ),
        "SpaceToDepth": checked(
            _is_image,
            becomes("SpaceToDepth", mode=choice("mode", {"blocks_first": None}), **_BLOCKS),
        ),
        "Einsum": becomes("Einsum", EVERY, equation=_equation),
    },
    {f"Reduce{name}": _reduce for name in _REDUCTIONS.split()},
)
