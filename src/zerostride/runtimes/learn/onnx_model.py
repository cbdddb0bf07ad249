"""A model of one ONNX node, for runners of engines that read ONNX."""

from __future__ import annotations

import importlib
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from ..task import Array

#: The op set and the version of the file; engines of 2024 read them.
_OPSET, _IR_VERSION = 21, 10
#: Ops whose results are truth values.
_TRUTHS = frozenset({"Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Equal"})


def onnx_model(
    op: str,
    arrays: Sequence[Array],
    target: Sequence[int] | None = None,
    *,
    weights: Collection[int] = (),
) -> bytes:
    """The bytes of a model of one node; its inputs are x0, x1, ..., its result is y.

    Args:
        op: the node's op. A Mod of floats has fmod=1, as ONNX demands.
        arrays: its operands.
        target: the target shape of an Expand, which is a weight.
        weights: the operands that are weights of the model instead of inputs.

    Raises:
        ImportError: the package onnx is not installed.
    """
    helper: Any = importlib.import_module("onnx.helper")
    numpy_helper: Any = importlib.import_module("onnx.numpy_helper")
    names = [f"x{k}" for k in range(len(arrays))]
    kinds = [helper.np_dtype_to_tensor_dtype(array.dtype) for array in arrays]
    inputs, constants = [], []
    for k, (name, kind, array) in enumerate(zip(names, kinds, arrays, strict=True)):
        if k in weights:
            constants.append(numpy_helper.from_array(array, name))
        else:
            inputs.append(helper.make_tensor_value_info(name, kind, array.shape))
    if target is not None:
        names.append("target")
        constants.append(numpy_helper.from_array(np.array(target, np.int64), "target"))
    attributes = {"fmod": 1} if op == "Mod" and arrays[0].dtype.kind == "f" else {}
    node = helper.make_node(op, names, ["y"], **attributes)
    # Some importers want the type and the rank of the result; its sizes are left to the engine.
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(bool)) if op in _TRUTHS else kinds[-1]
    ranks = [len(target or ()), *(array.ndim for array in arrays)]
    rank = arrays[0].ndim if op == "PRelu" else max(ranks)
    result = helper.make_tensor_value_info("y", kind, [f"d{k}" for k in range(rank)])
    graph = helper.make_graph([node], "node", inputs, [result], constants)
    opset = [helper.make_opsetid("", _OPSET)]
    content: bytes = helper.make_model(
        graph, opset_imports=opset, ir_version=_IR_VERSION
    ).SerializeToString()
    return content


__all__ = ["onnx_model"]
