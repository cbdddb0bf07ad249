"""Gradients of fused functions of Dask arrays, as lazy as the results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...compute.reference import as_operand
from ...compute.special import is_float
from ...errors import BroadcastError, Reason
from ...fusion.calls import Call, Compiled
from ...fusion.grad.graph import backward
from ...fusion.trace.graph import Node
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
    for node in compiled.graph.nodes:
        dtype = np.dtype(node.dtype)
        if dtype.kind not in "biu" and not is_float(dtype):
            raise TypeError(
                f"gradients are of real numbers, and the function computes with {dtype}"
            )
    operands = call.operands
    count = len(operands) - len(call.named)
    backward_pass = backward(
        compiled.graph, [*operands, *map(operand_of, compiled.captured)], count
    )
    arrays = (*values, *compiled.captured)
    results = lazy.computed(compiled.graph, arrays, name)
    outputs = [compiled.graph.nodes[k] for k in compiled.graph.outputs]

    def pull(cotangents: Any) -> tuple[Any, ...]:
        """The gradients of the results' inner product with cotangents."""
        leaves = compiled.structure.unpack(cotangents, "a cotangent")
        cotangent_arrays = [
            _cotangent(leaf, node, result, k)
            for k, (leaf, node, result) in enumerate(zip(leaves, outputs, results, strict=True))
        ]
        gradients = lazy.computed(backward_pass.graph, (*arrays, *cotangent_arrays), f"{name}-vjp")
        return tuple(
            _zero(operand, value) if place is None else gradients[place]
            for operand, value, place in zip(operands, values, backward_pass.places, strict=False)
        )

    return compiled.structure.pack(results), pull


def _cotangent(cotangent: Any, node: Node, result: Any, k: int) -> Any:
    """A cotangent as an array of its result's shape and dtype."""
    import dask.array as da

    dtype = np.dtype(node.dtype)
    if cotangent is None:
        return da.zeros(node.shape, chunks=result.chunks, dtype=dtype)
    if not is_float(dtype):
        raise TypeError(f"result {k} is of {dtype}, which has no gradient: its cotangent is None")
    array = (
        lazy.checked(cotangent, k) if lazy.is_lazy(cotangent) else np.asarray(as_operand(cotangent))
    )
    if array.shape != node.shape:
        raise BroadcastError(
            f"the cotangent of result {k} has shape {array.shape}; the result has {node.shape}",
            reason=Reason.EXTENT_MISMATCH,
        )
    if array.dtype.kind == "c":
        raise TypeError(f"the cotangent of result {k} is complex; gradients are of real numbers")
    return array.astype(dtype)


def _zero(operand: Operand, value: Any) -> Any:
    import dask.array as da

    dtype = np.dtype(operand.dtype)
    if not is_float(dtype):
        return None
    return da.zeros(operand.shape, chunks=getattr(value, "chunks", "auto"), dtype=dtype)
