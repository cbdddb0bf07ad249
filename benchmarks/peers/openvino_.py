"""OpenVINO's CPU plugin: a request whose tensors are the arrays' memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import openvino as ov
from openvino import opset13 as opset

from ..rows import Array, Task
from .peer import Call, LeftOut, Prepared, in_order, no_in_place, prepared_out

_NODES: dict[str, Any] = {
    "add": opset.add,
    "less": opset.less,
    "pow": opset.power,
    "exp": opset.exp,
    "tanh": opset.tanh,
    "where": opset.select,
    "multiply": opset.multiply,
    "divide": opset.divide,
    "relu": opset.relu,
    "prelu": opset.prelu,
    "sigmoid": opset.sigmoid,
}
#: What its CPU plugin does to the wider types.
_NARROWER = {"float64": "float32", "int64": "int32"}


def prepare(task: Task) -> Prepared:
    """A request, ready to be run."""
    in_order(task, "OpenVINO")
    no_in_place(task, "OpenVINO")
    out = prepared_out(task, "OpenVINO")
    if task.row.dtype in _NARROWER:
        raise LeftOut(f"computes {task.row.dtype} in {_NARROWER[task.row.dtype]}")
    inputs = _inputs(task)
    parameters = [opset.parameter(list(array.shape), _type(array)) for array in inputs]
    node = _node(task, parameters)
    settings = {
        "INFERENCE_NUM_THREADS": task.threads,
        "NUM_STREAMS": 1,
        "PERFORMANCE_HINT": "LATENCY",
        # On processors with bfloat16 of their own it would compute float32 in that.
        "INFERENCE_PRECISION_HINT": "f32",
    }
    compiled = ov.Core().compile_model(ov.Model([node], parameters), "CPU", settings)
    request = compiled.create_infer_request()
    for k, array in enumerate(inputs):
        request.set_input_tensor(k, _tensor(array))
    request.set_output_tensor(0, _tensor(out))

    def start_and_wait() -> None:
        request.start_async()
        request.wait()

    infer = Call(request.infer, (), {"share_outputs": True})
    return Prepared((infer, Call(start_and_wait)), lambda _: out)


def _inputs(task: Task) -> tuple[Array, ...]:
    """The operands that are no attributes."""
    if task.row.op == "clip":
        return task.inputs[:1]
    if task.row.op == "prelu":
        # A slope of lower rank would be of the second axis.
        x, slope = task.inputs
        return x, slope.reshape((1,) * (x.ndim - slope.ndim) + slope.shape)
    return task.inputs


def _node(task: Task, parameters: list[Any]) -> Any:
    row = task.row
    if row.target is not None:
        return opset.broadcast(parameters[0], np.array(row.target))
    if row.op == "clip":
        return opset.clamp(*parameters, *(bound.item() for bound in task.inputs[1:]))
    if row.op == "leaky_relu":
        return opset.prelu(*parameters, opset.constant(np.float32(row.alpha)))
    return _NODES[row.op](*parameters)


def _type(array: Array) -> Any:
    return ov.Type.bf16 if array.dtype.name == "bfloat16" else ov.Type(array.dtype)


def _tensor(array: Array) -> Any:
    if array.dtype.name == "bfloat16":
        return ov.Tensor(array.view(np.uint16), ov.Shape(array.shape), ov.Type.bf16)
    return ov.Tensor(array, shared_memory=True)
