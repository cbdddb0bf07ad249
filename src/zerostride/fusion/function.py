"""Fused functions, as `zerostride.fuse` returns them, and their calls.

A call is sorted into operands and settings; shapes, dtypes and settings are its signature. For each
signature the function is traced once and its graph is made ready; further calls run that.
"""

from __future__ import annotations

import functools
import inspect
import sys
import threading
import weakref
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ..compute import native
from ..compute.dtypes import as_dtype
from ..compute.foreign import any_foreign, dispatch
from ..errors import TraceError
from ..system.fork_gate import first_call
from .calls import Call, Compiled, described, run, settings_key, signature_of, sort
from .run import Ready, is_in_order, ready
from .schedule.blocks import wants_blocks
from .trace.graph import Graph
from .trace.operands import Operand, is_numeric
from .trace.source import no_out, refuse
from .trace.tracing import trace
from .trace.value import Value

_T = TypeVar("_T")
#: The most signatures that a function keeps. One takes some kilobytes; data sets have few shapes.
CACHE_SIZE = 256
#: Keywords of a call that are not passed to the function.
_RESERVED = ("out", "progress")
#: The module that registers functions with PyTorch's compiler; present once that is imported.
_COMPILER = "zerostride.arrays.torch.compiler"


class _PythonCalls:
    """The base of a fused function without the native engine."""

    def __call__(self, /, *operands: Any, **more: Any) -> Any:
        return self._call(*operands, **more)

    def _call(self, /, *operands: Any, **more: Any) -> Any:
        raise NotImplementedError  # abstract: both classes below define it

    def learn(
        self, operands: tuple[Any, ...], program: Any, captured: tuple[Any, ...], packed: bool, /
    ) -> bool:
        """Does nothing without the engine."""
        return False


if TYPE_CHECKING or native.backend() == "reference":  # noqa: SIM108 - a type checker reads one
    _Calls = _PythonCalls
else:
    _Calls = native._native.Fused


#: Every fused function that there is, for a compiler that is imported later.
EXISTING: weakref.WeakSet[Fused] = weakref.WeakSet()


class Fused(_Calls):
    """A function whose calls are one pass over memory; made by :func:`zerostride.fuse`.

    A call takes
        operands: arrays, lists and NumPy scalars; Python numbers, which promote as in NumPy. None
            is passed to the function as it is.
        out: an array that receives the result and is returned; for several results a tuple, list or
            dict of them as the function returns them, None where a new array is wanted. It may
            overlap the operands, but not itself: the result is as if they had been read first.
        progress: called with the elements done and the total while arrays larger than memory are
            computed.
        further keywords: arrays are operands; all others are settings, which have to be hashable.

    It raises
        TraceError: the function does what cannot be fused; the message shows the line.
        BroadcastError: shapes that do not combine; `out` has another shape.
        TypeError: dtypes for which an op has no meaning; the result does not fit `out`.
        ValueError: two elements of `out` share memory, or it is read-only.
        MemoryError: the result has more bytes than there are.

    The engine runs calls whose program is known (`_native.Fused`); `_call` handles all others.

    >>> import zerostride as zs
    >>> affine = zs.fuse(lambda x, *, gain=1: x * gain + 1)
    >>> affine([1, 2], gain=3)
    array([4, 7])
    """

    def __init__(self, function: Callable[..., Any], dtype: Any = None) -> None:
        if not callable(function):
            raise TypeError(f"fuse takes a function, not {type(function).__name__}")
        functools.update_wrapper(self, function)
        _check_names(function)
        self._function = function
        self._dtype = None if dtype is None else _of_numbers(as_dtype(dtype))
        self._compiled: dict[Hashable, Compiled] = {}
        self._settled: dict[Hashable, Settled] = {}
        self._beside_none: dict[Hashable, Fused] = {}
        self._lock = threading.Lock()
        EXISTING.add(self)
        compiler = sys.modules.get(_COMPILER)
        if compiler is not None:  # PyTorch's does not read the bytecode of registered functions
            compiler.allow(self)

    def _call(self, /, *operands: Any, out: Any = None, progress: Any = None, **more: Any) -> Any:
        """A call that the engine has not learned; see the class."""
        if Value in map(type, operands) or Value in map(type, more.values()):
            return self._inlined(operands, out, more)
        if _has_none(operands):
            fused, present = self._without_none(operands)
            return fused(*present, out=out, progress=progress, **more)
        if any_foreign(operands) or (more and any_foreign(more.values())):
            return dispatch().fused(self, operands, more, out, progress)
        settled = self._with(more) if more and progress is None else None
        if settled is not None:
            return settled(*operands) if out is None else settled(*operands, out=out)
        return self.compute(operands, more, out, progress, None if more else self)

    def _without_none(self, operands: Sequence[Any]) -> tuple[Fused, Sequence[Any]]:
        """The function of the operands that are not None, and these. None is a setting."""
        places = tuple([k for k, operand in enumerate(operands) if operand is None])
        fused = self._beside_none.get(places)
        if fused is None:
            function = _with_none(self._function, places)
            fused = self._keep(self._beside_none, places, Fused(function, self._dtype))
        return fused, [operand for operand in operands if operand is not None]

    def of_library(
        self, /, *operands: Any, out: Any = None, progress: Any = None, **more: Any
    ) -> Any:
        """A call on the memory of a library that has its own bfloat16 (`own_kinds`)."""
        settled = self._with(more, own=True) if progress is None else None
        if settled is not None:
            return settled(*operands) if out is None else settled(*operands, out=out)
        return self.compute(operands, more, out, progress, None, own=True)

    def _with(self, settings: Mapping[str, Any], *, own: bool = False) -> Settled | None:
        """The calls with some settings; None if these include arrays or mutable values."""
        if not settings:
            key: Hashable = own
        else:
            try:
                hash(tuple(settings.values()))
            except TypeError:
                return None
            key = own, settings_key(settings)
        settled = self._settled.get(key)
        return settled or self._keep(self._settled, key, Settled(self, settings, own))

    def compute(
        self,
        operands: Sequence[Any],
        more: Mapping[str, Any],
        out: Any,
        progress: Any,
        learner: _PythonCalls | None,
        *,
        own: bool = False,
    ) -> Any:
        """A call; `learner` may hand later calls of the signature to the engine."""
        call = sort(operands, more, own=own)
        compiled = self.compiled(call)
        targets = compiled.structure.unpack(out, "out")
        results = run(compiled, call.values, targets, progress)
        if learner is not None and not (compiled.integers or compiled.is_of_numbers):
            _learn(learner, compiled, call.values)
        return compiled.structure.pack(results)

    def _inlined(self, operands: Sequence[Any], out: Any, more: Mapping[str, Any]) -> Any:
        """A call within another fused function: it becomes a part of that function."""
        no_out(out)
        if self._dtype is None:
            return self._function(*operands, **more)
        tracer = next(
            value.tracer for value in (*operands, *more.values()) if isinstance(value, Value)
        )
        before, tracer.dtype = tracer.dtype, self._dtype
        try:
            entered = [_entering(value) for value in operands]
            return self._function(
                *entered, **{name: _entering(value) for name, value in more.items()}
            )
        finally:
            tracer.dtype = before

    def compiled(self, call: Call) -> Compiled:
        """The function compiled for a call's signature."""
        compiled = self._cached(call.key)
        if compiled is None:
            with first_call:
                compiled = self._keep(self._compiled, call.key, self._compile(call.operands, call))
        beyond = compiled.integers.beyond(call.values) if compiled.integers else ()
        if not beyond:
            return compiled
        # Integers whose results 64 bits do not hold become constants, computed by Python.
        operands = list(call.operands)
        for k in beyond:
            operands[k] = replace(operands[k], value=call.values[k])
        key = (call.key, tuple((k, call.values[k]) for k in beyond))
        compiled = self._cached(key)
        if compiled is None:
            with first_call:
                compiled = self._keep(self._compiled, key, self._compile(operands, call))
        return compiled

    def _cached(self, key: Hashable) -> Compiled | None:
        """The compiled signature, if it is still valid: a captured array's shape or dtype may have
        been changed in place, and the function is then compiled again."""
        compiled = self._compiled.get(key)
        if compiled is None or compiled.lay == tuple(map(signature_of, compiled.captured)):
            return compiled
        with first_call, self._lock:
            if self._compiled.get(key) is compiled:
                del self._compiled[key]
        return None

    def _compile(self, operands: Sequence[Operand], call: Call) -> Compiled:
        traced = trace(self._function, operands, call.static, self._dtype, call.named, own=call.own)
        numbers = any(operand.value is not None for operand in operands)
        prepared = (
            ready(traced.graph)
            if traced.integers.may_fit
            else Ready(traced.graph, None, None, "it computes with integers of more than 64 bits")
        )
        lay = tuple(map(signature_of, traced.captured))
        return Compiled(prepared, traced.structure, traced.sources, lay, traced.integers, numbers)

    def _keep(self, cache: dict[Hashable, _T], key: Hashable, value: _T) -> _T:
        with first_call, self._lock:
            while len(cache) >= CACHE_SIZE:
                del cache[next(iter(cache))]
            return cache.setdefault(key, value)

    def graph(self, /, *operands: Any, **more: Any) -> Graph:
        """The graph of the function for such operands."""
        if _has_none(operands):
            fused, present = self._without_none(operands)
            return fused.graph(*present, **more)
        return self.compiled(described(operands, more)).graph

    @property
    def latest(self) -> Compiled | None:
        """The signature that was traced last; None before the first call."""
        return next(reversed(tuple(self._compiled.values())), None)

    def explain(self, /, *operands: Any, **more: Any) -> Any:
        """The program for such operands, its registers, and the bytes that it moves.

        Without operands, explains the signature that was traced last.
        """
        with first_call:
            from .explain import explain

        if _has_none(operands):
            fused, present = self._without_none(operands)
            return fused.explain(*present, **more)
        return explain(self, operands, more)

    def vjp(self, /, *operands: Any, **more: Any) -> tuple[Any, Callable[..., Any]]:
        """The result, and the function that takes its cotangents back to the operands.

        Returns:
            The call's result, and a function of cotangents that are packed as the result; it
            returns a gradient for each positional operand, of its shape and dtype; None for None.
        """
        if Value in map(type, operands) or Value in map(type, more.values()):
            refuse(
                "a gradient in a fused function, or of a gradient, is not computed",
                "call zs.grad or vjp outside, on the whole fused function",
            )
        with first_call:
            from .grad.vjp import pulled_call

        if _has_none(operands):
            fused, present = self._without_none(operands)
            result, pull = fused.vjp(*present, **more)
            return result, lambda *cotangents: _with_gaps(pull(*cotangents), operands)
        if any_foreign(operands) or any_foreign(more.values()):
            return dispatch().vjp(self, operands, more)  # type: ignore[no-any-return]
        call = sort(operands, more)
        return pulled_call(self.compiled(call), call)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(_refuse_method, self)

    def __reduce__(self) -> str:
        """By name, as functions are pickled."""
        return str(getattr(self, "__qualname__", ""))

    def __repr__(self) -> str:
        return f"<fused {getattr(self, '__qualname__', self._function)!s}>"


class Settled(_Calls):
    """The calls of a fused function with some settings, or of a library (`own_kinds`)."""

    def __init__(self, fused: Fused, settings: Mapping[str, Any], own: bool) -> None:
        self._fused = fused
        self._settings = settings
        self._own = own

    def _call(self, /, *operands: Any, out: Any = None) -> Any:
        if any_foreign(operands):
            return dispatch().fused(self._fused, operands, self._settings, out)
        return self._fused.compute(operands, self._settings, out, None, self, own=self._own)


def _learn(learner: _PythonCalls, compiled: Compiled, values: tuple[Any, ...]) -> None:
    """Hands the calls of a signature to the engine."""
    if compiled.ready.engine is None or not all(source.is_steady for source in compiled.sources):
        return
    captured = compiled.captured
    arrays = (*values, *captured)
    packed = compiled.structure.is_plain_tuple
    if wants_blocks(arrays, None):
        return
    if (packed or compiled.structure.kind is None) and all(map(is_in_order, arrays)):
        learner.learn(values, compiled.ready.engine, captured, packed)


def _check_names(function: Callable[..., Any]) -> None:
    """Refuses parameters with names that the call reserves, except those with the default None:
    `out=None` means the same for the call."""
    try:
        names = inspect.signature(function).parameters
    except (TypeError, ValueError):  # C functions without a signature
        return
    for name in _RESERVED:
        if name in names and names[name].default is not None:
            raise TypeError(
                f"{getattr(function, '__name__', 'the function')} has a parameter {name!r}, which "
                "a fused call has itself; give it another name"
            )


def _of_numbers(dtype: np.dtype[Any]) -> np.dtype[Any]:
    if dtype.kind in "bO" or not is_numeric(dtype):
        raise TypeError(f"dtype is one of numbers to compute in, not {dtype}")
    return dtype


def _refuse_method(fused: Fused, *_: Any, **__: Any) -> Any:
    raise TraceError(
        f"{fused!r} is a method, whose instance is no array",
        hint="fuse a function of the arrays, and call it from the method",
    )


def _has_none(operands: Sequence[Any]) -> bool:
    return any(operand is None for operand in operands)


def _with_none(function: Callable[..., Any], places: Sequence[int]) -> Callable[..., Any]:
    """The function, with None for the arguments in these places."""

    @functools.wraps(function)
    def called(*operands: Any, **settings: Any) -> Any:
        arguments = list(operands)
        for place in places:
            arguments.insert(place, None)
        return function(*arguments, **settings)

    return called


def _with_gaps(gradients: Sequence[Any], operands: Sequence[Any]) -> tuple[Any, ...]:
    rest = iter(gradients)
    return tuple([None if operand is None else next(rest) for operand in operands])


def _entering(value: Any) -> Any:
    return value.tracer.entering(value) if isinstance(value, Value) else value
