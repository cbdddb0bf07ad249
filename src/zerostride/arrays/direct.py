"""The public functions on NumPy's arrays: what adapters call when they have lowered their own."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..compute import functions, unary
from ..ops import Op
from .model import Options


def call(op: Op, arrays: Sequence[Any], options: Options, dtype: np.dtype[Any] | None) -> Any:
    """An op of NumPy's arrays and numbers, without `out`; the engine knows most of these calls.

    >>> from zerostride.ops import OPS
    >>> call(OPS["add"], [np.ones((2, 3)), np.arange(2)], Options(rule="pdpd", axis=0), None)[1]
    array([2., 2., 2.])
    """
    function = _function(op.name)
    if options.says_nothing:
        return function(*arrays)
    said = {
        "rule": options.rule,
        "axis": options.axis,
        "broadcast": options.broadcast,
        "engine": options.engine,
        "dtype": dtype,
    }
    return function(*arrays, **{name: value for name, value in said.items() if value is not None})


@functools.cache
def _function(name: str) -> Callable[..., Any]:
    found: Callable[..., Any] = getattr(functions, name, None) or getattr(unary, name)
    return found
