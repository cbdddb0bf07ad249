"""Translates a rewrite to layers and edges of one net: the main one, or a body."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NoReturn

from ....core.alignment import apply
from ....core.rules import RULES
from ....errors import BroadcastError
from ....ops import TRUTHS, find_op
from ...ir.graph import Node, Value
from ...ir.moves import moved
from ...ir.rewrite import Input, Ref, Rewrite, RewriteStep
from ...ir.site import Kind
from . import splice
from .markup import Layer, Net, refuse
from .opsets import canonical
from .reader import connected
from .shaping import known_sizes, symbols, texts
from .sites import find_site
from .splice import Sizes
from .tensors import one_number, port_name

if TYPE_CHECKING:
    from .editor import Editor

#: An output port: of a layer as the file has it (by position), or of one by its id.
Old = tuple[int, int]
#: The operation set that introduces an op of a step, if it is not the first.
_OPSETS = {"Bitwise": "opset13", "BitwiseLeftShift": "opset15", "BitwiseRightShift": "opset15"}
#: A step that moves or repeats elements: type, operation set, attributes.
_MOVEMENTS: Mapping[str, tuple[str, str, Mapping[str, Any]]] = {
    "reshape": ("Reshape", "opset1", {"special_zero": False}),
    "expand": ("Broadcast", "opset3", {"mode": "numpy"}),
    "tile": ("Tile", "opset1", {}),
    "unsqueeze": ("Unsqueeze", "opset1", {}),
    "squeeze": ("Squeeze", "opset1", {}),
}
#: Kinds whose plan has the result's shape.
_WHOLE = (Kind.ELEMENTWISE, Kind.WHERE, Kind.PRELU, Kind.EXPAND)


@dataclass(frozen=True, slots=True)
class Tensor:
    """An operand or result of a step.

    Attributes:
        shape: its sizes; None for an unknown size.
        precision: its element type as ports write it.
        old: its output port in the file, or
        new: id and port of the new layer that makes it.
        chain: for a constant, the positions of its layers: Converts, then the Const.
    """

    shape: Sizes
    precision: str
    old: Old | None = None
    new: tuple[int, int] | None = None
    chain: tuple[int, ...] = ()


class Scope:
    """The changes of one net."""

    def __init__(self, editor: Editor, net: Net) -> None:
        self.editor = editor
        self.file = editor.file
        self.data = editor.data
        self.net = net
        self.feeds = connected(self.file, net)
        self.sources: dict[tuple[int, int], Tensor] = {}
        self.moved: dict[Old, Tensor] = {}
        self.added: list[tuple[Tensor, tuple[int, int]]] = []
        self.texts: list[tuple[int, int, bytes]] = []
        self.spans: dict[int, list[splice.Element]] = {}
        self.readers = Counter(end for ends in self.feeds for end in ends)
        self.reshaped: set[int] = set()
        self.copies: dict[tuple[int, Sizes], Tensor] = {}
        self.gone: set[int] = set()
        self.next_id = max((layer.id for layer in net.layers), default=0) + 1
        self.blanks = splice.margin(self.data, net.layers[0].start) if net.layers else ""

    # One rewrite.

    def rewrite(self, node: Node, rewrite: Rewrite) -> None:
        """Translates one rewrite; `edits` gives the texts."""
        assert node.place is not None
        position = int(node.place[-1])
        layer = self.net.layers[position]
        selves = [k for k, step in enumerate(rewrite.steps) if step.op == "self"]
        last = len(rewrite.steps) - 1
        if not rewrite.steps or len(selves) > 1:
            self._refuse(layer, f"{len(selves)} of {last + 1} steps are the layer itself")
        hands_over = selves != [last]
        if hands_over and len(layer.outputs) != 1:
            self._refuse(layer, f"it has {len(layer.outputs)} outputs; one could be made anew")
        uses = Counter(ref for step in rewrite.steps for ref in step.operands)
        results: list[Tensor] = []
        before: list[str] = []
        after: list[str] = []
        changes: dict[str, str | None] = {}
        port_names = _names(self.data, layer) if hands_over else None
        if hands_over and selves:
            changes["name"] = self.editor.fresh(f"{layer.name}/inner")
        texts = before
        for k, step in enumerate(rewrite.steps):
            operands = [self._operand(node, ref, results, uses) for ref in step.operands]
            if step.op == "self":
                results.append(self._itself(node, position, step, operands, changes, hands_over))
                texts = after
                continue
            final = k == last
            name = layer.name if final else self.editor.fresh(f"{layer.name}/{step.op}")
            names = port_names if final else None
            tensor, text = self._step(layer, step, operands, name, names, uses)
            results.append(tensor)
            texts.append(text)
        if hands_over:
            self.moved[position, 0] = results[-1]
        self._place(layer, before, after, bool(selves))
        if not selves:
            self.gone.add(position)

    def _operand(
        self, node: Node, ref: Ref, results: Sequence[Tensor], uses: Counter[Ref]
    ) -> Tensor:
        assert node.place is not None
        position = int(node.place[-1])
        if not isinstance(ref, Input):
            tensor = results[ref.step]
            return tensor if uses[ref] == 1 else replace(tensor, chain=())
        if not 0 <= ref.position < len(self.feeds[position]):
            self._refuse(self.net.layers[position], f"it has no operand {ref.position}")
        value = node.inputs[ref.position]
        assert value is not None
        source = self.feeds[position][ref.position]
        precision = self.net.layers[source[0]].outputs[source[1]].precision
        chain = self._chain(source) if uses[ref] == 1 else ()
        return Tensor(known_sizes(value.shape), precision, old=source, chain=chain)

    def _chain(self, source: Old) -> tuple[int, ...]:
        """The layers of a constant, if only Converts that it alone feeds lie between."""
        positions: list[int] = []
        position, out = source
        while canonical(self.net.layers[position].type) == "Convert":
            if self.readers[position, out] > 1 or len(self.feeds[position]) != 1:
                return ()
            positions.append(position)
            position, out = self.feeds[position][0]
        if canonical(self.net.layers[position].type) != "Constant":
            return ()
        if positions and self.readers[position, out] > 1:
            return ()
        return (*positions, position)

    def _step(
        self,
        layer: Layer,
        step: RewriteStep,
        operands: list[Tensor],
        name: str,
        names: str | None,
        uses: Counter[Ref],
    ) -> tuple[Tensor, str]:
        """The result of a step other than the layer itself, and the text of its layers."""
        if step.op == "number":
            return self._number(layer, step, name, names)
        if step.op in _MOVEMENTS:
            (operand,) = operands
            try:
                shape = moved(step, operand.shape)
            except ValueError as error:
                self._refuse(layer, str(error))
            if shape is None:
                self._refuse(layer, f"{step.op} of an operand whose rank is not known")
            if step.op not in ("expand", "tile") and operand.chain and None not in shape:
                constant = self._constant(operand, shape)
                if constant is not None:
                    return constant
            return self._movement(layer, step, operand, shape, name, names)
        try:
            row = find_op(step.op)
        except BroadcastError as error:
            self._refuse(layer, error.detail)
        kind = str(row.names["openvino"][0]) if "openvino" in row.names else None
        if kind is None:
            self._refuse(layer, f"OpenVINO has no op for {row.name}")
        opset = _OPSETS.get(kind) or (
            _OPSETS["Bitwise"] if kind.startswith("Bitwise") else "opset1"
        )
        shapes = tuple(symbols(operand.shape) for operand in operands)
        shape = None
        if None not in shapes:
            try:
                shape = known_sizes(apply(RULES["numpy"], shapes, {}).shape)
            except BroadcastError as error:
                self._refuse(layer, f"{step.op} of {shapes}: {error.detail}")
        truth = row.name in TRUTHS
        precision = "BOOL" if truth else operands[-1].precision
        attributes: Mapping[str, Any] = {"auto_broadcast": "numpy"}
        if row.name == "prelu":
            kind, precision, attributes = "PReLU", operands[0].precision, {}
        return self._new(kind, opset, attributes, operands, precision, shape, name, names)

    def _movement(
        self,
        layer: Layer,
        step: RewriteStep,
        operand: Tensor,
        shape: Sizes,
        name: str,
        names: str | None,
    ) -> tuple[Tensor, str]:
        """A Reshape, Unsqueeze, Squeeze or Broadcast layer and the constant that it reads."""
        numbers = step.axes if step.op in ("unsqueeze", "squeeze") else step.shape
        kind, opset, attributes = _MOVEMENTS[step.op]
        offset, size = self.editor.constant(numbers or ())
        count = len(numbers or ())
        number = self._id()
        described = {"element_type": "i64", "shape": str(count), "offset": offset, "size": size}
        own = self.editor.fresh(f"{name}/{'axes' if step.axes else 'shape'}")
        text = splice.layer(
            number, own, "Const", "opset1", described, (), ("I64", (count,)), self.blanks
        )
        target = Tensor((count,), "I64", new=(number, 0))
        tensor, more = self._new(
            kind, opset, attributes, [operand, target], operand.precision, shape, name, names
        )
        return tensor, text + more

    def _number(
        self, layer: Layer, step: RewriteStep, name: str, names: str | None
    ) -> tuple[Tensor, str]:
        """A scalar Const."""
        dtype, value = step.attributes["dtype"], step.attributes["value"]
        encoded = one_number(dtype, value)
        if encoded is None:
            self._refuse(layer, f"a constant {value} of {dtype} cannot be written")
        kind, data = encoded
        offset, size = self.editor.stored(data)
        attributes = {"element_type": kind, "shape": "", "offset": offset, "size": size}
        number, precision = self._id(), port_name(kind)
        text = splice.layer(
            number, name, "Const", "opset1", attributes, (), (precision, ()), self.blanks, names
        )
        return Tensor((), precision, new=(number, 0)), text

    def _new(
        self,
        kind: str,
        opset: str,
        attributes: Mapping[str, Any],
        operands: list[Tensor],
        precision: str,
        shape: Sizes,
        name: str,
        names: str | None,
    ) -> tuple[Tensor, str]:
        """Adds a layer and its edges."""
        number = self._id()
        inputs = [(operand.precision, operand.shape) for operand in operands]
        text = splice.layer(
            number, name, kind, opset, attributes, inputs, (precision, shape), self.blanks, names
        )
        self.added += [(operand, (number, k)) for k, operand in enumerate(operands)]
        return Tensor(shape, precision, new=(number, len(operands))), text

    def _constant(self, operand: Tensor, shape: Sizes) -> tuple[Tensor, str] | None:
        """A constant in another shape: itself if it has no other readers, else a new one."""
        *converts, position = operand.chain
        readers = self.readers[position, 0]
        free = readers == 1 and position not in self.reshaped
        if free or position in self.reshaped:
            if not free and operand.old is not None:
                return None
            for place in operand.chain:
                self._redimension(place, shape)
            return replace(operand, shape=shape), ""
        if converts:
            return None
        if (position, shape) not in self.copies:
            layer = self.net.layers[position]
            number = self._id()
            attributes = {**layer.data, "shape": ", ".join(map(str, shape or ()))}
            name = self.editor.fresh(f"{layer.name}/reshaped")
            kind = layer.outputs[0].precision
            text = splice.layer(number, name, "Const", layer.version, attributes, (), (kind, shape),
                                self.blanks)  # fmt: skip
            self.copies[position, shape] = Tensor(shape, operand.precision, new=(number, 0))
            return self.copies[position, shape], text
        return self.copies[position, shape], ""

    def _redimension(self, position: int, shape: Sizes) -> None:
        """Gives a constant's own layer, or a Convert of it, another shape."""
        layer = self.net.layers[position]
        if position in self.reshaped:  # a second step of one rewrite
            spans = {element.start for element in self._elements(layer.start)}
            self.texts = [edit for edit in self.texts if edit[0] not in spans]
        self.reshaped.add(position)
        for element in self._elements(layer.start):
            if element.tag == "data" and element.depth == 1 and "shape" in layer.data:
                tag = self.data[element.start : element.open_stop]
                attributes = {"shape": ", ".join(map(str, shape or ()))}
                replacement = splice.with_attributes(tag, attributes)
                self.texts.append((element.start, element.open_stop, replacement))
            elif element.tag == "port" and element.depth == 2:
                self._resize(element, shape)

    def _resize(self, element: splice.Element, shape: Sizes, names: bool = True) -> None:
        """Gives a port another shape; keeps its attributes, and its names if `names` is set."""
        tag = self.data[element.start : element.open_stop]
        if not names:
            tag = splice.with_attributes(tag, {"names": None})
        tag = tag.removesuffix(b">").removesuffix(b"/").rstrip()
        blanks = splice.margin(self.data, element.start)
        if shape:
            port = tag + b">\n" + splice.dims(shape, blanks).encode() + blanks.encode() + b"</port>"
        else:
            port = tag + b" />"
        self.texts.append((element.start, element.stop, port))

    def _itself(
        self,
        node: Node,
        position: int,
        step: RewriteStep,
        operands: list[Tensor],
        changes: dict[str, str | None],
        nameless: bool,
    ) -> Tensor:
        """The layer itself with other operands and attributes."""
        layer = self.net.layers[position]
        if len(operands) != len(layer.inputs):
            self._refuse(layer, f"it has {len(layer.inputs)} operands, not {len(operands)}")
        shape = self._result(node, layer, step, operands)
        for k, operand in enumerate(operands):
            if operand.old != self.feeds[position][k]:
                self.sources[position, k] = operand
        elements = self._elements(layer.start)
        if changes:
            tag = self.data[elements[0].start : elements[0].open_stop]
            replacement = splice.with_attributes(tag, changes)
            self.texts.append((elements[0].start, elements[0].open_stop, replacement))
        if step.attributes:
            self._attributes(layer, step, elements)
        ports = [element for element in elements if element.tag == "port" and element.depth == 2]
        wanted = [operand.shape for operand in operands]
        for element, port, size in zip(ports, layer.inputs, wanted, strict=False):
            if texts(size) != port.dims:
                self._resize(element, size)
        if len(layer.outputs) == 1 and len(ports) == len(operands) + 1:
            out = layer.outputs[0]
            if texts(shape) != out.dims or (nameless and out.names):
                self._resize(ports[-1], shape, names=not nameless)
        number = layer.outputs[0].id if layer.outputs else 0
        return Tensor(shape, layer.outputs[0].precision, new=(layer.id, number))

    def _attributes(self, layer: Layer, step: RewriteStep, elements: list[splice.Element]) -> None:
        attributes = {
            k: None if v is None else splice.written(v) for k, v in step.attributes.items()
        }
        for element in elements:
            if element.tag == "data" and element.depth == 1:
                tag = self.data[element.start : element.open_stop]
                replacement = splice.with_attributes(tag, attributes)
                self.texts.append((element.start, element.open_stop, replacement))
                return
        tag = splice.with_attributes(b"<data />", attributes)
        at = elements[0].open_stop
        blanks = splice.margin(self.data, layer.start).encode()
        self.texts.append((at, at, b"\n" + blanks + b"\t" + tag))

    def _result(self, node: Node, layer: Layer, step: RewriteStep, operands: list[Tensor]) -> Sizes:
        """The layer's result shape for its new operands."""
        changed = {k: v for k, v in step.attributes.items() if v is not None}
        kept = {k: v for k, v in node.attributes.items() if k not in step.attributes}
        values = tuple(
            replace(value or Value("", None), shape=symbols(operand.shape))
            for value, operand in zip(node.inputs, operands, strict=True)
        )
        probe = replace(node, inputs=values, attributes={**kept, **changed})
        declared = known_sizes(node.outputs[0].shape) if node.outputs else None
        site = find_site(probe)
        if site is None or site.kind not in _WHOLE:
            return declared
        shapes = tuple(part.shape for part in site.operands)
        if any(shape is None for shape in shapes):
            return declared
        try:
            return known_sizes(site.plan(shapes).shape)  # type: ignore[arg-type]
        except BroadcastError as error:
            self._refuse(layer, f"after the change it does not broadcast: {error.detail}")

    def _place(self, layer: Layer, before: list[str], after: list[str], kept: bool) -> None:
        stop = self._elements(layer.start)[0].stop
        blanks = splice.margin(self.data, layer.start)
        if not kept:
            text = "".join((*before, *after)).strip()
            self.texts.append((layer.start, stop, text.encode()))
            return
        if any(before):
            text = "".join(before).lstrip() + blanks
            self.texts.append((layer.start, layer.start, text.encode()))
        if any(after):
            text = "\n" + "".join(after).rstrip()
            self.texts.append((stop, stop, text.encode()))

    # All rewrites.

    def edits(self) -> Iterator[tuple[int, int, bytes]]:
        """The replacements: start, stop, new bytes."""
        yield from self.texts
        if not (self.sources or self.moved or self.added or self.gone):
            return
        ids = {layer.id: position for position, layer in enumerate(self.net.layers)}
        news = [splice.edge(self._end(tensor), target) for tensor, target in self.added]
        for edge in self.net.edges:
            position = ids[edge.to_layer]
            ports = [port.id for port in self.net.layers[position].inputs]
            place = position, ports.index(edge.to_port)
            source = self.sources.get(place)
            if source is None:
                source = Tensor(None, "", old=self.feeds[position][place[1]])
            here = self._end(source)
            (element,) = self._elements(edge.start)[:1]
            if position in self.gone:
                yield element.start, element.stop, b""
            elif here != (edge.from_layer, edge.from_port):
                text = splice.edge(here, (edge.to_layer, edge.to_port))
                yield element.start, element.stop, text.encode()
        if news:
            last = self._elements(self.net.edges[-1].start)[0]
            blanks = splice.margin(self.data, last.start)
            text = "".join(f"\n{blanks}{line}" for line in news)
            yield last.stop, last.stop, text.encode()

    def _end(self, tensor: Tensor) -> tuple[int, int]:
        """The layer and port of a tensor for an edge, after replacements."""
        if tensor.old is not None:
            if tensor.old in self.moved:
                return self._end(self.moved[tensor.old])
            layer = self.net.layers[tensor.old[0]]
            return layer.id, layer.outputs[tensor.old[1]].id
        assert tensor.new is not None
        return tensor.new

    def _elements(self, start: int) -> list[splice.Element]:
        """The element that begins at `start` and all elements in it."""
        if start not in self.spans:
            self.spans[start] = splice.elements(self.data, start)
        return self.spans[start]

    def _id(self) -> int:
        self.next_id += 1
        return self.next_id - 1

    def _refuse(self, layer: Layer, words: str) -> NoReturn:
        refuse(self.file, f"{layer.shown}: {words}")


def _names(data: bytes, layer: Layer) -> str | None:
    """The names of a layer's only tensor, as the file writes them."""
    for element in splice.elements(data, layer.start):
        if element.tag == "port" and element.depth == 2:
            names = splice.attribute_of(data[element.start : element.open_stop], "names")
            if names is not None:
                return names
    return None
