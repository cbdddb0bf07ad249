"""Sizes, and the two questions that a rule may ask about them.

A rule asks *are these equal?* and *is this 1?*; each answer is yes, no or unknown. Whole numbers
always answer yes or no. A size of another kind has two methods, ``equal_to(other)`` and
``is_one()``, which return an :class:`Answer`. Nothing else is asked, so a rule that is right for
numbers is right for symbols. An engine's rule may also forbid that two sizes are equal
(:meth:`Asker.forbid`).
"""

from __future__ import annotations

import enum
import itertools
import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Protocol, TypeAlias

from ..errors import Misfit, Reason

#: The limit of an extent and of the number of elements: the largest signed 64-bit index.
MAX_ELEMENTS = 2**63 - 1
#: NumPy's NPY_MAXDIMS (numpy/ndarraytypes.h). Every plan can be viewed, so none has more axes.
MAX_RANK = 64


class Answer(enum.Enum):
    """The answer to a question about sizes."""

    NO = 0
    YES = 1
    UNKNOWN = 2

    def __bool__(self) -> bool:
        # To treat an unknown answer as true or false would be a guess.
        if self is Answer.UNKNOWN:
            raise TypeError("an unknown answer has no truth value")
        return self is Answer.YES


class OpenSize(Protocol):
    """A size that is not a whole number."""

    def equal_to(self, other: Size) -> Answer:
        """Whether it equals `other`."""
        ...

    def is_one(self) -> Answer:
        """Whether it is 1."""
        ...


Size: TypeAlias = "int | OpenSize"
Shape: TypeAlias = tuple[Any, ...]


def equal(a: Size, b: Size) -> Answer:
    """Whether two sizes are equal.

    >>> equal(3, 3), equal(3, 1)
    (<Answer.YES: 1>, <Answer.NO: 0>)
    """
    if isinstance(a, int):
        if isinstance(b, int):
            return Answer.YES if a == b else Answer.NO
        return b.equal_to(a)
    return a.equal_to(b)


def is_one(a: Size) -> Answer:
    """Whether a size is 1, and so may stretch.

    >>> is_one(1)
    <Answer.YES: 1>
    """
    if isinstance(a, int):
        return Answer.YES if a == 1 else Answer.NO
    return a.is_one()


class Undecided(Exception):  # noqa: N818 - an answer, not a fault
    """One plan cannot be made, because the answer to a question is unknown."""

    def __init__(self, question: tuple[Any, ...]) -> None:
        super().__init__(f"cannot compare {' with '.join(map(str, question))}")
        self.question = question


class Asker:
    """Answers a rule's questions and records them, in order."""

    __slots__ = ("asked",)

    def __init__(self) -> None:
        self.asked: list[tuple[tuple[Size, Size], bool]] = []

    def equal(self, a: Size, b: Size) -> bool:
        """Are the two sizes equal? Raises Undecided if that is not known."""
        if type(a) is int and type(b) is int:
            # The fast path for by far the most frequent question.
            settled = a == b
            self.asked.append(((a, b), settled))
            return settled
        return self._settle(equal(a, b), a, b)

    def is_one(self, a: Size) -> bool:
        """Is the size 1? Raises Undecided if that is not known."""
        if type(a) is int:
            settled = a == 1
            self.asked.append(((a, 1), settled))
            return settled
        return self._settle(is_one(a), a, 1)

    def is_above(self, a: Size, b: Size) -> bool:
        """Is `a` larger than `b`? Raises Undecided if that is not known."""
        if isinstance(a, int) and isinstance(b, int):
            return a > b
        raise Undecided((a, b))

    def is_multiple(self, a: Size, of: Size) -> bool:
        """Is `a` a whole multiple of another size? Raises Undecided if that is not known."""
        if isinstance(a, int) and isinstance(of, int):
            return a == 0 if of == 0 else a % of == 0
        raise Undecided((a, of))

    def forbid(self, a: Size, b: Size, misfit: Callable[[], Misfit]) -> None:
        """Refuses the two sizes being equal; `misfit` is called only if they are.

        Unlike a question it does not fork the rule: if the answer is unknown, it becomes a
        condition.
        """
        if self.equal(a, b):
            raise misfit()

    def _settle(self, answer: Answer, a: Size, b: Size) -> bool:
        if answer is Answer.UNKNOWN:
            raise Undecided((a, b))
        settled = answer is Answer.YES
        self.asked.append(((a, b), settled))
        return settled


#: Holds for a tuple of plain integers. Floats and truth values are excluded, because 2.0 == 2 and
#: True == 1 would match in a cache.
_only_int = frozenset({int}).issuperset


def is_plain(shape: Any) -> bool:
    """Whether `shape` is a tuple of plain integers, which may be looked up as it is."""
    return type(shape) is tuple and _only_int(map(type, shape))


def is_open(shape: Any) -> bool:
    """Whether a shape has sizes that are text or symbols."""
    return isinstance(shape, (tuple, list)) and any(
        isinstance(size, str) or hasattr(size, "equal_to") for size in shape
    )


#: Iterables that are not sequences of sizes: text, unordered collections, one-time iterators.
_NO_SHAPE = (str, bytes, bytearray, AbstractSet, Mapping, Iterator)


def as_shape(shape: Any) -> Shape:
    """A shape as a tuple of whole numbers, 0 to 2^63 - 1; raises a Misfit for anything else.

    NumPy's integers are whole numbers; truth values and floats are not.

    >>> as_shape([2, 3])
    (2, 3)
    """
    sizes = shape if type(shape) is tuple else as_tuple(shape)
    if len(sizes) > MAX_RANK:
        raise Misfit(
            Reason.RANK_LIMIT, f"more than {MAX_RANK} axes, which is where NumPy's views end"
        )
    if not _only_int(map(type, sizes)):
        sizes = tuple(map(whole_number, sizes))
    if sizes and (min(sizes) < 0 or max(sizes) > MAX_ELEMENTS):
        bad = next(size for size in sizes if not 0 <= size <= MAX_ELEMENTS)
        raise Misfit(Reason.BAD_EXTENT, f"a size of {brief(bad)} is not in 0 .. 2^63-1")
    return sizes


def as_tuple(shape: Any) -> tuple[Any, ...]:
    """A sequence of sizes as a tuple, cut off beyond the longest shape; else raises a Misfit."""
    if not isinstance(shape, _NO_SHAPE):
        try:
            # Only as many as needed: a range may be longer than memory.
            return tuple(itertools.islice(shape, MAX_RANK + 1))
        except TypeError:
            pass
    raise Misfit(Reason.BAD_EXTENT, f"a shape is a sequence of sizes, not {brief(shape)}")


def whole_number(size: Any) -> int:
    """A whole number as a plain int; a Misfit otherwise."""
    if type(size).__name__ != "bool":  # Python's, or NumPy's, which is an index before NumPy 2.4
        try:
            return int(operator.index(size))
        except TypeError:
            pass
    raise Misfit(Reason.BAD_EXTENT, f"a size is a whole number, not {brief(size)}")


def whole_numbers(values: Any) -> tuple[int, ...] | None:
    """A sequence of whole numbers of any sign as a tuple, or None if it is anything else.

    >>> whole_numbers([1, -2]), whole_numbers([True]), whole_numbers("")
    ((1, -2), None, None)
    """
    try:
        return tuple(map(whole_number, as_tuple(values)))
    except Misfit:
        return None


def brief(value: object) -> str:
    """A value as messages show it: one line, cut off if it is long.

    >>> brief(type("Table", (), {"__repr__": lambda table: "1  2\\n3  4"})())
    '1 2 3 4'
    """
    text = " ".join(repr(value)[:1000].split())
    return text if len(text) <= 40 else text[:37] + "..."


def is_array(value: Any) -> bool:
    """Whether the value is an array that is not a shape. A vector of whole numbers is a shape, and
    an array of rank 0 that is a whole number may be a size.
    """
    if isinstance(value, type) or not (hasattr(value, "shape") and hasattr(value, "dtype")):
        return False
    try:
        as_shape(value)
    except Misfit:
        return whole_numbers((value,)) is None or len(value.shape) > 0
    return False


def elements(shape: Sequence[int]) -> int:
    """Number of elements; 0 if a size is 0.

    >>> elements((2, 3)), elements(()), elements((0, 9))
    (6, 1, 0)
    """
    return math.prod(shape)


def check_elements(shape: Sequence[int]) -> None:
    """Refuses shapes whose non-zero sizes multiply to more than 2^63 - 1, as NumPy does.

    Zeros are left out of the product, because strides are computed from the other axes.
    """
    if math.prod(filter(None, shape)) > MAX_ELEMENTS:
        raise Misfit(
            Reason.TOO_LARGE,
            f"the result {tuple(shape)} has more elements than a 64-bit index can count",
        )
