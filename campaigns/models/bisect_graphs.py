"""Random chains of ONNX nodes, and the same chains with one fault in one node."""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Shape = tuple[int, ...]

_SHAPE = (1, 4, 6, 6)
#: A shape in which a constant can be read along several axes.
CUBE = (1, 6, 6, 6)
_BINARY = ("Add", "Sub", "Mul", "Max")
_UNARY = ("Relu", "Sigmoid", "Tanh", "Abs", "Neg")
_KINDS = ("binary", "unary", "conv", "norm", "softmax", "transpose", "branch")


def chain(seed: int, length: int = 12, shape: Shape = _SHAPE) -> onnx.ModelProto:
    """A chain of element-wise ops, convolutions, normalisations, transpositions and reductions."""
    rng, draw = random.Random(seed), np.random.default_rng(seed)
    nodes: list[onnx.NodeProto] = []
    constants = []
    channels = shape[1]
    aligned = _CUBE_OPERANDS if shape == CUBE else ((1, 4, 1, 1), (1, 1, 1, 6), (1, 4, 6, 6))

    def constant(name: str, *sizes: int, low: float = -1.0) -> str:
        array = draw.uniform(low, 1, sizes).astype(np.float32)
        constants.append(numpy_helper.from_array(array, name))
        return name

    last = "x"

    def node(op: str, *operands: str, **attributes: Any) -> None:
        nonlocal last
        last = f"t{len(nodes)}"
        nodes.append(helper.make_node(op, [*operands], [last], f"n{len(nodes)}", **attributes))

    for k in range(length):
        kind = rng.choice(_KINDS)
        before = last
        if kind == "binary":
            sizes = rng.choice(aligned)
            node(rng.choice(_BINARY), last, constant(f"c{k}", *sizes))
        elif kind == "unary":
            node(rng.choice(_UNARY), last)
        elif kind == "conv":
            weights = (constant(f"w{k}", channels, channels, 3, 3), constant(f"b{k}", channels))
            node("Conv", last, *weights, pads=[1, 1, 1, 1])
        elif kind == "norm":
            parts = [constant(f"{part}{k}", channels, low=0.5) for part in "smbv"]
            node("BatchNormalization", last, *parts)
        elif kind == "softmax":
            node("Softmax", last, axis=rng.choice((1, 2, 3)))
        elif kind == "transpose":
            node("Transpose", last, perm=[0, 1, 3, 2])
        else:
            node("Sigmoid", last)
            node("Mul", before, last)
    outputs = [helper.make_tensor_value_info(last, TensorProto.FLOAT, shape)]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]
    graph = helper.make_graph(nodes, "chain", inputs, outputs, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


#: Operands of an element-wise node on a cube: every rank, along one axis or two.
_CUBE_OPERANDS: tuple[Shape, ...] = (
    *((6,), (6, 1), (6, 1, 1), (1, 6, 1, 1), (1, 1, 6, 1), (1, 1, 1, 6)),
    *((6, 6), (6, 1, 6), (6, 6, 1), (1, 6, 1, 6)),
)


def misread(model: onnx.ModelProto, seed: int) -> tuple[onnx.ModelProto, str, str] | None:
    """The model with one constant read along other axes; the node, and the constant.

    None where no node of the model has such a constant.
    """
    rng = random.Random(seed)
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    constants = {tensor.name: tensor for tensor in changed.graph.initializer}
    forms = []
    for node in changed.graph.node:
        for name in node.input if node.op_type in _BINARY else ():
            if name in constants:
                sizes = tuple(constants[name].dims)
                forms += [(node.name, name, form) for form in _other_forms(sizes)]
    if not forms:
        return None
    node_name, name, form = rng.choice(forms)
    array = numpy_helper.to_array(constants[name]).reshape(form)
    constants[name].CopyFrom(numpy_helper.from_array(array, name))
    return changed, node_name, name


def _other_forms(sizes: Shape) -> list[Shape]:
    """The shapes of rank 4 in which an operand lies along other axes of a cube."""
    own = (1,) * (4 - len(sizes)) + sizes
    count = sum(size != 1 for size in sizes)
    places = itertools.combinations((1, 2, 3), count)
    forms = [tuple(6 if axis in axes else 1 for axis in range(4)) for axes in places]
    return [form for form in forms if form != own]


def faulty(model: onnx.ModelProto, seed: int) -> tuple[onnx.ModelProto, str, str]:
    """The model with one constant, axis or op changed; the changed node, and what was changed."""
    rng = random.Random(seed)
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    constants = {tensor.name: tensor for tensor in changed.graph.initializer}
    faults = []
    for node in changed.graph.node:
        faults += [(node, name) for name in node.input if name in constants]
        if node.op_type == "Softmax":
            faults.append((node, "axis"))
        if node.op_type in _UNARY:
            faults.append((node, "op"))
    node, what = rng.choice(faults)
    if what == "axis":
        node.attribute[0].i = node.attribute[0].i % 3 + 1
    elif what == "op":
        node.op_type = "Neg" if node.op_type != "Neg" else "Tanh"
    else:
        array = numpy_helper.to_array(constants[what]).copy()
        array.reshape(-1)[rng.randrange(array.size)] += 0.75
        constants[what].CopyFrom(numpy_helper.from_array(array, what))
    return changed, node.name, what


def renamed(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with other names for every tensor between, as pnnx writes them."""
    other = onnx.ModelProto()
    other.CopyFrom(model)
    names = {name: f"blob{k}" for k, node in enumerate(other.graph.node) for name in node.output}
    names[other.graph.output[0].name] = "out0"
    for node in other.graph.node:
        node.input[:] = [names.get(name, name) for name in node.input]
        node.output[:] = [names[name] for name in node.output]
    other.graph.output[0].name = "out0"
    return other


def saved(model: onnx.ModelProto, path: Path) -> Path:
    """The model in a file."""
    onnx.save(model, path)
    return path
