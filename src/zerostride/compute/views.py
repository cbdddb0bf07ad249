"""A plan's views of arrays: the result's shape, and stride 0 where an operand stretches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.plan import Plan
from ..errors import BroadcastError, Reason
from .foreign import any_foreign, dispatch


def views(plan: Plan, arrays: Sequence[Any]) -> tuple[NDArray[Any], ...]:
    """See :meth:`zerostride.Plan.views`."""
    if plan.open is not None:
        bound = plan.bind(*map(np.shape, arrays))
        bound.need_numbers("a view")
        return bound.views(*arrays)
    if len(arrays) != len(plan.operands):
        raise BroadcastError(
            f"{len(arrays)} arrays for a plan of {len(plan.operands)} operands",
            reason=Reason.OPERAND_COUNT,
            rule=plan.rule,
            shapes=plan.operands,
        )
    if any_foreign(arrays):
        return dispatch().views(plan, arrays)  # type: ignore[no-any-return]
    return tuple(view(plan, k, array) for k, array in enumerate(arrays))


def view(plan: Plan, k: int, array: Any) -> NDArray[Any]:
    """See :meth:`zerostride.Plan.view`."""
    plan.need_numbers("a view")
    k, data = plan.operand_number(k), np.asarray(array)
    if data.shape != plan.operands[k]:
        raise BroadcastError(
            f"operand {k} has shape {data.shape}; the plan was made for {plan.operands[k]}",
            reason=Reason.EXTENT_MISMATCH,
            rule=plan.rule,
            shapes=plan.operands,
            hint="make a plan for the arrays' own shapes",
        )
    return laid_over(plan, k, data)


def laid_over(plan: Plan, k: int, data: NDArray[Any]) -> NDArray[Any]:
    """The view of an array that has the shape of operand `k`, of a plan whose sizes are numbers."""
    # Inserting and removing axes of extent 1 never copies; nor does broadcast_to.
    aligned = plan.aligned[k]
    placed = data if data.shape == aligned else data.reshape(aligned, copy=False)
    try:
        return np.broadcast_to(placed, plan.shape)
    except ValueError:
        raise BroadcastError(
            f"a view of {plan.shape} in {data.dtype} has more bytes than NumPy can count",
            reason=Reason.TOO_LARGE,
            rule=plan.rule,
            shapes=plan.operands,
        ) from None
