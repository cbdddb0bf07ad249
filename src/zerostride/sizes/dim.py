"""An open size, in one normal form.

A :class:`Dim` is a polynomial with whole coefficients over *atoms*. An atom is a symbol (``N``, or
an unnamed size with bounds) or an application of one of the `FUNCTIONS` that are not polynomials:
floor division, maximum, the broadcast of several sizes. Applications are opaque: equal only to
themselves.

Equal polynomials have equal normal forms, so ``2*N + N`` and ``3*N`` are equal and have the same
hash. A symbol stands for any whole number from 0: N may be 0, or 1.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from .atoms import (
    FUNCTIONS,
    Applied,
    Atom,
    Interval,
    Monomial,
    Number,
    Symbol,
    Terms,
    atom_order,
    bounds,
    calls,
    decide_zero,
    name_of,
    structure,
    symbols_in,
    term_order,
)
from .hooks import bounds_under, read_dim
from .shapes import Answer

if TYPE_CHECKING:
    from .condition import Condition


def _text(symbol: Symbol) -> str:
    return symbol.text


#: Terms of the longest product that is multiplied out; longer ones are refused.
MAX_TERMS = 256
#: Factors of one product: a tensor of 64 axes has as many elements. Squares of squares double them.
MAX_FACTORS = 64
#: Atoms in an application of a function, once for each time that they are written. Nested
#: remainders double with each ``%`` (x % y is x - x // y * y), so one line of text could fill the
#: memory.
MAX_WRITTEN = 4000
#: Depth of nested functions: the functions that walk an expression recurse this deep.
MAX_NESTED = 32
#: Sizes in one maximum or broadcast: each pair of them is a clause.
MAX_ARGUMENTS = 16


def size_order(size: Dim) -> tuple[Any, ...]:
    """The sort key of sizes: their words, then any fixed order."""
    return size.words, structure(size)


class Dim:
    """A size: a number, a symbol, or an expression of them.

    Args:
        value: a whole number, a name, or text: ``"N"``, ``"?"``, ``"1..8"``, ``"0.."``,
            ``"2*N + 1"``, ``"(N + 1) // 2"``.

    ``==`` compares expressions: it says whether two sizes are *written* alike. :meth:`equals` asks
    whether they are equal as numbers; the answer may be unknown. ``<=`` and the like make
    conditions, for ``facts=``.

    >>> import zerostride as zs
    >>> N, M = zs.Dim("N"), zs.Dim("M")
    >>> 2 * N + N == 3 * N, N == M
    (True, False)
    >>> print((N + 1) * 2 - M, (2 * N + 1).equals(0), N.equals(M))
    -M + 2*N + 2 never M == N
    """

    __slots__ = ("_facts", "_hash", "_weight", "const", "terms")

    const: int
    terms: Terms
    _hash: int
    _facts: Condition | None
    _weight: tuple[int, int]

    def __new__(cls, value: int | str | Dim | Symbol = 0) -> Dim:
        """The size that `value` writes. Text is parsed once; an unnamed size is always new."""
        if isinstance(value, Dim):
            return value
        if isinstance(value, Symbol):
            return of_atom(value)
        return read_dim(value)

    # Value semantics.

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Dim):
            return self.const == other.const and self.terms == other.terms
        if isinstance(other, int):
            return not self.terms and self.const == other
        if isinstance(other, str):
            # A constant equals a number and has its hash, so it cannot equal its text.
            return bool(self.terms) and str(self) == other
        return NotImplemented

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            # Equal to a number or to its own text, it needs that hash. Unnamed sizes are the
            # exception: all are written "?", and with one hash a table of them would be quadratic.
            # So `shape == (2, "?")` holds, and a table does not find an unnamed size by its text.
            if not self.terms:
                self._hash = hash(self.const)
            elif self._is_named():
                self._hash = hash(str(self))
            else:
                self._hash = hash((self.const, self.terms))
            return self._hash

    def _is_named(self) -> bool:
        return all(symbol.named for symbol in self.symbols)

    def __reduce__(self) -> tuple[Any, ...]:
        facts = getattr(self, "_facts", None)
        return dim_of_terms, (self.const, self.terms) if facts is None else (
            self.const,
            self.terms,
            facts,
        )

    def __str__(self) -> str:
        return self.write(_text)

    def __repr__(self) -> str:
        return f"Dim({str(self)!r})"

    def write(self, name: Callable[[Symbol], str]) -> str:
        """The expression as text, symbols written by `name`."""
        if not self.terms:
            return str(self.const)
        (first, times), *more = self.terms
        if times == 1 and len(first) == 1 and not more and not self.const:
            return _written(first[0], name, closed=True)
        parts: list[str] = []
        for monomial, factor in self.terms:
            product = "*".join(_written(atom, name, closed=False) for atom in monomial)
            size = product if abs(factor) == 1 else f"{abs(factor)}*{product}"
            sign = ("-" if factor < 0 else "") if not parts else (" - " if factor < 0 else " + ")
            parts.append(sign + size)
        if self.const:
            parts.append(f" {'-' if self.const < 0 else '+'} {abs(self.const)}")
        return "".join(parts)

    @property
    def words(self) -> str:
        """The expression as conditions write it, every symbol by its name."""
        return self.write(name_of)

    # Arithmetic.

    def __add__(self, other: Number) -> Dim:
        if isinstance(other, int):
            return dim_of_terms(self.const + other, self.terms) if other else self
        if not isinstance(other, Dim):
            return NotImplemented
        if not other.terms:
            return dim_of_terms(self.const + other.const, self.terms)
        return _collect(self.const + other.const, itertools.chain(self.terms, other.terms))

    __radd__ = __add__

    def __neg__(self) -> Dim:
        return dim_of_terms(
            -self.const, tuple((monomial, -factor) for monomial, factor in self.terms)
        )

    def __sub__(self, other: Number) -> Dim:
        if not isinstance(other, Dim) or not other.terms:
            return self + -other
        less = ((monomial, -factor) for monomial, factor in other.terms)
        return _collect(self.const - other.const, itertools.chain(self.terms, less))

    def __rsub__(self, other: Number) -> Dim:
        return -self + other

    def __mul__(self, other: Number) -> Dim:
        if isinstance(other, int):
            if other == 0:
                return dim_of_terms(0, ())
            scaled = tuple((monomial, factor * other) for monomial, factor in self.terms)
            return dim_of_terms(self.const * other, scaled)
        if not isinstance(other, Dim):
            return NotImplemented
        if not other.terms:
            return self * other.const
        if not self.terms:
            return other * self.const
        if len(self.terms) * len(other.terms) > MAX_TERMS:
            raise OverflowError("a size of too many terms")
        if _degree(self) + _degree(other) > MAX_FACTORS:
            raise OverflowError("a size of too many factors")
        left = (*self.terms, *([((), self.const)] if self.const else []))
        right = (*other.terms, *([((), other.const)] if other.const else []))
        terms = [(tuple(sorted(a + b, key=atom_order)), m * n) for a, m in left for b, n in right]
        return _collect(0, terms)

    __rmul__ = __mul__

    def __floordiv__(self, other: Number) -> Dim:
        from .functions import floordiv

        return floordiv(self, other)

    def __mod__(self, other: Number) -> Dim:
        return self - self // other * other

    # Conditions. `==` compares expressions.

    def equals(self, other: Number) -> Condition:
        """The condition that both are the same number."""
        from .condition import eq

        return eq(self, other)

    def differs(self, other: Number) -> Condition:
        """The condition that they are different numbers."""
        from .condition import ne

        return ne(self, other)

    def __ge__(self, other: Number) -> Condition:
        from .condition import ge

        return ge(self, other)

    def __le__(self, other: Number) -> Condition:
        return dim(other) >= self

    def __gt__(self, other: Number) -> Condition:
        return self >= dim(other) + 1

    def __lt__(self, other: Number) -> Condition:
        return dim(other) >= self + 1

    # The two questions that rules ask.

    def equal_to(self, other: Any) -> Answer:
        """Whether it equals `other` for all values of the symbols, for none, or for some."""
        return decide_zero(self - other)

    def is_one(self) -> Answer:
        """Whether it is 1 for all values of the symbols, for none, or for some."""
        return decide_zero(self - 1)

    # Known values and bounds.

    @property
    def constant(self) -> int | None:
        """The number it is, or None."""
        return None if self.terms else self.const

    def __int__(self) -> int:
        if self.terms:
            raise TypeError(f"the size {self} is not a number; bind its symbols first")
        return self.const

    @property
    def interval(self) -> Interval:
        """Least and greatest value; None means unbounded.

        For a size in a plan's shape: over all values for which the plan exists.

        >>> import zerostride as zs
        >>> zs.Dim("1..8").interval, zs.plan(("N",), (2,)).conditions
        ((1, 8), <Condition N == 2 or N == 1>)
        """
        facts = getattr(self, "_facts", None)
        if facts is None and next(calls(self), None) is None:
            return bounds(self)
        from .condition import ALWAYS

        return bounds_under(self, ALWAYS if facts is None else facts)

    @property
    def low(self) -> int | None:
        """Its least value."""
        return self.interval[0]

    @property
    def high(self) -> int | None:
        """Its greatest value; None if unbounded."""
        return self.interval[1]

    @property
    def symbols(self) -> tuple[Symbol, ...]:
        """The symbols in it, each once, those in arguments of functions included."""
        lone = lone_symbol(self)
        return tuple(dict.fromkeys(symbols_in(self))) if lone is None else (lone,)

    def under(self, given: Condition | None) -> Dim:
        """The same size, with the interval it has where `given` holds."""
        return dim_of_terms(self.const, self.terms, given)

    # Values for symbols.

    def substitute(self, values: Mapping[Symbol, Number]) -> Dim:
        """The size with symbols replaced, also in the arguments of functions.

        Raises:
            ArithmeticError: it does not exist for these values, or becomes too long. Sizes that do
                not broadcast are not checked.
        """
        total = dim_of_terms(self.const, ())
        for monomial, factor in self.terms:
            product: Number = factor
            for atom in monomial:
                product = product * _replaced(atom, values)
            total = total + product
        return total

    def evaluate(self, values: Mapping[Symbol, int]) -> int:
        """The number it is for these values of its symbols.

        Raises:
            KeyError: a symbol has no value.
            ArithmeticError: it does not exist for these values: sizes that do not broadcast, a
                divisor below 1.
        """
        total = self.const
        for monomial, factor in self.terms:
            for atom in monomial:
                factor *= (
                    values[atom]
                    if isinstance(atom, Symbol)
                    else FUNCTIONS[atom.function].evaluate(atom.arguments, values)
                )
            total += factor
        return total


def _written(atom: Atom, name: Callable[[Symbol], str], *, closed: bool) -> str:
    """An atom as a factor, in parentheses where precedence needs them."""
    if isinstance(atom, Symbol):
        return name(atom)
    text = atom.write(name)
    return f"({text})" if atom.function in ("floordiv", "choose") and not closed else text


def dim_of_terms(const: int, terms: Terms, facts: Condition | None = None) -> Dim:
    """The Dim of constant and terms that are already in normal form."""
    size = object.__new__(Dim)
    size.const = const
    size.terms = terms
    if facts is not None:
        size._facts = facts
    return size


def _collect(const: int, terms: Iterable[tuple[Monomial, int]]) -> Dim:
    """The normal form of a sum: sorted monomials, each once, none with factor 0."""
    factors: dict[Monomial, int] = {}
    for monomial, factor in terms:
        factors[monomial] = factors.get(monomial, 0) + factor
    const += factors.pop((), 0)
    nonzero = [term for term in factors.items() if term[1]]
    if len(nonzero) > MAX_TERMS:
        raise OverflowError("a size of too many terms")
    if len(nonzero) > 1:
        nonzero.sort(key=term_order)
    return dim_of_terms(const, tuple(nonzero))


def _degree(size: Dim) -> int:
    """The factors of its longest product."""
    return max((len(monomial) for monomial, _ in size.terms), default=0)


def of_atom(atom: Atom) -> Dim:
    """The size that consists of one atom."""
    return dim_of_terms(0, (((atom,), 1),))


def applied(function: str, arguments: tuple[Any, ...]) -> Dim:
    """The size that is an application of a function.

    Raises:
        OverflowError: it would be too long, or nested too deep, to work with.
    """
    call = Applied(function, arguments)
    written, nested = _atom_weight(call)
    many = len(arguments) > MAX_ARGUMENTS and function != "choose"
    if many or written > MAX_WRITTEN or nested > MAX_NESTED:
        raise OverflowError("a size of too many functions")
    return of_atom(call)


def weight_of(size: Number) -> int:
    """Atoms in an expression, once for each time that they are written."""
    return _weight(size)[0]


def _weight(size: Number) -> tuple[int, int]:
    """Counts atoms, once for each time that they are written, and the depth of functions."""
    if isinstance(size, int):
        return 0, 0
    try:
        return size._weight
    except AttributeError:
        weights = [_atom_weight(atom) for monomial, _ in size.terms for atom in monomial]
        written = sum(weight for weight, _ in weights)
        size._weight = written, max((nested for _, nested in weights), default=0)
        return size._weight


def _atom_weight(atom: Atom) -> tuple[int, int]:
    if isinstance(atom, Symbol):
        return 1, 0
    weights = [_weight(size) for size in FUNCTIONS[atom.function].sizes(atom.arguments)]
    written = sum(weight for weight, _ in weights)
    return 1 + written, 1 + max((nested for _, nested in weights), default=0)


def dim(value: Number) -> Dim:
    """A number or a size as a Dim; TypeError of anything else."""
    if isinstance(value, Dim):
        return value
    return dim_of_terms(value if type(value) is int else operator.index(value), ())


def plain(value: Number) -> Number:
    """A Dim that is a number as that number; any other value unchanged."""
    return value.const if isinstance(value, Dim) and not value.terms else value


def lone_symbol(value: Any) -> Symbol | None:
    """The symbol, if the size is a lone symbol; else None."""
    if isinstance(value, Dim) and value.const == 0 and len(value.terms) == 1:
        monomial, factor = value.terms[0]
        if factor == 1 and len(monomial) == 1 and isinstance(monomial[0], Symbol):
            return monomial[0]
    return None


def lone_call(size: Dim) -> Applied | None:
    """The application, if the size is a lone application; else None."""
    if size.const == 0 and len(size.terms) == 1:
        monomial, factor = size.terms[0]
        if factor == 1 and len(monomial) == 1 and isinstance(monomial[0], Applied):
            return monomial[0]
    return None


def _replaced(atom: Atom, values: Mapping[Symbol, Number]) -> Number:
    if isinstance(atom, Symbol):
        return values.get(atom, of_atom(atom))
    return FUNCTIONS[atom.function].substitute(atom.arguments, values)


__all__ = [
    "MAX_NESTED",
    "MAX_TERMS",
    "Applied",
    "Atom",
    "Dim",
    "Interval",
    "Number",
    "Symbol",
    "applied",
    "bounds",
    "calls",
    "decide_zero",
    "dim",
    "dim_of_terms",
    "lone_call",
    "lone_symbol",
    "name_of",
    "of_atom",
    "plain",
    "size_order",
    "weight_of",
]
