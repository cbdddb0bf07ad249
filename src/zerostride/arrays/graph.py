"""A fused function's graph by a library's own functions, node by node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..compute.semantics import WEAK
from ..fusion.trace.graph import Apply, Axes, Constant, Graph, Input, Node, Reduce, View, results_of
from .namespace import Space, computed, converted, over
from .reduce import reduce


@np.errstate(all="ignore")  # as NumPy's arrays: no warnings
def evaluate(space: Space, graph: Graph, operands: Sequence[Any]) -> list[Any]:
    """The results of a graph for the operands of one call.

    Args:
        space: the library's functions.
        graph: what to compute.
        operands: arrays of the library, or Python numbers for weak inputs.

    Returns:
        An array for each output, of its node's shape and dtype.
    """
    results = results_of(graph, lambda node, held: _value(space, node, graph.nodes, held, operands))
    pairs = zip(graph.outputs, results, strict=True)
    return [_leaving(space, graph.nodes[k], value) for k, value in pairs]


def _value(
    space: Space, node: Node, nodes: Sequence[Node], held: Sequence[Any], operands: Sequence[Any]
) -> Any:
    if isinstance(node, Input):
        return operands[node.index]
    if isinstance(node, Constant):
        if node.weak:
            return node.value
        return space.number(node.value, space.dtype(node.dtype, "a constant"))
    if isinstance(node, Apply):
        return _applied(space, node, [(nodes[arg], held[arg]) for arg in node.args])
    array = _as_array(space, nodes[node.arg], held[node.arg])
    if isinstance(node, View):
        return _viewed(space, array, node.axes, node.shape)
    return _reduced(space, node, array, np.dtype(nodes[node.arg].dtype))


def _as_array(space: Space, node: Node, value: Any) -> Any:
    if type(value) in WEAK:
        return space.number(value, space.dtype(node.dtype, "a number"))
    return value


def _applied(space: Space, node: Apply, args: Sequence[tuple[Node, Any]]) -> Any:
    if node.op == "cast":
        source, value = args[0]
        array = _as_array(space, source, value)
        first, last = np.dtype(node.compute[0]), np.dtype(node.dtype)
        array = converted(space, array, np.dtype(source.dtype), first)
        array = converted(space, array, first, last)
        return _laid(space, array, node.axes[0], node.shape)
    values = [
        value if type(value) in WEAK else _placed(space, value, axes, node.shape)
        for (_, value), axes in zip(args, node.axes, strict=True)
    ]
    dtypes = [None if type(value) in WEAK else np.dtype(source.dtype) for (source, value) in args]
    return over(space, computed(space, node.op, values, dtypes, node.compute), node.shape)


def _placed(space: Space, array: Any, axes: Axes, shape: tuple[int, ...]) -> Any:
    """An array at the result's rank, extent 1 where no axis lands; axes may be permuted."""
    place: list[int | None] = [None] * len(shape)
    for axis, to in enumerate(axes):
        if to is not None:
            place[to] = axis
    sizes = tuple(1 if axis is None else int(array.shape[axis]) for axis in place)
    return _viewed(space, array, tuple(place), sizes)


def _laid(space: Space, array: Any, axes: Axes, shape: tuple[int, ...]) -> Any:
    return over(space, _placed(space, array, axes, shape), shape)


def _viewed(space: Space, array: Any, axes: Axes, shape: tuple[int, ...]) -> Any:
    """An array with its axes in this order, None for a new one; axes left out have extent 1."""
    named = [axis for axis in axes if axis is not None]
    rest = [axis for axis in range(array.ndim) if axis not in named]
    order = (*named, *rest)
    if order != tuple(range(array.ndim)):
        array = space.xp.permute_dims(array, order)
    return array if tuple(array.shape) == shape else space.xp.reshape(array, shape)


def _reduced(space: Space, node: Reduce, array: Any, source: np.dtype[Any]) -> Any:
    inner = np.dtype(node.compute)
    array = converted(space, array, source, inner)
    options: dict[str, Any] = {"axis": node.over, "keepdims": node.keepdims}
    if node.op in ("sum", "prod"):
        options["dtype"] = np.dtype(node.dtype)
    return space.xp.reshape(reduce(space, node.op, array, inner, options), node.shape)


def _leaving(space: Space, node: Node, value: Any) -> Any:
    """A result, copied if it is an operand of the call."""
    array = _as_array(space, node, value)
    if isinstance(node, Input | View):
        array = space.xp.asarray(array, copy=True)
    return array
