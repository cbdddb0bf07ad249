"""MNN: a session of one node with fixed shapes."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ..rows import Array, Task
from .peer import Call, LeftOut, Prepared, in_order, no_in_place, prepared_out


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """MNN says what it does on the standard output, which belongs to the results."""
    sys.stdout.flush()
    kept = os.dup(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nowhere)


with _silence():
    import MNN

F: Any = MNN.expr

_NODES: dict[str, Any] = {
    "add": F.add,
    "pow": F.pow,
    "exp": F.exp,
    "tanh": F.tanh,
    "broadcast": F.broadcast_to,
    "multiply": F.multiply,
    "divide": F.divide,
    "relu": F.relu,
    "leaky_relu": F.relu,
    "clip": F.relu6,
    "sigmoid": F.sigmoid,
}
#: What it does in another way than NumPy, as was measured.
_OTHERWISE = {
    "less": "its comparisons give int32, four times the bytes of bool",
    "where": "its Select does not broadcast, and says nothing",
    "prelu": "its slopes are constants of the second axis",
}
_TYPES = {
    "float32": (F.float, MNN.Halide_Type_Float),
    "int32": (F.int, MNN.Halide_Type_Int),
}
#: The process dies of a tensor of more axes.
_MAX_RANK = 9


def prepare(task: Task) -> Prepared:
    """An interpreter's session, its inputs filled."""
    row = task.row
    in_order(task, "MNN")
    no_in_place(task, "MNN")
    prepared_out(task, "MNN")
    if row.dtype not in _TYPES:
        raise LeftOut(f"no {row.dtype} in its sessions on this processor")
    if row.op not in _NODES:
        raise LeftOut(_OTHERWISE[row.op])
    if len(task.shape) > _MAX_RANK:
        raise LeftOut(f"at most {_MAX_RANK} axes")
    kind, halide = _TYPES[row.dtype]
    settings = {"backend": "CPU", "numThread": task.threads, "precision": "high"}
    with _silence():
        interpreter = _interpreter(task, kind)
        session = interpreter.createSession(settings)
    tensors = interpreter.getSessionInputAll(session)
    for name, array in zip("abc", _tensors(task), strict=False):
        tensors[name].copyFrom(_host(array, halide))

    def result(_: object) -> Array:
        host = _host(np.zeros(task.shape, task.expected.dtype), halide)
        interpreter.getSessionOutput(session).copyToHostTensor(host)
        return np.array(host.getNumpyData()).reshape(task.shape)

    return Prepared((Call(interpreter.runSession, (session,)),), result)


def _tensors(task: Task) -> tuple[Array, ...]:
    """The operands that are no attributes."""
    return task.inputs[:1] if task.row.op == "clip" else task.inputs


def _interpreter(task: Task, kind: Any) -> Any:
    """The row as a model file, read."""
    inputs = []
    for name, array in zip("abc", _tensors(task), strict=False):
        inputs.append(F.placeholder(list(array.shape), F.NCHW, kind))
        inputs[-1].name = name
    more: tuple[Any, ...] = tuple(task.row.keywords.values())
    if task.row.target is not None:
        more = (list(task.row.target),)
    elif task.row.op == "clip":
        more = tuple(bound.item() for bound in task.inputs[1:])
    node = _NODES[task.row.op](*inputs, *more)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "row.mnn"))
        F.save([node], path)
        return MNN.Interpreter(path)


def _host(array: Array, halide: Any) -> Any:
    return MNN.Tensor(array.shape, halide, array, MNN.Tensor_DimensionType_Caffe)
