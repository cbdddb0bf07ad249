"""Random inputs for a model, from a seed."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import partial

import numpy as np

from ...errors import ZerostrideError
from ..flow.advice import advice
from ..format_table import lowered
from ..ir.element_types import numpy_type
from ..ir.graph import Array, Graph, Value
from ..onnx_ops.kernels.call import room
from .input_ranges import Meant, input_range
from .inputs import shown


@dataclass(frozen=True, slots=True)
class Ranges:
    """Of what numbers inputs are drawn, if the model's first ops do not tell.

    Attributes:
        least, most: of floats.
        lengths: whole numbers are lengths, up to the model's largest size; otherwise 0 to 3.
    """

    least: float
    most: float
    lengths: bool = False


#: In the order in which they are tried: both signs, of the size of normalised images and of
#: embeddings; wider, and narrower, where those show too little; none below 0.
RANGES = (
    Ranges(-1.5, 1.5),
    Ranges(-8, 8, lengths=True),
    Ranges(-0.1, 0.1, lengths=True),
    Ranges(0, 1),
)


def random_array(
    rng: np.random.Generator,
    shape: tuple[int, ...],
    dtype: str,
    meant: Meant | None = None,
    ranges: Ranges = RANGES[0],
    largest: int = 0,
) -> Array:
    """Typical model inputs: floats of both signs, integers of 0 to 3, truth values.

    A slope, an Abs, a HardSigmoid shows in no positive number.

    Args:
        rng: the generator.
        shape, dtype: of the input.
        meant: what numbers the model's first ops want, if they tell it.
        ranges: of the numbers, if the model tells none.
        largest: the largest size of the model's inputs.
    """
    kind = numpy_type(dtype)
    if meant is not None and _holds(kind, meant.least, meant.most):
        numbers = rng.uniform(meant.least, meant.most, shape)
        return (np.rint(numbers) if meant.whole or kind.kind != "f" else numbers).astype(kind)
    low, high = ranges.least, ranges.most
    if kind.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if kind.kind in "iu":
        least, most = (largest // 2, largest) if ranges.lengths and largest > 3 else (0, 3)
        return rng.integers(least, min(most, np.iinfo(kind).max) + 1, shape).astype(kind)
    if kind.kind == "c":
        return (rng.uniform(low, high, shape) + 1j * rng.uniform(low, high, shape)).astype(kind)
    return rng.uniform(low, high, shape).astype(kind)


def _holds(kind: np.dtype, low: float, high: float) -> bool:
    """Whether an element type has a range of numbers."""
    if kind.kind not in "iuf":
        return False
    limits = np.finfo(kind) if kind.kind == "f" else np.iinfo(kind)
    return float(limits.min) <= low <= high <= float(limits.max)


def random_inputs(
    graph: Graph,
    seed: int,
    given: Collection[str] = (),
    ranges: Ranges = RANGES[0],
) -> dict[str, Array]:
    """An array for every input of a model that is not given.

    Args:
        graph: the model.
        seed: equal seeds give equal arrays, whatever inputs are given. Their numbers are in the
            range that the model's first ops suggest.
        given: names of inputs that the caller has.
        ranges: where the first ops do not suggest others.

    Raises:
        ZerostrideError: a size is not known.
    """
    uses = lowered(graph).uses
    sizes = [size for value in graph.inputs for size in value.shape or () if isinstance(size, int)]
    draw = partial(_one, graph, seed, ranges, max(sizes, default=0))
    return {
        value.name: draw(position, value, input_range(value, uses))
        for position, value in enumerate(graph.inputs)
        if value.name not in given
    }


def _one(
    graph: Graph,
    seed: int,
    ranges: Ranges,
    largest: int,
    position: int,
    value: Value,
    meant: Meant | None,
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
        return random_array(rng, tuple(shape), dtype, meant, ranges, largest)
    except MemoryError as error:
        raise ZerostrideError(f"{where}: {error}") from None
