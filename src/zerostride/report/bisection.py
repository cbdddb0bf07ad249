"""The words of a bisection: its tensors as rows, its culprits as lines."""

from __future__ import annotations

from ..derive.explain import explain
from ..models.bisection import Bisection, Culprit, How, Stage
from ..models.judging import Difference
from .words import LONGEST_NAME, shown

#: The cells of a stage.
STAGE_CELLS = ("tensor", "op", "on the other side", "matched by", "", "error", "apart")
#: The word in a report for each kind of difference.
DIFFERENCES = {
    Difference.NONE: "agrees",
    Difference.NUMBERS: "DIFFERS",
    Difference.NAN: "NaN",
    Difference.INFINITE: "INFINITE",
    Difference.SATURATED: "SATURATED",
    Difference.SHAPE: "OTHER SHAPE",
    Difference.MISSING: "NO ANSWER",
}


def stage_rows(bisection: Bisection) -> list[tuple[str, ...]]:
    """A row for each tensor, with a row of titles."""
    return [STAGE_CELLS, *map(_row, bisection.stages)]


def _row(stage: Stage) -> tuple[str, ...]:
    judged = stage.judged
    sure = f"{stage.how} ({stage.sure:.0%})" if stage.how is not How.NONE else ""
    held = " ".join(
        filter(None, (shown(stage.other, 60), f"({stage.layout})" * bool(stage.layout)))
    )
    return (
        shown(stage.tensor, 60),
        shown(stage.op, 30),
        held if stage.other else "fused, or left out",
        sure,
        "" if judged is None else DIFFERENCES[judged.difference],
        "" if judged is None else f"{judged.error:.1e}",
        "" if stage.drift is None else f"{stage.drift:.1e}",
    )


def culprit_lines(culprit: Culprit, *, drawn: bool = True) -> list[str]:
    """A culprit with its operands, its cause, the two plans as text if `drawn`, and its fix."""
    judged = culprit.judged
    mark = DIFFERENCES[judged.difference]
    lines = [f"{mark}  {shown(culprit.op, 60)} {shown(culprit.node, LONGEST_NAME)}"]
    side = "the other side" if culprit.side == "other" else "the model's own engine"
    count = f"{judged.wrong:,} of {judged.elements:,} numbers differ; " if judged.wrong else ""
    lines.append(f"  on {side} {shown(culprit.other, LONGEST_NAME)}: {count}{shown(judged.detail)}")
    if culprit.inputs:
        operands = ", ".join(f"{shown(name, 60)} {shape}" for name, shape in culprit.inputs)
        lines.append(f"  its operands agree: {operands}")
    if len(culprit.nodes) > 1:
        nodes = ", ".join(shown(node, 60) for node in culprit.nodes)
        lines.append(f"  in one of these nodes, which share no tensor: {nodes}")
    if culprit.origin is not None:
        lines.append(f"  written at: {shown(culprit.origin)}")
    lines.append(f"  cause: {shown(culprit.cause) or 'not known'}")
    if culprit.alone:
        lines.append(f"  {shown(culprit.alone)}")
    plans = culprit.plans if drawn and culprit.plans is not None else ()
    for where, plan in zip(("in the model", "on the other side"), plans, strict=False):
        lines.append(f"  {where}:")
        lines += [f"    {line}" for line in explain(plan, culprit.names).splitlines()]
    if culprit.fix:
        lines.append(f"  fix: {shown(culprit.fix)}")
    return lines
