"""Engines whose models are nets of layers: ncnn and MNN. Both may read beyond their memory."""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ....ops import Op
from ...probe.runners import Refused
from ..task import Array, Form, Task
from . import Absent, Runner, by_op
from .graphs import one_node

_MAGIC = "7767517"
#: A Mat has at most so many axes.
_MAX_RANK = 4
_TAG = b"\0\0\0\0"  # the storage type of weights: float32


def _flat(*arrays: Array) -> bytes:
    return b"".join(np.ascontiguousarray(array, "<f4").tobytes() for array in arrays)


def _gemm(task: Task, x: Sequence[Array]) -> tuple[str, bytes, int]:
    if not task.constant[2]:
        return "Gemm 2=0 3=0", b"", 3
    (k, n), c = x[1].shape, x[2]
    m = x[0].shape[-2] if x[0].ndim > 1 else 1
    kinds = {(n,): 4, (1, n): 4, (m, 1): 2, (m, n): 3}
    kind = 0 if c.size == 1 else kinds.get(c.shape)
    if kind is None:
        raise Absent(f"no kind of C is {c.shape}")
    rows = m if kind in (2, 3) else 0
    text = f"Gemm 2=0 3=1 5=1 6=1 7={rows} 8={n} 9={k} 10={kind}"
    return text, _TAG + _flat(x[1].T) + _TAG + _flat(c), 1


def _layer(task: Task, x: Sequence[Array]) -> tuple[str, bytes, int]:
    """The layer's type and parameters, its weights, and how many operands are blobs."""
    op, epsilon = task.op, float(task.attributes.get("epsilon", 1e-5))
    if op == "MatMul":
        return "MatMul", b"", 2
    if op == "Clip":
        low, *above = (float(bound.ravel()[0]) for bound in x[1:3])
        high = "".join(f" 1={number}" for number in above)  # default: the largest float
        return f"Clip 0={low}{high}", b"", 1
    if op == "Gemm":
        return _gemm(task, x)
    if op == "BatchNormalization":
        scale, bias, mean, variance = x[1:]
        return f"BatchNorm 0={scale.size} 1={epsilon}", _flat(scale, mean, variance, bias), 1
    if op == "InstanceNormalization":
        return f"InstanceNorm 0={x[1].size} 1={epsilon} 2=1", _flat(*x[1:]), 1
    if op == "GroupNormalization":
        groups = task.attributes["num_groups"]
        return f"GroupNorm 0={groups} 1={x[1].size} 2={epsilon} 3=1", _flat(*x[1:]), 1
    if op == "LayerNormalization":
        return f"LayerNorm 0={x[1].size} 1={epsilon} 2=1", _flat(*x[1:]), 1
    if op == "RMSNormalization":
        return f"RMSNorm 0={x[1].size} 1={epsilon} 2=1", _flat(x[1]), 1
    if op == "PRelu":
        return f"PReLU 0={x[1].size}", _flat(x[1]), 1
    raise Absent(f"no layer runs {op} by itself")


def load_ncnn() -> Runner:
    """ncnn in single precision, one thread."""
    ncnn: Any = importlib.import_module("ncnn")

    def net_of() -> Any:
        net = ncnn.Net()
        net.opt.num_threads = 1
        net.opt.use_vulkan_compute = False
        net.opt.use_fp16_storage = net.opt.use_fp16_packed = net.opt.use_fp16_arithmetic = False
        return net

    def load_weights(net: Any, weights: bytes) -> None:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "weights.bin")
            file.write_bytes(weights)
            if net.load_model(str(file)) != 0:
                raise Refused("the weights were not taken")

    def mat(array: Array) -> Any:
        if array.ndim > _MAX_RANK:
            raise Refused(f"a Mat has at most {_MAX_RANK} axes, not {array.ndim}")
        # A Mat has no rank 0; clone, because layers in place crash on memory of NumPy's.
        return ncnn.Mat(np.ascontiguousarray(array.reshape(array.shape or (1,)), "f4")).clone()

    def one_layer(text: str, weights: bytes, arrays: Sequence[Array]) -> Array:
        kind, _, parameters = text.partition(" ")
        names = [f"x{k}" for k in range(len(arrays))]
        lines = [f"Input {name} 0 1 {name}" for name in names]
        lines.append(f"{kind} op {len(names)} 1 {' '.join(names)} y {parameters}")
        net = net_of()
        head = f"{_MAGIC}\n{len(lines)} {len(names) + 1}\n"
        if net.load_param_mem(head + "\n".join(lines) + "\n") != 0:
            raise Refused("the layer's parameters were not taken")
        load_weights(net, weights)
        return extract(net, dict(zip(names, arrays, strict=True)), ["y"])[0]

    def extract(net: Any, inputs: dict[str, Array], outputs: Sequence[str]) -> list[Array]:
        extractor = net.create_extractor()
        blobs = {name: mat(array) for name, array in inputs.items()}
        for name, blob in blobs.items():
            if extractor.input(name, blob) != 0:
                raise Refused(f"there is no input {name!r}")
        results = []
        for name in outputs:
            status, blob = extractor.extract(name)
            if status != 0:
                raise Refused(f"extract returned status {status}")
            results.append(np.array(blob))
        return results

    def call(op: Op, arrays: Sequence[Array], attrs: Mapping[str, Any]) -> Array:
        if op.operands != 2 or not isinstance(op.names["ncnn"][0], int):
            raise Absent(f"no layer runs {op.name} on blobs")
        return one_layer(f"BinaryOp 0={op.names['ncnn'][0]}", b"", arrays)

    def compound(task: Task, arrays: Sequence[Array]) -> Sequence[Array]:
        text, weights, blobs = _layer(task, arrays)
        return [one_layer(text, weights, arrays[:blobs])]

    def file(task: Task, arrays: Sequence[Array]) -> Sequence[Array]:
        net = net_of()
        if net.load_param(task.op) != 0:
            raise Refused("the net was not taken")
        weights = Path(task.op).with_suffix(".bin")
        if not weights.is_file():
            load_weights(net, b"")
        elif net.load_model(str(weights)) != 0:
            raise Refused("the weights were not taken")
        names = list(net.input_names())
        inputs = list(task.attributes["inputs"])
        order = inputs if set(inputs) == set(names) else names
        outputs = list(net.output_names())
        wanted = list(task.attributes["outputs"])
        chosen = wanted if set(wanted) <= set(outputs) else outputs
        if len(order) != len(arrays) or len(chosen) != len(wanted):
            raise Refused(
                f"the net has inputs {names} and outputs {outputs}; others than the model"
            )
        return extract(net, dict(zip(order, arrays, strict=True)), chosen)

    return Runner(
        str(ncnn.__version__),
        {Form.OP: by_op(call), Form.COMPOUND: compound, Form.FILE: file},
    )


#: MNN's Python functions, where their names are not the enumeration's in small letters.
_MNN_FUNCTIONS = {
    "REALDIV": "divide",
    "SUB": "subtract",
    "MUL": "multiply",
    "NOTEQUAL": "not_equal",
    "LOGICALOR": "logical_or",
    "SquaredDifference": "squared_difference",
    "Select": "select",
}


def load_mnn() -> Runner:
    """MNN on the CPU: ops as expressions, compounds through its own converter."""
    mnn: Any = importlib.import_module("MNN")
    expr: Any = importlib.import_module("MNN.expr")
    nn: Any = importlib.import_module("MNN.nn")
    kinds = {"int32": expr.int, "float32": expr.float}

    def variable(array: Array) -> Any:
        if array.dtype.kind == "b":  # MNN's truth values are integers
            array = array.astype(np.int32)
        if str(array.dtype) not in kinds:
            raise Refused(f"an expression of {array.dtype}")
        kind = kinds[str(array.dtype)]
        return expr.const(array.ravel().tolist(), list(array.shape), expr.NCHW, kind)

    def numbers(tensor: Any) -> Array:
        tensor = expr.convert(tensor, expr.NCHW)
        if not tensor.valid or tensor.shape is None:
            raise Refused("the result is an invalid variable")
        if 0 in tensor.shape:  # reading it raises, though its shape is right
            return np.empty(tensor.shape, np.float32)
        return np.array(tensor.read()).reshape(tensor.shape)

    def call(op: Op, arrays: Sequence[Array], attrs: Mapping[str, Any]) -> Array:
        name = str(op.names["mnn"][0])
        function = getattr(expr, _MNN_FUNCTIONS.get(name, name.lower()), None)
        if function is None:
            raise Absent(f"MNN's Python module has no {name}")
        return numbers(function(*map(variable, arrays)))

    def to(task: Task, arrays: Sequence[Array]) -> Sequence[Array]:
        target = np.array(task.target, np.int32).reshape(len(task.target))
        # The op itself: `expr.broadcast_to` demands target % size == 0 before it gets there.
        return [numbers(expr._F.broadcast_to(variable(arrays[0]), variable(target)))]

    def load(path: str, inputs: Sequence[str], outputs: Sequence[str]) -> Any:
        return nn.load_module_from_file(path, list(inputs), list(outputs))

    def node(task: Task, arrays: Sequence[Array]) -> Sequence[Array]:
        converter: Any = importlib.import_module("_tools")  # MNN.tools would run pip
        fixed = task.constant or (False,) * len(arrays)
        with tempfile.TemporaryDirectory() as folder:
            source, target = Path(folder, "m.onnx"), Path(folder, "m.mnn")
            source.write_bytes(one_node(task, arrays))
            words = ["-f", "ONNX", "--modelFile", str(source), "--MNNModel", str(target)]
            converter.mnnconvert(["mnnconvert", *words, "--bizCode", "z"])
            if not target.is_file():
                raise Refused("the converter wrote no model")
            fed = [k for k, constant in enumerate(fixed) if not constant]
            net = load(str(target), [f"x{k}" for k in fed], ["y"])
            return [numbers(net.forward([variable(arrays[k]) for k in fed])[0])]

    def file(task: Task, arrays: Sequence[Array]) -> Sequence[Array]:
        net = load(task.op, task.attributes["inputs"], task.attributes["outputs"])
        return [numbers(tensor) for tensor in net.forward([variable(array) for array in arrays])]

    return Runner(
        str(mnn.version()),
        {Form.OP: by_op(call), Form.TO: to, Form.NODE: node, Form.FILE: file},
    )
