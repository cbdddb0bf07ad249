"""A NumPy expression with preallocated temporaries.

The function runs once on arrays that write down what is done with them; then temporaries that are
no longer needed are given to later steps, the last step is given the output, and what is left is a
list of calls with `out=`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from ..rows import Array, aligned
from .namespaces import Functions, erf, numpy_functions


@dataclass(frozen=True)
class _Step:
    """`function(*args, out=out)`; args are steps' numbers (as _Of) or what the call was given."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    #: Whether the output may lie where an argument of its shape and dtype did.
    in_place: bool


@dataclass(frozen=True)
class _Of:
    """The result of a step."""

    step: int


class _Traced(NDArrayOperatorsMixin):
    """An array that writes down what is done with it."""

    def __init__(self, steps: list[_Step], array: Array, step: int | None = None) -> None:
        self.steps = steps
        self.array = array
        self.step = step

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **keywords: Any) -> Any:
        if method == "reduce":
            return self.record(lambda x, out: ufunc.reduce(x, out=out, **keywords), args, False)
        if method != "__call__" or keywords:
            return NotImplemented
        return self.record(ufunc, args, True)

    def record(
        self, function: Callable[..., Any], args: tuple[Any, ...], in_place: bool
    ) -> _Traced:
        """Runs a step, for its result's shape and dtype, and writes it down."""
        arrays = [a.array if isinstance(a, _Traced) else a for a in args]
        with np.errstate(all="ignore"):
            result = np.asarray(function(*arrays, out=None))
        kept = tuple(_kept(a) for a in args)
        self.steps.append(_Step(function, kept, result.shape, result.dtype, in_place))
        return _Traced(self.steps, result, len(self.steps) - 1)


def _kept(argument: Any) -> Any:
    if not isinstance(argument, _Traced):
        return argument
    return argument.array if argument.step is None else _Of(argument.step)


def _where(condition: Array, yes: Any, no: Any, out: Array | None) -> Array:
    if out is None:
        return np.where(condition, yes, no)
    np.copyto(out, no)
    np.copyto(out, yes, where=condition)
    return out


def _functions() -> Functions:
    def where(*args: Any) -> Any:
        return next(a for a in args if isinstance(a, _Traced)).record(_where, args, False)

    def cast(x: _Traced, dtype: Any) -> Any:
        def copied(x: Array, out: Array | None) -> Array:
            if out is None:
                return x.astype(dtype)
            np.copyto(out, x, casting="unsafe")
            return out

        return x.record(copied, (x,), False)

    def total(x: Any, axis: int, keepdims: bool = False) -> Any:
        return np.add.reduce(x, axis=axis, keepdims=keepdims)

    def mean(x: Any, axis: int, keepdims: bool = False) -> Any:
        return total(x, axis, keepdims) / np.float32(x.array.shape[axis])

    def largest(x: Any, axis: int, keepdims: bool = False) -> Any:
        return np.maximum.reduce(x, axis=axis, keepdims=keepdims)

    return replace(
        numpy_functions("float32", "bfloat16"),
        where=where,
        cast=cast,
        erf=lambda x: x.record(erf, (x,), True),
        sum=total,
        mean=mean,
        max=largest,
    )


def with_buffers(
    function: Callable[..., Any], inputs: tuple[Array, ...], out: Array
) -> Callable[[], Array]:
    """A call that computes the function of these inputs into `out`, and allocates nothing."""
    steps: list[_Step] = []
    function(_functions(), *(_Traced(steps, array) for array in inputs))
    last = steps[-1]
    outs = _buffers(steps, out, [out])
    if not last.in_place and any(outs[a.step] is out for a in last.args if isinstance(a, _Of)):
        outs = _buffers(steps, out, [])
    calls = [
        (step.function, tuple(outs[a.step] if isinstance(a, _Of) else a for a in step.args), into)
        for step, into in zip(steps, outs, strict=True)
    ]

    def run() -> Array:
        for function, args, into in calls:
            function(*args, out=into)
        return out

    return run


def _buffers(steps: list[_Step], out: Array, free: list[Array]) -> list[Array]:
    """An output for each step: one that nobody reads any more, the result's own for the last."""
    last_use = {a.step: k for k, s in enumerate(steps) for a in s.args if isinstance(a, _Of)}
    outs: list[Array] = []
    for k, step in enumerate(steps):
        ending = {a.step for a in step.args if isinstance(a, _Of) and last_use[a.step] == k}
        dead = [outs[e] for e in ending]
        if step.in_place:
            free = free + dead
        fits = (b for b in free if b.shape == step.shape and b.dtype == step.dtype)
        found = out if k == len(steps) - 1 else next(fits, None)
        if found is None:
            found = aligned(step.shape, step.dtype)
        free = [b for b in free if b is not found]
        if not step.in_place:
            free = free + dead
        outs.append(found)
    return outs
