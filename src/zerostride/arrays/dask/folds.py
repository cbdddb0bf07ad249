"""Reductions over chunks: a chunk's share, and how shares merge. Dask is not needed.

A share has extent 1 along the axes it was folded over, so shares are laid out as their chunks. Sums
and products are held in a wider dtype than the result's, which is rounded once. A share of several
numbers (a position and its value) has a structured dtype.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...compute.special import cast, working

Array = NDArray[Any]

#: The position in a share of no elements: after all others.
_NOWHERE = np.iinfo(np.int64).max
_WIDER: Mapping[str, str] = {
    "float16": "float32",
    "bfloat16": "float32",
    "float32": "float64",
    "complex64": "complex128",
}
_PLACES = frozenset({"argmin", "argmax"})


def share_dtype(fold: str, dtype: str) -> np.dtype[Any]:
    """The dtype of shares of a reduction whose values, or sums, are of `dtype`.

    >>> share_dtype("sum", "float32"), share_dtype("argmax", "int8").names
    (dtype('float64'), ('value', 'place'))
    """
    if fold in ("sum", "prod"):
        return np.dtype(_WIDER.get(dtype, dtype))
    if fold in _PLACES:
        return np.dtype([("value", np.dtype(working(dtype))), ("place", np.int64)])
    if fold == "logsumexp":
        wide = np.dtype(_WIDER.get(working(dtype), dtype))
        return np.dtype([("shift", wide), ("total", wide)])
    return np.dtype(dtype)


def identity(fold: str, dtype: np.dtype[Any]) -> Any:
    """The share of no elements, the identity of the fold.

    >>> identity("max", np.dtype("int8")), identity("sum", np.dtype("float64"))
    (np.int8(-128), np.float64(0.0))
    """
    result = np.zeros((), dtype)
    if fold in _PLACES:
        result["value"] = _limit(fold[3:], dtype["value"])
        result["place"] = _NOWHERE
    elif fold in ("min", "max"):
        result[()] = _limit(fold, dtype)
    elif fold in ("prod", "all"):
        result[()] = 1
    return result[()]


def _limit(fold: str, dtype: np.dtype[Any]) -> Any:
    """The greatest value of a dtype for "min", the least for "max"."""
    if dtype.kind == "b":
        return fold == "min"
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return info.max if fold == "min" else info.min
    return np.inf if fold == "min" else -np.inf


def packed(
    fold: str,
    results: Sequence[Any],
    dtype: np.dtype[Any],
    over: Sequence[int],
    whole: Sequence[int],
    block: Sequence[int],
    at: Sequence[int],
) -> Array:
    """A chunk's share.

    Args:
        fold: the reduction.
        results: of the chunk's program: the fold; for positions these and the values there; for
            "logsumexp" the shift, and the sum of the rest's exponentials.
        dtype: of shares.
        over: the axes that were folded.
        whole: the extents of the array that is folded.
        block: of its chunk.
        at: where the chunk begins in it.
    """
    if fold in _PLACES:
        share = np.empty(np.shape(results[0]), dtype)
        local = np.asarray(results[0])
        share["place"] = moved(local, [(whole[k], block[k], at[k]) for k in over])
        share["value"] = results[1]
        return share
    if fold == "logsumexp":
        share = np.empty(np.shape(results[0]), dtype)
        share["shift"], share["total"] = results
        return share
    return np.asarray(results[0]).astype(dtype, copy=False)


def moved(local: Array, axes: Sequence[tuple[int, int, int]]) -> Array:
    """Positions in a chunk as positions in the whole array, both counted in C order.

    Args:
        local: in the chunk.
        axes: for each counted axis the whole extent, the chunk's, and the chunk's first index.

    >>> moved(np.array([3]), [(10, 2, 4), (6, 2, 2)])
    array([33])
    """
    result = np.zeros_like(local)
    rest, scale = local, 1
    for whole, extent, begin in reversed(axes):
        rest, index = np.divmod(rest, extent)
        result += (index + begin) * scale
        scale *= whole
    return result


# Merging shares


def together(x: Array, axis: tuple[int, ...], keepdims: bool, *, fold: str) -> Array:
    """Merges shares along axes, which are kept (Dask's `combine`)."""
    del keepdims  # Dask passes it; a share keeps its axes
    with np.errstate(all="ignore"):
        return np.asarray(_TOGETHER[fold](x, axis))


def finished(x: Array, axis: tuple[int, ...], keepdims: bool, *, fold: str, dtype: str) -> Any:
    """The reduction of all shares along axes, in its dtype (Dask's `aggregate`)."""
    share = together(x, axis, True, fold=fold)
    if fold in _PLACES:
        share = share["place"]
    elif fold == "logsumexp":
        with np.errstate(all="ignore"):
            share = np.log(share["total"]) + share["shift"]
    result = np.asarray(cast(share, np.dtype(dtype)))
    if not keepdims:
        result = result.reshape([n for k, n in enumerate(result.shape) if k not in axis])
    return result if result.ndim else result[()]


def _of(ufunc: np.ufunc) -> Callable[[Array, tuple[int, ...]], Any]:
    return lambda x, axis: ufunc.reduce(x, axis=axis, keepdims=True, dtype=x.dtype)


def _first(fold: str) -> Callable[[Array, tuple[int, ...]], Array]:
    """The share whose value NumPy's function `fold` chooses; of equal ones the first position."""
    choose = getattr(np, fold)

    def chosen(x: Array, axis: tuple[int, ...]) -> Array:
        kept = [k for k in range(x.ndim) if k not in axis]
        rows = x.transpose(*kept, *axis).reshape(
            *(x.shape[k] for k in kept), math.prod(x.shape[k] for k in axis)
        )
        rows = np.take_along_axis(rows, np.argsort(rows["place"], axis=-1), -1)
        best = np.expand_dims(choose(rows["value"], axis=-1), -1)
        shares = np.take_along_axis(rows, best, -1)
        return shares.reshape([1 if k in axis else n for k, n in enumerate(x.shape)])

    return chosen


def _logsumexp(x: Array, axis: tuple[int, ...]) -> Array:
    """Rescales sums of exponentials from their own shifts to the greatest one, and adds them."""
    some = x["total"] != 0  # a share of no elements, or of infinities with a minus, has no shift
    shift = np.where(some, x["shift"], -np.inf).max(axis=axis, keepdims=True)
    taken = np.where(np.isfinite(shift), shift, 0)
    scaled = np.where(some, x["total"] * np.exp(x["shift"] - taken), 0)
    scaled = np.where(np.isinf(x["total"]), x["total"], scaled)  # and not times 0
    share = np.empty(shift.shape, x.dtype)
    share["shift"], share["total"] = taken, scaled.sum(axis=axis, keepdims=True)
    return share


_TOGETHER: Mapping[str, Callable[[Array, tuple[int, ...]], Any]] = {
    "sum": _of(np.add),
    "prod": _of(np.multiply),
    "min": lambda x, axis: x.min(axis=axis, keepdims=True),
    "max": lambda x, axis: x.max(axis=axis, keepdims=True),
    "any": lambda x, axis: x.any(axis=axis, keepdims=True),
    "all": lambda x, axis: x.all(axis=axis, keepdims=True),
    "argmin": _first("argmin"),
    "argmax": _first("argmax"),
    "logsumexp": _logsumexp,
}
