"""Decides a :class:`Condition`: values for which it holds, a proof that there are none, bounds.

A conjunction is a :class:`.system.System`; a disjunction is solved part by part. *Yes* always
comes with checked values and *no* with a proof; every other answer is *unknown*.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from .atoms import Atom, Interval, Symbol, bounds
from .axioms import complement, exists, meaning, with_meanings
from .budget import (
    MAX_STEPS,
    PARTS_A_STEP,
    POOR_STEPS,
    Budget,
    GivenUpError,
    allowance,
    answer_cache,
    charge,
    overdrawn,
    process_cache,
    used_up,
)
from .condition import ALWAYS, Condition, Decision, all_of, in_order, order_of
from .dim import Dim, of_atom
from .parts import by_remainder, points, separate, thinned
from .shapes import Answer
from .system import System, value_at


def _solutions(condition: Condition, budget: Budget) -> Iterator[System]:
    """Systems whose solutions together are exactly the solutions of a condition."""
    ways = [([condition], System())]
    while ways:
        waiting, parent = ways.pop()
        system = parent.copy()
        choices = _assumed(waiting, system, budget)
        if choices is None:
            continue
        open_parts = []
        remaining = []
        for choice in choices:
            answers = [_answer(part, system) for part in choice.parts]
            if True not in answers:
                parts = zip(choice.parts, answers, strict=True)
                open_parts.append([part for part, answer in parts if answer is None])
                remaining.append(choice)
        budget.spend(1 + sum(choice.weight for choice in choices) // 4)
        if not remaining:
            yield system
            continue
        position = min(range(len(remaining)), key=lambda k: len(open_parts[k]))
        del remaining[position]
        for part in reversed(open_parts[position]):
            ways.append(([part, *remaining], system))


def _assumed(waiting: list[Condition], system: System, budget: Budget) -> list[Condition] | None:
    """Puts literals into a system; returns the disjunctions that remain.

    None if something contradicts the system.
    """
    choices: list[Condition] = []
    while waiting:
        condition = waiting.pop()
        if condition.kind == "or":
            choices.append(condition)
        elif condition.kind == "and":
            waiting += condition.parts
        elif condition.kind != "true":
            before = system.spent
            if condition.kind == "false" or not system.assume(condition.kind, condition.size):
                budget.spend(1)
                return None
            budget.spend(system.spent - before)
    return choices


def _answer(condition: Condition, system: System) -> bool | None:
    """A quick check whether a part follows from the system, or contradicts it."""
    if condition.parts or condition.kind in ("true", "false"):
        return False if condition.kind == "false" else None
    size = system.reduced(condition.size)
    low, high = system.interval(size)
    if condition.kind == ">=":
        if low is not None and low >= 0:
            return True
        return False if high is not None and high < 0 else None
    if (low is not None and low > 0) or (high is not None and high < 0):
        return condition.kind == "!="
    return condition.kind == "==" if low == 0 == high else None


#: Points of a box that are all tried.
_MOST_POINTS = 1000
#: Steps of a part of a condition before a value is tried: 30 to 40 microseconds.
_STEPS_A_PART = 3


def satisfiable(condition: Condition) -> Answer:
    """Whether there are values for which it holds; independent of the order of its clauses."""
    if condition.kind in ("true", "false"):
        return Answer.YES if condition.kind == "true" else Answer.NO
    if used_up():
        # An answer that lack of allowance left unknown is not cached.
        if overdrawn():
            return Answer.UNKNOWN
        answer, steps = _poorly(condition)
    else:
        answer, steps = _satisfiable(condition)
    charge(steps, condition)
    return answer


def _searched(condition: Condition, limit: int = MAX_STEPS) -> tuple[Answer, int]:
    """The answer and the steps that it took."""
    budget = Budget(limit)
    # Walking a condition takes steps too; a condition over the limit is not walked.
    if condition.weight // 4 > limit:
        return Answer.UNKNOWN, 1
    model = _find(in_order(condition), budget, quick=True)
    return model if isinstance(model, Answer) else Answer.YES, budget.spent


_satisfiable = process_cache(1 << 14)(_searched)


@answer_cache
def _poorly(condition: Condition) -> tuple[Answer, int]:
    """The same for a question after the allowance is used up."""
    return _searched(condition, POOR_STEPS)


def values_for(condition: Condition, symbols: Iterable[Symbol] = ()) -> dict[Symbol, int] | None:
    """Checked values for which a condition holds; None if none were found.

    Args:
        condition: the condition to satisfy.
        symbols: symbols that need a value too.
    """
    if overdrawn():
        return None
    budget = Budget()
    if condition.weight // 4 > budget.limit:
        return None
    values = _find(condition, budget)
    charge(budget.spent)
    if isinstance(values, Answer):
        return None
    for turn, symbol in enumerate(symbols):
        if symbol not in values:
            low, high = symbol.low, symbol.high
            pleasant = max(low, 2 + turn)
            values[symbol] = pleasant if high is None else min(pleasant, high)
    return values


def _find(
    condition: Condition, budget: Budget, *, quick: bool = False
) -> dict[Symbol, int] | Answer:
    """Values of its symbols for which a condition holds; NO if there are none, or UNKNOWN.

    Parts that share no symbols are solved separately: one part without solutions decides for all.

    Args:
        condition: the condition to satisfy.
        budget: how much work it may be.
        quick: any values will do; simple ones are not searched for.
    """
    values: dict[Symbol, int] = {}
    unsure = False
    budget.spent += 1 + condition.weight // 4
    condition = thinned(condition)
    if condition.never:
        return Answer.NO
    for part in separate(condition):
        budget.spent += _STEPS_A_PART
        model = _solve_part(part, budget, quick)
        if model is Answer.NO:
            return Answer.NO
        if isinstance(model, Answer):
            unsure = True
        else:
            values.update(model)
    if unsure:
        return Answer.UNKNOWN
    return {symbol: values[symbol] for symbol in condition.symbols}


def _solve_part(part: Condition, budget: Budget, quick: bool) -> dict[Symbol, int] | Answer:
    """The same for a connected part, by the cheapest way first.

    Light clauses come first: M == N is put into the others before these are taken apart.
    """
    if part.kind == "and":
        part = all_of(sorted(part.parts, key=lambda clause: (clause.weight, order_of(clause))))
    ways = [_tried, _solved] if quick else [_solved, _tried]
    for way in (*ways, _by_remainder, _in_a_box):
        # Half of the rest, so that later ways keep some.
        own = Budget((budget.limit - budget.spent + 1) // 2)
        try:
            model = way(part, own)
        except (GivenUpError, OverflowError):
            continue
        finally:
            budget.spent += own.spent
        if model is not Answer.UNKNOWN:
            return model
    return Answer.UNKNOWN


def _tried(part: Condition, budget: Budget) -> dict[Symbol, int] | Answer:
    """Simple values, or UNKNOWN."""
    cost = 1 + part.weight // 8
    for values in points(part):
        budget.spend(cost)
        if part.evaluate(values):
            return values
    return Answer.UNKNOWN


def _by_remainder(part: Condition, budget: Budget) -> dict[Symbol, int] | Answer:
    """Solutions for one of the remainders; NO if all have none."""
    model: dict[Symbol, int] | Answer = Answer.UNKNOWN
    cost = 1 + part.weight
    for case, remainders in by_remainder(part):
        budget.spend(cost)
        model = Answer.NO if case.never else _solved(case, budget)
        if not isinstance(model, Answer):
            names = {symbol.name: value for symbol, value in model.items()}
            values = {s: names.get(s.name, s.low) for s in part.symbols}
            for symbol, (step, rest) in remainders.items():
                quotient = names.get(symbol.name, -((rest - symbol.low) // step))
                values[symbol] = step * quotient + rest
            inside = all(_in_range(*pair) for pair in values.items())
            return values if inside and part.evaluate(values) else Answer.UNKNOWN
        if model is Answer.UNKNOWN:
            return model
    return model


def _in_a_box(part: Condition, budget: Budget) -> dict[Symbol, int] | Answer:
    """All values of bounded symbols, if they are few; NO if none of them is a solution."""
    sides = [range(s.low, s.high + 1) for s in part.symbols if s.high is not None]
    if len(sides) < len(part.symbols) or math.prod(map(len, sides)) > _MOST_POINTS:
        return Answer.UNKNOWN
    cost = 1 + part.weight // 8
    for numbers in itertools.product(*sides):
        budget.spend(cost)
        values = dict(zip(part.symbols, numbers, strict=True))
        if part.evaluate(values):
            return values
    return Answer.NO


def _solved(part: Condition, budget: Budget) -> dict[Symbol, int] | Answer:
    """Solutions of its systems."""
    symbols = part.symbols
    unsure = False
    for system in _solutions(with_meanings(part), budget):
        before = system.spent
        model = system.model()
        budget.spend(system.spent - before)
        if model is None:
            unsure = unsure or not system.exact
            continue
        values = _symbol_values(system, symbols, model)
        if values is not None and part.evaluate(values):
            return values
        unsure = True
    return Answer.UNKNOWN if unsure else Answer.NO


def _symbol_values(
    system: System, symbols: Sequence[Symbol], model: Mapping[Atom, int]
) -> dict[Symbol, int] | None:
    """Values of the symbols from values of the free atoms; the remaining ones are chosen."""
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
        if not _in_range(symbol, values[symbol]):
            return None
    return values


def _in_range(symbol: Symbol, value: int) -> bool:
    return symbol.low <= value and (symbol.high is None or value <= symbol.high)


def implies(facts: Condition, condition: Condition) -> bool:
    """Whether a condition certainly holds wherever `facts` hold."""
    if condition.always or facts.has(condition):
        return True
    return compatible(facts, complement(condition)) is Answer.NO


def facts_about(facts: Condition, symbols: Iterable[Symbol]) -> Condition:
    """Those of the facts that are connected with some symbols."""
    parts = _parts(facts)
    return all_of(dict.fromkeys(parts[symbol] for symbol in symbols if symbol in parts))


def excludes(facts: Condition, condition: Condition) -> bool:
    """Whether a condition certainly holds nowhere where `facts` hold."""
    if condition.never:
        return True
    return compatible(facts, condition) is Answer.NO


def compatible(facts: Condition, condition: Condition) -> Answer:
    """Whether both can hold at once.

    Facts that share no symbol with the condition are a question of their own, asked once. So the
    work depends on the facts about the condition, and not on the number of all facts. The
    conjunction is built for each call, so it is charged for each call.
    """
    if overdrawn():
        return Answer.UNKNOWN
    parts = _parts(facts)
    about = dict.fromkeys(parts[s] for s in condition.symbols if s in parts)
    charge(1 + (sum(map(len, about)) + len(condition)) // PARTS_A_STEP)
    answer = satisfiable(all_of([*about, condition]))
    if answer is Answer.NO:
        return answer
    apart = [other for part, other in _doubtful(facts).items() if part not in about]
    if Answer.NO in apart:
        return Answer.NO
    return Answer.UNKNOWN if apart else answer


@process_cache(1 << 10)
def _parts(facts: Condition) -> Mapping[Symbol, Condition]:
    """For each symbol, the facts that are connected with it."""
    return {symbol: part for part in separate(facts) for symbol in part.symbols}


@answer_cache
def _doubtful(facts: Condition) -> Mapping[Condition, Answer]:
    """The separate parts of facts that do not certainly hold for some values."""
    answers = {part: satisfiable(part) for part in separate(facts)}
    return {part: answer for part, answer in answers.items() if answer is not Answer.YES}


def decide(condition: Condition, facts: Condition | None = None) -> Decision:
    """Whether it holds for all values that `facts` allow, for none, or for some; and why."""
    facts = ALWAYS if facts is None else facts
    holds, fails = all_of([facts, condition]), all_of([facts, complement(condition)])
    can_hold, can_fail = satisfiable(holds), satisfiable(fails)
    where = "" if facts.always else f" where {facts}"
    if can_fail is Answer.NO:
        return Decision(Answer.YES, f"for all values{where}")
    if can_hold is Answer.NO:
        return Decision(Answer.NO, f"for no values{where}")
    if Answer.UNKNOWN in (can_hold, can_fail):
        return Decision(Answer.UNKNOWN, f"{condition} is beyond what is decided here{where}")
    symbols = dict.fromkeys((*condition.symbols, *facts.symbols))
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


def bounds_under(size: Dim, facts: Condition) -> Interval:
    """Least and greatest value of a size over all values for which `facts` hold.

    Over all values, if the facts hold for none.
    """
    if overdrawn():
        return bounds(size)
    if used_up():
        ends, steps = _poor_bounds(size, facts)
    else:
        ends, steps = _bounds_under(size, facts)
    charge(steps, (size, facts))
    return ends


@answer_cache
def _poor_bounds(size: Dim, facts: Condition) -> tuple[Interval, int]:
    """The same for a question after the allowance is used up."""
    return _searched_bounds(size, facts, POOR_STEPS)


def _searched_bounds(size: Dim, facts: Condition, limit: int = MAX_STEPS) -> tuple[Interval, int]:
    """The ends and the steps that they took."""
    budget = Budget(limit)
    if facts.weight // 4 > limit:
        return bounds(size), 1
    try:
        ends = _ends(size, in_order(facts), budget)
    except (GivenUpError, OverflowError):
        ends = None
    return bounds(size) if ends is None else ends, budget.spent


_bounds_under = process_cache(1 << 12)(_searched_bounds)


def _ends(size: Dim, facts: Condition, budget: Budget) -> Interval | None:
    """Least and greatest value over the solutions; None if there are no solutions."""
    everywhere = bounds(size)
    low: int | None = None
    high: int | None = None
    bounded = False
    low_open = high_open = False
    mine = set(size.symbols)
    related = [p for p in separate(thinned(facts)) if not mine.isdisjoint(p.symbols)]
    for system in _solutions(all_of([*map(with_meanings, related), meaning(size)]), budget):
        ends = system.extremes(size)
        if ends is None:
            continue
        bounded = True
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
    if not bounded:
        return None
    # If a system is not exact, the size's own bounds may be tighter.
    if low_open or low is None or (everywhere[0] is not None and low < everywhere[0]):
        low = everywhere[0]
    if high_open or high is None or (everywhere[1] is not None and high > everywhere[1]):
        high = everywhere[1]
    return low, high


__all__ = [
    "System",
    "allowance",
    "bounds_under",
    "compatible",
    "complement",
    "decide",
    "excludes",
    "exists",
    "implies",
    "listing",
    "meaning",
    "satisfiable",
    "values_for",
]
