"""Fused functions: what `zerostride.fuse` makes of a Python function, and its calls.

A call is sorted into operands and settings; shapes, dtypes and settings are its signature. For each
signature the function is traced once, and its graph made ready; further calls run that.
"""

from __future__ import annotations

import functools
import inspect
import sys
import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ..compute import native
from ..compute.foreign import any_foreign, dispatch
from ..compute.labels import check_labels
from ..compute.reference import as_operand
from ..compute.semantics import WEAK
from ..core.strict_mode import in_force
from ..errors import TraceError
from ..system.fork_gate import first_call
from .run import Ready, is_in_order, ready, run_into
from .schedule.blocks import wants_blocks
from .trace.captured import Captured, arrays_of
from .trace.graph import Graph
from .trace.integers import Integers
from .trace.operands import Operand, check_elementwise, is_numeric, operand_of
from .trace.source import no_out
from .trace.structure import Structure
from .trace.tracing import trace
from .trace.value import Value

_T = TypeVar("_T")
#: Signatures that a function keeps. One is some kilobytes; data sets have a handful of shapes.
CACHE_SIZE = 256
#: Keywords of a call that are not the function's.
_RESERVED = ("out", "progress")
_MOST = 2**63 - 1
#: What tells PyTorch's compiler of zerostride's functions; imported once there is a compiler.
_COMPILER = "zerostride.arrays.torch.compiler"


@dataclass(frozen=True, slots=True)
class Call:
    """The arguments of a call, sorted.

    Attributes:
        key: the signature.
        values: the operands: arrays, and Python numbers.
        named: the names of the last ones, which were given by name.
        static: the other keyword arguments.
        own: whether a library's own promotion holds for Python floats (`own_kinds`).
    """

    key: Hashable
    values: tuple[Any, ...]
    named: tuple[str, ...]
    static: Mapping[str, Any]
    own: bool = False

    @property
    def operands(self) -> tuple[Operand, ...]:
        """What tracing has to know of the operands.

        Raises:
            TypeError: one is not of numbers.
        """
        return tuple(_operand(value, k) for k, value in enumerate(self.values))


@dataclass(frozen=True, slots=True)
class Compiled:
    """What a function is for one signature.

    Attributes:
        ready: its graph, with what runs it.
        structure: how the results are packed.
        sources: the arrays that it took from elsewhere; operands after those of the call.
        lay: what these were like, shapes and dtypes, when it was traced.
        integers: what has to hold of Python integers among the operands.
        is_of_numbers: whether Python numbers of the call are constants of it.
        derived: what is made, or known, of it when asked for: "gradients".
    """

    ready: Ready
    structure: Structure
    sources: tuple[Captured, ...]
    lay: tuple[Hashable, ...]
    integers: Integers
    is_of_numbers: bool
    derived: dict[Hashable, Any] = field(default_factory=dict, compare=False)

    @property
    def graph(self) -> Graph:
        """What is computed."""
        return self.ready.graph

    @property
    def captured(self) -> tuple[Any, ...]:
        """What the arrays from elsewhere hold now."""
        return arrays_of(self.sources)


class _PythonCalls:
    """What a fused function inherits where there is no engine that takes its calls."""

    def __call__(self, /, *operands: Any, **more: Any) -> Any:
        return self._call(*operands, **more)

    def _call(self, /, *operands: Any, **more: Any) -> Any:
        raise NotImplementedError  # abstract: both classes of calls below have it

    def learn(
        self, operands: tuple[Any, ...], program: Any, captured: tuple[Any, ...], packed: bool, /
    ) -> bool:
        """Nothing is learnt."""
        return False


if TYPE_CHECKING or native.backend() == "reference":  # noqa: SIM108 - a type checker reads one
    _Calls = _PythonCalls
else:
    _Calls = native._native.Fused


class Fused(_Calls):
    """A function whose calls are one pass over memory; made by :func:`zerostride.fuse`.

    A call takes
        operands: arrays, lists and NumPy scalars; Python numbers, which promote as in NumPy.
        out: an array that receives the result and is returned; for several results a tuple, list or
            dict of them as the function returns them, None where a new array is wanted. It may
            overlap the operands, but not itself: the result is as if they had been read first.
        progress: called with what is done and what there is to do, in elements, while arrays larger
            than memory are computed.
        further keywords: arrays are operands; everything else is a setting, and has to be hashable.

    It raises
        TraceError: the function does what cannot be fused; the message shows the line.
        BroadcastError: shapes that do not combine; `out` has another shape.
        TypeError: dtypes for which an op has no meaning; the result does not fit `out`.
        ValueError: two elements of `out` share memory, or it is read-only.
        MemoryError: the result has more bytes than there are.

    Calls whose program is known never enter Python (`_native.Fused`); `_call` does all others.

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
        self._dtype = None if dtype is None else _of_numbers(np.dtype(dtype))
        self._compiled: dict[Hashable, Compiled] = {}
        self._settled: dict[Hashable, Settled] = {}
        self._lock = threading.Lock()
        compiler = sys.modules.get(_COMPILER)
        if compiler is not None:  # PyTorch's, which does not read bytecode of what it knows
            compiler.allow(self)

    def _call(self, /, *operands: Any, out: Any = None, progress: Any = None, **more: Any) -> Any:
        """A call that the engine does not know; see the class."""
        if Value in map(type, operands) or Value in map(type, more.values()):
            return self._inlined(operands, out, more)
        if any_foreign(operands) or (more and any_foreign(more.values())):
            return dispatch().fused(self, operands, more, out, progress)
        known = self._with(more) if more and progress is None else None
        if known is not None:
            return known(*operands) if out is None else known(*operands, out=out)
        return self.compute(operands, more, out, progress, None if more else self)

    def of_library(
        self, /, *operands: Any, out: Any = None, progress: Any = None, **more: Any
    ) -> Any:
        """A call on the memory of a library that has bfloat16 itself (`own_kinds`)."""
        known = self._with(more, own=True) if progress is None else None
        if known is not None:
            return known(*operands) if out is None else known(*operands, out=out)
        return self.compute(operands, more, out, progress, None, own=True)

    def _with(self, settings: Mapping[str, Any], *, own: bool = False) -> Settled | None:
        """The calls with some settings; None where an array is among them, or what may change."""
        if not settings:
            key: Hashable = own
        else:
            try:
                hash(tuple(settings.values()))
            except TypeError:
                return None
            key = own, _settings(settings)
        found = self._settled.get(key)
        return found or self._keep(self._settled, key, Settled(self, settings, own))

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
        """A call; `learner` may leave the next ones of its signature to the engine."""
        call = sort(operands, more, own=own)
        compiled = self.compiled(call)
        targets = compiled.structure.unpack(out, "out")
        results = run(compiled, call.values, targets, progress)
        if learner is not None and not (compiled.integers or compiled.is_of_numbers):
            _learn(learner, compiled, call.values)
        return compiled.structure.pack(results)

    def _inlined(self, operands: Sequence[Any], out: Any, more: Mapping[str, Any]) -> Any:
        """Within another fused function it is a part of that."""
        no_out(out)
        if self._dtype is None:
            return self._function(*operands, **more)
        tracer = next(one.tracer for one in (*operands, *more.values()) if isinstance(one, Value))
        before, tracer.dtype = tracer.dtype, self._dtype
        try:
            given = [_entering(one) for one in operands]
            return self._function(*given, **{name: _entering(one) for name, one in more.items()})
        finally:
            tracer.dtype = before

    def compiled(self, call: Call) -> Compiled:
        """What the function is for a call's signature."""
        found = self._known(call.key)
        if found is None:
            with first_call:
                found = self._keep(self._compiled, call.key, self._compile(call.operands, call))
        beyond = found.integers.beyond(call.values) if found.integers else ()
        if not beyond:
            return found
        # What 64 bits do not hold, or not as Python has it: constants, which Python computes with.
        operands = list(call.operands)
        for k in beyond:
            operands[k] = replace(operands[k], value=call.values[k])
        key = (call.key, tuple((k, call.values[k]) for k in beyond))
        found = self._known(key)
        if found is None:
            with first_call:
                found = self._keep(self._compiled, key, self._compile(operands, call))
        return found

    def _known(self, key: Hashable) -> Compiled | None:
        """What is known for a signature, and still right: a captured array may have been given
        another shape or dtype in place, and is then seen as it is."""
        found = self._compiled.get(key)
        if found is None or found.lay == tuple(map(_signature, found.captured)):
            return found
        with first_call, self._lock:
            if self._compiled.get(key) is found:
                del self._compiled[key]
        return None

    def _compile(self, operands: Sequence[Operand], call: Call) -> Compiled:
        made = trace(self._function, operands, call.static, self._dtype, call.named, own=call.own)
        numbers = any(operand.value is not None for operand in operands)
        prepared = (
            ready(made.graph)
            if made.integers.may_fit
            else Ready(made.graph, None, None, "it computes with integers of more than 64 bits")
        )
        lay = tuple(map(_signature, made.captured))
        return Compiled(prepared, made.structure, made.sources, lay, made.integers, numbers)

    def _keep(self, kept: dict[Hashable, _T], key: Hashable, made: _T) -> _T:
        with first_call, self._lock:
            while len(kept) >= CACHE_SIZE:
                del kept[next(iter(kept))]
            return kept.setdefault(key, made)

    def graph(self, /, *operands: Any, **more: Any) -> Graph:
        """What the function computes for such operands."""
        return self.compiled(described(operands, more)).graph

    @property
    def latest(self) -> Compiled | None:
        """What the signature that was traced last is; None before the first call."""
        return next(reversed(tuple(self._compiled.values())), None)

    def explain(self, /, *operands: Any, **more: Any) -> Any:
        """The program for such operands, its registers, and the bytes that it moves.

        Without operands, that of the signature that was traced last.
        """
        with first_call:
            from .explain import explain

        return explain(self, operands, more)

    def vjp(self, /, *operands: Any, **more: Any) -> tuple[Any, Callable[..., Any]]:
        """The result, and the function that takes its cotangents back to the operands.

        Returns:
            What the call returns, and a function of cotangents that are packed as that is; it
            returns a gradient for each positional operand, of its shape and dtype.
        """
        with first_call:
            from .grad.vjp import pulled

        if any_foreign(operands) or any_foreign(more.values()):
            return dispatch().vjp(self, operands, more)  # type: ignore[no-any-return]
        return pulled(self, operands, more)

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
    """Leaves the calls of a signature to the engine."""
    if compiled.ready.engine is None or not all(one.is_steady for one in compiled.sources):
        return
    captured = compiled.captured
    arrays = (*values, *captured)
    packed = compiled.structure.is_plain_tuple
    if wants_blocks(arrays, None):
        return
    if (packed or compiled.structure.kind is None) and all(map(is_in_order, arrays)):
        learner.learn(values, compiled.ready.engine, captured, packed)


def run(
    compiled: Compiled, values: Sequence[Any], targets: Sequence[Any], progress: Any = None
) -> list[Any]:
    """One call of a compiled signature: every call comes through here.

    Args:
        compiled: the function for the signature of these operands.
        values: the operands of the call.
        targets: for each result an array that receives it, or None.
        progress: what the call was given to tell how far it is, or None.
    """
    if progress is not None and not callable(progress):
        raise TypeError(f"progress is a function, not {type(progress).__name__}")
    given = (*values, *compiled.captured)
    return run_into(compiled.ready, given, targets, progress, compiled.structure.named_outs)


def _check_names(function: Callable[..., Any]) -> None:
    """Refuses parameters that the call takes for itself, but for those that are None if left out:
    `out=None` means what it means for the call."""
    try:
        names = inspect.signature(function).parameters
    except (TypeError, ValueError):  # of C functions that do not say
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


def _entering(given: Any) -> Any:
    return given.tracer.entering(given) if isinstance(given, Value) else given


# Calls


def sort(operands: Sequence[Any], more: Mapping[str, Any], *, own: bool = False) -> Call:
    """The arguments of a call as operands and settings; `own` as in :class:`Call`.

    >>> call = sort([np.zeros(3), 2], {"axis": 0, "bias": np.ones(3)})
    >>> len(call.values), call.named, call.static
    (3, ('bias',), {'axis': 0})
    """
    named: tuple[str, ...] = ()
    static = more
    if more:
        named = tuple(sorted(name for name, value in more.items() if isinstance(value, np.ndarray)))
        static = {name: value for name, value in more.items() if name not in named}
    given = (*operands, *(more[name] for name in named))
    check_labels(given)
    values = tuple([_value(one, k) for k, one in enumerate(given)])
    signature = tuple([_signature(value) for value in values])
    # Within strict mode a function is traced, and its plans looked at, once more.
    key = (signature, named, _settings(static), in_force(), own)
    return Call(key, values, named, static, own)


def described(operands: Sequence[Any], more: Mapping[str, Any]) -> Call:
    """A call of which nothing is computed: arrays of libraries, too, which may lie anywhere."""
    if not any_foreign((*operands, *more.values())):
        return sort(operands, more)
    shown, own = dispatch().standing((*operands, *more.values()))
    return sort(
        shown[: len(operands)], dict(zip(more, shown[len(operands) :], strict=True)), own=own
    )


def _value(given: Any, k: int) -> Any:
    """An operand: an array, or a Python number."""
    if type(given) is np.ndarray or type(given) in WEAK:
        return given
    check_elementwise(given)
    value = as_operand(given, k)
    if value.dtype == object and not isinstance(given, np.ndarray):
        raise _no_operand(k, "None" if given is None else f"a {type(given).__name__}")
    return value


def _no_operand(k: int, what: str) -> TypeError:
    return TypeError(
        f"operand {k} is {what}; operands are arrays and numbers. Pass by keyword what is a setting"
    )


def _signature(value: Any) -> Hashable:
    if type(value) is np.ndarray:
        return value.shape, value.dtype
    return (type(value), value) if _is_constant(value) else type(value).__name__


def _operand(value: Any, k: int) -> Operand:
    if type(value) not in WEAK and not is_numeric(value.dtype):
        raise _no_operand(k, f"an array of {value.dtype}")
    found = operand_of(value)
    return replace(found, value=value) if _is_constant(value) else found


def _is_constant(value: Any) -> bool:
    """Whether it is a number of the signature: one of Python's truth values, which are integers
    where they meet numbers; or an integer beyond 64 bits, which has no dtype until it is known."""
    return type(value) is bool or (type(value) is int and not -_MOST - 1 <= value <= _MOST)


def _settings(given: Mapping[str, Any]) -> Hashable:
    return tuple([(name, _setting(name, given[name])) for name in sorted(given)])


def _setting(name: str, value: Any) -> Hashable:
    """What tells a setting from another: 1, 1.0 and True are equal, and are not one."""
    if isinstance(value, Value):
        raise TraceError(f"{name}= is a value of a function that is being fused")
    if isinstance(value, tuple | list):
        return type(value), tuple(_setting(name, one) for one in value)
    if isinstance(value, frozenset):
        return frozenset, frozenset(_setting(name, one) for one in value)
    if is_dataclass(value) and not isinstance(value, type):
        return type(value), tuple(_setting(name, getattr(value, f.name)) for f in fields(value))
    if isinstance(value, dict):
        return dict, tuple((key, _setting(name, one)) for key, one in value.items())
    if isinstance(value, float | complex):
        return type(value), repr(value)
    if isinstance(value, np.generic):
        return type(value), value.tobytes()
    try:
        hash(value)
    except TypeError:
        raise TypeError(
            f"{name}= is a {type(value).__name__}, which is not hashable; keyword arguments of a "
            "fused function are settings, and arrays are operands"
        ) from None
    return type(value), value
