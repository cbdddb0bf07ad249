"""Floor 4: values. The NumPy functions that the op table names, and those NumPy lacks.

A function here takes operands laid out already (views of one shape, or Python numbers, which stay
weak) and gives a new array. NumPy's own ufuncs are used as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from ..ops import OPS

Kernel = Callable[..., Any]


def prelu(x: Any, slope: Any) -> Any:
    """x where it is not negative, slope times x where it is.

    Only the negative elements are multiplied, so inf times 0 cannot warn where nothing uses it.
    """
    result = np.empty(np.broadcast_shapes(np.shape(x), np.shape(slope)), np.result_type(x, slope))
    result[...] = x
    return np.multiply(x, slope, out=result, where=np.less(x, 0))


def squared_difference(x: Any, y: Any) -> Any:
    """The difference, times itself."""
    difference = np.subtract(x, y)
    return np.multiply(difference, difference)


#: What the table's names stand for.
KERNELS: Mapping[str, Kernel] = MappingProxyType(
    {
        **{op.numpy: getattr(np, op.numpy) for op in OPS.values() if op.numpy},
        "prelu": prelu,
        "squared_difference": squared_difference,
    }
)
