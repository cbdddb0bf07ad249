"""A fused function's graph computed by another library, node by node.

Used where the native engine cannot run: on a device, and for a library's tracers (JAX under jit,
grad and vmap; PyTorch's transforms). The graph's axes hold the result of each rule, so that every
rule becomes a reshape and a stretch.

Dtypes are those of `fusion.reference`: 16-bit floats are float32 from where they are read to where
they leave or are cast.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from ..compute.semantics import WEAK
from ..compute.special import HALVES, is_float, working
from ..fusion.trace.graph import Apply, Axes, Constant, Graph, Input, Node, Reduce, View, results_of

#: Ops of a number's bits, which need its own width.
_OF_BITS = frozenset({"nextafter"})


class Library(Protocol):
    """The functions of a library that a replay needs. Dtypes are NumPy's, by name."""

    @property
    def ops(self) -> Mapping[str, Callable[..., Any]]:
        """For each op of the table but "cast", a function of arrays of one dtype and one rank."""
        ...

    @property
    def reductions(self) -> Mapping[str, Callable[[Any, tuple[int, ...], bool], Any]]:
        """For each op of `graph.Reduce` a function of an array, its axes, and keepdims."""
        ...

    def number(self, value: Any) -> Any:
        """An array without axes that holds a NumPy scalar, of its dtype."""
        ...

    def cast(self, array: Any, dtype: str) -> Any:
        """As :func:`zerostride.cast`; the array itself where it has the dtype."""
        ...

    def laid(self, array: Any, axes: Axes, shape: tuple[int, ...]) -> Any:
        """An array broadcast to a shape; `axes` as `Apply.axes`."""
        ...

    def turned(self, array: Any, axes: Axes, shape: tuple[int, ...]) -> Any:
        """An array with its axes in another order; `axes` as `View.axes`."""
        ...


def replay(graph: Graph, operands: Sequence[Any], library: Library) -> list[Any]:
    """The results of a graph, computed by a library.

    Args:
        graph: what to compute.
        operands: for each input an array of its shape and dtype; a Python number, or an array
            without axes, where it is weak.
        library: the library that computes.

    Returns:
        An array for each output, of its node's shape and dtype. It may be an operand itself.
    """
    results = results_of(
        graph, lambda node, held: _value(node, graph.nodes, held, operands, library)
    )
    pairs = zip(graph.outputs, results, strict=True)
    return [_leaving(graph.nodes[k], value, library) for k, value in pairs]


def _value(
    node: Node,
    nodes: Sequence[Node],
    held: Sequence[Any],
    operands: Sequence[Any],
    library: Library,
) -> Any:
    if isinstance(node, Input):
        return operands[node.index]
    if isinstance(node, Constant):
        return node.value if node.weak else np.dtype(node.dtype).type(node.value)
    if isinstance(node, Apply):
        return _applied(node, [(nodes[arg], held[arg]) for arg in node.args], library)
    source = nodes[node.arg]
    if isinstance(node, View):
        array = _as_array(source, held[node.arg], library)
        return library.turned(array, node.axes, node.shape)
    array = _converted(held[node.arg], source.dtype, node.compute, library)
    return _reduced(node, array, library)


def _leaving(node: Node, value: Any, library: Library) -> Any:
    return library.cast(_as_array(node, value, library), node.dtype)


def _as_array(node: Node, value: Any, library: Library) -> Any:
    return library.number(_number(value, node.dtype)) if _is_number(value) else value


def _is_number(value: Any) -> bool:
    return type(value) in WEAK or isinstance(value, np.generic)


def _number(value: Any, dtype: str) -> Any:
    """A number in a dtype; integers out of range wrap around."""
    target = np.dtype(dtype)
    with np.errstate(all="ignore"):
        return np.asarray(value).astype(target)[()]


def _converted(value: Any, source: str, dtype: str, library: Library, *, bits: bool = False) -> Any:
    """Values of dtype `source` converted for an op that computes in `dtype`."""
    inner = dtype if bits else working(dtype)
    if _is_number(value):
        return library.number(_number(_number(value, dtype), inner))
    if bits or (dtype in HALVES and source != dtype):
        value = library.cast(value, dtype)
    return library.cast(value, inner)


def _applied(node: Apply, args: Sequence[tuple[Node, Any]], library: Library) -> Any:
    if node.op == "cast":
        source, value = args[0]
        rounded = _converted(value, source.dtype, node.compute[0], library)
        result = library.cast(library.cast(rounded, node.dtype), working(node.dtype))
        return library.laid(result, node.axes[0], node.shape)
    bits = node.op in _OF_BITS
    values = [
        library.laid(_converted(value, source.dtype, dtype, library, bits=bits), axes, node.shape)
        for (source, value), dtype, axes in zip(args, node.compute, node.axes, strict=False)
    ]
    if {"int64", "uint64"} == {*node.compute[:-1]}:
        result = _compared(node.op, node.compute[0] == "uint64", values, library)
    else:
        result = _row(library.ops, node.op, library)(*values)
    return library.cast(result, working(node.dtype))


#: A comparison with its operands exchanged.
_EXCHANGED = {
    "less": "greater",
    "less_equal": "greater_equal",
    "greater": "less",
    "greater_equal": "less_equal",
}
#: Comparisons that are true of a negative number beside one without a sign.
_OF_NEGATIVE = frozenset({"less", "less_equal", "not_equal"})


def _compared(op: str, exchanged: bool, values: Sequence[Any], library: Library) -> Any:
    """Compares signed with unsigned integers by value, as NumPy; no dtype holds both."""
    signed, unsigned = reversed(values) if exchanged else values
    name = _EXCHANGED.get(op, op) if exchanged else op
    either = _row(library.ops, name, library)(library.cast(signed, "uint64"), unsigned)
    return either | (signed < 0) if name in _OF_NEGATIVE else either & (signed >= 0)


def _reduced(node: Reduce, value: Any, library: Library) -> Any:
    dtype = working(node.dtype)
    if not node.over:
        return library.cast(value, dtype)
    if node.op in ("sum", "prod") and not is_float(np.dtype(node.compute)):
        value = library.cast(value, dtype)
    result = _row(library.reductions, node.op, library)(value, node.over, node.keepdims)
    return library.cast(result, dtype)


def _row(table: Mapping[str, Callable[..., Any]], name: str, library: Library) -> Any:
    """A library's function for an op or a reduction."""
    if name not in table:
        module = type(library).__module__
        raise LookupError(
            f"a graph has the op {name!r}, and {module} has no row for it: write one there, of the "
            f"library's own function, or a formula for all libraries in {__package__}.formulas"
        )
    return table[name]


def aligned(axes: Axes, sizes: Sequence[int], rank: int) -> tuple[int, ...]:
    """An argument's shape at the result's rank, 1 where no axis lands.

    >>> aligned((None, 1), (1, 3), 3)
    (1, 3, 1)
    """
    shape = [1] * rank
    for axis, size in zip(axes, sizes, strict=True):
        if axis is not None:
            shape[axis] = size
    return tuple(shape)


def order_of(axes: Axes, sizes: Sequence[int]) -> tuple[int, ...]:
    """The order of an array's axes for a view: those of extent 1 that it drops come last."""
    named = [axis for axis in axes if axis is not None]
    return (*named, *(axis for axis in range(len(sizes)) if axis not in named))


def is_empty(shape: Sequence[int]) -> bool:
    """Whether a shape has no elements."""
    return not math.prod(shape)
