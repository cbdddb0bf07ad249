"""Checks of Python numbers that meet arrays: whether the array's dtype holds the number."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...ops import Op
from .graph import Constant
from .value import Value

#: Whether `numpy.where` wraps a Python integer that the other operand's dtype cannot hold, as it
#: does an array: where(c, uint8, 300) is 44. From 2.5 on it raises OverflowError (run: 2.1.3,
#: 2.5.5).
WHERE_WRAPS = tuple(map(int, np.__version__.split(".")[:2])) < (2, 5)
MOST_INT64, MOST_UINT64 = 2**63 - 1, 2**64 - 1
#: Comparisons as Python computes them. They decide a comparison with a number out of range.
COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "equal": operator.eq,
    "not_equal": operator.ne,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
}


def number_of(value: Value) -> Any:
    """The Python number of a constant value, or None."""
    node = value.tracer.nodes[value.node]
    return node.value if isinstance(node, Constant) and node.weak else None


def is_pythons(value: Value) -> bool:
    """Whether a value is a Python number or truth value, constant or not."""
    return value.weak or type(number_of(value)) is bool


def fits(number: int, dtype: np.dtype[Any]) -> bool:
    """Whether a dtype of integers holds an integer.

    >>> fits(255, np.dtype("uint8")), fits(-1, np.dtype("uint8"))
    (True, False)
    """
    info = np.iinfo(dtype)
    return bool(info.min <= number <= info.max)


def is_huge(value: Value) -> bool:
    """Whether a value is a Python integer that no integer dtype holds; a float may hold it."""
    number = number_of(value)
    return type(number) is int and not ~MOST_INT64 <= number <= MOST_UINT64


def beyond(name: str, values: Sequence[Value], dtypes: tuple[str, ...]) -> bool | None:
    """The result of a comparison with a Python integer that no operand reaches, or None.

    Raises:
        OverflowError: such an integer in any other op.
    """
    for k, (value, dtype) in enumerate(zip(values, dtypes, strict=False)):
        number, target = number_of(value), np.dtype(dtype)
        if type(number) is not int or target.kind not in "iuf":
            continue
        if target.kind == "f":
            float(number)  # raises Python's OverflowError
            continue
        if fits(number, target):
            continue
        info = np.iinfo(target)
        if name in COMPARISONS and not values[1 - k].weak:
            pair = (info.min, number) if k else (number, info.min)
            return COMPARISONS[name](*pair)
        raise OverflowError(f"Python integer {number} out of bounds for {target}")
    return None


def check_power(op: Op, values: Sequence[Value], dtypes: tuple[str, ...]) -> None:
    """Refuses a constant negative power of integers, as NumPy does."""
    if op.name != "pow" or np.dtype(dtypes[-1]).kind not in "iu":
        return
    node = values[1].tracer.nodes[values[1].node]
    if isinstance(node, Constant) and node.value < 0:
        raise ValueError("Integers to negative integer powers are not allowed.")
