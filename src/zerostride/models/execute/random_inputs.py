"""Random inputs for a model, from a seed."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from ...errors import ZerostrideError
from ..flow.advice import advice
from ..formats import lowered
from ..ir.element_types import numpy_type
from ..ir.graph import Array, Graph, Value
from ..onnx_ops.kernels.call import room
from .input_ranges import input_range
from .inputs import shown


def random_array(
    rng: np.random.Generator,
    shape: tuple[int, ...],
    dtype: str,
    meant: tuple[float, float] | None = None,
) -> Array:
    """Typical model inputs: floats of 0 to 1 (images, masks), integers of 0 to 3, truth values.

    Models multiply masks by the largest float. A mask below 0 would overflow, and engines differ
    then.

    Args:
        rng: the generator.
        shape, dtype: of the input.
        meant: the range of the numbers, if the model tells it.
    """
    kind = numpy_type(dtype)
    if meant is not None and _holds(kind, *meant):
        numbers = rng.uniform(*meant, shape)
        return (numbers if kind.kind == "f" else np.rint(numbers)).astype(kind)
    if kind.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if kind.kind in "iu":
        return rng.integers(0, 4, shape).astype(kind)
    if kind.kind == "c":
        return (rng.uniform(0, 1, shape) + 1j * rng.uniform(0, 1, shape)).astype(kind)
    return rng.uniform(0, 1, shape).astype(kind)


def _holds(kind: np.dtype, low: float, high: float) -> bool:
    """Whether an element type has a range of numbers."""
    if kind.kind not in "iuf":
        return False
    limits = np.finfo(kind) if kind.kind == "f" else np.iinfo(kind)
    return bool(limits.min <= low <= high <= limits.max)


def random_inputs(
    graph: Graph,
    seed: int,
    given: Collection[str] = (),
) -> dict[str, Array]:
    """An array for every input of a model that is not given.

    Args:
        graph: the model.
        seed: equal seeds give equal arrays, whatever inputs are given. Their numbers are in the
            range that the model's first ops suggest.
        given: names of inputs that the caller has.

    Raises:
        ZerostrideError: a size is not known.
    """
    uses = lowered(graph).uses()
    return {
        value.name: _one(graph, position, value, seed, input_range(value, uses))
        for position, value in enumerate(graph.inputs)
        if value.name not in given
    }


def _one(
    graph: Graph, position: int, value: Value, seed: int, meant: tuple[float, float] | None
) -> Array:
    where = f"{graph.path}: input {value.name!r}, {shown(value)}"
    # A file without element types (a single layer of a document) means floats.
    dtype = value.dtype or "float32"
    if value.shape is None:
        raise ZerostrideError(f"{where}: its shape is not known: {advice(graph)}")
    shape = []
    for axis, size in enumerate(value.shape):
        if not isinstance(size, int):
            raise ZerostrideError(f"{where}: its axis {axis} has no size: {advice(graph)}")
        shape.append(size)
    try:
        room(shape, dtype)
    except (ValueError, TypeError) as error:  # TypeError: NumPy has no such type
        raise ZerostrideError(f"{where}: {error}") from None
    try:
        return random_array(np.random.default_rng([seed, position]), tuple(shape), dtype, meant)
    except MemoryError as error:
        raise ZerostrideError(f"{where}: {error}") from None
