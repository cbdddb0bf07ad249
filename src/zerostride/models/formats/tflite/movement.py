"""Rows of :mod:`.lowering`: ops that move, join and count elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...ir.graph import Value
from ..lowering import ELEMENT_TYPES, EVERY, FAR, NoEquivalent, becomes, table
from .words import FIRST, LAST, Words, known


def _reshape(words: Words) -> None:
    """The shape is an operand, or an option. The list [0] is a number in old files."""
    target = words.stored(1) if len(words.node.inputs) > 1 and words.node.inputs[1] else None
    if target is None:
        numbers = words.parameters.get("new_shape", ())
        target = words.ints(*(() if numbers == (0,) else numbers))
    elif target.content == (0,):
        target = words.ints()
    words.last("Reshape", words.input(0), words.as_int64(target), allowzero=1)


def _expand_dims(words: Words) -> None:
    words.last("Unsqueeze", words.input(0), words.ints(words.one(1)))


def _squeeze(words: Words) -> None:
    """Without a list, every axis of extent 1."""
    axes = words.parameters.get("squeeze_dims", ())
    words.last("Squeeze", words.input(0), *([words.ints(*axes)] if axes else []))


def _transpose(words: Words) -> None:
    rank = words.rank()
    order = tuple(axis + rank if axis < 0 else axis for axis in words.content(1))
    words.last("Transpose", words.input(0), perm=order)


def _concat(words: Words) -> None:
    words.activated("Concat", *words.inputs(), axis=words.whole("axis", 0))


def _pack(words: Words) -> None:
    """Stacking: adds an axis to each operand and joins along it."""
    axis = words.whole("axis", 0)
    parts = [words.op("Unsqueeze", value, words.ints(axis)) for value in words.inputs()]
    words.last("Concat", *parts, axis=axis)


def _unpack(words: Words) -> None:
    """Slices of one index; the axis is removed."""
    axis, count = words.whole("axis", 0), len(words.node.outputs)
    if count != words.whole("num", 0):
        raise NoEquivalent
    for k in range(count):
        words.result(k, "Gather", words.input(), words.number(k, "int64"), axis=axis)


def _split(words: Words) -> None:
    axis = words.one(0)
    count = len(words.node.outputs)
    words.last("Split", words.input(1), axis=axis, num_outputs=count)


def _split_sizes(words: Words) -> None:
    axis, sizes = words.one(2), words.stored(1)
    if sizes.content is not None and -1 in sizes.content:
        total, parts = words.known_sizes(0)[axis], known(sizes)
        rest = total - sum(part for part in parts if part >= 0)
        sizes = words.ints(*(rest if part == -1 else part for part in parts))
    words.last("Split", words.input(0), words.as_int64(sizes), axis=axis)


def _slice(words: Words) -> None:
    """`size` elements from `begin`; −1 means all the rest."""
    data, begin, size = words.input(0), words.stored(1), words.stored(2)
    if begin.content is not None and size.content is not None:
        pairs = zip(known(begin), known(size), strict=False)
        ends = [FAR if count == -1 else start + count for start, count in pairs]
        words.last("Slice", data, words.ints(*known(begin)), words.ints(*ends))
        return
    start, count = words.as_int64(begin), words.as_int64(size)
    rest = words.op("Equal", count, words.ints(-1))
    end = words.op("Where", rest, words.ints(FAR), words.op("Add", start, count))
    words.last("Slice", data, start, end)


def _bits(mask: int, count: int) -> list[bool]:
    return [bool(mask >> k & 1) for k in range(count)]


def _strided_slice(words: Words) -> None:
    """The masks of TensorFlow: begins and ends left out, axes put in, axes removed."""
    strides = words.content(3)
    count = len(strides)
    begins, ends, dots, new, gone = (
        _bits(words.parameters.get(f"{name}_mask", 0), count)
        for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")
    )
    backwards = any(strides[k] < 0 for k in range(count) if gone[k])
    if sum(dots) > 1 or words.parameters.get("offset") or 0 in strides or backwards:
        raise NoEquivalent  # an axis that is removed backwards is not written by LiteRT
    # The entries of the data's own axes, and the axis of each, counted from the end after dots.
    own = [k for k in range(count) if not new[k] and not dots[k]]
    split = dots.index(True) if any(dots) else count
    after = sum(k > split for k in own)
    rank = words.rank() if after else 0
    axes = [i if k < split else rank - after + i - (len(own) - after) for i, k in enumerate(own)]
    data = words.input(0)
    steps = [1 if gone[k] else strides[k] for k in own]
    starts = _ends(words, 1, [(k, begins[k] and not gone[k], strides[k] < 0) for k in own])
    stops = _ends(words, 2, [(k, ends[k], strides[k] > 0) for k in own], [gone[k] for k in own])
    if own:
        cut = words.op("Slice", data, starts, stops, words.ints(*axes), words.ints(*steps))
    else:
        cut = data
    removed = [axis for axis, k in zip(axes, own, strict=True) if gone[k]]
    if removed:
        cut = words.op("Squeeze", cut, words.ints(*removed))
    places = _new_axes(words, new, dots, gone, len(own)) if any(new) else []
    if places:
        words.last("Unsqueeze", cut, words.ints(*places))
        return
    words.last("Identity", cut)


def _new_axes(
    words: Words, new: list[bool], dots: list[bool], gone: list[bool], own: int
) -> list[int]:
    """The axes of the result that are put in."""
    spread = words.rank() - own if any(dots) else 0
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
    words: Words,
    position: int,
    entries: list[tuple[int, bool, bool]],
    single: list[bool] | None = None,
) -> Value:
    """Begins or ends of a slice. Each entry: its position, whether it is left out, and whether
    what is left out is the far end. `single`: entries that end after one index.
    """
    value = words.stored(position)
    far = [FAR if at_end else (-FAR if position == 2 else 0) for _, _, at_end in entries]
    start = words.stored(1)
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
        return words.ints(*listed)
    chosen = words.op("Gather", words.as_int64(value), words.ints(*(k for k, _, _ in entries)))
    if single is not None and any(single):
        first = words.op("Gather", words.as_int64(start), words.ints(*(k for k, _, _ in entries)))
        last = words.op("Equal", first, words.ints(-1))
        following = words.op("Add", first, words.ints(1))
        following = words.op("Where", last, words.ints(FAR), following)
        chosen = words.op("Where", words.truths(*single), following, chosen)
    out = [left and not (single and single[i]) for i, (_, left, _) in enumerate(entries)]
    if any(out):
        chosen = words.op("Where", words.truths(*out), words.ints(*far), chosen)
    return chosen


def _gather(words: Words) -> None:
    if words.parameters.get("batch_dims", 0):
        raise NoEquivalent
    axis = words.whole("axis", 0)
    words.last("Gather", words.input(0), words.stored(1), axis=axis)


def _scatter_nd(words: Words) -> None:
    """Updates are added to zeros."""
    indices, target = words.as_int64(words.stored(0)), words.as_int64(words.stored(2))
    zeros = words.op("Expand", words.zero(words.stored(1)), target)
    words.last("ScatterND", zeros, indices, words.input(1), reduction="add")


def _shaped(op: str) -> Callable[[Words], None]:
    """The data, and whole numbers: sizes, repeats."""
    return lambda words: words.last(op, words.input(0), words.as_int64(words.stored(1)))


def _fill(words: Words) -> None:
    words.last("Expand", words.input(1), words.as_int64(words.stored(0)))


def _zeros(words: Words) -> None:
    words.last("Expand", words.zero(words.stored(0)), words.op("Shape", words.input(0)))


def _shape(words: Words) -> None:
    words.last("Cast", words.op("Shape", words.stored(0)), to=words.out_type())


def _rank(words: Words) -> None:
    count = words.op("Shape", words.op("Shape", words.stored(0)))
    words.last("Cast", words.op("Squeeze", count, words.ints(0)), to=ELEMENT_TYPES["int32"])


def _pad(words: Words) -> None:
    """LiteRT lists begin and end per axis; ONNX all begins, then all ends."""
    mode = "constant"
    if words.node.op == "MIRROR_PAD":
        if words.parameters.get("mode"):
            raise NoEquivalent  # SYMMETRIC repeats the border, which ONNX lacks
        mode = "reflect"
    listed = words.stored(1)
    if listed.content is not None:
        sizes = known(listed)
        ends = words.ints(*sizes[::2], *sizes[1::2])
    else:
        turned = words.op("Transpose", words.as_int64(listed), perm=(1, 0))
        ends = words.op("Reshape", turned, words.ints(-1))
    value = [words.input(2)] if words.node.op == "PADV2" else []
    if value and value[0].shape != ():
        value = [words.op("Reshape", value[0], words.ints())]
    words.last("Pad", words.input(0), ends, *value, mode=mode)


def _one_hot(words: Words) -> None:
    indices, depth, on, off = (words.input(k) for k in range(4))
    pair = words.op(
        "Concat", *(words.op("Reshape", value, words.ints(1)) for value in (off, on)), axis=0
    )
    words.last("OneHot", indices, depth, pair, axis=words.whole("axis", -1))


def _top(words: Words) -> None:
    count = words.op("Reshape", words.as_int64(words.stored(1)), words.ints(1))
    if len(words.node.outputs) != 2:
        raise NoEquivalent
    largest, places = words.several("TopK", 2, words.input(), count, axis=-1)
    words.result(0, "Identity", largest)
    words.result(1, "Cast", places, to=ELEMENT_TYPES["int32"])


def _reverse(words: Words) -> None:
    axes = words.content(1)
    starts, ends, steps = [-1] * len(axes), [-FAR] * len(axes), [-1] * len(axes)
    listed = (words.ints(*numbers) for numbers in (starts, ends, axes, steps))
    words.last("Slice", words.input(0), *listed)


def _reverse_sequence(words: Words) -> None:
    axis, batch = words.parameters.get("seq_dim", 0), words.parameters.get("batch_dim", 0)
    lengths = words.as_int64(words.stored(1))
    words.last("ReverseSequence", words.input(0), lengths, time_axis=axis, batch_axis=batch)


def _non_zero(words: Words) -> None:
    places = words.op("Transpose", words.op("NonZero", words.input(0)), perm=(1, 0))
    words.last("Identity", places)


def _blocks(op: str) -> Callable[[Words], None]:
    """Between depth and space; channels are last."""

    def write(words: Words) -> None:
        data = words.op("Transpose", words.input(), perm=FIRST)
        moved = words.op(op, data, blocksize=words.whole("block_size", 0))
        words.last("Transpose", moved, perm=LAST)

    return write


def _space_to_batch(words: Words) -> None:
    """Blocks of spatial axes become the outer batch."""
    block, edges = words.content(1), words.content(2)
    sizes = words.known_sizes(0)
    inner = len(block)
    if min(block, default=0) < 1 or len(edges) != 2 * inner or len(sizes) < inner + 1:
        raise NoEquivalent
    before = [0, *edges[::2], *[0] * (len(sizes) - inner - 1)]
    after = [0, *edges[1::2], *[0] * (len(sizes) - inner - 1)]
    padded = [a + b + c for a, b, c in zip(sizes, before, after, strict=True)]
    rest = padded[inner + 1 :]
    if any(padded[k + 1] % block[k] for k in range(inner)):
        raise NoEquivalent
    data = words.op("Pad", words.input(0), words.ints(*before, *after), mode="constant")
    cut: list[int] = [n for k in range(inner) for n in (padded[k + 1] // block[k], block[k])]
    data = words.op("Reshape", data, words.ints(padded[0], *cut, *rest))
    order = [*range(2, 2 * inner + 1, 2), 0, *range(1, 2 * inner, 2)]
    order += range(2 * inner + 1, 2 * inner + 1 + len(rest))
    data = words.op("Transpose", data, perm=tuple(order))
    batch = padded[0] * _product(block)
    words.last("Reshape", data, words.ints(batch, *cut[::2], *rest))


def _batch_to_space(words: Words) -> None:
    block, crops = words.content(1), words.content(2)
    sizes = words.known_sizes(0)
    inner = len(block)
    count = _product(block)
    if min(block, default=0) < 1 or len(crops) != 2 * inner or len(sizes) < inner + 1:
        raise NoEquivalent
    if sizes[0] % count:
        raise NoEquivalent
    rest = sizes[inner + 1 :]
    batch = sizes[0] // count
    data = words.op("Reshape", words.input(0), words.ints(*block, batch, *sizes[1:]))
    order = [inner, *(n for k in range(inner) for n in (inner + 1 + k, k))]
    order += range(2 * inner + 1, 2 * inner + 1 + len(rest))
    data = words.op("Transpose", data, perm=tuple(order))
    whole = [sizes[k + 1] * block[k] for k in range(inner)]
    data = words.op("Reshape", data, words.ints(batch, *whole, *rest))
    ends = [size - crop for size, crop in zip(whole, crops[1::2], strict=True)]
    axes = words.ints(*range(1, inner + 1))
    words.last("Slice", data, words.ints(*crops[::2]), words.ints(*ends), axes)


def _product(numbers: tuple[int, ...]) -> int:
    total = 1
    for number in numbers:
        total *= number
    return total


def _running_sum(words: Words) -> None:
    flags: dict[str, Any] = {
        name: int(words.parameters.get(name, False)) for name in ("exclusive", "reverse")
    }
    words.last("CumSum", words.input(0), words.stored(1), **flags)


#: Builtin op to row.
ROWS = table(
    {
        "BATCH_TO_SPACE_ND": _batch_to_space,
        "BROADCAST_TO": _shaped("Expand"),
        "CONCATENATION": _concat,
        "CUMSUM": _running_sum,
        "DEPTH_TO_SPACE": _blocks("DepthToSpace"),
        "EXPAND_DIMS": _expand_dims,
        "FILL": _fill,
        "GATHER": _gather,
        "GATHER_ND": _shaped("GatherND"),
        "ONE_HOT": _one_hot,
        "PACK": _pack,
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
