"""A graph evaluated node by node, by the functions of one library: NumPy, PyTorch, JAX, any other.

The graph's axes hold the result of each rule, so every rule becomes a view and a stretch. 16-bit
floats are float32 from where they are read to where they leave or are cast, without rounding in
between.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from ..compute.semantics import WEAK
from ..compute.special import HALVES, is_float, working
from ..ops import ops_with
from .trace.graph import Apply, Axes, Constant, Graph, Input, Node, Reduce, View, results_of

_OF_WIDTH = ops_with("width")
#: Values by their nodes' numbers.
Held = Sequence[Any] | Mapping[int, Any]


class Library(Protocol):
    """The functions of a library that an evaluation needs. Dtypes are NumPy's, by name."""

    #: Whether ops take a Python integer beyond the other operands' dtype, to compare or refuse it.
    takes_any_integer: bool

    def number(self, value: Any, /) -> Any:
        """An array without axes that holds a NumPy scalar, of its dtype."""
        ...

    def beside(self, op: str, value: Any, shape: tuple[int, ...], /) -> Any:
        """The same as an operand of an op on arrays of one shape."""
        ...

    def cast(self, array: Any, dtype: str, /) -> Any:
        """As :func:`zerostride.cast`; the array itself where it has the dtype."""
        ...

    def laid(self, array: Any, axes: Axes, shape: tuple[int, ...], /) -> Any:
        """An array broadcast to a shape; `axes` as `Apply.axes`."""
        ...

    def turned(self, array: Any, axes: Axes, shape: tuple[int, ...], /) -> Any:
        """An array with its axes in another order; `axes` as `View.axes`."""
        ...

    def apply(self, op: str, values: Sequence[Any], dtypes: Sequence[str], /) -> Any:
        """An op of the table, except "cast", on arrays of one shape in these dtypes."""
        ...

    def reduce(self, op: str, value: Any, over: tuple[int, ...], keepdims: bool, /) -> Any:
        """A reduction of `graph.Reduce` over some axes."""
        ...


def evaluate(graph: Graph, operands: Sequence[Any], library: Library) -> list[Any]:
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
        graph, lambda node, held: value_of(node, graph.nodes, held, operands, library)
    )
    nodes = [graph.nodes[k] for k in graph.outputs]
    return [
        library.cast(_as_array(node, value, library), node.dtype)
        for node, value in zip(nodes, results, strict=True)
    ]


def value_of(
    node: Node, nodes: Sequence[Node], held: Held, operands: Sequence[Any], library: Library
) -> Any:
    """A node's value: an array of the library, or a number whose dtype its readers decide.

    Args:
        node: one of `nodes`.
        nodes: the graph's.
        held: the values of the nodes that it reads.
        operands: of the call.
        library: the library that computes.
    """
    if isinstance(node, Input):
        return operands[node.index]
    if isinstance(node, Constant):
        return node.value if node.weak else np.dtype(node.dtype).type(node.value)
    if isinstance(node, Apply):
        return _applied(node, [(nodes[arg], held[arg]) for arg in node.args], library)
    source = nodes[node.arg]
    if isinstance(node, View):
        return library.turned(_as_array(source, held[node.arg], library), node.axes, node.shape)
    return _reduced(node, _converted(held[node.arg], source.dtype, node.compute, library), library)


def _as_array(node: Node, value: Any, library: Library) -> Any:
    return library.number(_number(value, node.dtype)) if _is_number(value) else value


def _is_number(value: Any) -> bool:
    return type(value) in WEAK or isinstance(value, np.generic)


def _number(value: Any, dtype: str) -> Any:
    """A number in a dtype; integers out of range wrap around."""
    with np.errstate(all="ignore"):
        return np.asarray(value).astype(np.dtype(dtype))[()]


def _converted(value: Any, source: str, dtype: str, library: Library, *, bits: bool = False) -> Any:
    """Values of dtype `source` converted for an op that computes in `dtype`; with `bits` 16-bit
    floats keep their own format."""
    inner = dtype if bits else working(dtype)
    if _is_number(value):
        number = _rounded(value, dtype, inner, library)
        return number if type(number) is int else library.number(number)
    if bits or (dtype in HALVES and source != dtype):
        value = library.cast(value, dtype)
    return library.cast(value, inner)


def _rounded(value: Any, dtype: str, inner: str, library: Library) -> Any:
    """A number in the dtype `inner`, rounded to `dtype` before, as in a single op."""
    if library.takes_any_integer and _is_beyond(value, np.dtype(dtype)):
        return value
    return _number(_number(value, dtype), inner)


def _is_beyond(number: Any, dtype: np.dtype[Any]) -> bool:
    if type(number) is not int or dtype.kind not in "iu":
        return False
    info = np.iinfo(dtype)
    return not info.min <= number <= info.max


def _applied(node: Apply, args: Sequence[tuple[Node, Any]], library: Library) -> Any:
    """An op's result on its arguments, each converted and then laid over the result's shape."""
    if node.op == "cast":
        source, value = args[0]
        rounded = _converted(value, source.dtype, node.compute[0], library)
        result = library.cast(library.cast(rounded, node.dtype), working(node.dtype))
        return library.laid(result, node.axes[0], node.shape)
    bits = node.op in _OF_WIDTH
    values = [
        _rounded(value, dtype, dtype if bits else working(dtype), library)
        if _is_number(value)
        else library.laid(
            _converted(value, source.dtype, dtype, library, bits=bits), axes, node.shape
        )
        for (source, value), dtype, axes in zip(args, node.compute, node.axes, strict=False)
    ]
    only_numbers = all(map(_is_number, values))
    for k, value in enumerate(values):
        if isinstance(value, np.generic):
            values[k] = (
                library.laid(library.number(value), (), node.shape)
                if only_numbers
                else library.beside(node.op, value, node.shape)
            )
    return library.cast(library.apply(node.op, values, node.compute), working(node.dtype))


def _reduced(node: Reduce, value: Any, library: Library) -> Any:
    dtype = working(node.dtype)
    if not node.over:
        if node.op.startswith("arg"):
            return library.laid(library.number(np.int64(0)), (), node.shape)
        return library.cast(value, dtype)
    if node.op in ("sum", "prod") and not is_float(np.dtype(node.compute)):
        value = library.cast(value, dtype)
    return library.cast(library.reduce(node.op, value, node.over, node.keepdims), dtype)
