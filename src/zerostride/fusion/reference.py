"""A graph evaluated node by node with NumPy: the oracle, and the fallback of the engine.

Every op is its function of `compute.kernels`, on views laid out by `Apply.axes`. 16-bit floats are
float32 from where they are read to where they leave or are cast, without rounding in between; sums
and products of floats are computed in a wider dtype and rounded once. No warning is given.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..compute.kernels import KERNELS
from ..compute.semantics import WEAK
from ..compute.special import HALVES, cast, working
from .trace.graph import Apply, Axes, Constant, Graph, Input, Node, Reduce, View, results_of

Array = NDArray[Any]
Held = Sequence[Any] | Mapping[int, Any]

#: Ops of a number's bits, which need its own width.
_OF_BITS = frozenset({"nextafter"})
#: Dtypes in which sums and products are computed. 16-bit floats are already float32.
_WIDER: Mapping[str, np.dtype[Any]] = {
    "float32": np.dtype(np.float64),
    "float64": np.dtype(np.longdouble),
    "complex64": np.dtype(np.complex128),
    "complex128": np.dtype(np.clongdouble),
}


def evaluate(graph: Graph, operands: Sequence[Any]) -> list[Any]:
    """The results of a graph for the operands of one call.

    Args:
        graph: what to compute.
        operands: arrays of the shapes and dtypes of its inputs, or Python numbers for weak ones.

    Returns:
        A new array for each output, of its node's shape and dtype; a NumPy scalar at rank 0.

    Raises:
        ValueError: an integer to a negative integer power; the minimum of no elements.

    >>> x = Input(0, (2, 3), "float32")
    >>> total = Reduce("sum", 0, (1,), False, "float32", (2,), "float32")
    >>> evaluate(Graph((x, total), (1,), 1), [np.ones((2, 3), "float32")])
    [array([3., 3.], dtype=float32)]
    """
    with np.errstate(all="ignore"):
        results = results_of(graph, lambda node, held: value_of(node, graph.nodes, held, operands))
        pairs = zip(graph.outputs, results, strict=True)
        return [leaving(graph.nodes[k], value) for k, value in pairs]


def value_of(node: Node, nodes: Sequence[Node], held: Held, operands: Sequence[Any]) -> Any:
    """A node's value: an array, or a Python number that is still weak.

    Args:
        node: one of `nodes`.
        nodes: the graph's.
        held: the values of the nodes that it reads, by their numbers.
        operands: of the call.
    """
    if isinstance(node, Input):
        operand = operands[node.index]
        return operand if node.weak and type(operand) in WEAK else np.asarray(operand)
    if isinstance(node, Constant):
        return node.value if node.weak else np.asarray(node.value, node.dtype)
    if isinstance(node, Apply):
        return _applied(node, [(nodes[arg], held[arg]) for arg in node.args])
    array = _as_array(nodes[node.arg], held[node.arg])
    if isinstance(node, View):
        return _viewed(array, node.axes)
    return _reduced(node, _converted(array, nodes[node.arg].dtype, node.compute))


def _as_array(node: Node, value: Any) -> Array:
    return np.asarray(value, np.dtype(node.dtype)) if type(value) in WEAK else value


def leaving(node: Node, value: Any) -> Any:
    """A result, rounded to its dtype, that shares memory with no operand and no other result."""
    result = np.array(_as_array(node, value), np.dtype(node.dtype))
    return result if result.ndim else result[()]


# Dtypes


def _working(dtype: str) -> np.dtype[Any]:
    """The dtype in which values of a dtype are held."""
    return np.dtype(working(dtype))


def _converted(value: Any, source: str, dtype: str, *, bits: bool = False) -> Any:
    """Values of dtype `source` converted for an op that computes in `dtype`.

    With `bits` 16-bit floats keep their own format. A Python integer beyond `dtype` is not
    converted: NumPy compares it, and refuses it in other ops.
    """
    target = np.dtype(dtype)
    if type(value) in WEAK:
        if target.kind in "iu" and not _fits(value, target):
            return value
        value = np.asarray(value, target)  # a number is rounded to 16 bits, as in a single op
    elif bits or (dtype in HALVES and source != dtype):
        value = _cast(value, target)
    return _cast(value, target if bits else _working(dtype))


def _fits(value: Any, dtype: np.dtype[Any]) -> bool:
    info = np.iinfo(dtype)
    return bool(info.min <= value <= info.max)


def _cast(value: Array, dtype: np.dtype[Any]) -> Array:
    if value.dtype == dtype:
        return value
    if "O" in (value.dtype.kind, dtype.kind):
        return value.astype(dtype)
    return np.asarray(cast(value, dtype))


# Nodes


def _applied(node: Apply, args: Sequence[tuple[Node, Any]]) -> Array:
    """An op's result on its arguments, each converted and then laid over the result's shape."""
    if node.op == "cast":
        (source, value), target = args[0], np.dtype(node.dtype)
        rounded = _cast(_converted(value, source.dtype, node.compute[0]), target)
        return laid(_cast(rounded, _working(node.dtype)), node.axes[0], node.shape)
    bits = node.op in _OF_BITS
    values = [
        _converted(value, source.dtype, dtype, bits=bits)
        for (source, value), dtype in zip(args, node.compute, strict=False)
    ]
    views = [
        value if type(value) in WEAK else laid(value, axes, node.shape)
        for value, axes in zip(values, node.axes, strict=True)
    ]
    result = np.asarray(KERNELS[node.op](*views))
    return _cast(result, _working(node.dtype))


def laid(value: Array, axes: Axes, shape: tuple[int, ...]) -> Array:
    """A view of `shape`, with stride 0 where it stretches."""
    place: list[int | None] = [None] * len(shape)
    for axis, to in enumerate(axes):
        if to is not None:
            place[to] = axis
    return np.broadcast_to(_viewed(value, tuple(place)), shape)


def _viewed(value: Array, axes: Axes) -> Array:
    """A view with the axes in this order, None for a new one; axes left out have extent 1."""
    named = [axis for axis in axes if axis is not None]
    rest = [axis for axis in range(value.ndim) if axis not in named]
    index: list[Any] = [None if axis is None else slice(None) for axis in axes]
    index += [0] * len(rest)
    view: Array = value.transpose(*named, *rest)[tuple(index)]
    return view


def _reduced(node: Reduce, value: Array) -> Array:
    """A reduction; the reduced axes are moved to the end and joined, in C order."""
    kept = [axis for axis in range(value.ndim) if axis not in node.over]
    counts = [value.shape[axis] for axis in node.over]
    rows = tuple(value.shape[axis] for axis in kept)
    flat = value.transpose(*kept, *node.over).reshape(*rows, math.prod(counts))
    if not math.prod(rows):  # NumPy refuses the minimum of nothing even for an empty result
        result = np.empty(rows, _working(node.dtype))
    else:
        result = np.asarray(_REDUCTIONS[node.op](flat, _working(node.dtype)))
    return _cast(result, _working(node.dtype)).reshape(node.shape)


def _total(of: np.ufunc) -> Callable[[Array, np.dtype[Any]], Any]:
    def total(rows: Array, dtype: np.dtype[Any]) -> Any:
        return of.reduce(rows, axis=-1, dtype=_WIDER.get(rows.dtype.name, dtype))

    return total


#: Reductions of the last axis by name; the second argument is the result's dtype.
_REDUCTIONS: Mapping[str, Callable[[Array, np.dtype[Any]], Any]] = {
    "sum": _total(np.add),
    "prod": _total(np.multiply),
    "min": lambda rows, _: rows.min(axis=-1),
    "max": lambda rows, _: rows.max(axis=-1),
    "any": lambda rows, _: (rows != 0).any(axis=-1),
    "all": lambda rows, _: (rows != 0).all(axis=-1),
    "argmin": lambda rows, _: rows.argmin(axis=-1),
    "argmax": lambda rows, _: rows.argmax(axis=-1),
}
