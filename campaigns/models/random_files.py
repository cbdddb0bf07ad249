"""Files of many random nodes, each of one op that broadcasts, for verdicts.

Nodes of a file do not read each other's results.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from zerostride.models.formats.openvino.write import IrWriter

from .random_nodes import (
    CONSTANT,
    Drawn,
    Rng,
    Shape,
    broadcastable,
    channels,
    matmul,
    onnx_node,
    pick,
    prelu,
    smaller,
    weights,
    whole_shape,
)

#: Op sets of ONNX, and how often.
_ONNX_SETS = (6, 7, 8, 9, 12, 13, 14, 16, 18, 21, 21, 23, 23)
#: Newest version of the file format that every engine here reads.
_IR_VERSION = 10


# ONNX.


def onnx_file(folder: Path, rng: Rng, nodes: int, name: str = "model") -> Path:
    """A file of ONNX with that many nodes of one op set."""
    import onnx
    from onnx import helper, numpy_helper

    opset = int(pick(rng, _ONNX_SETS))
    entries: list[Any] = []
    inputs: list[Any] = []
    initializers: list[Any] = []
    outputs: list[Any] = []
    while len(entries) < nodes:
        node = onnx_node(rng, opset)
        if node is None:
            continue
        drawn, where, names = node.drawn, len(entries), []
        for k, (shape, dtype) in enumerate(zip(drawn.shapes, node.dtypes, strict=True)):
            names.append(f"n{where}.x{k}")
            numbers = drawn.constant[k] if k < len(drawn.constant) else None
            if numbers is None:
                kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
                inputs.append(helper.make_tensor_value_info(names[-1], kind, shape))
            else:
                array = np.ones(shape, dtype) if numbers is True else numbers
                initializers.append(numpy_helper.from_array(array, names[-1]))
        called = f"n{where}"
        entries.append(
            helper.make_node(drawn.op, names, [f"{called}.y"], name=called, **node.attributes)
        )
        outputs.append(helper.make_empty_tensor_value_info(f"{called}.y"))
    graph = helper.make_graph(entries, "verdicts", inputs, outputs, initializers)
    ids = [helper.make_opsetid("", opset)]
    model = helper.make_model(graph, opset_imports=ids, ir_version=_IR_VERSION)
    path = folder / f"{name}.onnx"
    onnx.save(model, path)
    return path


# OpenVINO's IR.

_OV_NUMBERS = (
    *("float32", "float32", "float16", "float64", "int8", "int16", "int32", "int64"),
    *("uint8", "uint16", "uint32", "uint64"),
)
_OV_WHOLE = tuple(name for name in _OV_NUMBERS if "int" in name)
_OV_COMPARED = ("Equal", "NotEqual", "Greater", "GreaterEqual", "Less", "LessEqual")
_OV_LOGICAL = ("LogicalAnd", "LogicalOr", "LogicalXor")
_OV_BITWISE = ("BitwiseAnd", "BitwiseOr", "BitwiseXor")
_OV_SHIFTS = ("BitwiseLeftShift", "BitwiseRightShift")
_OV_BINARY = (
    *("Add", "Subtract", "Multiply", "Divide", "Maximum", "Minimum", "Power", "Mod", "FloorMod"),
    *("SquaredDifference", *_OV_COMPARED, *_OV_LOGICAL, *_OV_BITWISE, *_OV_SHIFTS),
)
_OV_OTHERS = ("Select", "FakeQuantize", "PRelu", "Broadcast", "MatMul", "BatchNormInference",
              "GroupNormalization")  # fmt: skip
_OV_SETS = {**dict.fromkeys(_OV_BITWISE, 13), **dict.fromkeys(_OV_SHIFTS, 15), "FloorMod": 1}
_OV_SETS |= {"GroupNormalization": 12}


def _ruled(rng: Rng, count: int, modes: Sequence[str]) -> tuple[tuple[Shape, ...], dict[str, Any]]:
    """Operands that a mode of broadcasting takes, and the mode as an IR has it."""
    mode = str(pick(rng, modes))
    table: dict[str, Any] = {} if mode == "left out" else {"auto_broadcast": mode}
    if mode in ("none", "explicit"):
        return (whole_shape(rng),) * count, table
    if mode != "pdpd":
        return broadcastable(rng, count), table
    data = whole_shape(rng)
    start = int(rng.integers(len(data) + 1))
    stop = int(rng.integers(start, len(data) + 1))
    second = tuple(1 if rng.random() < 0.3 else n for n in data[start:stop])
    axis = -1 if rng.random() < 0.3 else start
    if rng.random() < 0.8:
        name = "auto_broadcast.auto_broadcast_axis" if rng.random() < 0.8 else "axis"
        table[name] = axis
    return (data, *[second] * (count - 1)), table


_MODES = ("numpy", "numpy", "left out", "none", "explicit", "pdpd", "pdpd", "pdpd", "NUMPY")


def _ir_broadcast(rng: Rng) -> tuple[Drawn, int]:
    version = int(pick(rng, (1, 3, 8)))
    modes = ("numpy", "explicit") if version < 3 else ("numpy", "explicit", "bidirectional")
    mode = str(pick(rng, modes))
    target = whole_shape(rng)
    data, more = smaller(rng, target), []
    if mode == "explicit":
        axes = sorted(rng.permutation(len(target))[: int(rng.integers(len(target) + 1))].tolist())
        data = tuple(target[axis] if rng.random() < 0.8 else 1 for axis in axes)
        more = [np.array(axes, np.int64)]
    elif mode == "bidirectional" and rng.random() < 0.5:
        target = smaller(rng, target)
    numbers = [np.array(target, np.int64), *more]
    attributes = {} if mode == "numpy" and rng.random() < 0.5 else {"mode": mode}
    shapes = (data, *(array.shape for array in numbers))
    return Drawn("Broadcast", shapes, (None, *numbers), attributes), version


def ir_file(folder: Path, rng: Rng, nodes: int, name: str = "model") -> Path:
    """An IR with that many layers."""
    net = IrWriter()
    for where in range(nodes):
        op = str(pick(rng, _OV_BINARY if rng.random() < 0.7 else _OV_OTHERS))
        _ir_layer(net, rng, op, f"n{where}")
    path = folder / f"{name}.xml"
    path.write_text(net.text)
    path.with_suffix(".bin").write_bytes(bytes(net.weights))
    return path


def _ir_layer(net: IrWriter, rng: Rng, op: str, name: str) -> None:
    version = _OV_SETS.get(op, 1)
    dtype = str(pick(rng, _OV_NUMBERS))
    if op in _OV_LOGICAL:
        dtype = "bool"
    elif op in _OV_BITWISE:
        dtype = str(pick(rng, (*_OV_WHOLE, "bool")))
    elif op in _OV_SHIFTS:
        dtype = str(pick(rng, _OV_WHOLE))
    elif op in (*_OV_OTHERS[1:3], *_OV_OTHERS[4:]):
        dtype = str(pick(rng, ("float32", "float16")))
    if op in _OV_BINARY:
        shapes, attributes = _ruled(rng, 2, _MODES)
        drawn = Drawn(op, shapes, weights(rng, 2), attributes)
    elif op == "Select":
        shapes, attributes = _ruled(rng, 3, _MODES)
        if attributes.get("auto_broadcast") == "pdpd":
            shapes = (shapes[1], shapes[0], shapes[2])
        drawn = Drawn(op, shapes, (None,) * 3, attributes)
    elif op == "FakeQuantize":
        data = whole_shape(rng)
        limits = [smaller(rng, data)] * 4
        attributes = {"levels": int(pick(rng, (2, 16, 256))), "auto_broadcast": "numpy"}
        drawn = Drawn(op, (data, *limits), (None, *[True] * 4), attributes)
    elif op == "PRelu":
        drawn = prelu(rng, op)
    elif op == "Broadcast":
        drawn, version = _ir_broadcast(rng)
    elif op == "MatMul":
        drawn = matmul(rng, op)
    elif op == "BatchNormInference":
        version = int(pick(rng, (1, 5)))
        drawn = channels(4)(rng, "BatchNormalization")
        order = (1, 2, 0, 3, 4) if version == 1 else range(5)
        shapes = tuple(drawn.shapes[k] for k in order)
        fixed = tuple(drawn.constant[k] for k in order)
        drawn = Drawn(op, shapes, fixed, {"epsilon": 1e-5})
    else:
        drawn = channels(2, groups=True)(rng, op)
        drawn = Drawn(op, drawn.shapes, drawn.constant, {**drawn.attributes, "epsilon": 1e-5})
    kind = "PReLU" if op == "PRelu" else op
    inputs = []
    for k, shape in enumerate(drawn.shapes):
        own = "bool" if op == "Select" and k == 0 else dtype
        numbers = drawn.constant[k] if k < len(drawn.constant) else None
        if numbers is None:
            inputs.append(net.parameter(f"{name}.x{k}", shape, own))
        else:
            array = np.ones(shape, own) if numbers is True else numbers
            inputs.append(net.constant(f"{name}.x{k}", array))
    truth = "bool" if op in _OV_COMPARED else dtype
    net.result(net.layer(name, kind, f"opset{version}", drawn.attributes, inputs, truth))


# ncnn.

_KEYS = {0: (), 1: (0,), 2: (1, 0), 3: (2, 1, 0), 4: (2, 11, 1, 0)}


def _sizes(shape: Shape) -> str:
    return " ".join(f"{k}={n}" for k, n in sorted(zip(_KEYS[len(shape)], shape, strict=True)))


@dataclass
class _Net:
    """A .param as it grows."""

    lines: list[str] = field(default_factory=list)
    weights: list[bytes] = field(default_factory=list)
    blobs: int = 0

    def source(self, name: str, shape: Shape, fixed: bool = False) -> str:
        """An Input, or a MemoryData."""
        self.blobs += 1
        kind = "MemoryData" if fixed else "Input"
        self.lines.append(f"{kind} {name} 0 1 {name} {_sizes(shape)}")
        if fixed:
            self.weights.append(np.ones(shape, "<f4").tobytes())
        return name

    def layer(
        self, kind: str, name: str, inputs: Sequence[str], words: str, counts: Sequence[int] = ()
    ) -> None:
        """A layer of one output, and its weights."""
        self.blobs += 1
        heads = f"{kind} {name} {len(inputs)} 1 {' '.join(inputs)} {name}.y"
        self.lines.append(f"{heads} {words}")
        self.weights += [np.ones(count, "<f4").tobytes() for count in counts]


def ncnn_file(folder: Path, rng: Rng, nodes: int, name: str = "model") -> Path:
    """A net of ncnn with that many layers."""
    net = _Net()
    for where in range(nodes):
        _ncnn_layer(net, rng, f"n{where}")
    path = folder / f"{name}.param"
    path.write_text("\n".join(["7767517", f"{len(net.lines)} {net.blobs}", *net.lines, ""]))
    path.with_suffix(".bin").write_bytes(b"".join(net.weights))
    return path


def _ncnn_layer(net: _Net, rng: Rng, name: str) -> None:
    kind = str(pick(rng, ("BinaryOp",) * 8 + ("Eltwise", "PReLU", "Scale", "Bias", "BatchNorm",
        "InstanceNorm", "GroupNorm", "LayerNorm", "RMSNorm", "MatMul", "Gemm")))  # fmt: skip
    data = whole_shape(rng, 1, 4)
    channels = data[0]
    if kind == "BinaryOp":
        other = smaller(rng, data) or (1,)
        if rng.random() < 0.4:  # left-aligned
            other = data[: int(rng.integers(1, len(data) + 1))]
        pair = (data, other) if rng.random() < 0.6 else (other, data)
        fixed = rng.random() < CONSTANT
        blobs = [net.source(f"{name}.x0", pair[0]), net.source(f"{name}.x1", pair[1], fixed)]
        net.layer(kind, name, blobs, f"0={int(rng.integers(19))}")
    elif kind == "Eltwise":
        count = int(rng.integers(2, 4))
        blobs = [net.source(f"{name}.x{k}", data) for k in range(count)]
        net.layer(kind, name, blobs, f"0={int(rng.integers(3))}")
    elif kind in ("MatMul", "Gemm"):
        m, n, k = (int(rng.integers(1, 5)) for _ in range(3))
        batch = data[: int(rng.integers(min(3, len(data) + 1)))] if kind == "MatMul" else ()
        blobs = [net.source(f"{name}.x0", (*batch, m, k)), net.source(f"{name}.x1", (*batch, k, n))]
        if kind == "Gemm":
            blobs.append(net.source(f"{name}.x2", pick(rng, ((n,), (m, n), (m, 1), (1, n)))))
        net.layer(kind, name, blobs, "")
    else:
        blob = [net.source(f"{name}.x0", data)]
        single = rng.random() < 0.3
        last = data[-1] if len(data) < 3 or rng.random() < 0.7 else data[-1] * data[-2]
        parameters, counts = {
            "PReLU": (f"0={1 if single else channels}", (1 if single else channels,)),
            "Scale": (f"0={channels}", (channels,)),
            "Bias": (f"0={channels}", (channels,)),
            "BatchNorm": (f"0={channels}", (channels,) * 4),
            "InstanceNorm": (f"0={channels}", (channels,) * 2),
            "GroupNorm": (f"0=1 1={channels}", (channels,) * 2),
            "LayerNorm": (f"0={last}", (last,) * 2),
            "RMSNorm": (f"0={last}", (last,)),
        }[kind]
        net.layer(kind, name, blob, parameters, counts)


#: Format to what writes a file of it.
FORMATS: Mapping[str, Callable[..., Path]] = MappingProxyType(
    {"onnx": onnx_file, "openvino": ir_file, "ncnn": ncnn_file}
)
