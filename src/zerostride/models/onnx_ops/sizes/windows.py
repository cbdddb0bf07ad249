"""Rows of ops that move a window over a plane, or scale one: convolutions, pools, spectra."""

from __future__ import annotations

import math
from fractions import Fraction

from ....ops.floats import in_single
from ....sizes.condition import ge
from ....sizes.dim import Number, dim, plain
from ....sizes.functions import floordiv
from .facts import (
    Element,
    Fact,
    NoSizes,
    OpCall,
    Open,
    Real,
    Results,
    Size,
    Unclear,
    known,
    place,
    places,
    rounded_up,
    target_sizes,
)

_SAME = ("SAME_UPPER", "SAME_LOWER")


def _planes(call: OpCall, least: int = 3) -> tuple[Number, ...]:
    shape = call.shape(0)
    if len(shape) < least:
        raise NoSizes(f"{call.op} of a tensor of rank {len(shape)}")
    return shape


def _listed(call: OpCall, name: str, count: int, default: int, least: int) -> tuple[int, ...]:
    numbers = call.integers(name)
    if not numbers:
        return (default,) * count
    if len(numbers) != count or min(numbers) < least:
        raise NoSizes(f"{name} {list(numbers)} for {count} axes")
    return numbers


def _positions(call: OpCall, sizes: tuple[Number, ...], kernel: tuple[Number, ...]) -> list[Number]:
    """The number of window positions along each axis."""
    count = len(sizes)
    if len(kernel) != count:
        raise NoSizes(f"a window of {len(kernel)} axes over {count}")
    strides = _listed(call, "strides", count, 1, 1)
    dilations = _listed(call, "dilations", count, 1, 1)
    automatic = str(call.attributes.get("auto_pad", "NOTSET"))
    if automatic in _SAME:
        return [rounded_up(s, by) for s, by in zip(sizes, strides, strict=True)]
    pads = (0,) * (2 * count)
    if automatic != "VALID":
        pads = _listed(call, "pads", 2 * count, 0, -(1 << 31))
    counts = []
    for axis, (size, width, stride) in enumerate(zip(sizes, kernel, strides, strict=True)):
        reach = (dim(width) - 1) * dilations[axis] + 1
        before, after = pads[axis], pads[axis + count]
        room = dim(size) + before + after - reach
        # With ceil_mode a window that extends past the end counts, even if it is the only one.
        out = stride - 1 if call.integer("ceil_mode") else 0
        words = f"the window of {plain(reach)} fits into {size} and its padding"
        call.need(ge(room + out, 0), words + (f", but for {out}" if out else ""))
        if call.integer("ceil_mode"):
            # A window that would start in the padding behind the data does not count.
            last, start = room + stride - 1, dim(size) + before - 1
            difference = plain(last - start)
            if not isinstance(difference, int):
                raise Unclear("where the last window starts is not known")
            room = last if difference <= 0 else start
        counts.append(plain(floordiv(room, stride) + 1))
    return counts


def convolution(call: OpCall) -> Results:
    """Conv and its quantised forms: batch, output channels, window positions."""
    shape = _planes(call)
    weights = call.shape(3 if call.op == "QLinearConv" else 1)
    if len(weights) != len(shape):
        raise NoSizes(f"{call.op} of ranks {len(shape)} and {len(weights)}")
    group = call.integer("group", 1)
    call.same(shape[1], plain(dim(weights[1]) * group), f"{call.op}'s channels")
    if call.op == "Conv" and call.has(2):
        bias = call.fact(2).shape
        if bias is not None and len(bias) == 1:
            call.same(weights[0], bias[0], "the bias of the channels")
    return Fact((shape[0], weights[0], *_positions(call, shape[2:], weights[2:])))


def transposed(call: OpCall) -> Results:
    """ConvTranspose: the input shape of the corresponding convolution."""
    shape, weights = _planes(call), call.shape(1)
    count = len(shape) - 2
    if len(weights) != len(shape):
        raise NoSizes(f"{call.op} of ranks {len(shape)} and {len(weights)}")
    call.same(shape[1], weights[0], "ConvTranspose's channels")
    channels = plain(dim(weights[1]) * call.integer("group", 1))
    strides = _listed(call, "strides", count, 1, 1)
    dilations = _listed(call, "dilations", count, 1, 1)
    extra = _listed(call, "output_padding", count, 0, 0)
    pads = _listed(call, "pads", 2 * count, 0, -(1 << 31))
    automatic = str(call.attributes.get("auto_pad", "NOTSET"))
    target = call.integers("output_shape")
    sizes: list[Size] = []
    for axis, (size, width) in enumerate(zip(shape[2:], weights[2:], strict=True)):
        if target and len(target) >= count:
            sizes.append(target[axis - count])
        elif automatic in _SAME:
            # For a kernel smaller than its stride, runtimes differ from the document.
            reach = plain((dim(width) - 1) * dilations[axis] + 1)
            wide = isinstance(reach, int) and reach >= strides[axis]
            sizes.append(plain(dim(size) * strides[axis]) if wide else Open())
        else:
            reach = (dim(width) - 1) * dilations[axis] + 1
            cut = 0 if automatic == "VALID" else pads[axis] + pads[axis + count]
            sizes.append(plain((dim(size) - 1) * strides[axis] + extra[axis] + reach - cut))
    return Fact((shape[0], channels, *sizes))


def pool(call: OpCall) -> Results:
    """Pools over a window."""
    shape = _planes(call)
    kernel = call.integers("kernel_shape")
    if not kernel or min(kernel) < 1:
        raise NoSizes("a pool without a window")
    fact = Fact((*shape[:2], *_positions(call, shape[2:], kernel)))
    return (fact,) * max(call.outputs, 1)


def global_pool(call: OpCall) -> Results:
    """Pools over the whole plane."""
    shape = _planes(call, 2)
    return Fact((*shape[:2], *(1,) * (len(shape) - 2)))


def resize(call: OpCall) -> Results:
    """Resize and Upsample: given sizes, or scaled sizes rounded down."""
    shape = call.shape(0)
    axes = tuple(range(len(shape)))
    if call.attributes.get("axes") is not None:
        axes = places(call.integers("axes") or (), len(shape))
    sizes: list[Size] = list(shape)
    if call.op == "Resize" and call.version >= 11 and _has_operand(call, 3):
        numbers = target_sizes(call, call.whole(3) or ())
        policy = str(call.attributes.get("keep_aspect_ratio_policy", "stretch"))
        if len(numbers) != len(axes):
            raise NoSizes(f"{len(numbers)} sizes for {len(axes)} axes")
        for axis, size in zip(axes, numbers, strict=True):
            sizes[axis] = size if policy == "stretch" else Open()
        return Fact(tuple(sizes))
    for axis, scale in zip(axes, _scales(call, len(axes)), strict=True):
        sizes[axis] = scaled(shape[axis], scale)
    return Fact(tuple(sizes))


def _has_operand(call: OpCall, position: int) -> bool:
    """Whether an operand is present; an empty tensor counts as absent."""
    return call.has(position) and call.fact(position).shape != (0,)


def _scales(call: OpCall, count: int) -> tuple[Element, ...]:
    listed = call.attributes.get("scales")
    if listed is not None:
        scales: tuple[Element, ...] = tuple(_fraction(scale) for scale in listed)
    else:
        position = 2 if call.op == "Resize" and call.version >= 11 else 1
        content = call.content(position) if call.has(position) else None
        scales = (None,) * count if content is None else content
    if len(scales) != count:
        raise NoSizes(f"{len(scales)} scales for {count} axes")
    return scales


def _fraction(value: float) -> Element:
    number = Fraction(value)
    return Real(number.numerator, number.denominator)


def scaled(size: Number, scale: Element) -> Size:
    """A size times a scale, rounded down; open if engines may round differently.

    >>> from zerostride.sizes.dim import Dim
    >>> print(scaled(Dim("N"), Real(2, 1)), scaled(Dim("N"), Real(3, 2)), scaled(5, Real(1, 2)))
    2*N 3*N // 2 2
    """
    if not isinstance(scale, Real) or not isinstance(scale.top, int):
        return Open()
    top, bottom = scale.top, scale.bottom
    if top <= 0:
        raise NoSizes("a scale that is not above 0")
    if isinstance(size, int):
        single = in_single(in_single(size) * in_single(top / bottom))
        exact = size * top // bottom
        return exact if math.isfinite(single) and int(single) == exact else Open()
    if bottom & (bottom - 1) or bottom > 1024 or top > 1 << 20:
        return Open()
    return plain(floordiv(dim(size) * top, bottom))


def spectra(call: OpCall) -> Results:
    """STFT: a spectrum for each window position on signals (batch, length[, 1 or 2])."""
    batch, length, *_ = _planes(call, 2)
    (step,) = call.fixed(1) or (None,)
    if step is None or step < 1:
        raise Unclear("the step between windows is not known")
    reach: Number = call.shape(2)[0] if call.has(2) else _one_number(call, 3)
    room = dim(length) - reach
    call.need(ge(room, 0), f"the window of {reach} fits into {length}")
    bins = plain(floordiv(reach, 2) + 1) if call.integer("onesided", 1) else reach
    return Fact((batch, plain(floordiv(room, step) + 1), bins, 2))


def spectrum(call: OpCall) -> Results:
    """DFT along one axis; the last axis holds real and imaginary parts."""
    shape: list[Size] = list(_planes(call, 2))
    operand = call.fixed(2) if call.has(2) else None
    default = call.integer("axis", -2 if call.version >= 20 else 1)
    axis = place(operand[0] if operand else default, len(shape))
    size = _one_number(call, 1) if call.has(1) else shape[axis]
    if call.integer("onesided"):
        if call.integer("inverse"):
            raise Unclear("how many numbers half a spectrum makes is not known")
        size = plain(floordiv(known(size), 2) + 1)
    shape[axis], shape[-1] = size, 2
    return Fact(tuple(shape))


def _one_number(call: OpCall, position: int) -> Number:
    """The number in an operand; Unclear if it is unknown."""
    content = call.whole(position)
    if not content or content[0] is None:
        raise Unclear("a length is not known")
    return content[0]
