"""Ops that slide a window: convolutions and pools, on one NumPy view of all windows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...ir.graph import Array
from .call import NodeCall, Unfit, effort, room


@dataclass(frozen=True, slots=True)
class _Window:
    """A window over the spatial axes; each attribute has one number per axis.

    Attributes:
        size: the window's size without holes.
        strides, dilations: steps between windows, and between elements of one.
        before, after: padding of the data.
        out: number of window positions.
    """

    size: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    out: tuple[int, ...]


def _window(call: NodeCall, spatial: Sequence[int], size: Sequence[int]) -> _Window:
    """The window of a node over data of these spatial sizes."""
    rank = len(spatial)
    if not rank:
        raise Unfit("the data have no axis to slide along")
    strides = call.integers("strides") or (1,) * rank
    dilations = call.integers("dilations") or (1,) * rank
    pads = call.integers("pads") or (0,) * 2 * rank
    if not len(size) == len(strides) == len(dilations) == rank or len(pads) != 2 * rank:
        raise Unfit(f"kernel {tuple(size)}, strides {strides} and pads {pads} for {rank} axes")
    if min((*size, *strides, *dilations)) < 1 or min(pads) < 0:
        raise Unfit(f"kernel {tuple(size)}, strides {strides} or pads {pads} are out of range")
    reach = [(k - 1) * d + 1 for k, d in zip(size, dilations, strict=True)]
    before, after, out = list(pads[:rank]), list(pads[rank:]), []
    auto = call.attribute("auto_pad", "NOTSET")
    for axis in range(rank):
        n, step = spatial[axis], strides[axis]
        if auto in ("SAME_UPPER", "SAME_LOWER"):
            total = max(0, (-(-n // step) - 1) * step + reach[axis] - n)
            half = total // 2
            before[axis], after[axis] = (
                (half, total - half) if auto == "SAME_UPPER" else (total - half, half)
            )
        elif auto == "VALID":
            before[axis] = after[axis] = 0
        elif auto != "NOTSET":
            raise Unfit(f"auto_pad {auto!r}")
        room = n + before[axis] + after[axis] - reach[axis]
        count = room // step + 1
        if call.flag("ceil_mode"):
            count = -(-room // step) + 1
            # A window that would begin in the padding behind the data does not count.
            if (count - 1) * step >= n + before[axis]:
                count -= 1
            after[axis] = max(after[axis], (count - 1) * step + reach[axis] - n - before[axis])
        if room < 0 or count < 1:
            raise Unfit(f"a window of {reach[axis]} over {n} elements of axis {axis + 2}")
        out.append(count)
    return _Window(
        tuple(size), strides, dilations, tuple(before), tuple(after), tuple(out)
    )  # fmt: skip


#: Window elements and added products per unit of work: 13 and 3 nanoseconds each.
_PLACES, _SCATTERED = 7_500, 33_000


def _views(x: Array, window: _Window, fill: Any) -> Array:
    """All windows: (N, C, positions…, size…), a view of the padded data."""
    widths = [(0, 0), (0, 0), *zip(window.before, window.after, strict=True)]
    room([size + sum(width) for size, width in zip(x.shape, widths, strict=True)], x.dtype)
    effort(*x.shape[:2], *window.out, *window.size, each=_PLACES)
    padded = np.pad(x, widths, constant_values=fill)
    n, c, *steps = padded.strides
    shape = (*padded.shape[:2], *window.out, *window.size)
    strides = (
        n,
        c,
        *(s * k for s, k in zip(steps, window.strides, strict=True)),
        *(s * k for s, k in zip(steps, window.dilations, strict=True)),
    )
    return np.lib.stride_tricks.as_strided(padded, shape, strides, writeable=False)


def run_conv(call: NodeCall) -> Array:
    """A convolution in groups. Integer operands must have at least 32 bits.

    Floats are added in double precision. In single precision a BLAS gives equal kernels different
    sums: its order of addition depends on the processor and on the position in the matrix.
    """
    x, weight, bias = call[0], call[1], call.maybe(2)
    groups = call.attribute("group", 1)
    if x.ndim < 3 or weight.ndim != x.ndim or groups < 1:
        raise Unfit(f"data of shape {x.shape}, weights of {weight.shape}, {groups} groups")
    n, channels = x.shape[:2]
    kernels, each = weight.shape[:2]
    if each * groups != channels or kernels % groups:
        raise Unfit(f"weights of shape {weight.shape} for {channels} channels in {groups} groups")
    wide = x if x.dtype.kind in "iu" else x.astype(np.float64)
    window = _window(call, x.shape[2:], weight.shape[2:])
    views = _views(wide, window, 0)
    rank, area = len(window.out), math.prod(window.size) * each
    # One product per sample and group: (positions, each * size) by (each * size, kernels).
    room((each, *window.out, *window.size), wide.dtype)
    effort(n, kernels, *window.out, area)
    result = np.empty(room((n, kernels, *window.out), wide.dtype), wide.dtype)
    order = (*range(1, 1 + rank), 0, *range(1 + rank, 1 + 2 * rank))
    for sample in range(n):
        for group in range(groups):
            part = views[sample, group * each : (group + 1) * each].transpose(order)
            rows = part.reshape(-1, area)
            own = slice(group * (kernels // groups), (group + 1) * (kernels // groups))
            kernel = weight[own].reshape(kernels // groups, area).astype(wide.dtype)
            result[sample, own] = (rows @ kernel.T).T.reshape(-1, *window.out)
    if bias is not None:
        result += bias.astype(wide.dtype).reshape(1, -1, *(1,) * rank)
    return result.astype(x.dtype)


def run_transposed(call: NodeCall) -> Array:
    """A transposed convolution: each element adds its window of weights to the result."""
    x, weight, bias = call[0], call[1], call.maybe(2)
    groups = call.attribute("group", 1)
    rank = x.ndim - 2
    if rank < 1 or weight.ndim != x.ndim or groups < 1:
        raise Unfit(f"data of shape {x.shape}, weights of {weight.shape}, {groups} groups")
    n, channels = x.shape[:2]
    if weight.shape[0] != channels or channels % groups:
        raise Unfit(f"weights of shape {weight.shape} for {channels} channels in {groups} groups")
    size = weight.shape[2:]
    strides = call.integers("strides") or (1,) * rank
    dilations = call.integers("dilations") or (1,) * rank
    more = call.integers("output_padding") or (0,) * rank
    pads = call.integers("pads") or (0,) * 2 * rank
    wanted = call.integers("output_shape")
    auto = call.attribute("auto_pad", "NOTSET")
    if not len(strides) == len(dilations) == len(more) == rank or len(pads) != 2 * rank:
        raise Unfit(f"strides {strides}, dilations {dilations} and pads {pads} for {rank} axes")
    if min((*strides, *dilations)) < 1 or min((*more, *pads)) < 0:
        raise Unfit(f"strides {strides}, dilations {dilations} or pads {pads} are out of range")
    full = [
        (s - 1) * step + (k - 1) * d + 1 + m
        for s, step, k, d, m in zip(x.shape[2:], strides, size, dilations, more, strict=True)
    ]
    before, after = list(pads[:rank]), list(pads[rank:])
    if wanted is None and auto in ("SAME_UPPER", "SAME_LOWER"):
        wanted = tuple(s * step for s, step in zip(x.shape[2:], strides, strict=True))
    if wanted is not None:
        for axis, (whole, want) in enumerate(zip(full, wanted[-rank:], strict=True)):
            total = max(0, whole - want)
            full[axis] = max(whole, want)
            half = total // 2
            upper = auto == "SAME_UPPER"
            before[axis], after[axis] = (half, total - half) if upper else (total - half, half)
    each = weight.shape[1]
    wide = np.result_type(x.dtype, np.float32) if x.dtype.kind == "f" else x.dtype
    result = np.zeros(room((n, each * groups, *full), wide), wide)
    effort(n, channels, each, *x.shape[2:], *size, each=_SCATTERED)
    own = channels // groups
    for place in np.ndindex(*size):
        spans = tuple(
            slice(k * d, k * d + (s - 1) * step + 1, step)
            for k, d, s, step in zip(place, dilations, x.shape[2:], strides, strict=True)
        )
        for group in range(groups):
            data = x[:, group * own : (group + 1) * own].astype(wide)
            kernel = weight[(slice(group * own, (group + 1) * own), slice(None), *place)]
            part = np.einsum("nc...,cm->nm...", data, kernel.astype(wide), optimize=True)
            result[(slice(None), slice(group * each, (group + 1) * each), *spans)] += part
    cut = tuple(slice(b, w - a) for b, w, a in zip(before, full, after, strict=True))
    result = result[(slice(None), slice(None), *cut)]
    if bias is not None:
        result = result + bias.astype(wide).reshape(1, -1, *(1,) * rank)
    return np.ascontiguousarray(result).astype(x.dtype)


def _pool(call: NodeCall) -> tuple[Array, _Window]:
    x = call[0]
    size = call.integers("kernel_shape")
    if x.ndim < 3 or size is None:
        raise Unfit(f"data of shape {x.shape} and a kernel of {size}")
    return x, _window(call, x.shape[2:], size)


def _axes(window: _Window) -> tuple[int, ...]:
    return tuple(range(-len(window.size), 0))


def run_max_pool(call: NodeCall) -> Array:
    """MaxPool: the largest element of each window."""
    x, window = _pool(call)
    least = np.iinfo(x.dtype).min if x.dtype.kind in "iu" else -np.inf
    return np.asarray(_views(x, window, least).max(_axes(window)))


def run_average_pool(call: NodeCall) -> Array:
    """Padding counts if the node says so; padding that ceil_mode adds never counts."""
    x, window = _pool(call)
    wide = x.astype(np.float32) if x.dtype.itemsize < 4 else x
    total = _views(wide, window, 0).sum(_axes(window), dtype=wide.dtype)
    ones = np.ones((1, 1, *x.shape[2:]), wide.dtype)
    counted = window
    if call.flag("count_include_pad"):
        pads = call.integers("pads") or (0,) * 2 * len(window.size)
        counted_after = pads[len(window.size) :]
        before = window.before
        if call.attribute("auto_pad", "NOTSET") != "NOTSET":
            counted_after = window.after
        widths = [(0, 0), (0, 0), *zip(before, counted_after, strict=True)]
        ones = np.pad(ones, widths, constant_values=1)
        more = tuple(max(0, a - g) for a, g in zip(window.after, counted_after, strict=True))
        zero = (0,) * len(before)
        counted = _Window(
            window.size, window.strides, window.dilations, zero, more, window.out
        )  # fmt: skip
    count = _views(ones, counted, 0).sum(_axes(window))
    return np.asarray(total / count).astype(x.dtype)


def run_lp_pool(call: NodeCall) -> Array:
    """The p-norm of each window; padding is zero."""
    x, window = _pool(call)
    p = call.attribute("p", 2)
    if p < 1:
        raise Unfit(f"a norm of p = {p}")
    wide = x.astype(np.float32) if x.dtype.itemsize < 4 else x
    total = _views(np.abs(wide) ** p, window, 0).sum(_axes(window), dtype=wide.dtype)
    return np.asarray(total ** (1 / p)).astype(x.dtype)


def run_local_norm(call: NodeCall) -> Array:
    """Divides each element by a power of its neighbours' squares along the channels."""
    x, size = call[0], call.attribute("size", 1)
    if x.ndim < 3 or size < 1:
        raise Unfit(f"data of rank {x.ndim}, a window of {size} channels")
    wide = x.astype(np.float32) if x.dtype.itemsize < 4 else x
    squares = np.square(wide)
    before, behind = (size - 1) // 2, size - 1 - (size - 1) // 2
    total = np.zeros_like(squares)
    channels = x.shape[1]
    effort(min(size, 2 * channels + 1), *x.shape)
    for shift in range(max(-before, 1 - channels), min(behind, channels - 1) + 1):
        to = slice(max(0, -shift), channels - max(0, shift))
        of = slice(max(0, shift), channels - max(0, -shift))
        total[:, to] += squares[:, of]
    kind = wide.dtype.type
    alpha, beta, bias = (
        kind(call.attribute(name, default))
        for name, default in (("alpha", 1e-4), ("beta", 0.75), ("bias", 1.0))
    )
    return np.asarray(wide / (bias + alpha / kind(size) * total) ** beta).astype(x.dtype)
