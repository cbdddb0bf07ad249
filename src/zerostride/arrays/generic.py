"""The adapter of libraries that follow the array API (array_api_strict, CuPy), and a base class.

The native engine computes arrays in this processor's memory without a copy. Other arrays are
computed by their own namespace over the shapes that the Plan aligned (`namespace`). A library's
adapter is this class with the methods that differ overridden.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..compute import functions, unary
from ..compute.foreign import NotPlain
from ..compute.functions import _run
from ..compute.native import copied
from ..compute.outputs import as_target
from ..compute.semantics import WEAK
from ..core.plan import Plan
from ..errors import BroadcastError, Reason
from ..fusion import reductions
from ..ops import Op
from . import dlpack, namespace
from .device_fallback import broadcast_into, called, fused, pulled, written
from .direct import promoted
from .model import Fusion, Options
from .namespace import Space
from .packing import leaves, mapped, zipped
from .reduce import reduce
from .table import find_row


class Generic:
    """The adapter of a library that follows the array API."""

    # Properties of a library. A subclass may override all of them.

    #: Whether it has its own bfloat16, which Python floats then take (`semantics.own_kinds`).
    promotes = False

    def is_here(self, array: Any) -> bool:
        """Whether an array's memory may be read now, by this processor."""
        return dlpack.is_here(array)

    def to_numpy(self, array: Any) -> NDArray[Any]:
        """NumPy's array of the memory of an array that `is_here`."""
        return dlpack.to_numpy(array)

    def writable(self, array: Any) -> NDArray[Any]:
        """NumPy's array of the memory of an `out`, for writing."""
        return dlpack.writable(array)

    def from_numpy(self, result: NDArray[Any], like: Any) -> Any:
        """A result as the library's array, on the device of `like`; without a copy if possible."""
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
        from array_api_compat import array_namespace

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

    # The protocol.

    def elementwise(self, op: Op, operands: Sequence[Any], options: Options) -> Any:
        """An op of the table."""
        like = self._first(operands)
        if not self.all_here(operands):
            self._refuse_engine(options.engine, like)
            return self.elementwise_elsewhere(op, operands, options, like)
        values: Sequence[Any] = [self._lowered(operand) for operand in operands]
        dtype = None if options.dtype is None else self.as_dtype(options.dtype)
        if self.promotes and options.engine is None:
            values = promoted(op, values, dtype)
        if options.says_nothing:
            return self.from_numpy(np.asarray(_call(op, values)), like)
        lowered = replace(options, out=self._target(options.out), dtype=dtype)
        return self._answer(_call_with(op, values, lowered), like, options.out)

    def elementwise_elsewhere(
        self, op: Op, operands: Sequence[Any], options: Options, like: Any
    ) -> Any:
        """An op by the namespace."""
        space, arrays = self.space(like), self.arrays(operands, like)
        plan = options.plan(op, [() if type(array) in WEAK else array.shape for array in arrays])
        dtype = None if options.dtype is None else self.as_dtype(options.dtype)
        result = called(space, op, plan, arrays, self.dtypes(arrays), dtype)
        return self._written(options.out, result, plan)

    def broadcast(self, data: Any, plan: Plan, copy: bool, out: Any) -> Any:
        """`data` laid over the plan's shape: a view where the library has views."""
        if out is not None and self.all_here((data,)):
            target = as_target(self._target(out), plan.shape, plan)
            return self._answer(copied(plan.view(0, self._lowered(data)), target), data, out)
        (view,) = self.views(plan, (data,))
        if out is not None:
            return broadcast_into(self.space(data), _only(out), view, plan, self.dtype_of)
        return self.namespace(data).asarray(view, copy=True) if copy else view

    def views(self, plan: Plan, arrays: Sequence[Any]) -> tuple[Any, ...]:
        """The operands laid over the plan's shape."""
        space = self.space(self._first(arrays))
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
        converted = self.arrays(arrays, self._first(arrays), numbers=True)
        return tuple(
            namespace.over(space, namespace.laid(space, array, plan.aligned[k]), plan.shape)
            for k, array in enumerate(converted)
        )

    def unbroadcast(self, plan: Plan, grad: Any, k: int) -> Any:
        """`grad` summed to the shape of operand `k`."""
        if self.all_here((grad,)):
            return self.from_numpy(np.asarray(plan.unbroadcast(self.to_numpy(grad), k)), grad)
        self._check_gradient(plan, grad, k)
        space, dtype = self.space(grad), self.dtype_of(grad)
        options = {"axis": plan.stretched[k], "keepdims": True}
        return space.xp.reshape(reduce(space, "sum", grad, dtype, options), plan.operands[k])

    def reduction(self, name: str, x: Any, options: Mapping[str, Any]) -> Any:
        """A reduction by name."""
        arguments = dict(options)
        out = arguments.pop("out", None)
        if arguments.get("dtype") is not None:
            arguments["dtype"] = self.as_dtype(arguments["dtype"])
        if self.all_here((x,)):
            result = getattr(reductions, name)(self.to_numpy(x), **arguments, out=self._target(out))
            return self._answer(result, x, out)
        return self._written(out, reduce(self.space(x), name, x, self.dtype_of(x), arguments), None)

    def fused(
        self,
        function: Fusion,
        operands: Sequence[Any],
        settings: Mapping[str, Any],
        out: Any,
        progress: Any,
    ) -> Any:
        """A call of a fused function."""
        inputs = (*operands, *settings.values())
        like = self._first(inputs)
        if not self.all_here(inputs):
            results, structure = fused(self, function, operands, settings, like)
            targets = structure.unpack(out, "out")
            pairs = zip(results, targets, strict=True)
            return structure.pack([self._written(to, part, None) for part, to in pairs])
        values, more = self._all_lowered(operands, settings)
        reserved = {"out": mapped(out, self._target), "progress": progress}
        more |= {name: value for name, value in reserved.items() if value is not None}
        result = (function.of_library if self.promotes else function)(*values, **more)
        return zipped(result, out, lambda part, target: self._answer(part, like, target))

    def vjp(
        self, function: Fusion, operands: Sequence[Any], settings: Mapping[str, Any]
    ) -> tuple[Any, Callable[..., Any]]:
        """A fused function's result, and the function of cotangents that gives gradients."""
        inputs = (*operands, *settings.values())
        like = self._first(inputs)
        if not self.all_here(inputs):
            return pulled(self, function, operands, settings, like)
        values, more = self._all_lowered(operands, settings)
        result, pull = function.vjp(*values, **more)

        def raised(packed: Any) -> Any:
            return mapped(packed, lambda part: self._answer(part, like, None))

        return raised(result), lambda cotangents: raised(pull(mapped(cotangents, self._lowered)))

    # Helpers.

    def is_own(self, value: Any) -> bool:
        """Whether a value is an array of this library; the dispatch excludes others."""
        return find_row(type(value)) is not None

    def all_here(self, values: Sequence[Any]) -> bool:
        """Whether all arrays among values may be read without a copy."""
        return all(self.is_here(value) for value in values if self.is_own(value))

    def space(self, like: Any) -> Space:
        """The functions that compute where an array lies."""
        return Space(self.namespace(like), self.name(like), self.device(like), self.own(like))

    def arrays(self, values: Sequence[Any], like: Any, *, numbers: bool = False) -> list[Any]:
        """Values as arrays of the library on the device of `like`; with `numbers` also numbers."""
        xp, device = self.namespace(like), self.device(like)
        return [
            value
            if self.is_own(value) or (type(value) in WEAK and not numbers)
            else xp.asarray(np.asarray(value), device=device)
            for value in values
        ]

    def dtypes(self, arrays: Sequence[Any]) -> list[np.dtype[Any] | None]:
        """NumPy's dtypes of arrays; None of Python numbers."""
        return [None if type(array) in WEAK else self.dtype_of(array) for array in arrays]

    def _first(self, values: Sequence[Any]) -> Any:
        """The array that determines the results' namespace and device."""
        return next(value for value in leaves(values) if self.is_own(value))

    def _lowered(self, value: Any) -> Any:
        return self.to_numpy(value) if self.is_own(value) else value

    def _target(self, out: Any) -> Any:
        out = _only(out)
        if out is None or not self.is_own(out):
            return out
        if not self.is_here(out):
            raise TypeError("out lies on another device than the operands")
        return self.writable(out)

    def _answer(self, result: Any, like: Any, out: Any) -> Any:
        return self.from_numpy(np.asarray(result), like) if out is None else _only(out)

    def _written(self, out: Any, result: Any, plan: Plan | None) -> Any:
        """A result of the namespace, or `out` with the result written to it."""
        return (
            result if out is None else written(self.space(result), _only(out), result, self, plan)
        )

    def _all_lowered(
        self, operands: Sequence[Any], settings: Mapping[str, Any]
    ) -> tuple[list[Any], dict[str, Any]]:
        values = [self._lowered(operand) for operand in operands]
        return values, {name: self._lowered(value) for name, value in settings.items()}

    def _refuse_engine(self, engine: str | None, like: Any) -> None:
        if engine is not None:
            raise TypeError(
                f"engine={engine!r} is computed in this processor's memory, and the operands of "
                f"{self.name(like)} lie elsewhere; move them here, or give a rule"
            )

    def _check_gradient(self, plan: Plan, grad: Any, k: int) -> None:
        """Raises the reference's errors, for a stand-in of the gradient's shape."""
        plan.unbroadcast(np.broadcast_to(np.float32(0), tuple(grad.shape)), k)


def _call(op: Op, values: Sequence[Any]) -> Any:
    """The public function, whose calls of known shapes never enter Python."""
    module = functions if hasattr(functions, op.name) else unary
    return getattr(module, op.name)(*values)


def _call_with(op: Op, values: Sequence[Any], options: Options) -> Any:
    """The public function with a call's options."""
    options_by_name = {option.name: getattr(options, option.name) for option in fields(options)}
    arguments = {name: value for name, value in options_by_name.items() if value is not None}
    takes_rules = hasattr(functions, op.name) or op.name == "clip"
    if op.name == "cast" or (not takes_rules and not {*arguments} <= {"engine", "out", "dtype"}):
        return _run(op, values, **options_by_name)
    module = functions if hasattr(functions, op.name) else unary
    return getattr(module, op.name)(*values, **arguments)


def _only(out: Any) -> Any:
    """`out`, which may be a tuple of one as for NumPy's ufuncs."""
    return out[0] if isinstance(out, tuple) and len(out) == 1 else out


ADAPTER = Generic()
