"""Graphs and their gradients, for adapters of libraries that differentiate or trace.

An op with its rule, a broadcast and a reduction become fused functions here, so that all of them
are handled alike: a call's operands have shapes and dtypes, `fuse` traces the function, and the
graph is run by the engine, differentiated (`fusion.grad`, any number of times), or computed by the
library itself (`replay`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..compute.semantics import values_of, variant
from ..core.plan import Plan
from ..engines.planning import plan
from ..errors import BroadcastError, Reason
from ..fusion.calls import Compiled, sort
from ..fusion.function import Fused
from ..fusion.grad.vjp import GraphProgram, program_of
from ..fusion.reductions import as_axes
from ..fusion.trace.graph import places_of
from ..fusion.trace.reducing import TRACED
from ..fusion.trace.value import Value
from ..ops import OPS, Op
from .model import FusedCall, Options

# Calls


@dataclass(frozen=True, slots=True)
class Prepared:
    """A call of a fused function on a library's arrays.

    Attributes:
        compiled: the function for the signature.
        program: its graph.
        values: the operands: the library's arrays and Python numbers, those passed by name last.
    """

    compiled: Compiled
    program: GraphProgram
    values: tuple[Any, ...]


def prepared(call: FusedCall, shown: Callable[[Any], Any], *, own: bool) -> Prepared:
    """A fused function for the signature of a call.

    Args:
        call: the call.
        shown: maps an array of the library to its stand-in for the signature (:func:`stand_in`, or
            a Python number), and any other operand to itself.
        own: whether Python floats promote as in a library with bfloat16 (`own_kinds`).
    """
    settings = call.settings
    more = {name: shown(value) for name, value in settings.items()}
    described = sort([shown(value) for value in call.operands], more, own=own)
    compiled: Compiled = call.function.compiled(described)
    program = program_of(compiled, described)
    named = (settings[name] for name in described.named)
    return Prepared(compiled, program, (*call.operands, *named))


@functools.lru_cache(4096)
def stand_in(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """An array of a shape and a dtype that takes no memory.

    >>> stand_in((1000, 1000), np.dtype("float32")).strides
    (0, 0)
    """
    return np.broadcast_to(np.zeros((), dtype), shape)


# Ops, broadcasts and reductions as fused functions


def fused_op(op: Op, options: Options, dtype: np.dtype[Any] | None) -> Fused:
    """An op under a rule as a fused function of its operands.

    Raises:
        BroadcastError: the engine's values differ from NumPy's.
    """
    return _fused_op(op.name, options.rule, options.axis, options.broadcast, options.engine, dtype)


@functools.lru_cache(2048, typed=True)
def _fused_op(
    name: str,
    rule: str | None,
    axis: int | None,
    broadcast: int | None,
    engine: str | None,
    dtype: np.dtype[Any] | None,
) -> Fused:
    options = Options(rule=rule, axis=axis, broadcast=broadcast, engine=engine)

    def function(*values: Any) -> Value:
        tracer = next(value.tracer for value in values if isinstance(value, Value))
        if engine is not None:
            values = _laid_by(
                tracer, OPS[name], options, [tracer.lift(operand) for operand in values]
            )
            return tracer.apply(name, values, dtype=dtype)
        return tracer.apply(name, values, rule=rule, axis=axis, broadcast=broadcast, dtype=dtype)

    function.__name__ = function.__qualname__ = name
    return Fused(function)


def _laid_by(tracer: Any, op: Op, options: Options, values: Sequence[Value]) -> tuple[Value, ...]:
    """The operands as an engine aligns them, if its values are NumPy's."""
    engine, shapes = options.engine, [value.shape for value in values]
    if op.operands > op.tensors:  # parameters are numbers under an engine
        op_plan: Plan = plan(*shapes)
    else:
        op_plan = options.plan(op, shapes)
    name = op_plan.rule.engine or engine
    if name is not None and name != "numpy":
        meeting = values_of(op, values[: op.tensors])
        kinds = {value.dtype.name for value in meeting if not value.weak}
        if len(kinds) > 1 or any(variant(op, name, kind) != "" for kind in kinds):
            raise BroadcastError(
                f"{engine}'s own values of {op.name} on {' and '.join(sorted(kinds))} are computed "
                "of arrays in memory, without gradients and not while a library traces",
                reason=Reason.NO_OP,
                rule=op_plan.rule,
                shapes=op_plan.operands,
                hint="leave engine= out, or compute it before",
            )
    return tuple(
        tracer.view(value, places_of(axes, len(op_plan.shape))) if value.shape else value
        for value, axes in zip(values, op_plan.axes_mapping, strict=True)
    )


@functools.lru_cache(1024)
def fused_broadcast(shape: tuple[int, ...], axes: tuple[int | None, ...]) -> Fused:
    """A broadcast as a fused function of its operand."""

    def broadcast(data: Value) -> Value:
        return data.tracer.laid(data, shape, axes)

    return Fused(broadcast)


@functools.lru_cache(1024)
def fused_adjoint(shape: tuple[int, ...], stretched: tuple[int, ...]) -> Fused:
    """The adjoint of a broadcast: a sum to an operand's shape."""

    def unbroadcast(grad: Value) -> Any:
        summed = TRACED["sum"](grad, stretched, True)
        return summed.tracer.view(summed, _places_of(summed.shape, shape))

    return Fused(unbroadcast)


def _places_of(source: tuple[int, ...], target: tuple[int, ...]) -> tuple[int | None, ...]:
    """The axes of a view between two shapes that differ in axes of extent 1."""
    long = iter([axis for axis, size in enumerate(source) if size != 1])
    return tuple(None if size == 1 else next(long) for size in target)


def fused_reduction(
    name: str, axis: Any, keepdims: bool, dtype: np.dtype[Any] | None = None
) -> Fused:
    """A reduction as a fused function of its operand."""
    axis = as_axes(axis)
    if isinstance(axis, int):
        axis = (axis,)
    return _fused_reduction(name, axis, bool(keepdims), dtype)


@functools.lru_cache(1024, typed=True)
def _fused_reduction(name: str, axis: Any, keepdims: bool, dtype: np.dtype[Any] | None) -> Fused:
    options = {"axis": axis, "keepdims": keepdims}
    if dtype is not None:
        options["dtype"] = dtype

    def reduced(x: Value) -> Value:
        return TRACED[name](x, **options)

    reduced.__name__ = reduced.__qualname__ = name
    return Fused(reduced)
