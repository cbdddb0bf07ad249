"""Writes ncnn's convolutions, pooling, resizing, pixels and padding as ONNX nodes.

A blob is one sample. It gets a batch axis of extent 1 before ONNX's op and loses it after it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ....ir.graph import Array, Value
from ...lowering import NoEquivalent
from ..shapes.call import number
from ..shapes.formulas import margins
from ..shapes.windows import SAME, Window, adaptive, channels, cut, groups, kernel, spatial, windows
from .writer import LayerWriter

#: The least 32-bit float, with which ncnn pads for a maximum.
_LEAST = -3.4028234663852886e38


def _sample(w: LayerWriter, value: Value) -> Value:
    return w.op("Unsqueeze", value, w.ints(0))


def _blob(w: LayerWriter, value: Value) -> Value:
    return w.op("Squeeze", value, w.ints(0))


def _windows(w: LayerWriter) -> list[Window]:
    """The windows; NoEquivalent for weights that are operands or 8-bit integers."""
    if w.whole(8) or w.whole(19) or w.whole(28) or len(w.node.outputs) != 1:
        raise NoEquivalent
    if w.rank() != len(spatial(w.call())) + 1:
        raise NoEquivalent
    return windows(w.call())


def _pads(pads: Sequence[tuple[int, int]]) -> tuple[int, ...]:
    """ONNX's order: all pads before the axes, then all after; a negative pad is 0."""
    return tuple(max(pad[side], 0) for side in (0, 1) for pad in pads)


def _padded(w: LayerWriter, value: Value, pads: Sequence[tuple[int, int]], fill: float) -> Value:
    """A sample padded along its inner axes."""
    outer = [(0, 0)] * 2
    widths = w.ints(*_pads([*outer, *pads]))
    return w.op("Pad", value, widths, w.number(fill))


def convolution(w: LayerWriter) -> None:
    """Convolutions, also by groups of channels."""
    rows, call = _windows(w), w.call()
    pads = [row.pads for row in rows]
    sides = {side for pad in pads for side in pad}
    same = next((side for side in SAME if sides == {side}), None)
    if same is None and sides & {*SAME}:
        raise NoEquivalent
    if same == SAME[1] and len(rows) == 3:
        raise NoEquivalent  # Convolution3D pads differently
    if same is not None and any(row.extent < row.stride for row in rows):
        raise NoEquivalent  # negative padding
    each, count = channels(call) // groups(call), call.positive(0)
    kernel_ = kernel(call)
    data, fill = _sample(w, w.input()), w.real(18, 0.0)
    if fill and same is not None:
        raise NoEquivalent
    if fill:
        data, pads = _padded(w, data, pads, fill), [(0, 0)] * len(pads)
    operands = [data, w.weight("weight", (count, each, *kernel_))]
    operands += [w.weight("bias")] if w.whole(5) else []
    result = w.op(
        "Conv",
        *operands,
        group=groups(call),
        **_steps(rows),
        pads=None if same is not None else _pads(pads),
        auto_pad={None: None, SAME[0]: "SAME_UPPER", SAME[1]: "SAME_LOWER"}[same],
    )
    w.finish(w.activated(_blob(w, result)))


def _steps(rows: Sequence[Window]) -> dict[str, Any]:
    """The window's attributes in ONNX."""
    return {
        "kernel_shape": tuple(row.size for row in rows),
        "dilations": tuple(row.dilation for row in rows),
        "strides": tuple(row.stride for row in rows),
    }


def deconvolution(w: LayerWriter) -> None:
    """Transposed convolutions, cut by pads or to a size."""
    rows, call = _windows(w), w.call()
    more, wanted = cut(call)
    count, sets, kernel_ = call.positive(0), groups(call), kernel(call)
    each = channels(call) // sets
    # ncnn has filters before channels, ONNX has channels before filters.
    shape = (sets, count // sets, each, *kernel_)
    order = (0, 2, 1, *range(3, len(shape)))
    weight = w.op("Transpose", w.weight("weight", shape), perm=order)
    weight = w.op("Reshape", weight, w.ints(sets * each, count // sets, *kernel_))
    sides = {side for row in rows for side in row.pads}
    if max(sides) > 0 and min(sides) < 0:
        raise NoEquivalent
    operands = [_sample(w, w.input()), weight, *([w.weight("bias")] if w.whole(5) else [])]
    result = w.op(
        "ConvTranspose",
        *operands,
        group=sets,
        **_steps(rows),
        output_padding=tuple(more),
        pads=_pads([row.pads for row in rows]),
    )
    result = _blob(w, result)
    if max(sides) <= 0 < min(wanted):
        result = _cut_to(w, result, wanted, rows, more)
    w.finish(w.activated(result))


def _cut_to(
    w: LayerWriter,
    value: Value,
    wanted: Sequence[int],
    rows: Sequence[Window],
    more: Sequence[int],
) -> Value:
    """A transposed convolution cut to a size: half per side, an odd element before or behind."""
    sides = {side for row in rows for side in row.pads}
    if not sides & {*SAME}:
        raise NoEquivalent
    sizes = w.numbers(w.input())[1:]
    starts, ends = [], []
    for size, want, row, plus in zip(sizes, wanted, rows, more, strict=True):
        over = number(row.span(size)) + plus - want
        if over < 0:
            raise NoEquivalent
        first = over // 2 if SAME[0] in sides else over - over // 2
        starts.append(first)
        ends.append(first + want)
    axes = range(1, len(sizes) + 1)
    return w.op("Slice", value, w.ints(*starts), w.ints(*ends), w.ints(*axes))


def pooling(w: LayerWriter) -> None:
    """Pooling: global, adaptive, or windows."""
    call = w.call()
    names, average = spatial(call), w.whole(0)
    if average not in (0, 1):
        raise NoEquivalent
    data = w.input()
    if data.shape is not None and len(data.shape) != len(names) + 1:
        raise NoEquivalent
    inner = w.ints(*range(1, len(names) + 1))
    if w.whole(4):
        w.last("ReduceMean" if average else "ReduceMax", data, inner, keepdims=0)
        return
    if w.whole(7):
        if {*adaptive(call)} == {1}:
            w.last("ReduceMean" if average else "ReduceMax", data, inner, keepdims=1)
            return
        pairs = list(zip(w.numbers(data)[1:], w.result_sizes()[1:], strict=True))
        if any(size % want for size, want in pairs):
            raise NoEquivalent  # windows of several sizes
        sizes = strides = tuple(size // want for size, want in pairs)
        pads = [(0, 0)] * len(names)
    else:
        rows = windows(call)
        sizes, strides = tuple(row.size for row in rows), tuple(row.stride for row in rows)
        pads = _pool_pads(w, rows)
        same = average and not w.whole(6) and w.whole(5) in (2, 3)
        if same and (len(names) == 3 or any(max(row.pads) for row in rows)):
            raise NoEquivalent  # the mean leaves out pads that add nothing
    sample = _sample(w, data)
    fill = 0.0 if average else _LEAST
    window_: dict[str, Any] = {"kernel_shape": sizes, "strides": strides}
    if average and not w.whole(6) and not w.whole(7) and w.whole(5) in (0, 1):
        if any(max(pad) >= size for pad, size in zip(pads, sizes, strict=True)):
            raise NoEquivalent  # a window of padding alone
        result = w.op("AveragePool", sample, pads=_pads(pads), **window_)
    else:
        if any(map(any, pads)):
            sample = _padded(w, sample, pads, fill)
        result = w.op("AveragePool" if average else "MaxPool", sample, **window_)
    w.finish(_blob(w, result))


def _pool_pads(w: LayerWriter, rows: Sequence[Window]) -> list[tuple[int, int]]:
    """The pads with the elements added behind, so that the last window is full."""
    mode = w.whole(5)
    if mode == 1 or (mode == 0 and max(row.stride for row in rows) == 1):
        return [row.pads for row in rows]
    sizes = zip(rows, w.numbers(w.input())[1:], w.result_sizes()[1:], strict=True)
    over = [number(row.span(count)) - size for row, size, count in sizes]
    if mode == 0:
        firsts = [row.pads[0] for row in rows]
        return [(first, total - first) for first, total in zip(firsts, over, strict=True)]
    if mode not in (2, 3) or min(over) < 0:
        raise NoEquivalent
    if mode == 3 and len(rows) == 3 and any(total % 2 for total in over):
        raise NoEquivalent  # Pooling3D pads differently
    halves = [(total // 2, total - total // 2) for total in over]
    return [pair if mode == 2 else pair[::-1] for pair in halves]


def interp(w: LayerWriter) -> None:
    """Interp: resized by a scale or to a size."""
    data = w.input()
    rank, kind, corners = w.rank(), w.whole(0), bool(w.whole(6))
    if kind not in (1, 2, 3) or rank > 3:
        raise NoEquivalent
    if rank == 1:
        column = w.op("Unsqueeze", data, w.ints(1, 2))
        w.last("Expand", column, w.ints(*w.result_sizes()))
        return
    axes = range(1, rank)
    scales = [w.real(1, 1.0), w.real(2, 1.0)][-len(axes) :]
    by_size = [bool(w.whole(key)) for key in (3, 4)][-len(axes) :]
    expression = "9" in w.node.attributes
    sized = len(w.node.inputs) > 1 or expression or all(by_size)
    scaled = not sized and not any(by_size)
    words = {"mode": ("nearest", "linear", "cubic")[kind - 1]}
    if kind == 1:
        words |= {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    elif corners:
        words["coordinate_transformation_mode"] = "align_corners"
    flat = (1,) * (3 - rank)  # the axes before the resized ones, with a batch axis
    if scaled and not corners:  # positions use the scale as written
        if kind != 1 and any(scale != int(scale) for scale in scales):
            sizes = zip(w.numbers(data)[1:], w.result_sizes()[1:], scales, strict=True)
            scales = [1.0 if before == after else scale for before, after, scale in sizes]
        elif w.node.outputs[0].shape == data.shape:
            w.last("Identity", data)  # ncnn copies data whose sizes stay
            return
        _resize(w, words, scales=w.reals(*flat, 1.0, 1.0, *scales))
        return
    if (not sized and not scaled) or (kind == 1 and not all(by_size) and not expression):
        raise NoEquivalent
    before, after = w.numbers(data), w.result_sizes()
    if before == after:
        w.last("Identity", data)
        return
    if (corners and 1 in after[1:]) or (kind == 3 and min(before[1:]) < 4):
        raise NoEquivalent  # a division by 0; elements outside the data
    _resize(w, words, sizes=w.ints(*flat, 1, *after))


def _resize(
    w: LayerWriter,
    words: Mapping[str, Any],
    scales: Value | None = None,
    sizes: Value | None = None,
) -> None:
    """Resizes with axes of extent 1 added in front."""
    data = w.op("Unsqueeze", w.input(), w.ints(*range(4 - w.rank())))
    resized = w.op("Resize", data, None, scales, *([] if sizes is None else [sizes]), **words)
    w.last("Squeeze", resized, w.ints(*range(4 - w.rank())))


def shuffled(w: LayerWriter) -> None:
    """PixelShuffle, Reorg: pixels to channels or back; in mode 0 the channel is outermost."""
    size, (c, h, v), mode = w.whole(0, 1), _image(w), w.whole(1)
    if size < 1:
        raise NoEquivalent
    if w.node.op == "PixelShuffle":
        if c % size**2:
            raise NoEquivalent
        parts = (c // size**2, size, size) if mode == 0 else (size, size, c // size**2)
        grid = (*parts, h, v)
        order = (0, 3, 1, 4, 2) if mode == 0 else (2, 3, 0, 4, 1)
    else:
        if h % size or v % size:
            raise NoEquivalent
        grid = (c, h // size, size, v // size, size)
        order = (0, 2, 4, 1, 3) if mode == 0 else (2, 4, 0, 1, 3)
    _regrouped(w, grid, order)


def _image(w: LayerWriter) -> tuple[int, ...]:
    shape = w.numbers(w.input())
    if len(shape) != 3:
        raise NoEquivalent
    return shape


def _regrouped(w: LayerWriter, grid: Sequence[int], order: Sequence[int]) -> None:
    """The elements in a grid, its axes in another order, in the result's shape."""
    turned = w.op("Transpose", w.op("Reshape", w.input(), w.ints(*grid)), perm=tuple(order))
    w.last("Reshape", turned, w.ints(*w.result_sizes()))


def shuffle_channel(w: LayerWriter) -> None:
    """Interleaves the groups of channels."""
    shape, group = _image(w), w.whole(0, 1)
    if group < 1 or shape[0] % group:
        raise NoEquivalent
    if w.whole(1):
        group = shape[0] // group
    _regrouped(w, (group, shape[0] // group, *shape[1:]), (1, 0, 2, 3))


def padding(w: LayerWriter) -> None:
    """Padding by a number, the border or its mirror image."""
    if len(w.node.inputs) != 1 or w.whole(6) or w.whole(4) not in (0, 1, 2):
        raise NoEquivalent
    mode = ("constant", "edge", "reflect")[w.whole(4)]
    operands = [w.input(), w.ints(*_pads(margins(w.call(), w.rank())))]
    operands += [w.number(w.real(5, 0.0))] if mode == "constant" else []
    w.last("Pad", *operands, mode=mode)


def unfold(w: LayerWriter) -> None:
    """Columns of windows: a convolution with weights that select one element each."""
    rows = windows(w.call())
    sizes = tuple(row.size for row in rows)
    if any(side < 0 for row in rows for side in row.pads):
        raise NoEquivalent
    c = w.numbers(w.input())[0]
    area = math.prod(sizes)
    shape = (c * area, 1, *sizes)

    def picks() -> Array:
        import numpy as np

        return np.tile(np.eye(area, dtype=np.float32), (c, 1)).reshape(shape)

    weight = Value(f"{w.node.name}.picks", shape, True, dtype="float32", source=picks)
    data = _sample(w, w.input())
    data = _padded(w, data, [row.pads for row in rows], w.real(18, 0.0))
    columns = w.op("Conv", data, weight, group=c, **_steps(rows))
    w.last("Reshape", columns, w.ints(c * area, -1))
