"""Compares engines with zerostride's predictions: both refuse, or equal shape and equal values.

:func:`judge` is the comparison, a pure function of a case, a prediction and an outcome. Every
outcome other than the predicted one is a disagreement. Faults that the engine table declares (a
missing refusal, a crash, a wrong result) are counted separately, and never as agreement.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from ...core.plan import Plan
from ...engines.releases import title_of
from ...engines.table import find_engine
from ...errors import BroadcastError, Reason
from ..process import Process
from ..task import Array, Form, Reply, ReplyKind, Task
from .case import Case
from .catalogue import ShapeRoles, row_of
from .kinds import KINDS
from .predict import expected_values, numpy_result, predict, shapes_of, striking


class Judged(StrEnum):
    """A prediction compared with an outcome."""

    REFUSE = "refuse"  # both refuse
    EQUAL = "equal"  # equal shape and equal values
    SILENT = "silent"  # predicted: the engine does not refuse, and its answer is meaningless
    CRASH = "crash"  # a valid plan that crashes the engine, by the table's divergences
    WRONG = "wrong"  # a valid plan with a wrong answer, by the table's divergences
    DECLINED = "declined"  # the engine transposes, which a plan cannot express
    DISAGREE = "disagree"  # anything else


@dataclass(frozen=True, slots=True)
class JudgedCase:
    """A case with its verdict, the prediction and the engine's answer in words."""

    case: Case
    verdict: Judged
    predicted: str
    outcome: str

    def to_json(self) -> dict[str, Any]:
        """For JSON."""
        return {**self.case.to_json(), "predicted": self.predicted, "outcome": self.outcome}


@dataclass(slots=True)
class EngineReport:
    """The results of one engine: counts per op, and the disagreements.

    Attributes:
        engine: its name.
        version: the release that ran; empty where none did.
        missing: why it did not run; empty where it did.
        counts: (op, verdict) to number of cases.
        distinct: number of different cases.
        unmodelled: per op, the number of cases of ops that the catalogue lacks, or of more axes
            than the engine's NumPy has.
        findings: every disagreement.
        equal: the cases with equal results.
    """

    engine: str
    version: str = ""
    missing: str = ""
    counts: Counter[tuple[str, Judged]] = field(default_factory=Counter)
    distinct: int = 0
    unmodelled: Counter[str] = field(default_factory=Counter)
    findings: list[JudgedCase] = field(default_factory=list)
    equal: list[Case] = field(default_factory=list)

    @property
    def cases(self) -> int:
        """Number of cases that were judged."""
        return sum(self.counts.values())

    def count(self, verdict: Judged) -> int:
        """Number of cases of that verdict."""
        return sum(n for (_, v), n in self.counts.items() if v is verdict)

    def ops(self) -> list[str]:
        """The ops, in order of first occurrence."""
        return list(dict.fromkeys(op for op, _ in self.counts))

    def add(self, finding: JudgedCase) -> None:
        """Counts a case; keeps it if it is a disagreement."""
        self.counts[label(finding.case), finding.verdict] += 1
        if finding.verdict is Judged.DISAGREE:
            self.findings.append(finding)
        elif finding.verdict is Judged.EQUAL:
            self.equal.append(finding.case)

    def to_json(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "engine": self.engine,
            "version": self.version,
            "missing": self.missing,
            "cases": self.cases,
            "distinct": self.distinct,
            "ops": {
                op: {v.value: self.counts[op, v] for v in Judged if self.counts[op, v]}
                for op in self.ops()
            },
            "unmodelled": dict(self.unmodelled),
            "disagreements": [finding.to_json() for finding in self.findings],
        }


def label(case: Case) -> str:
    """The op with the attribute that chooses its rule."""
    rule = case.attrs.get("auto_broadcast") or case.attrs.get("mode")
    return f"{case.op} {rule}" if rule else case.op


def judge(case: Case, predicted: Plan | BroadcastError, answer: Reply) -> Judged:
    """The comparison. Never an agreement by default."""
    if answer.kind in (ReplyKind.BROKEN, ReplyKind.ABSENT):
        return Judged.DISAGREE
    if isinstance(predicted, Plan):
        return _judge_plan(case, predicted, answer)
    if predicted.silent:
        return _judge_silent(case, predicted, answer)
    if answer.kind is ReplyKind.REFUSED:
        return Judged.REFUSE
    if answer.kind is ReplyKind.RESULT and predicted.reason == Reason.TRANSPOSES:
        return Judged.DECLINED
    return Judged.DISAGREE


def _judge_plan(case: Case, plan: Plan, answer: Reply) -> Judged:
    if answer.kind is not ReplyKind.RESULT:
        # An op that crashes on some shapes may refuse to compile on similar shapes.
        divergence = striking(case, plan, frozenset({Reason.CRASH}))
        return Judged.CRASH if divergence else Judged.DISAGREE
    if KINDS[row_of(case).kind].matches(answer.arrays, expected_values(case, plan)):
        return Judged.EQUAL
    divergence = striking(case, plan, frozenset({Reason.WRONG_RESULT}))
    return Judged.WRONG if divergence else Judged.DISAGREE


#: Silent reasons with any outcome: the engine writes beyond an array, and the effect (a refusal,
#: any answer, even NumPy's, a later crash) depends on the memory there.
UNDEFINED = frozenset({Reason.OVERRUN})


def _judge_silent(case: Case, predicted: BroadcastError, answer: Reply) -> Judged:
    """A disagreement if the engine refuses or gives NumPy's answer.

    An empty result proves nothing. NumPy's answer is wrong under pdpd and under a mapping.
    """
    if predicted.reason in UNDEFINED:
        return Judged.SILENT
    if answer.kind is ReplyKind.REFUSED:
        return Judged.DISAGREE
    own = "axes_mapping" not in case.attrs and case.attrs.get("auto_broadcast") != "pdpd"
    if answer.kind is ReplyKind.RESULT and own and answer.arrays[0].size:
        sane = numpy_result(case)
        if sane is not None and KINDS[row_of(case).kind].matches(answer.arrays, sane):
            return Judged.DISAGREE
    return Judged.SILENT


def describe(predicted: Plan | BroadcastError) -> str:
    """A prediction in a phrase."""
    if isinstance(predicted, Plan):
        return f"{predicted.shape} from {', '.join(map(str, predicted.aligned))}"
    return f"{'silent ' if predicted.silent else ''}refusal ({predicted.reason})"


def ask(process: Process, case: Case, *, again: bool = True) -> Reply:
    """The engine's answer to a case: a result for each pass of its kind, one after the other.

    `again` is that of :meth:`Process.ask`.
    """
    row = row_of(case)
    target = case.b if row.roles is ShapeRoles.TO else ()
    task = Task(Form.CALL, case.op, case.attrs, target)
    results: list[Array] = []
    for operands in KINDS[row.kind].operands(shapes_of(case, row), case.dtype):
        answer = process.ask(task, operands, again=again)
        if answer.kind is not ReplyKind.RESULT:
            return answer
        results += answer.arrays
    return Reply(ReplyKind.RESULT, arrays=tuple(results))


def run_engine(
    process: Process, cases: Sequence[Case], advance: Callable[[], None] = lambda: None
) -> EngineReport:
    """Runs the cases on a started engine and judges each by the row of its release.

    Cases that are predicted to go wrong silently run last, and once: they may ruin the child's
    memory.
    """
    report = EngineReport(process.engine, process.version, distinct=len(set(map(str, cases))))
    asked = title_of(find_engine(process.engine), process.version)
    report.unmodelled.update(label(case) for case in cases if not process.takes(case.shapes))
    taken = [case for case in cases if process.takes(case.shapes)]
    predictions = [(case, predict(case, asked)) for case in taken]
    for case, predicted in sorted(predictions, key=lambda pair: _is_silent(pair[1])):
        answer = ask(process, case, again=not _is_silent(predicted))
        verdict = judge(case, predicted, answer)
        words = (describe(predicted), answer.describe()) if verdict is Judged.DISAGREE else ("", "")
        report.add(JudgedCase(case, verdict, *words))
        advance()
    return report


def _is_silent(predicted: Plan | BroadcastError) -> bool:
    return isinstance(predicted, BroadcastError) and predicted.silent
