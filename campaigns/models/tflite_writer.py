"""Writes .tflite files, with the flatbuffers package and the schema's own numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from zerostride.models.formats.schema_fields import Field, fields
from zerostride.models.formats.tflite import schema
from zerostride.models.formats.tflite.writing import TfliteWriter

_DTYPES = {name: number for number, name in schema.DTYPES.items()}
_ACTIVATIONS = {name: number for number, name in schema.ACTIVATIONS.items()}
SIGNATURE = fields(
    "inputs:0:offset outputs:1:offset signature_key:2:offset subgraph_index:4:uint32"
)


@dataclass
class Tensor:
    """A tensor; with `data` a constant."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    data: bytes | None = None
    signature: tuple[int, ...] = ()
    scales: tuple[float, ...] = ()
    zeros: tuple[int, ...] = ()
    axis: int = 0
    ranked: bool = True


@dataclass
class Op:
    """An operator on tensors by number."""

    kind: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: Mapping[str, Any]
    version: int


@dataclass
class Graph:
    """A subgraph: tensors by name, operators in order."""

    tensors: list[Tensor] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)
    inputs: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)

    def add(self, name: str, shape: Sequence[int] = (), dtype: str = "float32", **more: Any) -> str:
        """Adds a tensor; returns its name."""
        self.tensors.append(Tensor(name, tuple(shape), dtype, **more))
        return name

    def input(self, name: str, *shape: int, dtype: str = "float32", **more: Any) -> str:
        """Adds an input; returns its name."""
        self.inputs.append(len(self.tensors))
        return self.add(name, shape, dtype, **more)

    def constant(self, name: str, array: Any, **more: Any) -> str:
        """Adds a constant; returns its name."""
        array = np.asarray(array)
        return self.add(name, array.shape, str(array.dtype), data=array.tobytes(), **more)

    def number(self, name: str) -> int:
        """The number of a tensor; -1 for no name."""
        if not name:
            return -1
        return next(k for k, tensor in enumerate(self.tensors) if tensor.name == name)

    def op(
        self, kind: str, inputs: str, outputs: str, version: int = 0, **options: Any
    ) -> None:  # fmt: skip
        """An op on tensors by name; a new name becomes a float tensor. "-" leaves one out."""
        for name in outputs.split():
            if all(tensor.name != name for tensor in self.tensors):
                self.add(name, (), ranked=False)
        read = tuple(self.number(name.strip("-")) for name in inputs.split())
        results = tuple(map(self.number, outputs.split()))
        self.ops.append(Op(kind, read, results, options, version or VERSIONS.get(kind, 1)))

    def output(self, *names: str) -> None:
        """Makes tensors outputs."""
        self.outputs += map(self.number, names)


#: The least version that LiteRT registers, where that is not 1.
VERSIONS = {"BROADCAST_TO": 2}


@dataclass
class Model:
    """A file: its subgraphs; a signature is a name and the number of a subgraph."""

    graphs: list[Graph] = field(default_factory=lambda: [Graph()])
    signatures: list[tuple[str, int]] = field(default_factory=list)
    #: Whether the bytes of constants are behind the flatbuffer.
    behind: bool = False

    @property
    def main(self) -> Graph:
        """The first subgraph."""
        return self.graphs[0]

    def graph(self) -> tuple[int, Graph]:
        """A new subgraph and its number."""
        self.graphs.append(Graph())
        return len(self.graphs) - 1, self.graphs[-1]

    def write(self, path: Path) -> Path:
        """Writes the file; returns its path."""
        path.write_bytes(self.data())
        return path

    def data(self) -> bytes:
        """The bytes of the file."""
        table, tail = self._data(0)
        if self.behind:
            table, tail = self._data(len(table))
        return table + tail

    def _data(self, start: int) -> tuple[bytes, bytes]:
        """The flatbuffer, and what stands behind it, which begins at `start`."""
        writer = TfliteWriter(Path("test.tflite"))
        buffers = [writer.table(schema.BUFFER, {})]
        codes: list[tuple[str, int]] = []
        tail = bytearray()
        graphs = [self._graph(graph, writer, buffers, codes, tail, start) for graph in self.graphs]
        written = [self._code(writer, *code) for code in codes]
        signatures = [
            writer.table(SIGNATURE, {"signature_key": writer.text(name), "subgraph_index": number})
            for name, number in self.signatures
        ]
        values = {
            "version": 3,
            "operator_codes": writer.tables(written),
            "subgraphs": writer.tables(graphs),
            "buffers": writer.tables(buffers),
            "signature_defs": writer.tables(signatures),
        }
        return writer.finish(writer.table(schema.MODEL, values), ()), bytes(tail)

    @staticmethod
    def _code(writer: TfliteWriter, kind: str, version: int) -> int:
        number = schema.NUMBERS.get(kind, schema.NUMBERS["CUSTOM"])
        values = {"deprecated_builtin_code": min(number, 127), "version": version}
        values["builtin_code"] = number
        if kind not in schema.NUMBERS:
            values["custom_code"] = writer.text(kind)
        return writer.table(schema.OPERATOR_CODE, values)

    def _graph(
        self,
        graph: Graph,
        writer: TfliteWriter,
        buffers: list[int],
        codes: list[tuple[str, int]],
        tail: bytearray,
        start: int,
    ) -> int:
        tensors = []
        for tensor in graph.tensors:
            number = 0
            if tensor.data is not None:
                number = len(buffers)
                values = {"data": writer.data(tensor.data)}
                if self.behind and len(tensor.data) > 16:
                    values = {"offset": start + len(tail), "size": len(tensor.data)}
                    tail += tensor.data + bytes(-len(tensor.data) % 64)
                buffers.append(writer.table(schema.BUFFER, values))
            tensors.append(_tensor(writer, tensor, number))
        operators = []
        for op in graph.ops:
            if (op.kind, op.version) not in codes:
                codes.append((op.kind, op.version))
            operators.append(_operator(writer, op, codes.index((op.kind, op.version))))
        parts = {
            "tensors": writer.tables(tensors),
            "inputs": writer.numbers(graph.inputs),
            "outputs": writer.numbers(graph.outputs),
            "operators": writer.tables(operators),
        }
        return writer.table(schema.SUBGRAPH, parts)


def _tensor(writer: TfliteWriter, tensor: Tensor, buffer: int) -> int:
    values: dict[str, int] = {
        "shape": writer.numbers(tensor.shape),
        "type": _DTYPES.get(tensor.dtype, 5),
        "buffer": buffer,
        "name": writer.text(tensor.name),
        "has_rank": int(tensor.ranked),
    }
    if tensor.signature:
        values["shape_signature"] = writer.numbers(tensor.signature)
    if tensor.scales:
        zeros = tensor.zeros or (0,) * len(tensor.scales)
        parts = {
            "scale": _list(writer, tensor.scales, "Float32", 4),
            "zero_point": _list(writer, zeros, "Int64", 8),
            "quantized_dimension": tensor.axis,
        }
        values["quantization"] = writer.table(schema.QUANTIZATION, parts)
    return writer.table(schema.TENSOR, values)


def _list(writer: TfliteWriter, numbers: Sequence[float], kind: str, size: int) -> int:
    builder = writer._builder
    builder.StartVector(size, len(numbers), size)
    for number in reversed(numbers):
        getattr(builder, f"Prepend{kind}")(number)
    offset: int = builder.EndVector()
    return offset


def _operator(writer: TfliteWriter, op: Op, code: int) -> int:
    values = {
        "opcode_index": code,
        "inputs": writer.numbers(op.inputs),
        "outputs": writer.numbers(op.outputs),
    }
    name = schema.options_of(op.kind) if op.kind in schema.NUMBERS else None
    for union, key in ((schema.UNION, "builtin_options"), (schema.UNION2, "builtin_options_2")):
        number = next((k for k, member in union.items() if member == name), None)
        if number is not None:
            values[f"{key}_type"] = number
            values[key] = _options(writer, schema.OPTIONS.get(str(name), ()), op.options)
    return writer.table(schema.OPERATOR, values)


def _options(writer: TfliteWriter, declared: Sequence[Field], options: Mapping[str, Any]) -> int:
    values: dict[str, Any] = {}
    kinds = []
    for row in declared:
        value = options.get(row.name, row.default)
        if row.kind == "int32s":
            row = row._replace(kind="offset")
            value = writer.numbers(options[row.name]) if row.name in options else None
        elif row.kind.endswith("s") or row.kind == "string":
            continue
        elif isinstance(value, str):
            value = {**_ACTIVATIONS, "SAME": 0, "VALID": 1}[value]
        kinds.append(row)
        if value is not None:
            values[row.name] = value
    return writer.table(kinds, values)
