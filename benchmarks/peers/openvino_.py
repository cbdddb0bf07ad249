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
    parameters = [opset.parameter(list(array.shape), _type(array)) for array in task.inputs]
    if task.row.target is not None:
        node = opset.broadcast(parameters[0], np.array(task.row.target))
    else:
        node = _NODES[task.row.op](*parameters)
    settings = {
        "INFERENCE_NUM_THREADS": task.threads,
        "NUM_STREAMS": 1,
        "PERFORMANCE_HINT": "LATENCY",
        # On processors with bfloat16 of their own it would compute float32 in that.
        "INFERENCE_PRECISION_HINT": "f32",
    }
    compiled = ov.Core().compile_model(ov.Model([node], parameters), "CPU", settings)
    request = compiled.create_infer_request()
    for k, array in enumerate(task.inputs):
        request.set_input_tensor(k, _tensor(array))
    request.set_output_tensor(0, _tensor(out))

    def start_and_wait() -> None:
        request.start_async()
        request.wait()

    infer = Call(request.infer, (), {"share_outputs": True})
    return Prepared((infer, Call(start_and_wait)), lambda _: out)


def _type(array: Array) -> Any:
    return ov.Type.bf16 if array.dtype.name == "bfloat16" else ov.Type(array.dtype)


def _tensor(array: Array) -> Any:
    if array.dtype.name == "bfloat16":
        return ov.Tensor(array.view(np.uint16), ov.Shape(array.shape), ov.Type.bf16)
    return ov.Tensor(array, shared_memory=True)
