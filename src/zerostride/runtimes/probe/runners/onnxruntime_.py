"""ONNX Runtime on the CPU, one node a model, sizes left symbolic so that the kernel decides."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from ..case import Array, Shape
from . import Attrs, Perform, Runner

#: Case op to (node, opset). An older opset's kernel is another kernel.
_NODES: Mapping[str, tuple[str, int]] = MappingProxyType(
    {
        "Add-7": ("Add", 7),
        "Add-14": ("Add", 14),
        "Sub-14": ("Sub", 14),
        "PRelu-16": ("PRelu", 16),
        "Where-16": ("Where", 16),
        "Expand-13": ("Expand", 13),
    }
)
#: An intermediate representation that every one of these opsets may be in.
_IR_VERSION = 8


def load() -> Runner:
    """Imports ONNX Runtime, and onnx to write its models."""
    ort: Any = importlib.import_module("onnxruntime")
    states: Any = importlib.import_module("onnxruntime.capi.onnxruntime_pybind11_state")
    onnx: Any = importlib.import_module("onnx")
    ort.set_default_logger_severity(4)

    @functools.lru_cache(maxsize=1024)
    def session(op: str, inputs: tuple[tuple[str, int], ...]) -> Any:
        node, opset = _NODES[op]
        names = [f"x{k}" for k in range(len(inputs))]
        infos = [
            onnx.helper.make_tensor_value_info(
                name,
                onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)),
                [f"{name}_{k}" for k in range(rank)],
            )
            for name, (dtype, rank) in zip(names, inputs, strict=True)
        ]
        typed = onnx.helper.np_dtype_to_tensor_dtype(
            np.dtype(inputs[1 if node == "Where" else 0][0])
        )
        result = onnx.helper.make_tensor_value_info("y", typed, None)
        graph = onnx.helper.make_graph(
            [onnx.helper.make_node(node, names, ["y"])], "case", infos, [result]
        )
        model = onnx.helper.make_model(
            graph, ir_version=_IR_VERSION, opset_imports=[onnx.helper.make_opsetid("", opset)]
        )
        options = ort.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 4
        return ort.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )

    def node_of(op: str) -> Perform:
        def perform(attrs: Attrs, operands: Sequence[Array], target: Shape) -> Array:
            inputs = list(operands)
            if op == "Expand-13":
                inputs.append(np.array(target, np.int64).reshape(len(target)))
            key = tuple((str(array.dtype), array.ndim) for array in inputs)
            feeds = {f"x{k}": array for k, array in enumerate(inputs)}
            return np.asarray(session(op, key).run(None, feeds)[0])

        return perform

    return Runner(
        str(ort.__version__),
        {op: node_of(op) for op in _NODES},
        (states.InvalidArgument, states.Fail, states.RuntimeException),
    )
