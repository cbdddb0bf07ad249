"""Shape inference of several tools, judged by brute force over the open sizes.

Shapes are generated; every tool says what comes out; and all small numbers are put in, with NumPy
(for pdpd OpenVINO on numbers) as the judge, which knows nothing of symbols. An answer is tight,
looser than it could be, or wrong. Run as ``python -m campaigns inference``.

A tool that cannot be told bounds is told that nothing is known, and judged by what it was told.
"""

from __future__ import annotations

import functools
import itertools
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .inferrers import OPS, Answer, Asked, Claim, NotInferred, Tool, key, unknowns, written
from .inferrers import openvino_node as _node

#: Numbers that stand for all: every size and bound below, their neighbours, and two that are
#: larger than all of them. Broadcasting asks for equality and for 1 alone, and does no arithmetic.
NUMBERS = (0, 1, 2, 3, 4, 5, 8, 9, 11)
#: From here on a size has no end: no number or bound is as large.
ENDLESS = 9
#: What a generated size is, and how often.
SIZES = dict(
    zip(
        ("0", "1", "2", "5", "N", "M", "?", "1..8", "0..1", "2..", "0..4", "1..5"),
        (2, 6, 4, 4, 6, 4, 4, 2, 2, 2, 1, 2),
        strict=True,
    )
)
#: Sizes not known in one case, at most: NUMBERS to this power are put in.
UNKNOWNS = 3
#: The highest rank of an operand.
RANK = 4
#: How often each op and rule is asked about.
_WEIGHTS = (8, 2, 3, 2, 3, 2)

#: Cases that everybody should get right, before the generated ones.
FIRST = (
    Asked("add", "numpy", ("1",), ("N",)),
    Asked("add", "numpy", ("1",), ("0",)),
    Asked("add", "numpy", ("N",), ("0",)),
    Asked("add", "numpy", ("N",), ("M",)),
    Asked("add", "numpy", ("N", "N"), ("5", "1")),
    Asked("add", "numpy", ("1..5",), ("5",)),
    Asked("add", "numpy", ("?",), ("0..1",)),
    Asked("broadcast", "bidirectional", ("1",), ("0",)),
    Asked("broadcast", "bidirectional", ("N", "N"), ("5", "1")),
)


# Cases.


def generate(count: int, seed: int) -> Iterator[Asked]:
    """`count` different questions, the same for the same seed."""
    random_ = random.Random(seed)
    seen: set[Asked] = set()
    waiting = list(reversed(FIRST))
    while len(seen) < count:
        asked = waiting.pop() if waiting else _question(random_)
        if asked not in seen and len(unknowns(asked)) <= UNKNOWNS:
            seen.add(asked)
            yield asked


def _question(random_: random.Random) -> Asked:
    op, rule = random_.choices(OPS, _WEIGHTS)[0]
    sizes, weights = list(SIZES), list(SIZES.values())
    first = tuple(random_.choices(sizes, weights, k=random_.randint(0, RANK)))
    least = 0
    if op == "broadcast" and rule != "bidirectional":
        least = len(first)  # nothing exists for a target of lower rank
    rank = len(first) if rule == "none" and random_.random() < 0.9 else random_.randint(least, RANK)
    if rule == "pdpd":
        rank = random_.randint(0, len(first))
    axis = axes = None
    places: Sequence[int] = range(rank - len(first), rank)
    if rule == "pdpd":
        axis = random_.choice([None, -1, *range(len(first) - rank + 1)])
        start = len(first) - rank if axis == -1 else axis or 0
        places = range(-start, len(first) - start)
    if rule == "explicit":
        axes = tuple(sorted(random_.sample(range(rank), len(first))))
        places = axes
    second = random_.choices(sizes, weights, k=rank)
    for size, place in zip(first, places, strict=True):
        # Sizes that have something to do with the first's: others nearly never fit.
        if 0 <= place < rank and random_.random() < 0.45:
            second[place] = size
    shapes = [first, tuple(second)]
    if op == "add" and rule != "pdpd":
        random_.shuffle(shapes)
    return Asked(op, rule, shapes[0], shapes[1], axis, axes)


def told(asked: Asked, tool: Tool) -> Asked:
    """The question as the tool can be asked it."""
    if tool.bounds:
        return asked
    first, second = (tuple("?" if ".." in s else s for s in shape) for shape in asked.shapes)
    return replace(asked, first=first, second=second)


# What is so: numbers put in.


@dataclass(frozen=True, slots=True)
class Truth:
    """All that comes out for numbers.

    Attributes:
        rows: numbers for the sizes, and the shape that comes out of them.
        rank: of the result; None where nothing comes out for any numbers.
    """

    rows: tuple[tuple[Mapping[str, int], tuple[int, ...]], ...]
    rank: int | None

    def sizes(self, axis: int) -> list[int]:
        """Every size that the axis has, one for each row."""
        return [shape[axis] for _, shape in self.rows]

    def ends(self, axis: int) -> tuple[int, int | None]:
        """The least interval that holds them."""
        sizes = self.sizes(axis)
        return min(sizes), None if max(sizes) >= ENDLESS else max(sizes)

    def names(self, axis: int, names: frozenset[str]) -> list[str]:
        """The names that are the size for all numbers."""
        return [n for n in sorted(names) if all(v[n] == shape[axis] for v, shape in self.rows)]

    def determined(self, axis: int, names: frozenset[str]) -> bool:
        """Whether the names' numbers determine the size."""
        table: dict[tuple[int, ...], int] = {}
        return all(
            table.setdefault(tuple(values[n] for n in sorted(names)), shape[axis]) == shape[axis]
            for values, shape in self.rows
        )


@functools.lru_cache(4)
def truth(asked: Asked) -> Truth:
    """The results for all of NUMBERS within the bounds."""
    free = unknowns(asked)
    domains = [
        [n for n in NUMBERS if low <= n and (high is None or n <= high)]
        for low, high in free.values()
    ]
    rows = []
    for point in itertools.product(*domains):
        values = dict(zip(free, point, strict=True))
        first, second = (
            tuple(
                int(size) if size.isdigit() else values[key(label, axis, size)]
                for axis, size in enumerate(shape)
            )
            for label, shape in zip("xy", asked.shapes, strict=True)
        )
        shape = concrete(asked, first, second)
        if shape is not None:
            rows.append((values, shape))
    return Truth(tuple(rows), len(rows[0][1]) if rows else None)


def concrete(
    asked: Asked, first: tuple[int, ...], second: tuple[int, ...]
) -> tuple[int, ...] | None:
    """NumPy's result shape for shapes of numbers, or None."""
    if asked.rule == "pdpd":
        return _pdpd(asked.axis, first, second)
    if asked.rule == "none":
        return first if first == second else None
    if asked.axes is not None:
        placed = [1] * len(second)
        for axis, size in zip(asked.axes, first, strict=True):
            placed[axis] = size
        first = tuple(placed)
    try:
        shape = np.broadcast_shapes(first, second)
    except ValueError:
        return None
    one_way = asked.op == "broadcast" and asked.rule != "bidirectional"
    return None if one_way and shape != second else shape


@functools.lru_cache(1 << 16)
def _pdpd(
    axis: int | None, first: tuple[int, ...], second: tuple[int, ...]
) -> tuple[int, ...] | None:
    """OpenVINO's own result for numbers, because NumPy lacks the rule."""
    asked = Asked("add", "pdpd", tuple(map(str, first)), tuple(map(str, second)), axis)
    try:
        return tuple(_node(asked, {}).output(0).shape)
    except RuntimeError:
        return None


# The judge.


@dataclass(frozen=True, slots=True)
class Flaw:
    """The faults of an answer, and claims looser than possible.

    Attributes:
        kind: see WRONG and LOOSER.
        words: the flaw in words, after "says ... : ".
        axis: the result axis, or None.
    """

    kind: str
    words: str
    axis: int | None = None

    @property
    def wrong(self) -> bool:
        """Whether it is more than loose."""
        return self.kind in WRONG


#: Kinds of wrong answers.
WRONG = {
    "wrong number": "a size that occurs is another number",
    "wrong bounds": "a size that occurs is not in the interval",
    "wrong name": "a size that occurs is not that of the name or expression",
    "wrong rank": "the result has another",
    "refuses": "refuses what has a result for some sizes",
    "accepts": "gives a shape where no sizes have a result",
}
#: Kinds of answers that are right and could say more.
LOOSER = {
    "rank": "not even the rank is said",
    "number": "a number that is certain is not said",
    "name": "a size that is one of the names is not said to be",
    "expression": "a size that the names determine is not said in them",
    "bounds": "an interval is wider than it need be",
    "silent": "nothing is said where no sizes have a result",
}


def judge(asked: Asked, answer: Answer, *, bounds: bool = True) -> list[Flaw]:
    """Everything that is wrong or loose about an answer; nothing of one that is tight.

    Args:
        asked: the question as the tool was asked it.
        answer: what it said.
        bounds: whether the tool can say bounds at all.
    """
    so = truth(asked)
    if isinstance(answer, NotInferred):
        if so.rank is None:
            return []
        values, shape = so.rows[0]
        return [Flaw("refuses", f"refuses; {_at(values)}{written(shape)} comes out")]
    if so.rank is None:
        if answer is None:
            return [Flaw("silent", "says nothing; no sizes have a result")]
        return [Flaw("accepts", f"says {written(answer)}; no sizes have a result")]
    if answer is None:
        return [Flaw("rank", f"says nothing, not even the rank, which is {so.rank}")]
    if len(answer) != so.rank:
        return [Flaw("wrong rank", f"says {written(answer)}; the rank is {so.rank}")]
    entries = []
    for axis, claim in enumerate(answer):
        flaw = _wrong(so, axis, claim) or _loose(so, axis, claim, asked.names, bounds)
        if flaw is not None:
            text = f"says {written(answer)}; axis {axis} {flaw.words}"
            entries.append(replace(flaw, words=text, axis=axis))
    return entries


def _wrong(so: Truth, axis: int, claim: Claim) -> Flaw | None:
    for values, shape in so.rows:
        size = shape[axis]
        if size < claim.low or (claim.high is not None and size > claim.high):
            kind = "wrong number" if claim.low == claim.high else "wrong bounds"
            return Flaw(kind, f"{_at(values)}is {size}")
        if claim.value is not None and _value(claim, values) != size:
            return Flaw("wrong name", f"{_at(values)}is {size}")
    return None


def _value(claim: Claim, values: Mapping[str, int]) -> int | None:
    assert claim.value is not None
    try:
        return claim.value(values)
    except ArithmeticError:
        return None  # an expression that has no value where there is a result


def _loose(so: Truth, axis: int, claim: Claim, names: frozenset[str], bounds: bool) -> Flaw | None:
    low, high = so.ends(axis)
    if low == high:
        certain = (claim.low, claim.high) == (low, high)
        return None if certain else Flaw("number", f"is {low} for all sizes")
    known = claim.value is not None and claim.named
    if not known:
        same = so.names(axis, names)
        if same:
            return Flaw("name", f"is {same[0]} for all sizes")
        if so.determined(axis, names):
            return Flaw("expression", f"is determined by {' and '.join(sorted(names))}")
    if bounds and (claim.low, claim.high) != (low, high):
        return Flaw("bounds", f"is in {low}..{'' if high is None else high} for all sizes")
    return None


def _at(values: Mapping[str, int]) -> str:
    if not values:
        return ""
    return f"at {', '.join(f'{name}={value}' for name, value in values.items())} "


# All tools over all cases.


@dataclass(slots=True)
class ToolTally:
    """The results of one tool.

    Attributes:
        tool: its name.
        cases: questions it was asked.
        tight: answers that could not say more.
        looser: right answers that could.
        wrong: the others.
        kinds: answers by kind of flaw; one may have several.
        examples: one of each kind, in words: of the plainest op, and few sizes.
        behind: questions of which another tool said more, or was right where this was not.
    """

    tool: str
    cases: int = 0
    tight: int = 0
    looser: int = 0
    wrong: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)
    behind: list[str] = field(default_factory=list)
    _least: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def add(self, asked: Asked, flaws: Sequence[Flaw]) -> None:
        """Counts one answer."""
        self.cases += 1
        if not flaws:
            self.tight += 1
        elif any(flaw.wrong for flaw in flaws):
            self.wrong += 1
        else:
            self.looser += 1
        self.kinds.update({flaw.kind for flaw in flaws})
        for flaw in flaws:
            least = OPS.index((asked.op, asked.rule)), len(unknowns(asked))
            size = *least, len(asked.first) + len(asked.second)
            if flaw.kind not in self.examples or size < self._least[flaw.kind]:
                self._least[flaw.kind] = size
                self.examples[flaw.kind] = f"{asked}: {flaw.words}"

    def to_json(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "tool": self.tool,
            "cases": self.cases,
            "tight": self.tight,
            "looser": self.looser,
            "wrong": self.wrong,
            "kinds": dict(self.kinds),
            "examples": self.examples,
            "behind": self.behind,
        }


def measure(
    tools: Sequence[Tool], cases: Sequence[Asked], advance: Callable[[], None] = lambda: None
) -> list[ToolTally]:
    """Asks every tool every question that it has an op for."""
    tallies = [ToolTally(tool.name) for tool in tools]
    for asked in cases:
        entries: list[tuple[ToolTally, list[Flaw]]] = []
        for tool, tally in zip(tools, tallies, strict=True):
            if tool.has(asked):
                question = told(asked, tool)
                flaws = judge(question, tool.ask(question), bounds=tool.bounds)
                tally.add(question, flaws)
                entries.append((tally, flaws))
        for tally, flaws in entries:
            ahead = [other.tool for other, rest in entries if _further(rest, flaws)]
            if ahead:
                tally.behind.append(f"{asked}: behind {', '.join(ahead)}: {flaws[0].words}")
        advance()
    return tallies


def _further(flaws: Sequence[Flaw], than: Sequence[Flaw]) -> bool:
    """Whether an answer is right, and says something that another one does not."""
    if any(flaw.wrong for flaw in flaws):
        return False
    if any(flaw.wrong for flaw in than):
        return True
    everywhere = {flaw.axis for flaw in flaws}
    return None not in everywhere and any(flaw.axis not in everywhere for flaw in than)


def holds(tally: ToolTally) -> bool:
    """Whether a tool is never wrong and never looser than another."""
    return not tally.wrong and not tally.behind
