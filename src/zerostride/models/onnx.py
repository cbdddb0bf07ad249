"""ONNX files as neutral graphs. The onnx package reads, inlines functions and infers shapes.

A file is hostile input: it is bounded in size, external data is looked for but never opened, and
whatever the package raises becomes one line that names the file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from ..errors import ModelError
from .graph import FileShape, FileSize, Graph, Node, Value

if TYPE_CHECKING:
    import onnx

#: Protocol buffers end at 2 GiB; weights beyond that live in external files.
MAX_FILE_BYTES = 2**31 - 1
#: Integer constants up to this many elements are kept: shapes, axes, repeats.
MAX_CONTENT = 64
#: Ops whose result is not constant though they have no input that changes.
_NONDETERMINISTIC = frozenset(
    {"RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Multinomial"}
)


def read_onnx(path: str | Path) -> Graph:
    """The graph of an .onnx file, shapes inferred by the onnx package.

    Raises:
        ModelError: if the file cannot be read as an ONNX model; says why.
    """
    file = Path(path)
    notes: list[str] = []
    model = _infer(_inline(_parse(file), file, notes), file, notes)
    versions = {entry.domain: entry.version for entry in model.opset_import}
    reader = _Reader(file, versions, notes)
    inputs = reader.read(model.graph, {}, ())
    version = versions.get("", versions.get("ai.onnx", 1))
    return Graph(str(file), "onnx", version, inputs, tuple(reader.nodes), tuple(notes))


def _parse(file: Path) -> onnx.ModelProto:
    try:
        import onnx
        from google.protobuf.message import DecodeError
    except ImportError:
        raise ModelError(
            "reading ONNX files needs the onnx package: pip install 'zerostride[onnx]'"
        ) from None
    try:
        size = file.stat().st_size
        if size > MAX_FILE_BYTES:
            raise ModelError(f"{file}: {size} bytes; an ONNX file ends at 2 GiB")
        data = file.read_bytes()
    except OSError as error:
        raise ModelError(f"{file}: {error.strerror or error}") from None
    try:
        model = onnx.load_model_from_string(data)
    except (DecodeError, ValueError, RuntimeError) as error:
        raise ModelError(
            f"{file}: not a readable ONNX model; truncated, or another format? ({_line(error)})"
        ) from None
    if not model.opset_import and not model.graph.node:
        raise ModelError(f"{file}: not an ONNX model: it has neither an opset nor a node")
    return model


def _inline(model: onnx.ModelProto, file: Path, notes: list[str]) -> onnx.ModelProto:
    """The model with calls of its own functions replaced by their bodies."""
    if not model.functions:
        return model
    import onnx.inliner

    try:
        return onnx.inliner.inline_local_functions(model)
    except (RuntimeError, ValueError, TypeError, onnx.checker.ValidationError) as error:
        notes.append(f"functions were not inlined, their bodies are not judged: {_line(error)}")
        return model


def _infer(model: onnx.ModelProto, file: Path, notes: list[str]) -> onnx.ModelProto:
    import onnx.shape_inference

    try:
        return onnx.shape_inference.infer_shapes(model, data_prop=True)
    except (onnx.shape_inference.InferenceError, RuntimeError, ValueError, TypeError) as error:
        notes.append(f"onnx's shape inference stopped, shapes may be unknown: {_line(error)}")
        return model


class _Reader:
    """Walks a graph and its bodies, names in scope mapped to values."""

    def __init__(self, file: Path, versions: Mapping[str, int], notes: list[str]) -> None:
        self.file = file
        self.versions = versions
        self.notes = notes
        self.nodes: list[Node] = []

    def read(
        self, graph: onnx.GraphProto, outer: Mapping[str, Value], scope: tuple[str, ...]
    ) -> tuple[Value, ...]:
        """Appends the graph's nodes, and returns its inputs."""
        names = dict(outer)
        shapes = _declared(graph)
        for tensor in graph.initializer:
            names[tensor.name] = self._constant(tensor)
        for sparse in graph.sparse_initializer:
            dims = tuple(sparse.dims)
            names[sparse.values.name] = Value(sparse.values.name, dims, constant=True)
        inputs = []
        for entry in graph.input:
            if entry.name not in names or entry.name in outer:
                names[entry.name] = Value(entry.name, shapes.get(entry.name))
                inputs.append(names[entry.name])
        for position, node in enumerate(graph.node):
            self._node(node, position, names, shapes, scope)
        return tuple(inputs)

    def _node(
        self,
        node: onnx.NodeProto,
        position: int,
        names: dict[str, Value],
        shapes: Mapping[str, FileShape],
        scope: tuple[str, ...],
    ) -> None:
        name = node.name or f"{node.op_type}_{position}"
        operands = tuple(_operand(entry, names) for entry in node.input)
        attributes, bodies = _attributes(node)
        outputs = tuple(
            self._output(entry, node, operands, shapes, bool(bodies)) for entry in node.output
        )
        names.update((value.name, value) for value in outputs if value.name)
        domain = "" if node.domain == "ai.onnx" else node.domain
        version = self.versions.get(node.domain, self.versions.get("", 1))
        self.nodes.append(
            Node(name, node.op_type, domain, version, operands, outputs, attributes, scope)
        )
        for key, body in bodies:
            inferred = self._infer_body(body, names)
            self.read(inferred, names, (*scope, name, key))

    def _output(
        self,
        name: str,
        node: onnx.NodeProto,
        operands: Sequence[Value | None],
        shapes: Mapping[str, FileShape],
        has_bodies: bool,
    ) -> Value:
        content = None
        shape = shapes.get(name)
        if node.op_type == "Constant" and node.domain in ("", "ai.onnx"):
            made = self._constant_node(name, node)
            if made is not None:
                return made
        constant = (
            not has_bodies
            and node.op_type not in _NONDETERMINISTIC
            and all(value is None or value.constant for value in operands)
        )
        return Value(name, shape, constant, content)

    def _constant_node(self, name: str, node: onnx.NodeProto) -> Value | None:
        for attribute in node.attribute:
            if attribute.name == "value":
                value = self._constant(attribute.t)
                return Value(name, value.shape, True, value.content, value.missing)
            if attribute.name == "value_int":
                return Value(name, (), True, (attribute.i,))
            if attribute.name == "value_ints":
                return Value(name, (len(attribute.ints),), True, tuple(attribute.ints))
            if attribute.name == "value_floats":
                return Value(name, (len(attribute.floats),), True)
            if attribute.name in ("value_float", "value_string"):
                return Value(name, (), True)
        return None

    def _constant(self, tensor: onnx.TensorProto) -> Value:
        import onnx

        shape = tuple(tensor.dims)
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            return Value(tensor.name, shape, True, None, self._missing(tensor))
        content = None
        count = 1
        for size in shape:
            count *= size
        if tensor.data_type in (onnx.TensorProto.INT64, onnx.TensorProto.INT32) and (
            0 <= count <= MAX_CONTENT
        ):
            try:
                content = tuple(int(item) for item in onnx.numpy_helper.to_array(tensor).flat)
            except (ValueError, TypeError):
                self.notes.append(f"constant {tensor.name!r} has not as many numbers as {shape}")
        return Value(tensor.name, shape, True, content)

    def _missing(self, tensor: onnx.TensorProto) -> str | None:
        """The external file's name if it is not where it should be, or leaves the folder."""
        entries = {str(entry.key): str(entry.value) for entry in tensor.external_data}
        location = entries.get("location", "")
        relative = PurePosixPath(location)
        if not location or relative.is_absolute() or ".." in relative.parts:
            self.notes.append(
                f"the constant {tensor.name!r} points outside the model's folder: {location!r}"
            )
            return location or "(no name)"
        if not (self.file.parent / relative).is_file():
            self.notes.append(f"the data of {tensor.name!r} is missing: {location}")
            return location
        return None

    def _infer_body(self, body: onnx.GraphProto, names: Mapping[str, Value]) -> onnx.GraphProto:
        """The body with shapes inferred; onnx's inference leaves bodies without any."""
        import onnx.helper
        import onnx.shape_inference

        own = {entry.name for entry in body.input} | {t.name for t in body.initializer}
        made = {name for node in body.node for name in node.output}
        graph = onnx.GraphProto()
        graph.CopyFrom(body)
        for name in sorted(_used(body) - own - made):
            value = names.get(name)
            if value is not None and value.content is not None:
                shape = [size for size in value.shape or () if isinstance(size, int)]
                graph.initializer.append(
                    onnx.helper.make_tensor(name, onnx.TensorProto.INT64, shape, value.content)
                )
            elif value is not None:
                # The element type does not matter to shapes, but must be one that is there.
                graph.input.append(
                    onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, value.shape)
                )
        imports = [onnx.helper.make_opsetid(d, v) for d, v in self.versions.items()]
        model = onnx.helper.make_model(graph, opset_imports=imports)
        inferred = _infer(model, self.file, self.notes).graph
        result = onnx.GraphProto()
        result.CopyFrom(inferred)
        del result.input[len(body.input) :]
        del result.initializer[len(body.initializer) :]
        return result


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
    return names.get(name, Value(name, None)) if name else None


def _declared(graph: onnx.GraphProto) -> dict[str, FileShape]:
    found: dict[str, FileShape] = {}
    for entry in (*graph.input, *graph.value_info, *graph.output):
        shape = _shape(entry)
        if shape is not None or entry.name not in found:
            found[entry.name] = shape
    return found


def _shape(entry: onnx.ValueInfoProto) -> FileShape:
    tensor = entry.type.tensor_type
    if not entry.type.HasField("tensor_type") or not tensor.HasField("shape"):
        return None
    return tuple(_size(dim) for dim in tensor.shape.dim)


def _size(dim: onnx.TensorShapeProto.Dimension) -> FileSize:
    if dim.HasField("dim_value"):
        # Exporters write a dynamic size as -1 now and then.
        return dim.dim_value if dim.dim_value >= 0 else None
    return dim.dim_param or None


def _attributes(
    node: onnx.NodeProto,
) -> tuple[dict[str, Any], list[tuple[str, onnx.GraphProto]]]:
    """Plain attributes as Python values, and the bodies with their names."""
    import onnx

    plain: dict[str, Any] = {}
    bodies: list[tuple[str, onnx.GraphProto]] = []
    kinds = onnx.AttributeProto
    for attribute in node.attribute:
        name = attribute.name
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
    return plain, bodies


def _line(error: BaseException) -> str:
    """The first line of what another package says, cut to a readable length."""
    text = next(iter(str(error).strip().splitlines()), type(error).__name__)
    return text if len(text) <= 160 else text[:157] + "..."
