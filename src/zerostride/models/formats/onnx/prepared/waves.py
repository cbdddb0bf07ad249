"""Fourier transforms, as products and convolutions with cosines and sines."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from .layouts import moved
from .rewriting import Rewriting, attributes_of

if TYPE_CHECKING:
    import onnx

Array = np.ndarray[Any, Any]


def short_time_transform(graph: Rewriting, node: onnx.NodeProto) -> bool:
    """A transform of real frames is a convolution with cosines and sines."""
    signal, step, window, length = [*node.input, "", ""][:4]
    shape, kind = graph.shape(signal), graph.types.get(signal)
    hop, numbers = graph.array(step), graph.array(window) if window else None
    frame = graph.array(length) if length else None
    if shape is None or hop is None or kind not in (1, 11) or len(shape) not in (2, 3):
        return False
    if len(shape) == 3 and shape[2] != 1:
        return False  # complex numbers
    if (window and numbers is None) or (length and frame is None):
        return False
    size = int(frame) if frame is not None else len(numbers) if numbers is not None else 0
    if size < 1 or (numbers is not None and len(numbers) != size):
        return False
    bins = size // 2 + 1 if attributes_of(node).get("onesided", 1) else size
    angles = _angles(bins, size)
    waves = np.concatenate([np.cos(angles), -np.sin(angles)])
    weights = waves * (1.0 if numbers is None else numbers.astype(np.float64))
    dtype = np.float32 if kind == 1 else np.float64
    batch, frames = shape[0], (shape[1] - size) // int(hop) + 1
    line = graph.reshaped(signal, (batch, 1, shape[1]))
    kernel = graph.constant(weights[:, None].astype(dtype))
    parts = graph.add("Conv", line, kernel, strides=[int(hop)], kernel_shape=[size])
    split = graph.reshaped(parts, (batch, 2, bins, frames))
    graph.add("Transpose", split, to=node.output[0], perm=[0, 3, 2, 1])
    return True


def transform(graph: Rewriting, node: onnx.NodeProto) -> bool:
    """A transform along an axis is a product of the real and imaginary parts with waves."""
    shape, result = graph.shape(node.input[0]), graph.shape(node.output[0])
    attributes = attributes_of(node)
    _, length, given = [*node.input, "", ""][:3]
    # From op set 20 on the axis is an input, and -2 if none is there.
    otherwise = attributes.get("axis", 1 if graph.version < 20 else -2)
    place = graph.array(given) if given else otherwise
    if shape is None or result is None or place is None or graph.types.get(node.input[0]) != 1:
        return False
    axis, parts = int(place) % len(shape), shape[-1]
    size, bins = shape[axis], result[axis]
    if length or parts not in (1, 2) or axis == len(shape) - 1 or result[-1] != 2 or not size:
        return False
    angles = _angles(size, bins)
    cosines, sines = np.cos(angles), np.sin(angles)
    if attributes.get("inverse"):
        cosines, sines = cosines / size, -sines / size
    # A real part is (cos, -sin) of the result, and an imaginary one (sin, cos).
    waves = np.stack([np.stack([cosines, -sines], -1), np.stack([sines, cosines], -1)], axis=1)
    weights = waves[:, :parts].reshape(size * parts, 2 * bins).astype(np.float32)
    before, between = math.prod(shape[:axis]), math.prod(shape[axis + 1 : -1])
    name = node.input[0]
    if between > 1:
        name = moved(graph, name, (before, size, between, parts), (0, 2, 1, 3))
    rows = graph.reshaped(name, (before * between, size * parts))
    product = graph.add("MatMul", rows, graph.constant(weights))
    if between > 1:
        product = moved(graph, product, (before, between, bins, 2), (0, 2, 1, 3))
    graph.reshaped(product, result, to=node.output[0])
    return True


def _angles(rows: int, columns: int) -> Array:
    """2 pi j k / n of row j and column k, where n is the number of columns or of rows."""
    size = max(rows, columns)
    return 2 * np.pi / size * (np.outer(np.arange(rows), np.arange(columns)) % size)


__all__ = ["short_time_transform", "transform"]
