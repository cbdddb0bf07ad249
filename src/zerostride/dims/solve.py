"""Floor 0: what decides a :class:`Condition`: values for which it holds, or none; bounds of a size.

A conjunction is a :class:`.system.System`; a disjunction is solved part by part. Where a system is
not exact, *yes* still comes with values that were checked and *no* with a proof; what is neither is
*unknown*.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence

from .condition import ALWAYS, NEVER, Condition, Decision, all_of, any_of, eq, ge, negation
from .dim import Atom, Call, Dim, Interval, Number, Symbol, bounds, calls, dim, of_atom
from .sizes import Answer
from .system import MAX_STEPS, GivenUpError, System, value_at


class _Budget:
    """Counts steps of one question."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = MAX_STEPS

    def spend(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise GivenUpError


def _solutions(
    conditions: Sequence[Condition], system: System, budget: _Budget
) -> Iterator[System]:
    """Systems of which every solution of all conditions solves one, and nothing else does."""
    waiting = list(conditions)
    choices: list[Condition] = []
    while waiting:
        condition = waiting.pop()
        if condition.kind == "or":
            choices.append(condition)
        elif condition.kind == "and":
            waiting += condition.parts
        elif condition.kind != "true":
            budget.spend()
            if condition.kind == "false" or not system.assume(condition.kind, condition.size):
                return
    if not choices:
        yield system
        return
    open_parts = [[p for p in choice.parts if _possible(p, system)] for choice in choices]
    position = min(range(len(choices)), key=lambda k: len(open_parts[k]))
    remaining = choices[:position] + choices[position + 1 :]
    for part in open_parts[position]:
        yield from _solutions([part, *remaining], system.copy(), budget)


def _possible(condition: Condition, system: System) -> bool:
    """A quick look at whether a part contradicts the system."""
    if condition.parts or condition.kind in ("true", "false"):
        return condition.kind != "false"
    size = system.reduced(condition.size)
    low, high = system.interval(size)
    if condition.kind == "==":
        return (low is None or low <= 0) and (high is None or high >= 0)
    if condition.kind == "!=":
        return not low == 0 == high
    return high is None or high >= 0


def axioms(sizes: Iterable[Number]) -> Condition:
    """What the functions in these sizes mean, as far as formulas can say it.

    Left unsaid, and so taken to be any number in their bounds: a quotient by a symbol.
    """
    found = dict.fromkeys(call for size in sizes for call in calls(dim(size)))
    return all_of(map(_axiom, found))


def _axiom(call: Call) -> Condition:
    size = of_atom(call)
    if call.function == "bcast":
        return all_of(
            [
                any_of(eq(size, argument) for argument in call.arguments),
                *(any_of([eq(a, 1), eq(a, size)]) for a in call.arguments),
            ]
        )
    if call.function in ("max", "min"):
        sign = 1 if call.function == "max" else -1
        return all_of(
            [
                any_of(eq(size, argument) for argument in call.arguments),
                *(ge((size - a) * sign, 0) for a in call.arguments),
            ]
        )
    if call.function == "choose":
        before: list[Condition] = []
        ways = []
        for condition, value in call.arguments:
            ways.append(all_of([*map(negation, before), condition, eq(size, value)]))
            before.append(condition)
        return any_of(ways)
    whole, divisor = call.arguments
    if divisor.terms:
        return ge(divisor, 1)
    return all_of(
        [ge(whole - size * divisor.const, 0), ge(size * divisor.const + divisor.const - 1, whole)]
    )


def _complete(sizes: Iterable[Number]) -> bool:
    """Whether the axioms say all there is to say."""
    return not any(
        call.function == "floordiv" and call.arguments[1].terms
        for size in sizes
        for call in calls(dim(size))
    )


def _all_sizes(*conditions: Condition) -> list[Dim]:
    return [size for condition in conditions for size in condition.sizes()]


@functools.lru_cache(1 << 14)
def satisfiable(condition: Condition) -> Answer:
    """Whether there are values for which it holds."""
    if condition.kind in ("true", "false"):
        return Answer.YES if condition.kind == "true" else Answer.NO
    found = _find(condition)
    return found if isinstance(found, Answer) else Answer.YES


def values_for(condition: Condition, symbols: Iterable[Symbol] = ()) -> dict[Symbol, int] | None:
    """Values for which a condition holds, checked; None where none were found.

    Args:
        condition: what must hold.
        symbols: symbols that need a value too.
    """
    found = _find(condition)
    if isinstance(found, Answer):
        return None
    for turn, symbol in enumerate(symbols):
        if symbol not in found:
            low, high = symbol.low, symbol.high
            pleasant = max(low, 2 + turn)
            found[symbol] = pleasant if high is None else min(pleasant, high)
    return found


def _find(condition: Condition) -> dict[Symbol, int] | Answer:
    """Values of its symbols for which a condition holds; NO if there are none, or UNKNOWN."""
    sizes = _all_sizes(condition)
    meaning = axioms(sizes)
    symbols = list(dict.fromkeys(s for size in sizes for s in size.symbols))
    unsure = not _complete(sizes)
    try:
        for system in _solutions([condition, meaning], System(), _Budget()):
            model = system.model()
            if model is None:
                unsure = unsure or not system.exact
                continue
            values = _symbol_values(system, symbols, model)
            if values is not None and condition.evaluate(values):
                return values
            unsure = True
    except GivenUpError:
        return Answer.UNKNOWN
    return Answer.UNKNOWN if unsure else Answer.NO


def _symbol_values(
    system: System, symbols: Sequence[Symbol], model: Mapping[Atom, int]
) -> dict[Symbol, int] | None:
    """Values of the symbols from those of the free atoms; the remaining ones are chosen."""
    chosen = dict(model)
    values: dict[Symbol, int] = {}
    for turn, symbol in enumerate(symbols, start=1):
        value = system.values.get(symbol, of_atom(symbol))
        for monomial, _ in value.terms:
            for atom in monomial:
                if atom not in chosen:
                    options = system.candidates(atom, 1, turn)
                    if not options:
                        return None
                    chosen[atom] = options[0]
        values[symbol] = value_at(value, chosen)
        if values[symbol] < symbol.low or (
            symbol.high is not None and values[symbol] > symbol.high
        ):
            return None
    return values


def implies(given: Condition, condition: Condition) -> bool:
    """Whether a condition certainly holds wherever `given` does."""
    if condition.always or condition in given.clauses:
        return True
    return satisfiable(all_of([given, negation(condition)])) is Answer.NO


def excludes(given: Condition, condition: Condition) -> bool:
    """Whether a condition certainly holds nowhere where `given` does."""
    if condition.never:
        return True
    return satisfiable(all_of([given, condition])) is Answer.NO


def decide(condition: Condition, given: Condition | None = None) -> Decision:
    """Whether it holds for all values that `given` allows, for none, or for some; and why."""
    known = ALWAYS if given is None else given
    holds, fails = all_of([known, condition]), all_of([known, negation(condition)])
    can_hold, can_fail = satisfiable(holds), satisfiable(fails)
    where = "" if known.always else f" where {known}"
    if can_fail is Answer.NO:
        return Decision(Answer.YES, f"for all values{where}")
    if can_hold is Answer.NO:
        return Decision(Answer.NO, f"for no values{where}")
    if Answer.UNKNOWN in (can_hold, can_fail):
        return Decision(Answer.UNKNOWN, f"{condition} is beyond what is decided here{where}")
    symbols = dict.fromkeys((*condition.symbols, *known.symbols))
    yes, no = values_for(holds, symbols), values_for(fails, symbols)
    return Decision(
        Answer.UNKNOWN, f"it holds for {listing(yes or {})}, not for {listing(no or {})}"
    )


def listing(values: Mapping[Symbol, int]) -> str:
    """Values of symbols in words.

    >>> listing({Symbol("N"): 2})
    'N=2'
    """
    return ", ".join(f"{symbol.name}={value}" for symbol, value in values.items()) or "all values"


@functools.lru_cache(1 << 12)
def bounds_under(size: Dim, given: Condition) -> Interval:
    """Least and greatest value of a size over all values for which `given` holds."""
    everywhere = bounds(size)
    low: int | None = None
    high: int | None = None
    found = False
    low_open = high_open = False
    meaning = axioms([size, *_all_sizes(given)])
    try:
        for system in _solutions([given, meaning], System(), _Budget()):
            ends = system.extremes(size)
            if ends is None:
                continue
            found = True
            if ends[0] is None:
                low_open = True
            elif low is None or ends[0] < low:
                low = ends[0]
            if ends[1] is None:
                high_open = True
            elif high is None or ends[1] > high:
                high = ends[1]
            if high_open and (low_open or low == everywhere[0]):
                break
    except GivenUpError:
        return everywhere
    if not found:
        return everywhere
    return None if low_open else low, None if high_open else high


def pinned(size: Number, given: Condition) -> Number:
    """The size with what the clauses of `given` that are equalities say put in.

    >>> import zerostride as zs
    >>> print(pinned(zs.Dim("2*N"), zs.Condition.parse("N == 3")))
    6
    """
    size = dim(size)
    system = System()
    for clause in given.clauses:
        if clause.kind == "==" and not system.assume("==", clause.size):
            return size
    reduced = system.reduced(size)
    return reduced if reduced.terms else reduced.const


def simplified(condition: Condition, given: Condition = ALWAYS) -> Condition:
    """An equal condition (where `given` holds) without what is said twice or cannot be."""
    if condition.kind in ("true", "false"):
        return condition
    if implies(given, condition):
        return ALWAYS
    if excludes(given, condition):
        return NEVER
    clauses = list(condition.clauses)
    for position in range(len(clauses)):
        others = all_of([given, *clauses[:position], *clauses[position + 1 :]])
        clauses[position] = _simpler_clause(clauses[position], others)
    position = 0
    while position < len(clauses):
        others = all_of([given, *clauses[:position], *clauses[position + 1 :]])
        if implies(others, clauses[position]):
            del clauses[position]
        else:
            position += 1
    return all_of(clauses)


def _simpler_clause(clause: Condition, given: Condition) -> Condition:
    if clause.kind != "or":
        return clause
    parts = [
        simplified(part, given) if part.kind == "and" else part
        for part in clause.parts
        if not excludes(given, part)
    ]
    position = 0
    while position < len(parts):
        others = parts[:position] + parts[position + 1 :]
        if others and implies(all_of([given, parts[position]]), any_of(others)):
            parts = others
        else:
            position += 1
    return any_of(parts)


__all__ = [
    "System",
    "axioms",
    "bounds_under",
    "decide",
    "excludes",
    "implies",
    "listing",
    "pinned",
    "satisfiable",
    "simplified",
    "values_for",
]
