"""Small ONNX models for pnnx: a convolution that marks the batch axis, and one broadcast."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

BINARY = ("Add", "Sub", "Mul", "Div", "Max", "Min", "Pow")


@dataclass(frozen=True)
class Broadcast:
    """x (1, C, ...), through a convolution or not, with another operand.

    `other` is the operand's shape; `given`: it is an input of the model rather than a constant.
    """

    x: tuple[int, ...]
    other: tuple[int, ...]
    op: str = "Add"
    tells: bool = True
    given: bool = False
    first: bool = False

    def model(self) -> ModelProto:
        rng = np.random.default_rng(0)
        nodes, constants = [], []
        inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, self.x)]
        if self.tells:
            kernel = rng.uniform(0.1, 1, (self.x[1], self.x[1], *(1,) * (len(self.x) - 2)))
            constants.append(numpy_helper.from_array(kernel.astype(np.float32), "kernel"))
            nodes.append(helper.make_node("Conv", ["x", "kernel"], ["h"]))
        else:
            nodes.append(helper.make_node("Relu", ["x"], ["h"]))
        if self.given:
            inputs.append(helper.make_tensor_value_info("z", TensorProto.FLOAT, self.other))
            nodes.append(helper.make_node("Relu", ["z"], ["other"]))
        else:
            data = rng.uniform(1, 2, self.other).astype(np.float32)
            constants.append(numpy_helper.from_array(data, "other"))
        operands = ["other", "h"] if self.first else ["h", "other"]
        nodes.append(helper.make_node(self.op, operands, ["sum"], name="site"))
        nodes.append(helper.make_node("Sigmoid", ["sum"], ["y"]))
        result = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
        return _model(helper.make_graph(nodes, "g", inputs, [result], constants), 13)

    def feeds(self) -> dict[str, Any]:
        rng = np.random.default_rng(1)
        feeds = {"x": rng.uniform(0.5, 1.5, self.x).astype(np.float32)}
        if self.given:
            feeds["z"] = rng.uniform(0.5, 1.5, self.other).astype(np.float32)
        return feeds


def _model(graph: Any, opset: int) -> ModelProto:
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def generated(count: int, seed: int) -> list[Broadcast]:
    """Operands of all ranks up to 5: constants and inputs, leading ones, across the batch."""
    draw = random.Random(seed)
    return [_draw(draw) for _ in range(count)]


def _draw(draw: random.Random) -> Broadcast:
    rank = draw.choice([3, 4, 4, 5])
    x = (1, *(draw.choice([2, 3, 4]) for _ in range(rank - 1)))
    other = []
    length = draw.choice([0, 1, 1, 2, 3, 4, 5])
    for axis in range(rank - length, rank):
        if axis < 0:
            other.append(draw.choice([1, 1, 2]))
        elif axis == 0:
            other.append(draw.choice([1, 1, 1, 2]))
        else:
            other.append(draw.choice([1, x[axis], x[axis]]))
    tells = draw.random() < 0.75
    given = draw.random() < 0.35
    return Broadcast(x, tuple(other), draw.choice(BINARY), tells, given, draw.random() < 0.3)


def compound(op: str, x: tuple[int, ...], weights: list[Any], **attributes: Any) -> ModelProto:
    """A convolution, then `op` with constants."""
    rng = np.random.default_rng(0)
    kernel = rng.uniform(0.1, 1, (x[1], x[1], *(1,) * (len(x) - 2))).astype(np.float32)
    constants = [numpy_helper.from_array(kernel, "kernel")]
    names = []
    for k, weight in enumerate(weights):
        names.append(f"w{k}")
        constants.append(numpy_helper.from_array(np.asarray(weight), names[-1]))
    nodes = [
        helper.make_node("Conv", ["x", "kernel"], ["h"]),
        helper.make_node(op, ["h", *names], ["y"], name="site", **attributes),
    ]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, x)]
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    return _model(helper.make_graph(nodes, "g", inputs, [result], constants), 17)


def expand(seed: int) -> tuple[ModelProto, dict[str, Any]]:
    """An Expand to a constant, behind a convolution or not, and the input."""
    draw = random.Random(seed)
    tells = draw.random() < 0.6
    rank = 4 if tells else draw.randint(1, 4)
    full = [draw.randint(1, 4) for _ in range(rank)]
    data = [draw.choice([1, size]) for size in full]
    if tells:
        data[0], data[1], full[0] = 1, full[1], draw.choice([1, 1, 2])
    length = draw.randint(1, 4)
    outer = [1, 2, 3][: max(0, length - rank)]
    target = [draw.choice([1, size]) for size in [*outer, *full][-length:]]
    rng = np.random.default_rng(seed)
    names, constants, nodes = "x", [], []
    if tells:
        kernel = rng.uniform(0.1, 1, (data[1], data[1], 1, 1)).astype(np.float32)
        constants.append(numpy_helper.from_array(kernel, "kernel"))
        nodes.append(helper.make_node("Conv", ["x", "kernel"], ["h"]))
        names = "h"
    constants.append(numpy_helper.from_array(np.array(target, np.int64), "target"))
    nodes.append(helper.make_node("Expand", [names, "target"], ["y"], name="site"))
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, data)]
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    model = _model(helper.make_graph(nodes, "g", inputs, [result], constants), 13)
    return model, {"x": rng.uniform(0.1, 1, data).astype(np.float32)}


def normalised(
    shape: tuple[int, ...], axis: int, mark: str, *, norm: str = "ReduceL2", spread: bool = True
) -> tuple[ModelProto, dict[str, Any]]:
    """A division by a norm, as PyTorch exports F.normalize, after a layer or not, and the input."""
    rng = np.random.default_rng(len(shape) + axis)
    constants = [numpy_helper.from_array(np.float32(1e-12), "least")]
    if mark:
        sizes = (shape[1], shape[1], *(1,) * (len(shape) - 2))
        weight = rng.uniform(-1, 1, sizes).astype(np.float32)
        constants.append(numpy_helper.from_array(weight, "weight"))
    operands = {"": ["x"], "Conv": ["x", "weight"], "Gemm": ["x", "weight", "bias"]}[mark]
    if mark == "Gemm":
        constants.append(numpy_helper.from_array(np.ones(shape[1], np.float32), "bias"))
    nodes = [
        helper.make_node(mark or "LeakyRelu", operands, ["h"]),
        helper.make_node(norm, ["h"], ["n"], axes=[axis], keepdims=1),
        helper.make_node("Clip", ["n", "least"], ["c"]),
    ]
    if spread:
        constants.append(numpy_helper.from_array(np.array(shape, np.int64), "to"))
        nodes.append(helper.make_node("Expand", ["c", "to"], ["e"]))
    nodes.append(helper.make_node("Div", ["h", "e" if spread else "c"], ["y"], name="site"))
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    model = _model(helper.make_graph(nodes, "g", inputs, [result], constants), 13)
    return model, {"x": rng.uniform(-1, 1, shape).astype(np.float32)}


def typed(op: str, kind: str, other: tuple[int, ...] | None) -> tuple[ModelProto, dict[str, Any]]:
    """An op on small numbers of an element type: with a constant of a shape, or two inputs."""
    rng = np.random.default_rng(3)
    code = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    x, y = (rng.integers(1, 5, shape).astype(kind) for shape in ((3, 4), other or (3, 4)))
    inputs = [helper.make_tensor_value_info("x", code, (3, 4))]
    constants, feeds = [], {"x": x}
    if other is None:
        inputs.append(helper.make_tensor_value_info("z", code, (3, 4)))
        feeds["z"] = y
    else:
        constants.append(numpy_helper.from_array(y, "z"))
    node = helper.make_node(op, ["x", "z"], ["y"], name="site")
    result = helper.make_tensor_value_info("y", code, None)
    return _model(helper.make_graph([node], "g", inputs, [result], constants), 14), feeds
