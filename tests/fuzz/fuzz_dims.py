"""Open sizes and formulas over them, compared with all values in a box.

    python tests/fuzz/fuzz_dims.py --cases 200000 --seed 0

An expression is made twice, as a Dim and as a Python function, and the two are compared for every
value. A formula is decided, bounded, simplified and complemented; its values in the box say whether
that is right. Text is made of tokens that nearly fit: a size, a condition, or a BroadcastError.
A case fails if an answer is wrong, if a question that is decided exactly is left unknown, or if
anything but the documented error comes out.
"""

from __future__ import annotations

import pickle
import random
import sys
from typing import Any

import harness

import zerostride as zs
from size_twins import (
    Formula,
    Twin,
    Values,
    applied,
    compared,
    evaluated,
    joined,
    number,
    points,
    symbol,
)
from zerostride.sizes.condition import Condition, ge, negation
from zerostride.sizes.dim import Dim, Symbol, dim, of_atom, plain
from zerostride.sizes.functions import (
    choose,
    exact_quotient,
    maximum,
    minimum,
)
from zerostride.sizes.shapes import Answer
from zerostride.sizes.simplify import pinned, simplified
from zerostride.sizes.solve import (
    bounds_under,
    complement,
    decide,
    excludes,
    exists,
    implies,
    satisfiable,
    values_for,
)

#: Bounds of symbols; those without a high end are looked at up to BOX.
RANGES = ((0, 1), (1, 3), (2, 5), (0, 3), (1, 1), (0, None), (1, None))
BOX = 9
TOKENS = (
    *("N", "M", "K", "N", "M", "0", "1", "2", "3", "8", "1..8", "0..", "..", "?", "²", "٣", "é"),
    *("+", "-", "*", "//", "%", "(", ")", "(", ")", ",", "max(", "min(", "bcast(", "max", " "),
    *("==", "!=", ">=", "<=", ">", "<", "and", "or", "&&", "||", "=", "!", "&", ".", "N.a", "_"),
    *("99999999999999999999", "9223372036854775807", "\x1b[31m", "\n", "\x00", "\udcff", "always"),
)


class Fuzz:
    """One case: symbols, and what is made of them."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.functions = rng.random() < 0.5
        self.products = rng.random() < 0.2
        count = rng.choice((1, 2, 2, 3, 3, 4))
        bounded = rng.random() < 0.7
        ranges = [r for r in RANGES if r[1] is not None] if bounded else list(RANGES)
        self.symbols = [Symbol(name, *rng.choice(ranges)) for name in "NMKL"[:count]]

    # Sizes.

    def symbol(self) -> Twin:
        return symbol(self.rng.choice(self.symbols))

    def number(self, low: int = -3, high: int = 6) -> Twin:
        return number(self.rng.randint(low, high))

    def size(self, depth: int = 2) -> Twin:
        kinds = ["symbol", "symbol", "number", "+", "-", "scaled"]
        kinds += ["*"] * self.products
        kinds += ["//", "%", "max", "min", "bcast", "bcast", "/", "choose"] * self.functions
        kind = self.rng.choice(kinds) if depth else "symbol"
        if kind == "symbol":
            return self.symbol()
        if kind == "number":
            return self.number()
        a, b = self.size(depth - 1), self.size(depth - 1)
        if kind == "scaled":
            b = self.number(2, 4)
            kind = self.rng.choice(("*", "*", "//")) if self.functions else "*"
        if kind in ("//", "%"):
            b = self.number(1, 4)
        if kind == "choose":
            return chosen(self.condition(1), a, b)
        try:
            return applied(kind, a, b)
        except ZeroDivisionError:
            return Twin(dim(0), lambda values: None)

    # Formulas.

    def literal(self) -> Formula:
        kind = self.rng.choice(("==", "==", "!=", ">="))
        if self.exact and not self.functions:
            left, right = self.linear(kind)
        else:
            left, right = self.size(), self.rng.choice((self.size, self.number))()
        return compared(kind, left, right)

    def linear(self, kind: str) -> tuple[Twin, Twin]:
        """What is decided exactly: two symbols in an equation, one in an inequality."""
        left = applied("*", self.symbol(), self.number(1, 4))
        left = applied("+", left, self.number())
        right = self.number()
        if kind != ">=" and self.rng.random() < 0.7:
            right = applied("*", self.symbol(), self.number(-2, 4))
            if kind == "!=" and self.rng.random() < 0.3:
                right = applied("+", right, self.symbol())
        return left, right

    def condition(self, depth: int = 2) -> Formula:
        kind = self.rng.choice(("and", "or", "literal")) if depth else "literal"
        if kind == "literal":
            return self.literal()
        parts = [self.condition(depth - 1) for _ in range(self.rng.choice((2, 2, 3)))]
        return joined(kind, parts)

    # What a case looks at.

    exact = False

    @property
    def boxed(self) -> bool:
        return all(symbol.high is not None for symbol in self.symbols)

    def sizes_case(self) -> str:
        twin, other = self.size(3), self.size(2)
        size = twin.size
        low, high = size.interval
        for values in points(self.symbols, BOX):
            value, known = evaluated(size, values), twin.value(values)
            if known is not None:
                assert value == known, f"{size} is {value} at {shown(values)}, not {known}"
                assert low is None or low <= known, f"{size} is {known}, below {low}"
                assert high is None or known <= high, f"{size} is {known}, above {high}"
                some = {s: values[s] for s in self.symbols if self.rng.random() < 0.5}
                part = evaluated(dim(size.substitute(some)), values)
                assert part == known, f"{size} with {shown(some)} is {part}, not {known}"
            holds = exists(size).evaluate(values)
            assert holds == (value is not None), f"{size} exists: {holds} at {shown(values)}"
        laws(size, other.size)
        check_size_text(size)
        return "size"

    def formulas_case(self) -> str:
        self.exact = self.rng.random() < 0.6
        self.products = self.products and not self.exact
        formula, given = self.condition(), self.condition(1).condition
        condition = formula.condition
        box = list(points(self.symbols, BOX))
        holds = [condition.evaluate(values) for values in box]
        for values, said in zip(box, holds, strict=True):
            right = formula.truth(values)
            assert right is None or said == right, f"{condition} is {said} at {shown(values)}"
            assert complement(condition).evaluate(values) != said, f"not {condition}: {values}"
            if right is not None:
                some = {s: values[s] for s in self.symbols if self.rng.random() < 0.5}
                part = condition.substitute(some)
                assert part.evaluate(values) == right, f"{condition} with {shown(some)}: {part}"
        known = [given.evaluate(values) for values in box]
        self.decided(condition, holds)
        both = [a and b for a, b in zip(known, holds, strict=True)]
        but = [a and not b for a, b in zip(known, holds, strict=True)]
        if implies(given, condition):
            assert not any(but), f"{given} does not imply {condition}"
        elif self.boxed and self.certain:
            assert any(but), f"{given} implies {condition}"
        if excludes(given, condition):
            assert not any(both), f"{given} does not exclude {condition}"
        elif self.boxed and self.certain:
            assert any(both), f"{given} excludes {condition}"
        self.decision(condition, given, both, but)
        simple = simplified(condition, given)
        for values, may, said in zip(box, known, holds, strict=True):
            assert not may or simple.evaluate(values) == said, (
                f"{condition} where {given} is not {simple} at {shown(values)}"
            )
        self.sizes_under(given, box, known)
        assert pickle.loads(pickle.dumps(condition)) == condition
        assert hash(pickle.loads(pickle.dumps(condition))) == hash(condition)
        check_condition_text(condition)
        answer = satisfiable(condition).name
        sort = "linear" if self.certain else "with functions" if self.functions else "other"
        return f"formula, {sort}: {answer}"

    @property
    def certain(self) -> bool:
        """Every question about it has an answer."""
        return self.exact and not self.functions

    def decided(self, condition: Condition, holds: list[bool]) -> None:
        answer = satisfiable(condition)
        values = values_for(condition, self.symbols)
        assert answer is not Answer.NO or not any(holds), f"{condition} holds somewhere"
        assert not self.certain or answer is not Answer.UNKNOWN, f"{condition} is not decided"
        if self.boxed:
            assert answer is not Answer.YES or any(holds), f"{condition} holds nowhere"
        assert (values is not None) == (answer is Answer.YES)
        if values is not None:
            assert condition.evaluate(values), f"{condition} is false at {shown(values)}"
            for symbol in self.symbols:
                assert symbol.low <= values[symbol], f"{shown(values)} is out of bounds"
                assert symbol.high is None or values[symbol] <= symbol.high

    def decision(
        self, condition: Condition, given: Condition, both: list[bool], but: list[bool]
    ) -> None:
        said = decide(condition, given)
        if said.answer is Answer.YES:
            assert not any(but), f"{condition} where {given}: {said}"
        if said.answer is Answer.NO:
            assert not any(both), f"{condition} where {given}: {said}"
        if said.answer is Answer.UNKNOWN and self.certain and self.boxed:
            assert any(both), f"{condition} where {given}: {said}"
            assert any(but), f"{condition} where {given}: {said}"

    def sizes_under(
        self, given: Condition, box: list[dict[Symbol, int]], known: list[bool]
    ) -> None:
        """Bounds of a size, and the size with what is known put in, where `given` holds."""
        twin = self.linear("==")[0] if self.certain else self.size()
        if self.certain and self.rng.random() < 0.3:
            twin = applied("+", twin, self.symbol())
        size = twin.size
        low, high = bounds_under(size, given)
        put = dim(pinned(size, given))
        assert set(put.symbols) <= {*size.symbols, *given.symbols}, f"{size} became {put}"
        found = []
        for values, may in zip(box, known, strict=True):
            value = evaluated(size, values) if may else None
            if value is None:
                continue
            found.append(value)
            assert evaluated(put, values) == value, f"{size} where {given} is not {put}"
        if not found:
            return
        assert low is None or low <= min(found), f"{size} where {given} from {low}"
        assert high is None or high >= max(found), f"{size} where {given} to {high}"
        if self.certain and self.boxed:
            assert (low, high) == (min(found), max(found)), f"{size} where {given}: {low}..{high}"

    def text_case(self) -> str:
        tokens = [self.rng.choice(TOKENS) for _ in range(self.rng.choice((1, 3, 5, 9, 30, 300)))]
        if self.rng.random() < 0.4:
            joined = [[t] * self.rng.choice((1, 1, 2, 40, 400)) for t in tokens[:5]]
            tokens = [token for many in joined for token in many]
        if self.rng.random() < 0.3:
            part = "".join(tokens[:4])
            tokens = [part] * self.rng.choice((2, 20, 90))
        text = self.rng.choice(("", " ")).join(tokens)
        said = []
        for read in (zs.Dim, zs.Condition.parse):
            try:
                made = read(text)
            except zs.BroadcastError as error:
                check_refusal(str(error))
                said.append("refused")
                continue
            use(made)
            said.append(type(made).__name__)
        return f"text, {', '.join(said)}"


def chosen(when: Formula, a: Twin, b: Twin) -> Twin:
    """The first size where a condition holds, else the second."""
    condition, otherwise = when.condition, negation(when.condition)
    if condition.always or condition.never or otherwise.always:
        return a

    def value(values: Values) -> int | None:
        holds = when.truth(values)
        return None if holds is None else a.value(values) if holds else b.value(values)

    return Twin(dim(choose([(condition, a.size), (otherwise, b.size)])), value)


def laws(a: Dim, b: Dim) -> None:
    """What holds of any two sizes."""
    assert a + b == b + a
    assert hash(a + b) == hash(b + a)
    assert a * b == b * a
    assert (a + b) * (a - b) == a * a - b * b
    assert a - a == 0
    assert hash(a - a) == hash(0)
    assert maximum(a, b) == maximum(b, a)
    assert minimum(a, b) == minimum(b, a)
    assert pickle.loads(pickle.dumps(a)) == a
    if a.terms:
        assert a == str(a)
        assert hash(a) == hash(str(a))
    if b != 0:
        quotient = exact_quotient(a * b, b)
        assert quotient == a, f"{a} * {b} / {b} is {quotient}"


def check_refusal(message: str) -> None:
    assert all(c == "\n" or c.isprintable() for c in message)
    assert len(message) < 1000


def freed(made: Any) -> Any:
    """The same over symbols without bounds, as text would have it."""
    return made.substitute({s: of_atom(Symbol(s.name)) for s in made.symbols})


def has_cases(sizes: Any) -> bool:
    return any(" or " in dim(size).words for size in sizes)


def check_size_text(size: Dim) -> None:
    size = dim(freed(size))
    if size.terms and not has_cases([size]) and len(str(size)) < 1000:
        assert plain(zs.Dim(str(size))) == size, f"{size} is read as {zs.Dim(str(size))}"


def check_condition_text(condition: Condition) -> None:
    condition = freed(condition)
    if not has_cases(condition.sizes()) and len(str(condition)) < 1000:
        read = zs.Condition.parse(str(condition))
        assert read == condition, f"{condition} is read as {read}"


def use(made: Dim | Condition) -> None:
    """What is made of text can be worked with."""
    assert all(c.isprintable() for c in str(made))
    assert len(str(made)) < 100_000
    hash(made)
    assert pickle.loads(pickle.dumps(made)) == made
    values = dict.fromkeys(made.symbols, 2)
    if isinstance(made, Condition):
        made.evaluate(values)
        made.substitute(values)
        satisfiable(made)
        values_for(complement(made))
        decide(made)
        simplified(made)
    else:
        evaluated(made, values)
        made.interval  # noqa: B018 - computed when looked at
        bounds_under(made, ge(made, 1))
        made.is_one()


def shown(values: Values) -> str:
    return ", ".join(f"{symbol.name}={value}" for symbol, value in values.items())


def run_case(seed: int, number: int) -> str:
    """How a case ended."""
    fuzz = Fuzz(random.Random(f"{seed}/{number}"))
    try:
        match number % 8:
            case 0:
                return fuzz.text_case()
            case 1 | 2:
                return fuzz.sizes_case()
            case _:
                return fuzz.formulas_case()
    except Exception as error:  # noqa: BLE001 - what slips through is what is looked for
        return harness.slipped(error)


if __name__ == "__main__":
    sys.exit(harness.main(__file__, run_case, __doc__.splitlines()[0]))
