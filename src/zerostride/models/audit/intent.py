"""Notes on what the author of a model meant, which shapes cannot tell.

(N, C, H, W) + (W,) is right however many channels there are. Where W == C nothing tells whether the
channel was meant, so a finding says both readings.

(N, 1) and (N,) stretch against each other to (N, N): a loss or a residual in which each number was
to meet its own, and every engine computes it. Meant broadcasts look otherwise: operands of one
rank, whose author inserted the axes; whole numbers compared into masks; products of vectors. A
strict audit notes the others.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ...core.accidental import of_unequal_rank, scales_array
from ...core.alignment import placements, plan_or_none, text
from ...core.plan import Plan
from ...core.rules import RULES
from ..findings import Finding, Verdict
from ..ir.graph import Node
from ..reasons import Cause, code_of
from .source_lines import operand_texts

#: The axis of channels in ONNX, PyTorch and most files.
_CHANNEL = 1
#: Ops whose two-sided broadcasts are outer products and tables, unless the sizes are equal.
_OUTER = frozenset({"Mul", "Div", "And", "Or", "Xor", "Where", "Pow"})
#: How many times the larger operand's elements a result has that counts as growth.
GROWTH = 16


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


def accident_notes(judged: Sequence[tuple[Node, Finding]]) -> Iterator[str]:
    """A note for each broadcast that looks accidental, in the model's order."""
    for node, finding in judged:
        plan = finding.source
        if not isinstance(plan, Plan) or not _of_floats(node) or not _is_two_sided(plan):
            continue
        sizes = _stretched(plan)
        cause = Cause.ACCIDENT if len(set(map(str, sizes))) == 1 else Cause.OUTER_GROWTH
        if cause is Cause.OUTER_GROWTH and (finding.op in _OUTER or _growth(plan) < GROWTH):
            continue
        shapes = " and ".join(
            f"{name} {text(shape)}"
            for name, shape in zip(finding.names, plan.operands, strict=False)
        )
        origin = finding.origin
        where = f" at {origin.file}:{origin.line}" if origin is not None and origin.file else ""
        advice = "where it is meant, give both operands one rank"
        if cause is Cause.ACCIDENT:
            advice = f"if each number was to meet its own: {_change(finding, plan)}"
        yield (
            f"{code_of(cause)} {finding.op} {finding.node}{where}: {shapes} stretch against each "
            f"other to {text(plan.shape)}; {advice}"
        )


def _of_floats(node: Node) -> bool:
    """Whether the operands may be floating-point: whole numbers make masks and indices."""
    kinds = [value.dtype for value in node.inputs if value is not None and value.dtype is not None]
    return all(kind.startswith(("float", "bfloat")) for kind in kinds)


def _is_two_sided(plan: Plan) -> bool:
    """Whether two operands of unequal rank, none a number, stretch against each other."""
    if len(plan.operands) != 2 or not plan.two_sided:
        return False
    return of_unequal_rank(plan.operands) and not scales_array(plan.operands)


def _stretched(plan: Plan) -> list[object]:
    """The result's sizes along which one operand stretches and the other does not."""
    return [
        size
        for axis, size in enumerate(plan.shape)
        if size != 1
        and any(row[axis] == 1 for row in plan.aligned)
        and any(row[axis] != 1 for row in plan.aligned)
    ]


def _growth(plan: Plan) -> float:
    """How many times the larger operand's elements the result has; 0 for sizes that are open."""
    shapes = [*plan.operands, plan.shape]
    if not all(isinstance(size, int) for shape in shapes for size in shape):
        return 0
    *operands, result = [math.prod(shape) for shape in shapes]
    return float(result / max(1, *operands))


def _change(finding: Finding, plan: Plan) -> str:
    """The lower operand at the higher one's rank, so that neither stretches against the other."""
    low = min(range(2), key=lambda k: len(plan.operands[k]))
    extents = tuple(size for size in plan.operands[low] if size != 1)
    for placed in placements(extents, plan.rank):
        shapes = [plan.operands[1 - low], placed]
        again = plan_or_none(RULES["numpy"], shapes, {})
        if again is not None and not again.two_sided:
            written = operand_texts(finding)
            sizes = [size if isinstance(size, int) else -1 for size in placed]
            if written and sizes.count(-1) < 2:
                return f"{written[low]}.reshape({', '.join(map(str, sizes))})"
            return f"reshape {finding.names[low]} to {text(placed)}"
    return "give both operands one rank"


__all__ = ["GROWTH", "accident_notes", "with_readings"]
