"""One node to compute: operands, attributes, and the limits of its result and work."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ...ir.element_types import numpy_type
from ...ir.graph import Array, Node

#: Bytes of one tensor. A file of a few bytes can ask for more than any machine has; models in use
#: stay far below.
MAX_BYTES = 2**31

#: Multiplications of one node, which take minutes. A file of a few bytes can ask for years.
MAX_STEPS = 2**36

#: Default limit of work of one run. A unit is about 100 microseconds: one pass of a loop, one node
#: run in it, MULTIPLICATIONS, or the elements that an op makes and reads in that time (`work`).
MAX_WORK, MULTIPLICATIONS = 100_000, 2**20
#: Bytes of all tensors of one run that are alive at the same time.
MAX_ALIVE = 2**33


class Unfit(ValueError):  # noqa: N818 - a small fact, enriched once by the walk
    """A node cannot be computed on these operands; the message is the reason."""


class Meter:
    """Counts the work of one run.

    Attributes:
        limit: the most units.
        spent: the units so far.
    """

    __slots__ = ("limit", "spent")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.spent = 0

    def spend(self, units: int) -> None:
        """Counts work; Unfit beyond the limit."""
        self.spent += units
        if self.spent > self.limit:
            raise Unfit(f"the run is more work than the limit of {self.limit} (--limit, limit=)")


#: The meter of the current run.
meter: ContextVar[Meter | None] = ContextVar("meter", default=None)


@dataclass(frozen=True, slots=True)
class NodeCall:
    """A node and its operands; None for an optional operand that is left out."""

    node: Node
    inputs: tuple[Array | None, ...]

    def maybe(self, position: int) -> Array | None:
        """An operand that may be left out."""
        return self.inputs[position] if position < len(self.inputs) else None

    def __getitem__(self, position: int) -> Array:
        """A required operand."""
        array = self.maybe(position)
        if array is None:
            raise Unfit(f"operand {position} is missing")
        return array

    def operands(self) -> list[Array]:
        """The operands that are present."""
        return [array for array in self.inputs if array is not None]

    def attribute(self, name: str, default: Any = None) -> Any:
        """An attribute, or the default."""
        return self.node.attributes.get(name, default)

    def flag(self, name: str, default: int = 0) -> bool:
        """An attribute that is 0 or 1."""
        return bool(self.attribute(name, default))

    def integers(self, name: str, position: int | None = None) -> tuple[int, ...] | None:
        """Integers that are an attribute in some op sets and an operand in others."""
        value = self.attribute(name)
        if value is None and position is not None:
            array = self.maybe(position)
            if array is None:
                return None
            if array.dtype.kind not in "iu" or array.ndim > 1:
                raise Unfit(
                    f"{name} is {array.dtype} of shape {array.shape}, not a list of integers"
                )
            return tuple(int(number) for number in array.reshape(-1))
        if value is None:
            return None
        return tuple(map(int, value)) if isinstance(value, Sequence) else (int(value),)

    def number(self, position: int) -> int:
        """The one integer of an operand."""
        array = self[position]
        if array.size != 1 or array.dtype.kind not in "iub":
            raise Unfit(
                f"operand {position} is {array.dtype} of shape {array.shape}, not an integer"
            )
        return int(array.reshape(-1)[0])

    def output_dtype(self) -> np.dtype[Any] | None:
        """The element type that the file gives the first result."""
        name = self.node.outputs[0].dtype if self.node.outputs else None
        return None if name is None else numpy_type(name)


Results: TypeAlias = "Array | tuple[Array, ...]"
Kernel = Callable[[NodeCall], Results]


def room(shape: Iterable[int], dtype: Any = np.float32) -> tuple[int, ...]:
    """The shape, checked against the limits.

    Raises:
        Unfit: it has negative sizes, more axes than NumPy allows, or more than MAX_BYTES.
    """
    sizes = tuple(int(size) for size in shape)
    if any(size < 0 for size in sizes):
        raise Unfit(f"the result would have the shape {sizes}")
    if len(sizes) > 64:
        raise Unfit(f"the result would have {len(sizes)} axes; NumPy carries 64")
    # Without the zeros among the sizes: NumPy too refuses a product that is large without them.
    weight = math.prod(size for size in sizes if size) * np.dtype(dtype).itemsize
    if weight > MAX_BYTES:
        raise Unfit(f"the result, of shape {sizes}, would take {weight} bytes; at most {MAX_BYTES}")
    return sizes


def effort(*counts: int, each: int = MULTIPLICATIONS) -> None:
    """Refuses a node whose work, the product of the counts, is too much.

    Args:
        counts: the numbers of steps.
        each: steps per unit.

    Raises:
        Unfit: it would take more than `MAX_STEPS` steps, or more than is left for the run.
    """
    steps = math.prod(counts)
    if steps > MAX_STEPS:
        raise Unfit(f"it would take {steps} steps; at most {MAX_STEPS}")
    whole = meter.get()
    if whole is not None:
        whole.spend(steps // each)


def axis_of(axis: int, rank: int) -> int:
    """An axis counted from 0."""
    if not -rank <= axis < rank:
        raise Unfit(f"axis {axis} of a tensor of rank {rank}")
    return axis % rank if rank else 0


def axes_of(axes: Sequence[int], rank: int) -> tuple[int, ...]:
    """Axes counted from 0, none twice."""
    positions = tuple(axis_of(axis, rank) for axis in axes)
    if len(set(positions)) != len(positions):
        raise Unfit(f"an axis is named twice: {tuple(axes)}")
    return positions
