"""A model's conditions on its sizes, collected in order, each once."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from ..errors import printable
from ..sizes.condition import Condition, all_of, any_of, eq, ge
from ..sizes.dim import Applied, Dim, Number, Symbol, dim, lone_call, lone_symbol, of_atom, plain
from ..sizes.functions import broadcast_size, maximum, minimum
from ..sizes.simplify import simplified
from ..sizes.solve import excludes, implies

#: Questions to the solver for one model. Real models have about ten different needs. Beyond the
#: limit a need is only compared with recorded clauses for equality.
MAX_QUESTIONS = 400
#: Clauses and symbols in one question. Fewer premises are safe.
MAX_PREMISES = 12
MAX_SYMBOLS = 6
#: Clauses of one need for which the solver is used; in longer needs each is compared for equality.
MAX_CLAUSES = 48
#: The last clauses of a symbol that are searched: a batch size is in thousands of clauses.
MAX_ABOUT = 32
#: Arguments of one maximum or broadcast that are compared with each other.
MAX_CHOICES = 8


@dataclass(frozen=True, slots=True)
class Need:
    """A condition on sizes that a node needs.

    Attributes:
        node_path: the node, with the bodies that it is in.
        op: its op type.
        condition: the condition, without the parts that earlier needs imply.
        words: the reason.
        certain: the node runs in every run of the model; not so in branches and loops.
    """

    node_path: str
    op: str
    condition: Condition
    words: str
    certain: bool = True

    def __str__(self) -> str:
        return f"{printable(self.node_path)}: needs {self.condition} ({self.words})"


@dataclass(frozen=True, slots=True)
class Failure:
    """A node that fails for all sizes.

    Attributes:
        node_path: the node, with the bodies that it is in.
        op: its op type.
        words: the reason.
        certain: the node runs in every run of the model.
    """

    node_path: str
    op: str
    words: str
    certain: bool = True

    def __str__(self) -> str:
        return f"{printable(self.node_path)}: {self.words}"


class Ledger:
    """The clauses that hold at the current node of the walk.

    Attributes:
        spent: number of questions to the solver.
        state: changes when the set of clauses changes.
    """

    def __init__(self, assumed: Condition) -> None:
        self.spent = 0
        self.state = 0
        self._changes = itertools.count(1)
        self._clauses: list[tuple[Condition, frozenset[Symbol]]] = []
        self._positions: dict[Condition, int] = {}
        self._about_symbol: dict[Symbol, list[int]] = {}
        self._ones: dict[tuple[Number, int], Number] = {}
        self.learn(assumed.clauses)

    def learn(self, clauses: Iterable[Condition]) -> None:
        """Adds clauses."""
        for clause in clauses:
            if clause not in self._positions:
                for symbol in clause.symbols:
                    self._about_symbol.setdefault(symbol, []).append(len(self._clauses))
                self._positions[clause] = len(self._clauses)
                self._clauses.append((clause, frozenset(clause.symbols)))
                self.state = next(self._changes)

    def mark(self) -> int:
        """The current position, for :meth:`forget`."""
        return len(self._clauses)

    def forget(self, mark: int) -> None:
        """Removes the clauses learned after a mark: a body's clauses hold only in the body."""
        if mark < len(self._clauses):
            self.state = next(self._changes)
        for clause, symbols in self._clauses[mark:]:
            del self._positions[clause]
            for symbol in symbols:
                rows = self._about_symbol[symbol]
                while rows and rows[-1] >= mark:
                    rows.pop()
        del self._clauses[mark:]

    def fresh(self, condition: Condition) -> Condition | None:
        """The part of a condition that is not known yet (perhaps empty); None if it cannot hold.

        The ledger learns that part.
        """
        if condition.never:
            return None
        unproven = []
        weighed = len(condition) <= MAX_CLAUSES
        for clause in condition.clauses:
            if clause in self._positions:
                continue
            if weighed and self.spent < MAX_QUESTIONS and len(clause.symbols) <= MAX_SYMBOLS:
                premises = self._about(clause)
                self.spent += 1
                if implies(premises, clause):
                    # Without symbols, so `_about` never uses it as a premise: it adds nothing.
                    self._positions[clause] = len(self._clauses)
                    self._clauses.append((clause, frozenset()))
                    continue
                if excludes(premises, clause):
                    return None
                if not premises.always:
                    clause = simplified(clause, premises)
            unproven.append(clause)
            self.learn(clause.clauses)
        return all_of(unproven)

    def one_of(self, size: Number) -> Number:
        """For a broadcast of sizes, the argument that it is known to equal; else the size."""
        call = lone_call(size) if isinstance(size, Dim) else None
        if call is None or call.function != "bcast" or len(call.arguments) > MAX_CHOICES:
            return size
        key = (size, self.state)
        if key not in self._ones:
            simple_first = sorted(call.arguments, key=lambda size: lone_symbol(size) is None)
            equal = (
                plain(argument) for argument in simple_first if self.implies(eq(size, argument))
            )
            self._ones[key] = next(equal, size)
        return self._ones[key]

    def implies(self, condition: Condition) -> bool:
        """Whether a condition is known to hold."""
        if condition.always or condition in self._positions:
            return True
        if condition.never or len(condition.symbols) > MAX_SYMBOLS:
            return False
        for clause in condition.clauses:
            if self.spent >= MAX_QUESTIONS:
                return False
            self.spent += 1
            if not implies(self._about(clause), clause):
                return False
        return True

    def _about(self, condition: Condition) -> Condition:
        """The clauses that share symbols with a condition, directly or through others."""
        symbols = dict.fromkeys(condition.symbols)
        rows: dict[int, None] = {}
        waiting = list(symbols)
        for symbol in waiting:  # the loop appends to it
            for row in self._about_symbol.get(symbol, ())[-MAX_ABOUT:]:
                more = self._clauses[row][1] - symbols.keys()
                if row in rows or len(symbols) + len(more) > MAX_SYMBOLS:
                    continue
                if len(rows) == MAX_PREMISES:
                    return self._all(rows)
                rows[row] = None
                new = [other for other in self._clauses[row][0].symbols if other in more]
                symbols.update(dict.fromkeys(new))
                waiting += new
        return self._all(rows)

    def _all(self, rows: Iterable[int]) -> Condition:
        """The clauses of these rows, in the order in which they were learned."""
        return all_of(self._clauses[row][0] for row in sorted(rows))


#: The functions that choose one of their arguments.
_CHOICES = ("max", "min", "bcast")


def undecided(size: object) -> bool:
    """Whether a size contains a max, min or broadcast."""
    return isinstance(size, Dim) and any(
        isinstance(atom, Applied) and atom.function in _CHOICES
        for monomial, _ in size.terms
        for atom in monomial
    )


def decided(size: Number, holds: Callable[[Condition], bool]) -> Number:
    """A size with each max, min and broadcast replaced by its argument, if `holds` decides it."""
    total: Number = 0
    size = dim(size)
    for monomial, factor in size.terms:
        product: Number = factor
        for atom in monomial:
            whole = of_atom(atom)
            product = product * (_choice(atom, holds) if undecided(whole) else whole)
        total = total + product
    return plain(total + size.const)


def _choice(atom: Any, holds: Callable[[Condition], bool]) -> Number:
    if len(atom.arguments) > MAX_CHOICES:
        return of_atom(atom)
    kept = list(atom.arguments)
    for size in atom.arguments:
        others = [other for other in kept if other is not size]
        if others and any(holds(_gives_way(atom.function, size, other)) for other in others):
            kept = others
    whole = len(kept) == len(atom.arguments)
    return of_atom(atom) if whole else FUNCTION_OF[atom.function](*kept)


def _gives_way(function: str, size: Dim, other: Dim) -> Condition:
    """The condition under which `size` can be dropped beside `other`."""
    if function == "bcast":
        return any_of([eq(size, other), eq(size, 1)])
    return ge(other, size) if function == "max" else ge(size, other)


FUNCTION_OF: Mapping[str, Callable[..., Number]] = MappingProxyType(
    {"max": maximum, "min": minimum, "bcast": broadcast_size}
)

__all__ = ["Failure", "Ledger", "Need", "decided", "undecided"]
