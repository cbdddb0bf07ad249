"""Dask's arrays: lazy in, lazy out. A task computes a chunk; see `lazy` for how."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...compute.foreign import NotPlain
from ...compute.reference import as_operand, shape_of
from ...compute.semantics import WEAK
from ...core.plan import Plan
from ...errors import BroadcastError, Reason
from ...fusion.calls import Call, Compiled, sort
from ...fusion.trace.reducing import TRACED
from ...fusion.trace.tracer import is_numeric
from ...fusion.trace.tracing import Operand, trace
from ...fusion.trace.views import some_axes
from ...ops import Op
from ..model import FusedCall, Options
from . import lazy
from .labels import common
from .tasks import Laid, Pointwise


class Dask:
    """The adapter of Dask arrays of NumPy's chunks.

    A call determines shapes and dtypes and raises all errors; nothing is computed until Dask
    computes the result. NumPy's arrays among the operands are cut into chunks, and Python numbers
    are weak.
    """

    def dtype_of(self, array: Any) -> np.dtype[Any]:
        """NumPy's dtype of an array."""
        dtype: np.dtype[Any] = np.dtype(array.dtype)
        return dtype

    def data_of(self, array: Any) -> Any:
        """Refused: each call would compute the whole array."""
        raise NotPlain("is lazy: it would be computed, as a whole, in each call")

    def as_dtype(self, dtype: Any) -> np.dtype[Any]:
        """NumPy's dtype of a dtype argument."""
        numpy_dtype: np.dtype[Any] = np.dtype(dtype)
        return numpy_dtype

    def elementwise(self, op: Op, operands: Sequence[Any], options: Options) -> Any:
        """An op of the table, a task for each chunk."""
        _no_out(options.out)
        values = [_operand(operand, k) for k, operand in enumerate(operands)]
        plan = options.plan(op, [shape_of(value) for value in values])
        dtype = None if options.dtype is None else np.dtype(options.dtype).name
        task = Pointwise(op.name, plan.axes_mapping, len(plan.shape), plan.rule, dtype)
        # An op on almost empty arrays gives the dtype, and raises the op's errors.
        empty = tuple(slice(0, int(extent == 1)) for extent in plan.shape)
        result_dtype = task(empty, *map(_sample, values)).dtype
        chunks, arguments = _in_chunks(plan, values, result_dtype)
        return lazy.array_of(task, op.name, range(len(chunks)), chunks, arguments, result_dtype)

    def broadcast(self, data: Any, plan: Plan, copy: bool, out: Any) -> Any:
        """`data` laid over the plan's shape; chunks of views, or of copies."""
        _no_out(out)
        (view,) = _views(plan, (data,), copy)
        return view

    def views(self, plan: Plan, arrays: Sequence[Any]) -> tuple[Any, ...]:
        """The operands laid over the plan's shape, in the same chunks."""
        return _views(plan, arrays, copy=False)

    def unbroadcast(self, plan: Plan, grad: Any, k: int) -> Any:
        """`grad` summed to the shape of operand `k`."""
        k = plan.operand_number(k)
        array = lazy.checked(grad, 0)
        if array.shape != plan.shape:
            raise BroadcastError(
                f"grad has shape {array.shape}; the result, and so its gradient, has {plan.shape}",
                reason=Reason.EXTENT_MISMATCH,
                rule=plan.rule,
                shapes=plan.operands,
            )

        def summed(x: Any) -> Any:
            return TRACED["sum"](x, plan.stretched[k], True).reshape(plan.operands[k])

        return _traced(summed, array, "unbroadcast")

    def reduction(self, name: str, x: Any, options: Mapping[str, Any]) -> Any:
        """A reduction: shares of chunks, merged in a tree."""
        arguments = dict(options)
        _no_out(arguments.pop("out", None))
        if arguments.get("dtype") is not None:
            arguments["dtype"] = np.dtype(arguments["dtype"])
        array = lazy.checked(x, 0)
        if name == "logsumexp":
            result = _logsumexp(array, **arguments)
            if result is not None:
                return result
        return _traced(lambda value: TRACED[name](value, **arguments), array, name)

    def fused(self, call: FusedCall) -> Any:
        """A call of a fused function: its program on each chunk."""
        _no_out(call.out)
        if call.progress is not None:
            raise TypeError(
                "progress= is of calls that compute; a Dask array is computed later: use "
                "dask.diagnostics.ProgressBar, or the dashboard of dask.distributed"
            )
        compiled, values, _ = _sorted(call)
        arrays = (*values, *compiled.captured)
        return compiled.structure.pack(lazy.computed(compiled.graph, arrays, _name(call.function)))

    def vjp(self, call: FusedCall) -> tuple[Any, Callable[..., Any]]:
        """The result, and the function of cotangents that gives gradients; all of them lazy."""
        from .vjp import pulled

        return pulled(*_sorted(call), _name(call.function))


# Operands


def _no_out(out: Any) -> None:
    if isinstance(out, dict):
        out = tuple(out.values())
    if isinstance(out, tuple | list):
        for item in out:
            _no_out(item)
    elif out is not None:
        raise TypeError(
            "out= is written when a call computes; a Dask array is computed later: write its "
            "result with dask.array.store, to_zarr or to_npy_stack"
        )


def _operand(value: Any, k: int) -> Any:
    """An operand: a Dask array, a NumPy array, or a Python number."""
    return lazy.checked(value, k) if lazy.is_lazy(value) else as_operand(value, k)


def _sample(value: Any) -> Any:
    """An array of the dtype, without elements if it has axes."""
    if type(value) in WEAK:
        return value
    shape = tuple(1 if extent == 1 else 0 for extent in value.shape)
    return np.ones(shape, value.dtype)


def stand_in(value: Any, k: int) -> Any:
    """A NumPy array of the same shape and dtype, in the memory of one element."""
    if not lazy.is_lazy(value):
        return value
    array = lazy.checked(value, k)
    return np.broadcast_to(np.zeros((), array.dtype.newbyteorder("=")), array.shape)


def _sorted(call: FusedCall) -> tuple[Compiled, list[Any], Call]:
    """The fused function compiled for a call, the call's operands, and the call of stand-ins."""
    stand_ins = [stand_in(operand, k) for k, operand in enumerate(call.operands)]
    more = {name: stand_in(x, len(stand_ins)) for name, x in call.settings.items()}
    own = {
        id(x): operand
        for x, operand in zip((*stand_ins, *more.values()), call.inputs, strict=True)
        if lazy.is_lazy(operand)
    }
    described = sort(stand_ins, more)
    values = [own.get(id(value), value) for value in described.values]
    return call.function.compiled(described), values, described


def _name(function: Any) -> str:
    name = str(getattr(function, "__name__", "fused"))
    return name if name.isidentifier() else "fused"


# Arrays


def _in_chunks(
    plan: Plan, values: Sequence[Any], dtype: Any
) -> tuple[list[tuple[int, ...]], list[tuple[Any, Any]]]:
    """The chunks of the plan's shape, and the operands in them, with the axes that they walk."""
    labels = [
        tuple(None if n == 1 else axis for n, axis in zip(shape, axes, strict=True))
        for shape, axes in zip(plan.operands, plan.axes_mapping, strict=True)
    ]
    chunks_by_axis: list[list[Any]] = [[] for _ in plan.shape]
    for value, of in zip(values, labels, strict=True):
        if lazy.is_lazy(value):
            for axis, chunks in zip(of, value.chunks, strict=True):
                if axis is not None:
                    chunks_by_axis[axis].append(chunks)
    settled = lazy.as_chunks(
        plan.shape, [common(axis_chunks) for axis_chunks in chunks_by_axis], dtype
    )
    named = dict(enumerate(settled))
    return settled, [
        (value, None) if type(value) in WEAK else (lazy.chunked(value, of, named), of)
        for value, of in zip(values, labels, strict=True)
    ]


def _views(plan: Plan, arrays: Sequence[Any], copy: bool) -> tuple[Any, ...]:
    values = [_operand(operand, k) for k, operand in enumerate(arrays)]
    for k, (value, shape) in enumerate(zip(values, plan.operands, strict=True)):
        if shape_of(value) != shape:
            raise BroadcastError(
                f"operand {k} has shape {shape_of(value)}; the plan was made for {shape}",
                reason=Reason.EXTENT_MISMATCH,
                rule=plan.rule,
                shapes=plan.operands,
                hint="make a plan for the arrays' own shapes",
            )
    values = [np.asarray(operand) if type(operand) in WEAK else operand for operand in values]
    widest = max((operand.dtype for operand in values), key=lambda dtype: dtype.itemsize)
    chunks, arguments = _in_chunks(plan, values, widest)
    return tuple(
        lazy.array_of(
            Laid(plan.axes_mapping[k], len(chunks), copy),
            "broadcast",
            range(len(chunks)),
            chunks,
            [argument],
            values[k].dtype,
        )
        for k, argument in enumerate(arguments)
    )


# Reductions


def _traced(function: Callable[[Any], Any], array: Any, name: str) -> Any:
    """A function of one array as a graph, lazily."""
    if not is_numeric(array.dtype):
        raise TypeError(f"operand 0 is an array of {array.dtype}, not of numbers")
    graph, structure, captured = trace(function, [Operand(array.shape, array.dtype.name)])
    return structure.pack(lazy.computed(graph, (array, *captured), name))


def _logsumexp(array: Any, axis: Any = None, keepdims: bool = False, dtype: Any = None) -> Any:
    """logsumexp in one pass over chunks; None where one task computes each result anyway.

    A share holds the shift that was subtracted, and the sum of the exponentials of the rest.
    """
    over = some_axes(axis, array.ndim)
    inexact = array.dtype.kind == "f" or array.dtype.name == "bfloat16"
    split = any(len(array.chunks[k]) > 1 for k in over)
    if not split or not all(array.shape[k] for k in over) or not (inexact or dtype is None):
        return None
    result = np.dtype(dtype) if dtype is not None else array.dtype
    if not inexact:
        result = np.dtype(np.float64)
    if result.kind == "c" or array.dtype.kind == "c":
        return None

    def share(x: Any) -> Any:
        # Only operands and results have 16 bits: rounded shares would change the result.
        x = x.astype(result) if x.dtype != result else x
        x = x.astype("float32") if result.itemsize < 4 else x
        apply = x.tracer.apply
        greatest = TRACED["max"](x, over, True)
        taken = apply("where", (apply("isfinite", (greatest,)), greatest, 0))
        return taken, TRACED["sum"](apply("exp", (x - taken,)), over, True)

    graph = trace(share, [Operand(array.shape, array.dtype.name)]).graph
    chunk_shares = lazy.shares(graph, array, "logsumexp", over)
    return lazy.fold(chunk_shares, "logsumexp", over, keepdims, result.name, "logsumexp")


ADAPTER = Dask()
