"""The adjoint of a broadcast at the speed of a sum: `Plan.unbroadcast`."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from ..compute import reference
from ..compute.native import backend
from ..plan import Plan
from .lower import DTYPES
from .reductions import sum as fused_sum

#: Elements from which the engine's call is worth its preparation (NumPy sums these in 3 µs).
_WORTH = 4096


def unbroadcast(plan: Plan, grad: Any, k: int) -> NDArray[Any]:
    """As :func:`zerostride.compute.reference.unbroadcast`, by the engine where it takes the dtype.

    >>> import numpy as np, zerostride as zs
    >>> unbroadcast(zs.plan((100, 100), (100, 1)), np.ones((100, 100)), 1)[:2]
    array([[100.],
           [100.]])
    """
    return reference.unbroadcast(plan, grad, k, _summed)


def _summed(data: NDArray[Any], axes: tuple[int, ...]) -> Any:
    plain = data.dtype.name in DTYPES and data.dtype.isnative
    if plain and axes and data.size >= _WORTH and backend() != "reference":
        return fused_sum(data, axis=axes, keepdims=True)
    return reference.summed(data, axes)
