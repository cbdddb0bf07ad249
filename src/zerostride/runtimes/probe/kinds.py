"""The function of an op, and operands whose values prove where every element went.

A kind is a NumPy function with a recipe of passes. The operands of the passes are index probes: no
two ways of laying the operands over a result give the same values, so equal values prove equal
alignment. Sums and differences prove it in one pass (one operand counts units, the other counts
beyond them); any other function takes one pass an operand, in which that operand rises strictly
while the others are held; predicates take one pass a bit of the index.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from ..task import Array
from .case import Shape

#: Operands of one pass, flat.
Flat = tuple[Array, ...]
Recipe = Callable[[Sequence[int]], list[Flat]]
Law = Callable[[Array], Array]

#: Both operands' indices fit into a float32 that has 24 bits: 2^11 * 2^12 + 2^11 < 2^24.
SUM_LIMIT = 2048
#: Neighbouring values of the curved functions stay apart by more than CURVED_TOLERANCE.
CURVED_LIMIT = 256
CURVED_TOLERANCE = 1e-4


@dataclass(frozen=True, slots=True)
class ProbeKind:
    """The function of an op.

    Attributes:
        name: its name in the catalogue.
        function: NumPy's function, over operands that are already broadcast.
        recipe: from the operands' element counts to the operands of each pass.
        limit: the most elements of an operand that the recipe distinguishes.
        tolerance: relative; 0 means equal to the bit.
    """

    name: str
    function: Callable[..., Any]
    recipe: Recipe
    limit: int = CURVED_LIMIT
    tolerance: float = 0.0

    def operands(self, shapes: Sequence[Shape], dtype: str) -> list[tuple[Array, ...]]:
        """The operands of each pass, shaped."""
        counts = [math.prod(shape) for shape in shapes]
        return [
            tuple(
                (flat if flat.dtype == np.bool_ else flat.astype(dtype)).reshape(shape)
                for flat, shape in zip(flats, shapes, strict=True)
            )
            for flats in self.recipe(counts)
        ]

    def matches(self, results: Sequence[Array], expected: Sequence[Array]) -> bool:
        """Whether an engine's results, one a pass, are the expected ones."""
        return len(results) == len(expected) and all(map(self._equal, results, expected))

    def _equal(self, result: Array, expected: Array) -> bool:
        if self.tolerance == 0.0 or result.shape != expected.shape:
            return bool(np.array_equal(result, expected))
        return bool(np.allclose(result, expected, rtol=self.tolerance, atol=0.0))


def index_from(start: int, count: int) -> Array:
    """start, start + 1, ...: an operand whose values are its indices."""
    return np.arange(start, start + count, dtype=np.float64)


def _summed(counts: Sequence[int]) -> list[Flat]:
    units, rest = counts
    beyond = 1 << (units + 1).bit_length()
    return [(index_from(1, units), index_from(1, rest) * beyond)]


def _single(counts: Sequence[int]) -> list[Flat]:
    return [(index_from(1, counts[0]),)]


def _held(x_law: Law, y_hold: float, x_hold: float, y_law: Law) -> Recipe:
    """Two passes: x rises and y is constant, then the reverse."""

    def recipe(counts: Sequence[int]) -> list[Flat]:
        n, m = counts
        return [
            (x_law(index_from(1, n)), np.full(m, y_hold)),
            (np.full(n, x_hold), y_law(index_from(1, m))),
        ]

    return recipe


def _bit_rows(count: int) -> list[Array]:
    """The bits of the indices 1 .. count, one array a bit: together they identify the element."""
    index = np.arange(1, count + 1)
    return [(index >> bit) & 1 for bit in range(max(count, 1).bit_length())]


def _predicate(counts: Sequence[int]) -> list[Flat]:
    n, m = counts
    first = [(bits.astype(np.float64), np.full(m, 0.5)) for bits in _bit_rows(n)]
    # The second operand's bits against 0.5, from the other side.
    return first + [(np.full(n, 0.5), bits.astype(np.float64)) for bits in _bit_rows(m)]


def _truths(counts: Sequence[int]) -> list[Flat]:
    n, m = counts
    first: list[Flat] = [(bits.astype(np.bool_), np.ones(m, np.bool_)) for bits in _bit_rows(n)]
    return first + [(np.ones(n, np.bool_), bits.astype(np.bool_)) for bits in _bit_rows(m)]


def _chosen(counts: Sequence[int]) -> list[Flat]:
    n, m, k = counts
    yes, no = np.ones(n, np.bool_), np.zeros(n, np.bool_)
    passes: list[Flat] = [
        (yes, index_from(1, m), np.full(k, -1.0)),
        (no, np.full(m, -1.0), index_from(1, k)),
    ]
    return passes + [(bits.astype(np.bool_), np.ones(m), np.full(k, 2.0)) for bits in _bit_rows(n)]


def _same(index: Array) -> Array:
    return index


def _negative(index: Array) -> Array:
    return -index


def _swapped(recipe: Recipe) -> Recipe:
    """The recipe for a function with exchanged operands."""

    def recipe_of_swapped(counts: Sequence[int]) -> list[Flat]:
        return [(x, y) for y, x in recipe((counts[1], counts[0]))]

    return recipe_of_swapped


def _ieee_remainder(x: Array, y: Array) -> Array:
    rounded: Array = x - y * np.rint(x / y)
    return rounded


def _squared_difference(x: Array, y: Array) -> Array:
    squared: Array = (x - y) ** 2
    return squared


def _prelu(x: Array, slope: Array) -> Array:
    return np.where(x < 0, x * slope, x)


_SIMPLE = _held(_same, 1.0, 1.0, _same)
# From a dividend of 1024, divisors in (512, 1024) leave 1024 - y: strictly falling.
_LEFT = _held(_same, 1024.0, 1024.0, lambda index: 520.0 + index)
# For the remainder to nearest, in (683, 1024): there x / y rounds to 1.
_NEAREST = _held(_same, 1024.0, 1024.0, lambda index: 690.0 + index)

_FORWARD = (
    ProbeKind("add", np.add, _summed, SUM_LIMIT),
    ProbeKind("subtract", np.subtract, _summed, SUM_LIMIT),
    ProbeKind("multiply", np.multiply, _SIMPLE, SUM_LIMIT),
    ProbeKind("divide", np.divide, _SIMPLE, tolerance=CURVED_TOLERANCE),
    ProbeKind("maximum", np.maximum, _held(_same, -1.0, -1.0, _same), SUM_LIMIT),
    ProbeKind("minimum", np.minimum, _held(_negative, 1.0, 1.0, _negative), SUM_LIMIT),
    # 2 ** (index / 16) rises by 4 % a step and ends at 65,536.
    ProbeKind(
        "pow",
        np.power,
        _held(_same, 2.0, 2.0, lambda index: index / 16),
        tolerance=CURVED_TOLERANCE,
    ),
    ProbeKind("atan2", np.arctan2, _held(_same, 128.0, 128.0, _same), tolerance=CURVED_TOLERANCE),
    ProbeKind("fmod", np.fmod, _LEFT),
    # log(e^x + 1) for x up to 32.
    ProbeKind(
        "logaddexp",
        np.logaddexp,
        _held(lambda index: index / 8, 0.0, 0.0, lambda index: index / 8),
        tolerance=CURVED_TOLERANCE,
    ),
    # (2^17 + 0.5) // y falls at every step up to y = 256. No quotient is whole, because ncnn's
    # division is not exact: its 1 // 1 is 0.
    ProbeKind(
        "floor_divide",
        np.floor_divide,
        _held(lambda index: index + 0.5, 1.0, 2.0**17 + 0.5, _same),
    ),
    ProbeKind("remainder", _ieee_remainder, _NEAREST),
    ProbeKind("greater", np.greater, _predicate),
    ProbeKind("logical_and", np.logical_and, _truths),
    ProbeKind("squared_difference", _squared_difference, _held(_same, 0.0, 0.0, _same)),
    # A slope of 2, so that data that come back unchanged are seen.
    ProbeKind("prelu", _prelu, _held(_negative, 2.0, -1.0, _same), SUM_LIMIT),
    ProbeKind("where", np.where, _chosen),
    ProbeKind("broadcast", lambda data: data, _single, 1 << 16),
)


def _reversed(kind: ProbeKind) -> ProbeKind:
    def function(x: Array, y: Array) -> Any:
        return kind.function(y, x)

    return ProbeKind("r" + kind.name, function, _swapped(kind.recipe), kind.limit, kind.tolerance)


KINDS: Mapping[str, ProbeKind] = MappingProxyType(
    {kind.name: kind for kind in _FORWARD}
    | {
        kind.name: kind
        for kind in (
            _reversed(forward)
            for forward in _FORWARD
            if forward.name
            in ("subtract", "divide", "pow", "atan2", "fmod", "floor_divide", "remainder")
        )
    }
)
