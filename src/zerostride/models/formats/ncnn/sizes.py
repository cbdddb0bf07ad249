"""A layer being asked for its results' shapes: operands, parameters, and two ways to give up.

Shapes are in NumPy's order: (c, d, h, w), (c, h, w), (h, w) or (w,). A size is a number or an
expression of the sizes of inputs that the file does not give.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ....sizes import Answer, is_one
from ....sizes.dim import Dim, Number, Symbol, of_atom, plain
from ....sizes.functions import floordiv
from .text import Layer, Params

Sizes: TypeAlias = tuple[Number, ...]
#: What a layer answers: a shape for each result, None where it cannot be told.
Results: TypeAlias = "list[Sizes | None]"

#: A size is a C int.
MAX_SIZE = 2**31 - 1
#: A blob has at most so many axes.
MAX_RANK = 4
#: Names of axes by rank, as ncnn calls them.
AXES: Mapping[int, str] = {1: "w", 2: "hw", 3: "chw", 4: "cdhw"}
#: Stands for "not given" among sizes and offsets.
ABSENT = -233


class Unknown(Exception):  # noqa: N818 - an answer, not a fault
    """The shape cannot be told here: an op that is not modelled, sizes that are not decided."""


class Wrong(Exception):  # noqa: N818 - an answer, not a fault
    """No such blob comes out: the layer fails, or computes nonsense; the words say why."""


@dataclass(frozen=True, slots=True)
class LayerCall:
    """One layer with the shapes of what it reads.

    Attributes:
        layer: the layer.
        shapes: its operands' shapes.
    """

    layer: Layer
    shapes: tuple[Sizes, ...]

    @property
    def params(self) -> Params:
        """Its parameters."""
        return Params(self.layer)

    def whole(self, number: int, default: int = 0) -> int:
        """A whole-number parameter."""
        return self.params.whole(number, default)

    @property
    def first(self) -> Sizes:
        """The first operand's shape."""
        return self.operand(0)

    def operand(self, position: int) -> Sizes:
        """An operand's shape; the layer is wrong if it is not there."""
        if position >= len(self.shapes):
            raise Wrong(f"it has {len(self.shapes)} operands, too few")
        return self.shapes[position]

    def of_rank(self, *ranks: int) -> Sizes:
        """The first operand's shape, if it has as many axes."""
        if len(self.first) not in ranks:
            raise Unknown(f"data of rank {len(self.first)}")
        return self.first

    def positive(self, number: int, default: int = 0) -> int:
        """A parameter that divides or counts."""
        value = self.whole(number, default)
        if value < 1:
            raise Wrong(f"parameter {number} is {value}")
        return value

    def axis(self, number: int, default: int = 0, rank: int | None = None) -> int:
        """An axis from 0; negative ones count from the last."""
        return place(self.whole(number, default), len(self.first) if rank is None else rank)


def called(blob: str, rank: int) -> Sizes:
    """Sizes that nothing is known of, called by the blob and its axes: "in0.h"."""
    word = re.sub(r"\W", "_", blob)
    word = word if re.match(r"[^\W\d]", word) else f"blob_{word}"
    return tuple(of_atom(Symbol(f"{word}.{axis}")) for axis in AXES[rank])


def named_sizes(shape: Sizes) -> dict[str, Number]:
    """The sizes by ncnn's names; those that a blob lacks are 1."""
    return {**dict.fromkeys("cdhw", 1), **dict(zip(AXES[len(shape)], shape, strict=True))}


def place(axis: int, rank: int) -> int:
    """An axis from 0; the layer is wrong if there is none."""
    position = axis + rank if axis < 0 else axis
    if not 0 <= position < rank:
        raise Wrong(f"axis {axis} of data of rank {rank}")
    return position


def number(size: Number) -> int:
    """A size as a number; unknown if it is none."""
    value = plain(size)
    if isinstance(value, Dim):
        raise Unknown(f"the size {value} is not known")
    return value


def is_unit(size: Number) -> bool:
    """Whether a size is 1; unknown if that is not decided."""
    answer = is_one(size)
    if answer is Answer.UNKNOWN:
        raise Unknown(f"whether {size} is 1 is not known")
    return answer is Answer.YES


def equal(a: Number, b: Number) -> bool | None:
    """Whether two sizes are equal; None where that is not decided."""
    difference = plain(a - b)
    if isinstance(difference, int):
        return difference == 0
    return None


def product(sizes: Sequence[Number]) -> Number:
    """The number of elements; the layer is wrong if ncnn cannot count them."""
    return plain(math.prod(sizes))


def divided(size: Number, divisor: Number) -> Number:
    """A quotient rounded down, of a size not below 0."""
    if isinstance(divisor, int) and divisor == 0:
        raise Wrong("a division by 0")
    if isinstance(size, int) and isinstance(divisor, int):
        return size // divisor
    return plain(floordiv(size, divisor))


def quotient(size: Number, divisor: Number) -> Number:
    """A quotient that leaves nothing over, as far as that is decided."""
    rows = divided(size, divisor)
    if equal(plain(rows * divisor), size) is False:
        raise Wrong(f"{size} elements do not fill rows of {divisor}")
    return rows


def checked(shape: Sizes) -> Sizes:
    """The shape, if a blob of it can be."""
    if not 1 <= len(shape) <= MAX_RANK:
        raise Wrong(f"a blob of {len(shape)} axes")
    for size in shape:
        if isinstance(size, int) and not 1 <= size <= MAX_SIZE:
            raise Wrong(f"a size of {size}")
    numbers = [size for size in shape if isinstance(size, int)]
    if math.prod(numbers) > MAX_SIZE:
        raise Wrong(f"{math.prod(numbers)} elements are more than ncnn counts")
    return tuple(map(plain, shape))


__all__ = ["LayerCall", "Results", "Sizes", "Unknown", "Wrong", "checked", "named_sizes", "place"]
