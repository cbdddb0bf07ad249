"""Places: where a view of a tensor reads, in the view's own indices.

A view has a place for each axis of the tensor that it reads: an expression of the view's indices
``@0``, ``@1`` ... and of sizes. A transpose permutes indices, a slice is ``start + step*@k``, a
stretched axis is 0, a reshape has floors. Places of a view of a view are substituted, and floors
that the extents decide are taken away, so that equal views mostly have equal places.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ....sizes.atoms import Applied, Monomial, Symbol
from ....sizes.condition import ALWAYS, Condition, all_of, ge
from ....sizes.dim import Dim, Number, dim, dim_of_terms, of_atom, size_order
from ....sizes.functions import exact_quotient, floordiv, minimum
from ....sizes.solve import facts_about, implies

Places = tuple[Dim, ...]
#: The name of an index begins with this; no file's size is called so and unnamed at once.
_MARK = "@"


@functools.cache
def index(axis: int) -> Dim:
    """The index along an axis of a view."""
    return of_atom(Symbol(f"{_MARK}{axis}", named=False))


def axis_of_symbol(symbol: Symbol) -> int | None:
    """The axis whose index a symbol is; None for a size."""
    own = not symbol.named and symbol.name.startswith(_MARK)
    return int(symbol.name[1:]) if own and symbol.name[1:].isdecimal() else None


def lone_axis(place: Dim) -> int | None:
    """The axis, if a place is a lone index."""
    if place.const == 0 and len(place.terms) == 1:
        (monomial, factor), *_ = place.terms
        if factor == 1 and len(monomial) == 1 and isinstance(monomial[0], Symbol):
            return axis_of_symbol(monomial[0])
    return None


def axes_in(places: Sequence[Dim]) -> set[int]:
    """The axes of a view along which it moves."""
    symbols = {symbol for place in places for symbol in place.symbols}
    return {axis for axis in map(axis_of_symbol, symbols) if axis is not None}


def evaluated(place: Dim, values: Mapping[Symbol, Any]) -> Any:
    """A place for arrays of indices, and numbers for sizes."""
    total: Any = place.const
    for monomial, factor in place.terms:
        product: Any = factor
        for atom in monomial:
            product = product * (
                values[atom] if isinstance(atom, Symbol) else _evaluated(atom, values)
            )
        total = total + product
    return total


def _evaluated(atom: Applied, values: Mapping[Symbol, Any]) -> Any:
    args = [evaluated(argument, values) for argument in atom.arguments]
    if atom.function == "floordiv":
        return args[0] // args[1]
    return functools.reduce(np.minimum if atom.function == "min" else np.maximum, args)


def _shared(term: tuple[Monomial, int], divisor: Dim) -> Dim:
    """The factors that a term and a divisor share; 1 if the divisor is a sum."""
    if len(divisor.terms) + bool(divisor.const) > 1:
        return dim(1)
    (atoms, factor), *_ = divisor.terms or (((), divisor.const),)
    common, left = [], list(term[0])
    for atom in atoms:
        if atom in left:
            left.remove(atom)
            common.append(atom)
    number = math.gcd(term[1], factor)
    return dim_of_terms(0, ((tuple(common), number),)) if common else dim(number)


def digits_of(size: Dim, extents: Sequence[Number]) -> tuple[list[tuple[Dim, Dim, Dim]], Dim]:
    """A place as a sum of digits of its indices, in the radices in which floors divide them.

    ``@0 // 2`` and ``@0 - 2*(@0 // 2)`` are the digits of an index that is divided by 2.

    Returns:
        A factor, the digit, and the most that it is, for each digit; and the other terms.
    """
    parts: dict[int, list[tuple[Dim, int]]] = {}
    rest = dim(size.const)
    for monomial, factor in size.terms:
        axis, radix = _digit_of(monomial)
        if axis is None:
            rest = rest + dim_of_terms(0, ((monomial, factor),))
        else:
            parts.setdefault(axis, []).append((radix, factor))
    digits: list[tuple[Dim, Dim, Dim]] = []
    for axis, floors in parts.items():
        own = _digits_of_index(index(axis), dim(extents[axis]), floors)
        if own is None:
            rest = rest + sum((f * floordiv(index(axis), n) for n, f in floors), dim(0))
        else:
            digits += own
    return digits, rest


def _digit_of(monomial: Monomial) -> tuple[int | None, Dim]:
    """The axis of a lone index, or of a lone floor of one, and what divides it."""
    (atom, *more) = monomial
    if more:
        return None, dim(1)
    if isinstance(atom, Symbol):
        return axis_of_symbol(atom), dim(1)
    inner = dim(atom.arguments[0]) if atom.function == "floordiv" else dim(0)
    divisor = dim(atom.arguments[-1])
    return (None if axes_in([divisor]) else lone_axis(inner)), divisor


def magnitude(radix: Dim) -> tuple[int, int, object]:
    """The sort key of radices: a product comes after its factors."""
    (atoms, factor), *_ = radix.terms or (((), radix.const),)
    return len(atoms), factor, size_order(radix)


def _digits_of_index(
    along: Dim, extent: Dim, floors: Sequence[tuple[Dim, int]]
) -> list[tuple[Dim, Dim, Dim]] | None:
    """The digits of an index that is divided by some radices, each a multiple of the one before."""
    radices = sorted({dim(1), *(radix for radix, _ in floors)}, key=magnitude)
    steps = [exact_quotient(b, a) for a, b in itertools.pairwise(radices)]
    digits = []
    for k, radix in enumerate(radices):
        factor = dim(0)
        for below, number in floors:
            quotient = exact_quotient(radix, below) if below in radices[: k + 1] else dim(0)
            if quotient is None:
                return None
            factor = factor + quotient * number
        digit = floordiv(along, radix)
        if k < len(steps):
            step = steps[k]
            if step is None:
                return None
            digits.append((factor, digit - step * floordiv(along, radices[k + 1]), step - 1))
        else:
            digits.append((factor, digit, floordiv(extent - 1, radix)))
    return [row for row in digits if row[0] != 0]


class Space:
    """The indices of a view: each from 0 to below its extent.

    Attributes:
        extents: the view's shape.
        facts: what is known of sizes.
    """

    def __init__(self, extents: Sequence[Number], facts: Condition = ALWAYS) -> None:
        self.extents = tuple(extents)
        self.facts = facts
        self._known: Condition | None = None
        self._own = ALWAYS
        self._symbols: frozenset[Symbol] = frozenset()

    def holds(self, condition: Condition) -> bool:
        """Whether a condition on sizes holds wherever the view has an element."""
        if condition.always or condition.never:
            return condition.always
        if self._known is None:
            sizes = [extent for extent in self.extents if isinstance(extent, Dim)]
            symbols = dict.fromkeys(symbol for size in sizes for symbol in size.symbols)
            self._symbols = frozenset(symbols)
            # A view without elements reads nothing, so that every extent is at least 1.
            self._own = all_of(ge(size, 1) for size in sizes)
            self._known = all_of([self._own, facts_about(self.facts, symbols)])
        known = self._known
        if not self._symbols.issuperset(condition.symbols):
            known = all_of([self._own, self.facts])
        return implies(known, condition)

    def within(self, size: Dim, divisor: Dim) -> bool:
        """Whether a place is from 0 to below a divisor, for all indices."""
        low, high = self.end(size, upper=False), self.end(size, upper=True)
        if low is None or high is None:
            return False
        return self.holds(ge(low, 0)) and self.holds(ge(divisor - 1 - high, 0))

    def end(self, size: Dim, *, upper: bool) -> Dim | None:
        """The least or the greatest value of a place; None if it is not known."""
        total = dim(size.const)
        for monomial, factor in size.terms:
            product: Number = factor
            for atom in monomial:
                end = self._end_of_atom(atom, upper=upper == (factor > 0))
                if end is None:
                    return None
                product = product * end
            total = total + product
        return total

    def _end_of_atom(self, atom: Symbol | Applied, *, upper: bool) -> Dim | None:
        if isinstance(atom, Symbol):
            axis = axis_of_symbol(atom)
            if axis is None:
                return of_atom(atom)
            return dim(self.extents[axis]) - 1 if upper else dim(0)
        if not any(axis_of_symbol(s) is not None for s in of_atom(atom).symbols):
            return of_atom(atom)
        if atom.function == "floordiv" and not axes_in(atom.arguments[1:]):
            end = self.end(atom.arguments[0], upper=upper)
            return None if end is None else floordiv(end, atom.arguments[1])
        return None

    def divided(self, size: Number, divisor: Number) -> Dim:
        """``size // divisor`` of places, without the part that divides."""
        size, divisor = dim(size), dim(divisor)
        if divisor == 1:
            return size
        whole, rest = dim(0), dim(0)
        for term in size.terms:
            part = dim_of_terms(0, (term,))
            quotient = exact_quotient(part, divisor)
            if quotient is None:
                rest = rest + part
            else:
                whole = whole + quotient
        if divisor.constant:
            quotient_of_const, left = divmod(size.const, divisor.const)
            whole, rest = whole + quotient_of_const, rest + left
        else:
            rest = rest + size.const
        if rest == 0 or self.within(rest, divisor):
            return whole
        smaller = self._smaller(rest, divisor)
        if smaller is None:
            smaller = self._by_digits(rest, divisor)
        return whole + (floordiv(rest, divisor) if smaller is None else smaller)

    def _by_digits(self, size: Dim, divisor: Dim) -> Dim | None:
        """``size // divisor`` where the digits of indices decide it; None where they do not."""
        digits, rest = digits_of(size, self.extents)
        whole, high = dim(0), dim(0)
        for factor, digit, most in digits:
            quotient = exact_quotient(factor, divisor)
            if quotient is not None:
                whole = whole + quotient * digit
            elif self.holds(ge(factor, 0)):
                high = high + factor * most
            else:
                return None
        low = self.end(rest, upper=False)
        top = self.end(rest, upper=True)
        if not digits or low is None or top is None or not self.holds(ge(low, 0)):
            return None
        return whole if self.holds(ge(divisor - 1 - high - top, 0)) else None

    def _smaller(self, size: Dim, divisor: Dim) -> Dim | None:
        """``(g*x + y) // (g*d)`` as ``x // d``, where y is from 0 to below g; None for others."""
        shared = {_shared(term, divisor) for term in size.terms} - {dim(1), divisor}
        for by in sorted(shared, key=size_order):
            large, small = dim(0), dim(0)
            for term in (*size.terms, ((), size.const)):
                part = dim_of_terms(0, (term,)) if term[0] else dim(term[1])
                quotient = exact_quotient(part, by)
                if quotient is None:
                    small = small + part
                else:
                    large = large + quotient
            left = exact_quotient(divisor, by)
            if left is not None and large != 0 and self.within(small, by):
                return self.divided(large, left)
        return None

    def refined(self, place: Dim) -> Dim:
        """A place with each floor and each minimum decided that the extents decide."""
        if all(isinstance(atom, Symbol) for monomial, _ in place.terms for atom in monomial):
            return place
        total = dim(place.const)
        for monomial, factor in place.terms:
            product: Number = factor
            for atom in monomial:
                product = product * (
                    of_atom(atom) if isinstance(atom, Symbol) else self._refined(atom)
                )
            total = total + product
        return total

    def _refined(self, atom: Applied) -> Dim:
        if atom.function == "floordiv":
            return self.divided(self.refined(atom.arguments[0]), atom.arguments[1])
        if atom.function == "min":
            return self.least(*map(self.refined, atom.arguments))
        return of_atom(atom)

    def least(self, *places: Dim) -> Dim:
        """The least of several places."""
        kept = list(places)
        for place in places:
            high = self.end(place, upper=True)
            for other in kept:
                low = self.end(other, upper=False)
                if other is place or high is None or low is None or len(kept) == 1:
                    continue
                if self.holds(ge(low - high, 0)):
                    kept.remove(other)
                    break
        return dim(minimum(*kept))

    def read(self, places: Sequence[Dim], inner: Sequence[Dim]) -> Places:
        """The places of a view of a view: `inner` with `places` for its indices."""
        values: dict[Symbol, Number] = {}
        for axis, place in enumerate(places):
            values[index(axis).symbols[0]] = place
        return tuple(self.refined(dim(place.substitute(values))) for place in inner)


def own_places(shape: Sequence[Number]) -> Places:
    """The places of a view that is the tensor itself."""
    return tuple(dim(0) if size == 1 else index(axis) for axis, size in enumerate(shape))


def stretched(
    shape: Sequence[Number], axes: Sequence[int | None], result: Sequence[Number], space: Space
) -> Places:
    """The places of an operand of a broadcast.

    Args:
        shape: of the operand.
        axes: the result's axis of each of its axes; None for a dropped one.
        result: the shape of the result.
        space: of the result.
    """
    places = []
    for size, axis in zip(shape, axes, strict=True):
        if axis is None or size == 1:
            places.append(dim(0))
        elif size == result[axis] or space.holds(dim(size).equals(result[axis])):
            places.append(index(axis))
        else:  # 1, or as many as the result has
            places.append(space.least(index(axis), dim(size) - 1))
    return tuple(places)


def reshaped(source: Sequence[Number], target: Space) -> Places:
    """The places of a reshape's result: the same elements in row-major order."""
    places: list[Dim] = []
    for own, new in _groups(source, target.extents):
        line = dim(0)
        step: Number = 1
        for axis in reversed(new):
            if target.extents[axis] != 1:
                line = line + index(axis) * step
            step = step * target.extents[axis]
        below: Number = 1
        found: list[Dim] = []
        for position, axis in reversed(list(enumerate(own))):
            size = source[axis]
            if size == 1:
                found.append(dim(0))
                continue
            place = target.divided(line, below)
            below = below * size
            if any(source[k] != 1 for k in own[:position]):
                place = place - dim(size) * target.divided(line, below)
            found.append(target.refined(place))
        places += reversed(found)
    return tuple(places)


def _groups(
    source: Sequence[Number], target: Sequence[Number]
) -> list[tuple[list[int], list[int]]]:
    """Runs of axes that have the same number of elements on both sides, as short as possible."""
    groups: list[tuple[list[int], list[int]]] = []
    own, new = list(range(len(source))), list(range(len(target)))
    while own and new:
        left, right = [own.pop(0)], [new.pop(0)]
        a, b = dim(source[left[0]]), dim(target[right[0]])
        while a != b:
            if own and (_divides(a, b) or not new):
                left.append(own.pop(0))
                a = a * source[left[-1]]
            elif new:
                right.append(new.pop(0))
                b = b * target[right[-1]]
            else:
                break
        groups.append((left, right))
    if own or new:
        if not groups:
            groups.append(([], []))
        groups[-1] = groups[-1][0] + own, groups[-1][1] + new
    return groups


def _divides(a: Dim, b: Dim) -> bool:
    """Whether the first number of elements divides the second, as far as forms show it."""
    if a.constant is not None and b.constant is not None:
        return a.const < b.const
    return exact_quotient(b, a) is not None


__all__ = [
    "Places",
    "Space",
    "axes_in",
    "evaluated",
    "index",
    "lone_axis",
    "magnitude",
    "own_places",
    "reshaped",
    "stretched",
]
