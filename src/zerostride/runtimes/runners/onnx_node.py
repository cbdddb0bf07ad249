"""Models of one ONNX node, for engines that read ONNX."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..task import Array, Task

#: The default op set of a task, and the file version for op sets up to 23.
OPSET, _IR_VERSION = 21, 10
#: The first file version in which a weight need not be an input.
_OLDEST_IR = 4


def one_node(task: Task, arrays: Sequence[Array], *, open_sizes: bool = False) -> bytes:
    """A model of one ONNX node; operands are inputs or weights, the result has any type.

    Args:
        task: the node; positions under the attribute "" are left out. The target of an Expand is a
            weight.
        arrays: its operands.
        open_sizes: the file has the ranks of the inputs alone, so that the kernel decides.
    """
    helper: Any = importlib.import_module("onnx.helper")
    numpy_helper: Any = importlib.import_module("onnx.numpy_helper")
    names = [f"x{k}" for k in range(len(arrays))]
    inputs, weights = [], []
    for name, array, constant in zip(names, arrays, _fixed(task, arrays), strict=True):
        if constant:
            weights.append(numpy_helper.from_array(array, name))
        else:
            kind = helper.np_dtype_to_tensor_dtype(array.dtype)
            shape = [f"{name}_{k}" for k in range(array.ndim)] if open_sizes else array.shape
            inputs.append(helper.make_tensor_value_info(name, kind, shape))
    if task.op == "Expand" and len(arrays) == 1:
        names.append("target")
        target = np.array(task.target, np.int64).reshape(len(task.target))
        weights.append(numpy_helper.from_array(target, "target"))
    left_out = {int(position) for position in task.attributes.get("", ())}
    placed = iter(names)
    count = len(names) + len(left_out)
    operands = ["" if k in left_out else next(placed) for k in range(count)]
    attributes = {key: value for key, value in task.attributes.items() if key}
    node = helper.make_node(task.op, operands, ["y"], **attributes)
    result = helper.make_empty_tensor_value_info("y")
    graph = helper.make_graph([node], "node", inputs, [result], weights)
    opset = helper.make_opsetid("", task.opset or OPSET)
    # Older releases read older files only; a call by name is what they are asked.
    least = _OLDEST_IR if open_sizes else _IR_VERSION
    ir = max(least, helper.find_min_ir_version_for([opset], ignore_unknown=True))
    model = helper.make_model(graph, opset_imports=[opset], ir_version=ir)
    content: bytes = model.SerializeToString()
    return content


def fed(task: Task, arrays: Sequence[Array]) -> dict[str, Array]:
    """The operands that are inputs of the model, by name."""
    pairs = enumerate(zip(arrays, _fixed(task, arrays), strict=True))
    return {f"x{k}": array for k, (array, constant) in pairs if not constant}


def _fixed(task: Task, arrays: Sequence[Array]) -> Sequence[bool]:
    return task.constant or (False,) * len(arrays)
