"""A graph with sizes in it: what flows through the model, and what the model needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..dims.condition import ALWAYS, Condition
from ..dims.dim import plain
from ..dims.parse import symbol, unnamed
from .graph import Graph, Value


def resolved(
    graph: Graph, facts: Condition = ALWAYS, sizes: Mapping[str, int] | None = None
) -> tuple[Graph, Condition]:
    """The graph whose values have symbolic sizes, and what must hold of them."""
    made: dict[int, Value] = {}

    def value(old: Value | None) -> Value | None:
        if old is None or old.shape is None or old.known:
            return old
        if id(old) not in made:
            shape = tuple(
                plain(symbol(size))
                if isinstance(size, str)
                else plain(unnamed(0, None, f"{old.name}[{axis}]"))
                if size is None
                else size
                for axis, size in enumerate(old.shape)
            )
            made[id(old)] = replace(old, shape=shape)
        return made[id(old)]

    nodes = tuple(
        replace(
            node, inputs=tuple(map(value, node.inputs)), outputs=tuple(map(value, node.outputs))
        )
        for node in graph.nodes
    )
    inputs = tuple(map(value, graph.inputs))
    return replace(graph, nodes=nodes, inputs=inputs), facts
