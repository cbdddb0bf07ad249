"""Shared parts of the tests of source: running it, and expected results."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

import zerostride as zs

#: Compiling it defines names in a namespace: the pasted source, run as a person would.
execute = getattr(builtins, "exec")  # noqa: B009


def expected(plan: zs.Plan, arrays: list[np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]]:
    """Each operand broadcast by repeating its elements: no views, no broadcast_to."""
    entries = []
    for array, aligned in zip(arrays, plan.aligned, strict=True):
        whole = array.reshape(aligned)
        for axis, (size, full) in enumerate(zip(aligned, plan.shape, strict=True)):
            whole = np.repeat(whole, full, axis) if size != full else whole
        entries.append(whole)
    return entries


def inputs(plan: zs.Plan) -> list[np.ndarray[Any, Any]]:
    return [
        np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape) + 1
        for shape in plan.operands
    ]
