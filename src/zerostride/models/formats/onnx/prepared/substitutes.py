"""Ops that converters lack, as other ops that compute the same.

Nothing here depends on the model's numbers, but for constants.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from .indices import elements_from_start, gather_nd_from_start
from .layouts import (
    blocks,
    even_reshaped,
    expanded,
    gather,
    in_order,
    joined,
    operands_in_order,
    padded,
    reshaped_again,
    sliced,
    split,
    transposed,
)
from .reductions import extreme, normalised, over_one_axis, scaled, sum_of_squares
from .rewriting import Rewriting, Rule, attributes_of
from .unrolled import unrolled
from .waves import short_time_transform, transform

if TYPE_CHECKING:
    import onnx

#: Nodes from a softmax back to the mask that is added.
_MOST_BACK = 4
#: From here on the logarithm of 1 + e^x is x, in 32 bits.
_LONG = 17
#: The numbers of an approximation of the error function, the highest power first.
_OF_ERF, _RATE = (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592), 0.3275911


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


def _error_function(graph: Rewriting, node: onnx.NodeProto) -> bool:
    """The error function by an exponential, as far as 32 bits tell: up to 1.5e-7.

    Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.26.
    """
    if graph.types.get(node.input[0], 1) != 1:
        return False
    one, rate = graph.constant(np.float32(1)), graph.constant(np.float32(_RATE))
    size = graph.add("Abs", node.input[0])
    part = graph.add("Div", one, graph.add("Add", one, graph.add("Mul", rate, size)))
    total = graph.constant(np.float32(_OF_ERF[0]))
    for factor in _OF_ERF[1:]:
        product = graph.add("Mul", total, part)
        total = graph.add("Add", product, graph.constant(np.float32(factor)))
    fall = graph.add("Exp", graph.add("Neg", graph.add("Mul", size, size)))
    rest = graph.add("Mul", graph.add("Mul", total, part), fall)
    sign = graph.add("Sign", node.input[0])
    graph.add("Mul", sign, graph.add("Sub", one, rest), to=node.output[0])
    return True


def _where(graph: Rewriting, node: onnx.NodeProto) -> bool:
    """A choice that is always the same: of a softmax that is no NaN, of a softplus of long x."""
    test = graph.makers.get(node.input[0])
    return test is not None and (_without_nan(graph, node, test) or _softplus(graph, node, test))


def _softplus(graph: Rewriting, node: onnx.NodeProto, test: onnx.NodeProto) -> bool:
    """Where(x > 17, x, Softplus(x)) is Softplus(x)."""
    maker = graph.makers.get(node.input[2])
    if test.op_type != "Greater" or maker is None or maker.op_type != "Softplus":
        return False
    bound = graph.array(test.input[1])
    same = test.input[0] == node.input[1] == maker.input[0]
    if not same or bound is None or bound.dtype != np.float32 or (bound < _LONG).any():
        return False
    graph.add("Identity", node.input[2], to=node.output[0])
    return True


def _without_nan(graph: Rewriting, node: onnx.NodeProto, test: onnx.NodeProto) -> bool:
    """Where(IsNaN(s), c, s) of a softmax is s: a row of finite numbers makes no NaN."""
    if test.op_type != "IsNaN" or test.input[0] != node.input[2]:
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


def _with_a_line_of_bias(graph: Rewriting, node: onnx.NodeProto) -> bool:
    """The bias of a product is a line; pnnx takes no matrix of one row for it."""
    bias = graph.array(node.input[2]) if len(node.input) > 2 and node.input[2] else None
    if bias is None or bias.ndim != 2 or bias.shape[0] != 1:
        return False
    line = graph.constant(bias[0].copy())
    graph.add("Gemm", *node.input[:2], line, to=node.output[0], **attributes_of(node))
    return True


def _bounded(graph: Rewriting, node: onnx.NodeProto) -> bool:
    """No number is below the lowest bound, or above the highest."""
    lowest = -np.inf if node.op_type == "Max" else np.inf
    arrays = [graph.array(name) for name in node.input]
    others = [
        name
        for name, array in zip(node.input, arrays, strict=True)
        if array is None or array.size != 1 or array.flat[0] != lowest
    ]
    shape = graph.shape(others[0]) if len(others) == 1 else None
    if shape is None or shape != graph.shape(node.output[0]):
        return False
    graph.add("Identity", others[0], to=node.output[0])
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


def _turned(graph: Rewriting, node: onnx.NodeProto) -> bool:
    """A sign is a factor: of a Neg that is joined, pnnx makes a rotation, which has no batch."""
    if graph.types.get(node.input[0]) != 1:
        return False
    graph.add("Mul", node.input[0], graph.constant(np.float32(-1)), to=node.output[0])
    return True


def _recurrent(graph: Rewriting, node: onnx.NodeProto) -> bool:
    """A recurrent layer of a few steps is products and gates."""
    options = {**attributes_of(node), "op": node.op_type}
    return unrolled(graph, [*node.input], [*node.output], options)


RULES: Mapping[str, Rule] = MappingProxyType(
    {
        "BatchNormalization": scaled,
        "Concat": joined,
        "DFT": transform,
        "DepthToSpace": blocks,
        "DequantizeLinear": _dequantised,
        "Erf": _error_function,
        "Expand": expanded,
        "GRU": _recurrent,
        "Gather": gather,
        "GatherElements": elements_from_start,
        "GatherND": gather_nd_from_start,
        "Gemm": _with_a_line_of_bias,
        "InstanceNormalization": normalised,
        "IsInf": _is_infinite,
        "IsNaN": _is_nan,
        "LSTM": _recurrent,
        "Max": _bounded,
        "Min": _bounded,
        "Neg": _turned,
        "Pad": padded,
        "ReduceMax": extreme("Max"),
        "ReduceMean": over_one_axis,
        "ReduceMin": extreme("Min"),
        "ReduceProd": over_one_axis,
        "ReduceSum": over_one_axis,
        "ReduceSumSquare": sum_of_squares,
        "Reshape": reshaped_again,
        "STFT": short_time_transform,
        "ScatterElements": elements_from_start,
        "Slice": sliced,
        "SpaceToDepth": blocks,
        "Split": split,
        "Transpose": transposed,
        "Where": _where,
    }
)

#: Ops whose results a converter may lay with the channels last, or take for such.
IN_ORDER: Mapping[str, Rule] = MappingProxyType(
    {
        **dict.fromkeys(("AveragePool", "BatchNormalization", "Conv", "ConvTranspose"), in_order),
        **dict.fromkeys(("GlobalAveragePool", "InstanceNormalization", "MaxPool"), in_order),
        **dict.fromkeys(("Resize", "Transpose"), in_order),
        **dict.fromkeys(("Gather", "Max", "Min", "Where"), operands_in_order),
        "Reshape": even_reshaped,
    }
)

__all__ = ["IN_ORDER", "RULES"]
