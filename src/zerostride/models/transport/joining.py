"""Findings of nodes that a converter joins with their neighbours."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...errors import BroadcastError, Reason
from ..findings import Finding, Verdict
from ..reasons import Cause


def as_wrong(finding: Finding, words: str) -> Finding:
    """The finding of a node that a converter makes a wrong layer of, with its neighbours."""
    wrong = BroadcastError(words, reason=Reason.WRONG_RESULT, silent=True)
    return _decided(finding, Verdict.DIFFERENT, wrong)


def as_refused(finding: Finding, words: str) -> Finding:
    """The finding of a node that a converter writes so that the engine refuses the file."""
    return _decided(finding, Verdict.REFUSED, BroadcastError(words, reason=Reason.RANK))


def as_same(finding: Finding, words: str) -> Finding:
    """The finding of a node that means the same, with what its neighbours do."""
    return _cleared(
        finding, verdict=Verdict.SAME, reason=Cause.SAME_PLAN, target=finding.source, message=words
    )


def _decided(finding: Finding, verdict: Verdict, error: BroadcastError) -> Finding:
    return _cleared(
        finding, verdict=verdict, reason=error.reason, target=error, message=error.detail
    )


def _cleared(finding: Finding, **now: Any) -> Finding:
    return replace(
        finding,
        **now,
        fix=None,
        witness=None,
        notes=(),
        when=None,
        values=None,
    )
