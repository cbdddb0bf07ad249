"""Simpler forms of conditions and sizes, equal where known facts hold."""

from __future__ import annotations

from collections.abc import Callable

from .atoms import Number, Symbol
from .budget import work
from .condition import ALWAYS, NEVER, Condition, all_of, any_of
from .dim import dim, plain
from .solve import excludes, implies
from .system import System


def pinned(size: Number, facts: Condition) -> Number:
    """The size with the equalities among the clauses of `facts` substituted.

    >>> import zerostride as zs
    >>> print(pinned(zs.Dim("2*N"), zs.Condition.parse("N == 3")))
    6
    """
    return pinning(facts)(size)


def pinning(facts: Condition) -> Callable[[Number], Number]:
    """A function as :func:`pinned`, for many sizes: the equalities are solved once."""
    system = System()
    waiting = [clause.size for clause in facts.clauses if clause.kind == "=="]
    for _ in range(len(waiting)):
        later = []
        for equation in waiting:
            work(len(system.values) // 2)  # each value is copied and looked at
            further = system.copy()
            if not further.assume("==", equation):
                return plain
            # 2*N == 3*M is solved in terms of an invented symbol; a later clause N == 3 may give a
            # number.
            if _invented(further):
                later.append(equation)
            else:
                system = further
        if len(later) == len(waiting):
            break
        waiting = later

    def reduced(size: Number) -> Number:
        try:
            return plain(system.reduced(dim(size)))
        except OverflowError:
            return size

    return reduced


def _invented(system: System) -> bool:
    """Whether the solution uses symbols that the solver invented."""
    atoms = (atom for v in system.values.values() for m, _ in v.terms for atom in m)
    return any(isinstance(atom, Symbol) and atom.low is None for atom in atoms)


#: Clauses that are compared with one another; beyond it, each is simplified alone.
MAX_CLAUSES = 10
#: Clauses that are simplified at all: forty names on one axis make 780, already in simplest form.
MAX_SIMPLIFIED = 48


def simplified(condition: Condition, facts: Condition = ALWAYS) -> Condition:
    """An equal condition (where `facts` hold) without redundant and impossible parts."""
    if condition.kind in ("true", "false"):
        return condition
    if max(len(condition), len(condition.parts)) > MAX_SIMPLIFIED:
        return all_of(clause for clause in condition.clauses if clause not in facts.clauses)
    if implies(facts, condition):
        return ALWAYS
    if excludes(facts, condition):
        return NEVER
    clauses = list(condition.clauses)
    if len(clauses) > MAX_CLAUSES:
        return all_of(_simpler_clause(clause, facts) for clause in clauses)
    for position in range(len(clauses)):
        others = all_of([facts, *clauses[:position], *clauses[position + 1 :]])
        clauses[position] = _simpler_clause(clauses[position], others)
    position = 0
    while position < len(clauses):
        others = all_of([facts, *clauses[:position], *clauses[position + 1 :]])
        if implies(others, clauses[position]):
            del clauses[position]
        else:
            position += 1
    return all_of(clauses)


def _simpler_clause(clause: Condition, facts: Condition) -> Condition:
    if clause.kind != "or" or len(clause.parts) > MAX_SIMPLIFIED:
        return clause
    parts = [
        simplified(part, facts) if part.kind == "and" else part
        for part in clause.parts
        if not excludes(facts, part)
    ]
    parts = _without_implied(parts, facts)
    whole = any_of(parts)
    wider = [_wider_part(part, whole, facts) for part in parts]
    return any_of(parts if wider == parts else _without_implied(wider, facts))


def _without_implied(parts: list[Condition], facts: Condition) -> list[Condition]:
    """Alternatives without those that others contain together."""
    position = 0
    while position < len(parts):
        others = parts[:position] + parts[position + 1 :]
        if others and implies(all_of([facts, parts[position]]), any_of(others)):
            parts = others
        else:
            position += 1
    return parts


def _wider_part(part: Condition, whole: Condition, facts: Condition) -> Condition:
    """A part without literals that others make redundant: A or not A and B is A or B."""
    literals = list(part.clauses)
    for clause in part.clauses if part.kind == "and" else ():
        fewer = [other for other in literals if other is not clause]
        if fewer and implies(all_of([facts, *fewer]), whole):
            literals = fewer
    return all_of(literals)


__all__ = ["pinned", "simplified"]
