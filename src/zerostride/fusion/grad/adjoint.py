"""The adjoint of a broadcast at the speed of a sum: `Plan.unbroadcast`."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from ...compute import reference
from ...compute.foreign import dispatch, is_foreign
from ...compute.native import backend
from ...core.plan import Plan
from ..reductions import sum as fused_sum
from ..schedule.lower import DTYPES

#: Elements from which the engine is faster than NumPy, whose call takes 3 µs less; the second is
#: for 16-bit floats, which NumPy converts one by one. Measured on rows and columns, 2 processors.
_WORTH, _WORTH_OF_HALVES = 16384, 2048


def unbroadcast(plan: Plan, grad: Any, k: int) -> NDArray[Any]:
    """As :func:`zerostride.compute.reference.unbroadcast`, by the engine where it takes the dtype.

    >>> import numpy as np, zerostride as zs
    >>> unbroadcast(zs.plan((200, 100), (200, 1)), np.ones((200, 100)), 1)[:2]
    array([[100.],
           [100.]])
    """
    plan.need_numbers("a gradient")
    k = plan.operand_number(k)
    if is_foreign(grad):
        return dispatch().unbroadcast(plan, grad, k)  # type: ignore[no-any-return]
    return reference.unbroadcast(plan, grad, k, _summed)


def _summed(data: NDArray[Any], axes: tuple[int, ...]) -> Any:
    name = data.dtype.name
    enough = _WORTH_OF_HALVES if name in ("float16", "bfloat16") else _WORTH
    plain = name in DTYPES and data.dtype.isnative
    if plain and axes and data.size >= enough and backend() != "reference":
        return fused_sum(data, axis=axes, keepdims=True)
    return reference.summed(data, axes)
