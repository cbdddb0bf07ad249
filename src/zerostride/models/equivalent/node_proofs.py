"""Whether a node still gives the same tensors for every size after a rewrite."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...errors import ZerostrideError
from ...sizes.budget import FLOW_STEPS, allowance
from ...sizes.condition import Condition
from ...sizes.dim import Dim
from ..equivalence import Sameness
from ..execute.program import readable
from ..format_table import lowered
from ..ir.graph import Graph, Node, Value
from .reading.reader import Reader, shape_of
from .terms.builder import Builder, TooLarge
from .terms.matching import Matching
from .terms.term import INPUT, Term


class NodeProofs:
    """Compares nodes with those in their place; what is known of sizes is worked out once."""

    def __init__(self) -> None:
        self._builders: dict[tuple[Condition, bool], Builder] = {}

    def verdict(
        self, old: tuple[Graph, Node], new: tuple[Graph, Sequence[Node]], facts: Condition
    ) -> Sameness:
        """Whether a node gives the same as those in its place: equal, rounded or undecided.

        Args:
            old: a graph with the sizes of its tensors, and a node of it.
            new: another graph, and the nodes that give that node's results in it. Tensors that
                both read have the same names.
            facts: what is known of sizes.
        """
        sides = lowered(_alone(old[0], [old[1]])), lowered(_alone(new[0], new[1]))
        inputs = {value.name: value for value in _read(sides[0])}
        others = {value.name: inputs.get(value.name, value) for value in _read(sides[1])}
        for verdict in (Sameness.EQUAL, Sameness.ROUNDED):
            exact = verdict is Sameness.EQUAL
            if (facts, exact) not in self._builders:
                self._builders[facts, exact] = Builder(facts, exact=exact)
            builder = self._builders[facts, exact]
            matching = Matching(exact)
            try:
                with allowance(FLOW_STEPS):
                    one, other = (
                        _results(graph, values, builder, matching, facts)
                        for graph, values in zip(sides, (inputs, others), strict=True)
                    )
            except (TooLarge, RecursionError, MemoryError, ZerostrideError):
                break  # too large, or constants that the file does not have
            if all(name in other and matching.same(one[name], other[name]) for name in one):
                return verdict
        return Sameness.UNDECIDED


def _alone(graph: Graph, nodes: Sequence[Node]) -> Graph:
    """A graph of some nodes, whose outputs are those of the last."""
    return replace(graph, nodes=tuple(nodes), inputs=(), outputs=nodes[-1].outputs)


def _read(graph: Graph) -> list[Value]:
    """The tensors that nodes read and none of them makes, without constants of the file."""
    inside = {id(value) for node in graph.nodes for value in node.outputs}
    every = (value for node in graph.nodes for value in node.inputs if value is not None)
    own = (value for value in every if id(value) not in inside)
    return [value for value in own if value.missing is not None or not readable(value)]


def _results(
    graph: Graph,
    inputs: dict[str, Value],
    builder: Builder,
    matching: Matching,
    facts: Condition,
) -> dict[str, Term]:
    own = {
        symbol
        for value in graph.values()
        for size in value.shape or ()
        if isinstance(size, Dim)
        for symbol in size.symbols
    }
    reader = Reader(builder, graph, {}, frozenset(own), facts, matching)
    for value in _read(graph):
        twin = inputs[value.name]
        reader.terms[id(value)] = builder.terms.get(
            INPUT, (), shape_of(twin), (value.name,), dtype=twin.dtype
        )
    return reader.read()


__all__ = ["NodeProofs"]
