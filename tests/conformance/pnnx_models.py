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
