"""Writes .mnn files without MNN: tables by field number, and models op by op."""

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
    """A whole number of 32 bits."""
    return Scalar("i", value)


def i8(value: int) -> Scalar:
    """A whole number of 8 bits."""
    return Scalar("b", value)


def ints(*values: int) -> Numbers:
    """A list of whole numbers."""
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
        """The number of a tensor; "-" is none."""
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
        """An input of the model."""
        kind = i32(_DTYPES[dtype][0])
        fields = {0: ints(*sizes), 1: kind, 2: i8(FORMATS[layout])}
        self.op("Input", "", name, "Input", fields)

    def constant(self, name: str, array: Any) -> None:
        """A constant."""
        values = np.asarray(array)
        kind, field = _DTYPES[str(values.dtype)]
        fields = {
            0: ints(*values.shape),
            1: i8(0),
            2: i32(kind),
            field: Numbers(values.dtype.newbyteorder("<").str, values.ravel().tolist()),
        }
        self.op("Const", "", name, "Blob", fields)

    def binary(self, operation: str, inputs: str, output: str, **more: int) -> None:
        """A BinaryOp."""
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


def attention(shapes: Mapping[str, tuple[int, ...]]) -> bytes:
    """A file of one Attention; its result is `y`."""
    model = Model()
    for name, shape in shapes.items():
        model.input(name, *shape)
    model.op("Attention", " ".join(shapes), "y", "AttentionParam", {0: Scalar("B", 0)})
    return model.data("y")
