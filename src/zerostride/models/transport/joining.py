"""Findings of nodes that a converter joins with their neighbours."""

from __future__ import annotations

from dataclasses import replace

from ...errors import BroadcastError, Reason
from ..findings import Finding, Verdict


def as_wrong(finding: Finding, words: str) -> Finding:
    """The finding of a node that a converter makes a wrong layer of, with its neighbours."""
    wrong = BroadcastError(words, reason=Reason.WRONG_RESULT, silent=True)
    return _decided(finding, Verdict.DIFFERENT, wrong)


def as_refused(finding: Finding, words: str) -> Finding:
    """The finding of a node of which a converter makes a file that the engine refuses."""
    return _decided(finding, Verdict.REFUSED, BroadcastError(words, reason=Reason.RANK))


def _decided(finding: Finding, verdict: Verdict, error: BroadcastError) -> Finding:
    return replace(
        finding,
        verdict=verdict,
        reason=error.reason,
        target=error,
        message=error.detail,
        fix=None,
        witness=None,
        notes=(),
        when=None,
        values=None,
    )
