"""Rows of :mod:`.lowering` for ops that move, join and count elements."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from ...ir.graph import Value
from ..lowering import EVERY, FAR, NoEquivalent, becomes, table, whole
from .node_writer import INT32, OpWriter


def _reshape(w: OpWriter) -> None:
    data, target = w.input(), w.optional(1)
    if w.text("layout") == "nc4hw4" and w.text("dimType") == "nhwc":
        raise NoEquivalent
    if target is None:
        target = w.ints(*w.listed("dims"))
    elif w.text("parameter") != "reshape":
        w.plain_order()
    if w.text("layout") == "nhwc" and 0 in (target.content or (0,)):
        raise NoEquivalent  # 0 means 0 in models of TensorFlow, and the data's size in others
    return w.last("Reshape", data, target)


def _squeeze(w: OpWriter) -> None:
    axes = w.axes("squeezeDims")
    # No list, or an empty one: every axis of extent 1.
    if axes is None or axes.content == ():
        return w.last("Squeeze", w.input())
    return w.last("Squeeze", w.input(), axes)


def _unsqueeze(w: OpWriter) -> None:
    axes = w.axes("squeezeDims")
    if axes is None:
        raise NoEquivalent
    return w.last("Unsqueeze", w.input(), axes)


def _expand_dims(w: OpWriter) -> None:
    axis = w.optional(1)
    if axis is None:
        return w.last("Unsqueeze", w.input(), w.ints(w.whole("axis", 0)))
    if axis.shape == ():
        axis = w.op("Reshape", axis, w.ints(1))
    return w.last("Unsqueeze", w.input(), axis)


def _permute(w: OpWriter) -> None:
    if not w.flag("has_dims"):
        return w.last("Transpose", w.input())
    return w.last("Transpose", w.input(), perm=w.node.attributes["dims"])


def _transpose(w: OpWriter) -> None:
    order = w.input(1).content
    if order is None or not all(isinstance(axis, int) for axis in order):
        raise NoEquivalent
    return w.last("Transpose", w.input(), perm=order)


def _convert(w: OpWriter) -> None:
    """A change of data format: axes move only between NHWC and the other formats."""
    source, dest = w.node.attributes.get("layout"), w.node.attributes.get("dest")
    if source not in ("NCHW", "NC4HW4", "NHWC") or dest not in ("NCHW", "NC4HW4", "NHWC"):
        raise NoEquivalent
    data = w.input()
    if (source == "NHWC") == (dest == "NHWC"):
        return w.last("Identity", data)
    rank = w.rank()
    if rank == 2:
        return w.last("Identity", data)
    inner = tuple(range(2, rank))
    perm = (0, *inner, 1) if dest == "NHWC" else (0, rank - 1, *range(1, rank - 1))
    return w.last("Transpose", data, perm=perm)


def _pack(w: OpWriter) -> None:
    """Stacking: adds an axis to each operand and joins along it."""
    axis = w.whole("axis", 0)
    shapes = {value.shape for value in w.node.inputs if value is not None}
    if len(shapes) != 1 and None not in shapes:
        raise NoEquivalent  # the result is meaningless
    parts = [w.op("Unsqueeze", value, w.ints(axis)) for value in w.node.inputs]
    return w.last("Concat", *parts, axis=axis)


def _flatten(w: OpWriter) -> None:
    if w.flag("endAxis"):
        raise NoEquivalent
    return w.last("Flatten", w.input(), axis=w.whole("axis", 0))


def _split(w: OpWriter) -> None:
    axis, points = w.whole("axis", 0), w.listed("slicePoints")
    source, results = w.node.attributes.get("sourceType"), len(w.node.outputs)
    data = w.input()
    if w.optional(1) is not None:
        return w.last("Split", data, w.input(1), axis=axis)
    if source == "CAFFE":
        return w.last("Split", data, _between(w, axis, points), axis=axis)
    if len(points) == results > 1 and min(points) >= 0:
        return w.last("Split", data, w.ints(*points), axis=axis)
    if len(points) > 1 or (points and source != "TENSORFLOW"):
        raise NoEquivalent
    return w.last("Split", data, axis=axis, num_outputs=results)


def _between(w: OpWriter, axis: int, points: Sequence[int]) -> Value:
    """The sizes of the parts between points of an axis; the last part is the rest."""
    if len(points) + 1 != len(w.node.outputs) or list(points) != sorted(points):
        raise NoEquivalent
    sizes = [b - a for a, b in itertools.pairwise((0, *points))]
    total = w.op("Shape", w.input(), start=axis, end=None if axis == -1 else axis + 1)
    rest = w.op("Sub", total, w.ints(points[-1] if points else 0))
    return w.op("Concat", w.ints(*sizes), rest, axis=0)


def _slice_size(w: OpWriter) -> None:
    """`size` elements from `begin`; −1 means all the rest.

    MNN gives the result the requested size even if the operand is shorter. A reshape to that size
    follows the slice, and fails if ONNX's slice is shorter.
    Source: alibaba/MNN source/shape/ShapeSliceTf.cpp.
    """
    data, begin, size = w.input(), w.input(1), w.input(2)
    starts, counts = (
        [number for number in value.content or () if isinstance(number, int)]
        for value in (begin, size)
    )
    if len(starts) == len(counts) == len(size.content or (None,)):
        ends = [FAR if n == -1 else _plus(at, n) for at, n in zip(starts, counts, strict=True)]
        target = w.ints(*ends)
        if data.known or min(counts, default=0) < 1:
            return w.last("Slice", data, begin, target)
        return w.last("Reshape", w.op("Slice", data, begin, target), w.ints(*counts))
    all_left = w.op("Equal", size, w.number(-1, "int32"))
    end = w.op("Where", all_left, w.number(FAR, "int32"), w.op("Add", begin, size))
    return w.last("Slice", data, begin, end)


def _elements(w: OpWriter) -> None:
    """GatherElements and ScatterElements: the axis is the last operand."""
    operands, axis = w.node.inputs[:-1], w.input(len(w.node.inputs) - 1)
    if axis.content is None or len(axis.content) != 1:
        raise NoEquivalent
    if w.node.attributes.get("opType", "-1") != "-1":
        raise NoEquivalent  # updates are added or multiplied
    return w.last(w.node.op, *operands, axis=axis.content[0])


def _plus(start: Any, count: Any) -> int:
    if not isinstance(start, int) or not isinstance(count, int) or start < 0 or count < 0:
        raise NoEquivalent
    return start + count


def _strided_slice(w: OpWriter) -> None:
    """ONNX's form: begin, end, axes, steps as operands; TensorFlow's masks are not translated."""
    masks = ("beginMask", "endMask", "ellipsisMask", "newAxisMask", "shrinkAxisMask")
    if any(w.node.attributes.get(mask) for mask in masks):
        raise NoEquivalent
    data, begin, end = (w.input(k) for k in range(3))
    if w.flag("fromType") == 1:
        return w.last("Slice", data, begin, end, w.optional(3), w.optional(4))
    if w.optional(4) is not None:
        raise NoEquivalent  # it writes into its operand
    return w.last("Slice", data, begin, end, None, w.optional(3))


def _gather(w: OpWriter) -> None:
    axis: Any = w.whole("axis", 0) if w.text("parameter") == "axis" else 0
    axis_operand = w.optional(2)
    if w.optional(1) is None:
        raise NoEquivalent
    if axis_operand is not None and w.text("parameter") != "axis":
        if axis_operand.content is None or len(axis_operand.content) != 1:
            raise NoEquivalent
        axis = axis_operand.content[0]
    return w.last("Gather", w.input(), w.input(1), axis=axis)


def _fill(w: OpWriter) -> None:
    value = w.input(1)
    if value.shape not in ((), (1,)):
        raise NoEquivalent
    return w.last("Expand", value, w.input())


def _zeros(w: OpWriter) -> None:
    return w.last("ConstantOfShape", w.op("Shape", w.input()), value=0.0)


# Shapes and constants.


def _shape(w: OpWriter) -> None:
    w.plain_order()
    cuts = (("hasStart", "start"), ("hasEnd", "end"))
    start, end = (w.whole(key) if w.flag(given) else None for given, key in cuts)
    # MNN counts in int32.
    return w.last("Cast", w.op("Shape", w.input(), start=start, end=end), to=INT32)


def _size(w: OpWriter) -> None:
    return w.last("Cast", w.op("Size", w.input()), to=INT32)


def _rank(w: OpWriter) -> None:
    count = w.op("Shape", w.op("Shape", w.input()))
    return w.last("Cast", w.op("Squeeze", count, w.ints(0)), to=INT32)


#: PadValueMode to ONNX's mode; MNN's SYMMETRIC repeats the border, which ONNX lacks.
_PAD_MODES: Mapping[int, str] = MappingProxyType({0: "constant", 1: "reflect", 3: "edge"})


def _pad(w: OpWriter) -> None:
    """MNN lists begin and end per axis; ONNX all begins, then all ends.

    A number below 0 crops in ONNX, but not in MNN 3.6, so it is not translated.
    """
    mode = _PAD_MODES.get(w.whole("mode", 0))
    if mode is None:
        raise NoEquivalent
    pads = w.input(1)
    sizes = [size for size in pads.content or () if isinstance(size, int)]
    if any(size < 0 for size in sizes):
        raise NoEquivalent
    if pads.content is not None and len(sizes) == len(pads.content):
        ends = w.ints(*sizes[::2], *sizes[1::2])
    else:
        paired = w.op("Reshape", pads, w.ints(-1, 2))
        ends = w.op("Reshape", w.op("Transpose", paired, perm=(1, 0)), w.ints(-1))
    value = [] if (filler := w.optional(2)) is None else [filler]
    return w.last("Pad", w.input(), ends, *value, mode=mode)


#: Op type to row.
ROWS = table(
    ("Gather GatherV2", _gather),
    ("GatherElements ScatterElements", _elements),
    {
        "BroadcastTo": becomes("Expand", 0, 1),
        "Concat": becomes("Concat", EVERY, axis=whole("axis", 0)),
        "ConvertTensor": _convert,
        "ExpandDims": _expand_dims,
        "Fill": _fill,
        "Flatten": _flatten,
        "Pack": _pack,
        "Padding": _pad,
        "Permute": _permute,
        "Range": becomes("Range", 0, 1, 2),
        "Rank": _rank,
        "Reshape": _reshape,
        "Shape": _shape,
        "Size": _size,
        "Slice": _split,
        "SliceTf": _slice_size,
        "Squeeze": _squeeze,
        "StridedSlice": _strided_slice,
        "Tile": becomes("Tile", 0, 1),
        "Transpose": _transpose,
        "Unsqueeze": _unsqueeze,
        "ZerosLike": _zeros,
    },
)
