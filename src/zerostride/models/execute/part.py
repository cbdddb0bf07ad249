"""A part of a model between known tensors, computed on any numbers."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..ir.graph import Array, Graph, Node, Value
from .program import readable
from .run import prepare_part, run_part


@dataclass(frozen=True, slots=True)
class Part:
    """The nodes between known tensors and one tensor.

    Attributes:
        graph: the model.
        nodes: the nodes, in order.
        operands: the known tensors that they read.
        result: the tensor.
    """

    graph: Graph
    nodes: tuple[Node, ...]
    operands: tuple[Value, ...]
    result: Value

    def run(self, values: Mapping[int, Array], result: Value | None = None) -> Array:
        """The result, or another tensor of the part, from arrays by the values' identities.

        Raises:
            ModelError: a node cannot be computed on them.
        """
        nodes = [
            node for node in self.nodes if not any(id(value) in values for value in node.outputs)
        ]
        program = prepare_part(self.graph, nodes, [self.result if result is None else result])
        return run_part(self.graph, program, values)[0]

    def changed(self, graph: Graph) -> Part:
        """The part with the nodes of another graph, which share the values between nodes."""
        return replace(self, nodes=graph.nodes)

    def spread(self, values: Mapping[int, Array], by: float) -> Array:
        """The change of each number of the result if operands of floats change by `by`.

        Rounding, comparing and cancelling make a result differ that nothing is wrong with.
        """
        exact = self.run(values).astype(np.float64)
        moved = np.zeros(exact.shape)
        for seed in range(3):
            rng = np.random.default_rng(seed)
            nudged = {key: _nudged(rng, array, by) for key, array in values.items()}
            other = self.run(nudged)
            if other.shape != exact.shape:
                return np.full(exact.shape, np.inf)
            with np.errstate(all="ignore"):
                moved = np.fmax(moved, np.abs(other.astype(np.float64) - exact))
        return moved


def _nudged(rng: np.random.Generator, array: Array, by: float) -> Array:
    if array.dtype.kind != "f":
        return array
    with np.errstate(all="ignore"):
        return (array * (1 + by * rng.choice([-1.0, 1.0], array.shape))).astype(array.dtype)


class Parts:
    """The parts of a model; known tensors are the ends of parts."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.nodes = tuple(node for node in graph.nodes if not node.scope)
        self._makers = {id(value): node for node in self.nodes for value in node.outputs}
        self._places = {id(node): k for k, node in enumerate(self.nodes)}
        self._users: dict[int, list[Node]] = {}
        for node in self.nodes:
            for value in node.inputs:
                if value is not None:
                    self._users.setdefault(id(value), []).append(node)

    def maker_of(self, value: Value) -> Node | None:
        """The node that makes a value; None for an input or a constant of the file."""
        return self._makers.get(id(value))

    def users_of(self, value: Value) -> Sequence[Node]:
        """The nodes that read a value as an operand."""
        return self._users.get(id(value), [])

    def before(self, result: Value, known: Collection[int]) -> Part:
        """The part that ends in a tensor and begins with known ones, given by identity."""
        nodes: dict[int, Node] = {}
        operands: dict[int, Value] = {}
        left = [self._makers[id(result)]]
        while left:
            node = left.pop()
            if id(node) in nodes:
                continue
            nodes[id(node)] = node
            for value in read_by(node):
                maker = self._makers.get(id(value))
                if id(value) in known:
                    operands[id(value)] = value
                elif maker is not None and not readable(value):
                    left.append(maker)
        ordered = sorted(nodes.values(), key=lambda node: self._places[id(node)])
        return Part(self.graph, tuple(ordered), tuple(operands.values()), result)


def read_by(node: Node) -> Iterator[Value]:
    """Yield the values that a node and its bodies read; those inside of bodies are among them."""
    yield from (value for value in node.inputs if value is not None)
    for body in node.bodies:
        yield from (value for value in body.outputs if value is not None)
        for inner in body.nodes:
            yield from read_by(inner)


def last_uses(nodes: Sequence[Node]) -> dict[int, int]:
    """The position of the last node that reads each value."""
    return {id(value): k for k, node in enumerate(nodes) for value in read_by(node)}
