"""The outcome for an op that an interpreter's delegate does not carry as the model means it.

A delegate takes the ops that it supports and leaves the others to the interpreter's own kernels, on
the CPU. An op that it takes and then cannot build keeps the whole delegate from starting.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum

from ...engines.model import Engine
from ...errors import Reason
from ..findings import Finding, Verdict
from ..ir.site import Kind
from ..reasons import Cause

#: Kinds whose refusals come from a check before the delegate takes the op.
_CHECKED = frozenset({Kind.ELEMENTWISE, Kind.WHERE, Kind.EXPAND, Kind.PRELU})
#: Nodes of one outcome that a note names.
_MOST_NAMED = 5


class Outcome(StrEnum):
    """The outcomes of a finding that is not the same."""

    CPU = "falls back to the CPU"
    REFUSED = "refused: the delegate does not start"
    WRONG = "silently wrong"
    UNKNOWN = "not known"


def with_outcomes(
    engine: Engine, kinds: Mapping[str, Kind], findings: Sequence[Finding]
) -> tuple[list[Finding], list[str]]:
    """The findings with their outcomes, and the answer whether the model is clean.

    Args:
        engine: the target; without `leaves` the findings stay as they are.
        kinds: the kind of site by the node's path.
        findings: the findings.
    """
    if not engine.leaves:
        return list(findings), []
    told, named = [], dict[Outcome, list[str]]()
    for finding in findings:
        outcome = _outcome(engine, kinds.get(finding.node), finding)
        if outcome is not None:
            named.setdefault(outcome, []).append(finding.node)
            finding = replace(finding, notes=(*finding.notes, str(outcome)))
        told.append(finding)
    if not named:
        return told, [f"{engine.name}: clean, every broadcast is carried as the model means it"]
    parts = (f"{outcome}: {_listed(named[outcome])}" for outcome in Outcome if outcome in named)
    return told, [f"{engine.name}: not clean; {'; '.join(parts)}"]


def _outcome(engine: Engine, kind: Kind | None, finding: Finding) -> Outcome | None:
    if finding.verdict is Verdict.SAME or finding.reason == Cause.INVALID:
        return None
    if finding.verdict is Verdict.DIFFERENT:
        return Outcome.WRONG
    if finding.verdict is Verdict.REFUSED:
        left = finding.reason in engine.leaves and kind in _CHECKED
        # A tensor without axes passes the checks, and cannot be laid out afterwards.
        left = left and not (finding.reason == Reason.RANK and _without_axes(finding))
        return Outcome.CPU if left else Outcome.REFUSED
    return Outcome.UNKNOWN


def outcome_of(finding: Finding) -> Outcome | None:
    """The outcome that :func:`with_outcomes` has noted."""
    return next((outcome for outcome in Outcome if outcome in finding.notes), None)


def _without_axes(finding: Finding) -> bool:
    return any(shape == () for _, shape in finding.operands)


def _listed(nodes: Sequence[str]) -> str:
    more = len(nodes) - _MOST_NAMED
    shown = ", ".join(nodes[:_MOST_NAMED])
    return f"{shown} and {more} more" if more > 0 else shown
