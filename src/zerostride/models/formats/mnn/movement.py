"""Rows of :mod:`.lowering` for ops that move, join and count elements."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from ...ir.graph import Value
from .words import INT32, Row, Said, Unsaid, Words, axes_of, plain_order

#: The end of a slice that goes to the last index.
_FAR = 2**31 - 1


# Movement.


def _reshape(words: Words) -> Said:
    data, target = words.input(0), words.optional(1)
    if words.parameters.get("layout") == "NC4HW4" and words.parameters.get("dimType") == "NHWC":
        raise Unsaid
    if target is None:
        target = words.ints(*words.parameters.get("dims", ()))
    elif words.parameters.get("parameter") != "Reshape":
        plain_order(words)
    if words.parameters.get("layout") == "NHWC" and 0 in (target.content or (0,)):
        raise Unsaid  # 0 means 0 in models of TensorFlow, and the data's size in others
    return words.last("Reshape", data, target)


def _squeeze(words: Words) -> Said:
    axes = axes_of(words, "squeezeDims")
    # No list, or an empty one: every axis of extent 1.
    if axes is None or axes.content == ():
        return words.last("Squeeze", words.input(0))
    return words.last("Squeeze", words.input(0), axes)


def _unsqueeze(words: Words) -> Said:
    axes = axes_of(words, "squeezeDims")
    if axes is None:
        raise Unsaid
    return words.last("Unsqueeze", words.input(0), axes)


def _expand_dims(words: Words) -> Said:
    axis = words.optional(1)
    if axis is None:
        return words.last("Unsqueeze", words.input(0), words.ints(words.parameters.get("axis", 0)))
    if axis.shape == ():
        axis = words.op("Reshape", axis, words.ints(1))
    return words.last("Unsqueeze", words.input(0), axis)


def _permute(words: Words) -> Said:
    if not words.parameters.get("has_dims"):
        return words.last("Transpose", words.input(0))
    return words.last("Transpose", words.input(0), perm=words.parameters["dims"])


def _transpose(words: Words) -> Said:
    order = words.input(1).content
    if order is None or not all(isinstance(axis, int) for axis in order):
        raise Unsaid
    return words.last("Transpose", words.input(0), perm=order)


def _convert(words: Words) -> Said:
    """A change of data format: axes move only between NHWC and the other formats."""
    source, dest = words.parameters.get("layout"), words.parameters.get("dest")
    if source not in ("NCHW", "NC4HW4", "NHWC") or dest not in ("NCHW", "NC4HW4", "NHWC"):
        raise Unsaid
    data = words.input(0)
    if (source == "NHWC") == (dest == "NHWC"):
        return words.last("Identity", data)
    rank = words.rank()
    if rank == 2:
        return words.last("Identity", data)
    inner = tuple(range(2, rank))
    perm = (0, *inner, 1) if dest == "NHWC" else (0, rank - 1, *range(1, rank - 1))
    return words.last("Transpose", data, perm=perm)


def _concat(words: Words) -> Said:
    operands = words.node.inputs
    return words.last("Concat", *operands, axis=words.parameters.get("axis", 0))


def _pack(words: Words) -> Said:
    """Stacking: adds an axis to each operand and joins along it."""
    axis = words.parameters.get("axis", 0)
    shapes = {value.shape for value in words.node.inputs if value is not None}
    if len(shapes) != 1 and None not in shapes:
        raise Unsaid  # the result is meaningless
    parts = [words.op("Unsqueeze", value, words.ints(axis)) for value in words.node.inputs]
    return words.last("Concat", *parts, axis=axis)


def _flatten(words: Words) -> Said:
    if words.parameters.get("endAxis"):
        raise Unsaid
    return words.last("Flatten", words.input(0), axis=words.parameters.get("axis", 0))


def _split(words: Words) -> Said:
    axis, points = words.parameters.get("axis", 0), words.parameters.get("slicePoints", ())
    source, results = words.parameters.get("sourceType"), len(words.node.outputs)
    data = words.input(0)
    if words.optional(1) is not None:
        return words.last("Split", data, words.input(1), axis=axis)
    if source == "CAFFE":
        return words.last("Split", data, _between(words, axis, points), axis=axis)
    if len(points) == results > 1 and min(points) >= 0:
        return words.last("Split", data, words.ints(*points), axis=axis)
    if len(points) > 1 or (points and source != "TENSORFLOW"):
        raise Unsaid
    return words.last("Split", data, axis=axis, num_outputs=results)


def _between(words: Words, axis: int, points: Sequence[int]) -> Value:
    """The sizes of the parts between points of an axis; the last part is the rest."""
    if len(points) + 1 != len(words.node.outputs) or list(points) != sorted(points):
        raise Unsaid
    sizes = [b - a for a, b in itertools.pairwise((0, *points))]
    ends = {} if axis == -1 else {"end": axis + 1}
    total = words.op("Shape", words.input(0), start=axis, **ends)
    rest = words.op("Sub", total, words.ints(points[-1] if points else 0))
    return words.op("Concat", words.ints(*sizes), rest, axis=0)


def _slice_size(words: Words) -> Said:
    """`size` elements from `begin`; −1 means all the rest.

    MNN gives the result the requested size even if the operand is shorter. A reshape to that size
    follows the slice, and fails if ONNX's slice is shorter.
    Source: alibaba/MNN source/shape/ShapeSliceTf.cpp.
    """
    data, begin, size = words.input(0), words.input(1), words.input(2)
    starts, counts = (
        [number for number in value.content or () if isinstance(number, int)]
        for value in (begin, size)
    )
    if len(starts) == len(counts) == len(size.content or (None,)):
        ends = [_FAR if n == -1 else _plus(at, n) for at, n in zip(starts, counts, strict=True)]
        target = words.ints(*ends)
        if data.known or min(counts, default=0) < 1:
            return words.last("Slice", data, begin, target)
        return words.last("Reshape", words.op("Slice", data, begin, target), words.ints(*counts))
    all_left = words.op("Equal", size, words.int32(-1))
    end = words.op("Where", all_left, words.int32(_FAR), words.op("Add", begin, size))
    return words.last("Slice", data, begin, end)


def _elements(words: Words) -> Said:
    """GatherElements and ScatterElements: the axis is the last operand."""
    operands, axis = words.node.inputs[:-1], words.input(len(words.node.inputs) - 1)
    if axis.content is None or len(axis.content) != 1:
        raise Unsaid
    if words.parameters.get("opType", "-1") != "-1":
        raise Unsaid  # updates are added or multiplied
    return words.last(words.node.op, *operands, axis=axis.content[0])


def _plus(start: Any, count: Any) -> int:
    if not isinstance(start, int) or not isinstance(count, int) or start < 0 or count < 0:
        raise Unsaid
    return start + count


def _strided_slice(words: Words) -> Said:
    """ONNX's form: begin, end, axes, steps as operands; TensorFlow's masks are not translated."""
    masks = ("beginMask", "endMask", "ellipsisMask", "newAxisMask", "shrinkAxisMask")
    if any(words.parameters.get(mask) for mask in masks):
        raise Unsaid
    data, begin, end = (words.input(k) for k in range(3))
    if words.parameters.get("fromType") == 1:
        return words.last("Slice", data, begin, end, words.optional(3), words.optional(4))
    if words.optional(4) is not None:
        raise Unsaid  # it writes into its operand
    return words.last("Slice", data, begin, end, None, words.optional(3))


def _gather(words: Words) -> Said:
    axis: Any = (
        words.parameters.get("axis", 0) if words.parameters.get("parameter") == "Axis" else 0
    )
    axis_operand = words.optional(2)
    if words.optional(1) is None:
        raise Unsaid
    if axis_operand is not None and words.parameters.get("parameter") != "Axis":
        if axis_operand.content is None or len(axis_operand.content) != 1:
            raise Unsaid
        axis = axis_operand.content[0]
    return words.last("Gather", words.input(0), words.input(1), axis=axis)


def _tile(words: Words) -> Said:
    return words.last("Tile", words.input(0), words.input(1))


def _broadcast_to(words: Words) -> Said:
    return words.last("Expand", words.input(0), words.input(1))


def _fill(words: Words) -> Said:
    value = words.input(1)
    if value.shape not in ((), (1,)):
        raise Unsaid
    return words.last("Expand", value, words.input(0))


def _zeros(words: Words) -> Said:
    return words.last("ConstantOfShape", words.op("Shape", words.input(0)), value=0.0)


# Shapes and constants.


def _shape(words: Words) -> Said:
    plain_order(words)
    cut = {}
    if words.parameters.get("hasStart"):
        cut["start"] = words.parameters["start"]
    if words.parameters.get("hasEnd"):
        cut["end"] = words.parameters["end"]
    # MNN counts in int32.
    return words.last("Cast", words.op("Shape", words.input(0), **cut), to=INT32)


def _size(words: Words) -> Said:
    return words.last("Cast", words.op("Size", words.input(0)), to=INT32)


def _rank(words: Words) -> Said:
    count = words.op("Shape", words.op("Shape", words.input(0)))
    return words.last("Cast", words.op("Squeeze", count, words.ints(0)), to=INT32)


#: PadValueMode to ONNX's mode; MNN's SYMMETRIC repeats the border, which ONNX lacks.
_PAD_MODES: Mapping[int, str] = MappingProxyType({0: "constant", 1: "reflect", 3: "edge"})


def _pad(words: Words) -> Said:
    """MNN lists begin and end per axis; ONNX all begins, then all ends.

    A number below 0 crops in ONNX, but not in MNN 3.6, so it is not translated.
    """
    mode = _PAD_MODES.get(words.parameters.get("mode", 0))
    if mode is None:
        raise Unsaid
    pads = words.input(1)
    sizes = [size for size in pads.content or () if isinstance(size, int)]
    if any(size < 0 for size in sizes):
        raise Unsaid
    if pads.content is not None and len(sizes) == len(pads.content):
        ends = words.ints(*sizes[::2], *sizes[1::2])
    else:
        paired = words.op("Reshape", pads, words.ints(-1, 2))
        ends = words.op("Reshape", words.op("Transpose", paired, perm=(1, 0)), words.ints(-1))
    value = [] if (filler := words.optional(2)) is None else [filler]
    return words.last("Pad", words.input(0), ends, *value, mode=mode)


def _range(words: Words) -> Said:
    return words.last("Range", *(words.input(k) for k in range(3)))


#: Op type to row.
ROWS: Mapping[str, Row] = MappingProxyType(
    {
        "BroadcastTo": _broadcast_to,
        "Concat": _concat,
        "ConvertTensor": _convert,
        "ExpandDims": _expand_dims,
        "Fill": _fill,
        "Flatten": _flatten,
        **dict.fromkeys(("Gather", "GatherV2"), _gather),
        **dict.fromkeys(("GatherElements", "ScatterElements"), _elements),
        "Pack": _pack,
        "Padding": _pad,
        "Permute": _permute,
        "Range": _range,
        "Rank": _rank,
        "Reshape": _reshape,
        "Shape": _shape,
        "Size": _size,
        "Slice": _split,
        "SliceTf": _slice_size,
        "Squeeze": _squeeze,
        "StridedSlice": _strided_slice,
        "Tile": _tile,
        "Transpose": _transpose,
        "Unsqueeze": _unsqueeze,
        "ZerosLike": _zeros,
    }
)
