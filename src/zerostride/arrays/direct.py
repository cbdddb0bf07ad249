"""The public functions on NumPy's arrays, for adapters that have lowered their operands."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..compute import functions, unary
from ..compute.functions import _run
from ..compute.native import promote
from ..compute.reference import as_operand
from ..compute.semantics import WEAK, own_kinds
from ..fusion import reductions
from ..fusion.trace.value import name_of
from ..ops import OPS, Op
from .model import Options

_OPTIONS = tuple(field.name for field in fields(Options))
#: The options of functions that take no rule.
_WITHOUT_RULES = frozenset({"engine", "out", "dtype"})


def call(op: Op, arrays: Sequence[Any], options: Options, *, own: bool = False) -> Any:
    """An op on numbers and the memory of a library's arrays; `out` is NumPy's.

    The engine has learned most of these calls.

    Args:
        op: the op.
        arrays: its operands.
        options: of the call, in NumPy's dtypes and arrays.
        own: whether the library has its own bfloat16 (`own_kinds`).

    >>> from zerostride.ops import OPS
    >>> call(OPS["add"], [np.ones((2, 3)), np.arange(2)], Options(rule="pdpd", axis=0))[1]
    array([2., 2., 2.])
    """
    function = _function(op.name)
    if own and options.engine is None:
        arrays = promoted(op, arrays, options.dtype)
    if options.says_nothing:
        return function(*arrays)
    by_name = {name: getattr(options, name) for name in _OPTIONS}
    arguments = {name: value for name, value in by_name.items() if value is not None}
    takes_rules = op.tensors > 1 or op.name == "clip"
    if op.name == "cast" or not (takes_rules or _WITHOUT_RULES.issuperset(arguments)):
        return _run(op, arrays, **by_name)
    return function(*arrays, **arguments)


def reduced(
    name: str,
    x: NDArray[Any],
    options: Mapping[str, Any],
    as_dtype: Callable[[Any], np.dtype[Any]],
) -> Any:
    """A reduction of NumPy's array; `dtype` among the options is the library's.

    >>> reduced("sum", np.ones((2, 3), np.int8), {"axis": 0, "out": None, "dtype": "f"}, np.dtype)
    array([2., 2., 2.], dtype=float32)
    """
    arguments = {key: value for key, value in options.items() if value is not None}
    if "dtype" in arguments:
        arguments["dtype"] = as_dtype(arguments["dtype"])
    return getattr(reductions, name)(x, **arguments)


def promoted(op: Op, arrays: Sequence[Any], dtype: np.dtype[Any] | None) -> Sequence[Any]:
    """The operands, with Python floats as bfloat16 arrays where they promote so (`own_kinds`).

    Args:
        op: the op.
        arrays: NumPy's, and Python numbers.
        dtype: what to compute in, or None.

    >>> from zerostride.ops import OPS
    >>> promoted(OPS["add"], [np.ones(2), 0.3], None)  # NumPy promotes these itself
    [array([1., 1.]), 0.3]
    """
    if float not in map(type, arrays):
        return arrays
    operands = [as_operand(operand, k) for k, operand in enumerate(arrays)]
    kinds = [
        type(operand).__name__ if type(operand) in WEAK else name_of(operand.dtype)
        for operand in operands
    ]
    taken = _taken(op.name, tuple(kinds), dtype)
    if taken is None:
        return arrays
    with np.errstate(all="ignore"):
        return [
            np.asarray(operand, to) if type(operand) is float else operand
            for operand, to in zip(operands, taken, strict=False)
        ]


@functools.lru_cache(1024)
def _taken(
    name: str, kinds: tuple[str, ...], dtype: np.dtype[Any] | None
) -> tuple[np.dtype[Any], ...] | None:
    """The dtypes that operands of these kinds take; None where NumPy promotes them itself."""
    own = own_kinds(name, kinds)
    if own == kinds:
        return None
    try:
        dtypes = promote(OPS[name], own, None if dtype is None else dtype.name) or own
    except TypeError:  # the function raises the error
        return None
    return tuple(map(np.dtype, dtypes))


@functools.cache
def _function(name: str) -> Callable[..., Any]:
    function: Callable[..., Any] = getattr(functions, name, None) or getattr(unary, name)
    return function
