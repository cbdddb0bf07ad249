"""Resizing, axis by axis: each result is a weighted sum of a few elements."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from ...ir.graph import Array
from .call import NodeCall, Unfit, axes_of, effort, room

#: Positions this near to a half are a half: so ONNX Runtime rounds, as of release 1.32.
_HALF = 1e-6


def _symmetric(x: Array, scale: float, n: int, out: int) -> Array:
    """The centre of a result in the data; ONNX Runtime adds the shift in double precision."""
    precise = x.dtype.type(scale)
    shift = n / 2 * (1 - out / (precise * n))
    return np.asarray(shift + (x.astype(float) + 0.5) / precise - 0.5, x.dtype)


#: The centre of a result in the data, from the result's index x, the scale and both sizes. A number
#: of Python takes the precision of x.
_PLACES: Mapping[str, Callable[[Array, float, int, int], Array]] = MappingProxyType(
    {
        "half_pixel": lambda x, scale, n, out: (x + 0.5) / scale - 0.5,
        "half_pixel_symmetric": _symmetric,
        "pytorch_half_pixel": lambda x, scale, n, out: (
            (x + 0.5) / scale - 0.5 if out > 1 else x * 0.0
        ),
        # The resized length is scale * n without rounding down; ONNX Runtime rounds it.
        "align_corners": lambda x, scale, n, out: (
            x * (n - 1) / (scale * n - 1) if out > 1 else x * 0.0
        ),
        "asymmetric": lambda x, scale, n, out: x / scale,
    }
)
#: The nearest element.
_NEAREST: Mapping[str, Callable[[Array], Array]] = MappingProxyType(
    {
        "round_prefer_floor": lambda x: np.ceil(x - 0.5 - _HALF),
        "round_prefer_ceil": lambda x: np.floor(x + 0.5 + _HALF),
        "floor": np.floor,
        "ceil": np.ceil,
    }
)


def _cubic(distance: Array, a: float) -> Array:
    """The weight of an element at a distance from the centre (Keys, 1981)."""
    d = np.abs(distance)
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return np.asarray(np.where(d <= 1, near, np.where(d < 2, far, 0)))


def _taps(call: NodeCall, mode: str, at: Array, scale: float) -> tuple[Array, Array]:
    """The elements that each result reads, and their weights: (result, tap)."""
    if mode == "nearest":
        name = call.attribute("nearest_mode", "round_prefer_floor")
        if call.node.op == "Upsample" or call.node.version < 11:
            name = "floor" if scale >= 1 else "ceil"  # as ONNX Runtime does
        if name not in _NEAREST:
            raise Unfit(f"nearest_mode {name!r}")
        index = _NEAREST[name](at)[:, None]
        return index, np.ones_like(index)
    first = np.floor(at)[:, None]
    if mode in ("linear", "bilinear"):
        index = first + np.arange(2)
        return index, np.maximum(0, 1 - np.abs(at[:, None] - index))
    if mode == "cubic":
        index = first + np.arange(-1, 3)
        return index, _cubic(at[:, None] - index, call.attribute("cubic_coeff_a", -0.75))
    raise Unfit(f"mode {mode!r}")


def _along(call: NodeCall, x: Array, axis: int, out: int, scale: float) -> Array:
    """The data resized along one axis."""
    n, mode = x.shape[axis], call.attribute("mode", "nearest")
    if isinstance(mode, bytes):
        mode = mode.decode()
    early = call.node.op == "Upsample" or call.node.version < 11
    place = call.attribute("coordinate_transformation_mode", "half_pixel")
    if place not in _PLACES:
        raise Unfit(f"coordinates {place!r}")
    place = "asymmetric" if early else place
    if n == 0 or scale <= 0:
        raise Unfit(f"axis {axis} of {n} elements is resized by {scale}")
    # Double precision, as in the onnx package's reference. The nearest element depends on the last
    # bit where a position is an integer or a half, and ONNX Runtime computes it in 32 bits.
    precision = np.float32 if mode == "nearest" else np.float64
    at = _PLACES[place](np.arange(out, dtype=precision), scale, n, out).astype(float)
    index, weights = _taps(call, mode, at, scale)
    if call.flag("exclude_outside"):
        weights = np.where((index < 0) | (index > n - 1), 0, weights)
        weights = weights / weights.sum(1, keepdims=True)
    inside = np.clip(index, 0, n - 1).astype(np.intp)
    effort(*x.shape[:axis], *x.shape[axis + 1 :], *inside.shape)
    if mode == "nearest":
        return np.asarray(x.take(inside[:, 0], axis))
    total: Any = 0
    for tap in range(inside.shape[1]):
        shape = [1] * x.ndim
        shape[axis] = out
        total = total + x.take(inside[:, tap], axis) * weights[:, tap].astype(x.dtype).reshape(
            shape
        )
    return np.asarray(total)


def _sizes(call: NodeCall, x: Array, axes: tuple[int, ...]) -> tuple[list[int], list[float]]:
    """The result's sizes along the axes, and the scales."""
    modern = call.node.op == "Resize" and call.node.version >= 11
    target = call.maybe(3) if modern else None
    spans = [x.shape[axis] for axis in axes]
    if target is not None and target.size:
        sizes = [int(size) for size in target.reshape(-1)]
        scales = [size / max(n, 1) for size, n in zip(sizes, spans, strict=False)]
    else:
        raw = call.attribute("scales")
        array = call.maybe(2 if modern else 1) if raw is None else np.asarray(raw, np.float32)
        if array is None or array.dtype.kind != "f":
            raise Unfit("neither sizes nor scales are given")
        scales = [float(scale) for scale in array.reshape(-1)]
        sizes = [int(np.floor(n * scale)) for n, scale in zip(spans, scales, strict=False)]
    if len(sizes) != len(axes):
        raise Unfit(f"{len(sizes)} sizes for {len(axes)} axes")
    return sizes, scales


def run_resized(call: NodeCall) -> Array:
    """Resize and Upsample."""
    x = call[0]
    for name, plain in (("antialias", 0), ("keep_aspect_ratio_policy", "stretch")):
        if call.attribute(name, plain) != plain:
            raise Unfit(f"{name} {call.attribute(name)!r} is not computed here")
    axes = axes_of(call.integers("axes") or range(x.ndim), x.ndim)
    sizes, scales = _sizes(call, x, axes)
    wide = x.astype(np.float32) if x.dtype.kind == "f" and x.dtype.itemsize < 4 else x
    if wide.dtype.kind in "iu" and call.attribute("mode", "nearest") != "nearest":
        wide = x.astype(np.float64)
    for axis, size, scale in zip(axes, sizes, scales, strict=True):
        if size != wide.shape[axis] or scale != 1:
            room((*wide.shape[:axis], size, *wide.shape[axis + 1 :]), wide.dtype)
            wide = _along(call, wide, axis, size, scale)
    if x.dtype.kind in "iu" and wide.dtype.kind == "f":
        wide = np.clip(np.rint(wide), np.iinfo(x.dtype).min, np.iinfo(x.dtype).max)
    return wide.astype(x.dtype)
