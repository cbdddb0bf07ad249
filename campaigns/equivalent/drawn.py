"""A random model in the making: its nodes, constants and inputs."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

#: Sizes; names are open ones.
Shape = tuple[int | str, ...]
_OPSET = 17


class Drawn:
    """A model in the making.

    Args:
        seed: of its draws.
        shapes: its input has one of them.

    Attributes:
        pick, numbers: draw choices and numbers.
        nodes, constants: of the model.
        shapes: of its tensors of floats, in order.
        inputs: the types and shapes of its inputs, by name.
        last: the last tensor of floats.
    """

    def __init__(self, seed: int, shapes: Sequence[Shape]) -> None:
        self.pick = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.shapes: dict[str, Shape] = {"x": self.pick.choice(shapes)}
        self.inputs: dict[str, tuple[int, Shape]] = {"x": (TensorProto.FLOAT, self.shapes["x"])}
        self.last = "x"
        self._names = 0

    def input(self, name: str, dtype: int, shape: Shape) -> str:
        """Adds an input, or names the one that is there."""
        self.inputs.setdefault(name, (dtype, shape))
        return name

    def constant(self, array: Any) -> str:
        """Adds a constant."""
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def floats(self, *shape: int, low: float = -1.0) -> str:
        """Adds a constant of random floats."""
        return self.constant(self.numbers.uniform(low, 1, shape).astype(np.float32))

    def number(self, value: float) -> str:
        """Adds a constant of one float."""
        return self.constant(np.float32(value))

    def ints(self, *numbers: int) -> str:
        """Adds a constant of whole numbers."""
        return self.constant(np.array(numbers, np.int64))

    def fresh(self, head: str) -> str:
        """A name that no other call returns."""
        self._names += 1
        return f"{head}{self._names}"

    def node(
        self,
        op: str,
        inputs: Sequence[str],
        shape: Shape,
        *,
        keep: bool = True,
        **attributes: Any,
    ) -> str:
        """Adds a node of one result; with `keep` it is of floats, and the last tensor."""
        name = f"t{len(self.nodes)}"
        self.nodes.append(
            helper.make_node(op, list(inputs), [name], f"n{len(self.nodes)}", **attributes)
        )
        if keep:
            self.shapes[name] = shape
            self.last = name
        return name

    def nodes_of(
        self, op: str, inputs: Sequence[str], shapes: Sequence[Shape], **attributes: Any
    ) -> list[str]:
        """Adds a node of some results, of floats; returns their names."""
        number = len(self.nodes)
        names = [f"t{number}_{k}" for k in range(len(shapes))]
        self.nodes.append(helper.make_node(op, list(inputs), names, f"n{number}", **attributes))
        self.shapes.update(zip(names, shapes, strict=True))
        self.last = names[-1]
        return names

    def model(self) -> onnx.ModelProto:
        """The whole model."""
        output = self.node("Identity", [self.last], self.shapes[self.last])
        floats = TensorProto.FLOAT
        graph = helper.make_graph(
            self.nodes,
            "g",
            [helper.make_tensor_value_info(n, *of) for n, of in self.inputs.items()],
            [helper.make_tensor_value_info(output, floats, self.shapes[output])],
            self.constants,
        )
        return helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=8
        )
