"""Every engine and release on shapes that engines treat differently, beside NumPy.

>>> rows = scoreboard([find_engine("ncnn@20230517"), find_engine("mnn")])
>>> print("".join(cell.mark for cell in rows[1].cells[:6]))
======
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

from ..core.plan import Plan
from ..engines import ENGINES, Engine, find_engine
from ..engines.planning import plan, plan_to
from ..engines.releases import releases_of
from ..errors import BroadcastError, Reason

Answer = Plan | BroadcastError


class Pattern(NamedTuple):
    """Shapes on which engines differ.

    Attributes:
        words: an example of where they occur.
        shapes: of the operands; of `to_target`, the data's and the target.
        op: the op's canonical name.
        to_target: whether the data is broadcast to a shape, by the Broadcast op.
    """

    words: str
    shapes: tuple[tuple[int, ...], ...]
    op: str = "add"
    to_target: bool = False

    @property
    def text(self) -> str:
        """The op and the shapes: "(5,5) + (5,)", "where (2,1) (2,3) (3,)"."""
        shapes = [f"({','.join(map(str, s))}{',' if len(s) == 1 else ''})" for s in self.shapes]
        if self.to_target:
            return " to ".join(shapes)
        return " + ".join(shapes) if self.op == "add" else f"{self.op} {' '.join(shapes)}"

    def command(self, engine: str) -> str:
        """The command that explains an engine's answer."""
        first, *others = [",".join(map(str, shape)) for shape in self.shapes]
        words = [first, "--to", *others] if self.to_target else [first, *others]
        words += ["--engine", engine, *([] if self.op == "add" else ["--op", self.op])]
        return f"zerostride explain {' '.join(words)}"

    def ask(self, engine: str | None) -> Answer:
        """The plan of an engine, or of NumPy's rule (None), or the error that refuses it."""
        try:
            if self.to_target:
                data, target = self.shapes
                return plan_to(data, target, engine=engine)
            return plan(*self.shapes, engine=engine, op=self.op if engine else None)
        except BroadcastError as error:
            return error


#: Pairs of an addition, each from a public report or a common layer.
PAIRS = (
    Pattern("a bias along the last axis", ((2, 3, 4, 5), (5,))),
    Pattern("a bias by channel, NCHW", ((1, 16, 8, 8), (16, 1, 1))),
    Pattern("a vector and rows of its length", ((5, 2), (2,))),
    Pattern("a vector and a square", ((5, 5), (5,))),
    Pattern("one more batch axis", ((197, 64), (1, 197, 64))),
    Pattern("an attention mask of higher rank", ((20, 8, 8), (1, 1, 8, 8))),
    Pattern("both operands stretch", ((1, 17, 1, 128), (1, 1, 2, 128))),
    Pattern("an outer sum", ((64, 1), (1, 64))),
    Pattern("five axes", ((2, 3, 4, 5, 6), (6,))),
    Pattern("six axes", ((1, 2, 3, 4, 5, 6), (1, 1, 1, 4, 5, 6))),
)
#: Those, and other ops and sizes.
PATTERNS = (
    *PAIRS,
    Pattern("nine axes that do not merge", ((2, 1, 2, 1, 2, 1, 2, 1, 2), (1, 2) * 4 + (1,))),
    Pattern("sizes that do not combine", ((2, 3), (2,))),
    Pattern("no element, and one", ((0, 3), (1, 3))),
    Pattern("a mask of a lower rank", ((3,), (2, 3), (2, 3)), "where"),
    Pattern("a choice whose branches stretch", ((2, 3), (2, 1), (1, 3)), "where"),
    Pattern("a slope for each channel", ((2, 3, 4), (3, 1)), "prelu"),
    Pattern("a vector of slopes and the last axis", ((2, 3, 4), (4,)), "prelu"),
    Pattern("a row to a matrix", ((3,), (2, 3)), to_target=True),
    Pattern("a target that stretches, too", ((3, 1), (1, 4)), to_target=True),
)


class Cell(NamedTuple):
    """An engine's answer to a pattern.

    Attributes:
        kind: against NumPy's: "same", "different" (without an error), "nonsense" (wrong numbers or
            a crash), "refused", or "unknown".
        answer: the plan, or the error.
    """

    kind: str
    answer: Answer

    @property
    def mark(self) -> str:
        """A sign for the kind."""
        return MARKS[self.kind]


#: A sign for each kind of answer.
MARKS = {"same": "=", "different": "≠", "nonsense": "!", "refused": "·", "unknown": "?"}
#: The kinds in words, for a legend.
LEGEND = {
    "same": "as NumPy",
    "different": "another meaning, without an error",
    "nonsense": "wrong numbers or a crash",
    "refused": "refused",
    "unknown": "not known",
}


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """Releases of an engine that answer alike.

    Attributes:
        engine: the row of the newest of them.
        releases: newest first.
        cells: one for each of `PATTERNS`.
    """

    engine: Engine
    releases: tuple[str, ...]
    cells: tuple[Cell, ...]

    @property
    def name(self) -> str:
        """The engine and the first and the last of the releases: "ncnn 20230223 to 20230517"."""
        span = " to ".join(dict.fromkeys((self.releases[-1], self.releases[0])))
        return f"{self.engine.name} {span}" + ("" if self.engine.run else " (read)")

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        cells = [
            {"pattern": pattern.text, "kind": cell.kind, **_facts(cell.answer)}
            for pattern, cell in zip(PATTERNS, self.cells, strict=True)
        ]
        return {"engine": self.engine.name, "releases": self.releases, "cells": cells}


def _facts(answer: Answer) -> dict[str, Any]:
    """An answer for JSON."""
    if isinstance(answer, BroadcastError):
        return {"aligned": None, "reason": str(answer.reason)}
    return {"aligned": answer.aligned, "reason": ""}


def judge(pattern: Pattern, engine: str) -> Cell:
    """An engine's answer to a pattern, beside NumPy's.

    >>> judge(PAIRS[3], "ncnn").kind
    'different'
    """
    answer, wanted = pattern.ask(engine), _wanted(pattern)
    if isinstance(answer, BroadcastError):
        if answer.reason is Reason.NOT_UNDERSTOOD:
            return Cell("unknown", answer)
        if answer.silent:
            return Cell("nonsense", answer)
        return Cell("same" if isinstance(wanted, BroadcastError) else "refused", answer)
    return Cell("same" if answer == wanted else "different", answer)


@cache
def _wanted(pattern: Pattern) -> Answer:
    """NumPy's answer."""
    return pattern.ask(None)


def scoreboard(engines: Iterable[Engine] | None = None) -> tuple[ScoreRow, ...]:
    """A row for each run of releases of an engine that answer alike, newest first.

    Args:
        engines: rows of engines; not given: all. A row of another release than the newest stands
            for itself alone.
    """
    return tuple(row for one in engines or ENGINES.values() for row in _rows(one))


def _rows(engine: Engine) -> Iterator[ScoreRow]:
    releases = reversed(releases_of(engine))
    names = [engine.title] if engine.asked else [f"{engine.name}@{one}" for one in releases]
    row: ScoreRow | None = None
    for name in names:
        cells = tuple(judge(pattern, name) for pattern in PATTERNS)
        release = name.partition("@")[2] or engine.release
        if row is not None and _keys(row.cells) == _keys(cells):
            row = replace(row, releases=(*row.releases, release))
            continue
        if row is not None:
            yield row
        row = ScoreRow(find_engine(name), (release,), cells)
    if row is not None:
        yield row


def _keys(cells: Iterable[Cell]) -> list[Any]:
    """What tells answers apart: the kind, and a plan."""
    return [(cell.kind, cell.answer if isinstance(cell.answer, Plan) else None) for cell in cells]


__all__ = [
    "LEGEND",
    "MARKS",
    "PAIRS",
    "PATTERNS",
    "Cell",
    "Pattern",
    "ScoreRow",
    "judge",
    "scoreboard",
]
