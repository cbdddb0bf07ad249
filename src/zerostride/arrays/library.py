"""The base of libraries that evaluate a fused graph by their own functions (`fusion.evaluate`)."""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..fusion.trace.graph import Axes
from ..ops import OPS

#: A comparison with its operands exchanged.
_EXCHANGED = {name: op.swap for name, op in OPS.items() if "comparison" in op.facts}
#: Comparisons that are true of a negative number beside one without a sign.
_OF_NEGATIVE = frozenset({"less", "less_equal", "not_equal"})

Reduction = Callable[[Any, tuple[int, ...], bool], Any]


class ByRow(ABC):
    """A library with a function for each op, and one for each reduction."""

    takes_any_integer = False

    @property
    @abstractmethod
    def ops(self) -> Mapping[str, Callable[..., Any]]:
        """For each op of the table but "cast", a function of arrays of one dtype and one rank."""

    @property
    @abstractmethod
    def reductions(self) -> Mapping[str, Reduction]:
        """For each op of `graph.Reduce` a function of an array, its axes, and keepdims."""

    @abstractmethod
    def cast(self, array: Any, dtype: str) -> Any:
        """As `evaluate.Library.cast`."""

    @abstractmethod
    def number(self, value: Any) -> Any:
        """As `evaluate.Library.number`."""

    @abstractmethod
    def laid(self, array: Any, axes: Axes, shape: tuple[int, ...]) -> Any:
        """As `evaluate.Library.laid`."""

    def beside(self, op: str, value: Any, shape: tuple[int, ...]) -> Any:
        """A number as an operand: an array of the shape, with strides of 0 where there are any."""
        return self.laid(self.number(value), (), shape)

    def apply(self, op: str, values: Sequence[Any], dtypes: Sequence[str]) -> Any:
        """An op of the table; signed and unsigned integers of 64 bits are compared by value."""
        if {"int64", "uint64"} == {*dtypes[:-1]}:
            return self._compared(op, values, exchanged=dtypes[0] == "uint64")
        return self._row(self.ops, op)(*values)

    def reduce(self, op: str, value: Any, over: tuple[int, ...], keepdims: bool) -> Any:
        """A reduction over some axes."""
        return self._row(self.reductions, op)(value, over, keepdims)

    def _compared(self, op: str, values: Sequence[Any], *, exchanged: bool) -> Any:
        """Compares signed with unsigned integers as NumPy; no dtype holds both."""
        signed, unsigned = reversed(values) if exchanged else values
        name = _EXCHANGED[op] or op if exchanged else op
        either = self._row(self.ops, name)(self.cast(signed, "uint64"), unsigned)
        return either | (signed < 0) if name in _OF_NEGATIVE else either & (signed >= 0)

    def _row(self, table: Mapping[str, Callable[..., Any]], name: str) -> Callable[..., Any]:
        if name not in table:
            raise LookupError(
                f"a graph has the op {name!r}, and {type(self).__module__} has no row for it: name "
                "the library's own function in the op's row, or give that row a formula"
            )
        return table[name]


class Renamed:
    """A library's functions as formulas name them; a subclass has those that differ."""

    def __init__(self, module: Any) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Callable[..., Any]:
        function: Callable[..., Any] = getattr(self._module, name)
        return function

    def bits(self, x: Any) -> int:
        """The width of an array's dtype."""
        return 8 * int(x.dtype.itemsize)


def formulas(xp: Any) -> dict[str, Callable[..., Any]]:
    """For each op that has a formula, its function of a namespace's arrays."""
    return {
        op.name: functools.partial(op.formula, xp) for op in OPS.values() if op.formula is not None
    }


def named(module: Any, column: str) -> dict[str, Callable[..., Any]]:
    """For each op without a formula that a library has, its function: the first of its names."""
    functions: dict[str, Callable[..., Any]] = {}
    for op in OPS.values():
        names = [
            name for name in (*op.names.get(column, ()), op.name) if hasattr(module, str(name))
        ]
        if op.formula is None and op.name != "cast" and names:
            functions[op.name] = getattr(module, str(names[0]))
    return functions


def saturated(xp: Any, x: Any, dtype: str, convert: Callable[[Any], Any]) -> Any:
    """Floats as integers: truncated and saturated; NaN gives 0.

    Args:
        xp: the library's module.
        x: an array of floats of at least 32 bits.
        dtype: NumPy's name of the integers.
        convert: makes the library's integers of floats that are in their range.
    """
    info = np.iinfo(dtype)
    # Limits are powers of two, which every float holds; the largest integers are not.
    above, below = x >= math.ldexp(1.0, info.bits - (info.min < 0)), x < float(info.min)
    inside = convert(xp.where(above | below | xp.isnan(x), xp.zeros_like(x), x))
    most, least = xp.full_like(inside, int(info.max)), xp.full_like(inside, int(info.min))
    return xp.where(above, most, xp.where(below, least, inside))


def order_of(axes: Axes, sizes: Sequence[int]) -> tuple[int, ...]:
    """The order of an array's axes for a view: those of extent 1 that it drops come last."""
    axes_named = [axis for axis in axes if axis is not None]
    return (*axes_named, *(axis for axis in range(len(sizes)) if axis not in axes_named))


def in_rows(
    transpose: Callable[[Any, tuple[int, ...]], Any], x: Any, over: tuple[int, ...]
) -> tuple[Any, tuple[int, ...]]:
    """An array with some axes joined as its last one, in C order, and its shape with these kept.

    Args:
        transpose: the library's function of an array and the order of its axes.
        x: the array.
        over: the axes to join.
    """
    kept = tuple(axis for axis in range(x.ndim) if axis not in over)
    count = math.prod(x.shape[axis] for axis in over)
    rows = transpose(x, (*kept, *over)).reshape((*(x.shape[axis] for axis in kept), count))
    return rows, tuple(1 if k in over else n for k, n in enumerate(x.shape))
