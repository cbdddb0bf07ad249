"""Whether two terms are the same: at once, or up to the rounding of their constants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ...ir.graph import Array
from .term import PRODUCT, SUM, UNORDERED, Shape, Term, numbers_of

#: The most relative difference of constants that are computed in another order.
_NEAR = 1e-5
#: The same, relative to the size of the constant's numbers: a few roundings of float32.
_LEAST = 5e-7
#: Constants that are computed here may be off by so many times as much: cosines of large numbers.
_COMPUTED = 40
#: A number so many times as large as half of the others does not count.
_OUTLIER = 1000


@dataclass
class Matching:
    """Compares terms pairwise.

    Attributes:
        exact: constants that differ by rounding are not the same.
        apart: pairs that are not the same though all that they are computed of is, innermost first.
    """

    exact: bool = False
    apart: list[tuple[Term, Term]] = field(default_factory=list)
    _pairs: set[tuple[int, int]] = field(default_factory=set)
    _firsts: dict[tuple[str, int, Shape], list[Term]] = field(default_factory=dict)
    _known: dict[tuple[int, int], bool] = field(default_factory=dict)

    def first(self, term: Term) -> int:
        """The number of the first term that was asked for and is the same."""
        if not term.args and not term.constant:
            return term.number  # every such term is there once
        asked = self._firsts.setdefault((term.op, len(term.args), term.shape), [])
        for one in asked:
            if self.same(one, term):
                return one.number
        self.apart.clear()
        self._pairs.clear()
        asked.append(term)
        return term.number

    def same(self, a: Term, b: Term) -> bool:
        """Whether two terms are the same."""
        if a is b:
            return True
        key = a.number, b.number
        if key not in self._known:
            self._known[key] = False  # nothing is computed of itself
            self._known[key] = self._compared(a, b)
        return self._known[key]

    def _compared(self, a: Term, b: Term) -> bool:
        if a.constant and b.constant:
            return self._near(a, b)
        alike = (a.op, a.shape, a.attributes, a.places, len(a.args)) == (
            b.op,
            b.shape,
            b.attributes,
            b.places,
            len(b.args),
        )
        if alike and a.args:
            # The order of three terms changes the rounding of their sum.
            rounds = self.exact and len(a.args) > 2 and a.op in (SUM, PRODUCT)
            if a.op in UNORDERED and not rounds:
                alike = self._unordered(a.args, b.args)
            else:
                alike = all(self.same(*pair) for pair in zip(a.args, b.args, strict=True))
            if alike:
                return True
        if not alike and not self._apart_below(a, b):
            self.apart.append((a, b))
            self._pairs.add((a.number, b.number))
        return False

    def _apart_below(self, a: Term, b: Term) -> bool:
        """Whether a pair of their arguments is known to be apart, so that this one need not be."""
        return any((x.number, y.number) in self._pairs for x in a.args for y in b.args)

    def _unordered(self, ones: Sequence[Term], others: Sequence[Term]) -> bool:
        left, right = [], list(others)
        for term in ones:  # each as often as it occurs
            if term in right:
                right.remove(term)
            else:
                left.append(term)
        for term in left:
            found = next((other for other in right if self.same(term, other)), None)
            if found is None:
                return False
            right.remove(found)
        return not right

    def _near(self, a: Term, b: Term) -> bool:
        if a.shape != b.shape:
            return False
        if a.places != b.places or a.base.shape != b.base.shape:
            one, other = numbers_of(a), numbers_of(b)
        else:
            one, other = a.base.data, b.base.data
        if one is None or other is None or (one.shape, one.dtype) != (other.shape, other.dtype):
            return False
        if one.dtype.kind not in "fc" or other.dtype.kind not in "fc":
            return bool(np.array_equal(one, other))
        if self.exact:
            return bool(np.array_equal(one, other, equal_nan=True))
        kind = np.complex128 if one.dtype.kind == "c" else np.float64
        wide, far = one.astype(kind), other.astype(kind)
        computed = a.base.computed or b.base.computed
        times = _COMPUTED if computed else 1
        least = _LEAST * _size(wide, _OUTLIER if not computed else np.inf)
        with np.errstate(all="ignore"):
            close = np.abs(wide - far) <= times * np.maximum(_NEAR * np.abs(wide), least)
        alike = (wide == far) | (np.isnan(wide) & np.isnan(far))
        return bool(np.all(alike | (close & np.isfinite(wide) & np.isfinite(far))))


def _size(numbers: Array, most: float) -> float:
    """The size of an array's numbers: sums that cancel are off by a part of it.

    Numbers over `most` times as large as half of them do not count: a mask has -1e9 beside -9.
    """
    sizes = np.abs(numbers[np.isfinite(numbers) & (numbers != 0)])
    if not sizes.size:
        return 0.0
    half = np.partition(sizes, (sizes.size - 1) // 2)[(sizes.size - 1) // 2]
    return float(sizes[sizes <= most * half].max())


__all__ = ["Matching"]
