"""A graph evaluated with NumPy: the oracle, and the fallback of the engine.

Every op is its function of `compute.kernels`, on views. Sums and products of floats are computed in
a wider dtype and rounded once. No warning is given.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..compute.kernels import KERNELS
from ..compute.reference import refusal
from ..compute.special import cast
from . import evaluate as evaluation
from .evaluate import Held
from .trace.graph import Axes, Graph, Node, places_of

Array = NDArray[Any]

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

    >>> from .trace.graph import Input, Reduce
    >>> x = Input(0, (2, 3), "float32")
    >>> total = Reduce("sum", 0, (1,), False, "float32", (2,), "float32")
    >>> evaluate(Graph((x, total), (1,), 1), [np.ones((2, 3), "float32")])
    [array([3., 3.], dtype=float32)]
    """
    with np.errstate(all="ignore"):
        results = evaluation.evaluate(graph, operands, LIBRARY)
        # A result shares memory with no operand and no other result.
        fresh = map(np.array, results)
        return [result if result.ndim else result[()] for result in fresh]


def value_of(node: Node, nodes: Sequence[Node], held: Held, operands: Sequence[Any]) -> Any:
    """As :func:`zerostride.fusion.evaluate.value_of`, with NumPy."""
    return evaluation.value_of(node, nodes, held, operands, LIBRARY)


def laid(array: Array, axes: Axes, shape: tuple[int, ...]) -> Array:
    """A view of `shape`, with stride 0 where it stretches."""
    return np.broadcast_to(_turned(array, places_of(axes, len(shape))), shape)


def _turned(array: Array, axes: Axes) -> Array:
    """A view with the axes in this order, None for a new one; axes left out have extent 1."""
    named = [axis for axis in axes if axis is not None]
    rest = [axis for axis in range(array.ndim) if axis not in named]
    index: list[Any] = [None if axis is None else slice(None) for axis in axes]
    index += [0] * len(rest)
    view: Array = array.transpose(*named, *rest)[tuple(index)]
    return view


class _NumPy:
    """NumPy as the library of an evaluation."""

    takes_any_integer = True

    def number(self, value: Any) -> Array:
        return np.asarray(value)

    def beside(self, op: str, value: Any, shape: tuple[int, ...]) -> Array:
        return np.broadcast_to(np.asarray(value), shape)

    def cast(self, array: Any, dtype: str) -> Array:
        values, target = np.asarray(array), np.dtype(dtype)
        if values.dtype == target:
            return values
        if "O" in (values.dtype.kind, target.kind):
            return values.astype(target)
        return np.asarray(cast(values, target))

    def laid(self, array: Array, axes: Axes, shape: tuple[int, ...]) -> Array:
        return laid(array, axes, shape)

    def turned(self, array: Any, axes: Axes, shape: tuple[int, ...]) -> Array:
        return _turned(np.asarray(array), axes)

    def apply(self, op: str, values: Sequence[Any], dtypes: Sequence[str]) -> Array:
        try:
            return np.asarray(KERNELS[op](*values))
        except TypeError as error:
            raise refusal(op, values, error) from error

    def reduce(self, op: str, value: Array, over: tuple[int, ...], keepdims: bool) -> Array:
        """A reduction; the reduced axes are moved to the end and joined, in C order."""
        kept = [axis for axis in range(value.ndim) if axis not in over]
        rows = tuple(value.shape[axis] for axis in kept)
        count = math.prod(value.shape[axis] for axis in over)
        flat = value.transpose(*kept, *over).reshape(*rows, count)
        if not math.prod(rows):  # NumPy refuses the minimum of nothing even for an empty result
            flat = np.empty((*rows, 1), value.dtype)
        try:
            result = np.asarray(_REDUCTIONS[op](flat))
        except TypeError as error:
            raise refusal(op, [value], error) from error
        return np.expand_dims(result, over) if keepdims else result


LIBRARY = _NumPy()


def _total(of: np.ufunc) -> Callable[[Array], Any]:
    def total(rows: Array) -> Any:
        return of.reduce(rows, axis=-1, dtype=_WIDER.get(rows.dtype.name, rows.dtype))

    return total


#: Reductions of the last axis by name.
_REDUCTIONS: Mapping[str, Callable[[Array], Any]] = {
    "sum": _total(np.add),
    "prod": _total(np.multiply),
    "min": lambda rows: rows.min(axis=-1),
    "max": lambda rows: rows.max(axis=-1),
    "any": lambda rows: (rows != 0).any(axis=-1),
    "all": lambda rows: (rows != 0).all(axis=-1),
    "argmin": lambda rows: rows.argmin(axis=-1),
    "argmax": lambda rows: rows.argmax(axis=-1),
}
