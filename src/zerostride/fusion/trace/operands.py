"""What tracing has to know of the operands of a call, and which there are none of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...compute import reference
from ...compute.semantics import WEAK

#: What a Python number is until it meets an array.
ALONE = {bool: "bool", int: "int64", float: "float64", complex: "complex128"}


@dataclass(frozen=True, slots=True)
class Operand:
    """What tracing has to know of an operand of the call.

    Attributes:
        shape: its shape.
        dtype: its dtype's name; of a Python number that of NumPy's for it alone.
        weak: whether it is a Python number whose dtype is that of what it meets.
        value: of a Python number that is a constant of this trace; None otherwise.
    """

    shape: tuple[int, ...]
    dtype: str
    weak: bool = False
    value: int | None = None


def operand_of(value: Any, k: int = 0) -> Operand:
    """What tracing has to know of an array, a list, or a number.

    >>> operand_of(np.zeros((2, 3), "float32")), operand_of(1.5)
    (Operand(shape=(2, 3), dtype='float32', weak=False, value=None), \
Operand(shape=(), dtype='float64', weak=True, value=None))
    """
    if type(value) in WEAK:
        return Operand((), ALONE[type(value)], weak=type(value) is not bool)
    array = reference.as_operand(value, k)
    return Operand(array.shape, array.dtype.name)


def is_numeric(dtype: np.dtype[Any]) -> bool:
    """Whether a dtype is one of numbers, those that packages add and Python's objects among them.

    >>> is_numeric(np.dtype("float16")), is_numeric(np.dtype("U3"))
    (True, False)
    """
    added = dtype.kind == "V" and dtype.fields is None and not dtype.name.startswith("void")
    return dtype.kind in "biufcO" or added


def check_elementwise(array: Any) -> None:
    """Refuses arrays whose operators are not those of elements.

    Raises:
        TypeError: a `numpy.matrix`.
    """
    if isinstance(array, np.matrix):
        raise TypeError(
            "an operand is a numpy.matrix, whose * is a matrix product; pass np.asarray(matrix)"
        )
