"""The call of a layer's shape function: operands and parameters.

A function raises Unclear if the shape cannot be computed: an op that is not modelled, or sizes that
are not decided. It raises NoSizes, with the reason, if the layer fails or computes nonsense.

Shapes are in NumPy's order: (c, d, h, w), (c, h, w), (h, w) or (w,). A size is a number, or an
expression of input sizes that the file does not give.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from .....core.rules import NCNN_RANK
from .....sizes import Answer, is_one
from .....sizes.dim import Dim, Number, Symbol, of_atom, plain
from .....sizes.functions import floordiv
from ....onnx_ops.sizes.facts import NoSizes, Unclear, place
from ..text import Layer, Params

Sizes: TypeAlias = tuple[Number, ...]
#: The shape of each result of a layer; None if it is unknown.
Results: TypeAlias = "list[Sizes | None]"

#: A size is a C int.
MAX_SIZE = 2**31 - 1
#: ncnn's names of axes by rank.
AXES: Mapping[int, str] = {1: "w", 2: "hw", 3: "chw", 4: "cdhw"}
#: Stands for "not given" among sizes and offsets.
ABSENT = -233


@dataclass(frozen=True, slots=True)
class LayerCall:
    """One layer with the shapes of its operands.

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
        """An operand's shape; NoSizes if the operand is missing."""
        if position >= len(self.shapes):
            raise NoSizes(f"it has {len(self.shapes)} operands, too few")
        return self.shapes[position]

    def of_rank(self, *ranks: int) -> Sizes:
        """The first operand's shape; Unclear if its rank is not one of these."""
        if len(self.first) not in ranks:
            raise Unclear(f"data of rank {len(self.first)}")
        return self.first

    def positive(self, number: int, default: int = 0) -> int:
        """A parameter that must be at least 1."""
        value = self.whole(number, default)
        if value < 1:
            raise NoSizes(f"parameter {number} is {value}")
        return value

    def axis(self, number: int) -> int:
        """An axis of the first operand, from 0; negative ones count from the last."""
        return place(self.whole(number), len(self.first))


def called(blob: str, rank: int) -> Sizes:
    """Unknown sizes, named after the blob and its axes: "in0.h"."""
    word = re.sub(r"\W", "_", blob)
    word = word if re.match(r"[^\W\d]", word) else f"blob_{word}"
    return tuple(of_atom(Symbol(f"{word}.{axis}")) for axis in AXES[rank])


def named_sizes(shape: Sizes) -> dict[str, Number]:
    """The sizes by ncnn's names; 1 for axes that a blob lacks."""
    return {**dict.fromkeys("cdhw", 1), **dict(zip(AXES[len(shape)], shape, strict=True))}


def number(size: Number) -> int:
    """A size as a number; Unclear for an expression."""
    value = plain(size)
    if isinstance(value, Dim):
        raise Unclear(f"the size {value} is not known")
    return value


def is_unit(size: Number) -> bool:
    """Whether a size is 1; Unclear if that is not decided."""
    answer = is_one(size)
    if answer is Answer.UNKNOWN:
        raise Unclear(f"whether {size} is 1 is not known")
    return answer is Answer.YES


def equal(a: Number, b: Number) -> bool | None:
    """Whether two sizes are equal; None if that is not decided."""
    difference = plain(a - b)
    if isinstance(difference, int):
        return difference == 0
    return None


def divided(size: Number, divisor: Number) -> Number:
    """A size, not below 0, divided and rounded down."""
    if divisor == 0:
        raise NoSizes("a division by 0")
    return plain(floordiv(size, divisor))


def quotient(size: Number, divisor: Number) -> Number:
    """A quotient; NoSizes if there certainly is a remainder."""
    rows = divided(size, divisor)
    if equal(plain(rows * divisor), size) is False:
        raise NoSizes(f"{size} elements do not fill rows of {divisor}")
    return rows


def checked(shape: Sizes) -> Sizes:
    """The shape; NoSizes if no blob can have it."""
    if not 1 <= len(shape) <= NCNN_RANK:
        raise NoSizes(f"a blob of {len(shape)} axes")
    for size in shape:
        if isinstance(size, int) and not 1 <= size <= MAX_SIZE:
            raise NoSizes(f"a size of {size}")
    numbers = [size for size in shape if isinstance(size, int)]
    if math.prod(numbers) > MAX_SIZE:
        raise NoSizes(f"{math.prod(numbers)} elements are more than ncnn counts")
    return tuple(map(plain, shape))
