"""MNN on the CPU: ops as expressions, compounds through its own converter.

MNN.tools is never imported: importing it runs ``pip install`` for a logging package.
"""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from ..task import Array, Form, Task
from . import Absent, Attrs, ModelFile, Refused, Runner, Shape, own_names
from .onnx_node import fed, one_node

#: Python functions, where their names are not the enumeration's in small letters.
_FUNCTIONS = {
    "REALDIV": "divide",
    "SUB": "subtract",
    "MUL": "multiply",
    "NOTEQUAL": "not_equal",
    "LOGICALOR": "logical_or",
    "SquaredDifference": "squared_difference",
}


#: The type in which MNN gets an input of a model, by the model's: small integers as int8 end the
#: process in most ops.
_HELD = {
    **dict.fromkeys(("bool", "int8", "uint8", "int16", "uint16", "int32"), "int32"),
    **dict.fromkeys(("uint32", "int64", "uint64"), "int32"),
    **dict.fromkeys(("float16", "float32", "float64"), "float32"),
}


class _Mnn:
    """MNN's expressions and modules, loaded."""

    def __init__(self) -> None:
        self.expr: Any = importlib.import_module("MNN.expr")
        self.nn: Any = importlib.import_module("MNN.nn")
        self.kinds = {"int32": self.expr.int, "float32": self.expr.float}

    def _variable(self, array: Array) -> Any:
        if array.dtype.kind == "b":  # MNN's truth values are integers
            array = array.astype(np.int32)
        if str(array.dtype) not in self.kinds:
            raise Refused(f"an expression of {array.dtype}")
        kind = self.kinds[str(array.dtype)]
        return self.expr.const(array.ravel().tolist(), list(array.shape), self.expr.NCHW, kind)

    def _fed_as(self, array: Array) -> Any:
        """An input of a model, in the type in which MNN holds it."""
        kind = _HELD.get(str(array.dtype))
        if kind is None:
            raise Absent(f"MNN has no tensors of {array.dtype}")
        if array.dtype.kind in "iu" and array.size:
            limits = np.iinfo(kind)
            if array.min() < limits.min or array.max() > limits.max:
                raise Absent(f"an input has numbers that {kind} does not hold, in which MNN has it")
        return self._variable(array.astype(kind))

    def _numbers(self, tensor: Any) -> Array:
        shape = tensor.shape if tensor.valid else None
        if shape is None:
            raise Refused("the result is an invalid variable")
        if 0 in shape:  # reading it raises, though its shape is right
            return np.empty(shape, np.float32)
        try:
            return np.array(self.expr.convert(tensor, self.expr.NCHW).read()).reshape(shape)
        except SystemError as error:
            raise Refused("the result cannot be read") from error

    def call(self, name: str, attrs: Attrs, arrays: Sequence[Array], target: Shape) -> Array:
        if name == "BroadcastTo(op)":
            # The op itself: `expr.broadcast_to` demands target % size == 0 before it gets there.
            shape = np.array(target, np.int32).reshape(len(target))
            return self._numbers(
                self.expr._F.broadcast_to(self._variable(arrays[0]), self._variable(shape))
            )
        if name == "PReLU":
            data, slope = arrays
            if slope.ndim > 1:
                raise Refused("the slopes are a flat list")
            packed = self.expr.convert(self._variable(data), self.expr.NC4HW4)
            return self._numbers(self.expr.prelu(packed, slope.ravel().tolist()))
        function = getattr(self.expr, _FUNCTIONS.get(name, name.lower()), None)
        if function is None:
            raise Absent(f"MNN's Python module has no {name}")
        return self._numbers(function(*map(self._variable, arrays)))

    def _forward(
        self, path: str, feeds: Mapping[str, Array], wanted: Sequence[int | str]
    ) -> Sequence[Array]:
        net = self.nn.load_module_from_file(path, list(feeds), list(wanted))
        results = net.forward([self._fed_as(array) for array in feeds.values()])
        if len(results) != len(wanted):
            raise Refused("the model gives no result")
        return [self._numbers(tensor) for tensor in results]

    def node(self, task: Task, arrays: Sequence[Array]) -> Sequence[Array]:
        converter: Any = importlib.import_module("_tools")
        with tempfile.TemporaryDirectory() as folder:
            source, target = Path(folder, "m.onnx"), Path(folder, "m.mnn")
            source.write_bytes(one_node(task, arrays))
            words = ["-f", "ONNX", "--modelFile", str(source), "--MNNModel", str(target)]
            converter.mnnconvert(["mnnconvert", *words, "--bizCode", "z"])
            if not target.is_file():
                raise Refused("the converter wrote no model")
            return self._forward(str(target), fed(task, arrays), ["y"])

    def open_file(self, path: str, inputs: Sequence[str]) -> ModelFile:
        def compute(feeds: Mapping[int, Array], wanted: Sequence[int | str]) -> Sequence[Array]:
            return self._forward(path, {inputs[k]: array for k, array in feeds.items()}, wanted)

        return ModelFile(None, None, compute)


def load() -> Runner:
    """Imports MNN."""
    engine = _Mnn()
    return Runner(
        metadata.version("MNN"),
        engine.call,
        (ValueError,),
        own_names("mnn"),
        "BroadcastTo(op)",
        {Form.NODE: engine.node},
        engine.open_file,
    )
