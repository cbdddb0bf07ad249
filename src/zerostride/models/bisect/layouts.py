"""The ways in which a tensor of a conversion can hold the numbers of a tensor of the model."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..ir.graph import Array

#: More axes than these are not permuted: 120 orders of 5 axes are tried.
_MOST_PERMUTED = 5


@dataclass(frozen=True, slots=True)
class Layout:
    """A way to read an array as one of another shape.

    Attributes:
        words: for a reader; "" where the shapes are equal.
        order: the axes of the array, without those of extent 1, in the order of the shape; None:
            the order stays.
        shape: the shape of the result.
        stretched: whether axes of extent 1 are stretched: a converter leaves an operand as it is
            where the node that reads it stretches it.
    """

    words: str
    order: tuple[int, ...] | None
    shape: tuple[int, ...]
    stretched: bool = False

    def read(self, array: Array) -> Array:
        """The array in the shape.

        >>> Layout("", (1, 0), (3, 1, 2)).read(np.zeros((1, 2, 3))).shape
        (3, 1, 2)
        """
        if self.stretched:
            return np.broadcast_to(array, self.shape)
        if self.order is not None:
            array = array.squeeze().transpose(self.order)
        return array.reshape(self.shape)


def layouts(held: tuple[int, ...], shape: tuple[int, ...]) -> Iterator[Layout]:
    """Yield the ways to read an array of shape `held` as one of `shape`, the likeliest first.

    >>> [layout.words for layout in layouts((2, 3), (1, 2, 3))]
    ['without axes of extent 1']
    >>> [layout.words for layout in layouts((3, 2), (1, 2, 3))]
    ['axes permuted (1, 0)', 'axes merged']
    >>> [layout.words for layout in layouts((2, 1), (1, 2, 3))]
    ['not yet stretched']
    """
    if held == shape:
        yield Layout("", None, shape)
    elif int(np.prod(held)) != int(np.prod(shape)):
        if _stretches_to(held, shape):
            yield Layout("not yet stretched", None, shape, stretched=True)
        return
    lean, wanted = (tuple(size for size in sizes if size != 1) for sizes in (held, shape))
    if lean == wanted and held != shape:
        yield Layout("without axes of extent 1", None, shape)
    if len(lean) == len(wanted) <= _MOST_PERMUTED:
        for order in itertools.permutations(range(len(lean))):
            if order != tuple(range(len(lean))) and wanted == tuple(lean[k] for k in order):
                yield Layout(f"axes permuted {order}", order, shape)
    if lean != wanted:
        yield Layout("axes merged", None, shape)


def _stretches_to(held: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Whether NumPy's rule stretches a tensor that has numbers to another shape.

    >>> [_stretches_to(held, (2, 3)) for held in ((2, 1), (3,), (2,), ())]
    [True, True, False, True]
    >>> _stretches_to((1,), (0,))
    False
    """
    if 0 in shape or len(held) > len(shape):
        return False
    pairs = zip(reversed(held), reversed(shape), strict=False)
    return all(size in (1, wanted) for size, wanted in pairs)
