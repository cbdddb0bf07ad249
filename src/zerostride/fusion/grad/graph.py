"""The graph of a graph's gradients: the adjoint of every node, from the last to the first.

The op's rule (`table`) gives the cotangent that a node passes to an argument; it is summed where
the argument was stretched. 16-bit floats are held in float32 and rounded where they leave.

A cotangent may have extent 1 along an axis where its node has more: it is constant along that axis.
So the adjoint of a sum costs nothing, and only the results are stretched to their full shapes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...compute.functions import equal, where
from ...compute.special import is_float
from ...core.strict_mode import unrestricted
from ...ops import ops_with
from ..trace.graph import (
    Apply,
    Axes,
    Constant,
    Graph,
    Input,
    Node,
    Reduce,
    View,
    arguments,
    landings,
    places_of,
)
from ..trace.tracing import Operand, Tracer
from ..trace.value import Value
from .stabilizer import unmoved
from .table import RULES

_SQUARES = ops_with("square")
#: Reductions that have a derivative.
_REDUCTIONS = frozenset({"sum", "prod", "min", "max"})


@dataclass(frozen=True, slots=True)
class Backward:
    """How gradients are computed.

    Attributes:
        graph: its inputs are those of the forward graph, and then a cotangent for each of its
            outputs; its outputs are gradients.
        places: for each operand, which output is its gradient; None where it is 0 or undefined.
    """

    graph: Graph
    places: tuple[int | None, ...]


@unrestricted()  # strict mode is for users' expressions
def backward(graph: Graph, operands: Sequence[Operand], count: int) -> Backward:
    """The graph of the gradients of a graph.

    Args:
        graph: the forward one.
        operands: descriptions of its inputs, captured arrays included.
        count: how many of these are the call's; those of real floats get gradients.
    """
    outputs = [graph.nodes[k] for k in graph.outputs]
    cotangents = [Operand(node.shape, node.dtype) for node in outputs]
    tracer = Tracer([*operands, *cotangents])
    adjoint = _Adjoint(tracer, graph, count)
    for position, k in enumerate(graph.outputs):
        if adjoint.active[k]:
            cotangent = tracer.operand(len(operands) + position)
            adjoint.give(k, adjoint.cast(cotangent, wide(graph.nodes[k].dtype)))
    with np.errstate(all="ignore"):  # formulas of numbers alone are computed immediately
        for k in reversed(range(len(graph.nodes))):
            adjoint.pass_on(k)
    gradients = {
        node.index: adjoint.leaving(k)
        for k, node in enumerate(graph.nodes)
        if isinstance(node, Input) and adjoint.held[k] is not None
    }
    backward_graph, captured, _ = tracer.finish([value.node for value in gradients.values()])
    if captured:
        raise AssertionError("a derivative's rule brought an array of its own")
    order = {index: place for place, index in enumerate(gradients)}
    return Backward(backward_graph, tuple(order.get(k) for k in range(count)))


def wide(dtype: str) -> np.dtype[Any]:
    """The dtype in which values of a dtype, and their cotangents, are held."""
    value_dtype = np.dtype(dtype)
    return (
        np.dtype(np.float32) if is_float(value_dtype) and value_dtype.itemsize < 4 else value_dtype
    )


def _differentiable(graph: Graph, count: int) -> list[bool]:
    """For each node, whether it holds floats that depend smoothly on an operand of the call."""
    smooth: list[bool] = []
    skipped = unmoved(graph)
    for k, node in enumerate(graph.nodes):
        smooth.append(is_float(np.dtype(node.dtype)) and k not in skipped)
        if isinstance(node, Input):
            smooth[k] &= node.index < count
        elif isinstance(node, Apply):
            rules = (True,) if node.op == "cast" else RULES.get(node.op, ())
            pairs = zip(node.args, rules, strict=bool(rules))
            smooth[k] &= any(smooth[arg] and rule is not None for arg, rule in pairs)
        elif isinstance(node, Reduce):
            smooth[k] &= smooth[node.arg] and node.op in _REDUCTIONS
        else:
            smooth[k] &= isinstance(node, View) and smooth[node.arg]
    return smooth


class _Adjoint:
    """The cotangents of a graph's nodes, recorded by a tracer."""

    def __init__(self, tracer: Tracer, graph: Graph, count: int) -> None:
        self.tracer, self.graph = tracer, graph
        self.values = [tracer.add(node, weak=_is_weak(node)) for node in graph.nodes]
        self.active = _differentiable(graph, count)
        self.held: list[Value | None] = [None] * len(graph.nodes)

    def give(self, k: int, cotangent: Value) -> None:
        """Adds to a node's cotangent."""
        before = self.held[k]
        self.held[k] = cotangent if before is None else before + cotangent

    def pass_on(self, k: int) -> None:
        """Passes a node's cotangent to the nodes that it reads."""
        g, node = self.held[k], self.graph.nodes[k]
        if g is None or isinstance(node, Input):
            return
        for arg, cotangent in self._contributions(k, node, g):
            if cotangent is not None:
                self.give(arg, self.cast(cotangent, wide(self.graph.nodes[arg].dtype)))

    def leaving(self, k: int) -> Value:
        """The gradient of an input, of its shape and dtype."""
        g, node = self.held[k], self.graph.nodes[k]
        assert g is not None
        if g.shape != node.shape:
            g = self.tracer.laid(g, node.shape, (*range(len(node.shape)),))
        return self.cast(g, np.dtype(node.dtype))

    def cast(self, value: Value, dtype: np.dtype[Any]) -> Value:
        """A value in a dtype."""
        return value if value.dtype == dtype and not value.weak else self.tracer.cast(value, dtype)

    def _contributions(self, k: int, node: Node, g: Value) -> Iterator[tuple[int, Value | None]]:
        """The cotangents for each argument that needs one; a repeated argument gets several."""
        if isinstance(node, Apply):
            for place, arg in enumerate(node.args):
                if self.active[arg]:
                    yield arg, self._of_apply(k, node, place, g)
        elif isinstance(node, Reduce) and self.active[node.arg]:
            yield node.arg, self._of_reduce(k, node, g)
        elif isinstance(node, View) and self.active[node.arg]:
            ((arg, back),) = landings(node, self.graph.nodes)
            yield arg, self.tracer.view(g, back)

    # Ops

    def _of_apply(self, k: int, node: Apply, place: int, g: Value) -> Value | None:
        """The cotangent of an argument: the rule's, summed to the argument's shape."""
        if node.op == "cast":
            cotangent: Value | None = g
        else:
            rule = RULES[node.op][place]
            if rule is None:
                return None
            args = [self._argument(node, n) for n in range(len(node.args))]
            y = self._computed(self.values[k], node.compute[-1])
            if node.op == "sqrt" and _is_of_squares(self.graph.nodes, node.args[0]):
                cotangent = where(equal(y, 0), 0, rule(g, y, *args))
            else:
                cotangent = rule(g, y, *args)
        if cotangent is None:
            return None
        shape = self.graph.nodes[node.args[place]].shape
        return self._summed(cotangent, node.shape, node.axes[place], shape)

    def _argument(self, node: Apply, place: int) -> Any:
        """An argument laid out on the result's axes, in the dtype it is computed in."""
        source, value = self.graph.nodes[node.args[place]], self.values[node.args[place]]
        dtype = node.compute[place]
        if isinstance(source, Constant):
            # Numbers are rounded to 16 bits, as in the op itself.
            return wide(dtype).type(np.dtype(dtype).type(source.value))
        axes, rank = node.axes[place], len(node.shape)
        if axes != (*range(rank - len(axes), rank),):  # not where NumPy's rule places them
            value = self.tracer.view(value, places_of(axes, rank))
        return self._computed(value, dtype)

    def _computed(self, value: Value, dtype: str) -> Value:
        return self.cast(value, wide(dtype))

    def _summed(
        self, value: Value, result: tuple[int, ...], axes: Axes, shape: tuple[int, ...]
    ) -> Value | None:
        """The adjoint of a broadcast: sums, or products with a count."""
        aligned = [1] * len(result)
        for axis, to in enumerate(axes):
            if to is not None:
                aligned[to] = shape[axis]
        stretched = [axis for axis, n in enumerate(aligned) if n == 1 != result[axis]]
        over = tuple(axis for axis in stretched if value.shape[axis] != 1)
        count = math.prod(result[axis] for axis in stretched if axis not in over)
        if not count:
            return None
        value = self._sum(value, over)
        if count != 1:
            value = value * float(count)
        return self.tracer.view(value, axes) if axes != (*range(len(result)),) else value

    def _sum(self, value: Value, over: tuple[int, ...]) -> Value:
        """A sum that keeps its axes with extent 1."""
        node = self.tracer.nodes[value.node]
        if over and isinstance(node, Apply) and node.op == "negative":
            # Negate the sum instead of each term: the result is equal, and the sum is often shared.
            inner = self.tracer.add(self.tracer.nodes[node.args[0]])
            if inner.shape == value.shape:
                return -self._fold("sum", inner, over)
        return self._fold("sum", value, over)

    def _fold(self, op: str, value: Value, over: tuple[int, ...]) -> Value:
        if not over:
            return value
        dtype = value.dtype.name
        return self.tracer.reduce(op, value, over, True, dtype, dtype)

    # Reductions

    def _of_reduce(self, k: int, node: Reduce, g: Value) -> Value:
        g, y = self._restored(node, g), self._restored(node, self.values[k])
        if node.op == "sum" or not node.over:
            return g
        x = self._computed(self.values[node.arg], node.compute)
        if node.op == "prod":
            return self._of_prod(node, x, g)
        # Equal extrema share the cotangent, as in torch.amax.
        chosen = equal(x, self._computed(y, node.dtype))
        count = self._sum(self.cast(chosen, x.dtype), node.over)
        # In a row with a NaN no element is chosen: 0 / 0 gives NaN for the whole row.
        shared: Value = where(chosen, g / count, 0 / count)
        return shared

    def _of_prod(self, node: Reduce, x: Value, g: Value) -> Value:
        """The product of all other elements; with a single zero it is 0 except at that zero."""
        zero = equal(x, 0)
        safe = where(zero, 1, x)
        zeros = self.cast(zero, x.dtype)
        none_else = equal(self._sum(zeros, node.over), zeros)
        product = self._fold("prod", safe, node.over)
        cotangent: Value = g * where(none_else, product / safe, 0)
        return cotangent

    def _restored(self, node: Reduce, value: Value) -> Value:
        """A reduction's result, or cotangent, with the reduced axes as axes of extent 1."""
        if node.keepdims or not node.over:
            return value
        ((_, lands),) = landings(node, self.graph.nodes)
        return self.tracer.view(value, lands)


def _is_weak(node: Node) -> bool:
    return isinstance(node, Input | Constant) and node.weak and node.dtype != "bool"


def _is_of_squares(nodes: Sequence[Node], k: int) -> bool:
    """Whether a node is a sum of squares, divided by a count or not.

    It is 0 only where all squares are. There its root, a norm or a standard deviation, has many
    subgradients, 0 among them; the chain rule gives 0 times infinity.
    """
    node = nodes[k]
    while isinstance(node, View) or (
        isinstance(node, Apply)
        and (node.op in ("cast", "positive") or _is_over_a_number(nodes, node))
    ):
        node = nodes[arguments(node)[0]]
    if not isinstance(node, Reduce) or node.op != "sum":
        return False
    term = nodes[node.arg]
    while isinstance(term, Apply) and term.op in ("cast", "positive"):
        term = nodes[term.args[0]]
    if not isinstance(term, Apply):
        return False
    product = term.op == "multiply" and term.args[0] == term.args[1]
    return term.op in _SQUARES or (product and len({*term.axes}) == 1)


def _is_over_a_number(nodes: Sequence[Node], node: Apply) -> bool:
    return node.op == "divide" and isinstance(nodes[node.args[1]], Constant)
