"""IR files of versions 10 and 11 as neutral graphs.

Parameters are the graph's inputs, constants are values, Results its outputs. Every other layer is a
node, with the layer's position in the file as place. OpenVINO ignores the sizes at a file's ports
and infers them. Here they are the declared sizes, which the flow of sizes checks. A port without
sizes is a scalar or of unknown rank, which the file does not distinguish: its rank is unknown until
the flow finds it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ....errors import Misfit, printable
from ....sizes import MAX_ELEMENTS
from ....sizes.dim import plain
from ....sizes.parse import read as read_size
from ....sizes.parse import unnamed
from ...ir.files import content
from ...ir.graph import Body, FileShape, FileSize, Graph, Node, Place, Value
from ...ir.readings import once_per_file
from ..onnx.reader import flattened
from .fragments import is_fragment, listed, whole
from .markup import BODIES, MAX_FILE_BYTES, Edge, Entry, Layer, Net, Port, integer, parse, refuse
from .opsets import NEWEST, NONDETERMINISTIC, canonical
from .tensors import Weights, element_type

#: Versions of IR whose layers are defined by operation sets.
VERSIONS = (10, 11)
_OPSET = re.compile(r"opset(\d{1,4})", re.ASCII)
#: One of the names of a tensor; a comma in a name is escaped.
_NAMES = re.compile(r"(?:\\.|[^,\\])+")
_INT = re.compile(r"[+-]?\d{1,19}", re.ASCII)
_FLOAT = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,4})?|[+-]?(?:inf|nan)", re.ASCII)
#: Longest text that is read as a list of numbers; longer text stays text.
_LONGEST = 100_000


def read(path: Path) -> Graph:
    """The graph of an .xml file, with the .bin beside it if there is one.

    Raises:
        ModelError: it is not a valid IR; names the file, the layer and the reason.
    """
    file = Path(path)
    return graph_of(file, contents(file))


@once_per_file
def graph_of(file: Path, data: bytes) -> Graph:
    """The graph in a file's bytes."""
    net, fragment = parsed(file, data)
    with Weights(file, weights_of(file)) as weights:
        reader = _IrReader(file, weights, fragment)
        main = reader.body("", net, (), ())
    nodes = tuple(flattened(main.nodes))
    version = max((node.version for node in nodes if node.domain == "openvino"), default=1)
    outputs = tuple(value for value in main.outputs if value is not None)
    notes = tuple(dict.fromkeys(reader.notes))
    versions = MappingProxyType({"openvino": version})
    return Graph(str(file), "openvino", version, main.inputs, nodes, notes, outputs, versions)


def weights_of(file: Path) -> Path:
    """The .bin of a file."""
    return file.with_suffix(".bin")


def contents(file: Path) -> bytes:
    """The bytes of an .xml file.

    Raises:
        ModelError: the file does not exist, is too large, empty, or not a regular file.
    """
    return content(file, ".xml", MAX_FILE_BYTES, "the text of an IR has no weights in it")


@once_per_file
def parsed(file: Path, data: bytes) -> tuple[Net, bool]:
    """The net in a file's bytes, and whether they are layers without a net."""
    if is_fragment(data):
        net = parse(file, whole(data), fragment=True)
        if not net.layers:
            refuse(file, "it holds no layer")
        return net, True
    net = parse(file, data)
    if net.version not in VERSIONS:
        advice = "convert the model again with a current OpenVINO"
        refuse(file, f"IR version {net.version}; versions 10 and 11 are read. {advice}")
    return net, False


def ordered(file: Path, net: Net, feeds: Sequence[Sequence[tuple[int, int]]]) -> list[int]:
    """Positions of layers, each after those that feed it; otherwise in the file's order."""
    order: list[int] = []
    state = bytearray(len(net.layers))  # 1: being visited, 2: placed
    for root in range(len(net.layers)):
        stack: list[tuple[int, Iterator[tuple[int, int]]]] = []
        if not state[root]:
            state[root] = 1
            stack.append((root, iter(feeds[root])))
        while stack:
            position, rest = stack[-1]
            feeder = next(rest, None)
            if feeder is None:
                stack.pop()
                state[position] = 2
                order.append(position)
            elif state[feeder[0]] == 1:
                refuse(file, f"{net.layers[feeder[0]].shown}: it feeds itself")
            elif not state[feeder[0]]:
                state[feeder[0]] = 1
                stack.append((feeder[0], iter(feeds[feeder[0]])))
    return order


def connected(file: Path, net: Net) -> list[list[tuple[int, int]]]:
    """For each layer, for each input port: the position of the layer that feeds it, and its port.

    Raises:
        ModelError: an id occurs twice, an edge has no target, an input has no edge or two.
    """
    if net.feeds is not None:
        return net.feeds
    layers: dict[int, int] = {}
    for position, layer in enumerate(net.layers):
        if layers.setdefault(layer.id, position) != position:
            refuse(file, f"{layer.shown}: another layer has its id")
        ids = Counter(port.id for port in (*layer.inputs, *layer.outputs))
        twice = next((number for number, count in ids.items() if count > 1), None)
        if twice is not None:
            refuse(file, f"{layer.shown}: it has port {twice} twice")
    inputs = [{port.id: k for k, port in enumerate(layer.inputs)} for layer in net.layers]
    outputs = [{port.id: k for k, port in enumerate(layer.outputs)} for layer in net.layers]
    sources: list[list[tuple[int, int] | None]] = [[None] * len(ports) for ports in inputs]
    for edge in net.edges:
        source, port = _end(file, net, layers, outputs, edge, True)
        target, into = _end(file, net, layers, inputs, edge, False)
        if sources[target][into] is not None:
            refuse(file, f"{net.layers[target].shown}: two edges lead to port {edge.to_port}")
        sources[target][into] = source, port
    feeds: list[list[tuple[int, int]]] = []
    for layer, ends in zip(net.layers, sources, strict=True):
        feeds.append([end for end in ends if end is not None])
        if len(feeds[-1]) < len(ends):
            port = layer.inputs[ends.index(None)].id
            refuse(file, f"{layer.shown}: no edge leads to its port {port}")
    net.feeds = feeds
    return feeds


def _end(
    file: Path,
    net: Net,
    layers: Mapping[int, int],
    ports: Sequence[Mapping[int, int]],
    edge: Edge,
    first: bool,
) -> tuple[int, int]:
    """One end of an edge as positions of a layer and of a port of it."""
    layer, port = (edge.from_layer, edge.from_port) if first else (edge.to_layer, edge.to_port)
    words = f"the edge {edge.from_layer}:{edge.from_port} to {edge.to_layer}:{edge.to_port}"
    position = layers.get(layer)
    if position is None:
        refuse(file, f"{words}: there is no layer {layer}")
    index = ports[position].get(port)
    if index is None:
        side = "output" if first else "input"
        refuse(file, f"{words}: {net.layers[position].shown} has no such {side} port")
    return position, index


class _IrReader:
    """Builds values and nodes from the records of one file."""

    def __init__(self, file: Path, weights: Weights, fragment: bool) -> None:
        self.file = file
        self.weights = weights
        self.fragment = fragment
        self.notes: list[str] = []
        self.sizes: Counter[str] = Counter()

    def body(self, key: str, net: Net, place: Place, scope: tuple[str, ...]) -> Body:
        """Reads a net, or a body named `key`."""
        feeds = self._fed_by_none(net) if self.fragment else connected(self.file, net)
        values: dict[tuple[int, int], Value] = {}
        inputs: dict[int, Value] = {}
        outputs: dict[int, Value] = {}
        nodes: list[Node] = []
        order = ordered(self.file, net, feeds)
        for position in order:
            layer = net.layers[position]
            op = canonical(layer.type)
            operands = tuple(self._fed(net, values, end) for end in feeds[position])
            if self.fragment:
                operands = self._ports_as_inputs(position, layer, inputs)
            if op == "Result":
                outputs[position] = self._only(layer, operands)
                continue
            results: tuple[Value, ...]
            if op == "Parameter":
                results = (self._parameter(layer),)
                inputs[position] = results[0]
            elif op == "Constant":
                results = (self.weights.constant(layer.name, layer, self._counts(layer)),)
                self._missing(results[0])
            else:
                node = self._node(layer, (*place, position), operands, scope)
                nodes.append(node)
                results = node.outputs
            values.update(((position, k), value) for k, value in enumerate(results))
        if self.fragment:
            outputs = dict(enumerate(value for node in nodes for value in node.outputs))
        ordered_inputs = tuple(inputs[position] for position in sorted(inputs))
        handed = tuple(outputs[position] for position in sorted(outputs))
        return Body(key, ordered_inputs, handed, tuple(nodes))

    def _fed(
        self, net: Net, values: Mapping[tuple[int, int], Value], end: tuple[int, int]
    ) -> Value:
        """The tensor at an output port; some layers have one tensor for all their ports."""
        value = values.get(end)
        if value is None:
            layer = net.layers[end[0]]
            refuse(self.file, f"{layer.shown}: nothing comes out of its port {end[1]}")
        return value

    def _fed_by_none(self, net: Net) -> list[list[tuple[int, int]]]:
        return [[] for _ in net.layers]

    def _only(self, layer: Layer, operands: Sequence[Value]) -> Value:
        if len(operands) != 1:
            refuse(self.file, f"{layer.shown}: it has {len(operands)} inputs; a Result has one")
        return operands[0]

    def _missing(self, value: Value) -> None:
        if value.missing is not None:
            self.notes.append(f"the data of {value.name!r} is missing: {value.missing!r}")

    # Nodes.

    def _node(
        self, layer: Layer, place: Place, operands: tuple[Value, ...], scope: tuple[str, ...]
    ) -> Node:
        domain, version = self._opset(layer)
        attributes = {name: attribute(text) for name, text in layer.data.items()}
        bodies = []
        for key, net in layer.bodies.items():
            inner = self.body(key, net, (*place, key), (*scope, layer.name, key))
            handed, more = self._mapped(layer, key, net, inner)
            bodies.append(handed)
            attributes.update(more)
        constant = (
            bool(operands)
            and all(value.constant for value in operands)
            and not bodies
            and canonical(layer.type) not in NONDETERMINISTIC
        )
        outputs = tuple(self._output(layer, port, constant) for port in layer.outputs)
        return Node(
            layer.name, layer.type, domain, version, operands, outputs, attributes, scope,
            tuple(bodies), place,
        )  # fmt: skip

    def _opset(self, layer: Layer) -> tuple[str, int]:
        """Domain and version of a layer's operation set."""
        if self.fragment and not layer.version:
            return "openvino", NEWEST
        match = _OPSET.fullmatch(layer.version)
        if match is not None:
            return "openvino", int(match[1])
        return layer.version or "(no operation set)", 1

    def _output(self, layer: Layer, port: Port, constant: bool) -> Value:
        name = layer.name if len(layer.outputs) == 1 else f"{layer.name}.{port.id}"
        shape = self._port_shape(layer, port)
        if not shape and not self.fragment:
            shape = None
        kind = element_type(port.precision)
        dtype = None if kind is None else kind.dtype
        aliases = tuple(re.sub(r"\\(.)", r"\1", word) for word in _NAMES.findall(port.names))
        return Value(name, shape, constant, declared=shape, dtype=dtype, aliases=aliases)

    def _mapped(self, layer: Layer, key: str, net: Net, inner: Body) -> tuple[Body, dict[str, Any]]:
        """The body with its outputs in the node's order, and the attributes of the mapping.

        `<body>_inputs` has the positions of operands by the body's inputs, `<body>_outputs` the
        positions of the body's outputs by the node's outputs; −1 means none.
        """
        positions = {port.id: k for k, port in enumerate(layer.inputs)}
        handed = {port.id: k for k, port in enumerate(layer.outputs)}
        parameters = [
            inner_layer.id
            for inner_layer in net.layers
            if canonical(inner_layer.type) == "Parameter"
        ]
        results = [
            inner_layer.id for inner_layer in net.layers if canonical(inner_layer.type) == "Result"
        ]
        feeds = [-1] * len(parameters)
        gives = [-1] * len(layer.outputs)
        inside = {number: k for k, number in enumerate(parameters)}
        ends = {number: k for k, number in enumerate(results)}
        for entry in layer.maps.get(BODIES[key], ()):
            port = self._mapping(layer, entry, "external_port_id")
            number = self._mapping(layer, entry, "internal_layer_id")
            mine, theirs = (positions, inside) if entry.tag == "input" else (handed, ends)
            if number not in theirs or (port != -1 and port not in mine):
                refuse(
                    self.file,
                    f"{layer.shown}: its {BODIES[key]} joins port {port} and layer {number} of "
                    f"the {key}; one of them is not there",
                )
            if port != -1 and entry.tag == "input":
                feeds[theirs[number]] = mine[port]
            elif port != -1:
                gives[mine[port]] = theirs[number]
        attributes = {f"{key}_inputs": tuple(feeds), f"{key}_outputs": tuple(gives)}
        return inner, attributes

    def _mapping(self, layer: Layer, entry: Entry, name: str) -> int:
        return integer(self.file, entry.attributes.get(name), f"{layer.shown}: a mapping's {name}")

    # Values.

    def _parameter(self, layer: Layer) -> Value:
        text = layer.data.get("shape")
        sizes = _parts(text or "")
        if text is None and layer.outputs:
            sizes = layer.outputs[0].dims
        shape: FileShape = None
        if sizes != ["..."]:
            shape = tuple(self._size(layer, k, size) for k, size in enumerate(sizes))
        kind = element_type(layer.data.get("element_type", ""))
        if kind is None and layer.outputs:
            kind = element_type(layer.outputs[0].precision)
        dtype = None if kind is None else kind.dtype
        return Value(layer.name, shape, declared=shape, dtype=dtype)

    def _counts(self, layer: Layer) -> tuple[int, ...]:
        """The shape of a Const layer, which has only numbers."""
        text = layer.data.get("shape")
        if text is None:
            text = ",".join(layer.outputs[0].dims) if layer.outputs else ""
        shape = tuple(integer(self.file, part, f"{layer.shown}: a size") for part in _parts(text))
        if any(size < 0 for size in shape):
            refuse(self.file, f"{layer.shown}: a constant of shape {printable(text[:80])!r}")
        return shape

    def _port_shape(self, layer: Layer, port: Port) -> FileShape:
        """A port's sizes; an open size is −1, since ports have no bounds."""
        sizes = []
        for text in port.dims:
            size = self._size(layer, None, text)
            sizes.append(size if isinstance(size, int) else None)
        return tuple(sizes)

    def _size(self, layer: Layer, axis: int | None, text: str) -> FileSize:
        """A size: a number, None if unknown, or a new symbol for a size with bounds."""
        if text.isascii() and text.isdigit() and len(text) < 20:
            size = int(text)
            if size <= MAX_ELEMENTS:
                return size
        if text in ("-1", "?", "..", "0.."):
            return None
        readable = len(text) < 80 and not re.search(r"[^\d\s.]", text)
        try:
            extent = read_size(text) if readable else None
        except (Misfit, ValueError):
            extent = None
        if extent is None:
            refuse(self.file, f"{layer.shown}: {printable(text[:40])!r} is no size")
        if not isinstance(extent, tuple):
            return plain(extent)
        name = f"{printable(layer.name)}[{axis}]"
        self.sizes[name] += 1
        if self.sizes[name] > 1:
            name = f"{name}'{self.sizes[name]}"
        return unnamed(*extent, name)

    def _ports_as_inputs(
        self, position: int, layer: Layer, inputs: dict[int, Value]
    ) -> tuple[Value, ...]:
        """The operands of a layer of a fragment: constants that comments list, else inputs."""
        values = []
        for k, port in enumerate(layer.inputs):
            shape = self._port_shape(layer, port)
            counts = [size for size in shape or () if isinstance(size, int)]
            count = counts[0] if len(counts) == 1 and len(shape or ()) == 1 else None
            numbers = listed(port, count)
            if numbers is None and canonical(layer.type) == "Broadcast" and k == 1:
                numbers = self._target(layer, count)
            kind = element_type(port.precision)
            dtype = None if kind is None else kind.dtype
            if numbers is not None:
                dtype = dtype or "int64"
            value = Value(
                f"{layer.name}.{k}",
                shape,
                numbers is not None,
                numbers,
                declared=shape,
                dtype=dtype,
            )
            if numbers is None:
                inputs[position * (1 << 32) + k] = value
            values.append(value)
        return tuple(values)

    def _target(self, layer: Layer, count: int | None) -> tuple[int, ...] | None:
        """A Broadcast's target, from its output's sizes."""
        sizes = self._port_shape(layer, layer.outputs[0]) if layer.outputs else None
        numbers = tuple(size for size in sizes or () if isinstance(size, int))
        return numbers if sizes is not None and len(numbers) == len(sizes) == count else None


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")] if text.strip() else []


def attribute(text: str) -> Any:
    """An attribute as a Python value: a number, a truth, a list of numbers, or text.

    >>> attribute("1, 2"), attribute("0.5"), attribute("true"), attribute("numpy"), attribute("")
    ((1, 2), 0.5, True, 'numpy', '')
    """
    if len(text) > _LONGEST:
        return text
    if text in ("true", "false"):
        return text == "true"
    parts = _parts(text)
    if parts and all(map(_INT.fullmatch, parts)):
        numbers: tuple[Any, ...] = tuple(map(int, parts))
    elif parts and all(map(_FLOAT.fullmatch, parts)):
        numbers = tuple(map(float, parts))
    else:
        return text
    return numbers if len(numbers) > 1 else numbers[0]
