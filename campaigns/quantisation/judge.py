"""Cases judged: what zerostride computes under an engine's row beside the engine, exactly."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import zerostride as zs

from .draw import Array, Case, draw
from .engines import RUNNERS, Answer, Runner

#: Wrong cases that are printed; more than these are counted.
SHOWN = 10


@dataclass(slots=True)
class Result:
    """The result of a run.

    Attributes:
        engine: the engine's name.
        equal: cases with the same numbers.
        refused: cases that both refuse.
        wrong: the other ones.
        elements: numbers that were compared.
        kinds: cases by op and placement.
        shown: the first wrong cases, in words.
    """

    engine: str
    equal: int = 0
    refused: int = 0
    wrong: int = 0
    elements: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    shown: list[str] = field(default_factory=list)

    @property
    def cases(self) -> int:
        """The number of judged cases."""
        return self.equal + self.refused + self.wrong

    def take(self, name: str, mine: Answer | str, theirs: Answer) -> None:
        """Judges one answer; text is a refusal."""
        if isinstance(mine, str) or mine is None:
            if theirs is None:
                self.refused += 1
                return
            self._differs(f"{name}: refused here ({mine}), computed there")
            return
        difference = differs(mine, theirs)
        if difference:
            self._differs(f"{name}: {difference}")
            return
        self.equal += 1
        self.elements += mine.size

    def _differs(self, text: str) -> None:
        self.wrong += 1
        if len(self.shown) < SHOWN:
            self.shown.append(text)


def differs(mine: Array, theirs: Answer) -> str:
    """How two arrays differ, or nothing if they are the same numbers."""
    if theirs is None:
        return "computed here, refused there"
    if mine.shape != theirs.shape:
        return f"shape {mine.shape} here, {theirs.shape} there"
    if theirs.dtype == np.uint8 and mine.dtype.name.startswith("float8"):
        theirs = theirs.view(mine.dtype)
    a, b = mine.astype(np.float64), theirs.astype(np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    if same.all():
        return ""
    place = tuple(int(k) for k in np.argwhere(~same)[0])
    return f"{int((~same).sum())} differ; at {place} {a[place]!r} here, {b[place]!r} there"


def predicted(case: Case) -> Array | str:
    """What the row gives, or the refusal in words."""
    places: dict[str, Any] = {"axis": case.axis, "block": case.block, "engine": case.engine}
    if case.opset is not None:
        places["opset"] = case.opset
    result: Array
    try:
        if case.op == "dequantize":
            result = zs.dequantize(case.x, case.scale, case.zero, **places)
        else:
            operands = case.x, case.scale, case.zero
            result = zs.quantize(*operands, dtype=case.stored, **places)
    except zs.BroadcastError as error:
        return error.detail
    return result


def measure(engine: str, seed: int, first: int, cases: int, run: Runner | None = None) -> Result:
    """Cases number `first` and on of a seed."""
    result = Result(engine)
    runner = run or RUNNERS[engine]
    for number in range(first, first + cases):
        case = draw(engine, seed, number)
        placement = "block" if case.block else "axis" if case.scale.size > 1 else "tensor"
        result.kinds[f"{case.op} {placement}"] += 1
        result.take(f"{seed}:{number} {case}", predicted(case), runner(case))
    return result
