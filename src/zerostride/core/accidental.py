"""Which two-sided broadcasts look accidental, by the shapes alone.

(N, 1) and (N,) stretch against each other to (N, N), where each number was to meet its own.
Operands of one rank are deliberate: the author has inserted the axes. So is a number for each of K
times a whole array: (K, 1, 1) and (H, W), also where K is H.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def looks_accidental(shapes: Sequence[Sequence[Any]]) -> bool:
    """Whether shapes are an accident, stretch along one extent on both sides, and scale no array.

    >>> looks_accidental([(8, 1), (8,)]), looks_accidental([(8, 1), (5,)])
    (True, False)
    """
    return is_accident(shapes) and shares_extent(shapes) and not scales_array(shapes)


def is_accident(shapes: Sequence[Sequence[Any]]) -> bool:
    """Whether operands of unequal rank stretch against each other, so that none has the result's
    shape.

    >>> is_accident([(3, 1), (3,)]), is_accident([(3, 1), (1, 3)]), is_accident([(3, 4), (4,)])
    (True, False, False)
    """
    return of_unequal_rank(shapes) and stretch_apart(shapes)


def of_unequal_rank(shapes: Sequence[Sequence[Any]]) -> bool:
    """Whether the ranks differ of those operands that are not single numbers.

    >>> of_unequal_rank([(3, 1), (3,)]), of_unequal_rank([(3, 1), ()])
    (True, False)
    """
    return len({len(shape) for shape in shapes} - {0}) > 1


def stretch_apart(shapes: Sequence[Sequence[Any]]) -> bool:
    """Whether no operand has the result's shape; False for shapes that do not combine.

    >>> stretch_apart([(3, 1), (1, 3)]), stretch_apart([(3, 4), (4,)]), stretch_apart([(3,), (4,)])
    (True, False, False)
    """
    aligned = _aligned(shapes)
    result = [1] * len(aligned[0])
    for row in aligned:
        for axis, size in enumerate(row):
            if size != 1:
                if result[axis] not in (1, size):
                    return False  # the operation itself refuses it
                result[axis] = size
    return tuple(result) not in aligned


def shares_extent(shapes: Sequence[Sequence[Any]]) -> bool:
    """Whether two operands have the same extent on different axes, along which the other one
    stretches: the axis was meant to be one.

    >>> shares_extent([(8, 1), (8,)]), shares_extent([(8, 1), (5,)])
    (True, False)
    """
    rows = _aligned(shapes)
    for k, row in enumerate(rows):
        for other in rows[k + 1 :]:
            pairs = list(zip(row, other, strict=True))
            mine = {size for size, against in pairs if against == 1 != size}
            if mine & {against for size, against in pairs if size == 1 != against}:
                return True
    return False


def scales_array(shapes: Sequence[Sequence[Any]]) -> bool:
    """Whether one operand has a number for each of K and then an axis of 1 for each axis of the
    other, which has two or more.

    >>> scales_array([(8, 1, 1), (8, 8)]), scales_array([(8, 1), (8,)])
    (True, False)
    """
    if len(shapes) != 2:
        return False
    low, high = sorted(shapes, key=len)
    return len(low) > 1 and len(high) == len(low) + 1 and set(high[1:]) == {1}


def _aligned(shapes: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
    """The shapes at one rank, by NumPy's rule."""
    rank = max(map(len, shapes))
    return [(1,) * (rank - len(shape)) + tuple(shape) for shape in shapes]
