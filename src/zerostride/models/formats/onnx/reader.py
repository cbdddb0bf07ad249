"""ONNX files as neutral graphs. The onnx package reads, inlines functions and infers shapes.

A file is hostile input. Its size is bounded. External data is looked for but not opened. Nodes that
may crash the package's C++ are hidden from it (see :mod:`.onnx_validation`). Each exception becomes
one line that names the file, or a note.
"""

from __future__ import annotations

import math
from collections import ChainMap
from collections.abc import Callable, Collection, Iterator, Mapping, MutableMapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ....errors import ModelError
from ....sizes import MAX_RANK
from ....sizes.dim import Dim
from ...ir.files import content
from ...ir.graph import Body, FileShape, FileSize, Graph, Node, Place, Value, long_shapes
from ...ir.origin import Origin, origin_of
from ...onnx_ops.validation import (
    graphs_of,
    mark_malformed,
    package_errors,
    refuse_functions,
    strange,
    text,
)
from .functions import MOST_ROUNDS, write_out
from .isolated_inference import infer_apart
from .light import light
from .messages import inline
from .tensors import Tensors, dtype_name

if TYPE_CHECKING:
    import onnx

#: Protocol buffers end at 2 GiB; larger weights are in external files.
MAX_FILE_BYTES = 2**31 - 1
#: Versions of op sets are 32-bit numbers in the package.
MAX_VERSION = 2**31 - 1
#: Ops whose result is not constant though they have no input that changes.
_NONDETERMINISTIC = frozenset(
    {"RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Multinomial"}
)


def read_onnx(path: str | Path) -> Graph:
    """The graph of an .onnx file, shapes inferred by the onnx package.

    Raises:
        ModelError: the file is not a valid ONNX model; gives the reason.
    """
    file = Path(path)
    try:
        return _read(file)
    except UnicodeDecodeError as error:
        # Old exporters wrote invalid text fields, which fail only when they are read.
        raise ModelError(f"{file}: a name in it is not UTF-8 ({_line(error)})") from None


def read_message(
    model: onnx.ModelProto, name: str, written_out: Collection[tuple[str, str]] = ()
) -> Graph:
    """The graph of a model in memory; see :func:`read_onnx`.

    Args:
        model: the model; it does not change. External data is looked for beside `name`.
        name: the file's name in messages.
        written_out: domains and op types whose nodes are replaced by the definitions in ONNX's
            documents, if these define them by other ops.
    """
    copied = type(model)()
    copied.CopyFrom(model)
    return _graph(Path(name), copied, written_out)


def _read(file: Path) -> Graph:
    return _graph(file, parse(file))


def _graph(
    file: Path, model: onnx.ModelProto, written_out: Collection[tuple[str, str]] = ()
) -> Graph:
    notes: list[str] = []
    _forget_long_shapes(model, notes)
    versions = _versions(file, model, notes)
    plain = _inline(model, notes)
    for _ in range(MOST_ROUNDS if written_out else 0):
        if not write_out(plain, infer(plain, versions, []), written_out, versions):
            break
        plain, versions = _inline(plain, notes), _versions(file, plain, [])
    inferred = infer(plain, versions, notes)
    reader = _OnnxReader(file, versions, notes)
    # Inlining ran without weights; it adds and removes no initialisers.
    main = reader.read("", inferred.graph, plain.graph, {}, (), tensors=model.graph.initializer)
    version = versions.get("", versions.get("ai.onnx", 1))
    unique_notes = tuple(dict.fromkeys(notes))
    outputs = tuple(value for value in main.outputs if value is not None)
    nodes = tuple(flattened(main.nodes))
    return Graph(
        str(file),
        "onnx",
        version,
        main.inputs,
        nodes,
        unique_notes,
        outputs,
        MappingProxyType(versions),
    )


def _forget_long_shapes(model: onnx.ModelProto, notes: list[str]) -> None:
    """Removes shapes of more than MAX_RANK axes from a model before they are read."""
    ranks: dict[str, int] = {}
    for graph in graphs_of(model.graph):
        for entries in (graph.input, graph.value_info, graph.output):
            for entry in entries:
                rank = len(entry.type.tensor_type.shape.dim)
                if rank > MAX_RANK:
                    ranks[text(entry.name)] = rank
                    entry.type.tensor_type.ClearField("shape")
    notes.extend(long_shapes(ranks))


def flattened(nodes: Sequence[Node]) -> Iterator[Node]:
    """Nodes in order; a body's nodes follow the node that has the body."""
    for node in nodes:
        yield node
        for body in node.bodies:
            yield from flattened(body.nodes)


def parse(file: Path) -> onnx.ModelProto:
    """The file as the package's message; ModelError if it is not one."""
    return parse_bytes(lambda: _bytes(file), file)


def parse_bytes(data: Callable[[], bytes], name: str | Path) -> onnx.ModelProto:
    """The package's message of a model.

    Args:
        data: reads the model.
        name: of the model in messages.

    Raises:
        ModelError: it is no ONNX model.
    """
    try:
        import onnx
        from google.protobuf.message import DecodeError
    except ImportError:
        raise ModelError("reading ONNX files needs the onnx package: pip install onnx") from None
    except Exception as error:  # noqa: BLE001 - protobuf refuses a release older than onnx's
        raise ModelError(f"the onnx package cannot be imported: {_line(error)}") from None
    serialised = data()
    try:
        model = onnx.load_model_from_string(serialised)
    except (DecodeError, ValueError, RuntimeError) as error:
        raise ModelError(
            f"{name}: not a readable ONNX model; truncated, or another format? ({_line(error)})"
        ) from None
    if not model.opset_import and not model.graph.node:
        raise ModelError(f"{name}: not an ONNX model: it has neither an opset nor a node")
    return model


def _bytes(file: Path) -> bytes:
    return content(file, ".onnx", MAX_FILE_BYTES, "an ONNX file ends at 2 GiB")


def _versions(file: Path, model: onnx.ModelProto, notes: list[str]) -> dict[str, int]:
    """The op sets' versions by domain."""
    versions: dict[str, int] = {}
    for entry in model.opset_import:
        if not 1 <= entry.version <= MAX_VERSION:
            raise ModelError(
                f"{file}: {entry.version} is no version of op set {entry.domain or 'ai.onnx'!r}"
            )
        versions[entry.domain] = entry.version
    if not {"", "ai.onnx"} & versions.keys():
        notes.append("the file does not say which version of ONNX's op set it uses; taken as 1")
    return versions


def _inline(model: onnx.ModelProto, notes: list[str]) -> onnx.ModelProto:
    """The model with calls of its own functions replaced by their bodies."""
    if not model.functions:
        return model
    reason = refuse_functions(model)
    if reason is None:
        try:
            return inline(light(model, whole=False))
        except package_errors() as error:
            reason = _line(error)
    notes.append(f"functions were not inlined, their bodies are not judged: {reason}")
    # Inference would go into them all the same.
    del model.functions[:]
    return model


def infer(model: onnx.ModelProto, versions: Mapping[str, int], notes: list[str]) -> onnx.ModelProto:
    """The model with inferred shapes, without weights, and with its malformed nodes marked."""
    import onnx.shape_inference

    model = light(model)
    mark_malformed(model, versions, notes)
    try:
        if strange(model):
            return infer_apart(model)
        return onnx.shape_inference.infer_shapes(model)
    except package_errors() as error:
        notes.append(f"onnx's shape inference stopped, shapes may be unknown: {_line(error)}")
        return model


#: Declarations of a graph by tensor name: shapes, shapes before inference, element types.
_Said = tuple[Mapping[str, FileShape], Mapping[str, FileShape], Mapping[str, str | None]]


class _OnnxReader:
    """Walks a graph and its bodies, and maps names in scope to values."""

    def __init__(self, file: Path, versions: Mapping[str, int], notes: list[str]) -> None:
        self.file = file
        self.versions = versions
        self.notes = notes
        self.tensors = Tensors(file, notes)

    def read(
        self,
        key: str,
        graph: onnx.GraphProto,
        file_graph: onnx.GraphProto,
        outer: MutableMapping[str, Value],
        scope: tuple[str, ...],
        place: Place = (),
        tensors: Sequence[onnx.TensorProto] | None = None,
    ) -> Body:
        """The graph as a body named `key`; `file_graph` is the graph before inference.

        `tensors` are its initialisers if those of `file_graph` have no numbers.
        """
        # A body sees outer names; copying them would take (bodies x names) steps.
        names: MutableMapping[str, Value] = ChainMap({}, outer) if outer else {}
        declared, _ = _declared(file_graph)
        shapes, types = _declared(graph)
        for tensor in file_graph.initializer if tensors is None else tensors:
            value = self.tensors.constant(tensor)
            names[value.name] = value
        for sparse in graph.sparse_initializer:
            name = text(sparse.values.name)
            names[name] = Value(name, tuple(sparse.dims), constant=True)
        inputs = []
        for entry in graph.input:
            name = text(entry.name)
            if name not in names or name in outer:
                names[name] = Value(
                    name, shapes.get(name), declared=declared.get(name), dtype=types.get(name)
                )
                inputs.append(names[name])
        nodes = []
        inferred = (shapes, declared, types)
        for position, (node, own) in enumerate(zip(graph.node, file_graph.node, strict=True)):
            nodes.append(self._node(node, own, (*place, position), names, inferred, scope))
        outputs = tuple(names.get(text(entry.name)) for entry in graph.output)
        return Body(key, tuple(inputs), outputs, tuple(nodes))

    def _node(
        self,
        node: onnx.NodeProto,
        file_node: onnx.NodeProto,
        place: Place,
        names: MutableMapping[str, Value],
        inferred: _Said,
        scope: tuple[str, ...],
    ) -> Node:
        op = text(node.op_type)
        name = text(node.name) or f"{op}_{place[-1]}"
        operands = tuple(_operand(text(entry), names) for entry in node.input)
        attributes, graphs = _attributes(node)
        outputs = tuple(
            self._output(text(entry), file_node, operands, inferred, bool(graphs))
            for entry in node.output
        )
        domain = "" if node.domain == "ai.onnx" else text(node.domain)
        version = self.versions.get(node.domain, self.versions.get("", 1))
        # A body does not see what its own node makes.
        bodies = tuple(
            self.read(
                key,
                self._infer_body(body, names),
                own,
                names,
                (*scope, name, key),
                (*place, key),
            )
            for (key, body), (_, own) in zip(
                graphs, _attributes(file_node)[1] if graphs else (), strict=True
            )
        )
        for value in outputs:
            if value.name:
                names[value.name] = value
        return Node(
            name,
            op,
            domain,
            version,
            operands,
            outputs,
            attributes,
            scope,
            bodies,
            place,
            _origin(file_node),
        )

    def _output(
        self,
        name: str,
        node: onnx.NodeProto,
        operands: Sequence[Value | None],
        inferred: _Said,
        has_bodies: bool,
    ) -> Value:
        shapes, declarations, types = inferred
        shape, declared = shapes.get(name), declarations.get(name)
        if node.op_type == "Constant" and node.domain in ("", "ai.onnx"):
            tensor = self.tensors.of_node(name, node, declared)
            if tensor is not None:
                return tensor
        constant = (
            not has_bodies
            and node.op_type not in _NONDETERMINISTIC
            and all(value is None or value.constant for value in operands)
        )
        return Value(name, shape, constant, declared=declared, dtype=types.get(name))

    def _infer_body(self, body: onnx.GraphProto, names: Mapping[str, Value]) -> onnx.GraphProto:
        """The body with inferred shapes, which onnx's inference of the model leaves out."""
        import onnx.helper
        import onnx.shape_inference

        own = {entry.name for entry in body.input} | {t.name for t in body.initializer}
        defined = {name for node in body.node for name in node.output}
        graph = onnx.GraphProto()
        graph.CopyFrom(body)
        for name in sorted(filter(_is_text, _used(body) - own - defined)):
            value = names.get(name)
            numbers = None if value is None else value.content
            if value is not None and numbers is not None:
                shape = [size for size in value.shape or () if isinstance(size, int)]
                graph.initializer.append(
                    onnx.helper.make_tensor(
                        name, onnx.TensorProto.INT64, shape, [int(number) for number in numbers]
                    )
                )
            elif value is not None:
                # The element type does not affect shapes, but it must be a valid one.
                sizes = None
                if value.shape is not None:
                    sizes = [None if isinstance(size, Dim) else size for size in value.shape]
                graph.input.append(
                    onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, sizes)
                )
        imports = [onnx.helper.make_opsetid(d, v) for d, v in self.versions.items()]
        model = onnx.helper.make_model(graph, opset_imports=imports)
        inferred = infer(model, self.versions, self.notes).graph
        result = onnx.GraphProto()
        result.CopyFrom(inferred)
        del result.input[len(body.input) :]
        del result.initializer[len(body.initializer) :]
        return result


def _origin(node: onnx.NodeProto) -> Origin | None:
    if not node.metadata_props:
        return None
    entries = {entry.key: entry.value for entry in node.metadata_props}
    readable = all(map(_is_text, (*entries, *entries.values())))
    return origin_of(entries) if readable else None


def _is_text(name: object) -> bool:
    """Whether a name is text; a name that is not UTF-8 is bytes."""
    return isinstance(name, str)


def _used(graph: onnx.GraphProto) -> set[str]:
    """Names that a graph and its bodies read."""
    used: set[str] = set()
    for node in graph.node:
        used.update(filter(None, node.input))
        for attribute in node.attribute:
            if attribute.HasField("g"):
                used |= _used(attribute.g)
            for body in attribute.graphs:
                used |= _used(body)
    return used


def _operand(name: str, names: Mapping[str, Value]) -> Value | None:
    if not name:
        return None
    value = names.get(name)
    return Value(name, None) if value is None else value


def _declared(
    graph: onnx.GraphProto,
) -> tuple[Mapping[str, FileShape], Mapping[str, str | None]]:
    """Declared shapes and element types by name."""
    shapes: dict[str, FileShape] = {}
    types: dict[str, str | None] = {}
    for entries in (graph.input, graph.value_info, graph.output):
        for entry in entries:
            shape, name = _shape(entry), text(entry.name)
            if shape is not None or name not in shapes:
                shapes[name] = shape
            types[name] = dtype_name(entry.type.tensor_type.elem_type)
    return shapes, types


def _shape(entry: onnx.ValueInfoProto) -> FileShape:
    tensor = entry.type.tensor_type
    if not entry.type.HasField("tensor_type") or not tensor.HasField("shape"):
        return None
    return tuple(_size(dim) for dim in tensor.shape.dim)


def _size(dim: onnx.TensorShapeProto.Dimension) -> FileSize:
    if dim.HasField("dim_value"):
        # Some exporters write a dynamic size as -1.
        return dim.dim_value if dim.dim_value >= 0 else None
    return text(dim.dim_param) or None


def _attributes(
    node: onnx.NodeProto,
) -> tuple[dict[str, Any], list[tuple[str, onnx.GraphProto]]]:
    """Attributes as Python values, and the bodies with their names."""
    import onnx

    plain: dict[str, Any] = {}
    bodies: list[tuple[str, onnx.GraphProto]] = []
    kinds = onnx.AttributeProto
    for attribute in node.attribute:
        name = text(attribute.name)
        if attribute.type == kinds.GRAPH:
            bodies.append((name, attribute.g))
        elif attribute.type == kinds.GRAPHS:
            bodies += [(f"{name}_{i}", body) for i, body in enumerate(attribute.graphs)]
        elif attribute.type == kinds.INT:
            plain[name] = attribute.i
        elif attribute.type == kinds.FLOAT:
            plain[name] = attribute.f
        elif attribute.type == kinds.STRING:
            plain[name] = attribute.s.decode("utf-8", "replace")
        elif attribute.type == kinds.INTS:
            plain[name] = tuple(attribute.ints)
        elif attribute.type == kinds.FLOATS:
            plain[name] = tuple(attribute.floats)
        elif attribute.type == kinds.TENSOR and node.op_type == "ConstantOfShape":
            plain.update(_fill(name, attribute.t))
    return plain, bodies


def _fill(name: str, tensor: onnx.TensorProto) -> dict[str, int | float]:
    """The value of a ConstantOfShape, if it is one number."""
    import onnx

    if math.prod(tensor.dims) == 1 and tensor.data_location != onnx.TensorProto.EXTERNAL:
        try:
            (number,) = onnx.numpy_helper.to_array(tensor).flat
            return {name: float(number) if tensor.data_type in (1, 11) else int(number)}
        except (ValueError, TypeError, KeyError, OverflowError):
            pass  # malformed, or not a number: the shape does not need it
    return {}


def _line(error: BaseException) -> str:
    """The first line of another package's message, cut to a readable length."""
    text = next(iter(str(error).strip().splitlines()), type(error).__name__)
    return text if len(text) <= 160 else text[:157] + "..."
