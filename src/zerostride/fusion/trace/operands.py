"""Descriptions of a call's operands for tracing, and checks of their dtypes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...compute import reference
from ...compute.semantics import WEAK

#: The dtype of a Python number that meets no array.
ALONE = {bool: "bool", int: "int64", float: "float64", complex: "complex128"}


@dataclass(frozen=True, slots=True)
class Operand:
    """The description of an operand for tracing.

    Attributes:
        shape: its shape.
        dtype: its dtype's name; of a Python number NumPy's dtype for it alone.
        weak: whether it is a Python number, which takes the other operands' dtype.
        value: of a Python number that is a constant of this trace; None otherwise.
    """

    shape: tuple[int, ...]
    dtype: str
    weak: bool = False
    value: int | None = None


def operand_of(value: Any, k: int = 0) -> Operand:
    """Describes an array, a list, or a number.

    >>> operand_of(np.zeros((2, 3), "float32")), operand_of(1.5)
    (Operand(shape=(2, 3), dtype='float32', weak=False, value=None), \
Operand(shape=(), dtype='float64', weak=True, value=None))
    """
    if type(value) in WEAK:
        return Operand((), ALONE[type(value)], weak=type(value) is not bool)
    array = reference.as_operand(value, k)
    return Operand(array.shape, array.dtype.name)


def is_numeric(dtype: np.dtype[Any]) -> bool:
    """Whether a dtype is one of numbers; packages' dtypes and Python objects are included.

    >>> is_numeric(np.dtype("float16")), is_numeric(np.dtype("U3"))
    (True, False)
    """
    added = dtype.kind == "V" and dtype.fields is None and not dtype.name.startswith("void")
    return dtype.kind in "biufcO" or added


def check_elementwise(array: Any) -> None:
    """Refuses arrays whose operators are not element-wise.

    Raises:
        TypeError: a `numpy.matrix`.
    """
    if isinstance(array, np.matrix):
        raise TypeError(
            "an operand is a numpy.matrix, whose * is a matrix product; pass np.asarray(matrix)"
        )
