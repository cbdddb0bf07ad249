"""Reductions over axes, of arrays and of values that are traced; those made of others, too."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from .value import Value
from .views import some_axes

if TYPE_CHECKING:
    from .function import Fused

_HALVES = frozenset({"float16", "bfloat16"})
#: Sums of truth values and integers, by kind.
_SUMS = {"b": np.dtype(np.int64), "i": np.dtype(np.int64), "u": np.dtype(np.uint64)}
#: Means and exponentials of these are float64's.
_WHOLE = frozenset("biu")

# Of values


def _inner(dtype: np.dtype[Any]) -> str:
    """What sums of a dtype are taken in."""
    return "float32" if dtype.name in _HALVES else dtype.name


def _total(name: str, x: Value, axis: Any, keepdims: bool, dtype: Any) -> Value:
    result = np.dtype(dtype) if dtype is not None else _SUMS.get(x.dtype.kind, x.dtype)
    over = some_axes(axis, x.ndim)
    if not over:
        return x.tracer.cast(x, result)
    return x.tracer.reduce(name, x, over, keepdims, _inner(result), result.name)


def _sum(x: Value, axis: Any = None, keepdims: bool = False, dtype: Any = None) -> Value:
    return _total("sum", x, axis, keepdims, dtype)


def _prod(x: Value, axis: Any = None, keepdims: bool = False, dtype: Any = None) -> Value:
    return _total("prod", x, axis, keepdims, dtype)


def _chosen(name: str) -> Callable[..., Value]:
    """Least and greatest, and where they are: there is none of no elements."""

    def reduced(x: Value, axis: Any = None, keepdims: bool = False) -> Value:
        over = some_axes(axis, x.ndim)
        if not math.prod(x.shape[k] for k in over):
            raise ValueError(
                f"{name} of no elements has no value: shape {x.shape} over axes {over}"
            )
        place = name.startswith("arg")
        if not over:
            zero = x.tracer.lift(np.int64(0))
            return x.tracer.laid(zero, x.shape, ()) if place else x.again()
        dtype = "int64" if place else x.dtype.name
        return x.tracer.reduce(name, x, over, keepdims, x.dtype.name, dtype)

    return reduced


def _truth(name: str) -> Callable[..., Value]:
    def reduced(x: Value, axis: Any = None, keepdims: bool = False) -> Value:
        over = some_axes(axis, x.ndim)
        if not over:
            return x.tracer.cast(x, np.dtype(np.bool_))
        return x.tracer.reduce(name, x, over, keepdims, "bool", "bool")

    return reduced


def _real_dtype(x: Value, dtype: Any, what: str) -> np.dtype[Any]:
    """The dtype of a mean: the operand's own, float64 for integers, or what is asked for."""
    result = np.dtype(dtype) if dtype is not None else x.dtype
    if result.kind not in _WHOLE:
        return result
    if dtype is not None:
        raise TypeError(f"{what} is no {result}; ask for a dtype of floats")
    return np.dtype(np.float64)


def _mean(x: Value, axis: Any = None, keepdims: bool = False, dtype: Any = None) -> Value:
    result = _real_dtype(x, dtype, "a mean")
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
    if result.name not in _HALVES or x.dtype.name not in _HALVES:
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
    # An infinity minus itself is NaN; nothing is taken out then, and exp has the answer.
    taken = apply("where", (apply("isfinite", (greatest,)), greatest, 0))
    total = _sum(apply("exp", (x - taken,)), axis, keepdims)
    if not keepdims:
        taken = taken.squeeze(over)
    return apply("add", (apply("log", (total,)), taken))


_MAX = _chosen("max")

#: Of a value: its axes, keepdims, and further keywords.
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

# The public functions


class Reduction(Protocol):
    """A public reduction."""

    def __call__(self, x: Any, axis: Any = None, keepdims: bool = False, *, out: Any = None) -> Any:
        """Computes it."""
        ...


class TypedReduction(Protocol):
    """A public reduction that is asked for a dtype."""

    def __call__(
        self,
        x: Any,
        axis: Any = None,
        keepdims: bool = False,
        *,
        dtype: Any = None,
        out: Any = None,
    ) -> Any:
        """Computes it."""
        ...


_DOC = """{summary}.

Args:
    x: an array, a list or a number; or a value of a fused function.
    axis: the axes to reduce: an integer or a tuple of them, negative ones from the end; None for
        all.
    keepdims: whether they stay as axes of extent 1.
{dtype}    out: an array that receives the result and is returned; it may overlap `x`.

Returns:
    An array of the axes that are left; a NumPy scalar if there are none. {result}

Raises:
    BroadcastError: an axis that `x` lacks, or the same one twice.
    TypeError: `x` has no numbers, or the result does not fit `out`.
{raises}
The result does not depend on how many threads compute it.

Source: {source}.

>>> import zerostride as zs
>>> zs.{name}({args}).tolist()
{shown}
"""
_DTYPE = "    dtype: what to compute in, and the result's.\n"
_EMPTY = "    ValueError: there are no elements to choose from.\n"
_SAME = "Its dtype is x's."


def _describe(
    function: Callable[..., Any],
    name: str,
    summary: str,
    result: str,
    args: str,
    shown: str,
    source: str | None = None,
) -> None:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = _DOC.format(
        name=name,
        summary=summary,
        dtype=_DTYPE if name in _TYPED else "",
        result=result,
        raises=_EMPTY if name[-3:] in ("min", "max") else "",
        source=source or f"numpy.{name}",
        args=args,
        shown=shown,
    )


_TYPED = frozenset({"sum", "prod", "mean", "sum_of_squares", "logsumexp"})


@functools.cache
def _fused(name: str) -> Fused:
    from .function import Fused

    def reduced(x: Value, **options: Any) -> Value:
        return TRACED[name](x, **options)

    reduced.__name__ = reduced.__qualname__ = name
    return Fused(reduced)


def _either(name: str, x: Any, axis: Any, keepdims: bool, out: Any, **options: Any) -> Any:
    """Of a value a node of its graph, of anything else a call."""
    options |= {"axis": tuple(axis) if isinstance(axis, list) else axis, "keepdims": bool(keepdims)}
    if isinstance(x, Value):
        return x.reduced(name, out, **options)
    return _fused(name)(x, out=out, **options)


def _reduction(name: str, *words: str) -> Reduction:
    def function(x: Any, axis: Any = None, keepdims: bool = False, *, out: Any = None) -> Any:
        return _either(name, x, axis, keepdims, out)

    _describe(function, name, *words)
    return function


def _typed_reduction(name: str, *words: str) -> TypedReduction:
    def function(
        x: Any,
        axis: Any = None,
        keepdims: bool = False,
        *,
        dtype: Any = None,
        out: Any = None,
    ) -> Any:
        return _either(
            name, x, axis, keepdims, out, dtype=None if dtype is None else np.dtype(dtype)
        )

    _describe(function, name, *words)
    return function


_PAIRS = "[[1, 2], [3, 5]], axis=1"
_WIDENS = "Integers and truth values give 64 bits, as NumPy's; other dtypes stay."
_REAL = (
    "Integers and truth values give float64, other dtypes stay;\n"
    "    16-bit floats are computed in float32."
)

sum = _typed_reduction("sum", "The sum of the elements along axes", _WIDENS, _PAIRS, "[3, 8]")
prod = _typed_reduction(
    "prod", "The product of the elements along axes", _WIDENS, _PAIRS, "[2, 15]"
)
mean = _typed_reduction("mean", "The mean of the elements along axes", _REAL, _PAIRS, "[1.5, 4.0]")
min = _reduction(
    "min", "The least element along axes; NaN if there is one", _SAME, _PAIRS, "[1, 3]"
)
max = _reduction(
    "max", "The greatest element along axes; NaN if there is one", _SAME, _PAIRS, "[2, 5]"
)
any = _reduction(
    "any",
    "Whether any element along axes is true",
    "Truth values.",
    "[[0, 0], [0, 2]], axis=1",
    "[False, True]",
)
all = _reduction(
    "all",
    "Whether all elements along axes are true",
    "Truth values.",
    "[[1, 0], [1, 2]], axis=1",
    "[False, True]",
)
argmin = _reduction(
    "argmin",
    "Where the first of the least elements along axes is, counted in C order; the first NaN",
    "An int64.",
    _PAIRS,
    "[0, 0]",
)
argmax = _reduction(
    "argmax",
    "Where the first of the greatest elements along axes is, counted in C order; the first NaN",
    "An int64.",
    _PAIRS,
    "[1, 1]",
)
sum_of_squares = _typed_reduction(
    "sum_of_squares",
    "The sum of the squares of the elements along axes",
    _WIDENS,
    _PAIRS,
    "[5, 34]",
    "ONNX, ReduceSumSquare",
)
logsumexp = _typed_reduction(
    "logsumexp",
    "The logarithm of the sum of exponentials along axes, without overflow",
    _REAL,
    "[[1000.0, 1000.0], [0.0, 0.0]], axis=1",
    "[1000.6931471805599, 0.6931471805599453]",
    "ONNX, ReduceLogSumExp",
)
