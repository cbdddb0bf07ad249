"""Adds ranks and numbers to a graph: the translation of ops to ONNX depends on them.

Text formats and files of MNN and LiteRT lack them, or have them as hints. MNN's converter writes
the axis of a Gather as ``(axis + rank) mod rank``, in three ops, and a convolution along one axis
like one over a plane.
"""

from __future__ import annotations

from ..flow import flow
from ..flow.result import known_part
from ..flow.walk import Lower
from ..ir.graph import Graph, Value
from ..onnx_ops.sizes.facts import UNKNOWN


def ranked(graph: Graph, lower: Lower) -> Graph:
    """The graph with the ranks, sizes and numbers that do not depend on open sizes.

    Args:
        graph: the graph as the file has it.
        lower: the format's translation of a node to ONNX nodes.
    """
    sized = all(value.shape is not None for node in graph.nodes for value in node.outputs)
    if sized and all(lower(node) is not None for node in graph.nodes):
        return graph
    sizes = flow(graph, lower=lower)

    def with_fact(value: Value, _: int) -> Value:
        return known_part(value, sizes.facts.get(id(value), UNKNOWN))

    return graph.with_values(with_fact)
