"""The meaning of the functions of sizes, as formulas that a solver can use.

A literal is false for values at which its size does not exist.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator

from .atoms import Applied, Number, calls
from .budget import process_cache
from .condition import ALWAYS, Condition, all_of, any_of, eq, equality, ge, negation
from .dim import Dim, dim, of_atom


def _may_fail(call: Applied) -> bool:
    """Whether an application may not exist for some values."""
    if call.function == "floordiv":
        divisor = call.arguments[1]
        return bool(divisor.terms) or divisor.const < 1
    return call.function in ("bcast", "choose")


def _has_calls(size: Dim) -> bool:
    return any(isinstance(atom, Applied) for monomial, _ in size.terms for atom in monomial)


def _partial(size: Dim) -> bool:
    return _has_calls(size) and any(map(_may_fail, calls(size)))


def _outer_calls(size: Dim) -> Iterator[Applied]:
    """The applications in a size, except those that only one case of a "choose" has."""
    for monomial, _ in size.terms:
        for atom in monomial:
            if isinstance(atom, Applied):
                yield atom
                if atom.function != "choose":
                    for argument in atom.arguments:
                        yield from _outer_calls(argument)


@process_cache(1 << 10)
def exists(size: Number) -> Condition:
    """The condition for a size to exist: sizes broadcast, divisors are not 0.

    >>> N, M = Dim("N"), Dim("M")
    >>> print(exists(N // M), exists(N * M))
    M >= 1 always
    """
    size = dim(size)
    return (
        all_of(map(_call_exists, dict.fromkeys(_outer_calls(size)))) if _partial(size) else ALWAYS
    )


def _call_exists(call: Applied) -> Condition:
    if not _may_fail(call):
        return ALWAYS
    if call.function == "bcast":
        return all_of(
            any_of([eq(a, b), eq(a, 1), eq(b, 1)])
            for a, b in itertools.combinations(call.arguments, 2)
        )
    if call.function == "choose":
        return any_of(all_of([_guarded(when), exists(value)]) for when, value in _cases(call))
    return ge(call.arguments[1], 1)


def _guarded(condition: Condition) -> Condition:
    """The condition, and that its literals exist: ``x == 0 or x != 0`` requires that x exists."""
    if condition.kind == "and":
        return all_of(map(_guarded, condition.parts))
    if condition.kind == "or":
        return any_of(map(_guarded, condition.parts))
    return all_of([condition, exists(condition.size)])


def _cases(call: Applied) -> Iterator[tuple[Condition, Number]]:
    """The cases of a "choose". They do not overlap."""
    before: list[Condition] = []
    for condition, value in call.arguments:
        yield all_of([*before, condition]), value
        before.append(complement(condition))


@process_cache(1 << 12)
def complement(condition: Condition) -> Condition:
    """The condition that another does not hold, whether or not its sizes exist.

    >>> from zerostride.sizes.condition import eq
    >>> print(complement(eq(Dim("N") // Dim("M"), 3)))
    N // M != 3 or M <= 0
    """
    if condition.kind == "and":
        return any_of(map(complement, condition.parts))
    if condition.kind == "or":
        return all_of(map(complement, condition.parts))
    if not _partial(condition.size):
        return negation(condition)
    return any_of([negation(condition), complement(exists(condition.size))])


@process_cache(1 << 10)
def meaning(size: Dim) -> Condition:
    """The condition that a size exists, with the meaning of its functions as far as formulas can
    express it.

    A quotient by a symbol has no formula; it may be any number within its bounds.
    """
    return all_of(map(_axiom, dict.fromkeys(_outer_calls(size))))


def _axiom(call: Applied) -> Condition:
    size = of_atom(call)
    if call.function == "bcast":
        return all_of(
            [
                any_of(equality(size, argument) for argument in call.arguments),
                *(any_of([eq(a, 1), equality(a, size)]) for a in call.arguments),
            ]
        )
    if call.function in ("max", "min"):
        sign = 1 if call.function == "max" else -1
        return all_of(
            [
                any_of(equality(size, argument) for argument in call.arguments),
                *(ge((size - a) * sign, 0) for a in call.arguments),
            ]
        )
    if call.function == "choose":
        return any_of(
            all_of([with_meanings(when), equality(size, value), meaning(dim(value))])
            for when, value in _cases(call)
        )
    whole, divisor = call.arguments
    if _may_fail(call):
        return ge(divisor, 1)
    return all_of(
        [ge(whole - size * divisor.const, 0), ge(size * divisor.const + divisor.const - 1, whole)]
    )


def with_meanings(condition: Condition) -> Condition:
    """The condition with the meaning of its functions, which may then be treated as symbols."""
    sizes = [size for size in dict.fromkeys(condition.sizes()) if _has_calls(size)]
    if not sizes:
        return condition
    # A size that exists wherever the condition holds is explained once, the others where needed.
    clauses = {*condition.clauses}
    literals = {clause.size for clause in clauses if not clause.parts}
    everywhere = [
        size for size in sizes if size in literals or clauses.issuperset(exists(size).clauses)
    ]
    return all_of([_with_meanings(condition, everywhere), *map(meaning, everywhere)])


def _with_meanings(condition: Condition, explained: Collection[Dim]) -> Condition:
    if condition.kind == "and":
        return all_of(_with_meanings(part, explained) for part in condition.parts)
    if condition.kind == "or":
        return any_of(_with_meanings(part, explained) for part in condition.parts)
    if condition.size in explained or not _has_calls(condition.size):
        return condition
    return all_of([condition, meaning(condition.size)])
