"""The entry point for foreign operands: finds their library's adapter and calls it.

A call has the arrays of one library. NumPy's arrays and lists are allowed beside them only if the
library itself takes them; Python numbers are weak everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..compute.semantics import WEAK
from ..core.plan import Plan
from ..ops import Op
from .model import Adapter, FusedCall, Fusion, Options
from .programs import stand_in
from .table import Row, adapter, find_row


def elementwise(op: Op, operands: Sequence[Any], options: Options) -> Any:
    """An op of the table, on one library's arrays and numbers."""
    return adapter_of(operands, options.out).elementwise(op, operands, options)


def broadcast(data: Any, plan: Plan, copy: bool, out: Any) -> Any:
    """`data` laid over a plan's shape."""
    return adapter_of((data,), out).broadcast(data, plan, copy, out)


def views(plan: Plan, arrays: Sequence[Any]) -> tuple[Any, ...]:
    """The operands of a plan laid over its shape."""
    return adapter_of(arrays).views(plan, arrays)


def unbroadcast(plan: Plan, grad: Any, k: int) -> Any:
    """A gradient summed to an operand's shape."""
    return adapter_of((grad,)).unbroadcast(plan, grad, k)


def reduction(name: str, x: Any, options: Mapping[str, Any]) -> Any:
    """A reduction of an array."""
    return adapter_of((x,), options.get("out")).reduction(name, x, options)


def fused(
    function: Fusion,
    operands: Sequence[Any],
    settings: Mapping[str, Any],
    out: Any = None,
    progress: Any = None,
) -> Any:
    """A call of a fused function."""
    arrays = [*operands, *_arrays_among(settings.values())]
    call = FusedCall(function, operands, settings, out, progress)
    return adapter_of(arrays, out).fused(call)


def vjp(
    function: Fusion, operands: Sequence[Any], settings: Mapping[str, Any]
) -> tuple[Any, Callable[..., Any]]:
    """The result of a fused function, and its pullback."""
    arrays = [*operands, *_arrays_among(settings.values())]
    return adapter_of(arrays).vjp(FusedCall(function, operands, settings))


def standing(values: Sequence[Any]) -> tuple[list[Any], bool]:
    """Stand-ins for one library's arrays that give a call's signature; no element is read.

    Returns:
        The values with arrays replaced, and true where Python floats promote as in the library
        (`compute.semantics.own_kinds`); otherwise the unchanged values and false.
    """
    own = adapter_of(_arrays_among(values))
    if not getattr(own, "promotes", False):
        return [*values], False
    return [
        stand_in(tuple(map(int, value.shape)), own.dtype_of(value))
        if find_row(type(value)) is not None
        else value
        for value in values
    ], True


def data_of(array: Any) -> Any:
    """NumPy's array, or a number, for an array that a fused function captures."""
    return adapter_of((array,)).data_of(array)


def dtype_of(array: Any) -> np.dtype[Any]:
    """NumPy's dtype of one library's array."""
    return adapter_of((array,)).dtype_of(array)


def adapter_of(operands: Sequence[Any], out: Any = None) -> Adapter:
    """The adapter of the library whose arrays are among the operands.

    Raises:
        TypeError: the operands belong to two libraries that do not take each other's arrays, or
            `out` is not an array of the operands' library.
    """
    kinds = {type(operand) for operand in operands} - WEAK
    if len(kinds) == 1 and out is None:
        own = find_row(next(iter(kinds)))
        if own is not None:
            return adapter(own)
    rows: dict[str, Row] = {}
    places: dict[str, tuple[int, str]] = {}
    for k, operand in enumerate(operands):
        kind = type(operand)
        if kind in WEAK:
            continue
        row = find_row(kind)
        name = "numpy" if row is None else row.name
        places.setdefault(name, (k, _described(kind, row)))
        if row is not None:
            rows.setdefault(name, row)
    library = _one_of(rows, places)
    for array in _arrays_among((out,)):
        row = find_row(type(array))
        if row is None or row.name != library.name:
            what = "NumPy" if row is None else row.name
            raise TypeError(
                f"out is an array of {what}, and the operands are {library.name}'s; give an out of "
                f"{library.name}, or none"
            )
    return adapter(library)


def _one_of(rows: Mapping[str, Row], places: Mapping[str, tuple[int, str]]) -> Row:
    for row in rows.values():
        if all(name == row.name or name in row.takes for name in places):
            return row
    first, second, *_ = sorted(places, key=places.__getitem__)
    descriptions = [
        f"operand {k} is {description}" for k, description in (places[first], places[second])
    ]
    if "scalar" in places[second][1] or "scalar" in places[first][1]:
        descriptions[-1] += "; give it as a Python number: x.item()"
        raise TypeError(" and ".join(descriptions))
    raise TypeError(
        f"{' and '.join(descriptions)}; convert one of them: {_conversion(rows, second, first)}"
    )


def _described(kind: type, row: Row | None) -> str:
    if row is not None:
        return f"an array of {row.name}"
    if issubclass(kind, np.ndarray):
        return "an array of NumPy"
    return "a scalar of NumPy" if issubclass(kind, np.generic) else f"a {kind.__name__}"


def _conversion(rows: Mapping[str, Row], source: str, target: str) -> str:
    """How an array of `given` becomes one of `wanted`, in words."""
    if target == "numpy":
        return f"{rows[source].lowered}, or the other way {rows[source].made}"
    if source == "numpy":
        return f"{rows[target].made}, or the other way {rows[target].lowered}"
    return f"{rows[target].made} of {rows[source].lowered}"


def _arrays_among(values: Iterable[Any]) -> list[Any]:
    """The arrays in values and in the tuples, lists and dicts among them."""
    arrays: list[Any] = []
    for value in values:
        if isinstance(value, dict):
            arrays += _arrays_among(value.values())
        elif isinstance(value, tuple | list):
            arrays += _arrays_among(value)
        elif isinstance(value, np.ndarray) or find_row(type(value)) is not None:
            arrays.append(value)
    return arrays
