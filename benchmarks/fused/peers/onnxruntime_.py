"""ONNX Runtime: a DequantizeLinear, with operands and result bound to the arrays' memory."""

from __future__ import annotations

import math
from typing import Any

import onnxruntime
from onnx import TensorProto, helper

from ...peers.onnxruntime_ import session_of
from ...peers.peer import Call, LeftOut, Prepared, prepared_out
from ...rows import Array, Task

#: The element types of whole numbers by row; of 4 bits, two lie in a byte.
_KINDS = {
    "dequantized_rows": TensorProto.INT8,
    "dequantized_int8": TensorProto.INT8,
    "dequantized_int4": TensorProto.INT4,
}


def prepare(task: Task) -> Prepared:
    """A session of the op: with a scale for each index of an axis, or for each of its blocks."""
    kind = _KINDS.get(task.row.name)
    if kind is None:
        raise LeftOut("its DequantizeLinear computes this alone, the others are several ops")
    out = prepared_out(task, "ONNX Runtime")
    q, scale = task.inputs[:2]
    shape = (len(q), math.prod(out.shape[1:]))
    sizes, attributes = _scale(shape, scale)
    session = _session(task, kind, shape, sizes, attributes)
    binding = session.io_binding()
    binding.bind_input("q", "cpu", 0, kind, shape, q.ctypes.data)
    binding.bind_input("scale", "cpu", 0, TensorProto.FLOAT, sizes, scale.ctypes.data)
    binding.bind_output("out", "cpu", 0, TensorProto.FLOAT, shape, out.ctypes.data)
    return Prepared((Call(session.run_with_iobinding, (binding,)),), lambda _: out)


def _scale(shape: tuple[int, int], scale: Array) -> tuple[tuple[int, ...], dict[str, int]]:
    """The scale's sizes, and the attributes that say where it lies."""
    blocks = scale.size // shape[0]
    if blocks == 1:
        return (shape[0],), {"axis": 0}
    return (shape[0], blocks), {"axis": 1, "block_size": shape[1] // blocks}


def _session(
    task: Task,
    kind: int,
    shape: tuple[int, int],
    sizes: tuple[int, ...],
    attributes: dict[str, Any],
) -> onnxruntime.InferenceSession:
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("DequantizeLinear", ["q", "scale"], ["out"], **attributes)],
        "row",
        [value("q", kind, shape), value("scale", TensorProto.FLOAT, sizes)],
        [value("out", TensorProto.FLOAT, shape)],
    )
    return session_of(graph, task.threads)
