"""ONNX Runtime: a session of one node, with inputs and output bound to the arrays' memory."""

from __future__ import annotations

import numpy as np
import onnxruntime
from onnx import GraphProto, TensorProto, helper, numpy_helper

from ..rows import Task
from .peer import Call, LeftOut, Prepared, in_order, no_in_place, prepared_out

_NODES = {
    "add": "Add",
    "less": "Less",
    "pow": "Pow",
    "exp": "Exp",
    "tanh": "Tanh",
    "where": "Where",
    "broadcast": "Expand",
    "multiply": "Mul",
    "divide": "Div",
    "clip": "Clip",
    "relu": "Relu",
    "leaky_relu": "LeakyRelu",
    "prelu": "PRelu",
    "sigmoid": "Sigmoid",
}
#: Long enough to be awake for the next of calls in a row.
SPIN_MICROSECONDS = 1000


def prepare(task: Task) -> Prepared:
    """A session and its binding."""
    in_order(task, "ONNX Runtime")
    no_in_place(task, "ONNX Runtime")
    out = prepared_out(task, "ONNX Runtime")
    try:
        session = _session(task)
    except onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented as error:
        raise LeftOut(f"no kernel of {_NODES[task.row.op]} for {task.row.dtype}") from error
    binding = session.io_binding()
    for name, array in zip("abc", task.inputs, strict=False):
        kind = helper.np_dtype_to_tensor_dtype(array.dtype)
        binding.bind_input(name, "cpu", 0, kind, array.shape, array.ctypes.data)
    kind = helper.np_dtype_to_tensor_dtype(out.dtype)
    binding.bind_output("out", "cpu", 0, kind, out.shape, out.ctypes.data)
    return Prepared((Call(session.run_with_iobinding, (binding,)),), lambda _: out)


def _session(task: Task) -> onnxruntime.InferenceSession:
    inputs = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
        )
        for name, array in zip("abc", task.inputs, strict=False)
    ]
    names = [value.name for value in inputs]
    constants: list[TensorProto] = []
    if task.row.target is not None:
        names.append("target")
        constants.append(numpy_helper.from_array(np.array(task.row.target), "target"))
    kind = helper.np_dtype_to_tensor_dtype(task.expected.dtype)
    graph = helper.make_graph(
        [helper.make_node(_NODES[task.row.op], names, ["out"], **task.row.keywords)],
        "row",
        inputs,
        [helper.make_tensor_value_info("out", kind, task.shape)],
        constants,
    )
    return session_of(graph, task.threads)


def session_of(graph: GraphProto, threads: int) -> onnxruntime.InferenceSession:
    """A session of a graph in opset 21."""
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 4
    options.add_session_config_entry("session.intra_op.spin_duration_us", str(SPIN_MICROSECONDS))
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
