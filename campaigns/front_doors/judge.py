"""``python -m campaigns front-doors``: verdicts compared with what users' own converters do.

Random models of one node or two go through the reader or converter of an engine, as users call it,
and run there. A *contradiction* is a verdict that the engine's numbers deny.
"""

from __future__ import annotations

import json
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from zerostride.errors import EngineVersionWarning, Reason, ZerostrideError
from zerostride.models.findings import Outcome, Report, Verdict
from zerostride.models.reasons import Cause
from zerostride.runtimes.process import running

from ..seeded import progress
from .doors import Answer, Door, door_to
from .draw import Model, Numbers, draw

#: Further numbers on which a result that is said to differ may agree by luck.
_TRIES = 20
#: Verdicts from the best to the worst; that of a model is its worst.
_ORDER = (Verdict.SAME, Verdict.SAME_HERE, Verdict.UNKNOWN, Verdict.DIFFERENT, Verdict.REFUSED)
_BY_LUCK = frozenset({Cause.SILENT, Cause.OTHER_VALUES})


@dataclass(slots=True)
class Judged:
    """A model with the verdict and the answers on numbers of each kind."""

    number: int
    words: str
    verdict: str = ""
    reason: str = ""
    message: str = ""
    answers: dict[str, str] = field(default_factory=dict)
    contradiction: str = ""
    skipped: str = ""

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {name: getattr(self, name) for name in self.__slots__}


def judge(number: int, seed: int, door: Door, op: str | None = None) -> Judged:
    """Draws a model and judges it."""
    rng = np.random.default_rng([seed, number])
    model = draw(rng, op)
    while not door.writes(model):
        model = draw(rng, op)
    judged = Judged(number, model.words)
    outcomes: dict[Numbers, Answer] = {}
    reports: dict[Numbers, Report] = {}
    for kind in Numbers:
        asked = door.ask(model, kind, number)
        if not asked.meant.results:
            judged.skipped = "; ".join(f"{k}: {v}" for k, v in asked.meant.refused.items())
            return judged
        try:
            reports[kind] = asked.report()
        except ZerostrideError as error:  # PyTorch does not export the module to ONNX
            judged.skipped = str(error)[:160]
            return judged
        outcomes[kind] = asked.answer()
        judged.answers[kind] = f"{outcomes[kind].outcome} {outcomes[kind].detail}".strip()
        if outcomes[kind].outcome in (Outcome.REFUSED, Outcome.CRASHED):
            break
    worst = _worst(reports[Numbers.USUAL])
    if worst is None:
        judged.verdict = "none"
    else:
        judged.verdict, judged.reason, judged.message = worst
    if outcomes[Numbers.USUAL].outcome is Outcome.NOT_RUN:
        judged.skipped = judged.answers[Numbers.USUAL]
        return judged
    judged.contradiction = _contradiction(judged, outcomes, reports, door, model)
    return judged


def _worst(report: Report) -> tuple[str, str, str] | None:
    findings = sorted(report.findings, key=lambda f: _ORDER.index(f.verdict))
    if not findings:
        return None
    return str(findings[-1].verdict), findings[-1].reason, findings[-1].message


def _contradiction(
    judged: Judged,
    outcomes: Mapping[Numbers, Answer],
    reports: Mapping[Numbers, Report],
    door: Door,
    model: Model,
) -> str:
    """Why a verdict is denied, or ""."""
    usual = outcomes[Numbers.USUAL].outcome
    ends = outcomes[Numbers.ENDS].outcome if Numbers.ENDS in outcomes else None
    against = (Outcome.DIFFERS, Outcome.REFUSED, Outcome.CRASHED)
    verdict, reason = judged.verdict, judged.reason
    if verdict == "none" or reason in (Cause.INVALID, Cause.MIXED_TYPES):
        return ""
    if verdict in (Verdict.SAME, Verdict.SAME_HERE):
        if usual in against:
            return f"{verdict}, and {judged.answers[Numbers.USUAL]}"
        if ends in against and reason != Cause.NARROWED:
            at_ends = _worst(reports[Numbers.ENDS])
            if at_ends is not None and at_ends[0] not in (verdict, Verdict.SAME):
                return ""
            return f"{verdict}, and at the ends {judged.answers[Numbers.ENDS]}"
        return ""
    if verdict == Verdict.REFUSED and reason == Reason.CRASH and usual is Outcome.AGREES:
        return ""  # a file that ends the process now and then
    if verdict == Verdict.REFUSED:
        return "" if usual in (Outcome.REFUSED, Outcome.CRASHED) else f"refused, and {usual}"
    if verdict == Verdict.DIFFERENT:
        if usual is Outcome.REFUSED:
            return "different, and refused"
        if usual is Outcome.CRASHED and reason not in (Cause.SILENT, "crash", "wrong_result"):
            return "different, and crashed"
        if usual is Outcome.AGREES and ends is Outcome.AGREES and reason not in _BY_LUCK:
            return "" if _by_luck(door, model, judged.number) else "different, and agrees"
    return ""


def _by_luck(door: Door, model: Model, number: int) -> bool:
    """Whether other numbers show a difference."""
    for k in range(_TRIES):
        asked = door.ask(model, Numbers.USUAL, 1000 * (k + 1) + number)
        if asked.meant.results and asked.answer().outcome is not Outcome.AGREES:
            return True
    return False


def measure(
    engine: str, first: int, cases: int, seed: int, op: str | None = None
) -> Iterator[Judged]:
    """Judges models through the door of an engine."""
    with (
        tempfile.TemporaryDirectory() as folder,
        warnings.catch_warnings(),
        running(engine, 60.0) as process,
    ):
        warnings.simplefilter("ignore", EngineVersionWarning)
        door = door_to(engine, process, Path(folder))
        for number in range(first, first + cases):
            yield judge(number, seed, door, op)


@dataclass(slots=True)
class DoorTally:
    """The results of one door.

    Attributes:
        engine: whose door.
        counts: models by verdict; skipped ones are those that nobody else computes, or that the
            door could not run.
        contradictions: models whose verdict is denied.
    """

    engine: str
    counts: Counter[str] = field(default_factory=Counter)
    contradictions: list[Judged] = field(default_factory=list)

    def add(self, judged: Judged) -> None:
        """Counts a model."""
        self.counts["skipped" if judged.skipped else judged.verdict] += 1
        if judged.contradiction:
            self.contradictions.append(judged)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "engine": self.engine,
            "counts": dict(self.counts),
            "contradictions": [judged.as_dict() for judged in self.contradictions],
        }


def run(
    engines: Sequence[str], first: int, cases: int, seed: int, op: str | None, as_json: bool
) -> int:
    """Measures and prints; 0 where nothing is contradicted, 1 otherwise."""
    tallies = []
    with progress("models", cases * len(engines), as_json) as advance:
        for engine in engines:
            tally = DoorTally(engine)
            for judged in measure(engine, first, cases, seed, op):
                tally.add(judged)
                advance()
            tallies.append(tally)
    if as_json:
        print(json.dumps([tally.as_dict() for tally in tallies], indent=1))
    else:
        for tally in tallies:
            for judged in tally.contradictions:
                print(
                    f"CONTRADICTION {tally.engine} {judged.number}: {judged.words}: "
                    f"{judged.contradiction} ({judged.message})"
                )
            counts = ", ".join(f"{count} {name}" for name, count in tally.counts.most_common())
            total = tally.counts.total()
            print(
                f"{tally.engine}: {total:,} models, {len(tally.contradictions)} contradictions "
                f"({counts})"
            )
    return int(any(tally.contradictions for tally in tallies))
