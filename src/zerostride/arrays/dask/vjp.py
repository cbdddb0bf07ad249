"""Gradients of fused functions of Dask arrays, as lazy as the results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...compute.reference import as_operand
from ...fusion.calls import Call, Compiled
from ...fusion.grad.vjp import Described, GraphProgram, Ways, program_of
from ...fusion.grad.vjp import pulled as pulled_by
from . import lazy


def pulled(
    compiled: Compiled, values: Sequence[Any], call: Call, name: str
) -> tuple[Any, Callable[[Any], tuple[Any, ...]]]:
    """A call's result, and the function that takes its cotangents back; see `Fused.vjp`.

    Args:
        compiled: the function compiled for the call.
        values: the call's operands.
        call: the call with NumPy stand-ins of their shapes and dtypes.
        name: the tasks' name.
    """
    forward = program_of(compiled, call)

    def run(program: GraphProgram, arrays: Sequence[Any]) -> list[Any]:
        tasks = name if program is forward else f"{name}-vjp"
        return lazy.computed(program.graph, arrays, tasks)

    arrays = (*values, *compiled.captured)
    ways = Ways(run, _array_of, _cast, _zeros)
    return pulled_by(forward, compiled.structure, arrays, len(values) - len(call.named), ways)


def _array_of(cotangent: Any) -> Any:
    if lazy.is_lazy(cotangent):
        return lazy.checked(cotangent, 0)
    return np.asarray(as_operand(cotangent))


def _cast(array: Any, dtype: str) -> Any:
    if array.dtype.kind == "c":
        raise TypeError(f"complex numbers have no value in {dtype}; cast their real part")
    return array.astype(dtype)


def _zeros(described: Described, beside: Any) -> Any:
    import dask.array as da

    chunks = getattr(beside, "chunks", "auto")
    return da.zeros(described.shape, chunks=chunks, dtype=described.dtype)
