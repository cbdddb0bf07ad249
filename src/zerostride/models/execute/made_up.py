"""Random inputs for a model, from a seed."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from ...errors import ZerostrideError
from ..graph import Array, Graph, Value
from .call import room
from .inputs import near, shown


def random_array(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Array:
    """Numbers that models take: floats of 0 to 1 (images, masks), integers of 0 to 3, truth values.

    A mask below 0 overflows where models multiply by the largest float, and engines then differ.
    """
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if kind.kind in "iu":
        return rng.integers(0, 4, shape).astype(kind)
    if kind.kind == "c":
        return (rng.uniform(0, 1, shape) + 1j * rng.uniform(0, 1, shape)).astype(kind)
    return rng.uniform(0, 1, shape).astype(kind)


def random_inputs(
    graph: Graph,
    seed: int,
    sizes: Mapping[str, int] | None = None,
    given: Collection[str] = (),
) -> dict[str, Array]:
    """An array for every input of a model but those that are given.

    Args:
        graph: the model.
        seed: equal seeds give equal arrays, whatever else is given.
        sizes: numbers for the sizes that the file names.
        given: names of inputs that are there already.

    Raises:
        ZerostrideError: a size is not known.
    """
    named = {size for value in graph.inputs for size in value.shape or () if isinstance(size, str)}
    for name in sizes or {}:
        if name not in named:
            raise ZerostrideError(
                f"{graph.path}: no input has a size {name!r}{near(name, named)}"
                + (f" (sizes: {', '.join(sorted(named))})" if named else "")
            )
    return {
        value.name: _one(graph, position, value, seed, sizes or {})
        for position, value in enumerate(graph.inputs)
        if value.name not in given
    }


def _one(graph: Graph, position: int, value: Value, seed: int, sizes: Mapping[str, int]) -> Array:
    where = f"{graph.path}: input {value.name!r}, {shown(value)}"
    # Where a file does not say (a single layer of a document), floats are meant.
    dtype = value.dtype or "float32"
    if value.shape is None:
        raise ZerostrideError(f"{where}: its shape is not known; give it")
    shape = []
    for axis, size in enumerate(value.shape):
        number = sizes.get(size) if isinstance(size, str) else size
        if not isinstance(number, int):
            how = f"set {size}" if isinstance(size, str) else "give the input"
            raise ZerostrideError(f"{where}: its axis {axis} has no size; {how}")
        shape.append(number)
    try:
        room(shape, dtype)
    except ValueError as error:
        raise ZerostrideError(f"{where}: {error}") from None
    return random_array(np.random.default_rng([seed, position]), tuple(shape), dtype)
