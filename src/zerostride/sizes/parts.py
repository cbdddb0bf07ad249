"""Makes a question about sizes smaller before it is solved.

Clauses that share no symbol are separate questions. A quotient by a number is split into one case
for each remainder: with ``H = 4*k + r`` every ``(H + 1) // 4`` is linear in ``k``. Simple values
(small numbers, and multiples of the divisors) are tried first and often answer without solving.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from .atoms import Symbol, calls
from .condition import NEVER, Condition, all_of, any_of, negation
from .dim import Dim, of_atom

#: Points at which a condition is tried: two symbols with twelve values each.
MAX_TRIES = 160
#: Combinations of remainders that are tried one by one: two symbols, each halved three times, have
#: 64.
MAX_REMAINDERS = 64
#: The largest multiple of divisors that is tried.
MAX_MULTIPLE = 1 << 14
#: Rounds of substituting literals into the disjunctions: each round may reveal another literal.
MAX_ROUNDS = 4


def thinned(condition: Condition) -> Condition:
    """The condition without parts that its own literals contradict or make redundant."""
    for _ in range(MAX_ROUNDS):
        if condition.kind != "and":
            return condition
        literals = {clause for clause in condition.parts if not clause.parts}
        clauses = [_without(clause, literals) for clause in condition.parts]
        if all(new is old for new, old in zip(clauses, condition.parts, strict=True)):
            return condition
        condition = all_of(clauses)
    return condition


def _without(clause: Condition, literals: set[Condition]) -> Condition:
    if clause.kind != "or":
        return clause
    parts = []
    for part in clause.parts:
        if not literals.isdisjoint(map(negation, part.clauses)):
            continue
        rest = [literal for literal in part.clauses if literal not in literals]
        parts.append(part if len(rest) == len(part) else all_of(rest))
    same = len(parts) == len(clause.parts) and all(map(lambda a, b: a is b, parts, clause.parts))
    return clause if same else any_of(parts)


class _Group:
    """Clauses that are connected by symbols; `turn` is the position of the last one."""

    __slots__ = ("clauses", "symbols", "turn")

    def __init__(self, turn: int, clause: Condition) -> None:
        self.turn = turn
        self.symbols: set[Symbol] = set()
        self.clauses = [clause]


def separate(condition: Condition) -> list[Condition]:
    """The parts of a conjunction that share no symbol, those with few symbols first."""
    groups: dict[int, _Group] = {}
    group_of: dict[Symbol, _Group] = {}
    for turn, clause in enumerate(condition.clauses):
        touched = {group_of[s].turn: group_of[s] for s in clause.symbols if s in group_of}
        joined = _Group(turn, clause)
        joined.symbols.update(clause.symbols)
        for earlier in sorted(touched):
            joined = _merged(joined, groups.pop(earlier), group_of)
        joined.turn = turn
        groups[turn] = joined
        group_of.update((symbol, joined) for symbol in clause.symbols)
    # Equal keys keep their order.
    ordered = sorted(groups.values(), key=lambda group: (len(group.symbols), len(group.clauses)))
    return [all_of(group.clauses) for group in ordered]


def _merged(group: _Group, earlier: _Group, group_of: dict[Symbol, _Group]) -> _Group:
    """Both groups as one, the clauses of `earlier` first; the symbols of fewer are moved."""
    small, large = sorted((group, earlier), key=lambda each: len(each.symbols))
    large.clauses = [*earlier.clauses, *group.clauses]
    large.symbols |= small.symbols
    group_of.update(dict.fromkeys(small.symbols, large))
    return large


# Points.


#: Symbols of a condition for which values are tried.
_MOST_SYMBOLS = 200


def points(condition: Condition) -> Iterator[dict[Symbol, int]]:
    """Values for the symbols of a condition, small ones first."""
    symbols = condition.symbols
    steps = divisors(condition)
    alone: dict[Symbol, list[int]] = {}
    for size in condition.sizes():
        single = len(size.terms) == 1
        for (atom, *more), factor in size.terms:
            if isinstance(atom, Symbol) and not more:
                value = -size.const // factor
                near = (value, value + 1, value - 1) if single else (value,)
                alone.setdefault(atom, []).extend(near)
    values = [
        _candidates(symbol, steps.get(symbol, 1), alone.get(symbol, ())) for symbol in symbols
    ]
    if not all(values) or len(values) > _MOST_SYMBOLS:
        return
    most = sum(len(some) - 1 for some in values)
    tried = 0
    for total in range(most + 1):
        for places in _summing([len(some) for some in values], total):
            if tried == MAX_TRIES:
                return
            tried += 1
            yield {s: some[k] for s, some, k in zip(symbols, values, places, strict=True)}


def _candidates(symbol: Symbol, step: int, special: Iterable[int]) -> list[int]:
    """Values of one symbol that are worth trying."""
    numbers = [1, 2, step, 3, 2 * step, step + 1, 3 * step, *special, 4, 5, 8, 16, 64, 0]
    high = symbol.high
    fitting = [n for n in numbers if n >= symbol.low and (high is None or n <= high)]
    ends = [symbol.low, symbol.low + step - symbol.low % step]
    return list(dict.fromkeys([*fitting, *(n for n in ends if high is None or n <= high)]))


def _summing(lengths: Sequence[int], total: int) -> Iterator[tuple[int, ...]]:
    """Indices into lists of these lengths that add up to a total."""
    if not lengths:
        if total == 0:
            yield ()
        return
    rest = sum(length - 1 for length in lengths[1:])
    for first in range(max(0, total - rest), min(total, lengths[0] - 1) + 1):
        for places in _summing(lengths[1:], total - first):
            yield (first, *places)


# Remainders.


def divisors(condition: Condition) -> dict[Symbol, int]:
    """For each divided symbol, the least common multiple of its divisors."""
    steps: dict[Symbol, int] = {}
    for size in condition.sizes():
        for call in calls(size):
            divisor = call.arguments[1].constant if call.function == "floordiv" else None
            if divisor is not None and divisor > 1:
                for symbol in call.arguments[0].symbols:
                    steps[symbol] = min(math.lcm(steps.get(symbol, 1), divisor), MAX_MULTIPLE)
    return steps


def by_remainder(
    condition: Condition,
) -> Iterator[tuple[Condition, Mapping[Symbol, tuple[int, int]]]]:
    """The condition for each combination of remainders, with the meaning of its symbols then.

    A symbol ``s`` with ``(m, r)`` stands for the quotient: its old value is ``m*s + r``. Nothing is
    yielded if there are too many remainders, or if quotients by something else remain.
    """
    steps = divisors(condition)
    if not steps or math.prod(steps.values()) > MAX_REMAINDERS:
        return
    for rests in itertools.product(*(range(step) for step in steps.values())):
        remainders = dict(zip(steps, zip(steps.values(), rests, strict=True), strict=True))
        values: dict[Symbol, int | Dim] = {}
        empty = False
        for symbol, (step, rest) in remainders.items():
            low = -((rest - symbol.low) // step)
            high = None if symbol.high is None else (symbol.high - rest) // step
            empty = empty or (high is not None and high < low)
            values[symbol] = of_atom(Symbol(symbol.name, low, high, symbol.named)) * step + rest
        yield (NEVER if empty else condition.substitute(values)), remainders


__all__ = ["by_remainder", "points", "separate", "thinned"]
