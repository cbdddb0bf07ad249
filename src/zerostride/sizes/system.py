"""A conjunction of literals over sizes, solved over whole numbers.

Equalities are eliminated by substitution, which leaves free symbols in intervals. Values for the
expressions that must not be 0 are then searched on a grid. The grid is complete: a product of t
linear factors that is not 0 everywhere is not 0 at some point of any grid with t + 1 values on each
side.

The result is exact as long as each remaining inequality has one symbol; `System.exact` says so.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

from .atoms import Atom, Interval, Symbol, Terms, atom_bounds
from .budget import MAX_STEPS, PARTS_A_STEP, GivenUpError
from .condition import holds
from .dim import Dim, dim, of_atom, weight_of

#: Steps that one literal may cause: inequalities can tighten one another by one without end.
MAX_STIR = 1000
#: Points of a grid that are tried, one atom after the other.
MAX_POINTS = 4096


class System:
    """A conjunction of literals that is being solved.

    Attributes:
        values: what eliminated atoms are, in terms of free ones.
        low, high: bounds of atoms as tightened so far.
        unequal: expressions that must not be 0.
        rest: literals that are not eliminated: they have several free atoms, or products.
        spent: steps taken.
    """

    __slots__ = ("high", "low", "rest", "spent", "unequal", "values")

    def __init__(self) -> None:
        self.values: dict[Atom, Dim] = {}
        self.low: dict[Atom, int | None] = {}
        self.high: dict[Atom, int | None] = {}
        self.unequal: list[Dim] = []
        self.rest: list[tuple[str, Dim]] = []
        self.spent = 0

    def copy(self) -> System:
        """An independent copy."""
        twin = System()
        twin.values = self.values.copy()
        twin.low = self.low.copy()
        twin.high = self.high.copy()
        twin.unequal = self.unequal.copy()
        twin.rest = self.rest.copy()
        twin.spent = self.spent
        return twin

    # Expressions of free atoms.

    def reduced(self, size: Dim) -> Dim:
        """The expression with eliminated atoms replaced."""
        values = self.values
        if not values or not any(atom in values for m, _ in size.terms for atom in m):
            return size
        total = dim(size.const)
        for monomial, factor in size.terms:
            part: Dim = dim(factor)
            for atom in monomial:
                part = part * values.get(atom, of_atom(atom))
            total = total + part
        return total

    def range_of(self, atom: Atom) -> Interval:
        """The interval of an atom as known so far."""
        if atom in self.low:
            return self.low[atom], self.high[atom]
        low, high = atom_bounds(atom)
        self.low[atom], self.high[atom] = low, high
        return low, high

    def interval(self, size: Dim) -> Interval:
        """The interval of an expression of free atoms, term by term."""
        low: int | None = size.const
        high: int | None = size.const
        for monomial, factor in size.terms:
            least, most = self._term(monomial, factor)
            low = None if low is None or least is None else low + least
            high = None if high is None or most is None else high + most
        return low, high

    def _term(self, monomial: Sequence[Atom], factor: int) -> Interval:
        """The interval of one term."""
        ends = self.range_of(monomial[0])
        for atom in monomial[1:]:
            ends = _times(ends, self.range_of(atom))
        least, most = (end if end is None else end * factor for end in ends)
        return (least, most) if factor > 0 else (most, least)

    # Assuming literals.

    def assume(self, kind: str, size: Dim) -> bool:
        """Adds ``size kind 0``; False if that contradicts the system.

        A literal that would take too long stays in `rest`: it is not lost, but the system is then
        not exact.
        """
        waiting = [(kind, size)]
        steps = 0
        while waiting:
            kind, size = waiting.pop()
            steps += 1 + len(size.terms) // 4
            try:
                size = self.reduced(size)
            except OverflowError:
                steps = MAX_STIR
            if steps >= MAX_STIR:
                self.rest += [*waiting, (kind, size)]
                break
            if kind == "==":
                fits = self._equal(size, waiting)
            else:
                fits = (self._unequal if kind == "!=" else self._at_least)(size, waiting)
            if not fits:
                return False
        self.spent += steps
        return True

    def _equal(self, size: Dim, waiting: list[tuple[str, Dim]]) -> bool:
        if not size.terms:
            return size.const == 0
        low, high = self.interval(size)
        if (low is not None and low > 0) or (high is not None and high < 0):
            return False
        factors = [factor for _, factor in size.terms]
        if size.const % math.gcd(*factors):
            return False
        products = {atom for m, _ in size.terms if len(m) > 1 for atom in m}
        linear = [(m[0], f) for m, f in size.terms if len(m) == 1 and m[0] not in products]
        for atom, factor in sorted(linear, key=self._priority):
            if abs(factor) == 1:
                return self._eliminate(atom, (of_atom(atom) * factor - size) * factor, waiting)
        if len(size.terms) == len(linear) == 1:
            atom, factor = linear[0]
            return self._eliminate(atom, dim(-size.const // factor), waiting)
        if len(size.terms) == len(linear) == 2:
            return self._parametrize(size, linear, waiting)
        if self._opposed("==", size):
            return False
        self.rest.append(("==", size))
        return True

    def _opposed(self, kind: str, size: Dim) -> bool:
        """Whether a known literal with the same terms, or the negated ones, contradicts this one.

        ``x - y >= 1`` and ``y - x >= 0``; ``x*y >= 1`` and ``x*y == 0``.
        """
        self.spent += len(self.rest) // (4 * PARTS_A_STEP)
        count = len(size.terms)
        for other_kind, other in self.rest:
            if len(other.terms) != count:
                continue
            if size.terms == other.terms:
                gap = size.const - other.const
                if (kind == "==" and gap > 0) or (other_kind == "==" and gap < 0):
                    return True
            elif _negated(size.terms, other.terms):
                total = size.const + other.const
                if total < 0 or (kind == other_kind == "==" and total):
                    return True
        return False

    def _priority(self, candidate: tuple[Atom, int]) -> bool:
        """Functions are eliminated before symbols, so that values of symbols determine the rest."""
        return isinstance(candidate[0], Symbol)

    def _parametrize(
        self, size: Dim, linear: Sequence[tuple[Atom, int]], waiting: list[tuple[str, Dim]]
    ) -> bool:
        """All solutions of ``a*x + b*y + c == 0`` in one new free number."""
        (x, a), (y, b) = linear
        divisor = math.gcd(a, b)
        a, b, c = a // divisor, b // divisor, size.const // divisor
        x0 = -c * pow(a, -1, abs(b)) % abs(b) if abs(b) > 1 else 0
        y0 = (-c - a * x0) // b
        # The name is unique within the system.
        name = f"{x.name}/{y.name}/{len(self.values)}"
        free = of_atom(Symbol(name, None, None, named=False))  # type: ignore[arg-type]
        return self._eliminate(x, free * b + x0, waiting) and self._eliminate(
            y, free * -a + y0, waiting
        )

    def _eliminate(self, atom: Atom, value: Dim, waiting: list[tuple[str, Dim]]) -> bool:
        low, high = self.range_of(atom)
        if low is not None:
            waiting.append((">=", value - low))
        if high is not None:
            waiting.append((">=", high - value))
        self.values[atom] = value
        for other, expression in self.values.items():
            if any(atom in monomial for monomial, _ in expression.terms):
                self.values[other] = self.reduced(expression)
        if self.unequal or self.rest:
            self._ask_again(atom, waiting)
        return True

    def _ask_again(self, atom: Atom, waiting: list[tuple[str, Dim]]) -> None:
        """Queues the literals on an atom again, because its bounds or value changed."""
        for size in self.unequal:
            if any(atom in monomial for monomial, _ in size.terms):
                waiting.append(("!=", size))
        self.unequal = [s for s in self.unequal if not any(atom in m for m, _ in s.terms)]
        waiting += [literal for literal in self.rest if any(atom in m for m, _ in literal[1].terms)]
        self.rest = [
            literal for literal in self.rest if not any(atom in m for m, _ in literal[1].terms)
        ]

    def _unequal(self, size: Dim, waiting: list[tuple[str, Dim]]) -> bool:
        if not size.terms:
            return size.const != 0
        low, high = self.interval(size)
        if (low is not None and low > 0) or (high is not None and high < 0):
            return True
        if size.const % math.gcd(*(factor for _, factor in size.terms)):
            return True
        if len(size.terms) == 1 and len(size.terms[0][0]) == 1:
            (atom,), factor = size.terms[0]
            value = -size.const // factor
            low, high = self.range_of(atom)
            if value == low:
                return self._tighten(atom, value + 1, high, waiting)
            if value == high:
                return self._tighten(atom, low, value - 1, waiting)
        self.unequal.append(size)
        return True

    def _at_least(self, size: Dim, waiting: list[tuple[str, Dim]]) -> bool:
        if not size.terms:
            return size.const >= 0
        low, high = self.interval(size)
        if low is not None and low >= 0:
            return True
        if high is not None and high < 0:
            return False
        if len(size.terms) == 1 and len(size.terms[0][0]) == 1:
            (atom,), factor = size.terms[0]
            least, most = self.range_of(atom)
            if factor > 0:
                return self._tighten(atom, -(size.const // factor), most, waiting)
            return self._tighten(atom, least, size.const // -factor, waiting)
        if self._opposed(">=", size):
            return False
        self.rest.append((">=", size))
        return self._propagate(size, high, waiting)

    def _propagate(self, size: Dim, high: int | None, waiting: list[tuple[str, Dim]]) -> bool:
        """Tightens one atom by the bounds of the others, once for each literal."""
        if high is None:
            return self._bounded_alone(size, waiting)
        for monomial, factor in size.terms:
            if len(monomial) > 1:
                continue
            atom = monomial[0]
            low, most = self.range_of(atom)
            # Without this term the rest is at most `others`.
            if factor > 0 and most is not None:
                least = -((high - factor * most) // factor)
                if low is None or least > low:
                    return self._tighten(atom, least, most, waiting)
            if factor < 0 and low is not None:
                greatest = (high - factor * low) // -factor
                if most is None or greatest < most:
                    return self._tighten(atom, low, greatest, waiting)
        return True

    def _bounded_alone(self, size: Dim, waiting: list[tuple[str, Dim]]) -> bool:
        """The same if exactly one term has no upper bound: ``32*q >= N`` and ``N >= 1``.

        Only for an atom with its original bounds, so that two atoms do not raise each other for
        ever.
        """
        tops = [self._term(*term)[1] for term in size.terms]
        without = [term for term, top in zip(size.terms, tops, strict=True) if top is None]
        if len(without) != 1 or len(without[0][0]) > 1:
            return True
        (atom,), factor = without[0]
        others = size.const + sum(top for top in tops if top is not None)
        low, high = self.range_of(atom)
        if (low, high) != atom_bounds(atom):
            return True
        if factor > 0:
            least = -(others // factor)
            return (low is not None and least <= low) or self._tighten(atom, least, high, waiting)
        most = others // -factor
        return (high is not None and most >= high) or self._tighten(atom, low, most, waiting)

    def _tighten(
        self, atom: Atom, low: int | None, high: int | None, waiting: list[tuple[str, Dim]]
    ) -> bool:
        bounds = self.range_of(atom)
        if bounds[0] is not None and (low is None or low < bounds[0]):
            low = bounds[0]
        if bounds[1] is not None and (high is None or high > bounds[1]):
            high = bounds[1]
        if low is not None and high is not None and low > high:
            return False
        if (low, high) == bounds:
            return True
        self.low[atom], self.high[atom] = low, high
        if low is not None and low == high:
            return self._eliminate(atom, dim(low), waiting)
        self._ask_again(atom, waiting)
        return True

    # Values.

    @property
    def exact(self) -> bool:
        """Whether only intervals and inequations remain: then a failed search is a proof."""
        return not self.rest

    def free(self) -> list[Atom]:
        """The free atoms in the remaining literals."""
        sizes = itertools.chain(self.unequal, (size for _, size in self.rest))
        return list(dict.fromkeys(atom for size in sizes for m, _ in size.terms for atom in m))

    def candidates(self, atom: Atom, count: int, turn: int, *, down: bool = False) -> list[int]:
        """`count` values of an atom from its low end (or its high one), or all it has.

        `turn` (from 1) asks for simple ones instead: from 2 on, different for different turns.
        """
        low, high = self.range_of(atom)
        if turn and not down:
            first = max(low if low is not None else -count, 1 + turn)
            first = first if high is None else min(first, high + 1)
            upper = range(first, first + count if high is None else min(first + count, high + 1))
            lower = range(low if low is not None else first - count, first)
            return [*upper, *reversed(lower[-count - 2 :])][: count + 2]
        if low is None or (down and high is not None):
            assert high is not None or low is None
            top = 0 if high is None else high
            least = top - count + 1 if low is None else max(low, top - count + 1)
            return list(range(top, least - 1, -1))
        return list(range(low, low + count if high is None else min(low + count, high + 1)))

    def model(self) -> dict[Atom, int] | None:
        """Values of the free atoms that satisfy the remaining literals, or None."""
        free = self.free()
        counts = [self._occurrences(atom) + 1 for atom in free]
        extra = 0 if self.exact else 4
        grid = [
            self.candidates(atom, count + extra, turn)
            for turn, (atom, count) in enumerate(zip(free, counts, strict=True), start=1)
        ]
        return self._first(free, grid)

    def _first(self, free: Sequence[Atom], grid: Sequence[Sequence[int]]) -> dict[Atom, int] | None:
        """The first point of a grid that satisfies all; a literal is tested once its atoms have
        values.
        """
        place = {atom: k for k, atom in enumerate(free)}
        literals: list[list[tuple[str, Dim]]] = [[] for _ in free]
        for kind, size in (*(("!=", size) for size in self.unequal), *self.rest):
            if size.terms:
                literals[max(place[atom] for m, _ in size.terms for atom in m)].append((kind, size))
            elif not holds(kind, size.const):
                return None
        costs = [1 + sum(weight_of(size) for _, size in some) // 64 for some in literals]
        values: dict[Atom, int] = {}
        turns = [0] * len(free)
        depth = tried = 0
        while 0 <= depth < len(free):
            turn = turns[depth]
            if turn == len(grid[depth]):
                turns[depth] = 0
                depth -= 1
                continue
            if tried == MAX_POINTS:
                if self.exact:
                    raise GivenUpError
                return None
            tried += 1
            self.spent += costs[depth]
            if self.spent > MAX_STEPS:
                raise GivenUpError
            turns[depth] = turn + 1
            values[free[depth]] = grid[depth][turn]
            if all(holds(kind, value_at(size, values)) for kind, size in literals[depth]):
                depth += 1
        return None if depth < 0 else values

    def _occurrences(self, atom: Atom) -> int:
        """The highest power of an atom in the product of all expressions that must not be 0."""
        return sum(max((m.count(atom) for m, _ in size.terms), default=0) for size in self.unequal)

    def _fits(self, values: Mapping[Atom, int]) -> bool:
        if any(value_at(size, values) == 0 for size in self.unequal):
            return False
        return all(holds(kind, value_at(size, values)) for kind, size in self.rest)

    def extremes(self, size: Dim) -> Interval | None:
        """Least and greatest value of an expression over the solutions; None if there are none.

        If the system is not exact, the bounds hold but may not be tight.
        """
        size = self.reduced(size)
        low, high = self.interval(size)
        if not self.exact:
            return low, high
        model = self.model()
        if model is None:
            return None
        avoided = set(self.free())
        linear = all(len(m) == 1 for m, _ in size.terms)
        if not linear or not any(m[0] in avoided for m, _ in size.terms):
            return low, high
        return self._extreme(size, low, down=False), self._extreme(size, high, down=True)

    def _extreme(self, size: Dim, end: int | None, *, down: bool) -> int | None:
        """The best value that the inequations allow, searched from the interval's end."""
        if end is None:
            return None
        free = self.free()
        factors = {m[0]: f for m, f in size.terms}
        grid = []
        for atom in free:
            up = (factors.get(atom, 1) > 0) != down
            count = self._occurrences(atom) + 1
            low, high = self.range_of(atom)
            falls = not up if (high is not None and low is not None) else low is None
            grid.append(self.candidates(atom, count, 0, down=falls))
        if math.prod(map(len, grid)) > MAX_POINTS:
            return end
        fixed = {
            m[0]: self.range_of(m[0])[1 if (f > 0) == down else 0]
            for m, f in size.terms
            if m[0] not in free
        }
        numbers = [
            value_at(size, {**fixed, **dict(zip(free, point, strict=True))})  # type: ignore[dict-item]
            for point in itertools.product(*grid)
            if self._fits(dict(zip(free, point, strict=True)))
        ]
        return max(numbers) if down else min(numbers)


def _negated(a: Terms, b: Terms) -> bool:
    """Whether as many terms, which are in one order, differ only in sign."""
    # The first factors mostly differ, and comparing atoms is slow.
    return a[0][1] == -b[0][1] and all(
        f == -g and x == y for (x, f), (y, g) in zip(a, b, strict=True)
    )


def _times(a: Interval, b: Interval) -> Interval:
    if a[0] is not None and b[0] is not None and a[0] >= 0 and b[0] >= 0:
        return a[0] * b[0], None if a[1] is None or b[1] is None else a[1] * b[1]
    return None, None


def value_at(size: Dim, values: Mapping[Atom, int]) -> int:
    """The value of an expression for these values of its atoms."""
    total = size.const
    for monomial, factor in size.terms:
        for atom in monomial:
            factor *= values[atom]
        total += factor
    return total
