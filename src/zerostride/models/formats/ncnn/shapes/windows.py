"""Result shapes of layers with windows: convolutions, pooling, resizing, pixels to channels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from .....ops.floats import in_single
from .....sizes.dim import Dim, Number, plain
from ....onnx_ops.sizes.facts import NoSizes, Unclear, product
from .call import ABSENT, LayerCall, Results, checked, divided, equal, named_sizes
from .expression import evaluate

#: Padding for a result as large as the data divided by the stride (SAME_UPPER, _LOWER).
SAME = (-233, -234)
#: Parameters of a window by axis: kernel, stride, pad before, pad after.
_WINDOW = {"w": (1, 3, 4, 15), "h": (11, 13, 14, 16), "d": (21, 23, 24, 17)}
_POOL = {"w": (1, 2, 3, 14), "h": (11, 12, 13, 15), "d": (21, 22, 23, 16)}
#: A convolution's dilation by axis.
_DILATION = {"w": 2, "h": 12, "d": 22}


class Window(NamedTuple):
    """A window along one axis."""

    size: int
    dilation: int
    stride: int
    pads: tuple[int, int]

    @property
    def extent(self) -> int:
        """Its elements with the holes between them."""
        return self.dilation * (self.size - 1) + 1

    def span(self, count: Number) -> Number:
        """The elements from the start of the first of `count` windows to the end of the last."""
        return plain((count - 1) * self.stride + self.extent)


def windows(call: LayerCall) -> list[Window]:
    """The window along each axis; the width's parameters are the defaults of the other axes'."""
    return [_window(call, name) for name in spatial(call)]


def _window(call: LayerCall, name: str) -> Window:
    pools = call.layer.type.startswith("Pooling")
    keys = _POOL if pools else _WINDOW
    numbers: tuple[int, ...] = (0, 1, 0)
    for axis in ("w", name):
        numbers = tuple(map(call.whole, keys[axis], numbers))
    size, stride, before = numbers
    dilation = 1 if pools else call.whole(_DILATION[name], call.whole(_DILATION["w"], 1))
    if min(size, dilation, stride) < 1:
        raise NoSizes(f"a window of kernel, dilation and stride {[size, dilation, stride]}")
    return Window(size, dilation, stride, (before, call.whole(keys[name][3], before)))


def _positions(size: Number, window: Window, *, full: bool = False) -> Number:
    """The number of window positions along an axis; `full`: the last window is filled up."""
    padded = plain(size + sum(max(pad, 0) for pad in window.pads))
    room = plain(padded - window.extent)
    if isinstance(room, int) and room < 0:
        raise NoSizes(f"a window of {window.extent} over {padded}")
    return plain(divided(room + (window.stride - 1 if full else 0), window.stride) + 1)


def _same(sizes: Sequence[Number], windows: Sequence[Window]) -> list[Number]:
    """The numbers of window positions with 'same' padding.

    If one axis is padded, ncnn pads all axes, also by negative numbers.
    """
    rows = list(zip(sizes, windows, strict=True))
    counts = [plain(divided(plain(size - 1), window.stride) + 1) for size, window in rows]
    over = [plain(row[1].span(count) - row[0]) for row, count in zip(rows, counts, strict=True)]
    if len(over) > 1 and any(isinstance(pad, Dim) for pad in over):
        raise Unclear("the padding is not known")
    if any(pad > 0 for pad in over) and any(pad < 0 for pad in over):
        raise NoSizes("windows smaller than their stride along one axis alone, padded to 'same'")
    return counts


def _counts(sizes: Sequence[Number], windows: Sequence[Window]) -> list[Number]:
    """The number of window positions along each axis."""
    pads = {window.pads for window in windows}
    if any({*pair} & {*SAME} for pair in pads):
        if len(pads) > 1:
            raise Unclear("some of its pads are 'same'")
        if len({*windows[0].pads}) == 1:
            return _same(sizes, windows)
    return list(map(_positions, sizes, windows))


def spatial(call: LayerCall) -> str:
    """The axes along which a layer's window slides."""
    return "w" if "1D" in call.layer.type else "dhw" if "3D" in call.layer.type else "hw"


def kernel(call: LayerCall) -> tuple[int, ...]:
    """The extents of a convolution's window without holes."""
    across = call.whole(_WINDOW["w"][0])
    return tuple(call.whole(_WINDOW[name][0], across) for name in spatial(call))


def groups(call: LayerCall) -> int:
    """The number of groups of a convolution's channels."""
    return call.positive(7, 1) if "DepthWise" in call.layer.type else 1


def channels(call: LayerCall) -> int:
    """The number of input channels of a convolution's weights."""
    each = call.positive(0) * math.prod(kernel(call))
    return call.whole(6) * groups(call) // max(each, 1)


def _check_channels(call: LayerCall) -> None:
    wanted = channels(call)
    if equal(call.first[0], wanted) is False:
        raise NoSizes(f"{call.first[0]} channels, and weights for {wanted}")


def convolution(call: LayerCall) -> Results:
    """Convolutions over the inner axes; the outermost extent is the number of filters."""
    rank = len(spatial(call)) + 1
    if rank == 3 and len(call.first) == 1 and set(kernel(call)) == {1} and groups(call) == 1:
        _check_channels(call)
        return [checked((call.positive(0),))]  # a vector is one position
    shape = call.of_rank(rank)
    if call.whole(19) or len(call.shapes) > 1:
        raise Unclear("its weights are an operand")
    _check_channels(call)
    return [checked((call.positive(0), *_counts(shape[1:], windows(call))))]


def deformable(call: LayerCall) -> Results:
    """DeformableConv2D: as a convolution, for any offsets and masks."""
    return convolution(LayerCall(call.layer, (call.of_rank(3),)))


def cut(call: LayerCall) -> tuple[list[int], list[int]]:
    """Transposed convolutions, by axis: elements added behind, and the size to cut to, or 0."""
    names, right = spatial(call), call.whole(18)
    more = [call.whole({"w": 18, "h": 19, "d": 20}[name], right) for name in names]
    at = {"w": 25, "h": 26, "d": 27} if names == "dhw" else {"w": 20, "h": 21}
    return more, [call.whole(at[name], call.whole(at["w"])) for name in names]


def deconvolution(call: LayerCall) -> Results:
    """Transposed convolutions: each input element adds a stride; pads or a given size cut it."""
    shape = call.of_rank(len(spatial(call)) + 1)
    if call.whole(28) or len(call.shapes) > 1:
        raise Unclear("its weights are an operand")
    _check_channels(call)
    more, wanted = cut(call)
    rows = windows(call)
    pads = {pad for each in rows for pad in each.pads}
    sizes: Sequence[Number] = [
        plain(each.span(size) + extra)
        for each, size, extra in zip(rows, shape[1:], more, strict=True)
    ]
    if max(pads) > 0:
        if min(pads) < 0:
            raise Unclear("some of its pads are below 0")
        sizes = [plain(size - sum(each.pads)) for each, size in zip(rows, sizes, strict=True)]
    elif min(wanted) > 0:
        if not pads & {*SAME}:
            raise NoSizes("a size of the result is given, but no way to cut to it")
        sizes = wanted
    return [checked((call.positive(0), *sizes))]


def adaptive(call: LayerCall) -> list[int]:
    """Adaptive pooling: the size of each axis of the result; ABSENT keeps the data's."""
    keys = {"w": 8, "h": 18, "d": 28}
    return [call.whole(keys[name], call.whole(keys["w"])) for name in spatial(call)]


def pooling(call: LayerCall) -> Results:
    """Pooling: global, adaptive, or windows with one of four padding modes."""
    channels, *inner = call.of_rank(len(spatial(call)) + 1)
    if call.whole(4):
        return [(channels,)]
    if call.whole(7):
        wanted = adaptive(call)
        if wanted == [ABSENT]:
            raise NoSizes("one axis and its size is kept, which ncnn refuses")
        sizes = [a if b == ABSENT else b for a, b in zip(inner, wanted, strict=True)]
        return [checked((channels, *sizes))]
    mode, rows = call.whole(5), windows(call)
    if mode in (2, 3):
        return [checked((channels, *_same(inner, rows)))]
    if mode not in (0, 1) or any(min(row.pads) < 0 for row in rows):
        raise NoSizes(f"pads {[row.pads for row in rows]} in mode {mode}")
    counts = [_positions(size, row, full=not mode) for size, row in zip(inner, rows, strict=True)]
    return [checked((channels, *counts))]


def fold(call: LayerCall) -> Results:
    """Fold: columns of windows become an image of the line's size."""
    rows = call.of_rank(2)[0]
    across = call.positive(1)
    area = across * call.positive(11, across)
    wide = call.positive(20)
    return [checked((divided(rows, area), call.positive(21, wide), wide))]


def unfold(call: LayerCall) -> Results:
    """Unfold: a column for every position of the window."""
    c, *inner = call.of_rank(3)
    places = product(_counts(inner, windows(call)))
    return [checked((plain(c * math.prod(kernel(call))), places))]


def interp(call: LayerCall) -> Results:
    """Interp: to a size, by a scale, or to another blob's size."""
    shape = call.first
    own = named_sizes(shape)
    w, h = (1, 1) if len(shape) == 1 else (own["w"], own["h"])
    text = call.params.text(9)
    if text:
        sizes = evaluate(text, call.shapes)
        if not 1 <= len(sizes) <= 2:
            raise NoSizes(f"{len(sizes)} sizes")
        wide, high = sizes[0], sizes[1] if len(sizes) > 1 else own["h"]
    elif len(call.shapes) > 1:
        other = named_sizes(call.operand(1))
        wide, high = other["w"], other["h"]
    else:
        wide, high = call.whole(4), call.whole(3)
        if wide == 0 or high == 0:
            wide = _scaled(w, call.params.real(2, 1.0))
            high = _scaled(h, call.params.real(1, 1.0))
    if len(shape) == 4:
        raise Unclear("data of rank 4")
    outer = {1: (shape[0], high), 2: (shape[0],), 3: (shape[0], high)}[len(shape)]
    return [checked((*outer, wide))]


def _scaled(size: Number, scale: float) -> Number:
    """A size times a 32-bit real number, truncated."""
    if isinstance(size, int):
        scaled = in_single(in_single(size) * in_single(scale))
        if not math.isfinite(scaled):
            raise NoSizes(f"a scale of {scale}")
        return int(scaled)
    if scale != int(scale):
        raise Unclear(f"{size} times {scale}")
    return plain(size * int(scale))


def reorg(call: LayerCall) -> Results:
    """Reorg: blocks of a channel become channels."""
    c, h, w = call.of_rank(3)
    stride = call.positive(0, 1)
    return [checked((plain(c * stride**2), divided(h, stride), divided(w, stride)))]


def pixel_shuffle(call: LayerCall) -> Results:
    """PixelShuffle: channels become blocks."""
    c, h, w = call.of_rank(3)
    factor = call.positive(0, 1)
    return [checked((divided(c, factor**2), plain(h * factor), plain(w * factor)))]
