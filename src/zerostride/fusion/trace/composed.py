"""NumPy's functions on values that are composed of others: filled arrays, norms, isclose, NaNs."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ...compute.semantics import WEAK
from ...compute.special import is_float, meet
from ...engines.planning import plan_to
from .source import refuse
from .value import Value
from .views import some_axes

if TYPE_CHECKING:
    from .tracer import Tracer

OUTSIDE = "call it outside of the fused function, on its operands or its results"


def value_of(argument: Any) -> Value:
    """An argument that has to be a value."""
    if not isinstance(argument, Value):
        refuse("a value is an argument that decides a shape or a place", OUTSIDE)
    return argument


def among(*args: Any) -> Tracer:
    """The tracer of the first value among arguments."""
    return next(arg.tracer for arg in args if isinstance(arg, Value))


def broadcast_to(array: Any, shape: Any, subok: bool = False) -> Value:
    """As numpy.broadcast_to."""
    value = value_of(array)
    target = tuple(shape) if hasattr(shape, "__iter__") else (shape,)
    target_plan = plan_to(value.shape, target)
    return value.tracer.laid(value, target_plan.shape, target_plan.axes_mapping[0])


def result_type(*args: Any) -> np.dtype[Any]:
    """As numpy.result_type, also for values."""
    plain = [
        (arg.scalar_type(1) if arg.weak else arg.dtype) if isinstance(arg, Value) else arg
        for arg in args
    ]
    if any(isinstance(arg, Value) and arg.tracer.own for arg in args):
        return meet(*(arg if type(arg) in WEAK else np.result_type(arg) for arg in plain))
    return np.result_type(*plain)


def _filled(a: Any, fill: Any, dtype: Any, shape: Any) -> Value:
    value = value_of(a)
    filled = value.tracer.cast(value.tracer.lift(fill), np.dtype(dtype or value.dtype))
    target = value.shape if shape is None else shape
    return broadcast_to(filled, target if isinstance(target, tuple) else _sizes(target)).again()


def _sizes(shape: Any) -> tuple[int, ...]:
    """A shape, which may be one number."""
    return tuple(map(operator.index, shape if isinstance(shape, list | tuple) else (shape,)))


def _full_like(
    a: Any,
    fill_value: Any,
    dtype: Any = None,
    order: str = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: str | None = None,
) -> Value:
    return _filled(a, fill_value, dtype, shape)


def _constant_like(number: int) -> Callable[..., Value]:
    def constant_like(
        a: Any,
        dtype: Any = None,
        order: str = "K",
        subok: bool = True,
        shape: Any = None,
        *,
        device: str | None = None,
    ) -> Value:
        return _filled(a, number, dtype, shape)

    return constant_like


#: Norms of vectors by their order: functions of the absolute values, the axes and keepdims.
_NORMS: Mapping[Any, Callable[[Value, Any, bool], Any]] = {
    None: lambda x, axis, keep: np.sqrt((x * x).sum(axis, keepdims=keep)),
    2: lambda x, axis, keep: np.sqrt((x * x).sum(axis, keepdims=keep)),
    1: lambda x, axis, keep: x.sum(axis, keepdims=keep),
    math.inf: lambda x, axis, keep: x.max(axis, keepdims=keep),
    -math.inf: lambda x, axis, keep: x.min(axis, keepdims=keep),
}


def _norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """numpy.linalg.norm of vectors, and Frobenius's of matrices."""
    value = value_of(x)
    axes = some_axes(axis, value.ndim)
    matrix = ord is not None and len(axes) == 2
    if (matrix and ord != "fro") or (ord is not None and len(axes) > 2) or axes == ():
        refuse("numpy.linalg.norm of matrices cannot be fused, but Frobenius's", OUTSIDE)
    return _vector_norm(value, axes, keepdims, None if matrix else ord)


def _vector_norm(x: Any, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    """numpy.linalg.vector_norm of the orders that are plain reductions."""
    value = value_of(x)
    if ord not in _NORMS:
        refuse(f"numpy.linalg.norm of order {ord} cannot be fused", OUTSIDE)
    value = value.astype(np.float64) if value.dtype.kind in "biu" else value
    return _NORMS[ord](
        abs(value) if ord not in (None, 2) or value.dtype.kind == "c" else value, axis, keepdims
    )


def _nan_to_num(
    x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Value:
    value = value_of(x)
    if not is_float(value.dtype):
        if value.dtype.kind == "c":
            refuse("numpy.nan_to_num of complex numbers cannot be fused", OUTSIDE)
        return value.again()
    most = float(np.finfo(value.dtype).max)
    apply, tracer = value.tracer.apply, value.tracer
    high, low, none = (
        tracer.cast(tracer.lift(number), value.dtype)
        for number in (most if posinf is None else posinf, -most if neginf is None else neginf, nan)
    )
    large = apply("equal", (value, math.inf)), apply("equal", (value, -math.inf))
    finite = apply("where", (large[0], high, apply("where", (large[1], low, value))))
    return apply("where", (apply("isnan", (value,)), none, finite))


def _isclose(
    a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False
) -> Value:
    tracer = among(a, b)
    x, y = tracer.lift(a), tracer.lift(b)
    if y.dtype.kind in "biu" and not y.weak:
        y = y.astype(np.result_type(y.dtype, 1.0))
    near = abs(x - y) <= abs(y) * rtol + atol
    close: Value = (near & tracer.apply("isfinite", (y,))) | tracer.apply("equal", (x, y))
    if equal_nan:
        close = close | (tracer.apply("isnan", (x,)) & tracer.apply("isnan", (y,)))
    return close


def _allclose(*args: Any, **options: Any) -> Value:
    return _isclose(*args, **options).all()


def _ptp(a: Any, axis: Any = None, out: Any = None, keepdims: bool = False) -> Any:
    value = value_of(a)
    return value.max(axis, out, keepdims) - value.min(axis, out, keepdims)


# Without NaNs


def _without_nan(a: Any, by: float) -> tuple[Value, Value | None]:
    """A value with a number in place of NaNs, and their mask; None for dtypes without NaN."""
    value = value_of(a)
    if not is_float(value.dtype):
        return value, None
    gone = value.tracer.apply("isnan", (value,))
    return value.tracer.apply("where", (gone, by, value)), gone


def _nan_total(name: str, by: float) -> Callable[..., Value]:
    def total(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Value:
        result: Value = getattr(_without_nan(a, by)[0], name)(axis, dtype, keepdims=keepdims)
        return result

    return total


def _nan_chosen(name: str, by: float) -> Callable[..., Value]:
    def chosen(a: Any, axis: Any = None, keepdims: bool = False) -> Value:
        value, gone = _without_nan(a, by)
        result: Value = getattr(value, name)(axis, keepdims=keepdims)
        if gone is None:
            return result
        nothing = gone.all(axis, keepdims=keepdims)
        return result.tracer.apply("where", (nothing, math.nan, result))

    return chosen


def _nanmean(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Value:
    value, gone = _without_nan(a, 0.0)
    if gone is None:
        return value.mean(axis, dtype, keepdims=keepdims)
    total = value.sum(axis, dtype, keepdims=keepdims)
    left = value.tracer.apply("logical_not", (gone,)).sum(axis, np.int64, keepdims=keepdims)
    mean: Value = (total / left).astype(total.dtype)
    return mean


# Others


def _average(a: Any, axis: Any = None, weights: Any = None, *, keepdims: bool = False) -> Any:
    if weights is None:
        return value_of(a).mean(axis, keepdims=keepdims)
    tracer = among(a, weights)
    x, w = tracer.lift(a), tracer.lift(weights)
    if w.shape != x.shape:
        if w.ndim != 1 or len(some_axes(axis, x.ndim)) != 1 or axis is None:
            refuse("weights are of the array's shape, or one number along an axis", OUTSIDE)
        place = some_axes(axis, x.ndim)[0]
        w = w[tuple(slice(None) if k == place else None for k in range(x.ndim))]
    wide = (np.float64,) if x.dtype.kind in "biu" else ()
    dtype = np.result_type(x.dtype, w.dtype, *wide)
    over = tracer.laid(w, x.shape, tuple(range(x.ndim))) if w.shape != x.shape else w
    total = tracer.apply("multiply", (x, w), dtype=dtype).sum(axis, keepdims=keepdims)
    average: Value = total / over.sum(axis, dtype, keepdims=keepdims)
    return average


def _select(condlist: Any, choicelist: Any, default: Any = 0) -> Value:
    if len(condlist) != len(choicelist):
        raise ValueError("list of cases must be same length as list of conditions")
    tracer = among(*condlist, *choicelist)
    conditions, choices = [*map(tracer.lift, condlist)], [*map(tracer.lift, choicelist)]
    if any(condition.dtype != np.bool_ for condition in conditions):
        raise TypeError("numpy.select chooses by truth values")
    choices.append(tracer.lift(default))
    dtype = result_type(*choices)
    *choices, result = (tracer.cast(choice, dtype) for choice in choices)
    for condition, choice in reversed([*zip(conditions, choices, strict=True)]):
        result = tracer.apply("where", (condition, choice, result))
    return result


def _polyval(p: Any, x: Any) -> Any:
    if isinstance(p, Value):
        refuse("the coefficients of a polynomial are an operand", "pass them by keyword, one each")
    value = value_of(x)
    result: Any = _filled(value, 0, None, None)
    numbers = np.asarray(p)
    for k, number in enumerate(numbers):  # a captured array is indexed, so that each call reads it
        result = result * value + (numbers[k, ...] if numbers is p else number)
    return result


def _sinc(x: Any) -> Value:
    value = value_of(x) * math.pi
    nonzero = value.tracer.apply("where", (value == 0, 1e-20, value))
    ratio: Value = np.sin(nonzero) / nonzero
    return ratio


#: The composed functions, by NumPy's functions.
COMPOSED: Mapping[Callable[..., Any], Callable[..., Any]] = {
    np.broadcast_to: broadcast_to,
    np.zeros_like: _constant_like(0),
    np.ones_like: _constant_like(1),
    np.full_like: _full_like,
    np.linalg.norm: _norm,
    np.linalg.vector_norm: _vector_norm,
    np.nan_to_num: _nan_to_num,
    np.isclose: _isclose,
    np.allclose: _allclose,
    np.ptp: _ptp,
    np.fix: lambda x: value_of(x).tracer.apply("trunc", (x,)),
    np.nansum: _nan_total("sum", 0.0),
    np.nanprod: _nan_total("prod", 1.0),
    np.nanmax: _nan_chosen("max", -math.inf),
    np.nanmin: _nan_chosen("min", math.inf),
    np.nanmean: _nanmean,
    np.average: _average,
    np.select: _select,
    np.polyval: _polyval,
    np.sinc: _sinc,
}
