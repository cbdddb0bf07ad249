"""The XML of an IR as records: layers, ports and edges, each with its position in the file.

The XML is read once, without document types and entities. An edit needs the byte offsets: it
replaces bytes and keeps the others. This module does not interpret ops.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn
from xml.sax import SAXException
from xml.sax.handler import ContentHandler, LexicalHandler, property_lexical_handler

from ....errors import ModelError, printable

#: Weights are in the .bin; 100,000 layers take about 100 MB of text.
MAX_FILE_BYTES = 1 << 29
#: A body is three elements deeper than the layer that runs it; models nest two or three.
MAX_DEPTH = 100
#: Ids, offsets and sizes are 64-bit numbers in OpenVINO.
_INTEGER = re.compile(r"\s*[+-]?\d{1,20}\s*", re.ASCII)
#: Most characters of a name in a message.
_SHOWN = 120


@dataclass(slots=True)
class Port:
    """An input or output of a layer.

    Attributes:
        id: its id in edges.
        precision: its element type as the file writes it ("FP32"), or "".
        dims: its sizes as text, outermost first; none for a scalar *and* for an unknown rank.
        names: the tensor's names.
        comments: the comments in it.
    """

    id: int
    precision: str
    names: str
    dims: list[str] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Edge:
    """An edge from an output port to an input port, with its position in the file."""

    from_layer: int
    from_port: int
    to_layer: int
    to_port: int
    start: int
    stop: int = 0


@dataclass(slots=True)
class Entry:
    """A line of a port_map, or of back_edges."""

    tag: str
    attributes: Mapping[str, str]


@dataclass(slots=True)
class Layer:
    """A layer of the file.

    Attributes:
        id, name, type, version: its attributes.
        data: the attributes of its data element.
        inputs, outputs: its ports in the file's order, the order of operands.
        bodies: the nets that it runs, by the element's name.
        maps: port maps and back edges, by the element's name.
        start, stop: its first byte, and the first after it.
    """

    id: int
    name: str
    type: str
    version: str
    start: int
    stop: int = 0
    data: dict[str, str] = field(default_factory=dict)
    inputs: list[Port] = field(default_factory=list)
    outputs: list[Port] = field(default_factory=list)
    bodies: dict[str, Net] = field(default_factory=dict)
    maps: dict[str, list[Entry]] = field(default_factory=dict)

    @property
    def shown(self) -> str:
        """Its name in messages."""
        name = self.name if len(self.name) <= _SHOWN else f"{self.name[:_SHOWN]}..."
        return f"layer {self.id} {printable(name)!r} ({printable(self.type[:_SHOWN])})"


@dataclass(slots=True)
class Net:
    """A net, or a body.

    Attributes:
        version: the IR's version; 0 for a body.
        layers, edges: in the file's order.
        layers_stop, edges_stop: the end of the element that holds them; None without one.
        feeds: the answer of :func:`~.reader.connected`, once asked.
    """

    name: str
    version: int
    layers: list[Layer] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    layers_stop: int | None = None
    edges_stop: int | None = None
    feeds: list[list[tuple[int, int]]] | None = None


def refuse(file: Path, words: str) -> NoReturn:
    """Raises a ModelError about a file."""
    raise ModelError(f"{file}: {words}") from None


def integer(file: Path, text: str | None, what: str | Callable[[], str]) -> int:
    """A number of the file; `what` is its name in a message, or makes that name."""
    if text is not None and len(text) < 19 and text.isascii() and text.isdigit():
        return int(text)
    if not isinstance(what, str):
        what = what()
    if text is None or _INTEGER.fullmatch(text) is None:
        problem = (
            "is missing" if text is None else f"is {printable(text[:40])!r}, which is no number"
        )
        refuse(file, f"{what} {problem}")
    number = int(text)
    if not -(2**63) <= number < 2**63:
        refuse(file, f"{what} is {number}, beyond 64 bits")
    return number


def parse(file: Path, data: bytes, fragment: bool = False) -> Net:
    """The net in a file's bytes.

    Args:
        file: for messages.
        data: the XML.
        fragment: layers alone, without ids of their own and with ports numbered anyhow.

    Raises:
        ModelError: it is not XML, has a document type, or is not an IR; says what and where.
    """
    try:
        from defusedxml.common import DefusedXmlException
        from defusedxml.expatreader import DefusedExpatParser
    except ImportError:
        raise ModelError(
            "reading OpenVINO IR files needs the defusedxml package: pip install defusedxml"
        ) from None
    parser = DefusedExpatParser(forbid_dtd=True)
    builder = _Builder(file, fragment, parser)
    parser.setContentHandler(builder)
    if fragment:
        parser.setProperty(property_lexical_handler, builder)
    try:
        parser.feed(data)
        parser.close()
    except DefusedXmlException:
        refuse(file, "it has a document type or entities, which no IR has; they are not read")
    except SAXException as error:
        line = " ".join(str(error.getMessage()).split())
        where = getattr(error, "getLineNumber", lambda: None)()
        refuse(file, f"not well-formed XML, line {where}: {printable(line)}")
    except (LookupError, UnicodeError, ValueError) as error:
        if isinstance(error, ModelError):
            raise
        refuse(file, f"its XML cannot be decoded: {printable(' '.join(str(error).split()))}")
    if builder.net is None:
        refuse(file, "it holds no net")
    return builder.net


#: The elements that hold layers of a body, and their port maps.
BODIES: Mapping[str, str] = {
    "body": "port_map",
    "then_body": "then_port_map",
    "else_body": "else_port_map",
}
_MAPS = frozenset((*BODIES.values(), "back_edges"))


class _Builder(ContentHandler, LexicalHandler):
    """Handles the parser's events; the stack has an entry per relevant open element."""

    def __init__(self, file: Path, fragment: bool, parser: Any) -> None:
        super().__init__()
        self.file = file
        self.fragment = fragment
        self.parser = parser
        self.net: Net | None = None
        self.stack: list[tuple[str, Any]] = []
        self.skipped = 0
        self.depth = 0
        self.text: list[str] | None = None
        self.starts: dict[str, Callable[[str, Any, Any], tuple[str, Any] | None]] = {
            "net": self._in_net,
            "layers": self._in_layers,
            "layer": self._in_layer,
            "ports": self._in_ports,
            "port": self._in_port,
            "edges": self._in_edges,
            "map": self._in_map,
        }

    @property
    def offset(self) -> int:
        """The parser's position in bytes."""
        return int(self.parser._parser.CurrentByteIndex)

    def skippedEntity(self, name: str) -> None:  # noqa: N802 - SAX's name
        """An undefined entity."""
        refuse(self.file, f"the entity {printable(name[:_SHOWN])!r} is not defined")

    def comment(self, text: str) -> None:
        """A comment; a port keeps its comments."""
        for kind, holder in reversed(self.stack):
            if kind == "port":
                holder.comments.append(text)
                return

    def characters(self, text: str) -> None:
        """Text; only a size's text is used."""
        if self.text is not None:
            self.text.append(text)

    def startElement(self, tag: str, attributes: Any) -> None:  # noqa: N802 - SAX's name
        """An element begins."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            refuse(self.file, f"elements are nested more than {MAX_DEPTH} deep")
        if self.skipped:
            self.skipped += 1
            return
        if not self.stack:
            self._root(tag, attributes)
            return
        kind, holder = self.stack[-1]
        begin = self.starts.get(kind)
        opened = None if begin is None else begin(tag, attributes, holder)
        if opened is None:
            self.skipped = 1
        else:
            self.stack.append(opened)

    def endElement(self, tag: str) -> None:  # noqa: N802 - SAX's name
        """An element ends; the parser is at its end tag, or at its start if it has none."""
        self.depth -= 1
        if self.skipped:
            self.skipped -= 1
            return
        kind, holder = self.stack.pop()
        if kind == "dim":
            holder.dims.append("".join(self.text or ()).strip())
            self.text = None
        elif kind in ("layer", "edge"):
            holder.stop = self.offset
        elif kind == "layers":
            holder.layers_stop = self.offset
        elif kind == "edges":
            holder.edges_stop = self.offset

    # Elements by their parent.

    def _root(self, tag: str, attributes: Any) -> None:
        if self.fragment and tag == "layers":
            self.net = Net("", 0)
            self.stack.append(("layers", self.net))
            return
        if tag != "net":
            message = f"its root is <{printable(tag[:_SHOWN])}>; an IR's is <net>"
            refuse(self.file, message)
        version = integer(self.file, attributes.get("version"), "the net's version")
        self.net = Net(attributes.get("name") or "", version)
        self.stack.append(("net", self.net))

    def _in_net(self, tag: str, attributes: Any, net: Net) -> tuple[str, Any] | None:
        return (tag, net) if tag in ("layers", "edges") else None

    def _in_layers(self, tag: str, attributes: Any, net: Net) -> tuple[str, Any] | None:
        if tag != "layer":
            return None
        position = len(net.layers)
        kind = attributes.get("type")
        name = attributes.get("name") or ""
        if kind is None:
            refuse(self.file, f"layer {printable(name[:_SHOWN])!r} has no type")
        id_text = attributes.get("id")
        if self.fragment and id_text is None:
            number = position
        else:
            what = functools.partial("the id of layer {!r}".format, printable(name[:_SHOWN]))
            number = integer(self.file, id_text, what)
        version = attributes.get("version") or ""
        layer = Layer(number, name or f"{kind}_{number}", kind, version, self.offset)
        net.layers.append(layer)
        return "layer", layer

    def _in_layer(self, tag: str, attributes: Any, layer: Layer) -> tuple[str, Any] | None:
        if tag == "data":
            layer.data = layer.data or dict(attributes.items())
            return "data", layer
        if tag in ("input", "output"):
            return "ports", layer.inputs if tag == "input" else layer.outputs
        if tag in BODIES:
            if tag in layer.bodies:
                refuse(self.file, f"{layer.shown}: it has two bodies called {tag}")
            layer.bodies[tag] = Net("", 0)
            return "net", layer.bodies[tag]
        if tag in _MAPS:
            return "map", layer.maps.setdefault(tag, [])
        return None

    def _in_ports(self, tag: str, attributes: Any, ports: list[Port]) -> tuple[str, Any] | None:
        if tag != "port":
            return None
        id_text = attributes.get("id")
        if self.fragment and id_text is None:
            number = len(ports)
        else:
            number = integer(self.file, id_text, lambda: f"{self._layer()}: the id of a port")
        port = Port(number, attributes.get("precision") or "", attributes.get("names") or "")
        ports.append(port)
        return "port", port

    def _in_port(self, tag: str, attributes: Any, port: Port) -> tuple[str, Any] | None:
        if tag != "dim":
            return None
        self.text = []
        return "dim", port

    def _in_edges(self, tag: str, attributes: Any, net: Net) -> tuple[str, Any] | None:
        if tag != "edge":
            return None
        source, out, target, into = (
            integer(self.file, attributes.get(name), f"an edge's {name}")
            for name in ("from-layer", "from-port", "to-layer", "to-port")
        )
        edge = Edge(source, out, target, into, self.offset)
        net.edges.append(edge)
        return "edge", edge

    def _in_map(self, tag: str, attributes: Any, entries: list[Entry]) -> tuple[str, Any]:
        entries.append(Entry(tag, dict(attributes.items())))
        return "entry", None

    def _layer(self) -> str:
        for kind, holder in reversed(self.stack):
            if kind == "layer":
                return str(holder.shown)
        return "a layer"
