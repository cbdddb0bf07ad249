"""The atoms of the expressions of `dim`, and the bounds that terms alone imply.

An expression is a sum of products of *atoms*: symbols, and applications of the functions of
`FUNCTIONS`. This module holds the atoms, the order in which they are written, and bounds.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, Union

from ..errors import printable
from .shapes import Answer

if TYPE_CHECKING:
    from .dim import Dim


class Symbol(NamedTuple):
    """A whole number that is not known: an atom of open sizes.

    Attributes:
        name: its name in words and in ``bind``.
        low: its least value.
        high: its greatest value, or None.
        named: the file or the caller gave the name; otherwise shapes show its bounds instead.
    """

    name: str
    low: int = 0
    high: int | None = None
    named: bool = True

    @property
    def text(self) -> str:
        """How a shape shows it: its name, or bounds or ``?`` if it has no name of its own."""
        if self.named:
            return name_of(self)
        if self.high is None:
            return f"{self.low}.." if self.low else "?"
        return f"{self.low}..{self.high}"


class Applied:
    """A function of sizes that is not a polynomial. It is opaque: equal only to itself.

    Attributes:
        function: a name in `FUNCTIONS`.
        arguments: sizes; for "choose" pairs of a condition and a size.
    """

    __slots__ = ("_ends", "_hash", "_symbols", "arguments", "function")

    _ends: Interval
    _symbols: tuple[Symbol, ...]

    def __init__(self, function: str, arguments: tuple[Any, ...]) -> None:
        self.function = function
        self.arguments = arguments
        self._hash = hash((function, arguments))  # hashed often; the arguments are long

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Applied):
            return NotImplemented
        return self is other or (
            self._hash == other._hash
            and self.function == other.function
            and self.arguments == other.arguments
        )

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        return Applied, (self.function, self.arguments)

    def __repr__(self) -> str:
        return f"Call({self.function!r}, {self.arguments!r})"

    @property
    def name(self) -> str:
        """The name that words show."""
        return self.write(name_of)

    def write(self, name: Callable[[Symbol], str]) -> str:
        """The application as text, symbols written by `name`."""
        return FUNCTIONS[self.function].text(self.arguments, name)


def name_of(symbol: Symbol) -> str:
    """A symbol's name on one line: it may come from a model file."""
    return symbol.name if symbol.name.isprintable() else printable(symbol.name)


Atom: TypeAlias = Symbol | Applied
Monomial: TypeAlias = tuple[Atom, ...]
Terms: TypeAlias = tuple[tuple[Monomial, int], ...]
#: Least and greatest value; None means unbounded.
Interval: TypeAlias = tuple[int | None, int | None]
Number: TypeAlias = Union[int, "Dim"]


# A total order, so that a sum is written in one way: two atoms may share a name.


@functools.lru_cache(1 << 14)
def atom_order(atom: Atom) -> tuple[Any, ...]:
    """The sort key of the factors of a product."""
    if isinstance(atom, Symbol):
        low, high = atom.low, atom.high
        return atom.name, "", (low is None, low or 0, high is None, high or 0, atom.named)
    order = FUNCTIONS[atom.function].order
    return atom.name, atom.function, tuple(map(order, atom.arguments))


@functools.lru_cache(1 << 14)
def _order(monomial: Monomial) -> tuple[int, tuple[Any, ...]]:
    return -len(monomial), tuple(map(atom_order, monomial))


def term_order(term: tuple[Monomial, int]) -> tuple[int, tuple[Any, ...]]:
    """The sort key of the terms of a sum."""
    return _order(term[0])


def structure(size: Number) -> tuple[Any, ...]:
    """A sortable key that differs for different sizes."""
    if isinstance(size, int):
        return size, ()
    return size.const, tuple((_order(monomial), factor) for monomial, factor in size.terms)


# The functions that are not polynomials.


class Function(NamedTuple):
    """A row: how a function is written, evaluated, bounded and substituted in.

    Attributes:
        text: its arguments as text.
        evaluate: its value for values of the symbols.
        bounds: its interval.
        substitute: the function of changed arguments.
        sizes: the sizes in its arguments.
        order: the sort key of an argument.
    """

    text: Callable[[tuple[Any, ...], Callable[[Symbol], str]], str]
    evaluate: Callable[[tuple[Any, ...], Mapping[Symbol, int]], int]
    bounds: Callable[[tuple[Any, ...]], Interval]
    substitute: Callable[[tuple[Any, ...], Mapping[Symbol, Number]], Number]
    sizes: Callable[[tuple[Any, ...]], Iterable[Number]] = iter
    order: Callable[[Any], tuple[Any, ...]] = structure


class _FunctionTable(dict[str, Function]):
    """The rows of `functions`, which compute with sizes, so they are loaded at the first use."""

    def __missing__(self, name: str) -> Function:
        from .functions import ROWS

        self.update(ROWS)
        return ROWS[name]


#: The functions by name.
FUNCTIONS = _FunctionTable()


# The parts of an expression.


def calls(size: Dim) -> Iterator[Applied]:
    """The applications in a size; applications in arguments come first."""
    for monomial, _ in size.terms:
        for atom in monomial:
            if isinstance(atom, Applied):
                for argument in FUNCTIONS[atom.function].sizes(atom.arguments):
                    if not isinstance(argument, int):
                        yield from calls(argument)
                yield atom


def symbols_in(size: Dim) -> Iterator[Symbol]:
    """The symbols in a size, also in arguments, in the order in which they are written."""
    for monomial, _ in size.terms:
        for atom in monomial:
            if isinstance(atom, Symbol):
                yield atom
            else:
                yield from _symbols_of(atom)


def _symbols_of(call: Applied) -> tuple[Symbol, ...]:
    """The symbols in an application, each once. Kept: sizes that are nested deep share parts."""
    try:
        return call._symbols
    except AttributeError:
        sizes = FUNCTIONS[call.function].sizes(call.arguments)
        each = (symbol for s in sizes if not isinstance(s, int) for symbol in symbols_in(s))
        call._symbols = tuple(dict.fromkeys(each))
        return call._symbols


# Intervals.


def bounds(size: Number) -> Interval:
    """Least and greatest value, term by term. Tight where no symbol occurs twice."""
    if isinstance(size, int):
        return size, size
    low: int | None = size.const
    high: int | None = size.const
    for monomial, factor in size.terms:
        least, most = _monomial_bounds(monomial)
        if factor < 0:
            least, most = most, least
        low = None if low is None or least is None else low + factor * least
        high = None if high is None or most is None else high + factor * most
    return low, high


def atom_bounds(atom: Atom) -> Interval:
    """Least and greatest value of an atom."""
    if isinstance(atom, Symbol):
        return atom.low, atom.high
    try:
        return atom._ends
    except AttributeError:
        atom._ends = FUNCTIONS[atom.function].bounds(atom.arguments)
        return atom._ends


def _monomial_bounds(monomial: Monomial) -> Interval:
    if len(monomial) == 1:
        return atom_bounds(monomial[0])
    low, high = atom_bounds(monomial[0])
    for atom in monomial[1:]:
        low, high = _product((low, high), atom_bounds(atom))
    return low, high


def _product(a: Interval, b: Interval) -> Interval:
    if a[0] is not None and b[0] is not None and a[0] >= 0 and b[0] >= 0:
        return a[0] * b[0], None if a[1] is None or b[1] is None else a[1] * b[1]
    if None in (*a, *b):
        return None, None
    corners = [x * y for x in a for y in b]  # type: ignore[operator]
    return min(corners), max(corners)


def decide_zero(size: Number) -> Answer:
    """Whether an expression is 0, by its interval and by the divisors of its coefficients."""
    if isinstance(size, int):
        return Answer.NO if size else Answer.YES
    if not size.terms:
        return Answer.NO if size.const else Answer.YES
    low, high = bounds(size)
    if (low is not None and low > 0) or (high is not None and high < 0):
        return Answer.NO
    if low == 0 == high:
        return Answer.YES
    divisor = math.gcd(*(factor for _, factor in size.terms))
    return Answer.NO if size.const % divisor else Answer.UNKNOWN
