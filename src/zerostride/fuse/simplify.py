"""A graph without what computes nothing: reductions of single elements, and nodes that then have no
reader."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from .graph import Apply, Constant, Graph, Node, Reduce, View, arguments

_HALVES = frozenset({"float16", "bfloat16"})


def simplified(graph: Graph) -> Graph:
    """The same, each of whose reductions folds some axis of another extent than 1.

    >>> from .graph import Input
    >>> x = Input(0, (2, 1), "float32")
    >>> total = Reduce("sum", 0, (1,), False, "float32", (2,), "float32")
    >>> simplified(Graph((x, total), (1,), 1)).nodes[1].op
    'cast'
    """
    if not any(_is_single(graph.nodes, node) for node in graph.nodes):
        return graph
    nodes: list[Node] = []
    number: list[int] = []  # of each node of the graph, in `nodes`
    for node in graph.nodes:
        new = _renumbered(node, number)
        if isinstance(new, Reduce) and _is_single(nodes, new):
            new = _of_single(nodes, new)
        nodes.append(new)
        number.append(len(nodes) - 1)
    return _pruned(Graph(tuple(nodes), tuple(number[k] for k in graph.outputs), graph.inputs))


def _is_single(nodes: Sequence[Node], node: Node) -> bool:
    if not isinstance(node, Reduce):
        return False
    shape = nodes[node.arg].shape
    return all(shape[axis] == 1 for axis in node.over)


def _of_single(nodes: list[Node], node: Reduce) -> Node:
    """The conversion that a reduction of single elements is; positions are 0."""
    if node.op in ("argmin", "argmax"):
        nodes.append(Constant(0, "int64"))
        int64 = ("int64", "int64")
        return Apply("cast", (len(nodes) - 1,), ((),), int64, node.shape, "int64")
    kept = [a for a in range(len(nodes[node.arg].shape)) if node.keepdims or a not in node.over]
    lands = {axis: to for to, axis in enumerate(kept)}
    axes = tuple(lands.get(axis) for axis in range(len(nodes[node.arg].shape)))
    compute = "bool" if node.op in ("any", "all") else node.compute
    # A cast would round to 16 bits.
    op = "positive" if node.dtype in _HALVES else "cast"
    return Apply(op, (node.arg,), (axes,), (compute, node.dtype), node.shape, node.dtype)


def _pruned(graph: Graph) -> Graph:
    """Without the nodes that no output needs."""
    needed = set(graph.outputs)
    for k in range(len(graph.nodes) - 1, -1, -1):
        if k in needed:
            needed.update(arguments(graph.nodes[k]))
    number = {k: new for new, k in enumerate(sorted(needed))}
    nodes = tuple(_renumbered(graph.nodes[k], number) for k in number)
    return Graph(nodes, tuple(number[k] for k in graph.outputs), graph.inputs)


def _renumbered(node: Node, number: Mapping[int, int] | Sequence[int]) -> Node:
    if isinstance(node, Apply):
        return replace(node, args=tuple(number[arg] for arg in node.args))
    if isinstance(node, Reduce | View):
        return replace(node, arg=number[node.arg])
    return node
