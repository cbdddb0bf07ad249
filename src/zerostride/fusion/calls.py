"""Calls of fused functions: their sorted arguments, and the compiled form of each signature."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any

import numpy as np

from ..compute.foreign import any_foreign, dispatch
from ..compute.labels import check_labels
from ..compute.reference import as_operand
from ..compute.semantics import WEAK
from ..core.strict_mode import in_force
from ..errors import TraceError
from .run import Ready, run_into
from .trace.captured import Captured, arrays_of
from .trace.graph import Graph
from .trace.integers import Integers
from .trace.operands import Operand, check_elementwise, is_numeric, operand_of
from .trace.structure import Structure
from .trace.value import Value

_MOST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Call:
    """The arguments of a call, sorted.

    Attributes:
        key: the signature.
        values: the operands: arrays, and Python numbers.
        named: the names of the last operands, which were passed by name.
        static: the other keyword arguments.
        own: whether Python floats promote as in a library with bfloat16 (`own_kinds`).
    """

    key: Hashable
    values: tuple[Any, ...]
    named: tuple[str, ...]
    static: Mapping[str, Any]
    own: bool = False

    @property
    def operands(self) -> tuple[Operand, ...]:
        """The operands' descriptions for tracing.

        Raises:
            TypeError: an operand is not of numbers.
        """
        return tuple(_operand(value, k) for k, value in enumerate(self.values))


@dataclass(frozen=True, slots=True)
class Compiled:
    """A function compiled for one signature.

    Attributes:
        ready: its graph, ready to run.
        structure: how the results are packed.
        sources: the captured arrays; operands after those of the call.
        lay: their shapes and dtypes when the function was traced.
        integers: the conditions on Python integers among the operands.
        is_of_numbers: whether Python numbers of the call are constants of the graph.
        derived: values computed on demand: "program".
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
        """The graph that is computed."""
        return self.ready.graph

    @property
    def captured(self) -> tuple[Any, ...]:
        """The present contents of the captured arrays."""
        return arrays_of(self.sources)


def run(
    compiled: Compiled, values: Sequence[Any], targets: Sequence[Any], progress: Any = None
) -> list[Any]:
    """Runs one call of a compiled signature; every call uses this function.

    Args:
        compiled: the function for the signature of these operands.
        values: the operands of the call.
        targets: for each result an array that receives it, or None.
        progress: the call's progress callback, or None.
    """
    if progress is not None and not callable(progress):
        raise TypeError(f"progress is a function, not {type(progress).__name__}")
    operands = (*values, *compiled.captured)
    return run_into(compiled.ready, operands, targets, progress, compiled.structure.named_outs)


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
    inputs = (*operands, *(more[name] for name in named))
    check_labels(inputs)
    values = tuple([_value(operand, k) for k, operand in enumerate(inputs)])
    signature = tuple([signature_of(value) for value in values])
    # Strict mode traces a function again, so that its plans are checked.
    key = (signature, named, settings_key(static), in_force(), own)
    return Call(key, values, named, static, own)


def described(operands: Sequence[Any], more: Mapping[str, Any]) -> Call:
    """A call of which nothing is computed; operands may be any library's arrays, on any device."""
    if not any_foreign((*operands, *more.values())):
        return sort(operands, more)
    shown, own = dispatch().standing((*operands, *more.values()))
    return sort(
        shown[: len(operands)], dict(zip(more, shown[len(operands) :], strict=True)), own=own
    )


def _value(operand: Any, k: int) -> Any:
    """An operand: an array, or a Python number."""
    if type(operand) is np.ndarray or type(operand) in WEAK:
        return operand
    check_elementwise(operand)
    value = as_operand(operand, k)
    if value.dtype == object and not isinstance(operand, np.ndarray):
        raise _no_operand(k, "None" if operand is None else f"a {type(operand).__name__}")
    return value


def _no_operand(k: int, what: str) -> TypeError:
    return TypeError(
        f"operand {k} is {what}; operands are arrays and numbers. Pass by keyword what is a setting"
    )


def signature_of(value: Any) -> Hashable:
    """An operand's part of the signature: its shape and dtype, or its type and value."""
    if type(value) is np.ndarray:
        return value.shape, value.dtype
    return (type(value), value) if _is_constant(value) else type(value).__name__


def _operand(value: Any, k: int) -> Operand:
    if type(value) not in WEAK and not is_numeric(value.dtype):
        raise _no_operand(k, f"an array of {value.dtype}")
    operand = operand_of(value)
    return replace(operand, value=value) if _is_constant(value) else operand


def _is_constant(value: Any) -> bool:
    """Whether a number's value belongs to the signature: Python's truth values, which are integers
    beside numbers, and integers beyond 64 bits, whose dtype depends on the value."""
    return type(value) is bool or (type(value) is int and not -_MOST - 1 <= value <= _MOST)


def settings_key(settings: Mapping[str, Any]) -> Hashable:
    """The settings of a call as one hashable value."""
    return tuple([(name, _setting(name, settings[name])) for name in sorted(settings)])


def _setting(name: str, value: Any) -> Hashable:
    """A setting as a key with its type: 1, 1.0 and True are equal, but different settings."""
    if isinstance(value, Value):
        raise TraceError(f"{name}= is a value of a function that is being fused")
    if isinstance(value, tuple | list):
        return type(value), tuple(_setting(name, item) for item in value)
    if isinstance(value, frozenset):
        return frozenset, frozenset(_setting(name, item) for item in value)
    if is_dataclass(value) and not isinstance(value, type):
        return type(value), tuple(_setting(name, getattr(value, f.name)) for f in fields(value))
    if isinstance(value, dict):
        return dict, tuple((key, _setting(name, item)) for key, item in value.items())
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
