"""A part of an ONNX file as a file of its own."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import ModelError
from ..ir.graph import Array
from .part import Part, read_by
from .program import readable


@dataclass(frozen=True, slots=True)
class Tensor:
    """An input or the output of a file.

    Attributes:
        dtype: NumPy's name of its element type.
        shape: its sizes: numbers, or expressions of open ones as text; None if they are not known.
    """

    dtype: str
    shape: Sequence[int | str] | None

    @staticmethod
    def of(array: Array) -> Tensor:
        """What an array is."""
        return Tensor(str(array.dtype), array.shape)


def constants_of(part: Part) -> dict[str, Array]:
    """The constants that a part reads, by name."""
    arrays = {}
    own = {id(value) for value in part.operands}
    for node in part.nodes:
        for value in read_by(node):
            if readable(value) and id(value) not in own:
                try:
                    arrays[value.name] = value.data()
                except ModelError:
                    continue  # missing: the engine reports it
    return arrays


def cut_out(part: Part, inputs: Mapping[str, Tensor], result: tuple[str, Tensor]) -> bytes | None:
    """An ONNX file of a part's nodes; None where the nodes are not in the file as they are.

    Args:
        part: the nodes.
        inputs: the operands, in order, by the names of the file's inputs.
        result: the name of the file's output, and what it is.
    """
    onnx: Any = importlib.import_module("onnx")
    helper, numpy_helper = onnx.helper, onnx.numpy_helper
    model = onnx.load(part.graph.path, load_external_data=False)
    makers = {name: node for node in model.graph.node for name in node.output}
    outputs = [[v.name for v in node.outputs if v.name] for node in part.nodes]
    if not all(names and names[0] in makers for names in outputs):
        return None
    nodes = [onnx.NodeProto.FromString(makers[n[0]].SerializeToString()) for n in outputs]
    names = {value.name: key for key, value in zip(inputs, part.operands, strict=True)}
    names[part.result.name] = result[0]
    for node in nodes:
        for ends in (node.input, node.output):
            ends[:] = [names.get(name, name) for name in ends]

    def info(name: str, tensor: Tensor) -> Any:
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(tensor.dtype))
        return helper.make_tensor_value_info(name, kind, tensor.shape)

    tensors = [numpy_helper.from_array(a, name) for name, a in constants_of(part).items()]
    ends = [info(name, tensor) for name, tensor in inputs.items()]
    graph = helper.make_graph(nodes, "part", ends, [info(*result)], tensors)
    cut = helper.make_model(graph, functions=model.functions, opset_imports=model.opset_import)
    cut.ir_version = model.ir_version
    data: bytes = cut.SerializeToString()
    return data


__all__ = ["Tensor", "constants_of", "cut_out"]
