"""Reductions by a library's own functions: by name, with NumPy's dtypes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from ..compute.special import is_float
from ..fusion.trace.views import some_axes
from .namespace import Space, converted

#: The dtypes of sums of truth values and integers, by kind.
_SUMS = {"b": np.dtype(np.int64), "i": np.dtype(np.int64), "u": np.dtype(np.uint64)}


@np.errstate(all="ignore")  # as NumPy's arrays: no warnings
def reduce(
    space: Space, name: str, x: Any, source: np.dtype[Any], options: Mapping[str, Any]
) -> Any:
    """A reduction; see `zerostride.sum` and its like.

    Args:
        space: the library's functions.
        name: of the public function.
        x: an array.
        source: NumPy's dtype of it.
        options: axis, keepdims and, for some, dtype.

    Raises:
        BroadcastError: an axis that `x` lacks.
        TypeError: the reduction has no meaning for the dtype.
        ValueError: the minimum of no elements.
    """
    over = some_axes(options.get("axis"), x.ndim)
    keepdims, dtype = bool(options.get("keepdims", False)), options.get("dtype")
    return _REDUCTIONS[name](space, name, x, source, over, keepdims, dtype)


def _wide(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype in which values of a dtype are summed."""
    return np.dtype(np.float32) if is_float(dtype) and dtype.itemsize < 4 else dtype


def _total(
    space: Space, name: str, x: Any, source: np.dtype[Any], over: Any, keepdims: bool, dtype: Any
) -> Any:
    result = dtype or _SUMS.get(source.kind, source)
    inner = _wide(result)
    values = converted(space, x, source, inner)
    if over:
        wanted = space.dtype(inner.name, name)
        values = getattr(space.xp, name)(values, axis=over, keepdims=keepdims, dtype=wanted)
    return converted(space, values, inner, result)


def _float_for(source: np.dtype[Any], dtype: Any, what: str) -> np.dtype[Any]:
    if dtype is None:
        return np.dtype(np.float64) if source.kind in "biu" else source
    if np.dtype(dtype).kind in "biu":
        raise TypeError(f"{what} is no {dtype}; ask for a dtype of floats")
    result: np.dtype[Any] = np.dtype(dtype)
    return result


def _mean(
    space: Space, name: str, x: Any, source: np.dtype[Any], over: Any, keepdims: bool, dtype: Any
) -> Any:
    result = _float_for(source, dtype, "a mean")
    inner = _wide(result)
    total = _total(space, "sum", x, source, over, keepdims, inner)
    count = math.prod(x.shape[k] for k in over)
    return converted(space, total / space.number(float(count), total.dtype), inner, result)


def _chosen(
    space: Space, name: str, x: Any, source: np.dtype[Any], over: Any, keepdims: bool, dtype: Any
) -> Any:
    if not math.prod(x.shape[k] for k in over):
        shape = tuple(x.shape)
        raise ValueError(f"{name} of no elements has no value: shape {shape} over axes {over}")
    if source.kind == "c":
        raise TypeError(f"{space.name} has no {name} of {source}: they have no order there")
    xp = space.xp
    inner = np.dtype(np.uint8) if source.kind == "b" else _wide(source)
    values = converted(space, x, source, inner)
    if name.startswith("arg"):
        return _place(space, name, values, over, keepdims)
    if over:
        values = getattr(xp, name)(values, axis=over, keepdims=keepdims)
    return converted(space, values, inner, source)


def _place(space: Space, name: str, x: Any, over: tuple[int, ...], keepdims: bool) -> Any:
    """The position of the minimum or maximum, counted in C order over the axes."""
    xp = space.xp
    kept = tuple(k for k in range(x.ndim) if k not in over)
    rows = tuple(x.shape[k] for k in kept)
    if not over:
        return xp.zeros_like(x, dtype=space.dtype("int64", name))
    if 0 in rows:
        places = xp.zeros(rows, dtype=space.dtype("int64", name), device=space.device)
    else:
        flat = (
            xp.reshape(xp.permute_dims(x, (*kept, *over)), (*rows, -1))
            if kept
            else xp.reshape(x, (-1,))
        )
        places = xp.astype(getattr(xp, name)(flat, axis=-1), space.dtype("int64", name))
    if not keepdims:
        return places
    return xp.reshape(places, tuple(1 if k in over else n for k, n in enumerate(x.shape)))


def _truth(
    space: Space, name: str, x: Any, source: np.dtype[Any], over: Any, keepdims: bool, dtype: Any
) -> Any:
    values = x if source.kind == "b" else x != 0
    return getattr(space.xp, name)(values, axis=over, keepdims=keepdims) if over else values


def _sum_of_squares(
    space: Space, name: str, x: Any, source: np.dtype[Any], over: Any, keepdims: bool, dtype: Any
) -> Any:
    result = dtype or _SUMS.get(source.kind, source)
    inner = _wide(result)
    values = converted(space, x, source, inner)
    total = _total(space, "sum", values * values, inner, over, keepdims, inner)
    return converted(space, total, inner, result)


def _logsumexp(
    space: Space, name: str, x: Any, source: np.dtype[Any], over: Any, keepdims: bool, dtype: Any
) -> Any:
    xp, result = space.xp, _float_for(source, dtype, "a logarithm")
    if result.kind == "c":
        raise TypeError("logsumexp is a function of real numbers; complex ones have no greatest")
    inner = _wide(result)
    values = converted(space, x, source, inner)
    if not math.prod(x.shape[k] for k in over):
        total = xp.log(_total(space, "sum", values, inner, over, keepdims, inner))
        return converted(space, total, inner, result)
    greatest = _chosen(space, "max", values, inner, over, True, None)
    # An infinity minus itself is NaN. So nothing is subtracted then; exp gives the result.
    taken = xp.where(xp.isfinite(greatest), greatest, xp.zeros_like(greatest))
    total = xp.log(_total(space, "sum", xp.exp(values - taken), inner, over, True, inner)) + taken
    if not keepdims and over:
        total = xp.squeeze(total, axis=over)
    return converted(space, total, inner, result)


_REDUCTIONS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        **dict.fromkeys(("sum", "prod"), _total),
        **dict.fromkeys(("min", "max", "argmin", "argmax"), _chosen),
        **dict.fromkeys(("any", "all"), _truth),
        "mean": _mean,
        "sum_of_squares": _sum_of_squares,
        "logsumexp": _logsumexp,
    }
)
