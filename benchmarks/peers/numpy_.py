"""NumPy: the reference, and a library of one thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..rows import Array, Task
from .peer import Call, Prepared

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "multiply": np.multiply,
    "divide": np.divide,
    "clip": np.clip,
    "relu": lambda x: np.maximum(x, 0),
    "leaky_relu": lambda x, alpha: np.where(x > 0, x, x * x.dtype.type(alpha)),
    "prelu": lambda x, slope: np.where(x > 0, x, x * slope),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "less": np.less,
    "pow": np.power,
    "exp": np.exp,
    "tanh": np.tanh,
    "where": np.where,
}


def _leaky_relu(x: Array, alpha: float, out: Array) -> Array:
    return np.maximum(x, np.multiply(x, alpha, out=out), out=out)


def _prelu(x: Array, slope: Array, out: Array) -> Array:
    np.multiply(x, slope, out=out)
    np.copyto(out, x, where=x > 0)
    return out


def _sigmoid(x: Array, out: Array) -> Array:
    np.exp(np.negative(x, out=out), out=out)
    return np.divide(1, np.add(out, 1, out=out), out=out)


#: Ops that no ufunc computes, in steps that write into the output.
_STEPS: dict[str, Callable[..., Array]] = {
    "relu": lambda x, out: np.maximum(x, 0, out=out),
    "leaky_relu": _leaky_relu,
    "prelu": _prelu,
    "sigmoid": _sigmoid,
}


def prepare(task: Task) -> Prepared:
    """The ufunc, or several."""
    op, out = task.row.op, task.out
    if op == "broadcast":
        return Prepared((Call(np.copyto, (out, *task.inputs)),), lambda _: _output(task))
    if op == "where":
        return _where(task)
    keywords = {} if out is None else {"out": out}
    function = _STEPS.get(op, FUNCTIONS[op])
    return Prepared((Call(function, task.inputs, keywords | task.row.keywords),))


def _where(task: Task) -> Prepared:
    condition, yes, no = task.inputs
    out = _output(task)

    def two_copies() -> Array:
        np.copyto(out, no)
        np.copyto(out, yes, where=condition)
        return out

    return Prepared((Call(np.where, task.inputs), Call(two_copies)))


def _output(task: Task) -> Array:
    assert task.out is not None
    return task.out
