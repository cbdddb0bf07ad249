"""The allowed error of a result: an interval for each element of each node.

Every node has the reference's value and the interval [low, high] in which any right engine's value
lies. It is carried through the graph by the reference's own kernels:

- An operand, and whatever is rounded once from exact values, selected or counted, is exact: the
  interval is the value, to the bit (the sign of a zero that `maximum` and its like choose is free).
- An op on intervals is evaluated at their ends, and at 0 where they straddle it. Where the op rises
  or falls all the way (sums, products, quotients, square roots, comparisons, casts, selections) the
  results bound it, since rounding rises, too. Elsewhere they are widened by their own width.
- An elementary function may be off by `2 * BOUND` units in the last place: both sides may err by
  `BOUND` (`campaigns.native.judge`, which holds each function to it; `docs/accuracy.md`).
- A sum of n floats may be off by (16 + log2 n) eps times the sum of the sizes, as pairwise sums
  are; a product by 2 n eps of itself.
- An element is *open*, and anything goes, where a small change gives something else altogether: an
  integer that wraps, a quotient by what may be 0, a NaN that may be none, a partial sum that
  may overflow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from zerostride.compute.semantics import WEAK
from zerostride.fusion.reference import value_of
from zerostride.fusion.trace.graph import Constant, Graph, Input, Node, Reduce, View, arguments

from .bounds_apply import Application
from .bounds_reduce import Reduction
from .intervals import Bounds, exactly, tidy


def bounds(graph: Graph, operands: Sequence[Any]) -> list[Bounds]:
    """The intervals of a graph's results, before they are rounded to 16 bits.

    >>> from zerostride.fusion.trace.graph import Apply
    >>> x = Input(0, (2,), "float32")
    >>> twice = Apply("add", (0, 0), ((0,), (0,)), ("float32",) * 3, (2,), "float32")
    >>> bounds(Graph((x, twice), (1,), 1), [np.ones(2, "float32")])[0].exact
    True
    """
    known: list[Bounds] = []
    with np.errstate(all="ignore"):
        for node in graph.nodes:
            known.append(tidy(_of_node(node, graph.nodes, known, operands)))
    return [known[k] for k in graph.outputs]


def _of_node(
    node: Node, nodes: Sequence[Node], known: Sequence[Bounds], operands: Sequence[Any]
) -> Bounds:
    args = arguments(node)
    value = value_of(node, nodes, {arg: known[arg].value for arg in args}, operands)
    if isinstance(node, Input | Constant):
        return exactly(value)
    if isinstance(node, View):
        return _of_view(node, nodes, known[node.arg], value)
    if isinstance(node, Reduce):
        given = known[node.arg]
        if type(given.value) in WEAK:
            given = exactly(np.asarray(given.value, nodes[node.arg].dtype))
        return Reduction(node, nodes, given, value).bounds()
    return Application(node, nodes, [known[arg] for arg in args], value).bounds()


def _of_view(node: View, nodes: Sequence[Node], given: Bounds, value: Any) -> Bounds:
    if given.exact:
        return exactly(value)

    def viewed(array: Any) -> Any:
        return value_of(node, nodes, {node.arg: array}, ())

    opened = None if given.open is None else viewed(given.open)
    return Bounds(value, viewed(given.low), viewed(given.high), opened)
