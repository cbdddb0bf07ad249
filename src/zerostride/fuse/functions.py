"""NumPy's ufuncs and functions, and zerostride's, on values of a traced function."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..ops import OPS, Op
from ..planner import plan_to
from .source import no_out, refuse
from .value import Value
from .views import one_axis, ordered

if TYPE_CHECKING:
    from .tracer import Tracer

_OUTSIDE = "call it outside of the fused function, on its operands or its results"

# zerostride's functions


def call_op(tracer: Tracer, op: Op, operands: Sequence[Any], options: Mapping[str, Any]) -> Value:
    """A function of zerostride: an op of the table under a rule."""
    options = dict(options)
    if options.pop("engine", None) is not None:
        refuse(
            f"zs.{op.name} is asked for an engine's values in a fused function",
            "name the rule (rule=, axis=); compute engines' own values outside",
        )
    no_out(options.pop("out", None))
    return tracer.apply(op.name, operands, **options)


# NumPy's ufuncs

_OPS: Mapping[np.ufunc, str] = {
    getattr(np, op.numpy): op.name
    for op in OPS.values()
    if op.numpy and isinstance(getattr(np, op.numpy), np.ufunc)
}
_FOLDS: Mapping[np.ufunc, str] = {
    np.add: "sum",
    np.multiply: "prod",
    np.maximum: "max",
    np.minimum: "min",
    np.logical_and: "all",
    np.logical_or: "any",
}


def call_ufunc(
    tracer: Tracer, ufunc: np.ufunc, method: str, inputs: Sequence[Any], options: Mapping[str, Any]
) -> Any:
    """A ufunc that the op table has, or that is made of such; or its `reduce`."""
    name = f"numpy.{ufunc.__name__}"
    if method == "reduce" and ufunc in _FOLDS:
        return _folded(ufunc, *inputs, **options)
    if method != "__call__":
        refuse(f"{name}.{method} cannot be fused", _OUTSIDE)
    dtype = options.get("dtype")
    if any(one is not None for one in options.get("out", ())):
        no_out(options["out"])
    if options.get("where", True) is not True:
        refuse(f"{name} with where= leaves elements unwritten", "use zs.where(condition, a, b)")
    if options.get("casting", "same_kind") != "same_kind" or "signature" in options:
        refuse(f"{name} with casting= or signature= cannot be fused", "use x.astype(dtype)")
    if ufunc in _OPS:
        return tracer.apply(_OPS[ufunc], inputs, dtype=dtype)
    if ufunc not in _MADE:
        refuse(f"{name} is no op of zerostride's", _OUTSIDE)
    values = [tracer.lift(one) for one in inputs]
    if dtype is not None:
        values = [tracer.cast(one, np.dtype(dtype)) for one in values]
    return _MADE[ufunc](*values)


def _folded(ufunc: np.ufunc, value: Any, axis: Any = 0, dtype: Any = None, **options: Any) -> Any:
    if {*options} - {"keepdims", "out"} or not isinstance(value, Value):
        refuse(f"numpy.{ufunc.__name__}.reduce with initial= or where= cannot be fused", _OUTSIDE)
    if dtype is not None:
        value = value.astype(dtype)
    no_out((options.get("out") or (None,))[0])
    method = getattr(value, _FOLDS[ufunc])
    return method(axis=axis, keepdims=options.get("keepdims", False))


def _as_of(ufunc: np.ufunc, value: Value) -> Value:
    """The value in the dtype that the ufunc computes it in."""
    return value.tracer.cast(value, ufunc.resolve_dtypes((value.dtype, None))[0])


def _scaled(ufunc: np.ufunc, by: float) -> Callable[[Value], Value]:
    return lambda x: _as_of(ufunc, x) * by


def _float_power(x: Value, y: Value) -> Value:
    dtype = np.result_type(x.dtype, y.dtype, np.float64)
    return x.tracer.apply("pow", (x.astype(dtype), y.astype(dtype)))


def _conjugate(x: Value) -> Value:
    if x.dtype.kind == "c":
        refuse("numpy.conjugate of complex numbers cannot be fused", _OUTSIDE)
    return x.again()


def _reciprocal(x: Value) -> Value:
    if x.dtype.kind in "biu":
        refuse("numpy.reciprocal of integers cannot be fused", "write 1 // x, or 1 / x")
    return x.tracer.apply("divide", (1, x))


#: Ufuncs that are made of ops, with the values that they have.
_MADE: Mapping[np.ufunc, Callable[..., Any]] = {
    np.rint: lambda x: x.tracer.apply("round", (_as_of(np.rint, x),)),
    np.exp2: lambda x: x.tracer.apply("pow", (2, _as_of(np.exp2, x))),
    np.fabs: lambda x: abs(_as_of(np.fabs, x)),
    np.deg2rad: _scaled(np.deg2rad, math.pi / 180),
    np.radians: _scaled(np.radians, math.pi / 180),
    np.rad2deg: _scaled(np.rad2deg, 180 / math.pi),
    np.degrees: _scaled(np.degrees, 180 / math.pi),
    np.signbit: lambda x: x.tracer.apply("copysign", (1, _as_of(np.signbit, x))) < 0,
    np.float_power: _float_power,
    np.conjugate: _conjugate,
    np.reciprocal: _reciprocal,
    np.divmod: lambda x, y: (np.floor_divide(x, y), np.remainder(x, y)),
}

# NumPy's functions


#: What functions that cannot be fused are in ops that can.
_INSTEAD = {
    "norm": "write np.sqrt(zs.sum_of_squares(x, axis))",
    "vector_norm": "write np.sqrt(zs.sum_of_squares(x, axis))",
    "nan_to_num": "write zs.where(zs.isfinite(x), x, 0)",
    "isclose": "write abs(x - y) <= atol + rtol * abs(y)",
    "allclose": "write zs.all(abs(x - y) <= atol + rtol * abs(y))",
    "array_equal": "write zs.all(x == y)",
    "ptp": "write x.max(axis) - x.min(axis)",
    "average": "write zs.sum(x * weights, axis) / zs.sum(weights, axis)",
    "copyto": "write zs.where(condition, new, old), and return the result",
    "putmask": "write zs.where(condition, new, old), and return the result",
    "select": "write zs.where within zs.where",
}


def call_function(function: Callable[..., Any], args: Any, options: Any) -> Any:
    """A function of NumPy on a value, where it can be fused."""
    made = _FUNCTIONS.get(function)
    if made is None:
        module, name = getattr(function, "__module__", "numpy"), getattr(function, "__name__", "?")
        refuse(f"{module}.{name} cannot be fused", _INSTEAD.get(name, _OUTSIDE))
    return made(*args, **options)


def _method(name: str) -> Callable[..., Any]:
    """The method of the same name, with the same arguments."""

    def call(a: Any, *args: Any, **options: Any) -> Any:
        for option in ("where", "initial", "mean", "correction"):
            if option in options:
                refuse(f"numpy.{name} with {option}= cannot be fused", "use zs.where before it")
        return getattr(_value(a), name)(*args, **options)

    return call


def _value(given: Any) -> Value:
    if not isinstance(given, Value):
        refuse("a value is an argument that decides a shape or a place", _OUTSIDE)
    return given


def _where(condition: Any, *choices: Any) -> Value:
    if len(choices) != 2:
        refuse("numpy.where of a condition alone gives places, which cannot be fused", _OUTSIDE)
    return _among(condition, *choices).apply("where", (condition, *choices))


def _among(*given: Any) -> Tracer:
    return next(one.tracer for one in given if isinstance(one, Value))


def _clip(
    a: Any, a_min: Any = None, a_max: Any = None, out: Any = None, min: Any = None, max: Any = None
) -> Any:
    from ..compute.unary import clip

    return clip(a, a_min if min is None else min, a_max if max is None else max, out=out)


def _broadcast_to(array: Any, shape: Any, subok: bool = False) -> Value:
    value = _value(array)
    target = tuple(shape) if hasattr(shape, "__iter__") else (shape,)
    made = plan_to(value.shape, target)
    return value.tracer.laid(value, made.shape, made.axes_mapping[0])


def _expand_dims(a: Any, axis: Any) -> Value:
    value = _value(a)
    given = axis if isinstance(axis, tuple | list) else (axis,)
    rank = value.ndim + len(given)
    new = {one_axis(one, rank) for one in given}
    if len(new) < len(given):
        raise ValueError("repeated axis")
    return value[tuple(None if k in new else slice(None) for k in range(rank))]


def _moveaxis(a: Any, source: Any, destination: Any) -> Value:
    value = _value(a)
    pairs = [one if isinstance(one, tuple | list) else (one,) for one in (source, destination)]
    sources, places = ([one_axis(axis, value.ndim) for axis in one] for one in pairs)
    order = [axis for axis in range(value.ndim) if axis not in sources]
    for place, axis in sorted(zip(places, sources, strict=True)):
        order.insert(place, axis)
    return value.transpose(ordered(value.ndim, order))


def _full(number: Any) -> Callable[..., Value]:
    def full_like(a: Any, *fill: Any, dtype: Any = None, shape: Any = None, **_: Any) -> Value:
        value, given = _value(a), fill[0] if number is None else number
        one = value.tracer.cast(value.tracer.lift(given), np.dtype(dtype or value.dtype))
        return value.tracer.laid(one, value.shape if shape is None else tuple(shape), ())

    return full_like


def _result_type(*given: Any) -> np.dtype[Any]:
    return np.result_type(
        *[
            (one.scalar_type(1) if one.weak else one.dtype) if isinstance(one, Value) else one
            for one in given
        ]
    )


def _count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Value:
    value = _value(a)
    return value.tracer.apply("not_equal", (value, 0)).sum(axis, keepdims=keepdims)


_FUNCTIONS: Mapping[Callable[..., Any], Callable[..., Any]] = {
    np.where: _where,
    np.clip: _clip,
    np.broadcast_to: _broadcast_to,
    np.expand_dims: _expand_dims,
    np.moveaxis: _moveaxis,
    np.zeros_like: _full(0),
    np.ones_like: _full(1),
    np.full_like: _full(None),
    np.result_type: _result_type,
    np.count_nonzero: _count_nonzero,
    np.shape: lambda a: a.shape,
    np.ndim: lambda a: a.ndim,
    np.size: lambda a, axis=None: a.size if axis is None else a.shape[axis],
    np.transpose: lambda a, axes=None: _value(a).transpose(axes),
    np.matrix_transpose: lambda a: _value(a).mT,
    np.around: _method("round"),
    np.amax: _method("max"),
    np.amin: _method("min"),
    **{
        getattr(np, name): _method(name)
        for name in (
            *("sum", "prod", "mean", "var", "std", "max", "min", "any", "all", "argmax", "argmin"),
            *("round", "squeeze", "reshape", "swapaxes", "copy", "astype"),
        )
    },
}
