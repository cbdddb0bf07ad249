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
from .input_ranges import Meant, input_range
from .inputs import shown

#: Numbers of both signs, of the size of normalised images and of embeddings.
_SIGNED = (-1.5, 1.5)


def random_array(
    rng: np.random.Generator,
    shape: tuple[int, ...],
    dtype: str,
    meant: Meant | None = None,
    *,
    signed: bool = True,
) -> Array:
    """Typical model inputs: floats of both signs, integers of 0 to 3, truth values.

    A slope, an Abs, a HardSigmoid shows in no positive number.

    Args:
        rng: the generator.
        shape, dtype: of the input.
        meant: what numbers the model's first ops want, if they tell it.
        signed: floats of -1.5 to 1.5; otherwise of 0 to 1.
    """
    kind = numpy_type(dtype)
    if meant is not None and _holds(kind, meant.least, meant.most):
        numbers = rng.uniform(meant.least, meant.most, shape)
        return (np.rint(numbers) if meant.whole or kind.kind != "f" else numbers).astype(kind)
    low, high = _SIGNED if signed else (0.0, 1.0)
    if kind.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if kind.kind in "iu":
        return rng.integers(0, 4, shape).astype(kind)
    if kind.kind == "c":
        return (rng.uniform(low, high, shape) + 1j * rng.uniform(low, high, shape)).astype(kind)
    return rng.uniform(low, high, shape).astype(kind)


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
    *,
    signed: bool = True,
) -> dict[str, Array]:
    """An array for every input of a model that is not given.

    Args:
        graph: the model.
        seed: equal seeds give equal arrays, whatever inputs are given. Their numbers are in the
            range that the model's first ops suggest.
        given: names of inputs that the caller has.
        signed: floats of both signs, where the first ops do not suggest others.

    Raises:
        ZerostrideError: a size is not known.
    """
    uses = lowered(graph).uses()
    return {
        value.name: _one(graph, position, value, seed, input_range(value, uses), signed=signed)
        for position, value in enumerate(graph.inputs)
        if value.name not in given
    }


def _one(
    graph: Graph, position: int, value: Value, seed: int, meant: Meant | None, *, signed: bool
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
        rng = np.random.default_rng([seed, position])
        return random_array(rng, tuple(shape), dtype, meant, signed=signed)
    except MemoryError as error:
        raise ZerostrideError(f"{where}: {error}") from None
