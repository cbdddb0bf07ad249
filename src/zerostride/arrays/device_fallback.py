"""Calls on arrays outside this processor's memory: planned as usual, computed by their library.

Fused functions are traced with stand-ins, NumPy arrays of the operands' shapes and dtypes that take
no memory, and their graphs are computed node by node.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..compute.outputs import check_places, check_shape
from ..compute.semantics import WEAK
from ..compute.special import keeps_kind
from ..core.plan import Plan
from ..errors import BroadcastError, Reason
from ..fusion.calls import Compiled, sort
from ..fusion.grad.vjp import gradients_of
from ..fusion.trace.graph import Node
from ..fusion.trace.structure import Structure
from ..ops import Op
from . import graph
from .model import Fusion
from .namespace import Space, apply, converted, laid, over

if TYPE_CHECKING:
    from .generic import Generic


@np.errstate(all="ignore")  # the namespace may be NumPy's; zerostride gives no warnings
def called(
    space: Space,
    op: Op,
    plan: Plan,
    arrays: Sequence[Any],
    dtypes: Sequence[np.dtype[Any] | None],
    dtype: np.dtype[Any] | None,
) -> Any:
    """An op of arrays and numbers, laid out by a plan."""
    values = [
        operand if type(operand) in WEAK else laid(space, operand, plan.aligned[k])
        for k, operand in enumerate(arrays)
    ]
    return over(space, apply(space, op, values, dtypes, dtype), plan.shape)


@np.errstate(all="ignore")
def written(space: Space, out: Any, result: Any, adapter: Generic, plan: Plan | None) -> Any:
    """Writes a result to `out`, converted within its kind, and returns it.

    Raises:
        BroadcastError: it has another shape.
        TypeError: its dtype does not take the result's, or the library's arrays are immutable.
        ValueError: two of its elements share memory.
    """
    source, target = adapter.dtype_of(result), adapter.dtype_of(out)
    _check_out(out, tuple(result.shape), target, plan)
    if not keeps_kind(source, target):
        raise TypeError(f"the result is {source}, which does not fit an out of {target}")
    try:
        out[...] = over(space, converted(space, result, source, target), out.shape)
    except TypeError as error:
        raise TypeError(f"out of {adapter.name(out)} cannot be written to: {error}") from error
    return out


@np.errstate(all="ignore")
def broadcast_into(
    space: Space, out: Any, view: Any, plan: Plan, dtype_of: Callable[[Any], np.dtype[Any]]
) -> Any:
    """Writes a view of the plan's shape to `out`, and returns it."""
    source, target = dtype_of(view), dtype_of(out)
    _check_out(out, plan.shape, target, plan)
    if not keeps_kind(source, target):
        raise TypeError(f"the data is {source}, which does not fit an out of {target}")
    out[...] = over(space, converted(space, view, source, target), out.shape)
    return out


def _check_out(out: Any, shape: tuple[int, ...], dtype: np.dtype[Any], plan: Plan | None) -> None:
    """Refuses an `out` that cannot hold a result; checks its memory if it has strides."""
    check_shape(tuple(out.shape), shape, plan)
    strides = getattr(out, "strides", None)  # CuPy's, in bytes as NumPy's
    if isinstance(strides, tuple):
        check_places(tuple(out.shape), strides, dtype.itemsize)


def standing(shape: Sequence[int], dtype: np.dtype[Any]) -> NDArray[Any]:
    """An array of a shape and a dtype whose elements share one place in memory.

    >>> standing((1000, 1000, 1000), np.dtype("float64")).strides
    (0, 0, 0)
    """
    sizes = tuple(map(int, shape))
    element = np.zeros((), dtype)
    return np.lib.stride_tricks.as_strided(element, sizes, (0,) * len(sizes), writeable=False)


def fused(
    adapter: Generic,
    function: Fusion,
    operands: Sequence[Any],
    settings: Mapping[str, Any],
    like: Any,
) -> tuple[list[Any], Structure]:
    """The results of a fused function, and how they are packed."""
    compiled, values = _traced(adapter, function, operands, settings, like)
    return graph.evaluate(adapter.space(like), compiled.graph, values), compiled.structure


def _traced(
    adapter: Generic,
    function: Fusion,
    operands: Sequence[Any],
    settings: Mapping[str, Any],
    like: Any,
) -> tuple[Compiled, list[Any]]:
    """The function compiled for these operands, and its graph's inputs on their device."""
    stand = [_standing_for(adapter, value) for value in operands]
    more = {name: _standing_for(adapter, value) for name, value in settings.items()}
    call = sort(stand, more)
    compiled: Compiled = function.compiled(call)
    inputs = [*operands, *(settings[name] for name in call.named), *compiled.captured]
    return compiled, adapter.arrays(inputs, like)


def _standing_for(adapter: Generic, value: Any) -> Any:
    return standing(value.shape, adapter.dtype_of(value)) if adapter.is_own(value) else value


def pulled(
    adapter: Generic,
    function: Fusion,
    operands: Sequence[Any],
    settings: Mapping[str, Any],
    like: Any,
) -> tuple[Any, Callable[..., Any]]:
    """The results of a fused function, and the function of cotangents that gives gradients."""
    compiled, values = _traced(adapter, function, operands, settings, like)
    space = adapter.space(like)
    results = graph.evaluate(space, compiled.graph, values)
    stand = [_standing_for(adapter, value) for value in operands]
    more = {name: _standing_for(adapter, value) for name, value in settings.items()}
    gradients = gradients_of(compiled, sort(stand, more))

    def zeros(dtype: str, shape: tuple[int, ...]) -> Any:
        wanted = space.dtype(dtype, "a gradient")
        return space.xp.zeros(shape, dtype=wanted, device=space.device)

    def pull(cotangents: Any) -> tuple[Any, ...]:
        leaves = compiled.structure.unpack(cotangents, "a cotangent")
        nodes = [compiled.graph.nodes[k] for k in compiled.graph.outputs]
        cotangent_arrays = [
            zeros(node.dtype, node.shape)
            if cotangent is None
            else _cotangent(adapter, cotangent, node, like, k)
            for k, (cotangent, node) in enumerate(zip(leaves, nodes, strict=True))
        ]
        gradient_arrays: list[Any] = []
        if gradients.ready is not None:
            gradient_arrays = graph.evaluate(
                space, gradients.ready.graph, [*values, *cotangent_arrays]
            )
        return tuple(
            gradient_arrays[place]
            if place is not None
            else None
            if np.dtype(operand.dtype).kind in "biu"
            else zeros(operand.dtype, operand.shape)
            for operand, place in zip(gradients.operands, gradients.places, strict=True)
        )

    return compiled.structure.pack(results), pull


def _cotangent(adapter: Generic, cotangent: Any, node: Node, like: Any, k: int) -> Any:
    """A cotangent as an array of its result's shape and dtype."""
    dtype = np.dtype(node.dtype)
    if dtype.kind in "biu":
        raise TypeError(f"result {k} is of {dtype}, which has no gradient: its cotangent is None")
    (array,) = adapter.arrays((cotangent,), like, numbers=True)
    if tuple(array.shape) != node.shape:
        raise BroadcastError(
            f"the cotangent of result {k} has shape {tuple(array.shape)}; the result has "
            f"{node.shape}",
            reason=Reason.EXTENT_MISMATCH,
        )
    return converted(adapter.space(like), array, adapter.dtype_of(array), dtype)
