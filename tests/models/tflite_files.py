"""Writes .tflite files for tests, with the flatbuffers package and the schema's own numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from zerostride.models.formats.schema_fields import Field, fields
from zerostride.models.formats.tflite import schema
from zerostride.models.formats.tflite.writing import Writer

_DTYPES = {name: number for number, name in schema.DTYPES.items()}
_ACTIVATIONS = {name: number for number, name in schema.ACTIVATIONS.items()}
SIGNATURE = fields(
    "inputs:0:offset outputs:1:offset signature_key:2:offset subgraph_index:4:uint32"
)


@dataclass
class Tensor:
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
        self.tensors.append(Tensor(name, tuple(shape), dtype, **more))
        return name

    def input(self, name: str, *shape: int, dtype: str = "float32", **more: Any) -> str:
        self.inputs.append(len(self.tensors))
        return self.add(name, shape, dtype, **more)

    def constant(self, name: str, array: Any, **more: Any) -> str:
        array = np.asarray(array)
        return self.add(name, array.shape, str(array.dtype), data=array.tobytes(), **more)

    def number(self, name: str) -> int:
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
        made = tuple(map(self.number, outputs.split()))
        self.ops.append(Op(kind, read, made, options, version or VERSIONS.get(kind, 1)))

    def output(self, *names: str) -> None:
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
        return self.graphs[0]

    def graph(self) -> tuple[int, Graph]:
        """A new subgraph and its number."""
        self.graphs.append(Graph())
        return len(self.graphs) - 1, self.graphs[-1]

    def write(self, path: Path) -> Path:
        path.write_bytes(self.data())
        return path

    def data(self) -> bytes:
        table, tail = self._data(0)
        if self.behind:
            table, tail = self._data(len(table))
        return table + tail

    def _data(self, start: int) -> tuple[bytes, bytes]:
        """The flatbuffer, and what stands behind it, which begins at `start`."""
        writer = Writer(Path("test.tflite"))
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
    def _code(writer: Writer, kind: str, version: int) -> int:
        number = schema.NUMBERS.get(kind, schema.NUMBERS["CUSTOM"])
        values = {"deprecated_builtin_code": min(number, 127), "version": version}
        values["builtin_code"] = number
        if kind not in schema.NUMBERS:
            values["custom_code"] = writer.text(kind)
        return writer.table(schema.OPERATOR_CODE, values)

    def _graph(
        self,
        graph: Graph,
        writer: Writer,
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


def _tensor(writer: Writer, tensor: Tensor, buffer: int) -> int:
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


def _list(writer: Writer, numbers: Sequence[float], kind: str, size: int) -> int:
    builder = writer._builder
    builder.StartVector(size, len(numbers), size)
    for number in reversed(numbers):
        getattr(builder, f"Prepend{kind}")(number)
    offset: int = builder.EndVector()
    return offset


def _operator(writer: Writer, op: Op, code: int) -> int:
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


def _options(writer: Writer, declared: Sequence[Field], options: Mapping[str, Any]) -> int:
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


# Small models.


def of_one(kind: str, *shapes: tuple[int, ...], dtype: str = "float32", **options: Any) -> Model:
    """A model of one op on inputs x0, x1, ...; its result is y."""
    model = Model()
    names = [model.main.input(f"x{k}", *shape, dtype=dtype) for k, shape in enumerate(shapes)]
    model.main.op(kind, " ".join(names), "y", **options)
    model.main.output("y")
    return model


def residual() -> Model:
    """A convolution with half-precision weights, PRELU, ADD, MEAN, FULLY_CONNECTED."""
    model, graph = Model(), Graph()
    model.graphs = [graph]
    rng = np.random.default_rng(0)
    graph.input("x", 1, 6, 6, 4)
    graph.constant("w16", rng.normal(size=(4, 3, 3, 4)).astype(np.float16))
    graph.constant("bias", rng.normal(size=4).astype(np.float32))
    graph.constant("slope16", rng.normal(size=(1, 1, 4)).astype(np.float16))
    graph.constant("axes", np.array([1, 2], np.int32))
    graph.constant("fc", rng.normal(size=(3, 4)).astype(np.float32))
    graph.op("DEQUANTIZE", "w16", "w")
    graph.op("DEQUANTIZE", "slope16", "slope")
    graph.op("CONV_2D", "x w bias", "c", padding="SAME", stride_w=1, stride_h=1)
    graph.op("PRELU", "c slope", "p")
    graph.op("ADD", "p x", "a", fused_activation_function="RELU6")
    graph.op("MEAN", "a axes", "m", keep_dims=False)
    graph.op("FULLY_CONNECTED", "m fc -", "y")
    graph.output("y")
    return model


def quantised() -> Model:
    """ADD and MUL of quantised tensors, between QUANTIZE and DEQUANTIZE; weights by channel."""
    model = Model()
    graph = model.main
    graph.input("x", 1, 4, 4, 3)
    graph.add("q", (1, 4, 4, 3), "int8", scales=(0.02,), zeros=(3,))
    graph.constant("b", np.array([-20, 5, 60], np.int8), scales=(0.05,), zeros=(0,))
    graph.add("s", (1, 4, 4, 3), "int8", scales=(0.04,), zeros=(-1,))
    graph.constant(
        "w", np.arange(-9, 9, dtype=np.int8).reshape(6, 1, 1, 3),
        scales=(0.01, 0.02, 0.03, 0.01, 0.02, 0.03), axis=0,
    )  # fmt: skip
    graph.constant("bias", np.zeros(6, np.int32), scales=(4e-4, 8e-4, 12e-4) * 2, axis=0)
    graph.add("c", (1, 4, 4, 6), "int8", scales=(0.03,), zeros=(0,))
    graph.op("QUANTIZE", "x", "q")
    graph.op("ADD", "q b", "s", 2)
    graph.op("CONV_2D", "s w bias", "c", 3, padding="SAME", stride_w=1, stride_h=1)
    graph.op("DEQUANTIZE", "c", "y", 2)
    graph.output("y")
    return model


def branches() -> Model:
    """An IF whose branches add tensors of different shapes."""
    model = Model()
    graph = model.main
    graph.input("which", 1, dtype="bool")
    graph.input("x", 2, 3)
    numbers = []
    for op in ("ADD", "MUL"):
        number, inner = model.graph()
        inner.input("a", 2, 3)
        inner.constant("b", np.arange(3, dtype=np.float32))
        inner.op(op, "a b", "r")
        inner.output("r")
        numbers.append(number)
    graph.op(
        "IF", "which x", "y", then_subgraph_index=numbers[0], else_subgraph_index=numbers[1]
    )  # fmt: skip
    graph.output("y")
    return model


def loop() -> Model:
    """A WHILE that adds a row until a counter is 3."""
    model = Model()
    graph = model.main
    graph.input("n", dtype="int32")
    graph.input("x", 2, 3)
    condition, inner = model.graph()
    inner.input("n", dtype="int32")
    inner.input("x", 2, 3)
    inner.constant("three", np.array(3, np.int32))
    inner.add("going", (), "bool")
    inner.op("LESS", "n three", "going")
    inner.output("going")
    body, inner = model.graph()
    inner.input("n", dtype="int32")
    inner.input("x", 2, 3)
    inner.constant("one", np.array(1, np.int32))
    inner.constant("row", np.arange(3, dtype=np.float32))
    inner.add("m", (), "int32")
    inner.op("ADD", "n one", "m")
    inner.op("ADD", "x row", "z")
    inner.output("m", "z")
    graph.add("k", (), "int32")
    graph.op("WHILE", "n x", "k y", cond_subgraph_index=condition, body_subgraph_index=body)
    graph.output("k", "y")
    return model


def signatures() -> Model:
    """Two entries, each with a signature; a subgraph of the second runs once."""
    model = Model()
    model.main.input("x", 2, 3)
    model.main.input("b", 3)
    model.main.op("ADD", "x b", "y")
    model.main.output("y")
    second, graph = model.graph()
    once, inner = model.graph()
    inner.constant("c", np.ones((2, 1), np.float32))
    inner.constant("d", np.ones((1, 3), np.float32))
    inner.op("SUB", "c d", "e")
    inner.output()
    graph.input("x", 4, 1)
    graph.input("b", 5)
    graph.op("CALL_ONCE", "", "", init_subgraph_index=once)
    graph.op("MUL", "x b", "y")
    graph.output("y")
    model.signatures = [("add", 0), ("mul", second)]
    return model


def open_sizes() -> Model:
    """An input whose first size is open in the shape signature."""
    model = Model()
    graph = model.main
    graph.input("x", 1, 5, signature=(-1, 5))
    graph.constant("b", np.arange(5, dtype=np.float32))
    graph.add("s", (1, 5), signature=(-1, 5))
    graph.op("ADD", "x b", "s")
    graph.op("MUL", "s s", "y")
    graph.output("y")
    return model


def sliced() -> Model:
    """STRIDED_SLICE with masks, PACK, SHAPE, RESHAPE to sizes that are computed."""
    model = Model()
    graph = model.main
    graph.input("x", 2, 6, 4)
    for name, numbers in (("begin", (0, 1, 0)), ("end", (0, -1, 0)), ("steps", (1, 2, 1))):
        graph.constant(name, np.array(numbers, np.int32))
    graph.op("STRIDED_SLICE", "x begin end steps", "c", begin_mask=1, end_mask=5)
    graph.add("shape", (3,), "int32")
    graph.op("SHAPE", "x", "shape", out_type=2)
    for name, number in (("i0", 0), ("i1", 1), ("i2", 2)):
        graph.constant(name, np.array([number], np.int32))
    graph.constant("ones", np.array([1], np.int32))
    graph.add("rows", (), "int32")
    graph.op("STRIDED_SLICE", "shape i0 i1 ones", "rows", shrink_axis_mask=1)
    graph.constant("rest", np.array(-1, np.int32))
    graph.add("target", (2,), "int32")
    graph.op("PACK", "rows rest", "target", values_count=2, axis=0)
    graph.op("RESHAPE", "c target", "f")
    graph.constant("b", np.arange(8, dtype=np.float32))
    graph.op("SUB", "f b", "y")
    graph.output("y")
    return model


def custom() -> Model:
    """A custom op, and an addition of its result."""
    model = of_one("MyOwnOp", (2, 3))
    model.main.tensors[-1] = Tensor("y", (2, 3), "float32")
    model.main.constant("b", np.ones(3, np.float32))
    model.main.outputs.clear()
    model.main.op("ADD", "y b", "z")
    model.main.output("z")
    return model


MODELS: Mapping[str, Callable[[], Model]] = {
    "branches": branches,
    "custom": custom,
    "loop": loop,
    "open_sizes": open_sizes,
    "quantised": quantised,
    "residual": residual,
    "signatures": signatures,
    "sliced": sliced,
}
