"""Recorded engine cases, one JSON object a line, compared with zerostride's predictions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from zerostride.core.plan import Plan
from zerostride.errors import BadInput, BroadcastError, Reason
from zerostride.runtimes.probe.case import Case, Shape, shape_of
from zerostride.runtimes.probe.catalogue import row_of
from zerostride.runtimes.probe.conformance import EngineReport, Judged, JudgedCase, describe
from zerostride.runtimes.probe.predict import predict


@dataclass(frozen=True, slots=True)
class Recorded:
    """A verified case of a cases file: the case, its result, and where the axes landed.

    `result` None means refused. `maps` has, for each operand, the result axis of each of its axes,
    −1 for a dropped axis of extent 1.
    """

    case: Case
    result: Shape | None
    maps: tuple[Shape, ...] | None
    line: int

    def aligned(self) -> tuple[Shape, ...]:
        """The operands' shapes at the result's rank, aligned by the recorded axes."""
        assert self.result is not None
        assert self.maps is not None
        rows = []
        for shape, axes in zip((self.case.a, self.case.b), self.maps, strict=True):
            sizes = [1] * len(self.result)
            for size, axis in zip(shape, axes, strict=True):
                if axis >= 0:
                    sizes[axis] = size
            rows.append(tuple(sizes))
        return tuple(rows)


def read_cases(path: str | Path) -> Iterator[Recorded]:
    """The verified cases of a JSON-lines file; BadInput names the line that is wrong."""
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"cannot read cases from {path}: {error}") from error
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            result = None if row["result"] is None else shape_of(row["result"])
            maps = None
            if result is not None and row["map_a"] is not None and row["map_b"] is not None:
                maps = (shape_of(row["map_a"]), shape_of(row["map_b"]))
            yield Recorded(Case.from_json(row), result, maps, number)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            detail = f"lacks {error}" if isinstance(error, KeyError) else str(error)
            raise BadInput(f"{path}:{number} is not a case: {detail}") from error


def contradicts(recorded: Recorded, predicted: Plan | BroadcastError) -> bool:
    """Whether a verified case and a prediction differ in shape or in where axes land."""
    if recorded.result is None or isinstance(predicted, BroadcastError):
        return (recorded.result is None) == isinstance(predicted, Plan)
    if predicted.shape != recorded.result:
        return True
    if recorded.maps is None:
        return False
    return recorded.aligned()[: len(predicted.aligned)] != predicted.aligned


def check_recorded(report: EngineReport, recorded: Iterable[Recorded]) -> list[Case]:
    """The cases of a file that the catalogue has; the report gets contradictions and the rest."""
    kept = []
    for each in recorded:
        try:
            row_of(each.case)
        except BadInput:
            report.unmodelled[each.case.op] += 1
            continue
        kept.append(each.case)
        predicted = predict(each.case)
        if contradicts(each, predicted) and not _beyond(predicted):
            record = f"line {each.line} of the file: {each.result}"
            report.findings.append(
                JudgedCase(each.case, Judged.DISAGREE, describe(predicted), record)
            )
    return kept


def _beyond(predicted: Plan | BroadcastError) -> bool:
    """Whether the axes are transposed, which a plan cannot express."""
    return isinstance(predicted, BroadcastError) and predicted.reason == Reason.TRANSPOSES
