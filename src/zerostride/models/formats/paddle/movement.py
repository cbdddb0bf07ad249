"""Rows of :mod:`.lowering` for ops that move, join and count elements."""

from __future__ import annotations

from collections.abc import Sequence

from ..lowering import ELEMENT_TYPES, FAR, NoEquivalent, becomes, stacked, table
from .node_writer import OpWriter


def _reshape(w: OpWriter) -> None:
    """0 keeps the data's size, and −1 is the rest, as in ONNX."""
    w.result(0, "Reshape", w.input(), w.numbers_at(1))


def _transpose(w: OpWriter) -> None:
    rank = w.rank()
    order = tuple(axis % max(rank, 1) for axis in w.listed("perm"))
    w.result(0, "Transpose", w.input(), perm=order)


def _squeeze(w: OpWriter) -> None:
    """An axis of more than one element stays; without axes, every axis of one element goes."""
    data, axes = w.input(), w.axes(1)
    sizes = w.sizes(data)
    if not sizes:
        return w.result(0, "Identity", data)
    if axes is None:
        return w.result(0, "Squeeze", data)
    places = sorted({axis % len(sizes) for axis in axes})
    kept = [axis for axis in places if not (isinstance(sizes[axis], int) and sizes[axis] != 1)]
    if not kept:
        return w.result(0, "Identity", data)
    return w.result(0, "Squeeze", data, w.ints(*kept))


def _unsqueeze(w: OpWriter) -> None:
    """One axis after the other, each counted in the axes so far."""
    axes = w.axes(1)
    if not axes:
        return w.result(0, "Identity", w.input())
    value = w.input()
    for axis in axes[:-1]:
        value = w.op("Unsqueeze", value, w.ints(axis))
    return w.result(0, "Unsqueeze", value, w.ints(axes[-1]))


def _flatten(w: OpWriter) -> None:
    """The axes from start to stop as one."""
    data, rank = w.input(), w.rank()
    if not rank:
        return w.result(0, "Reshape", data, w.ints(-1))
    start, stop = (w.whole(key, 1) % rank for key in ("start_axis", "stop_axis"))
    if stop < start:
        raise NoEquivalent
    merged = w.product_of(w.lengths(data, start, stop + 1))
    parts = [merged]
    if start:
        parts.insert(0, w.lengths(data, 0, start))
    if stop + 1 < rank:
        parts.append(w.lengths(data, stop + 1, None))
    target = w.joined(parts) if len(parts) > 1 else merged
    return w.result(0, "Reshape", data, target, allowzero=1)


def _flatten_twice(w: OpWriter) -> None:
    """The older op, whose result is a matrix."""
    w.result(0, "Flatten", w.input(), axis=w.whole("axis", 1))


def _concat(w: OpWriter) -> None:
    """The axis is the last operand."""
    parts, axis = w.inputs()[:-1], w.one(len(w.node.inputs) - 1)
    w.last("Concat", *parts, axis=axis)


def _split(w: OpWriter) -> None:
    """The lengths of the parts, or their number. A length of −1 takes the rest."""
    data, axis = w.input(), w.one(2)
    count = len(w.node.outputs)
    sections = w.axes(1)
    if sections is None:
        return _even_parts(w, axis)
    if len(sections) != count:
        raise NoEquivalent
    if -1 in sections:
        whole_size = w.size(axis)
        if not isinstance(whole_size, int) or sections.count(-1) > 1:
            raise NoEquivalent
        rest = whole_size - sum(size for size in sections if size != -1)
        sections = tuple(rest if size == -1 else size for size in sections)
    return w.last("Split", data, w.ints(*sections), axis=axis)


def _split_evenly(w: OpWriter) -> None:
    _even_parts(w, w.one(1))


def _even_parts(w: OpWriter, axis: int) -> None:
    """Parts of equal size; ONNX would make the last one smaller."""
    data, count = w.input(), len(w.node.outputs)
    size = w.size(axis)
    if isinstance(size, int):
        if size % count:
            raise NoEquivalent
        return w.last("Split", data, w.ints(*[size // count] * count), axis=axis)
    return w.last("Split", data, axis=axis, num_outputs=count)


def _unbind(w: OpWriter) -> None:
    """Every index of an axis as a tensor of its own."""
    axis = w.whole("axis", 0)
    for k in range(len(w.node.outputs)):
        w.result(k, "Gather", w.input(), w.number(k, "int64"), axis=axis)


def _slice(w: OpWriter) -> None:
    """Axes of `decrease_axis`, which have one element, are removed."""
    data, axes = w.input(), w.listed("axes")
    starts, ends = w.numbers_at(1), w.numbers_at(2)
    removed = w.listed("decrease_axis")
    operands = data, starts, ends, w.ints(*axes)
    if not removed:
        return w.last("Slice", *operands)
    return w.last("Squeeze", w.op("Slice", *operands), w.ints(*removed))


def _strided_slice(w: OpWriter) -> None:
    removed = w.listed("decrease_axis")
    operands = w.input(), *(w.numbers_at(k) for k in (1, 2)), w.ints(*w.listed("axes"))
    steps = w.numbers_at(3)
    if not removed:
        return w.last("Slice", *operands, steps)
    return w.last("Squeeze", w.op("Slice", *operands, steps), w.ints(*removed))


def _gather(w: OpWriter) -> None:
    """Indices are a list, or a column of them."""
    index, axis = w.input(1), 0 if w.optional(2) is None else w.one(2)
    if w.rank(1) > 1:
        index = w.op("Reshape", index, w.ints(-1))
    w.last("Gather", w.input(), index, axis=axis)


def _index_select(w: OpWriter) -> None:
    w.last("Gather", w.input(), w.input(1), axis=w.whole("axis", 0))


def _embedding(w: OpWriter) -> None:
    """A padding index gives zeros."""
    if w.whole("padding_idx", -1) != -1:
        raise NoEquivalent
    w.last("Gather", w.input(1), w.input(0), axis=0)


def _take_along(w: OpWriter) -> None:
    """Indices of the data's sizes; in other cases the operands are stretched."""
    sizes, wanted = w.numbers(w.input()), w.numbers(w.input(1))
    axis = w.whole("axis", 0) % max(len(sizes), 1)
    pairs = zip(sizes, wanted, strict=False)
    if len(sizes) != len(wanted) or any(a != b for k, (a, b) in enumerate(pairs) if k != axis):
        raise NoEquivalent
    w.last("GatherElements", w.input(), w.input(1), axis=axis)


def _expand(w: OpWriter) -> None:
    """−1 keeps the data's size."""
    data, target = w.input(), w.numbers_at(1)
    if target.content is None:
        return w.last("Expand", data, target)  # of sizes that are computed, −1 is not known
    numbers = w.content(1)
    if not numbers:
        return w.last("Identity", data)
    if any(size < -1 for size in numbers):
        raise NoEquivalent
    # 1 keeps the data's size in ONNX.
    return w.last("Expand", data, w.ints(*(1 if size == -1 else size for size in numbers)))


def _expand_as(w: OpWriter) -> None:
    target = w.optional(1)
    if target is None:
        return w.last("Expand", w.input(), w.ints(*w.listed("target_shape")))
    return w.last("Expand", w.input(), w.op("Shape", target))


def _tile(w: OpWriter) -> None:
    """Data or repeats get ones in front until they are as many."""
    data, repeats = w.input(), w.numbers_at(1)
    count = None if repeats.content is None else len(repeats.content)
    if count is None:
        size = (repeats.shape or (None,))[0]
        count = size if isinstance(size, int) else None
    if count is None:
        raise NoEquivalent
    missing = w.rank() - count
    if missing > 0:
        repeats = w.joined([w.ints(*[1] * missing), repeats])
    elif missing < 0:
        data = w.op("Unsqueeze", data, w.ints(*range(-missing)))
    w.last("Tile", data, repeats)


def _meshgrid(w: OpWriter) -> None:
    """Each vector along its own axis of all."""
    parts = w.inputs()
    lengths = w.joined([w.op("Reshape", w.op("Size", part), w.ints(1)) for part in parts])
    for k, part in enumerate(parts):
        column = w.op("Reshape", part, w.ints(*[1] * k, -1, *[1] * (len(parts) - 1 - k)))
        w.result(k, "Expand", column, lengths)


# Shapes and constants.


def _shape(w: OpWriter) -> None:
    """An old program counts in int32, `shape64` in int64."""
    shape = w.op("Shape", w.input())
    if w.node.op == "shape64":
        return w.finish(shape)
    return w.last("Cast", shape, to=ELEMENT_TYPES["int32"])


def _size(w: OpWriter) -> None:
    w.last("Size", w.input())


def _range(w: OpWriter) -> None:
    """Start, end and step are lists of one number."""
    dtype = w.node.outputs[0].dtype or str(w.node.attributes.get("dtype"))
    parts = [w.as_type(w.number_at(k), dtype) for k in range(3)]
    w.last("Range", *parts)


def _full(w: OpWriter) -> None:
    """A number, then a shape."""
    dtype = w.node.outputs[0].dtype or str(w.node.attributes.get("dtype"))
    value = w.as_type(w.number_at(0), dtype)
    w.last("Expand", value, w.numbers_at(1))


def _full_like(w: OpWriter) -> None:
    """A number in the shape of the data."""
    dtype = w.node.outputs[0].dtype or w.dtype()
    value = w.number(0.0, dtype) if w.optional(1) is None else w.number_at(1)
    w.last("Expand", w.as_type(value, dtype), w.op("Shape", w.input()))


def _one_hot(w: OpWriter) -> None:
    """Zeros and ones along a new last axis."""
    dtype = w.node.outputs[0].dtype or "float32"
    values = w.as_type(w.ints(0, 1), dtype)
    w.last("OneHot", w.input(), w.number_at(1), values, axis=-1)


def _pads(w: OpWriter, sizes: Sequence[int], mode: str, number: float) -> None:
    """Pads in ONNX's order: all begins, then all ends; numbers below 0 are not translated."""
    if any(size < 0 for size in sizes):
        raise NoEquivalent
    dtype = w.dtype()
    filler = [w.number(number, dtype)] if mode == "constant" else []
    w.last("Pad", w.input(), w.ints(*sizes), *filler, mode=mode)


def _pad(w: OpWriter) -> None:
    """Begin and end of each axis."""
    sizes = w.listed("paddings")
    if len(sizes) != 2 * w.rank():
        raise NoEquivalent
    number = w.real("pad_value", 0.0)
    if w.optional(1) is not None:
        filler = w.input(1).reals
        if filler is None or len(filler) != 1:
            raise NoEquivalent
        number = filler[0]
    _pads(w, (*sizes[::2], *sizes[1::2]), "constant", number)


_MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def _pad_space(w: OpWriter) -> None:
    """Left, right, top, bottom, front, back of data with five axes."""
    w.channels_first()
    left, right, top, bottom, front, back = _six(w.content(1))
    mode = _MODES.get(w.text("mode", "constant"))
    if mode is None or w.rank() != 5:
        raise NoEquivalent
    sizes = (0, 0, front, top, left, 0, 0, back, bottom, right)
    _pads(w, sizes, mode, w.real("pad_value", 0.0))


def _six(numbers: tuple[int, ...]) -> tuple[int, ...]:
    if len(numbers) != 6:
        raise NoEquivalent
    return numbers


def _pad_plane(w: OpWriter) -> None:
    """The older op: top, bottom, left, right of images."""
    w.channels_first()
    sizes = w.listed("paddings")
    mode = {"constant": "constant", "reflect": "reflect", "edge": "edge"}.get(w.text("mode"))
    if mode is None or len(sizes) != 4 or w.rank() != 4:
        raise NoEquivalent
    top, bottom, left, right = sizes
    _pads(w, (0, 0, top, left, 0, 0, bottom, right), mode, w.real("pad_value", 0.0))


def _shuffle(w: OpWriter) -> None:
    w.channels_first()
    w.last("DepthToSpace", w.input(), blocksize=w.whole("upscale_factor", 1), mode="CRD")


def _flip(w: OpWriter) -> None:
    """Backwards along some axes."""
    axes = w.listed("axis")
    many = len(axes)
    starts, ends, steps = (w.ints(*[number] * many) for number in (-1, -FAR, -1))
    w.last("Slice", w.input(), starts, ends, w.ints(*axes), steps)


def _roll(w: OpWriter) -> None:
    """The last elements of an axis come to its front."""
    shifts, axes = w.numbers_at(1).content, w.listed("axis")
    if shifts is None or len(shifts) != len(axes):
        raise NoEquivalent
    value = w.input()
    for shift, axis in zip(shifts, axes, strict=True):
        size = w.size(axis)
        if not isinstance(size, int) or not isinstance(shift, int) or not size:
            raise NoEquivalent
        at = -shift % size
        back = w.op("Slice", value, w.ints(at), w.ints(FAR), w.ints(axis))
        front = w.op("Slice", value, w.ints(0), w.ints(at), w.ints(axis))
        value = w.op("Concat", back, front, axis=axis)
    w.finish(value)


def _triangle(w: OpWriter, *, upper: bool) -> None:
    diagonal = w.number(w.whole("diagonal", 0), "int64")
    w.last("Trilu", w.input(), diagonal, upper=int(upper))


def _triangles(w: OpWriter) -> None:
    _triangle(w, upper=not w.node.attributes.get("lower", True))


#: Op to row.
ROWS = table(
    ("shape shape64", _shape),
    {
        "arange": _range,
        "concat": _concat,
        "embedding": _embedding,
        "expand": _expand,
        "expand_as": _expand_as,
        "flatten": _flatten,
        "flatten2": _flatten_twice,
        "flip": _flip,
        "full_like": _full_like,
        "full_with_tensor": _full,
        "gather": _gather,
        "gather_nd": becomes("GatherND", 0, 1),
        "index_select": _index_select,
        "meshgrid": _meshgrid,
        "numel": _size,
        "one_hot": _one_hot,
        "pad": _pad,
        "pad2d": _pad_plane,
        "pad3d": _pad_space,
        "pixel_shuffle": _shuffle,
        "reshape": _reshape,
        "roll": _roll,
        "slice": _slice,
        "split": _split,
        "split_with_num": _split_evenly,
        "squeeze": _squeeze,
        "stack": stacked,
        "strided_slice": _strided_slice,
        "take_along_axis": _take_along,
        "tile": _tile,
        "transpose": _transpose,
        "tril": lambda w: _triangle(w, upper=False),
        "tril_triu": _triangles,
        "triu": lambda w: _triangle(w, upper=True),
        "unbind": _unbind,
        "unsqueeze": _unsqueeze,
        "unstack": _unbind,
    },
)
