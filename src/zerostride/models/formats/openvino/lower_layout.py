"""Rows of :mod:`.lower` for layers that rearrange, gather, reduce or make tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from ....sizes import MAX_RANK
from ...ir.graph import FileShape, Node, Value
from .tensors import element_type
from .words import NoWords, Words

Row = Callable[[Words], tuple[Node, ...]]

#: An end beyond every size, for a slice to the last index.
_FAR = 2**31 - 1
#: ONNX, TensorProto.DataType.
_NUMBERS = MappingProxyType(
    {
        "float32": 1,
        "uint8": 2,
        "int8": 3,
        "uint16": 4,
        "int16": 5,
        "int32": 6,
        "int64": 7,
        "bool": 9,
        "float16": 10,
        "float64": 11,
        "uint32": 12,
        "uint64": 13,
        "bfloat16": 16,
    }
)


def _type_number(text: str) -> int:
    kind = element_type(text)
    number = None if kind is None else _NUMBERS.get(kind.dtype or "")
    if number is None:
        raise NoWords
    return number


def _convert(words: Words) -> tuple[Node, ...]:
    return words.last("Cast", words.input(0), to=_type_number(words.text("destination_type")))


def _convert_like(words: Words) -> tuple[Node, ...]:
    return words.last("CastLike", words.input(0), words.input(1))


def _shape_of(words: Words) -> tuple[Node, ...]:
    kind = _type_number(words.text("output_type", "i64"))
    if kind == _NUMBERS["int64"]:
        return words.last("Shape", words.input(0))
    return words.last("Cast", words.make("Shape", words.input(0), dtype="int64"), to=kind)


def _reshape(words: Words) -> tuple[Node, ...]:
    target = words.input(1)
    literal = not words.flag("special_zero")
    if literal and target.content is not None and {0, -1} <= set(target.content):
        raise NoWords
    return words.last("Reshape", words.input(0), target, allowzero=int(literal))


def _axes(words: Words, position: int) -> Value:
    """Axes as a vector, as in ONNX; unknown axes stay if they are a vector."""
    axes = words.input(position)
    if axes.content is not None:
        return words.ints(words.numbers(position))
    if axes.shape is None or len(axes.shape) != 1:
        raise NoWords
    return axes


def _squeeze(words: Words) -> tuple[Node, ...]:
    axes = words.optional(1)
    if axes is None or axes.shape == (0,):  # no axes means all axes of extent 1
        return words.last("Squeeze", words.input(0))
    if words.flag("allow_axis_skip"):
        raise NoWords
    return words.last("Squeeze", words.input(0), _axes(words, 1))


def _unsqueeze(words: Words) -> tuple[Node, ...]:
    return words.last("Unsqueeze", words.input(0), _axes(words, 1))


def _transpose(words: Words) -> tuple[Node, ...]:
    order = words.numbers(1)
    attributes = {"perm": order} if order else {}
    return words.last("Transpose", words.input(0), **attributes)


def _concat(words: Words) -> tuple[Node, ...]:
    inputs = [words.input(position) for position in range(len(words.node.inputs))]
    return words.last("Concat", *inputs, axis=words.integer("axis"))


def _one(words: Words, position: int) -> int:
    numbers = words.numbers(position)
    if len(numbers) != 1:
        raise NoWords
    return numbers[0]


def _split(words: Words) -> tuple[Node, ...]:
    count = words.integer("num_splits")
    if count != len(words.node.outputs):
        raise NoWords
    return words.last("Split", words.input(0), None, axis=_one(words, 1), num_outputs=count)


def _variadic_split(words: Words) -> tuple[Node, ...]:
    axis, lengths = _one(words, 1), words.input(2)
    if lengths.content is not None and -1 in lengths.content:
        parts, shape = list(words.numbers(2)), words.input(0).shape
        if shape is None or not -len(shape) <= axis < len(shape) or parts.count(-1) > 1:
            raise NoWords
        whole = shape[axis]
        if not isinstance(whole, int):
            raise NoWords
        parts[parts.index(-1)] = whole - sum(parts) - 1
        lengths = words.ints(parts)
    return words.last("Split", words.input(0), lengths, axis=axis)


def _slice(words: Words) -> tuple[Node, ...]:
    start, stop, step = (words.input(position) for position in (1, 2, 3))
    return words.last("Slice", words.input(0), start, stop, words.optional(4), step)


def _mask(words: Words, name: str, count: int) -> tuple[int, ...]:
    mask = words.list(name)
    return (mask + (0,) * count)[:count]


def _strided_slice(words: Words) -> tuple[Node, ...]:
    """Slices along the first axes; a mask of 1 ignores a bound, adds an axis or removes one.

    An added axis has an entry in the bounds but no axis of the data.
    """
    begin, end = words.input(1), words.input(2)
    if not begin.shape or len(begin.shape) != 1 or not isinstance(begin.shape[0], int):
        raise NoWords
    count = begin.shape[0]
    if count > MAX_RANK:
        raise NoWords
    steps = words.numbers(3) if words.optional(3) is not None else (1,) * count
    if len(steps) != count or any(_mask(words, "ellipsis_mask", count)):
        raise NoWords
    new, gone = (_mask(words, f"{name}_axis_mask", count) for name in ("new", "shrink"))
    free = [_mask(words, f"{name}_mask", count) for name in ("begin", "end")]
    entries = [k for k in range(count) if not new[k]]
    axes = range(len(entries))
    if any(new) or any(gone):
        # A removed axis must have one index, which only known bounds show.
        starts, ends = list(words.numbers(1)), list(words.numbers(2))
        if len(starts) != count or len(ends) != count:
            raise NoWords
        for k in entries:
            if gone[k]:
                ends[k] = starts[k] + 1 if starts[k] != -1 else _FAR
        if any(free[0][k] or steps[k] != 1 for k in entries if gone[k]):
            raise NoWords
        free[1] = tuple(int(bool(f) and not g) for f, g in zip(free[1], gone, strict=True))
        starts, ends = ([listed[k] for k in entries] for listed in (starts, ends))
        begin, end = words.ints(starts), words.ints(ends)
    steps = tuple(steps[k] for k in entries)
    bounds = []
    for value, mask, side in zip((begin, end), free, (0, 1), strict=True):
        open_ = [mask[k] for k in entries]
        # A reversed slice begins at the last index and ends before the first.
        ends_ = {(0, True): 0, (0, False): _FAR, (1, True): _FAR, (1, False): -_FAR}
        far = [ends_[side, step > 0] for step in steps]
        bounds.append(_left_open(words, value, open_, far))
    cut = (words.input(0), *bounds, words.ints(axes), words.ints(steps))
    if not any(new) and not any(gone):
        return words.last("Slice", *cut)
    dropped = [place for place, k in enumerate(entries) if gone[k]]
    added = [k - sum(gone[:k]) for k in range(count) if new[k]]
    kept = words.node.outputs[0].shape
    if kept is not None:
        kept = tuple(size for axis, size in enumerate(kept) if axis not in added)
    part = words.make("Slice", *cut, shape=_with_ones(kept, dropped))
    if not added:
        return words.last("Squeeze", part, words.ints(dropped))
    if dropped:
        part = words.make("Squeeze", part, words.ints(dropped), shape=kept)
    return words.last("Unsqueeze", part, words.ints(added))


def _with_ones(shape: FileShape, axes: list[int]) -> FileShape:
    """A shape with extents of 1 inserted at these axes of the result."""
    if shape is None:
        return None
    sizes = list(shape)
    for axis in axes:
        sizes.insert(axis, 1)
    return tuple(sizes)


def _left_open(words: Words, value: Value, mask: list[int], far: list[int]) -> Value:
    """The bounds, with `far` in place of masked ones."""
    if not any(mask):
        return value
    if value.shape != (len(mask),):
        raise NoWords
    if value.content is not None:
        pairs = zip(value.content, mask, far, strict=True)
        numbers = [limit if out else number for number, out, limit in pairs]
        if all(isinstance(number, int) for number in numbers):
            return words.ints([int(number) for number in numbers if isinstance(number, int)])
    if value.dtype != "int64":
        value = words.make("Cast", value, dtype="int64", to=_NUMBERS["int64"])
    chosen = Value(f"{words.node.name}~mask", (len(mask),), True, tuple(mask), dtype="bool")
    return words.make("Where", chosen, words.ints(far), value, dtype="int64")


def _gather(words: Words) -> tuple[Node, ...]:
    if words.integer("batch_dims", 0):
        raise NoWords
    return words.last("Gather", words.input(0), words.input(1), axis=_one(words, 2))


def _gather_elements(words: Words) -> tuple[Node, ...]:
    return words.last("GatherElements", words.input(0), words.input(1), axis=words.integer("axis"))


def _gather_nd(words: Words) -> tuple[Node, ...]:
    batch = words.integer("batch_dims", 0)
    if batch > 1 and words.node.version < 8:
        raise NoWords  # GatherND-5 merges the batch axes
    return words.last("GatherND", words.input(0), words.input(1), batch_dims=batch)


def _scatter_nd(words: Words) -> tuple[Node, ...]:
    if words.text("reduction", "none") != "none":
        raise NoWords
    return words.last("ScatterND", *(words.input(position) for position in range(3)))


def _scatter_elements(words: Words) -> tuple[Node, ...]:
    if words.text("reduction", "none") != "none":
        raise NoWords
    inputs = (words.input(position) for position in range(3))
    return words.last("ScatterElements", *inputs, axis=_one(words, 3))


def _range(words: Words) -> tuple[Node, ...]:
    inputs = tuple(words.input(position) for position in range(3))
    kinds = {value.dtype for value in (*inputs, words.node.outputs[0])}
    if len(kinds) > 1:
        raise NoWords
    return words.last("Range", *inputs)


def _reduce(words: Words) -> tuple[Node, ...]:
    axes = _axes(words, 1)
    keep: dict[str, Any] = {"keepdims": int(words.flag("keep_dims")), "noop_with_empty_axes": 1}
    if not words.op.startswith("ReduceLogical"):
        return words.last(words.op, words.input(0), axes, **keep)
    # And is the minimum of truth values, Or the maximum.
    numbers = words.make(
        "Cast", words.input(0), dtype="int32", shape=words.input(0).shape, to=_NUMBERS["int32"]
    )
    name = "ReduceMin" if words.op.endswith("And") else "ReduceMax"
    reduced = words.make(name, numbers, axes, shape=words.node.outputs[0].shape, **keep)
    return words.last("Cast", reduced, to=_NUMBERS["bool"])


def _pad(words: Words) -> tuple[Node, ...]:
    mode = words.text("pad_mode")
    if mode not in ("constant", "edge", "reflect"):
        raise NoWords
    pads = words.make("Concat", words.input(1), words.input(2), axis=0)
    if pads.dtype != "int64":
        pads = words.make("Cast", pads, dtype="int64", to=_NUMBERS["int64"])
    value = words.optional(3) if mode == "constant" else None
    return words.last("Pad", words.input(0), pads, value, mode=mode)


def _tile(words: Words) -> tuple[Node, ...]:
    if words.input(1).shape != (words.rank(0),):
        raise NoWords  # ONNX wants a number for every axis
    return words.last("Tile", words.input(0), words.input(1))


def _top_k(words: Words) -> tuple[Node, ...]:
    if (
        words.text("sort", "value") != "value"
        or _type_number(words.text("index_element_type")) != 7
    ):
        raise NoWords
    count = words.make("Reshape", words.input(1), words.ints((1,)), allowzero=1)
    largest = int(words.text("mode") == "max")
    return words.last(
        "TopK", words.input(0), count, axis=words.integer("axis"), largest=largest, sorted=1
    )


def _non_zero(words: Words) -> tuple[Node, ...]:
    if _type_number(words.text("output_type", "i64")) != _NUMBERS["int64"]:
        raise NoWords
    return words.last("NonZero", words.input(0))


def _depth_to_space(words: Words) -> tuple[Node, ...]:
    mode = {"blocks_first": "DCR", "depth_first": "CRD"}.get(words.text("mode"))
    if mode is None or words.rank(0) != 4:
        raise NoWords
    size = words.integer("block_size", 1)
    return words.last("DepthToSpace", words.input(0), blocksize=size, mode=mode)


def _space_to_depth(words: Words) -> tuple[Node, ...]:
    if words.text("mode") != "blocks_first" or words.rank(0) != 4:
        raise NoWords
    return words.last("SpaceToDepth", words.input(0), blocksize=words.integer("block_size", 1))


def _einsum(words: Words) -> tuple[Node, ...]:
    inputs = [words.input(position) for position in range(len(words.node.inputs))]
    equation = str(words.node.attributes.get("equation", ""))
    return words.last("Einsum", *inputs, equation=equation)


_REDUCTIONS = "Sum Mean Max Min Prod L1 L2 LogicalAnd LogicalOr"
#: Op to row.
ROWS: Mapping[str, Row] = MappingProxyType(
    {
        "Convert": _convert,
        "ConvertLike": _convert_like,
        "ShapeOf": _shape_of,
        "Reshape": _reshape,
        "Squeeze": _squeeze,
        "Unsqueeze": _unsqueeze,
        "Transpose": _transpose,
        "Concat": _concat,
        "Split": _split,
        "VariadicSplit": _variadic_split,
        "Slice": _slice,
        "StridedSlice": _strided_slice,
        "Gather": _gather,
        "GatherElements": _gather_elements,
        "GatherND": _gather_nd,
        "ScatterNDUpdate": _scatter_nd,
        "ScatterElementsUpdate": _scatter_elements,
        "Range": _range,
        **{f"Reduce{name}": _reduce for name in _REDUCTIONS.split()},
        "Pad": _pad,
        "Tile": _tile,
        "TopK": _top_k,
        "NonZero": _non_zero,
        "DepthToSpace": _depth_to_space,
        "SpaceToDepth": _space_to_depth,
        "Einsum": _einsum,
    }
)
