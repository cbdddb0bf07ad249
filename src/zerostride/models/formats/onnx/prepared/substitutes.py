"""Ops that converters lack, as other ops that compute the same.

Nothing here depends on the model's numbers, but for constants.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from .rewriting import Rewriting, Rule, attributes_of
from .unrolled import unrolled

if TYPE_CHECKING:
    import onnx

#: Nodes from a softmax back to the mask that is added.
_MOST_BACK = 4
#: Copies of a tensor that stand for an Expand.
_MOST_COPIES = 16
#: Modes of Pad that take the data's own numbers; NumPy has them by the same names.
_MARGINS = frozenset({"edge", "reflect", "wrap"})


def _is_nan(graph: Rewriting, node: onnx.NodeProto) -> bool:
    """NaN alone is not equal to itself."""
    same = graph.add("Equal", node.input[0], node.input[0])
    graph.add("Not", same, to=node.output[0])
    return True


def _is_infinite(graph: Rewriting, node: onnx.NodeProto) -> bool:
    """Only infinities are beyond the largest number."""
    if attributes_of(node) or graph.types.get(node.input[0]) != 1:
        return False
    size = graph.add("Abs", node.input[0])
    graph.add("Greater", size, graph.constant(np.finfo(np.float32).max), to=node.output[0])
    return True


def _where(graph: Rewriting, node: onnx.NodeProto) -> bool:
    """Where(IsNaN(s), c, s) of a softmax is s: a row of finite numbers makes no NaN."""
    test = graph.makers.get(node.input[0])
    if test is None or test.op_type != "IsNaN" or test.input[0] != node.input[2]:
        return False
    softmax = graph.makers.get(node.input[2])
    if softmax is None or softmax.op_type != "Softmax" or not _has_finite_rows(graph, softmax):
        return False
    graph.add("Identity", node.input[2], to=node.output[0])
    return True


def _has_finite_rows(graph: Rewriting, softmax: onnx.NodeProto) -> bool:
    """Whether a softmax reads finite numbers, or a mask with some in each row."""
    name, axis = softmax.input[0], attributes_of(softmax).get("axis", -1)
    for _ in range(_MOST_BACK):
        maker = graph.makers.get(name)
        if maker is None:
            return False
        if maker.op_type in ("MatMul", "Gemm", "Einsum"):
            return True
        if maker.op_type not in ("Add", "Mul", "Div", "Reshape", "Cast"):
            return False
        masks = [array for other in maker.input[1:2] if (array := graph.array(other)) is not None]
        if maker.op_type in ("Add", "Mul", "Div") and not masks:
            return False
        for mask in masks if maker.op_type != "Reshape" else ():
            if np.isnan(mask).any() or np.isposinf(mask).any():
                return False
            rows = np.isfinite(mask)
            if not (rows.any(axis) if mask.ndim and mask.shape[axis] > 1 else rows).all():
                return False
        name = maker.input[0]
    return False


def _stft(graph: Rewriting, node: onnx.NodeProto) -> bool:
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
    angles = 2 * np.pi / size * (np.outer(np.arange(bins), np.arange(size)) % size)
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


def _dft(graph: Rewriting, node: onnx.NodeProto) -> bool:
    """A transform of real numbers along the last axis of data is two products with waves."""
    shape, result = graph.shape(node.input[0]), graph.shape(node.output[0])
    attributes = attributes_of(node)
    place = graph.array(node.input[2]) if len(node.input) > 2 else attributes.get("axis", 1)
    if shape is None or result is None or place is None or graph.types.get(node.input[0]) != 1:
        return False
    axis, size = int(place) % len(shape), shape[int(place)]
    plain = len(node.input) < 2 or not node.input[1]
    if shape[-1] != 1 or axis != len(shape) - 2 or attributes.get("inverse") or not plain:
        return False
    bins = result[axis]
    angles = 2 * np.pi / size * (np.outer(np.arange(size), np.arange(bins)) % size)
    waves = np.stack([np.cos(angles), -np.sin(angles)], axis=-1).astype(np.float32)
    rows = graph.reshaped(node.input[0], (math.prod(shape) // size, size))
    product = graph.add("MatMul", rows, graph.constant(waves.reshape(size, 2 * bins)))
    graph.reshaped(product, result, to=node.output[0])
    return True


def _sum_of_squares(graph: Rewriting, node: onnx.NodeProto) -> bool:
    """The sum of products of the numbers with themselves."""
    squares = graph.add("Mul", node.input[0], node.input[0])
    attributes = attributes_of(node)
    axes = attributes.pop("axes", None)
    inputs = [squares, *([graph.constant(np.array(axes))] if axes is not None else node.input[1:])]
    graph.add("ReduceSum", *inputs, to=node.output[0], **attributes)
    return True


def _strided(graph: Rewriting, node: onnx.NodeProto) -> bool:
    """A slice in steps: the axis is split into (n/step, step), and one of each step is kept."""
    parts = [graph.array(name) for name in node.input[1:]]
    shape, result = graph.shape(node.input[0]), graph.shape(node.output[0])
    if len(parts) < 4 or any(part is None or part.size != 1 for part in parts):
        return False
    if shape is None or result is None:
        return False
    start, _, axis, step = (int(part.reshape(-1)[0]) for part in parts if part is not None)
    axis %= len(shape)
    size = shape[axis]
    if step < 2 or size % step or not 0 <= start < step or result[axis] != size // step:
        return False
    apart = graph.reshaped(node.input[0], (*shape[:axis], size // step, step, *shape[axis + 1 :]))
    bounds = ([start], [start + 1], [axis + 1])
    one = graph.add("Slice", apart, *(graph.constant(np.array(b, np.int64)) for b in bounds))
    graph.reshaped(one, result, to=node.output[0])
    return True


def _extreme(op: str) -> Rule:
    """The largest number along trailing axes is a pool over them; the smallest is its opposite."""

    def rule(graph: Rewriting, node: onnx.NodeProto) -> bool:
        shape, result = graph.shape(node.input[0]), graph.shape(node.output[0])
        attributes = attributes_of(node)
        reduced = graph.array(node.input[1]) if len(node.input) > 1 else attributes.get("axes")
        if shape is None or result is None or graph.types.get(node.input[0]) != 1:
            return False
        rank = len(shape)
        axes = range(rank) if reduced is None else sorted(int(axis) % rank for axis in reduced)
        if [*axes] != [*range(rank - len(axes), rank)] or not math.prod(shape):
            return False
        count = math.prod(shape[axis] for axis in axes)
        name = node.input[0] if op == "Max" else graph.add("Neg", node.input[0])
        rows = graph.reshaped(name, (1, 1, math.prod(shape) // count, count))
        pool = graph.add("MaxPool", rows, kernel_shape=[1, count])
        if op == "Max":
            graph.reshaped(pool, result, to=node.output[0])
        else:
            graph.add("Neg", graph.reshaped(pool, result), to=node.output[0])
        return True

    return rule


def _gather(graph: Rewriting, node: onnx.NodeProto) -> bool:
    """One row, or rows that follow one another, are a slice."""
    shape, result = graph.shape(node.input[0]), graph.shape(node.output[0])
    rows = graph.array(node.input[1])
    if shape is None or result is None or rows is None or graph.array(node.input[0]) is not None:
        return False
    axis = attributes_of(node).get("axis", 0) % len(shape)
    flat = [int(row) % shape[axis] for row in rows.reshape(-1)] if shape[axis] else []
    if not flat or flat != [*range(flat[0], flat[0] + len(flat))]:
        return False
    # One row of all numbers, so that no axis of the slice can pass for a batch.
    inner = math.prod(shape[axis + 1 :])
    data = graph.reshaped(node.input[0], (math.prod(shape[:axis]), shape[axis] * inner))
    bounds = ([flat[0] * inner], [(flat[-1] + 1) * inner], [1])
    names = (graph.constant(np.array(bound, np.int64)) for bound in bounds)
    graph.reshaped(graph.add("Slice", data, *names), result, to=node.output[0])
    return True


def _expanded(graph: Rewriting, node: onnx.NodeProto) -> bool:
    """An axis of 1 that is repeated a few times is a tensor beside itself."""
    shape, result = graph.shape(node.input[0]), graph.shape(node.output[0])
    if shape is None or result is None or len(shape) != len(result):
        return False
    axes = [axis for axis, size in enumerate(shape) if size != result[axis]]
    if len(axes) != 1 or not 1 < result[axes[0]] <= _MOST_COPIES:
        return False
    copies = [node.input[0]] * result[axes[0]]
    graph.add("Concat", *copies, to=node.output[0], axis=axes[0])
    return True


def _padded(graph: Rewriting, node: onnx.NodeProto) -> bool:
    """Margins of the data's own numbers are rows taken again."""
    shape, result = graph.shape(node.input[0]), graph.shape(node.output[0])
    pads = graph.array(node.input[1])
    mode: Any = attributes_of(node).get("mode", b"constant").decode()
    if shape is None or result is None or pads is None or mode not in _MARGINS:
        return False
    if len(pads) != 2 * len(shape):
        return False
    name = node.input[0]
    for axis in range(len(shape)):
        if not pads[axis] and not pads[axis + len(shape)]:
            continue
        first, last = int(pads[axis]), int(pads[axis + len(shape)])
        rows = np.arange(max(-first, 0), shape[axis] - max(-last, 0))  # below 0: so many fewer
        rows = np.pad(rows, (max(first, 0), max(last, 0)), mode=mode)
        name = graph.add("Gather", name, graph.constant(rows), axis=axis)
    graph.add("Identity", name, to=node.output[0])
    return True


def _split(graph: Rewriting, node: onnx.NodeProto) -> bool:
    """A split is a slice for each result."""
    shape = graph.shape(node.input[0])
    attributes = attributes_of(node)
    results = [graph.shape(name) for name in node.output]
    if shape is None or any(result is None for result in results):
        return False
    axis, start = attributes.get("axis", 0) % len(shape), 0
    for name, result in zip(node.output, results, strict=True):
        end = start + (result or ())[axis]
        bounds = ([start], [end], [axis])
        names = (graph.constant(np.array(bound, np.int64)) for bound in bounds)
        graph.add("Slice", node.input[0], *names, to=name)
        start = end
    return True


def _dequantised(graph: Rewriting, node: onnx.NodeProto) -> bool:
    """Weights in 8 bits are the floats that they stand for."""
    data, scale = (graph.array(name) for name in node.input[:2])
    zero = graph.array(node.input[2]) if len(node.input) > 2 and node.input[2] else None
    attributes = attributes_of(node)
    if data is None or scale is None or attributes.get("block_size"):
        return False
    if (zero is None and len(node.input) > 2 and node.input[2]) or scale.dtype != np.float32:
        return False
    sizes = [1] * data.ndim
    if scale.ndim == 1 and scale.size != 1:
        sizes[attributes.get("axis", 1)] = scale.size
    elif scale.size != 1:
        return False
    whole = data.astype(np.int64) - (0 if zero is None else zero.astype(np.int64).reshape(sizes))
    numbers = whole.astype(np.float32) * scale.reshape(sizes)
    graph.add("Identity", graph.constant(numbers), to=node.output[0])
    return True


def _recurrent(graph: Rewriting, node: onnx.NodeProto) -> bool:
    """A recurrent layer of a few steps is products and gates."""
    options = {**attributes_of(node), "op": node.op_type}
    return unrolled(graph, [*node.input], [*node.output], options)


RULES: Mapping[str, Rule] = MappingProxyType(
    {
        "DFT": _dft,
        "DequantizeLinear": _dequantised,
        "Expand": _expanded,
        "Gather": _gather,
        "GRU": _recurrent,
        "IsInf": _is_infinite,
        "IsNaN": _is_nan,
        "LSTM": _recurrent,
        "Pad": _padded,
        "ReduceMax": _extreme("Max"),
        "ReduceMin": _extreme("Min"),
        "ReduceSumSquare": _sum_of_squares,
        "STFT": _stft,
        "Slice": _strided,
        "Split": _split,
        "Where": _where,
    }
)

__all__ = ["RULES"]
