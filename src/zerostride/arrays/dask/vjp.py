"""Gradients of fused functions of Dask arrays, as lazy as the results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...compute.reference import as_operand
from ...compute.special import is_float
from ...fusion.calls import Call, Compiled
from ...fusion.grad.graph import backward
from ...fusion.grad.vjp import check_real, cotangents_of
from ...fusion.trace.tracer import Operand, operand_of
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
    import dask.array as da

    check_real(compiled.graph)
    operands = call.operands
    count = len(operands) - len(call.named)
    backward_pass = backward(
        compiled.graph, [*operands, *map(operand_of, compiled.captured)], count
    )
    arrays = (*values, *compiled.captured)
    results = lazy.computed(compiled.graph, arrays, name)
    outputs = [compiled.graph.nodes[k] for k in compiled.graph.outputs]

    def pull(packed: Any) -> tuple[Any, ...]:
        """The gradients of the results' inner product with cotangents."""
        leaves = cotangents_of(packed, compiled.structure, outputs, _array_of, _cast)
        cotangents = [
            da.zeros(node.shape, chunks=result.chunks, dtype=node.dtype) if array is None else array
            for array, node, result in zip(leaves, outputs, results, strict=True)
        ]
        gradients = lazy.computed(backward_pass.graph, (*arrays, *cotangents), f"{name}-vjp")
        return tuple(
            _zero(operand, value) if place is None else gradients[place]
            for operand, value, place in zip(operands, values, backward_pass.places, strict=False)
        )

    return compiled.structure.pack(results), pull


def _array_of(cotangent: Any) -> Any:
    if lazy.is_lazy(cotangent):
        return lazy.checked(cotangent, 0)
    return np.asarray(as_operand(cotangent))


def _cast(array: Any, dtype: str) -> Any:
    if array.dtype.kind == "c":
        raise TypeError(f"complex numbers have no value in {dtype}; cast their real part")
    return array.astype(dtype)


def _zero(operand: Operand, value: Any) -> Any:
    import dask.array as da

    dtype = np.dtype(operand.dtype)
    if not is_float(dtype):
        return None
    return da.zeros(operand.shape, chunks=getattr(value, "chunks", "auto"), dtype=dtype)
