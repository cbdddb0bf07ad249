"""A model file as graphs of Model Explorer.

A node's id is the name of the first tensor that it makes, and each output has its `tensor_name`:
zerostride's node data (`audit --format model-explorer`) finds nodes by these names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from model_explorer.graph_builder import (
    Graph,
    GraphNode,
    IncomingEdge,
    KeyValue,
    MetadataItem,
)

from zerostride.errors import BroadcastError, ZerostrideError
from zerostride.models.formats import read_model
from zerostride.models.ir.graph import Body, Node, Value
from zerostride.models.options import ModelOptions
from zerostride.models.shapes import shapes_of

#: Labels to which Model Explorer gives a meaning: constants with this one are hidden at first.
CONSTANT, INPUTS, OUTPUTS = "pseudo_const", "GraphInputs", "GraphOutputs"
#: Longest text of an attribute, and most numbers of a constant: more do not fit the side panel.
LONGEST, MOST_NUMBERS = 400, 16


def graphs_of(path: Path) -> list[Graph]:
    """The main graph of a file and a graph for each body, the main graph first.

    Raises:
        ModelError: the file cannot be read.
    """
    model = read_model(path)
    shapes = _shapes(path)
    main = [node for node in model.nodes if not node.scope]
    graphs = [_Drawing(path.name, shapes).draw(model.inputs, main, model.outputs)]
    for node in model.nodes:
        for body in node.bodies:
            drawing = _Drawing(_body_id(node, body), shapes)
            graphs.append(drawing.draw(body.inputs, body.nodes, body.outputs))
    return graphs


def _shapes(path: Path) -> dict[str, str]:
    """The shapes of tensors by name, as they follow from the inputs; none if that fails."""
    try:
        tensors = shapes_of(path, ModelOptions()).tensors
    except (ZerostrideError, BroadcastError):
        return {}
    return {tensor.name: tensor.text for tensor in tensors}


def _body_id(node: Node, body: Body) -> str:
    return f"{node.path}/{body.name}"


class _Drawing:
    """One graph while its nodes are added."""

    def __init__(self, name: str, shapes: Mapping[str, str]) -> None:
        self._graph = Graph(id=name)
        self._shapes = shapes
        self._taken: set[str] = set()
        # The edge that begins at a value, by the identity of the value.
        self._edges: dict[int, tuple[str, str]] = {}

    def draw(
        self, inputs: Iterable[Value], nodes: Iterable[Node], outputs: Iterable[Value | None]
    ) -> Graph:
        """The graph: its inputs, its nodes in order, and its outputs."""
        given, results = list(inputs), list(outputs)
        if given:
            self._add(INPUTS, INPUTS, outputs=given)
        for node in nodes:
            self._add_node(node)
        if results:
            self._add(OUTPUTS, OUTPUTS, inputs=results)
        return self._graph

    def _add_node(self, node: Node) -> None:
        named = next((value.name for value in node.outputs if value.name), node.path)
        added = self._add(
            named, node.op, _folder(node.name), inputs=node.inputs, outputs=node.outputs
        )
        attributes = {"name": node.name, **node.attributes}
        if node.origin is not None and node.origin.file:
            attributes["source"] = f"{node.origin.file}:{node.origin.line}"
        added.attrs = [KeyValue(key, _text(value)) for key, value in attributes.items()]
        added.subgraphIds = [_body_id(node, body) for body in node.bodies]

    def _add(
        self,
        name: str,
        label: str,
        folder: str = "",
        inputs: Sequence[Value | None] = (),
        outputs: Sequence[Value] = (),
    ) -> GraphNode:
        """Adds a node, after the constants that it reads."""
        node = GraphNode(id=self._free(name), label=label, namespace=folder)
        for position, value in enumerate(inputs):
            if value is None:
                continue
            if id(value) not in self._edges:
                # A constant, or a tensor of the graph around a body.
                kind = CONSTANT if value.constant else INPUTS
                self._add(value.name or CONSTANT, kind, folder, outputs=[value])
            begin, port = self._edges[id(value)]
            node.incomingEdges.append(IncomingEdge(begin, port, str(position)))
            tag = [KeyValue("__tensor_tag", value.name)]
            node.inputsMetadata.append(MetadataItem(str(position), tag))
        for position, value in enumerate(outputs):
            self._edges[id(value)] = (node.id, str(position))
            node.outputsMetadata.append(MetadataItem(str(position), self._described(value)))
        self._graph.nodes.append(node)
        return node

    def _free(self, name: str) -> str:
        """The name, or the name with a number where a node has it already."""
        free, number = name, 1
        while free in self._taken:
            number += 1
            free = f"{name} {number}"
        self._taken.add(free)
        return free

    def _described(self, value: Value) -> list[KeyValue]:
        """The name, shape, element type and few numbers of a tensor."""
        shape = self._shapes.get(value.name, "?")
        if shape == "?" and value.shape is not None:
            shape = str(tuple("?" if size is None else size for size in value.shape))
        facts = {"tensor_name": value.name, "shape": shape, "dtype": value.dtype}
        numbers = value.content if value.content is not None else value.reals
        if numbers is not None and len(numbers) <= MOST_NUMBERS:
            facts["__value"] = f"[{', '.join(map(str, numbers))}]"
        return [KeyValue(key, text) for key, text in facts.items() if text]


def _folder(name: str) -> str:
    """The layers that a node lies in, as exporters write them: 'encoder/0' of 'encoder/0/add'."""
    return "/".join(part for part in name.split("/")[:-1] if part)


def _text(value: Any) -> str:
    text = str(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} …"
