"""Additions that mnnconvert makes the bias of the layer before them.

It asks whether a constant has as many numbers as the layer has channels, not along which axis they
lie, and looks through an activation (run: tests/conformance/test_mnn_fusion.py).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial

from ..findings import Finding
from ..ir.graph import Graph, Node, Value
from .batch import BatchAxes
from .joining import as_wrong

_CONVOLUTIONS = frozenset({"Conv", "ConvTranspose"})


def fused(graph: Graph, _: BatchAxes) -> Mapping[int, Callable[[Finding], Finding]]:
    """The findings of additions that mnnconvert changes, by the identity of their nodes."""
    if not any(node.onnx_op in ("Add", "Sum") for node in graph.nodes):
        return {}
    return {id(node): partial(as_wrong, words=words) for node, words in _Biases(graph)}


class _Biases:
    """The wrong biases of a graph; iterable once."""

    def __init__(self, graph: Graph) -> None:
        self._nodes = graph.nodes
        self._makers = {id(value): node for node in graph.nodes for value in node.outputs}
        self._readers = Counter(id(value) for node in graph.nodes for value in node.inputs)
        self._biases: set[int] = set()

    def __iter__(self) -> Iterator[tuple[Node, str]]:
        """Yield each addition that becomes a wrong bias, and what is wrong."""
        for node in self._nodes:
            if node.onnx_op in ("Add", "Sum") and len(node.inputs) > 1:
                words = self._words(node)
                if words:
                    yield node, words

    def _words(self, node: Node) -> str:
        """The fault; "" if the result is right, or no bias is made."""
        first, second = node.inputs[:2]
        for data, constant in ((first, second), (second, first)):
            layer, activation = self._layer(data)
            if layer is None or constant is None or not constant.constant:
                continue
            convolution = layer.onnx_op in _CONVOLUTIONS
            if convolution and data is second:
                continue  # only the second operand becomes the bias of a convolution
            shape, result = _numbers(constant), layer.outputs[0].shape
            if shape is None or result is None:
                continue
            axis = 1 if convolution else len(result) - 1
            if not 0 <= axis < len(result) or math.prod(shape) != result[axis]:
                continue
            self._biases.add(id(node))
            bias = f"mnnconvert makes {constant.name or 'the constant'} a bias of the {layer.op}"
            if not _lies_at(shape, axis - len(result)) or len(shape) > len(result):
                return (
                    f"{bias} before it, along axis {axis}, because it has as many numbers; the "
                    f"model adds {shape} to {result}: store it in the shape of the result, second"
                )
            if activation is not None:
                return (
                    f"{bias} before the {activation.op}, because it has as many numbers as there "
                    "are channels; the model adds it after: store it in the result's shape, second"
                )
        return ""

    def _layer(self, value: Value | None) -> tuple[Node | None, Node | None]:
        """The layer whose result this is, and an activation on the way."""
        activation: Node | None = None
        maker = self._makers.get(id(value))
        if maker is not None and self._readers[id(value)] == 1 and _is_product(maker):
            return maker, None
        while maker is not None and maker.inputs and self._readers[id(value)] == 1:
            if _is_convolution(maker):
                return maker, activation
            before = self._makers.get(id(maker.inputs[0]))
            if maker.onnx_op == "Relu" or _is_relu6(maker):
                activation = maker
            elif maker.onnx_op == "BatchNormalization":
                if before is None or not (_is_convolution(before) or id(before) in self._biases):
                    break  # it stays a layer of its own
            elif maker.onnx_op != "Identity" and id(maker) not in self._biases:
                break
            value, maker = maker.inputs[0], before
        return None, None


def _is_product(node: Node) -> bool:
    """Whether it is a product of matrices that may get a bias."""
    if node.onnx_op == "Gemm":
        return len(node.inputs) < 3 or node.inputs[2] is None
    right = node.inputs[1] if node.onnx_op == "MatMul" and len(node.inputs) > 1 else None
    return right is not None and len(right.shape or ()) == 2


def _is_convolution(node: Node) -> bool:
    """Whether it is a convolution over two axes, with constant weights."""
    weights = node.inputs[1] if node.onnx_op in _CONVOLUTIONS and len(node.inputs) > 1 else None
    return weights is not None and weights.constant and len(weights.shape or ()) == 4


def _is_relu6(node: Node) -> bool:
    if node.onnx_op != "Clip":
        return False
    if node.version < 11:
        return (node.attributes.get("min"), node.attributes.get("max")) == (0, 6)
    return [value and value.reals for value in node.inputs[1:3]] == [(0,), (6,)]


def _numbers(value: Value) -> tuple[int, ...] | None:
    """The shape, if all its sizes are numbers."""
    sizes = [size for size in value.shape or () if isinstance(size, int)]
    return tuple(sizes) if value.shape is not None and len(sizes) == len(value.shape) else None


def _lies_at(shape: tuple[int, ...], axis: int) -> bool:
    """Whether a shape of one axis lies at an axis, counted from the last.

    >>> _lies_at((4, 1), -1), _lies_at((4,), -1), _lies_at((1, 1), -3)
    (False, True, True)
    """
    return all(size == 1 or k - len(shape) == axis for k, size in enumerate(shape))
