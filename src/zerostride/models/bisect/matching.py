"""The other side's tensors, and which of them stands for a tensor of the model."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from ..bisection import How
from ..ir.graph import Array, Value
from ..judging import relative
from .layouts import Layout, layouts
from .sides import Other, has_numbers_for_names

#: Tensors of the other side that are tried for one place.
_MOST_TRIED = 64
#: A tensor has another layout than the likeliest if its error is then less than this part. Wrong
#: numbers are a little nearer in one layout or another by chance.
_NEARER = 0.1


@dataclass(frozen=True, slots=True)
class Place:
    """The other side's tensor that stands for one of another name.

    Attributes:
        name: its name there.
        layout: how its numbers lie there, if that is known.
    """

    name: str
    layout: Layout | None = None


@dataclass(frozen=True, slots=True)
class Match:
    """The other side's tensor for one of the model's.

    Attributes:
        name: its name there.
        how: how it was found.
        sure: how sure that is, up to 1.
        layout: how its numbers lie there; None if its shape has no such layout.
        array: its numbers; None if the other side does not have them.
    """

    name: str
    how: How
    sure: float
    layout: Layout | None
    array: Array | None


class Tensors:
    """The other side's tensors.

    Args:
        other: the other side.
        names: the names of the tensors that the model's nodes make.
        most: the tolerance of one node.
        placed: matches that are known already, by the names of the model's tensors.

    Attributes:
        same_names: the other side's name of a tensor, by the model's.
        free: names of tensors that stand for none of the model's yet.
    """

    def __init__(
        self, other: Other, names: Collection[str], most: float, placed: Mapping[str, Place]
    ) -> None:
        self.other, self.most, self.placed = other, most, dict(placed)
        own = set(names)
        if has_numbers_for_names(other.outputs):
            own = {name for name in own if not name.isdecimal()}
        taken = {place.name for place in self.placed.values()}
        held = set(other.names)
        aliases = {name: alias for name, alias in other.aliases.items() if alias in held}
        self.same_names = {n: aliases.get(n, n) for n in own if n in held or n in aliases}
        self.free = [n for n in other.names if n not in own and n not in taken]
        self._sizes: dict[int, dict[str, tuple[float, float]]] | None = None

    def match(self, value: Value, expected: Array | None) -> Match | None:
        """The other side's tensor: by name, by its place, or by its numbers."""
        if value.name in self.other.failures:
            return Match(value.name, How.NAME, 1.0, None, None)
        if value.name in self.same_names:
            return self._held(self.same_names[value.name], How.NAME, 1.0, value, expected)
        if value.name in self.placed:
            place = self.placed[value.name]
            match = self._held(place.name, How.POSITION, 0.8, value, expected)
            return match if place.layout is None else replace(match, layout=place.layout)
        return None if expected is None else self._by_value(expected)

    def _held(
        self, name: str, how: How, sure: float, value: Value, expected: Array | None
    ) -> Match:
        array = self.other.fetch(name)
        if array is None:
            return Match(name, how, sure, None, None)
        shape = tuple(s for s in value.shape or () if isinstance(s, int))
        if expected is not None:
            shape = expected.shape
        elif value.shape is None or not value.known:
            shape = array.shape
        return Match(name, how, sure, likeliest(array, shape, expected), array)

    def _by_value(self, expected: Array) -> Match | None:
        if self._sizes is None:
            self._sizes = {}
            for name in self.free:
                array = self.other.fetch(name)
                if array is not None:
                    self._sizes.setdefault(array.size, {})[name] = _extremes(array)
        # A sum of about 1 is no size of 1.
        most = 0.0 if expected.dtype.kind in "iub" else self.most
        least, largest = _extremes(expected)
        # No number of equal arrays is further apart than this, so their extremes are not.
        apart = most * max(1.0, abs(least), abs(largest))
        near = (
            name
            for name, ends in self._sizes.get(expected.size, {}).items()
            if abs(ends[0] - least) <= apart and abs(ends[1] - largest) <= apart
        )
        matches = []
        for name in islice(near, _MOST_TRIED):
            array = self.other.fetch(name)
            if array is None:
                continue
            layout = likeliest(array, expected.shape, expected)
            if layout is not None and equal(expected, layout.read(array), most):
                matches.append(Match(name, How.VALUE, 1.0, layout, array))
        if not matches:
            return None
        best = matches[0]
        del self._sizes[expected.size][best.name]
        return Match(best.name, How.VALUE, 1 / len(matches), best.layout, best.array)

    def holds(self, name: str, meant: Array) -> bool:
        """Whether the other side has the numbers under a name."""
        array = self.other.fetch(name)
        if array is None:
            return False
        layout = likeliest(array, meant.shape, meant)
        return layout is not None and equal(meant, layout.read(array), self.most)


def equal(expected: Array, actual: Array, most: float) -> bool:
    """Whether arrays have one shape, and numbers that are equal within the tolerance."""
    return expected.shape == actual.shape and not (relative(expected, actual) > most).any()


def _extremes(array: Array) -> tuple[float, float]:
    """The least and the largest of the finite numbers; of complex ones, of their sizes."""
    numbers = np.abs(array) if array.dtype.kind == "c" else array
    finite = numbers[np.isfinite(numbers)] if numbers.dtype.kind == "f" else numbers
    return (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)


def likeliest(array: Array, shape: tuple[int, ...], expected: Array | None) -> Layout | None:
    """The likeliest layout, or one in which an array is far nearer to the expected one."""
    best, least = None, np.inf
    for layout in layouts(array.shape, shape):
        if expected is None:
            return layout
        error = float(np.minimum(relative(expected, layout.read(array)), 1e30).mean() or 0.0)
        if best is None or error < least * _NEARER:
            best, least = layout, error
        if least <= 1e-6 or not layout.words:
            break
    return best
