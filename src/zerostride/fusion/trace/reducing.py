"""Reductions over axes of traced values: single nodes, and compositions of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ...compute.special import HALVES, working
from .graph import Constant
from .value import Value
from .views import some_axes

#: The dtypes of sums of truth values and integers, by kind.
_SUMS = {"b": np.dtype(np.int64), "i": np.dtype(np.int64), "u": np.dtype(np.uint64)}
#: Kinds whose means and exponentials are float64.
_WHOLE = frozenset("biu")

# Reductions of values


def _inner(dtype: np.dtype[Any]) -> str:
    """The dtype in which sums of a dtype are computed."""
    return working(dtype.name)


def _total(name: str, x: Value, axis: Any, keepdims: bool, dtype: Any) -> Value:
    result = np.dtype(dtype) if dtype is not None else _SUMS.get(x.dtype.kind, x.dtype)
    over = some_axes(axis, x.ndim)
    if not over:  # the values themselves; a cast would round 16-bit floats
        return x.again() if x.dtype == result else x.tracer.cast(x, result)
    return x.tracer.reduce(name, x, over, keepdims, _inner(result), result.name)


def _sum(x: Value, axis: Any = None, keepdims: bool = False, dtype: Any = None) -> Value:
    return _total("sum", x, axis, keepdims, dtype)


def _prod(x: Value, axis: Any = None, keepdims: bool = False, dtype: Any = None) -> Value:
    return _total("prod", x, axis, keepdims, dtype)


def _chosen(name: str) -> Callable[..., Value]:
    """Minima and maxima, and their positions; refused for no elements."""

    def reduced(x: Value, axis: Any = None, keepdims: bool = False) -> Value:
        over = some_axes(axis, x.ndim)
        if not math.prod(x.shape[k] for k in over):
            raise ValueError(
                f"{name} of no elements has no value: shape {x.shape} over axes {over}"
            )
        place = name.startswith("arg")
        if not over:
            zero = x.tracer.add(Constant(0, "int64", weak=False))
            return x.tracer.laid(zero, x.shape, ()) if place else x.again()
        dtype = "int64" if place else x.dtype.name
        return x.tracer.reduce(name, x, over, keepdims, x.dtype.name, dtype)

    return reduced


def _truth(name: str) -> Callable[..., Value]:
    def reduced(x: Value, axis: Any = None, keepdims: bool = False) -> Value:
        over = some_axes(axis, x.ndim)
        if x.dtype.kind == "c":
            x = x.tracer.apply("not_equal", (x, 0))
        if not over:
            return x.tracer.cast(x, np.dtype(np.bool_))
        return x.tracer.reduce(name, x, over, keepdims, "bool", "bool")

    return reduced


def _real_dtype(x: Value, dtype: Any, what: str) -> np.dtype[Any]:
    """The dtype of a mean: the operand's own, float64 for integers, or the requested one."""
    result = np.dtype(dtype) if dtype is not None else x.dtype
    if result.kind not in _WHOLE:
        return result
    if dtype is not None:
        raise TypeError(f"{what} is no {result}; ask for a dtype of floats")
    return np.dtype(np.float64)


def _mean(x: Value, axis: Any = None, keepdims: bool = False, dtype: Any = None) -> Value:
    result = _real_dtype(x, dtype, "a mean")
    if dtype is not None or x.dtype.kind in _WHOLE:  # as for a variance, which has the same sum
        x = x.tracer.cast(x, result)
    return _averaged(x, some_axes(axis, x.ndim), keepdims, result)


def _averaged(
    x: Value, over: tuple[int, ...], keepdims: bool, result: np.dtype[Any], ddof: float = 0
) -> Value:
    inner = _inner(result)
    total = x.tracer.reduce("sum", x, over, keepdims, inner, inner) if over else None
    count = math.prod(x.shape[k] for k in over) - ddof
    source = x.tracer.cast(x, np.dtype(inner)) if total is None else total
    return x.tracer.divided(source, max(count, 0), result)


def _var(
    x: Value, axis: Any = None, keepdims: bool = False, dtype: Any = None, ddof: float = 0
) -> Value:
    result = _real_dtype(x, dtype, "a variance")
    if dtype is not None or x.dtype.kind in _WHOLE:
        x = x.tracer.cast(x, result)
    over = some_axes(axis, x.ndim)
    difference = x - _averaged(x, over, True, x.dtype)
    if x.dtype.kind == "c":
        difference = abs(difference)
        result = difference.dtype
    return _averaged(difference.square(), over, keepdims, result, ddof)


def _std(
    x: Value, axis: Any = None, keepdims: bool = False, dtype: Any = None, ddof: float = 0
) -> Value:
    variance = _var(x, axis, keepdims, dtype, ddof)
    return variance.tracer.apply("sqrt", (variance,))


def _sum_of_squares(x: Value, axis: Any = None, keepdims: bool = False, dtype: Any = None) -> Value:
    result = np.dtype(dtype) if dtype is not None else _SUMS.get(x.dtype.kind, x.dtype)
    if result.name not in HALVES or x.dtype.name not in HALVES:
        x = x.tracer.cast(x, np.dtype(_inner(result)))  # before squares overflow
    return _sum(x.square(), axis, keepdims, result)


def _logsumexp(x: Value, axis: Any = None, keepdims: bool = False, dtype: Any = None) -> Value:
    result = _real_dtype(x, dtype, "a logarithm")
    if result.kind == "c":
        raise TypeError("logsumexp is a function of real numbers; complex ones have no greatest")
    if dtype is not None or x.dtype.kind in _WHOLE:
        x = x.tracer.cast(x, result)
    apply = x.tracer.apply
    over = some_axes(axis, x.ndim)
    if not math.prod(x.shape[k] for k in over):
        return apply("log", (_sum(apply("exp", (x,)), axis, keepdims),))
    greatest = _MAX(x, axis, True)
    # An infinity minus itself is NaN. So nothing is subtracted then; exp gives the result.
    taken = apply("where", (apply("isfinite", (greatest,)), greatest, 0))
    total = _sum(apply("exp", (x - taken,)), axis, keepdims)
    if not keepdims:
        taken = taken.squeeze(over)
    return apply("add", (apply("log", (total,)), taken))


_MAX = _chosen("max")

#: Reductions that count truth values as numbers.
COUNTED = frozenset({"sum", "prod", "mean", "var", "std", "sum_of_squares", "logsumexp"})

#: Functions of a value, its axes, keepdims, and further keywords.
TRACED: Mapping[str, Callable[..., Value]] = {
    "sum": _sum,
    "prod": _prod,
    "mean": _mean,
    "var": _var,
    "std": _std,
    "min": _chosen("min"),
    "max": _MAX,
    "any": _truth("any"),
    "all": _truth("all"),
    "argmin": _chosen("argmin"),
    "argmax": _chosen("argmax"),
    "sum_of_squares": _sum_of_squares,
    "logsumexp": _logsumexp,
}
