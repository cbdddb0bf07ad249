"""Rewrites of graphs: reductions of single elements are removed, others split in two steps."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...compute.special import HALVES
from ..trace.graph import Apply, Constant, Graph, Node, Reduce, arguments, pruned, rewritten
from .phases import fold_dtype


def simplified(graph: Graph) -> Graph:
    """An equal graph in which each reduction folds an axis of another extent than 1.

    >>> from zerostride.fusion.trace.graph import Input
    >>> x = Input(0, (2, 1), "float32")
    >>> total = Reduce("sum", 0, (1,), False, "float32", (2,), "float32")
    >>> simplified(Graph((x, total), (1,), 1)).nodes[1].op
    'cast'
    """
    if not any(_is_single(graph.nodes, node) for node in graph.nodes):
        return graph

    def replaced(_: int, node: Node, nodes: list[Node]) -> Node:
        if isinstance(node, Reduce) and _is_single(nodes, node):
            return _of_single(nodes, node)
        return node

    equal = rewritten(graph, replaced)
    return pruned(equal, equal.outputs)


def _is_single(nodes: Sequence[Node], node: Node) -> bool:
    if not isinstance(node, Reduce):
        return False
    shape = nodes[node.arg].shape
    return all(shape[axis] == 1 for axis in node.over)


def _of_single(nodes: list[Node], node: Reduce) -> Node:
    """The conversion that replaces a reduction of single elements; positions are 0."""
    if node.op in ("argmin", "argmax"):
        nodes.append(Constant(0, "int64"))
        int64 = ("int64", "int64")
        return Apply("cast", (len(nodes) - 1,), ((),), int64, node.shape, "int64")
    kept = [a for a in range(len(nodes[node.arg].shape)) if node.keepdims or a not in node.over]
    lands = {axis: to for to, axis in enumerate(kept)}
    axes = tuple(lands.get(axis) for axis in range(len(nodes[node.arg].shape)))
    compute = "bool" if node.op in ("any", "all") else node.compute
    # A cast would round to 16 bits.
    op = "positive" if node.dtype in HALVES else "cast"
    return Apply(op, (node.arg,), (axes,), (compute, node.dtype), node.shape, node.dtype)


#: Elements from which the cost of another phase is negligible.
_LARGE = 1 << 15


def in_two_steps(graph: Graph) -> Graph:
    """An equal graph with reductions split in two steps where the first can be part of a batch.

    A loss is a sum over all axes of values that depend on rows' sums. Folded over each row's axes
    first, it is one more phase over the rows, followed by a small phase.

    >>> from zerostride.fusion.trace.graph import Input
    >>> x = Input(0, (512, 64), "float32")
    >>> rows = Reduce("max", 0, (1,), True, "float32", (512, 1), "float32")
    >>> less = Apply("subtract", (0, 1), ((0, 1),) * 2, ("float32",) * 3, x.shape, "float32")
    >>> total = Reduce("sum", 2, (0, 1), False, "float32", (), "float32")
    >>> [one.shape for one in in_two_steps(Graph((x, rows, less, total), (3,), 1)).nodes[-2:]]
    [(512, 1), ()]
    """
    #: The reductions that each node of the graph depends on, as the bits of an integer; then for
    #: each shape and folded axes its reductions.
    under: list[int] = []
    reductions: dict[tuple[int, ...], dict[tuple[int, ...], int]] = {}

    def replaced(k: int, node: Node, nodes: list[Node]) -> Node:
        inside = 0
        for arg in arguments(graph.nodes[k]):
            inside |= under[arg]
        if isinstance(node, Reduce):
            shape = nodes[node.arg].shape
            alike = reductions.setdefault(shape, {})
            first = _first_axes(shape, node, inside, alike)
            alike[node.over] = alike.get(node.over, 0) | 1 << k
            inside |= 1 << k
            if first:
                nodes.append(_folded(nodes, node, first))
                node = replace(node, arg=len(nodes) - 1, compute=nodes[-1].dtype)
        under.append(inside)
        return node

    return rewritten(graph, replaced)


def _first_axes(
    shape: tuple[int, ...], node: Reduce, inside: int, alike: Mapping[tuple[int, ...], int]
) -> tuple[int, ...]:
    """The axes to fold first: those of an earlier reduction of such values, if they are fewer."""
    if node.op in ("argmin", "argmax") or math.prod(shape) < _LARGE:
        return ()
    folded_axes: dict[int, tuple[int, ...]] = {}  # by the first such reduction
    for over, those in alike.items():
        both = tuple(axis for axis in node.over if axis in over)
        rest = [axis for axis in node.over if axis not in over]
        fewer = math.prod(shape[a] for a in both) > 1 and math.prod(shape[a] for a in rest) > 1
        if fewer and inside & those:
            folded_axes[inside & those & -(inside & those)] = both
    return folded_axes[min(folded_axes)] if folded_axes else ()


def _folded(nodes: Sequence[Node], node: Reduce, over: tuple[int, ...]) -> Reduce:
    """A reduction over some of its axes, which are kept with extent 1."""
    extents = enumerate(nodes[node.arg].shape)
    shape = tuple(1 if axis in over else extent for axis, extent in extents)
    return replace(node, over=over, keepdims=True, shape=shape, dtype=fold_dtype(node))
