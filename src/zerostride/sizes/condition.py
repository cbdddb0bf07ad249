"""Formulas over sizes: conditions for a plan to exist, and facts that a caller gives.

A :class:`Condition` is built of ``size == 0``, ``size != 0`` and ``size >= 0`` with *and* and *or*.
Negation is carried down to these three. The constructors normalise where that is cheap: a condition
that holds for all values is `ALWAYS`, one that holds for none is `NEVER`, and repeated parts are
dropped. :mod:`.solve` decides the rest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal, TypeAlias

from ..errors import BroadcastError, Reason
from .atoms import Applied, Number, Symbol, bounds, decide_zero, name_of, structure
from .budget import PARTS_A_STEP, charge, process_cache
from .condition_text import write_atom, write_parts
from .dim import Dim, dim, dim_of_terms, of_atom, weight_of
from .hooks import decide, read_condition
from .shapes import Answer, brief, whole_numbers

Kind: TypeAlias = Literal["true", "false", "==", "!=", ">=", "and", "or"]


class Condition:
    """A condition on sizes: a sequence of clauses, all of which must hold.

    An empty condition always holds. Called with values for its symbols it returns true or false;
    `str` gives it in words. Comparisons of sizes make conditions (``N >= 1``, ``N.equals(M)``), and
    ``&``, ``|`` and ``~`` combine them. ``zs.Condition.parse`` reads text (``"N >= 1"``).

    >>> import zerostride as zs
    >>> needs = zs.plan(("N", 3), ("M", 3)).conditions
    >>> print(needs)
    M == N or N == 1 or M == 1
    >>> needs(N=4, M=1), needs(N=4, M=3), len(needs)
    (True, False, 1)
    """

    __slots__ = (
        "_clauses",
        "_hash",
        "_order",
        "_symbols",
        "_text",
        "_weight",
        "kind",
        "parts",
        "size",
    )

    kind: Kind
    size: Dim
    parts: tuple[Condition, ...]
    _clauses: frozenset[Condition]
    _hash: int
    _order: tuple[Any, ...]
    _symbols: tuple[Symbol, ...]
    _text: str
    _weight: int

    @staticmethod
    def parse(text: str) -> Condition:
        """Reads ``"N >= 1"``, ``"1 <= N <= 8"``, ``"N % 8 == 0"``, ``"H == W or N == 1"``."""
        return read_condition(text)

    # Value semantics.

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Condition):
            return NotImplemented
        return (
            self.kind == other.kind
            and self.size == other.size
            and (self.parts == other.parts or frozenset(self.parts) == frozenset(other.parts))
        )

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            self._hash = hash((self.kind, self.size.const, self.size.terms, frozenset(self.parts)))
            return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        return _make, (self.kind, self.size, self.parts)

    def __and__(self, other: Condition) -> Condition:
        return all_of((self, other))

    def __or__(self, other: Condition) -> Condition:
        return any_of((self, other))

    def __invert__(self) -> Condition:
        return negation(self)

    # A sequence of clauses.

    @property
    def clauses(self) -> tuple[Condition, ...]:
        """The clauses, all of which must hold; none if it always holds."""
        if self.kind == "true":
            return ()
        return self.parts if self.kind == "and" else (self,)

    def has(self, clause: Condition) -> bool:
        """Whether a condition is one of the clauses."""
        if self.kind != "and":
            return clause in self.clauses
        try:
            return clause in self._clauses
        except AttributeError:
            self._clauses = frozenset(self.parts)
            return clause in self._clauses

    def __len__(self) -> int:
        return len(self.clauses)

    def __iter__(self) -> Iterator[Condition]:
        return iter(self.clauses)

    def __getitem__(self, position: int) -> Condition:
        return self.clauses[position]

    @property
    def always(self) -> bool:
        """Whether its form alone shows that it holds for all values; :func:`decide` proves more."""
        return self.kind == "true"

    @property
    def never(self) -> bool:
        """Whether its form alone shows that it holds for no values."""
        return self.kind == "false"

    # Evaluation.

    def __call__(self, values: Mapping[str, int] | None = None, /, **more: int) -> bool:
        """Whether it holds for these values, by the names of its symbols.

        Raises:
            KeyError: a symbol has no value.
            BroadcastError: a value is no whole number.
        """
        numbers = {**(values or {}), **more}
        return self.evaluate({symbol: _number(symbol, numbers) for symbol in self.symbols})

    def evaluate(self, values: Mapping[Symbol, int]) -> bool:
        """Whether it holds for these values of its symbols.

        A part is false if its size does not exist for them: two sizes that do not broadcast.
        """
        if self.kind == "and":
            return all(part.evaluate(values) for part in self.parts)
        if self.kind == "or":
            return any(part.evaluate(values) for part in self.parts)
        if self.kind in ("true", "false"):
            return self.kind == "true"
        try:
            number = self.size.evaluate(values)
        except ArithmeticError:
            return False
        return holds(self.kind, number)

    def decide(self, given: Condition | None = None) -> Decision:
        """Whether it holds for all values that `given` allows, for none, or for some; and why.

        >>> import zerostride as zs
        >>> print(zs.Condition.parse("2*N == 7").decide())
        no: for no values
        """
        return decide(self, given)

    # Parts.

    @property
    def symbols(self) -> tuple[Symbol, ...]:
        """The symbols in it, each once."""
        try:
            return self._symbols
        except AttributeError:
            each = (part.symbols for part in self.parts) if self.parts else (self.size.symbols,)
            self._symbols = tuple(dict.fromkeys(symbol for some in each for symbol in some))
            return self._symbols

    @property
    def weight(self) -> int:
        """The amount of work it takes: its literals, and the atoms in their sizes."""
        try:
            return self._weight
        except AttributeError:
            own = 0 if self.parts else 1 + weight_of(self.size) // 2
            self._weight = own + sum(part.weight for part in self.parts)
            return self._weight

    def sizes(self) -> Iterator[Dim]:
        """The sizes that are compared with 0."""
        if self.parts:
            for part in self.parts:
                yield from part.sizes()
        elif self.kind not in ("true", "false"):
            yield self.size

    def substitute(self, values: Mapping[Symbol, Number]) -> Condition:
        """The condition with symbols replaced; false where a size clearly does not exist."""
        if self.kind == "and":
            return all_of(part.substitute(values) for part in self.parts)
        if self.kind == "or":
            return any_of(part.substitute(values) for part in self.parts)
        if self.kind in ("true", "false"):
            return self
        try:
            size = self.size.substitute(values)
        except ArithmeticError as fault:
            if isinstance(fault, OverflowError):
                raise
            return NEVER
        return _compared(self.kind, size)

    # Words.

    def __str__(self) -> str:
        try:
            return self._text
        except AttributeError:
            self._text = self.write(name_of)
            return self._text

    def __repr__(self) -> str:
        return f"<Condition {self}>"

    def write(self, name: Callable[[Symbol], str]) -> str:
        """The condition as text that Python reads, symbols written by `name`."""
        if self.kind == "true":
            return "always"
        if self.kind == "false":
            return "never"
        if self.kind == "and":
            return " and ".join(write_parts(self.parts, name))
        if self.kind == "or":
            return " or ".join(part.write(name) for part in self.parts)
        return write_atom(self.kind, self.size, name)


class Decision:
    """An answer with its reason: yes, no, or unknown.

    Attributes:
        answer: an :class:`~zerostride.sizes.Answer`.
        reason: why, in words. For an unknown answer: values for which it holds, and values for
            which it does not.
    """

    __slots__ = ("answer", "reason")

    def __init__(self, answer: Answer, reason: str) -> None:
        self.answer = answer
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.answer.name.lower()}: {self.reason}"

    def __repr__(self) -> str:
        return f"<Decision {self}>"


def _number(symbol: Symbol, numbers: Mapping[str, Any]) -> int:
    """A symbol's value; raises BroadcastError if it is no whole number."""
    value = whole_numbers((numbers[symbol.name],))
    if value is None:
        words = f"{symbol.name} is a whole number, not {brief(numbers[symbol.name])}"
        raise BroadcastError(words, reason=Reason.BAD_EXTENT)
    return value[0]


def _make(kind: Kind, size: Dim, parts: tuple[Condition, ...] = ()) -> Condition:
    condition = object.__new__(Condition)
    condition.kind = kind
    condition.size = size
    condition.parts = parts
    return condition


_ZERO = dim(0)
ALWAYS = _make("true", _ZERO)
NEVER = _make("false", _ZERO)


def eq(a: Number, b: Number) -> Condition:
    """The condition that two sizes are the same number.

    >>> print(eq(Dim("min(N, 64)"), Dim("N")))
    N <= 64
    """
    charge(1)
    return _eq(a, b)


@process_cache(1 << 14, typed=True)  # rules ask it repeatedly; 2.0 and "N" equal some sizes
def _eq(a: Number, b: Number) -> Condition:
    size = dim(a) - b
    return _extreme(size) or _compared("==", size)


def equality(a: Number, b: Number) -> Condition:
    """The same, as written: ``min(a, b)`` must not be replaced in its own definition."""
    return _compared("==", dim(a) - b)


def ne(a: Number, b: Number) -> Condition:
    """The condition that two sizes are different numbers."""
    return negation(eq(a, b))


def _extreme(size: Dim) -> Condition | None:
    """``min(a, b) - a == 0`` rewritten as ``a <= b``, and the same for ``max``; None for others."""
    for (atom, *more), factor in size.terms:
        if not isinstance(atom, Applied) or more or atom.function not in ("max", "min"):
            continue
        if abs(factor) != 1 or len(atom.arguments) != 2:
            continue
        rest = of_atom(atom) - size * factor
        if rest in atom.arguments:
            other = atom.arguments[rest == atom.arguments[0]]
            return ge(other, rest) if atom.function == "min" else ge(rest, other)
    return None


def ge(a: Number, b: Number) -> Condition:
    """The condition that a size is at least another."""
    return _compared(">=", dim(a) - b)


def _compared(kind: Kind, size: Dim) -> Condition:
    charge(1 + len(size.terms) // PARTS_A_STEP)
    if not size.terms:
        return ALWAYS if holds(kind, size.const) else NEVER
    if kind == ">=":
        low, high = bounds(size)
        if low is not None and low >= 0:
            return ALWAYS
        if high is not None and high < 0:
            return NEVER
        divisor = math.gcd(*(factor for _, factor in size.terms))
        if divisor > 1:
            size = _divided(size, divisor)
        return _make(kind, size)
    answer = decide_zero(size)
    if answer is not Answer.UNKNOWN:
        return ALWAYS if (answer is Answer.YES) == (kind == "==") else NEVER
    divisor = math.gcd(size.const, *(factor for _, factor in size.terms))
    if size.terms[0][1] < 0:
        size = -size
    return _make(kind, size if divisor == 1 else _divided(size, divisor))


def _divided(size: Dim, divisor: int) -> Dim:
    """The size with every factor divided; its constant is rounded down."""
    return dim_of_terms(
        size.const // divisor, tuple((m, factor // divisor) for m, factor in size.terms)
    )


def holds(kind: str, number: int) -> bool:
    """Whether ``number kind 0``, for a comparison."""
    if kind == "==":
        return number == 0
    return number != 0 if kind == "!=" else number >= 0


def negation(condition: Condition) -> Condition:
    """The condition that another does not hold, for values at which its sizes exist.

    Where a size does not exist, ``==`` and ``!=`` are both false. `axioms.complement` negates for
    all values.
    """
    if condition.kind == "and":
        return any_of(map(negation, condition.parts))
    if condition.kind == "or":
        return all_of(map(negation, condition.parts))
    if condition.kind in ("true", "false"):
        return NEVER if condition.kind == "true" else ALWAYS
    if condition.kind == ">=":
        return _compared(">=", -condition.size - 1)
    return _make("!=" if condition.kind == "==" else "==", condition.size)


def all_of(conditions: Iterable[Condition]) -> Condition:
    """The condition that all of them hold."""
    return _joined("and", "false", conditions)


def any_of(conditions: Iterable[Condition]) -> Condition:
    """The condition that at least one holds."""
    return _joined("or", "true", conditions)


def _joined(kind: Literal["and", "or"], ends: str, conditions: Iterable[Condition]) -> Condition:
    parts: dict[Condition, None] = {}
    for condition in conditions:
        if condition.kind == ends:
            return condition
        if condition.kind == kind:
            parts.update(dict.fromkeys(condition.parts))
        elif condition.kind not in ("true", "false"):
            parts[condition] = None
    if not parts:
        return ALWAYS if kind == "and" else NEVER
    if len(parts) == 1:
        return next(iter(parts))
    charge(1 + len(parts) // PARTS_A_STEP)
    for condition in parts:
        if condition.kind == "!=" and _make("==", condition.size) in parts:
            return NEVER if kind == "and" else ALWAYS
    inner = "or" if kind == "and" else "and"
    # A and (A or B) is A; A or (A and B) is A.
    kept = [
        condition
        for condition in parts
        if condition.kind != inner or not any(part in parts for part in condition.parts)
    ]
    return _make(kind, _ZERO, tuple(kept)) if len(kept) > 1 else kept[0]


def order_of(condition: Condition) -> tuple[Any, ...]:
    """The sort key of conditions; equal conditions have equal keys."""
    try:
        return condition._order
    except AttributeError:
        parts = tuple(sorted(map(order_of, condition.parts)))
        condition._order = condition.kind, structure(condition.size), parts
        return condition._order


def in_order(condition: Condition) -> Condition:
    """The equal condition with its parts in an order that depends only on the parts."""
    if not condition.parts:
        return condition
    parts = tuple(sorted(map(in_order, condition.parts), key=order_of))
    return _make(condition.kind, condition.size, parts)


__all__ = [
    "ALWAYS",
    "NEVER",
    "Condition",
    "Decision",
    "all_of",
    "any_of",
    "eq",
    "ge",
    "in_order",
    "ne",
    "negation",
    "order_of",
]
