"""The fact of a tensor, and the call of an op that its row receives.

A row of the op table is a pure function of the operands' facts and the node's attributes. It has
no node and no names, so its answer can be reused. An unknown size is an :class:`Open`, which the
walk turns into a symbol. A row states conditions with :meth:`OpCall.need`.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn, TypeAlias, TypeGuard

from ....errors import ZerostrideError
from ....sizes import MAX_ELEMENTS, MAX_RANK
from ....sizes.condition import Condition, eq, ge
from ....sizes.dim import Dim, Interval, Number, bounds, calls, dim, plain
from ....sizes.functions import floordiv

#: Numbers of a tensor that are followed: shapes, axes, repeats have a few.
MAX_CONTENT = 64
#: Functions in one size that choose among cases (max, min, broadcast). Deciding a size looks at
#: every combination of cases, which takes minutes for ten nested functions.
MAX_CHOICES = 3
#: An end of a slice from here on means the last index: exporters write 2^31-1 and 2^63-1.
FAR = 2**31 - 1


class Open:
    """An unknown size; the same object in two places is the same size.

    Attributes:
        low, high: its bounds.
    """

    __slots__ = ("high", "low")

    def __init__(self, low: int = 0, high: int | None = None) -> None:
        self.low = low
        self.high = high


@dataclass(frozen=True, slots=True)
class Real:
    """An element of a float tensor that is exact: ``top / bottom``."""

    top: Number
    bottom: int


#: One number of a tensor; None is unknown.
Element: TypeAlias = Number | Real | None
Content: TypeAlias = tuple[Element, ...] | None
Shape: TypeAlias = tuple[Number, ...] | None
Size: TypeAlias = Number | Open


class Fact(NamedTuple):
    """The known sizes and numbers of a tensor.

    Attributes:
        shape: its sizes; None if the rank is unknown.
        content: its numbers in row-major order; None for a large tensor, or if none is known.
    """

    shape: tuple[Any, ...] | None = None
    content: Content = None


UNKNOWN = Fact()


class Unclear(Exception):  # noqa: N818 - an answer, not a fault
    """A row cannot tell the result; the node may still be correct."""


class NoSizes(Exception):  # noqa: N818 - an answer, not a fault
    """The node fails for all sizes; the message is the reason."""


#: Exceptions that a hostile file may cause in a row. Any other exception is a bug.
SURPRISES = (
    ArithmeticError,
    AttributeError,
    IndexError,
    KeyError,
    MemoryError,
    RecursionError,
    TypeError,
    ValueError,
    ZerostrideError,
)


@dataclass(slots=True)
class OpCall:
    """An op with the facts of its operands.

    Attributes:
        op, domain, version: identify the op's document.
        facts: the fact of each operand; None for an optional operand that is left out.
        attributes: the node's attributes.
        outputs: the number of the node's results.
        needs: conditions that rows stated, each with its reason.
        notes: what rows could not do.
        holds: whether a condition is known to hold at the node.
        local: a row used `holds`, so its answer is valid at this node only.
        find: finds a node's site; None uses ONNX's table.
        rows: rows of the format's own ops that have no site.
    """

    op: str
    domain: str
    version: int
    facts: tuple[Fact | None, ...]
    attributes: Mapping[str, Any]
    outputs: int
    needs: list[tuple[Condition, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    holds: Callable[[Condition], bool] | None = None
    local: bool = False
    find: Callable[[Any], Any] | None = None
    rows: Mapping[str, Callable[[OpCall], Results]] = field(default_factory=dict)

    def sure(self, size: Number, least: int) -> bool:
        """Whether a size is at least `least`, by its bounds or by known conditions."""
        if at_least(size, least):
            return True
        high = bounds(size)[1]
        if isinstance(size, int) or self.holds is None or (high is not None and high < least):
            return False
        self.local = True
        return self.holds(ge(size, least))

    # Operands.

    def has(self, position: int) -> bool:
        """Whether an operand is present."""
        return position < len(self.facts) and self.facts[position] is not None

    def fact(self, position: int) -> Fact:
        """The fact of an operand; Unclear if it is left out."""
        fact = self.facts[position] if position < len(self.facts) else None
        if fact is None:
            raise Unclear("an operand is left out")
        return fact

    def shape(self, position: int) -> tuple[Number, ...]:
        """The sizes of an operand; Unclear if its rank is unknown."""
        shape = self.fact(position).shape
        if shape is None:
            raise Unclear("the rank of an operand is unknown")
        return shape

    def content(self, position: int) -> Content:
        """The known numbers of an operand."""
        return self.fact(position).content

    # Attributes.

    def integer(self, name: str, default: int = 0) -> int:
        """An attribute that is one number."""
        return operator.index(self.attributes.get(name, default))

    def integers(self, name: str) -> tuple[int, ...] | None:
        """An attribute that is a list of numbers; None if it is absent."""
        value = self.attributes.get(name)
        if value is None:
            return None
        return tuple(map(operator.index, value if isinstance(value, tuple) else (value,)))

    def whole(self, position: int, name: str = "") -> tuple[Number | None, ...] | None:
        """Numbers that are an attribute in old versions and an operand in others.

        None if neither is present; Unclear if their count is unknown.
        """
        listed = self.integers(name) if name else None
        if listed is not None:
            return listed
        if not self.has(position):
            return None
        content = self.content(position)
        if content is not None:
            return tuple(None if isinstance(item, Real) else item for item in content)
        shape = self.shape(position)
        count = plain(shape[0]) if len(shape) == 1 else 1 if not shape else None
        if not isinstance(count, int) or count > MAX_RANK:
            raise Unclear("it is not known how many numbers an operand has")
        return (None,) * count

    def fixed(self, position: int, name: str = "") -> tuple[int, ...] | None:
        """Like :meth:`whole`, as plain numbers; Unclear if one of them is unknown."""
        listed = self.whole(position, name)
        if listed is None:
            return None
        numbers = tuple(item for item in listed if isinstance(item, int))
        if len(numbers) < len(listed):
            raise Unclear("numbers that the shape depends on are not known")
        return numbers

    def axis(self, rank: int, default: int = 0, name: str = "axis") -> int:
        """The attribute `axis`, counted from the front."""
        return place(self.integer(name, default), rank)

    # Answers.

    def need(self, condition: Condition, words: str) -> None:
        """States a condition on sizes; one that always holds is dropped."""
        if condition.never:
            raise NoSizes(words)
        if not condition.always:
            self.needs.append((condition, words))

    def same(self, a: Number, b: Number, what: str) -> None:
        """States that two sizes must be equal."""
        if a is not b:
            self.need(eq(a, b), f"{what}: {a} and {b} must be equal")


Results: TypeAlias = Fact | tuple[Fact, ...]


def refuse(words: str) -> NoReturn:
    """Raises NoSizes: the node fails for all sizes."""
    raise NoSizes(words)


def place(axis: int, rank: int) -> int:
    """An axis counted from the front; NoSizes if it is out of range."""
    if not -rank <= axis < rank:
        refuse(f"axis {axis} of a tensor of rank {rank}")
    return axis % rank


def places(axes: Iterable[int], rank: int) -> tuple[int, ...]:
    """Axes counted from the front, each once."""
    positions = tuple(place(axis, rank) for axis in axes)
    if len(set(positions)) < len(positions):
        refuse(f"axes {list(axes)} name one axis twice")
    return positions


def product(sizes: Iterable[Number]) -> Number:
    """The number of elements."""
    total: Number = 1
    for size in sizes:
        if type(size) is int and size == 0:
            return 0
        total = total * size
    return plain(total)


def rounded_up(size: Number, by: int) -> Number:
    """``size / by`` rounded up."""
    return plain(floordiv(dim(size) + (by - 1), by))


def low_of(size: Number) -> int | None:
    """The least value, by bounds alone."""
    return bounds(size)[0]


def at_least(size: Number, least: int) -> bool:
    """Whether a size is certainly at least `least`."""
    low = low_of(size)
    return low is not None and low >= least


def bounds_of(size: Size) -> Interval:
    """Least and greatest value of a size that may be unknown."""
    return (size.low, size.high) if isinstance(size, Open) else bounds(size)


def is_number(item: object) -> TypeGuard[Number]:
    """Whether an element, or a size, is a whole number or an expression."""
    return isinstance(item, (int, Dim))


def known(size: Size) -> Number:
    """A size as an expression; Unclear if it is unknown."""
    if isinstance(size, Open):
        raise Unclear("a size is not known")
    return size


def target_sizes(call: OpCall, numbers: Sequence[Number | None]) -> tuple[Size, ...]:
    """Numbers as sizes: an unknown one is a new size, one that may be below 0 adds a need."""
    sizes: list[Size] = []
    for item in numbers:
        if isinstance(item, int) and item < 0:
            refuse(f"a size of {item}")
        if item is not None:
            call.need(ge(item, 0), f"{item} is a size, and so not below 0")
        sizes.append(Open() if item is None else item)
    return tuple(sizes)


def vector(content: Sequence[Element]) -> Fact:
    """The fact of a vector of these numbers."""
    return Fact((len(content),), tuple(content) if len(content) <= MAX_CONTENT else None)


def count_of(shape: tuple[Any, ...] | None) -> int | None:
    """The number of elements; None if it is unknown or above MAX_CONTENT."""
    if shape is None or not all(isinstance(size, int) for size in shape):
        return None
    count = math.prod(size for size in shape if isinstance(size, int))
    return count if 0 <= count <= MAX_CONTENT else None


def sound(size: Size) -> str | None:
    """Why a size is not followed, or None."""
    if isinstance(size, int):
        return None if size <= MAX_ELEMENTS else f"a size of {size}"
    if isinstance(size, Dim):
        choices = sum(call.function != "floordiv" for call in itertools.islice(calls(size), 64))
        if choices > MAX_CHOICES:
            return "a size of too many cases"
    if isinstance(size, Dim) and any(abs(factor) > MAX_ELEMENTS for _, factor in size.terms):
        return "a size of factors above 2^63-1"
    return None


__all__ = [
    "FAR",
    "MAX_CONTENT",
    "SURPRISES",
    "UNKNOWN",
    "Content",
    "Element",
    "Fact",
    "NoSizes",
    "OpCall",
    "Open",
    "Real",
    "Results",
    "Shape",
    "Size",
    "Unclear",
    "at_least",
    "bounds_of",
    "count_of",
    "dim",
    "is_number",
    "known",
    "low_of",
    "place",
    "places",
    "product",
    "refuse",
    "rounded_up",
    "sound",
    "target_sizes",
    "vector",
]
