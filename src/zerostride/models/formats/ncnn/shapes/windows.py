"""Result shapes of layers with windows: convolutions, pooling, resizing, pixels to channels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .....sizes.dim import Dim, Number, plain
from ....onnx_ops.sizes.facts import NoSizes, Unclear, product
from .call import ABSENT, LayerCall, Results, checked, divided, equal, named_sizes
from .expression import evaluate

#: Padding for a result as large as the data divided by the stride (SAME_UPPER, _LOWER).
SAME = (-233, -234)


def _over(size: Number, extent: int, stride: int) -> Number:
    """The elements that 'same' padding adds along an axis."""
    return plain(extent + divided(plain(size - 1), stride) * stride - size)


def _check_same(over: Sequence[Number]) -> None:
    """If one axis is padded, ncnn pads all axes, also by negative numbers."""
    if len(over) > 1 and any(isinstance(pad, Dim) for pad in over):
        raise Unclear("the padding is not known")
    if any(pad > 0 for pad in over) and any(pad < 0 for pad in over):
        raise NoSizes("windows smaller than their stride along one axis alone, padded to 'same'")


#: Parameters of a window by axis: kernel, dilation, stride, pad before, pad after.
_WINDOW = {"w": (1, 2, 3, 4, 15), "h": (11, 12, 13, 14, 16), "d": (21, 22, 23, 24, 17)}


class Window(NamedTuple):
    """A convolution's window along one axis."""

    size: int
    dilation: int
    stride: int
    pads: tuple[int, int]

    @property
    def extent(self) -> int:
        """Its elements with the holes between them."""
        return self.dilation * (self.size - 1) + 1


def window(call: LayerCall, name: str) -> Window:
    """The window along an axis; the width's parameters are the defaults of the other axes'."""
    numbers: tuple[int, ...] = (0, 1, 1, 0)
    for axis in ("w", name):
        numbers = tuple(map(call.whole, _WINDOW[axis], numbers))
    if min(numbers[:3]) < 1:
        raise NoSizes(f"a window of kernel, dilation and stride {list(numbers[:3])}")
    size, dilation, stride, before = numbers
    return Window(size, dilation, stride, (before, call.whole(_WINDOW[name][4], before)))


def _outward(size: Number, window: Window) -> Number:
    """The number of window positions along an axis."""
    if window.pads[0] in SAME and window.pads[1] == window.pads[0]:
        return plain(divided(plain(size - 1), window.stride) + 1)
    padded = plain(size + sum(max(pad, 0) for pad in window.pads))
    room = plain(padded - window.extent)
    if isinstance(room, int) and room < 0:
        raise NoSizes(f"a window of {window.extent} over {padded}")
    return plain(divided(room, window.stride) + 1)


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
    windows = [window(call, name) for name in spatial(call)]
    same_everywhere = {window.pads for window in windows}
    if len(same_everywhere) > 1 and any(pad in SAME for pads in same_everywhere for pad in pads):
        raise Unclear("some of its pads are 'same'")
    sizes = list(map(_outward, shape[1:], windows))
    if windows[0].pads[0] in SAME:
        pairs = zip(shape[1:], windows, strict=True)
        _check_same([_over(size, window.extent, window.stride) for size, window in pairs])
    return [checked((call.positive(0), *sizes))]


def deformable(call: LayerCall) -> Results:
    """DeformableConv2D: as a convolution, for any offsets and masks."""
    return convolution(LayerCall(call.layer, (call.of_rank(3),)))


def deconvolution(call: LayerCall) -> Results:
    """Transposed convolutions: each input element adds a stride; pads or a given size cut it."""
    rank = len(spatial(call)) + 1
    shape = call.of_rank(rank)
    if call.whole(28) or len(call.shapes) > 1:
        raise Unclear("its weights are an operand")
    _check_channels(call)
    right = call.whole(18)
    more = {"w": right, "h": call.whole(19, right), "d": call.whole(20, right)}
    at = {"w": 25, "h": 26, "d": 27} if rank == 4 else {"w": 20, "h": 21}
    width = call.whole(at["w"])
    wanted = {name: call.whole(at[name], width) for name in spatial(call)}
    windows = {name: window(call, name) for name in spatial(call)}
    pads = [pad for each in windows.values() for pad in each.pads]
    sizes: list[Number] = []
    for (name, each), size in zip(windows.items(), shape[1:], strict=True):
        full = plain((size - 1) * each.stride + each.extent + more[name])
        if max(pads) > 0:
            if min(pads) < 0:
                raise Unclear("some of its pads are below 0")
            full = plain(full - sum(each.pads))
        elif min(wanted.values()) > 0:
            if not any(pad in SAME for pad in pads):
                raise NoSizes("a size of the result is given, but no way to cut to it")
            full = wanted[name]
        sizes.append(full)
    return [checked((call.positive(0), *sizes))]


#: Parameters of pooling by axis: kernel, stride, pad before, pad after, adaptive size.
POOL = {"w": (1, 2, 3, 14, 8), "h": (11, 12, 13, 15, 18), "d": (21, 22, 23, 16, 28)}


def pooling(call: LayerCall) -> Results:
    """Pooling: global, adaptive, or windows with one of four padding modes."""
    rank = len(spatial(call)) + 1
    shape = call.of_rank(rank)
    if call.whole(4):
        return [(shape[0],)]
    across = POOL["w"]
    kernel, stride, left = call.whole(1), call.whole(2, 1), call.whole(3)
    mode, adaptive = call.whole(5), call.whole(7)
    sizes: list[Number] = []
    over: list[Number] = []
    for name, size in zip(spatial(call), shape[1:], strict=True):
        keys = POOL[name]
        if adaptive:
            wanted = call.whole(keys[4], call.whole(across[4]))
            if wanted == ABSENT and rank == 2:
                raise NoSizes("one axis and its size is kept, which ncnn refuses")
            sizes.append(size if wanted == ABSENT else wanted)
            continue
        own = call.whole(keys[0], kernel), call.whole(keys[1], stride)
        if min(own) < 1:
            raise NoSizes(f"a window of kernel and stride {own}")
        before = left if name == "w" else call.whole(keys[2], left)
        pads = (before, call.whole(keys[3], before))
        if mode in (2, 3):
            over.append(_over(size, *own))
            sizes.append(plain(divided(plain(size - 1), own[1]) + 1))
        else:
            sizes.append(_pooled(size, *own, pads, mode))
    _check_same(over)
    return [checked((shape[0], *sizes))]


def _pooled(size: Number, kernel: int, stride: int, pads: tuple[int, int], mode: int) -> Number:
    """The number of window positions; mode 0 fills up the last window."""
    room = plain(size + sum(pads) - kernel)
    if (isinstance(room, int) and room < 0) or min(pads) < 0 or mode not in (0, 1):
        raise NoSizes(f"a window of {kernel} over {size}, padded by {pads}")
    return plain(divided(room + (stride - 1 if mode == 0 else 0), stride) + 1)


def fold(call: LayerCall) -> Results:
    """Fold: columns of windows become an image of the line's size."""
    rows = call.of_rank(2)[0]
    across = call.positive(1)
    area = across * call.positive(11, across)
    wide = call.positive(20)
    return [checked((divided(rows, area), call.positive(21, wide), wide))]


def unfold(call: LayerCall) -> Results:
    """Unfold: a column for every position of the window."""
    c, h, w = call.of_rank(3)
    places = product([_outward(h, window(call, "h")), _outward(w, window(call, "w"))])
    kernel = call.whole(1) * call.whole(11, call.whole(1))
    return [checked((plain(c * kernel), places))]


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
        scaled = float(np.float32(size) * np.float32(scale))
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
