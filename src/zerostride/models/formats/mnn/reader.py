"""MNN files (.mnn) as neutral graphs.

The MNN package does not read the file: it gives neither the parameters of ops nor the numbers of a
constant without computing, and a malformed file ends its process. A bounded reader of the file
format (:mod:`..flatbuffer`) gives both safely. The package runs in a child process to infer the
shape of every tensor (:mod:`.shapes`). If it is not installed, or fails, or sizes are open, shapes
come from the flow through the model.

Differences from ONNX's files:

- A tensor has a data format. NC4HW4 is a memory layout of NCHW, and means the same.
- Weights inside an op's parameter become constant operands after the op's own.
- Input and Const ops become the graph's inputs and constants, not nodes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from ....errors import ModelError, printable
from ....sizes import MAX_RANK
from ...ir.files import content
from ...ir.graph import Body, FileShape, Graph, Node, Place, Value
from ..flatbuffer import File, Malformed, Table
from ..onnx.reader import flattened
from ..ranks import ranked
from . import parameters, shapes, weights
from .lowering import lower
from .schema import DTYPES, FORMATS, OPS

#: Offsets in the file are signed 32-bit numbers.
MAX_FILE_BYTES = 2**31 - 1
#: Depth of nested bodies.
MAX_DEPTH = 16
#: Ops that are tensors, not nodes.
_TENSORS = frozenset({"Input", "Const", "TrainableParam"})
#: The domain of MNN's op types.
DOMAIN = "mnn"


def read(path: Path) -> Graph:
    """The graph of an .mnn file.

    Raises:
        ModelError: the file is not a valid MNN model; gives the reason.
    """
    file = Path(path)
    data = _bytes(file)
    try:
        return _MnnReader(file, data).read()
    except Malformed as error:
        raise ModelError(
            f"{file}: not a readable MNN model; truncated, or another format? "
            f"({printable(str(error))})"
        ) from None


def _bytes(file: Path) -> bytes:
    return content(file, ".mnn", MAX_FILE_BYTES, "an MNN file ends at 2 GiB")


@dataclass(frozen=True, slots=True)
class _Op:
    """An op of the file, its parameter not read yet."""

    table: Table
    kind: str
    name: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    format: str


class _MnnReader:
    """Reads one file."""

    def __init__(self, file: Path, data: bytes) -> None:
        self.file = file
        self.net = File(data).root()
        self.notes: list[str] = []
        self.bodies: Mapping[str, Table] = {}

    def read(self) -> Graph:
        """The graph."""
        ops = [self._op(table, k) for k, table in enumerate(self.net.tables(3))]
        if not ops:
            raise Malformed("it has no ops")
        self.bodies = {name: t for t in self.net.tables(10) if (name := t.text(0)) is not None}
        names = self.net.texts(7)
        scope = _Scope(names, self._engine(ops, names))
        body = self._body("", ops, scope, {}, (), ())
        outputs = self._outputs(body.nodes, self.net.texts(4))
        release = _release(self.net)
        graph = Graph(
            str(self.file),
            "mnn",
            release,
            body.inputs,
            tuple(flattened(body.nodes)),
            tuple(dict.fromkeys(map(printable, self.notes))),
            outputs,
            MappingProxyType({DOMAIN: release}),
        )
        return ranked(graph, lower)

    def _op(self, table: Table, position: int) -> _Op:
        number = table.number(5, "int32")
        kind = OPS.get(number, f"Op{number}")
        return _Op(
            table,
            kind,
            table.text(3) or f"{kind}_{position}",
            table.numbers(0, "int32"),
            table.numbers(4, "int32"),
            FORMATS.get(table.number(6, "int8", 1), "UNKNOWN"),
        )

    # Shapes.

    def _engine(self, ops: Sequence[_Op], names: Sequence[str]) -> Mapping[str, FileShape]:
        """The tensors' shapes from MNN, by name."""
        for op in ops:
            if op.kind != "Input":
                continue
            dims = op.table.table(2)
            if dims is None or any(size < 0 for size in dims.numbers(0, "int32")):
                # MNN computes shapes only from numbers, not from open sizes.
                return {}
        try:
            inferred = shapes.of_tensors(self.file)
        except shapes.Unanswered as answer:
            self.notes.append(f"MNN was not asked for shapes, they are inferred: {answer}")
            return {}
        twice = [name for name, count in Counter(names).items() if count > 1]
        return {name: shape for name, shape in inferred.items() if name not in twice}

    # Graphs.

    def _body(
        self,
        key: str,
        ops: Sequence[_Op],
        scope: _Scope,
        outer: Mapping[str, Value],
        path: tuple[str, ...],
        place: Place,
    ) -> Body:
        """The ops as a graph; `outer` maps input names to outer values."""
        inputs: list[Value] = []
        nodes: list[Node] = []
        for position, op in enumerate(ops):
            if op.kind in _TENSORS:
                self._tensor(op, scope, outer, inputs, place)
            else:
                nodes.append(self._node(op, scope, path, (*place, position)))
        return Body(key, tuple(inputs), (), tuple(nodes))

    def _tensor(
        self,
        op: _Op,
        scope: _Scope,
        outer: Mapping[str, Value],
        inputs: list[Value],
        place: Place,
    ) -> None:
        """Reads an op that is a tensor: an input, or a constant."""
        if len(op.outputs) != 1:
            raise Malformed(f"the {op.kind} {op.name!r} has {len(op.outputs)} tensors")
        name = scope.name(op.outputs[0])
        parameter = op.table.table(2)
        if op.kind == "Input":
            fields = parameters.read("Input", parameter)
            # The passed value gives the sizes, not the body's Input.
            main = parameter is not None and not place
            shape = _input_shape(name, fields["dims"]) if main else None
            value = outer.get(name) or Value(
                name, shape, declared=shape, dtype=DTYPES.get(fields["dtype"])
            )
            if name not in outer:
                inputs.append(value)
            scope.put(op.outputs[0], value, fields["dformat"])
        elif parameter is None:
            raise Malformed(f"the constant {name!r} has no blob")
        else:
            value = weights.blob(self.file, name, parameter)
            if value.missing is not None:
                self.notes.append(f"the data of {name!r} is missing: {value.missing!r}")
            layout = FORMATS.get(parameter.number(1, "int8"), "UNKNOWN")
            scope.put(op.outputs[0], value, layout)

    def _node(self, op: _Op, scope: _Scope, path: tuple[str, ...], place: Place) -> Node:
        operands = tuple(scope.get(index) for index in op.inputs)
        layouts = tuple(scope.layout(index) for index in op.inputs)
        fields, own = parameters.of_op(self.file, op.name, op.kind, op.table, operands)
        layout = parameters.layout_of(op.kind, op.format, fields, operands, layouts)
        constant = bool(operands) and all(
            value is not None and value.constant for value in (*operands, *own)
        )
        constant = constant and not op.kind.startswith(("Random", "TensorArray"))
        bodies = self._bodies(op, operands, (*path, op.name), place)
        outputs = []
        for k, index in enumerate(op.outputs):
            dtype = parameters.dtype_of(op.kind, fields, operands, k)
            if bodies:
                dtype = parameters.dtype_of_bodies(op.kind, operands, bodies, k)
            result = Value(scope.name(index), None, constant, dtype=dtype)
            outputs.append(scope.put_result(index, result, layout))
        source = layouts[0] if layouts else "UNKNOWN"
        attributes = MappingProxyType({**fields, "format": op.format, "layout": source})
        return Node(
            op.name,
            op.kind,
            DOMAIN,
            0,
            (*operands, *own),
            tuple(outputs),
            attributes,
            path,
            bodies,
            place,
        )

    def _bodies(
        self,
        op: _Op,
        operands: Sequence[Value | None],
        path: tuple[str, ...],
        place: Place,
    ) -> tuple[Body, ...]:
        """The graphs that an If or a While runs."""
        keys = {"If": ("then_branch", "else_branch"), "While": ("cond", "body")}.get(op.kind, ())
        parameter = op.table.table(2)
        if not keys or parameter is None:
            return ()
        if len(path) > 2 * MAX_DEPTH:
            raise Malformed(f"graphs within graphs are deeper than {MAX_DEPTH}")
        bound: dict[str, Value] = {}
        if op.kind == "If":  # the values of a While change from pass to pass
            for value, table in zip(operands, parameter.tables(2), strict=False):
                if value is not None:
                    bound.update(dict.fromkeys(table.texts(0), value))
        bodies = []
        for field, key in enumerate(keys):
            name = parameter.text(field)
            if name is None and key == "cond":
                continue  # a While without a condition graph is ONNX's Loop
            graph = self.bodies.get(name or "")
            if graph is None:
                self.notes.append(f"{op.name}: the graph {name!r} is not in the file")
                continue
            ops = [self._op(inner, k) for k, inner in enumerate(graph.tables(4))]
            scope = _Scope(graph.texts(3), {})
            body = self._body(key, ops, scope, bound, (*path, key), (*place, key))
            inputs = body.inputs
            if op.kind == "While":
                handed = (scope.get(index) for index in graph.numbers(1, "int32"))
                inputs = tuple(value for value in handed if value is not None)
            results = tuple(scope.get(index) for index in graph.numbers(2, "int32"))
            bodies.append(replace(body, inputs=inputs, outputs=results))
        return tuple(bodies)

    def _outputs(self, nodes: Sequence[Node], names: Sequence[str]) -> tuple[Value, ...]:
        """The graph's outputs: those that the file names, else all unread values."""
        values = {value.name: value for node in nodes for value in node.outputs}
        named = tuple(values[name] for name in names if name in values)
        if named:
            return named
        read = {id(value) for node in nodes for value in node.inputs}
        return tuple(value for value in values.values() if id(value) not in read)


class _Scope:
    """The tensors of one list of ops, by their number."""

    def __init__(self, names: Sequence[str], shapes: Mapping[str, FileShape]) -> None:
        self.names = names
        self.shapes = shapes
        self.values: dict[int, Value] = {}
        self.layouts: dict[int, str] = {}

    def name(self, index: int) -> str:
        """The name of a tensor."""
        if not 0 <= index < max(len(self.names), 1 << 24):
            raise Malformed(f"there is no tensor {index}")
        return (self.names[index] if index < len(self.names) else "") or f"tensor_{index}"

    def get(self, index: int) -> Value | None:
        """A tensor that a node reads; None for an optional one that is left out."""
        if index == -1:
            return None
        if index not in self.values:
            self.values[index] = Value(self.name(index), None)
        return self.values[index]

    def layout(self, index: int) -> str:
        """The data format of a tensor."""
        return self.layouts.get(index, "UNKNOWN")

    def put(self, index: int, value: Value, layout: str) -> None:
        """Records a tensor."""
        self.values[index] = value
        self.layouts[index] = layout

    def put_result(self, index: int, value: Value, layout: str) -> Value:
        """Records a node's result, with MNN's shape."""
        shape = self.shapes.get(value.name)
        if shape is not None:
            value = replace(value, shape=shape)
        self.put(index, value, layout)
        return value


def _input_shape(name: str, sizes: tuple[int, ...]) -> FileShape:
    """The shape of an input; its open sizes, which have no names in the file, get names."""
    if len(sizes) > MAX_RANK:
        raise Malformed(f"the input {name!r} has {len(sizes)} axes")
    plain = re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,60}", name) is not None
    return tuple(
        size if size >= 0 else f"{name}_{axis}" if plain else None
        for axis, size in enumerate(sizes)
    )


def _release(net: Table) -> int:
    """The major release number of the converter; 0 if the file does not give it."""
    extra = net.table(2)
    match = re.match(r"\d{1,3}", (extra.text(2) if extra is not None else None) or "")
    return int(match[0]) if match else 0
