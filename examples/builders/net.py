"""A few lines over `onnx.helper`, so that a model below reads like the network that it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Shape = Sequence[int | str | None]


def weights(*shape: int, seed: int = 0) -> np.ndarray:
    """Made-up float32 parameters in [-0.5, 0.5).

    They are multiples of 1/64, computed in integers: no random generator, whose stream a NumPy
    release may change, and no rounding, so that the bytes are the same everywhere.
    """
    steps = np.arange(int(np.prod(shape)), dtype=np.int64) * 37 + seed * 11
    return (((steps % 64) - 32) / 64).astype(np.float32).reshape(shape)


def around_one(*shape: int, seed: int = 0) -> np.ndarray:
    """Parameters of a scale: float32 in [0.75, 1.25)."""
    return (1 + weights(*shape, seed=seed) / 2).astype(np.float32)


def value(name: str, shape: Shape | None, dtype: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    """An input or output; a shape of None says nothing, not even the rank."""
    return helper.make_tensor_value_info(name, dtype, shape)


class Net:
    """Nodes and initialisers of one graph or body, in the order of the calls."""

    def __init__(self, prefix: str = "") -> None:
        self.prefix = prefix
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []

    def const(self, name: str, array: np.ndarray | Sequence[int] | float) -> str:
        """An initialiser; Python numbers become float32, sequences of integers int64."""
        if isinstance(array, float):
            array = np.array(array, dtype=np.float32)
        elif not isinstance(array, np.ndarray):
            array = np.array(array, dtype=np.int64)
        name = self.prefix + name
        self.initializers.append(numpy_helper.from_array(array, name))
        return name

    def op(self, op_type: str, *inputs: str, name: str, domain: str = "", **attributes: Any) -> str:
        """A node with one output, named like the node."""
        name = self.prefix + name
        self.nodes.append(
            helper.make_node(op_type, inputs, [name], name=name, domain=domain, **attributes)
        )
        return name

    def graph(
        self,
        name: str,
        inputs: Sequence[onnx.ValueInfoProto],
        outputs: Sequence[onnx.ValueInfoProto],
    ) -> onnx.GraphProto:
        return helper.make_graph(self.nodes, name, inputs, outputs, self.initializers)


def model(
    graph: onnx.GraphProto,
    opsets: dict[str, int],
    ir_version: int,
    functions: Sequence[onnx.FunctionProto] = (),
) -> onnx.ModelProto:
    """Wrap a graph; the versions are given, never those of the installed package."""
    imports = [helper.make_opsetid(domain, version) for domain, version in opsets.items()]
    return helper.make_model(
        graph,
        opset_imports=imports,
        ir_version=ir_version,
        functions=functions,
        producer_name="zerostride-examples",
    )
