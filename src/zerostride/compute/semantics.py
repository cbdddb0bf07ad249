"""Floor 4: which function computes an op, and on which dtypes, without and under an engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import BroadcastError, Reason
from ..ops import Op, column_of
from ..plan import Plan
from .kernels import KERNELS, Kernel


def select(op: Op, plan: Plan, operands: list[Any]) -> tuple[Kernel, list[Any]]:
    """The function that computes `op` under the plan's engine, and the operands it is to be given.

    Raises:
        BroadcastError: the engine lacks the op, or does not take the dtypes.
    """
    engine = plan.rule.engine
    default = KERNELS[op.numpy or op.name]
    if engine is None or engine == "numpy":
        return default, operands
    if column_of(engine) not in op.names:
        raise BroadcastError(
            f"{engine} has no op for {op.name}",
            reason=Reason.NO_OP,
            rule=plan.rule,
            shapes=plan.operands,
        )
    return default, operands


def cast(kernel: Kernel, values: Sequence[Any], dtype: np.dtype[Any]) -> list[Any]:
    """Operands as a ufunc with `dtype` would take them: cast if that is of the same kind."""
    kept = 1 if kernel is np.where else 0  # a condition is no value
    given = np.result_type(*values[kept:], *([dtype] if _all_weak(values[kept:]) else []))
    if not np.can_cast(given, dtype, "same_kind"):
        raise TypeError(f"cannot cast {given} to dtype={dtype} (casting is 'same_kind')")
    return [*values[:kept], *[np.asarray(value, dtype=dtype) for value in values[kept:]]]


def _all_weak(values: Sequence[Any]) -> bool:
    return not any(isinstance(value, np.ndarray) for value in values)


__all__ = ["Kernel", "cast", "select"]
