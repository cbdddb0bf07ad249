"""Writes .mnn files for tests, without MNN: tables by field number, and small models of them."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from zerostride.models.formats.mnn import schema

_OPS = {name: number for number, name in schema.OPS.items()}
_PARAMETERS = {name: number for number, name in schema.PARAMETERS.items()}
_DTYPES = {"float32": (1, 7), "int32": (3, 5), "int64": (9, 6), "uint8": (4, 3), "int8": (6, 4)}
FORMATS = {name: number for number, name in schema.FORMATS.items()}


class Scalar(NamedTuple):
    """A number of a table: its struct code and value."""

    code: str
    value: float


class Numbers(NamedTuple):
    """A list of numbers: NumPy's type and values."""

    dtype: str
    values: Sequence[float]


Table = Mapping[int, Any]


def i32(value: int) -> Scalar:
    return Scalar("i", value)


def i8(value: int) -> Scalar:
    return Scalar("b", value)


def ints(*values: int) -> Numbers:
    return Numbers("<i4", values)


class Writer:
    """Lays tables out one after the other, each before its parts."""

    def __init__(self) -> None:
        self.data = bytearray(4)

    def file(self, root: Table) -> bytes:
        """A file with this root."""
        struct.pack_into("<I", self.data, 0, self._table(root))
        return bytes(self.data)

    def _table(self, fields: Table) -> int:
        count = max(fields, default=-1) + 1
        slots: dict[int, int] = {}
        size = 4
        for number, item in sorted(fields.items()):
            width = struct.calcsize(item.code) if isinstance(item, Scalar) else 4
            size = -(-size // width) * width
            slots[number] = size
            size += width
        self._align(8)
        vtable = len(self.data)
        self.data += struct.pack("<HH", 4 + 2 * count, size)
        self.data += struct.pack(f"<{count}H", *(slots.get(k, 0) for k in range(count)))
        self._align(8)
        start = len(self.data)
        self.data += bytes(size)
        struct.pack_into("<i", self.data, start, start - vtable)
        for number, item in fields.items():
            place = start + slots[number]
            if isinstance(item, Scalar):
                struct.pack_into(f"<{item.code}", self.data, place, item.value)
            else:
                self._link(place, self._part(item))
        return start

    def _part(self, item: Any) -> int:
        if isinstance(item, Mapping):
            return self._table(item)
        self._align(8)
        self.data += bytes(4)  # so that the numbers of 8 bytes are aligned
        start = len(self.data)
        if isinstance(item, str):
            raw = item.encode()
            self.data += struct.pack("<I", len(raw)) + raw + b"\0"
        elif isinstance(item, Numbers):
            self.data += struct.pack("<I", len(item.values))
            self.data += np.array(item.values, item.dtype).tobytes()
        else:
            self.data += struct.pack("<I", len(item)) + bytes(4 * len(item))
            for k, part in enumerate(item):
                self._link(start + 4 + 4 * k, self._part(part))
        return start

    def _link(self, place: int, target: int) -> None:
        struct.pack_into("<I", self.data, place, target - place)

    def _align(self, width: int) -> None:
        self.data += bytes(-len(self.data) % width)


class Model:
    """A model, op by op; tensors are known by name."""

    def __init__(self, source: int = 3) -> None:
        self.names: list[str] = []
        self.ops: list[Table] = []
        self.graphs: list[Table] = []
        self.source = source

    def index(self, name: str) -> int:
        if name == "-":
            return -1
        if name not in self.names:
            self.names.append(name)
        return self.names.index(name)

    def op(
        self,
        kind: str,
        inputs: str,
        outputs: str,
        parameter: str = "",
        fields: Table | None = None,
        *,
        layout: str = "NCHW",
    ) -> None:
        """An op with a parameter; names of tensors in one string."""
        table: dict[int, Any] = {
            3: outputs.split()[0] if outputs else kind,
            4: ints(*map(self.index, outputs.split())),
            5: i32(_OPS[kind] if kind in _OPS else int(kind)),
            6: i8(FORMATS[layout]),
        }
        if inputs:
            table[0] = ints(*map(self.index, inputs.split()))
        if parameter:
            table[1] = Scalar("B", _PARAMETERS[parameter])
            table[2] = fields or {}
        self.ops.append(table)

    def input(self, name: str, *sizes: int, dtype: str = "float32", layout: str = "NCHW") -> None:
        kind = i32(_DTYPES[dtype][0])
        fields = {0: ints(*sizes), 1: kind, 2: i8(FORMATS[layout])}
        self.op("Input", "", name, "Input", fields)

    def constant(self, name: str, array: Any, **more: Any) -> None:
        values = np.asarray(array)
        kind, field = _DTYPES[str(values.dtype)]
        fields = {
            0: ints(*values.shape),
            1: i8(0),
            2: i32(kind),
            field: Numbers(values.dtype.newbyteorder("<").str, values.ravel().tolist()),
        }
        self.op("Const", "", name, "Blob", {**fields, **more})

    def binary(self, operation: str, inputs: str, output: str, **more: int) -> None:
        number = next(k for k, name in schema.BINARY.items() if name == operation)
        fields = {0: i32(number), 1: i32(1), 2: i32(more.get("activation", 0))}
        self.op("BinaryOp", inputs, output, "BinaryOp", fields)

    def data(self, *outputs: str) -> bytes:
        """The file."""
        root: dict[int, Any] = {
            2: {2: "3.6.1"},
            3: self.ops,
            4: list(outputs),
            6: i8(self.source),
            7: self.names,
        }
        if self.graphs:
            root[10] = self.graphs
        return Writer().file(root)


def vision() -> bytes:
    """A convolution with a scale, a bias that broadcasts, and a head."""
    model = Model()
    model.input("x", 1, 3, 8, 8)
    common = {2: i32(3), 3: i32(3), 9: i32(1), 10: i32(4), 11: i32(3), 14: ints(1, 1, 1, 1)}
    weights = Numbers("<f4", [0.01 * k for k in range(4 * 3 * 9)])
    convolution = {0: common, 1: weights, 2: Numbers("<f4", [0, 1, 2, 3])}
    model.op("Convolution", "x", "c", "Convolution2D", convolution)
    vectors = {
        0: i32(4),
        1: Numbers("<f4", [1.0, 2.0, 3.0, 4.0]),
        2: Numbers("<f4", [0.0, 0.0, 1.0, 0.0]),
    }
    model.op("Scale", "c", "s", "Scale", vectors)
    model.constant("b", np.ones((4, 1, 1), np.float32))
    model.binary("ADD", "s b", "d")
    model.op("PReLU", "d", "p", "PRelu", {0: i32(4), 1: Numbers("<f4", [0.1, 0.2, 0.3, 0.4])})
    model.constant("axes", np.array([2, 3], np.int32))
    reduction = {0: i8(3), 3: Scalar("?", False)}
    model.op("Reduction", "p axes", "m", "ReductionParam", reduction)
    return model.data("m")


def shapes() -> bytes:
    """What moves and counts: with sizes that are open."""
    model = Model()
    model.input("x", 1, -1, 8)
    model.input("y", -1, 8)
    model.op("Shape", "x", "n", "", layout="NCHW")
    model.constant("begin", np.array([1], np.int32))
    model.constant("size", np.array([-1], np.int32))
    model.op("SliceTf", "n begin size", "tail", "SliceTf")
    model.constant("one", np.array([1], np.int32))
    model.op("Concat", "one tail", "target", "Axis", {0: i32(0)})
    model.op("BroadcastTo", "y target", "e")
    model.binary("MUL", "x e", "z")
    model.op("Permute", "z", "t", "Permute", {0: ints(0, 2, 1)})
    model.op("BatchMatMul", "z t", "w", "BatchMatMulParam", {})
    model.op("Rank", "w", "r", "Rank", {}, layout="NCHW")
    return model.data("w", "r")


def branches() -> bytes:
    """An If with two graphs."""
    model = Model()
    model.input("c", dtype="int32")
    model.input("x", 2, 3)
    inner = []
    for name, operation in (("then", "ADD"), ("else", "MUL")):
        graph = Model()
        graph.input("x", 2, 3)
        graph.constant("k", np.ones((3,), np.float32))
        graph.binary(operation, "x k", "out")
        inner.append(
            {0: name, 1: ints(0), 2: ints(graph.index("out")), 3: graph.names, 4: graph.ops}
        )
    model.graphs = inner
    inputs = [{0: []}, {0: ["x"]}]
    outputs = [{0: ["out", "out"]}]
    model.op("If", "c x", "y", "IfParam", {0: "then", 1: "else", 2: inputs, 3: outputs})
    return model.data("y")


def mixed() -> bytes:
    """Ops that stack, select, split, pick; one nobody knows."""
    model = Model()
    model.input("x", 2, 4)
    model.input("k", 4, dtype="int32")
    model.constant("v", np.arange(4, dtype=np.float32))
    model.binary("GREATER", "x v", "g")
    model.op("Select", "g x v", "s")
    model.op("Pack", "s x", "p", "PackParam", {1: i32(0)})
    model.op("Pack", "x v", "bad", "PackParam", {1: i32(0)})
    model.op("Slice", "x", "a b", "Slice", {0: i32(1), 1: ints(1, 3), 2: i8(3)})
    model.constant("i", np.array([0, 1], np.int32))
    model.op("GatherV2", "p i", "h", "Axis", {0: i32(1)})
    model.op("Eltwise", "x v", "e", "Eltwise", {0: i8(1)})
    model.op("LayerNorm", "x", "l", "LayerNorm", {0: ints(-1), 2: Numbers("<f4", [1.0] * 4)})
    model.op("999", "x", "u")
    model.op("Plugin", "x", "q", "Plugin", {0: "mine"})
    return model.data()


MODELS = {"vision": vision, "shapes": shapes, "branches": branches, "mixed": mixed}
