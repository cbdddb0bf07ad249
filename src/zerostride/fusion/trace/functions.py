"""NumPy's ufuncs and functions, and zerostride's, on values of a traced function."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ...errors import BroadcastError
from ...ops import OPS, Op, find_op
from .composed import COMPOSED, OUTSIDE, among, result_type, value_of
from .source import no_out, refuse
from .value import Value
from .views import one_axis, ordered

if TYPE_CHECKING:
    from .tracer import Tracer


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
    """A ufunc of the op table, or one composed of such ufuncs; or its `reduce`."""
    name = f"numpy.{ufunc.__name__}"
    if method == "reduce" and ufunc in _FOLDS:
        return _folded(ufunc, *inputs, **options)
    if method != "__call__":
        refuse(f"{name}.{method} cannot be fused", OUTSIDE)
    dtype = options.get("dtype")
    if any(target is not None for target in options.get("out", ())):
        no_out(options["out"])
    if options.get("where", True) is not True:
        refuse(f"{name} with where= leaves elements unwritten", "use zs.where(condition, a, b)")
    if options.get("casting", "same_kind") != "same_kind" or "signature" in options:
        refuse(f"{name} with casting= or signature= cannot be fused", "use x.astype(dtype)")
    if ufunc in _OPS:
        return tracer.apply(_OPS[ufunc], inputs, dtype=dtype)
    if ufunc not in _MADE:
        refuse(f"{name} is no op of zerostride's", _INSTEAD.get(ufunc.__name__, OUTSIDE))
    values = [tracer.lift(operand) for operand in inputs]
    if dtype is not None:
        values = [tracer.cast(value, np.dtype(dtype)) for value in values]
    return _MADE[ufunc](*values)


def _folded(ufunc: np.ufunc, value: Any, axis: Any = 0, dtype: Any = None, **options: Any) -> Any:
    if {*options} - {"keepdims", "out"} or not isinstance(value, Value):
        refuse(f"numpy.{ufunc.__name__}.reduce with initial= or where= cannot be fused", OUTSIDE)
    if dtype is not None:
        value = value.astype(dtype)
    no_out((options.get("out") or (None,))[0])
    method = getattr(value, _FOLDS[ufunc])
    return method(axis=axis, keepdims=options.get("keepdims", False))


def _as_of(ufunc: np.ufunc, value: Value) -> Value:
    """The value in the dtype in which the ufunc computes it."""
    return value.tracer.cast(value, ufunc.resolve_dtypes((value.dtype, None))[0])


def _scaled(ufunc: np.ufunc, times: float, over: float) -> Callable[[Value], Value]:
    # Up to float32 NumPy scales in float32, by the quotient of the rounded numbers.
    single = float(np.float32(times) / np.float32(over))

    def scaled(x: Value) -> Value:
        converted = _as_of(ufunc, x)
        wide = converted.astype(np.float32) if converted.itemsize == 2 else converted
        product = wide * (single if converted.itemsize <= 4 else times / over)
        result: Value = product.astype(converted.dtype, copy=False)
        return result

    return scaled


def _float_power(x: Value, y: Value) -> Value:
    dtype = np.result_type(x.dtype, y.dtype, np.float64)
    return x.tracer.apply("pow", (x.astype(dtype), y.astype(dtype)))


def _reciprocal(x: Value) -> Value:
    if x.dtype.kind in "biu":
        refuse("numpy.reciprocal of integers cannot be fused", "write 1 // x, or 1 / x")
    return x.tracer.apply("divide", (1, x))


#: Ufuncs that are composed of ops, with NumPy's values.
_MADE: Mapping[np.ufunc, Callable[..., Any]] = {
    np.rint: lambda x: x.tracer.apply("round", (_as_of(np.rint, x),)),
    np.exp2: lambda x: x.tracer.apply("pow", (2, _as_of(np.exp2, x))),
    np.fabs: lambda x: abs(_as_of(np.fabs, x)),
    np.deg2rad: _scaled(np.deg2rad, math.pi, 180),
    np.radians: _scaled(np.radians, math.pi, 180),
    np.rad2deg: _scaled(np.rad2deg, 180, math.pi),
    np.degrees: _scaled(np.degrees, 180, math.pi),
    np.signbit: lambda x: x.tracer.apply("copysign", (1, _as_of(np.signbit, x))) < 0,
    np.float_power: _float_power,
    np.conjugate: lambda x: x.conj(),
    np.reciprocal: _reciprocal,
    np.divmod: lambda x, y: (np.floor_divide(x, y), np.remainder(x, y)),
}

# NumPy's functions


#: For functions that cannot be fused, equivalents that can.
_INSTEAD = {
    "array_equal": "write zs.all(x == y)",
    "copyto": "write zs.where(condition, new, old), and return the result",
    "putmask": "write zs.where(condition, new, old), and return the result",
    "piecewise": "write zs.where within zs.where",
    "isin": "write (x == a) | (x == b)",
    "dot": "write zs.sum(x * y, axis)",
    "vdot": "write zs.sum(x * y)",
    "inner": "write zs.sum(x * y, axis)",
    "einsum": "write zs.sum(x * y, axis), with new axes where they stretch",
    "ldexp": "write x * 2.0**n",
    "cbrt": "write np.copysign(abs(x) ** (1 / 3), x)",
}


def call_function(function: Callable[..., Any], args: Any, options: Any) -> Any:
    """A function of NumPy on a value, if it can be fused."""
    replacement = _FUNCTIONS.get(function)
    if replacement is None:
        module, name = getattr(function, "__module__", "numpy"), getattr(function, "__name__", "?")
        refuse(f"{module}.{name} cannot be fused", _INSTEAD.get(name, OUTSIDE))
    return replacement(*args, **options)


def refuse_torch(function: Callable[..., Any]) -> NoReturn:
    """Refuses a function of PyTorch's on a value."""
    name = str(getattr(function, "__name__", "?")).strip("_")
    try:
        instead = f"zs.{find_op(name).name}"
    except BroadcastError:
        instead = "Python's operators, NumPy's ufuncs or zs functions"
    refuse(f"torch.{name} cannot be fused", f"write it with {instead}")


def _method(name: str) -> Callable[..., Any]:
    """The method of the same name, with the same arguments."""

    def call(a: Any, *args: Any, **options: Any) -> Any:
        return getattr(value_of(a), name)(*args, **options)

    return call


def _where(condition: Any, *choices: Any) -> Value:
    if len(choices) != 2:
        refuse("numpy.where of a condition alone gives places, which cannot be fused", OUTSIDE)
    return among(condition, *choices).apply("where", (condition, *choices))


def _clip(
    a: Any, a_min: Any = None, a_max: Any = None, out: Any = None, min: Any = None, max: Any = None
) -> Any:
    from ...compute.unary import clip

    return clip(a, a_min if min is None else min, a_max if max is None else max, out=out)


def _expand_dims(a: Any, axis: Any) -> Value:
    value = value_of(a)
    axes = axis if isinstance(axis, tuple | list) else (axis,)
    rank = value.ndim + len(axes)
    new_axes = {one_axis(item, rank) for item in axes}
    if len(new_axes) < len(axes):
        raise ValueError("repeated axis")
    return value[tuple(None if k in new_axes else slice(None) for k in range(rank))]


def _moveaxis(a: Any, source: Any, destination: Any) -> Value:
    value = value_of(a)
    pairs = [
        entry if isinstance(entry, tuple | list) else (entry,) for entry in (source, destination)
    ]
    sources, places = ([one_axis(axis, value.ndim) for axis in pair] for pair in pairs)
    order = [axis for axis in range(value.ndim) if axis not in sources]
    for place, axis in sorted(zip(places, sources, strict=True)):
        order.insert(place, axis)
    return value.transpose(ordered(value.ndim, order))


def _count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Value:
    value = value_of(a)
    return value.tracer.apply("not_equal", (value, 0)).sum(axis, np.int64, keepdims=keepdims)


_FUNCTIONS: Mapping[Callable[..., Any], Callable[..., Any]] = {
    **COMPOSED,
    np.where: _where,
    np.clip: _clip,
    np.expand_dims: _expand_dims,
    np.moveaxis: _moveaxis,
    np.result_type: result_type,
    np.count_nonzero: _count_nonzero,
    np.real: lambda val: value_of(val).real,
    np.imag: lambda val: value_of(val).imag,
    np.shape: lambda a: a.shape,
    np.ndim: lambda a: a.ndim,
    np.size: lambda a, axis=None: a.size if axis is None else a.shape[axis],
    np.transpose: lambda a, axes=None: value_of(a).transpose(axes),
    np.matrix_transpose: lambda a: value_of(a).mT,
    np.around: _method("round"),
    np.amax: _method("max"),
    np.amin: _method("min"),
    **{
        getattr(np, name): _method(name)
        for name in (
            *("sum", "prod", "mean", "var", "std", "max", "min", "any", "all", "argmax", "argmin"),
            *("round", "squeeze", "reshape", "swapaxes", "copy", "astype", "ravel"),
        )
    },
}
