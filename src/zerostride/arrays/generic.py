"""The adapter of libraries that follow the array API (array_api_strict, CuPy), and a base class.

The native engine computes arrays in this processor's memory without a copy. Elsewhere an op, a
broadcast's adjoint, a reduction and a fused function are programs (`programs`), which the library's
own functions compute (`standard`). A library's adapter is this class with the methods that differ
overridden.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..compute.foreign import NotPlain
from ..compute.native import copied
from ..compute.outputs import as_target, check_places, check_shape
from ..compute.semantics import WEAK
from ..compute.special import keeps_kind
from ..core.plan import Plan
from ..errors import BroadcastError, Reason
from ..fusion.evaluate import Library, evaluate
from ..fusion.grad.vjp import GraphProgram, Ways, pulled
from ..fusion.trace.graph import Apply, Input, View
from ..ops import Op
from . import direct, dlpack, programs
from .model import FusedCall, Options
from .packing import leaves, mapped, zipped
from .programs import Prepared
from .standard import Standard
from .table import find_row


class Generic:
    """The adapter of a library that follows the array API."""

    # Properties of a library. A subclass may override all of them.

    #: Whether it has its own bfloat16, which Python floats then take (`semantics.own_kinds`).
    promotes = False
    #: Whether an engine's values may be computed by programs, where they are NumPy's.
    has_engines = False

    def is_here(self, array: Any) -> bool:
        """Whether an array's memory may be read now, by this processor."""
        return dlpack.is_here(array)

    def to_numpy(self, array: Any) -> NDArray[Any]:
        """NumPy's array of the memory of an array that `is_here`."""
        return dlpack.to_numpy(array)

    def writable(self, array: Any) -> NDArray[Any]:
        """NumPy's array of the memory of an `out`, for writing."""
        return dlpack.writable(array)

    def from_numpy(self, result: NDArray[Any], operands: Sequence[Any]) -> Any:
        """A result as the library's array, on the operands' device; without a copy if possible."""
        like = self.first(operands)
        xp = self.namespace(like)
        if not hasattr(xp, result.dtype.name):
            raise TypeError(
                f"the result is {result.dtype} by NumPy's promotion, which {self.name(like)} does "
                "not have; convert the operands, or ask for another dtype"
            )
        return xp.asarray(result)

    def namespace(self, array: Any) -> Any:
        """The array API's functions for an array; array-api-compat's if it has none itself."""
        if hasattr(type(array), "__array_namespace__"):
            return array.__array_namespace__()
        try:
            from array_api_compat import array_namespace
        except ImportError as error:
            raise TypeError(
                f"arrays of {self.name(array)} are computed by way of array-api-compat, which is "
                "not installed; run pip install 'zerostride[arrays]'"
            ) from error
        return array_namespace(array)

    def own(self, array: Any) -> Mapping[str, Callable[..., Any]]:
        """Functions for ops of the table that the standard lacks, or that differ here."""
        return {}

    def device(self, array: Any) -> Any:
        """An array's device, in its namespace's form."""
        return array.device

    def dtype_of(self, array: Any) -> np.dtype[Any]:
        """NumPy's dtype of an array."""
        return self.as_dtype(array.dtype)

    def data_of(self, array: Any) -> Any:
        """NumPy's array of the memory of an array that a fused function captures."""
        if not self.is_here(array):
            where = getattr(array, "device", "another device")
            raise NotPlain(f"lies on {where}")
        return self.to_numpy(array)

    def as_dtype(self, dtype: Any) -> np.dtype[Any]:
        """NumPy's dtype of a dtype of the library or of NumPy."""
        numpy_dtype: np.dtype[Any]
        try:
            numpy_dtype = np.dtype(dtype)
        except TypeError:  # the library's own, whose text is "library.float32"
            numpy_dtype = np.dtype(str(dtype).rpartition(".")[2])
        return numpy_dtype

    def name(self, array: Any) -> str:
        """The library's name."""
        row = find_row(type(array))
        return row.name if row is not None else "NumPy"

    def library(self, like: Any) -> Library:
        """The functions that compute where an array lies."""
        return Standard(self.namespace(like), self.name(like), self.device(like), self.own(like))

    def readable(self, values: Sequence[Any], out: Any) -> Sequence[Any] | None:
        """Values with the library's arrays as NumPy's, where the engine may read all of them."""
        return [*map(self._lowered, values)] if self.all_here(values) else None

    def is_large(self, arrays: Sequence[Any]) -> bool:
        """Whether results of such operands are better computed by a program."""
        return False

    def shown(self, value: Any) -> Any:
        """What stands for an operand in a signature: a stand-in for an array, else itself."""
        if not self.is_own(value):
            return value
        return programs.stand_in(tuple(map(int, value.shape)), self.dtype_of(value))

    def array_of(self, value: Any, like: Any) -> Any:
        """An array of the library, on the device of `like`, of what a caller gave."""
        return self.arrays((value,), like, numbers=True)[0]

    def zeros(self, shape: tuple[int, ...], dtype: str, like: Any) -> Any:
        """An array of zeros on the device of `like`."""
        library = Standard(self.namespace(like), self.name(like), self.device(like))
        return library.xp.zeros(shape, dtype=library.dtype(dtype), device=library.device)

    def check_call(self, call: FusedCall) -> None:
        """Refuses a call of a fused function that the library cannot make."""

    def check_out(self, out: Any) -> None:
        """Refuses an `out` where the library's arrays are immutable."""

    # The protocol.

    def elementwise(self, op: Op, operands: Sequence[Any], options: Options) -> Any:
        """An op of the table."""
        self.check_out(options.out)
        if options.dtype is not None:
            options = replace(options, dtype=self.as_dtype(options.dtype))
        arrays = self.readable(operands, options.out)
        if arrays is not None and (options.engine is not None or not self.is_large(arrays)):
            out = options.out
            if out is None:
                result = direct.call(op, arrays, options, own=self.promotes)
                return self.from_numpy(np.asarray(result), operands)
            lowered = replace(options, out=self._target(out))
            return self.answer(direct.call(op, arrays, lowered, own=self.promotes), operands, out)
        if options.engine is not None and not self.has_engines:
            raise TypeError(
                f"engine={options.engine!r} is computed in this processor's memory, and the "
                f"operands of {self.name(self.first(operands))} lie elsewhere; move them here, or "
                "give a rule"
            )
        function = programs.fused_op(op, options, options.dtype)
        call = FusedCall(function, operands, {}, options.out)
        return self.computed(call, own=self.promotes and options.engine != "numpy")

    def broadcast(self, data: Any, plan: Plan, copy: bool, out: Any) -> Any:
        """`data` laid over the plan's shape: a view where the library has views."""
        if out is not None and self.all_here((data,)):
            target = as_target(self._target(out), plan.shape, plan)
            return self.answer(copied(plan.view(0, self._lowered(data)), target), (data,), out)
        (view,) = self.views(plan, (data,))
        if out is not None:
            return self._written(only(out), view, plan, "data")
        return self.namespace(data).asarray(view, copy=True) if copy else view

    def views(self, plan: Plan, arrays: Sequence[Any]) -> tuple[Any, ...]:
        """The operands laid over the plan's shape."""
        like = self.first(arrays)
        for k, array in enumerate(arrays):
            if np.shape(array) != plan.operands[k]:
                raise BroadcastError(
                    f"operand {k} has shape {np.shape(array)}; the plan was made for "
                    f"{plan.operands[k]}",
                    reason=Reason.EXTENT_MISMATCH,
                    rule=plan.rule,
                    shapes=plan.operands,
                    hint="make a plan for the arrays' own shapes",
                )
        library = self.library(like)
        return tuple(
            library.laid(array, plan.axes_mapping[k], plan.shape)
            for k, array in enumerate(self.arrays(arrays, like, numbers=True))
        )

    def unbroadcast(self, plan: Plan, grad: Any, k: int) -> Any:
        """`grad` summed to the shape of operand `k`."""
        arrays = self.readable((grad,), None)
        if arrays is not None:
            return self.from_numpy(np.asarray(plan.unbroadcast(arrays[0], k)), (grad,))
        if tuple(grad.shape) != plan.shape or not 0 <= k < len(plan.operands):
            return plan.unbroadcast(self.shown(grad), k)  # says what is wrong
        function = programs.fused_adjoint(plan.operands[k], plan.stretched[k])
        return self.computed(FusedCall(function, (grad,), {}))

    def reduction(self, name: str, x: Any, options: Mapping[str, Any]) -> Any:
        """A reduction by name."""
        out = options.get("out")
        self.check_out(out)
        arrays = self.readable((x,), out)
        if arrays is not None:
            lowered = options if out is None else {**options, "out": self._target(out)}
            result = direct.reduced(name, arrays[0], lowered, self.as_dtype)
            return self.answer(result, (x,), out)
        dtype = options.get("dtype")
        function = programs.fused_reduction(
            name,
            options.get("axis"),
            options.get("keepdims", False),
            None if dtype is None else self.as_dtype(dtype),
        )
        return self.computed(FusedCall(function, (x,), {}, out))

    def fused(self, call: FusedCall) -> Any:
        """A call of a fused function."""
        self.check_out(call.out)
        self.check_call(call)
        inputs = call.inputs
        arrays = self.readable(inputs, call.out)
        if arrays is None or (call.progress is None and self.is_large(arrays)):
            if call.progress is not None:
                raise TypeError(
                    "progress= is told of arrays that the engine reads, without gradients; leave "
                    "it out here"
                )
            return self.computed(call)
        function = call.function.of_library if self.promotes else call.function
        if len(inputs) == len(call.operands) and call.out is call.progress is None:
            result = function(*arrays)
        else:
            count = len(call.operands)
            more = dict(zip(call.settings, arrays[count:], strict=True))
            if call.out is not None:
                more["out"] = mapped(call.out, self._target)
            if call.progress is not None:
                more["progress"] = call.progress
            result = function(*arrays[:count], **more)
        if type(result) is np.ndarray and call.out is None:
            return self.from_numpy(result, inputs)
        return zipped(result, call.out, lambda part, target: self.answer(part, inputs, target))

    def vjp(self, call: FusedCall) -> tuple[Any, Callable[..., Any]]:
        """A fused function's result, and the function of cotangents that gives gradients."""
        self.check_call(call)
        prepared = self.prepared(call)
        values = self.values_of(prepared)
        like = self.first(values)
        ways = Ways(
            self.run,
            lambda cotangent: self.array_of(cotangent, like),
            self.library(like).cast,
            lambda described, _: self.zeros(described.shape, described.dtype, like),
        )
        structure, count = prepared.compiled.structure, len(call.operands)
        return pulled(prepared.program, structure, values, count, ways)

    # Programs.

    def prepared(self, call: FusedCall, *, own: bool | None = None) -> Prepared:
        """A fused function for the signature of a call; `own` as `promotes`."""
        return programs.prepared(call, self.shown, own=self.promotes if own is None else own)

    def computed(self, call: FusedCall, *, own: bool | None = None) -> Any:
        """A fused function's results, by the way that its operands need."""
        prepared = self.prepared(call, own=own)
        results = self.run(prepared.program, self.values_of(prepared))
        structure = prepared.compiled.structure
        if call.out is not None:
            targets = structure.unpack(call.out, "out")
            self.deliver(results, targets, structure.named_outs())
        return structure.pack(results)

    def values_of(self, prepared: Prepared) -> Sequence[Any]:
        """The operands of a prepared call, captured arrays included."""
        return (*prepared.values, *prepared.compiled.captured)

    def run(self, program: GraphProgram, values: Sequence[Any]) -> list[Any]:
        """The results of a program, as new arrays of the library."""
        arrays = self.readable(values, None)
        if arrays is not None:
            return [self.from_numpy(np.asarray(result), values) for result in program.run(arrays)]
        like = self.first(values)
        with np.errstate(all="ignore"):  # the namespace may be NumPy's
            results = evaluate(program.graph, self.arrays(values, like), self.library(like))
        copied_as = self.namespace(like).asarray
        return [
            copied_as(result, copy=True) if _may_share(node) else result
            for node, result in zip(program.outputs, results, strict=True)
        ]

    def deliver(self, results: list[Any], targets: Sequence[Any], names: Sequence[str]) -> None:
        """Writes results to their targets, which take the results' places."""
        for k, target in enumerate(targets):
            if target is not None:
                results[k] = self._written(target, results[k], None, "result")

    # Helpers.

    def is_own(self, value: Any) -> bool:
        """Whether a value is an array of this library; the dispatch excludes others."""
        return find_row(type(value)) is not None

    def all_here(self, values: Sequence[Any]) -> bool:
        """Whether all arrays among values may be read without a copy."""
        return all(self.is_here(value) for value in values if self.is_own(value))

    def arrays(self, values: Sequence[Any], like: Any, *, numbers: bool = False) -> list[Any]:
        """Values as arrays of the library on the device of `like`; with `numbers` also numbers."""
        xp, device = self.namespace(like), self.device(like)
        return [
            value
            if self.is_own(value) or (type(value) in WEAK and not numbers)
            else xp.asarray(np.asarray(value), device=device)
            for value in values
        ]

    def first(self, values: Sequence[Any]) -> Any:
        """The array that determines the results' namespace and device."""
        return next(value for value in leaves(values) if self.is_own(value))

    def answer(self, result: Any, operands: Sequence[Any], out: Any) -> Any:
        """NumPy's result as the library's array, or the `out` that has been written."""
        return self.from_numpy(np.asarray(result), operands) if out is None else only(out)

    def _lowered(self, value: Any) -> Any:
        return self.to_numpy(value) if self.is_own(value) else value

    def _target(self, out: Any) -> Any:
        out = only(out)
        if out is None or not self.is_own(out):
            return out
        if not self.is_here(out):
            raise TypeError("out lies on another device than the operands")
        return self.writable(out)

    @np.errstate(all="ignore")  # the namespace may be NumPy's; zerostride gives no warnings
    def _written(self, out: Any, result: Any, plan: Plan | None, what: str) -> Any:
        """Writes a result of the namespace to `out`, converted within its kind, and returns it.

        Raises:
            BroadcastError: it has another shape.
            TypeError: its dtype does not take the result's, or the arrays are immutable.
            ValueError: two of its elements share memory.
        """
        source, target = self.dtype_of(result), self.dtype_of(out)
        check_target(out, tuple(result.shape), target, plan)
        if not keeps_kind(source, target):
            raise TypeError(f"the {what} is {source}, which does not fit an out of {target}")
        converted = self.library(result).cast(result, target.name)
        try:
            out[...] = self.namespace(out).broadcast_to(converted, out.shape)
        except TypeError as error:
            raise TypeError(f"out of {self.name(out)} cannot be written to: {error}") from error
        return out


def check_target(out: Any, shape: tuple[int, ...], dtype: np.dtype[Any], plan: Plan | None) -> None:
    """Refuses an `out` that cannot hold a result; checks its memory if it has strides."""
    check_shape(tuple(out.shape), shape, plan)
    strides = getattr(out, "strides", None)  # CuPy's, in bytes as NumPy's
    if isinstance(strides, tuple):
        check_places(tuple(out.shape), strides, dtype.itemsize)


def only(out: Any) -> Any:
    """`out`, which may be a tuple of one as for NumPy's ufuncs."""
    return out[0] if isinstance(out, tuple) and len(out) == 1 else out


def _may_share(node: Any) -> bool:
    """Whether a node's value may be, or share the memory of, one that it reads."""
    return isinstance(node, Input | View) or (isinstance(node, Apply) and node.op == "cast")


ADAPTER = Generic()
