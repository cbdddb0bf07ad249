"""A model's inputs, checked against its file before the computation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...errors import ZerostrideError
from ...sizes.dim import Dim
from ...system.spelling import meant
from ..flow.input_sizes import size_of_text
from ..ir.element_types import numpy_type
from ..ir.graph import Array, Graph, Value


def described(values: Sequence[Value]) -> str:
    """Inputs with their shapes and element types, for a message."""
    return ", ".join(f"{value.name} {shown(value)}" for value in values) or "none"


def shown(value: Value) -> str:
    """The shape and element type of a value: '(N,3) float32'."""
    if value.shape is None:
        return f"(any shape) {value.dtype or 'any type'}"
    sizes = ",".join("?" if size is None else str(size) for size in value.shape)
    return f"({sizes}) {value.dtype or 'any type'}"


def check_inputs(
    graph: Graph, needed: Sequence[Value], arrays: Mapping[str, Any]
) -> dict[str, Array]:
    """The inputs as arrays of the model's element types.

    Args:
        graph: the model.
        needed: the required inputs.
        arrays: arrays, lists or numbers by name.

    Raises:
        ZerostrideError: one is missing, unknown, or does not have the shape or element type that
            the file says; sizes that the file calls by one name differ.
    """
    declared = {value.name: value for value in graph.inputs}
    for name in arrays:
        if name not in declared:
            raise ZerostrideError(
                f"{graph.path}: it has no input {name!r}{meant(name, declared)} "
                f"(inputs: {described(graph.inputs)})"
            )
    missing = [value for value in needed if value.name not in arrays]
    if missing:
        raise ZerostrideError(f"{graph.path}: not given: {described(missing)}")
    bound: dict[str, tuple[int, str]] = {}
    return {
        name: _checked(graph, declared[name], array, bound) for name, array in arrays.items()
    }  # fmt: skip


def _checked(graph: Graph, value: Value, data: Any, bound: dict[str, tuple[int, str]]) -> Array:
    array = _typed(graph, value, data)
    if value.shape is None:
        return array
    where = f"{graph.path}: input {value.name!r}"
    if array.ndim != len(value.shape):
        raise ZerostrideError(
            f"{where} has the shape {array.shape}, of rank {array.ndim}; the model wants "
            f"{shown(value)}, of rank {len(value.shape)}"
        )
    for axis, (size, wanted) in enumerate(zip(array.shape, value.shape, strict=True)):
        if isinstance(wanted, int) and size != wanted:
            raise ZerostrideError(
                f"{where} has the shape {array.shape}; axis {axis} is {wanted} in the model, "
                f"{shown(value)}"
            )
        if isinstance(wanted, str | Dim) and size_of_text(str(wanted)) is not None:
            first, by = bound.setdefault(str(wanted), (size, value.name))
            if first != size:
                raise ZerostrideError(
                    f"{where} has the shape {array.shape}: axis {axis}, which the model calls "
                    f"{wanted}, is {size}, but {first} in {by!r}"
                )
    return array


def _typed(graph: Graph, value: Value, data: Any) -> Array:
    """An array of the input's element type; lists and numbers become that."""
    where = f"{graph.path}: input {value.name!r}"
    try:
        array = np.asarray(data)
    except ValueError as error:
        raise ZerostrideError(f"{where} is not an array: {error}") from None
    if array.dtype.kind == "O" or array.dtype.fields is not None:
        raise ZerostrideError(f"{where} has the element type {array.dtype}; it takes numbers")
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    if value.dtype is None or array.dtype == numpy_type(value.dtype):
        return array
    wanted = numpy_type(value.dtype)
    plain = not isinstance(data, np.ndarray | np.generic)
    if plain and (np.can_cast(array.dtype, wanted, "same_kind") or not array.size):
        return _same_numbers(array, wanted, where)
    if plain and array.dtype.kind in "bi" and wanted.kind not in "b":
        return _same_numbers(array, wanted, where)
    raise ZerostrideError(
        f"{where} is {array.dtype}; the model wants {wanted} (array.astype({str(wanted)!r}))"
    )


def _same_numbers(array: Array, wanted: np.dtype[Any], where: str) -> Array:
    """Lists and numbers of a caller: whole numbers must fit the model's element type."""
    converted = array.astype(wanted)
    if wanted.kind in "iu" and not np.array_equal(converted.astype(object), array.astype(object)):
        raise ZerostrideError(f"{where} has numbers that {wanted} does not hold")
    return converted
