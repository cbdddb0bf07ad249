"""Reductions and normalisations, in the forms that converters read as they are meant."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from .rewriting import Rewriting, Rule, Shape, attributes_of

if TYPE_CHECKING:
    import onnx


def extreme(op: str) -> Rule:
    """The largest number along trailing axes is a pool over them; the smallest is its opposite."""

    def rule(graph: Rewriting, node: onnx.NodeProto) -> bool:
        shape, result = graph.shape(node.input[0]), graph.shape(node.output[0])
        axes = _axes(graph, node)
        if shape is None or result is None or axes is None or graph.types.get(node.input[0]) != 1:
            return False
        rank = len(shape)
        if axes != (*range(rank - len(axes), rank),) or not math.prod(shape):
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


def over_one_axis(graph: Rewriting, node: onnx.NodeProto) -> bool:
    """A reduction over one axis is one over it and an axis of 1.

    pnnx drops a list of one axis that is an operand.
    """
    axes = _axes(graph, node) if len(node.input) > 1 else None
    shape, result = graph.shape(node.input[0]), graph.shape(node.output[0])
    if shape is None or result is None or axes is None or len(axes) != 1:
        return False
    _reduced(graph, node.op_type, node.input[0], shape, axes[0], result, node.output[0])
    return True


def sum_of_squares(graph: Rewriting, node: onnx.NodeProto) -> bool:
    """The sum of products of the numbers with themselves."""
    squares = graph.add("Mul", node.input[0], node.input[0])
    axes = _axes(graph, node)
    shape, result = graph.shape(node.input[0]), graph.shape(node.output[0])
    if axes is not None and len(axes) == 1 and shape is not None and result is not None:
        _reduced(graph, "ReduceSum", squares, shape, axes[0], result, node.output[0])
        return True
    attributes = attributes_of(node)
    listed = attributes.pop("axes", None)
    others = [graph.constant(np.array(listed))] if listed is not None else node.input[1:]
    graph.add("ReduceSum", squares, *others, to=node.output[0], **attributes)
    return True


def _axes(graph: Rewriting, node: onnx.NodeProto) -> Shape | None:
    """The axes of a reduction in order, from 0 on; None if they are not known."""
    shape, attributes = graph.shape(node.input[0]), attributes_of(node)
    reads = len(node.input) > 1 and node.input[1]
    axes = graph.array(node.input[1]) if reads else attributes.get("axes", ())
    if shape is None or axes is None:
        return None
    if not len(axes):
        return () if attributes.get("noop_with_empty_axes") else (*range(len(shape)),)
    return tuple(sorted(int(axis) % len(shape) for axis in axes))


def _reduced(
    graph: Rewriting, op: str, name: str, shape: Shape, axis: int, result: Shape, to: str
) -> None:
    before, after = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
    sizes = (1, before, shape[axis], 1, *((after,) if after != 1 else ()))
    both = graph.constant(np.array([2, 3], np.int64))
    one = graph.add(op, graph.reshaped(name, sizes), both, keepdims=1)
    graph.reshaped(one, result, to=to)


def normalised(graph: Rewriting, node: onnx.NodeProto) -> bool:
    """A line is an image of one row."""
    shape = graph.shape(node.input[0])
    if shape is None or len(shape) != 3:
        return False
    image = graph.reshaped(node.input[0], (*shape[:2], 1, shape[2]))
    one = graph.add("InstanceNormalization", image, *node.input[1:], **attributes_of(node))
    graph.reshaped(one, shape, to=node.output[0])
    return True


def scaled(graph: Rewriting, node: onnx.NodeProto) -> bool:
    """With constant statistics, a matrix is multiplied by a row, and another row is added."""
    shape = graph.shape(node.input[0])
    numbers = [graph.array(name) for name in node.input[1:5]]
    attributes = attributes_of(node)
    if shape is None or len(shape) != 2 or attributes.get("training_mode") or len(node.output) > 1:
        return False
    if graph.types.get(node.input[0]) != 1 or any(array is None for array in numbers):
        return False
    scale, bias, mean, variance = (np.asarray(array, np.float64) for array in numbers)
    factor = scale / np.sqrt(variance + attributes.get("epsilon", 1e-5))
    rows = (graph.constant(row.astype(np.float32)[None]) for row in (factor, bias - mean * factor))
    product = graph.add("Mul", node.input[0], next(rows))
    graph.add("Add", product, next(rows), to=node.output[0])
    return True


__all__ = ["extreme", "normalised", "over_one_axis", "scaled", "sum_of_squares"]
