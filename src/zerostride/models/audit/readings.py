"""Operands that could have been meant for another axis of the same size.

(N, C, H, W) + (W,) is right however many channels there are. Where W == C nothing tells whether the
channel was meant, and shapes cannot: so a finding says both readings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...core.plan import Plan
from ..findings import Finding, Verdict
from .source_lines import operand_texts

#: The axis of channels in ONNX, PyTorch and most files.
_CHANNEL = 1


def with_readings(findings: Sequence[Finding]) -> list[Finding]:
    """The findings; where an operand's axis has a channel axis's size, with a note on both."""
    return [
        replace(finding, notes=(*finding.notes, *notes)) if (notes := _notes(finding)) else finding
        for finding in findings
    ]


def _notes(finding: Finding) -> list[str]:
    plan = finding.source
    if finding.verdict is Verdict.SAME or not isinstance(plan, Plan) or plan.rank < 3:
        return []
    written = operand_texts(finding)
    notes = []
    for k, (name, shape) in enumerate(finding.operands):
        if shape is None or len(shape) >= plan.rank or k >= len(plan.aligned):
            continue  # every axis is written down
        extents = [(axis, size) for axis, size in enumerate(plan.aligned[k]) if size != 1]
        if len(extents) != 1 or not isinstance(extents[0][1], int):
            continue
        (axis, size) = extents[0]
        if axis == _CHANNEL or plan.shape[_CHANNEL] != size:
            continue
        ones = ", 1" * (plan.rank - 1 - _CHANNEL)
        reshape = f"reshape {name} to ({size}{ones})"
        change = f"{written[k]}.view(-1{ones})" if written else reshape
        meant = "the channel" if plan.rank > 3 else "that one"
        notes.append(
            f"{name!r} lies along axis {axis}; axis {_CHANNEL} has the same size, {size}: if you "
            f"meant {meant}, {change}"
        )
    return notes


__all__ = ["with_readings"]
