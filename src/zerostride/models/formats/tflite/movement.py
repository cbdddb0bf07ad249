"""Rows of :mod:`.lowering`: ops that move, join and count elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...ir.graph import Value
from ..lowering import ELEMENT_TYPES, EVERY, FAR, NoEquivalent, becomes, stacked, table
from .node_writer import FIRST, LAST, OperatorWriter, known


def _reshape(writer: OperatorWriter) -> None:
    """The shape is an operand, or an option. The list [0] is a number in old files."""
    target = writer.stored(1) if len(writer.node.inputs) > 1 and writer.node.inputs[1] else None
    if target is None:
        numbers = writer.parameters.get("new_shape", ())
        target = writer.ints(*(() if numbers == (0,) else numbers))
    elif target.content == (0,):
        target = writer.ints()
    writer.last("Reshape", writer.input(0), writer.as_int64(target), allowzero=1)


def _expand_dims(writer: OperatorWriter) -> None:
    writer.last("Unsqueeze", writer.input(0), writer.ints(writer.one(1)))


def _squeeze(writer: OperatorWriter) -> None:
    """Without a list, every axis of extent 1."""
    axes = writer.parameters.get("squeeze_dims", ())
    writer.last("Squeeze", writer.input(0), *([writer.ints(*axes)] if axes else []))


def _transpose(writer: OperatorWriter) -> None:
    rank = writer.rank()
    order = tuple(axis + rank if axis < 0 else axis for axis in writer.content(1))
    writer.last("Transpose", writer.input(0), perm=order)


def _concat(writer: OperatorWriter) -> None:
    writer.activated("Concat", *writer.inputs(), axis=writer.whole("axis", 0))


def _unpack(writer: OperatorWriter) -> None:
    """Slices of one index; the axis is removed."""
    axis, count = writer.whole("axis", 0), len(writer.node.outputs)
    if count != writer.whole("num", 0):
        raise NoEquivalent
    for k in range(count):
        writer.result(k, "Gather", writer.input(), writer.number(k, "int64"), axis=axis)


def _split(writer: OperatorWriter) -> None:
    axis = writer.one(0)
    count = len(writer.node.outputs)
    writer.last("Split", writer.input(1), axis=axis, num_outputs=count)


def _split_sizes(writer: OperatorWriter) -> None:
    axis, sizes = writer.one(2), writer.stored(1)
    if sizes.content is not None and -1 in sizes.content:
        total, parts = writer.known_sizes(0)[axis], known(sizes)
        rest = total - sum(part for part in parts if part >= 0)
        sizes = writer.ints(*(rest if part == -1 else part for part in parts))
    writer.last("Split", writer.input(0), writer.as_int64(sizes), axis=axis)


def _slice(writer: OperatorWriter) -> None:
    """`size` elements from `begin`; −1 means all the rest."""
    data, begin, size = writer.input(0), writer.stored(1), writer.stored(2)
    if begin.content is not None and size.content is not None:
        pairs = zip(known(begin), known(size), strict=False)
        ends = [FAR if count == -1 else start + count for start, count in pairs]
        writer.last("Slice", data, writer.ints(*known(begin)), writer.ints(*ends))
        return
    start, count = writer.as_int64(begin), writer.as_int64(size)
    rest = writer.op("Equal", count, writer.ints(-1))
    end = writer.op("Where", rest, writer.ints(FAR), writer.op("Add", start, count))
    writer.last("Slice", data, start, end)


def _bits(mask: int, count: int) -> list[bool]:
    return [bool(mask >> k & 1) for k in range(count)]


def _strided_slice(writer: OperatorWriter) -> None:
    """The masks of TensorFlow: begins and ends left out, axes put in, axes removed."""
    strides = writer.content(3)
    count = len(strides)
    begins, ends, dots, new, gone = (
        _bits(writer.parameters.get(f"{name}_mask", 0), count)
        for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")
    )
    backwards = any(strides[k] < 0 for k in range(count) if gone[k])
    if sum(dots) > 1 or writer.parameters.get("offset") or 0 in strides or backwards:
        raise NoEquivalent  # an axis that is removed backwards is not written by LiteRT
    # The entries of the data's own axes, and the axis of each, counted from the end after dots.
    own = [k for k in range(count) if not new[k] and not dots[k]]
    split = dots.index(True) if any(dots) else count
    after = sum(k > split for k in own)
    rank = writer.rank() if after else 0
    axes = [i if k < split else rank - after + i - (len(own) - after) for i, k in enumerate(own)]
    data = writer.input(0)
    steps = [1 if gone[k] else strides[k] for k in own]
    starts = _ends(writer, 1, [(k, begins[k] and not gone[k], strides[k] < 0) for k in own])
    stops = _ends(writer, 2, [(k, ends[k], strides[k] > 0) for k in own], [gone[k] for k in own])
    if own:
        cut = writer.op("Slice", data, starts, stops, writer.ints(*axes), writer.ints(*steps))
    else:
        cut = data
    removed = [axis for axis, k in zip(axes, own, strict=True) if gone[k]]
    if removed:
        cut = writer.op("Squeeze", cut, writer.ints(*removed))
    places = _new_axes(writer, new, dots, gone, len(own)) if any(new) else []
    if places:
        writer.last("Unsqueeze", cut, writer.ints(*places))
        return
    writer.last("Identity", cut)


def _new_axes(
    writer: OperatorWriter, new: list[bool], dots: list[bool], gone: list[bool], own: int
) -> list[int]:
    """The axes of the result that are put in."""
    spread = writer.rank() - own if any(dots) else 0
    places, axis = [], 0
    for k, put_in in enumerate(new):
        if dots[k]:
            axis += spread
        elif put_in:
            places.append(axis)
            axis += 1
        elif not gone[k]:
            axis += 1
    return places


def _ends(
    writer: OperatorWriter,
    position: int,
    entries: list[tuple[int, bool, bool]],
    single: list[bool] | None = None,
) -> Value:
    """Begins or ends of a slice. Each entry: its position, whether it is left out, and whether
    what is left out is the far end. `single`: entries that end after one index.
    """
    value = writer.stored(position)
    far = [FAR if at_end else (-FAR if position == 2 else 0) for _, _, at_end in entries]
    start = writer.stored(1)
    if value.content is not None and (single is None or start.content is not None):
        numbers, firsts = known(value), known(start) if single is not None else ()
        if any(k >= len(numbers) for k, _, _ in entries):
            raise NoEquivalent
        listed = []
        for i, (k, left_out, _) in enumerate(entries):
            if single is not None and single[i]:
                listed.append(firsts[k] + 1 if firsts[k] != -1 else FAR)
            else:
                listed.append(far[i] if left_out else numbers[k])
        return writer.ints(*listed)
    places = writer.ints(*(k for k, _, _ in entries))
    chosen = writer.op("Gather", writer.as_int64(value), places)
    if single is not None and any(single):
        first = writer.op("Gather", writer.as_int64(start), places)
        last = writer.op("Equal", first, writer.ints(-1))
        following = writer.op("Add", first, writer.ints(1))
        following = writer.op("Where", last, writer.ints(FAR), following)
        chosen = writer.op("Where", writer.truths(*single), following, chosen)
    out = [left and not (single and single[i]) for i, (_, left, _) in enumerate(entries)]
    if any(out):
        chosen = writer.op("Where", writer.truths(*out), writer.ints(*far), chosen)
    return chosen


def _gather(writer: OperatorWriter) -> None:
    if writer.parameters.get("batch_dims", 0):
        raise NoEquivalent
    axis = writer.whole("axis", 0)
    writer.last("Gather", writer.input(0), writer.stored(1), axis=axis)


def _embedding(writer: OperatorWriter) -> None:
    """Rows of the second operand, by the numbers of the first."""
    writer.last("Gather", writer.input(1), writer.stored(0), axis=0)


def _scatter_nd(writer: OperatorWriter) -> None:
    """Updates are added to zeros."""
    indices, target = writer.as_int64(writer.stored(0)), writer.as_int64(writer.stored(2))
    zeros = writer.op("Expand", writer.zero(writer.stored(1)), target)
    writer.last("ScatterND", zeros, indices, writer.input(1), reduction="add")


def _shaped(op: str) -> Callable[[OperatorWriter], None]:
    """The data, and whole numbers: sizes, repeats."""
    return lambda writer: writer.last(op, writer.input(0), writer.as_int64(writer.stored(1)))


def _fill(writer: OperatorWriter) -> None:
    writer.last("Expand", writer.input(1), writer.as_int64(writer.stored(0)))


def _zeros(writer: OperatorWriter) -> None:
    writer.last("Expand", writer.zero(writer.stored(0)), writer.op("Shape", writer.input(0)))


def _shape(writer: OperatorWriter) -> None:
    writer.last("Cast", writer.op("Shape", writer.stored(0)), to=writer.out_type())


def _rank(writer: OperatorWriter) -> None:
    count = writer.op("Shape", writer.op("Shape", writer.stored(0)))
    writer.last("Cast", writer.op("Squeeze", count, writer.ints(0)), to=ELEMENT_TYPES["int32"])


def _pad(writer: OperatorWriter) -> None:
    """LiteRT lists begin and end per axis; ONNX all begins, then all ends."""
    mode = "constant"
    if writer.node.op == "MIRROR_PAD":
        if writer.parameters.get("mode"):
            raise NoEquivalent  # SYMMETRIC repeats the border, which ONNX lacks
        mode = "reflect"
    listed = writer.stored(1)
    if listed.content is not None:
        sizes = known(listed)
        ends = writer.ints(*sizes[::2], *sizes[1::2])
    else:
        turned = writer.op("Transpose", writer.as_int64(listed), perm=(1, 0))
        ends = writer.op("Reshape", turned, writer.ints(-1))
    value = [writer.input(2)] if writer.node.op == "PADV2" else []
    if value and value[0].shape != ():
        value = [writer.op("Reshape", value[0], writer.ints())]
    writer.last("Pad", writer.input(0), ends, *value, mode=mode)


def _one_hot(writer: OperatorWriter) -> None:
    indices, depth, on, off = (writer.input(k) for k in range(4))
    pair = writer.op(
        "Concat", *(writer.op("Reshape", value, writer.ints(1)) for value in (off, on)), axis=0
    )
    writer.last("OneHot", indices, depth, pair, axis=writer.whole("axis", -1))


def _top(writer: OperatorWriter) -> None:
    count = writer.op("Reshape", writer.as_int64(writer.stored(1)), writer.ints(1))
    if len(writer.node.outputs) != 2:
        raise NoEquivalent
    largest, places = writer.several("TopK", 2, writer.input(), count, axis=-1)
    writer.result(0, "Identity", largest)
    writer.result(1, "Cast", places, to=ELEMENT_TYPES["int32"])


def _reverse(writer: OperatorWriter) -> None:
    axes = writer.content(1)
    starts, ends, steps = [-1] * len(axes), [-FAR] * len(axes), [-1] * len(axes)
    listed = (writer.ints(*numbers) for numbers in (starts, ends, axes, steps))
    writer.last("Slice", writer.input(0), *listed)


def _reverse_sequence(writer: OperatorWriter) -> None:
    axis, batch = writer.parameters.get("seq_dim", 0), writer.parameters.get("batch_dim", 0)
    lengths = writer.as_int64(writer.stored(1))
    writer.last("ReverseSequence", writer.input(0), lengths, time_axis=axis, batch_axis=batch)


def _non_zero(writer: OperatorWriter) -> None:
    places = writer.op("Transpose", writer.op("NonZero", writer.input(0)), perm=(1, 0))
    writer.last("Identity", places)


def _blocks(op: str) -> Callable[[OperatorWriter], None]:
    """Between depth and space; channels are last."""

    def write(writer: OperatorWriter) -> None:
        data = writer.op("Transpose", writer.input(), perm=FIRST)
        moved = writer.op(op, data, blocksize=writer.whole("block_size", 0))
        writer.last("Transpose", moved, perm=LAST)

    return write


def _space_to_batch(writer: OperatorWriter) -> None:
    """Blocks of spatial axes become the outer batch."""
    block, edges = writer.content(1), writer.content(2)
    sizes = writer.known_sizes(0)
    inner = len(block)
    if min(block, default=0) < 1 or len(edges) != 2 * inner or len(sizes) < inner + 1:
        raise NoEquivalent
    before = [0, *edges[::2], *[0] * (len(sizes) - inner - 1)]
    after = [0, *edges[1::2], *[0] * (len(sizes) - inner - 1)]
    padded = [a + b + c for a, b, c in zip(sizes, before, after, strict=True)]
    rest = padded[inner + 1 :]
    if any(padded[k + 1] % block[k] for k in range(inner)):
        raise NoEquivalent
    data = writer.op("Pad", writer.input(0), writer.ints(*before, *after), mode="constant")
    cut: list[int] = [n for k in range(inner) for n in (padded[k + 1] // block[k], block[k])]
    data = writer.op("Reshape", data, writer.ints(padded[0], *cut, *rest))
    order = [*range(2, 2 * inner + 1, 2), 0, *range(1, 2 * inner, 2)]
    order += range(2 * inner + 1, 2 * inner + 1 + len(rest))
    data = writer.op("Transpose", data, perm=tuple(order))
    batch = padded[0] * _product(block)
    writer.last("Reshape", data, writer.ints(batch, *cut[::2], *rest))


def _batch_to_space(writer: OperatorWriter) -> None:
    block, crops = writer.content(1), writer.content(2)
    sizes = writer.known_sizes(0)
    inner = len(block)
    count = _product(block)
    if min(block, default=0) < 1 or len(crops) != 2 * inner or len(sizes) < inner + 1:
        raise NoEquivalent
    if sizes[0] % count:
        raise NoEquivalent
    rest = sizes[inner + 1 :]
    batch = sizes[0] // count
    data = writer.op("Reshape", writer.input(0), writer.ints(*block, batch, *sizes[1:]))
    order = [inner, *(n for k in range(inner) for n in (inner + 1 + k, k))]
    order += range(2 * inner + 1, 2 * inner + 1 + len(rest))
    data = writer.op("Transpose", data, perm=tuple(order))
    whole = [sizes[k + 1] * block[k] for k in range(inner)]
    data = writer.op("Reshape", data, writer.ints(batch, *whole, *rest))
    ends = [size - crop for size, crop in zip(whole, crops[1::2], strict=True)]
    axes = writer.ints(*range(1, inner + 1))
    writer.last("Slice", data, writer.ints(*crops[::2]), writer.ints(*ends), axes)


def _product(numbers: tuple[int, ...]) -> int:
    total = 1
    for number in numbers:
        total *= number
    return total


def _running_sum(writer: OperatorWriter) -> None:
    flags: dict[str, Any] = {
        name: int(writer.parameters.get(name, False)) for name in ("exclusive", "reverse")
    }
    writer.last("CumSum", writer.input(0), writer.stored(1), **flags)


#: Builtin op to row.
ROWS = table(
    {
        "BATCH_TO_SPACE_ND": _batch_to_space,
        "BROADCAST_TO": _shaped("Expand"),
        "CONCATENATION": _concat,
        "CUMSUM": _running_sum,
        "DEPTH_TO_SPACE": _blocks("DepthToSpace"),
        "EMBEDDING_LOOKUP": _embedding,
        "EXPAND_DIMS": _expand_dims,
        "FILL": _fill,
        "GATHER": _gather,
        "GATHER_ND": _shaped("GatherND"),
        "ONE_HOT": _one_hot,
        "PACK": stacked,
        "RANGE": becomes("Range", EVERY),
        "RANK": _rank,
        "RESHAPE": _reshape,
        "REVERSE_SEQUENCE": _reverse_sequence,
        "REVERSE_V2": _reverse,
        "SCATTER_ND": _scatter_nd,
        "SHAPE": _shape,
        "SLICE": _slice,
        "SPACE_TO_BATCH_ND": _space_to_batch,
        "SPACE_TO_DEPTH": _blocks("SpaceToDepth"),
        "SPLIT": _split,
        "SPLIT_V": _split_sizes,
        "SQUEEZE": _squeeze,
        "STRIDED_SLICE": _strided_slice,
        "TILE": _shaped("Tile"),
        "TOPK_V2": _top,
        "TRANSPOSE": _transpose,
        "UNPACK": _unpack,
        "WHERE": _non_zero,
        "ZEROS_LIKE": _zeros,
    },
    ("PAD PADV2 MIRROR_PAD", _pad),
)
