"""LiteRT files (.tflite) as neutral graphs.

No package reads the file: a malformed one ends the process of LiteRT's own. A bounded reader of the
file format (:mod:`..flatbuffer`) reads it.

Differences from ONNX's files:

- Sizes of tensors inside the model are hints: the interpreter infers them from the inputs. A size
  of an input that its shape signature leaves open (−1) is open here.
- A quantised tensor stands for real numbers (`Value.quantised`).
- Every subgraph that no op runs is an entry of its own (signatures); the graph has the inputs,
  nodes and outputs of all entries. A subgraph that an op runs is a body of that op.
- An op has no name in the file: it is named after its type and the number of its first result.
  Names of tensors that occur twice get their number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ....errors import ModelError, printable
from ...ir.files import content
from ...ir.graph import Body, FileShape, Graph, Node, Place, Value
from ...ir.readings import once_per_file
from ..flatbuffer import File, Malformed, Table, Vector
from ..onnx.reader import flattened
from ..ranks import ranked
from ..schema_fields import read_fields
from . import tensors
from .lowering import lower
from .schema import (
    ACTIVATIONS,
    BUILTINS,
    CUSTOM,
    OPTIONS,
    PADDINGS,
    UNION,
    UNION2,
    code_of,
    options_of,
)
from .sites import CUSTOM_DOMAIN, DOMAIN

#: Offsets in the file are 32-bit numbers; numbers of constants may follow them.
MAX_FILE_BYTES = 2**31 - 1
#: Depth of nested bodies.
MAX_DEPTH = 16
#: Most nodes, as a multiple of the file's ops: a subgraph that several ops run is read for each.
MAX_COPIES = 16
#: The bodies of an op: the field of its options, the body's name, and the position of the first
#: operand that becomes an input of the body. None: the body declares its own inputs.
BODIES: Mapping[str, tuple[tuple[str, str, int | None], ...]] = MappingProxyType(
    {
        "IF": (
            ("then_subgraph_index", "then_branch", 1),
            ("else_subgraph_index", "else_branch", 1),
        ),
        "WHILE": (("cond_subgraph_index", "cond", None), ("body_subgraph_index", "body", None)),
        "CALL_ONCE": (("init_subgraph_index", "init", 0),),
        "CALL": (("subgraph", "body", 0),),
        "STABLEHLO_COMPOSITE": (("decomposition_subgraph_index", "body", 0),),
        "STABLEHLO_WHILE": (
            ("cond_subgraph_index", "cond", None),
            ("body_subgraph_index", "body", None),
        ),
        "STABLEHLO_REDUCE": (("body_subgraph_index", "body", None),),
        "STABLEHLO_REDUCE_WINDOW": (("body_subgraph_index", "body", None),),
        "STABLEHLO_SCATTER": (("update_computation_subgraph_index", "body", None),),
        "STABLEHLO_SORT": (("comparator_subgraph_index", "body", None),),
    }
)
#: Attributes whose numbers have names.
_WORDS = MappingProxyType({"fused_activation_function": ACTIVATIONS, "padding": PADDINGS})
#: Ops whose results are not constants, whatever their operands are.
_UNSTEADY = ("RANDOM", "MULTINOMIAL", "VAR_", "READ_VARIABLE", "CALL", "STABLEHLO_RNG", "HASHTABLE")


def read(path: Path) -> Graph:
    """The graph of a .tflite file.

    Raises:
        ModelError: the file is not a valid LiteRT model; gives the reason.
    """
    return read_sized(path, {})


def read_sized(path: Path, shapes: Mapping[str, FileShape]) -> Graph:
    """The graph of a file whose inputs have these shapes, by name."""
    file = Path(path)
    data = contents(file)
    if not shapes:
        return graph_and_places(file, data)[0]
    return ranked(_checked(file, data, shapes).graph(), lower)


@once_per_file
def graph_and_places(file: Path, data: bytes) -> tuple[Graph, Mapping[Place, tuple[int, int]]]:
    """The graph in a file's bytes, and the subgraph and position of each node's op."""
    reader = _checked(file, data, {})
    return ranked(reader.graph(), lower), reader.places


def tensor_numbers(path: Path) -> Mapping[str, tuple[int, int]]:
    """The subgraph and number of each tensor of a file, by its name in the graph."""
    file = Path(path)
    return _checked(file, contents(file), {}).tensors


def contents(file: Path) -> bytes:
    """The bytes of a file."""
    beyond = "models of 2 GiB and more are not read"
    return content(file, ".tflite", MAX_FILE_BYTES, beyond)


def _checked(file: Path, data: bytes, shapes: Mapping[str, FileShape]) -> _TfliteReader:
    """The file's graph, read."""
    try:
        return _TfliteReader(file, data, shapes)
    except Malformed as error:
        raise ModelError(
            f"{file}: not a readable LiteRT model; truncated, or another format? "
            f"({printable(str(error))})"
        ) from None


@dataclass(frozen=True, slots=True)
class _Op:
    """An operator of the file."""

    kind: str
    domain: str
    version: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    attributes: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Subgraph:
    """A subgraph of the file, its tensors not read yet."""

    name: str
    tensors: tuple[Table, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    ops: tuple[_Op, ...]


class _TfliteReader:
    """Reads one file.

    Attributes:
        places: the subgraph and position of each node's op.
        tensors: the subgraph and number of each tensor, by name.
    """

    def __init__(self, file: Path, data: bytes, shapes: Mapping[str, FileShape]) -> None:
        self.file = file
        self.data = data
        self.given = shapes
        self.notes: list[str] = []
        self.places: dict[Place, tuple[int, int]] = {}
        self.tensors: dict[str, tuple[int, int]] = {}
        model = File(data).root()
        self.version = model.number(0, "uint32")
        self.codes = [_code(table) for table in model.tables(1)]
        self.buffers = model.tables(4)
        self.subgraphs = [self._subgraph(table) for table in model.tables(2)]
        self.left = MAX_COPIES * sum(len(graph.ops) for graph in self.subgraphs)
        if not self.subgraphs:
            raise Malformed("it has no subgraphs")
        self._graph = self._read([entry.number(4, "uint32") for entry in model.tables(7)])

    def graph(self) -> Graph:
        """The graph as the file has it."""
        return self._graph

    def _read(self, signatures: Sequence[int]) -> Graph:
        entries = [_Scope(self, k, "") for k in self._entries(signatures)]
        nodes: list[Node] = []
        for scope in entries:
            nodes += scope.nodes((), (), len(nodes))
        return Graph(
            str(self.file),
            "litert",
            self.version,
            tuple(value for scope in entries for value in scope.inputs()),
            tuple(flattened(nodes)),
            tuple(dict.fromkeys(map(printable, self.notes))),
            tuple(dict.fromkeys(value for scope in entries for value in scope.outputs())),
            MappingProxyType({DOMAIN: self.version}),
        )

    def _entries(self, signatures: Sequence[int]) -> list[int]:
        """The first subgraph, those of signatures, and those that no op runs."""
        run = {
            op.attributes.get(field)
            for graph in self.subgraphs
            for op in graph.ops
            for field, _, _ in BODIES.get(op.kind, ())
        }
        first = {0, *signatures}
        return [k for k in range(len(self.subgraphs)) if k in first or k not in run]

    # Parts of the file.

    def _subgraph(self, table: Table) -> _Subgraph:
        return _Subgraph(
            table.text(4) or "",
            table.tables(0),
            table.numbers(1, "int32"),
            table.numbers(2, "int32"),
            tuple(map(self._op, table.tables(3))),
        )

    def _op(self, table: Table) -> _Op:
        number = table.number(0, "uint32")
        if number >= len(self.codes):
            raise Malformed(f"there is no operator code {number}")
        kind, domain, version = self.codes[number]
        name = options_of(kind) if domain == DOMAIN else None
        union, field = (UNION2, 11) if name in UNION2.values() else (UNION, 3)
        attributes: dict[str, Any] = {}
        if name is not None and name in OPTIONS:
            # Options of another op are read as if they were left out.
            own = union.get(table.number(field, "uint8")) == name
            attributes = read_fields(OPTIONS[name], table.table(field + 1) if own else None)
        for key, words in _WORDS.items():
            if key in attributes:
                attributes[key] = words.get(attributes[key], str(attributes[key]))
        return _Op(
            kind,
            domain,
            version,
            table.numbers(1, "int32"),
            table.numbers(2, "int32"),
            MappingProxyType(attributes),
        )

    def buffer(self, number: int, name: str) -> Vector | None:
        """The bytes of a buffer; None if it has none."""
        if number >= len(self.buffers):
            raise Malformed(f"the tensor {name!r} has the buffer {number}, which is not there")
        table = self.buffers[number]
        vector = table.vector(0, "uint8")
        if vector is not None and vector.count:
            return vector
        start, count = table.number(1, "uint64"), table.number(2, "uint64")
        if start <= 1 or not count:
            return None
        if start + count > len(self.data):
            raise Malformed(f"the numbers of {name!r} at {start} are beyond its end")
        return Vector(self.data, start, count, "uint8")

    def subgraph(self, number: Any, op: str) -> int:
        """The number of a subgraph that an op runs."""
        if not isinstance(number, int) or not 0 <= number < len(self.subgraphs):
            raise Malformed(f"{op} runs the subgraph {number}, which is not there")
        return number

    def unique(self, name: str, tensor: tuple[int, int]) -> str:
        """A tensor's name; of equal names all but the first get their number."""
        if name in self.tensors:
            name = f"{name}:{tensor[1]}"
        while name in self.tensors:
            name += "'"
        self.tensors[name] = tensor
        return name


def _code(table: Table) -> tuple[str, str, int]:
    """The op of an operator code, its domain and version."""
    number = code_of(table)
    version = table.number(2, "int32", 1)
    kind = BUILTINS.get(number, f"BUILTIN_{number}")
    if kind != CUSTOM:
        return kind, DOMAIN, version
    return table.text(1) or "(without a name)", CUSTOM_DOMAIN, version


class _Scope:
    """The tensors of one subgraph, by their number, for one op that runs it."""

    def __init__(
        self, reader: _TfliteReader, number: int, prefix: str, bound: Sequence[Value | None] = ()
    ) -> None:
        self.reader = reader
        self.number = number
        self.graph = reader.subgraphs[number]
        self.prefix = prefix
        self.values: dict[int, Value | None] = {-1: None}
        for index, value in zip(self.graph.inputs, bound, strict=False):
            self.values[index] = value
        for index in self.graph.inputs[len(bound) :]:
            self.values[index] = self._tensor(index, of_input=not prefix, constants=False)

    def get(self, index: int) -> Value | None:
        """A tensor; None for an optional one that is left out."""
        if index not in self.values:
            self.values[index] = self._tensor(index)
        return self.values[index]

    def inputs(self) -> tuple[Value, ...]:
        """The subgraph's inputs."""
        return self._present(self.graph.inputs)

    def outputs(self) -> tuple[Value, ...]:
        """The subgraph's outputs."""
        return self._present(self.graph.outputs)

    def _present(self, indices: Sequence[int]) -> tuple[Value, ...]:
        return tuple(value for value in map(self.get, indices) if value is not None)

    def _tensor(self, index: int, *, of_input: bool = False, constants: bool = True) -> Value:
        if not 0 <= index < len(self.graph.tensors):
            raise Malformed(f"there is no tensor {index}")
        table = self.graph.tensors[index]
        text = self.prefix + (table.text(3) or f"tensor_{index}")
        name = self.reader.unique(text, (self.number, index))
        shape, dtype = tensors.shape_of(table, name), tensors.dtype_of(table)
        quantised = tensors.quantisation_of(table.table(4), dtype, name)
        numbers = self.reader.buffer(table.number(2, "uint32"), name) if constants else None
        if constants and numbers is None and 0 in shape and not table.number(5, "uint8"):
            numbers = Vector(b"", 0, 0, "uint8")  # no elements need no bytes
        if numbers is not None:
            layout = table.table(6)
            sparsity = None if layout is None else tensors.sparsity_of(layout, shape, name)
            more = (quantised, sparsity)
            return tensors.constant(self.reader.file, name, shape, dtype, numbers, more)
        declared = tensors.declared_of(table, shape)
        given = self.reader.given.get(name) if of_input else None
        if of_input:
            # An input without sizes is one number to the interpreter.
            declared = given or (shape if declared is None else declared)
        elif any(self.reader.given.values()):
            declared = None  # the file's sizes are those of other inputs
        known = declared if of_input else None
        return Value(name, known, declared=declared, dtype=dtype, quantised=quantised)

    # Nodes.

    def nodes(self, path: tuple[str, ...], place: Place, first: int = 0) -> list[Node]:
        """The ops as nodes; the first has the position `first`."""
        return [
            self._node(op, self._name(op, k), path, (*place, first + k), k)
            for k, op in enumerate(self.graph.ops)
        ]

    def _name(self, op: _Op, position: int) -> str:
        """An op's name: its type and the number of its result, which a port does not change."""
        number = str(op.outputs[0]) if op.outputs else f"op{position}"
        return (
            f"{op.kind}_{number}"
            if self.prefix or not self.number
            else (f"{op.kind}_{self.number}.{number}")
        )

    def _node(self, op: _Op, name: str, path: tuple[str, ...], place: Place, position: int) -> Node:
        self.reader.left -= 1
        if self.reader.left < 0:
            raise Malformed("its subgraphs run each other too often")
        self.reader.places[place] = self.number, position
        operands = tuple(map(self.get, op.inputs))
        bodies = tuple(self._bodies(op, operands, (*path, name), place))
        constant = bool(operands) and not bodies and not op.kind.startswith(_UNSTEADY)
        constant = constant and all(value is None or value.constant for value in operands)
        outputs = tuple(self._result(index, constant, op) for index in op.outputs)
        return Node(
            name,
            op.kind,
            op.domain,
            op.version,
            operands,
            outputs,
            op.attributes,
            path,
            bodies,
            place,
        )

    def _result(self, index: int, constant: bool, op: _Op) -> Value:
        value = self._tensor(index, constants=False)
        if constant and op.domain == DOMAIN:
            value = replace(value, constant=True)
            if op.kind == "DEQUANTIZE" and (weights := self.get(op.inputs[0])) is not None:
                value = tensors.dequantised(value, weights)
        self.values[index] = value
        return value

    def _bodies(
        self, op: _Op, operands: Sequence[Value | None], path: tuple[str, ...], place: Place
    ) -> Iterator[Body]:
        """The graphs that an op runs."""
        if op.domain != DOMAIN:
            return
        for field, key, first in BODIES.get(op.kind, ()):
            if len(path) > 2 * MAX_DEPTH:
                raise Malformed(f"subgraphs within subgraphs are deeper than {MAX_DEPTH}")
            number = self.reader.subgraph(op.attributes.get(field), path[-1])
            bound = operands[first:] if first is not None else ()
            prefix = self.reader.subgraphs[number].name or f"subgraph_{number}"
            scope = _Scope(self.reader, number, f"{prefix}/", bound)
            nodes = scope.nodes((*path, key), (*place, key))
            own = scope.inputs() if first is None else ()
            yield Body(key, own, tuple(map(scope.get, scope.graph.outputs)), tuple(nodes))
