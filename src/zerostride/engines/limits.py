"""What engines refuse although the rule allows it: checks of finished plans.

Each raises a Misfit. They are the `check` of a rule's row in `table`.
"""

from __future__ import annotations

from ..alignment import apply
from ..errors import BroadcastError, Misfit, Reason
from ..plan import Plan
from ..rules import RULES

#: TensorFlow's kernels for a binary op: BCast's axes after merging, tensorflow/core/util/bcast.h
#: and the switch over them in cwise_ops_common.h.
TENSORFLOW_RUNS = 5
#: The same for SelectV2, which does not merge.
TENSORFLOW_WHERE_RANK = 8
#: OpenVINO 2026.4.1, explicit with gaps: 284 of 284 with 7 runs or more were wrong, 1,000 of 1,000
#: with fewer were right.
OPENVINO_RUNS = 6


def tensorflow_runs(plan: Plan) -> None:
    """At most 5 runs of neighbouring axes that stretch alike; axes of extent 1 do not count.

    Nothing is computed where the result is empty, and so nothing is refused.
    """
    if 0 in plan.shape:
        return
    runs = _runs(plan)
    if runs > TENSORFLOW_RUNS:
        raise Misfit(
            Reason.RANK_LIMIT,
            f"{runs} runs of axes that stretch alike; the most it carries is {TENSORFLOW_RUNS}",
        )


def _runs(plan: Plan) -> int:
    """How many runs of neighbouring axes there are along which the same operands stretch."""
    runs = 0
    previous: tuple[bool, ...] | None = None
    for axis, size in enumerate(plan.shape):
        state = tuple(axis in stretched for stretched in plan.stretched)
        if size != 1 and state != previous:
            runs, previous = runs + 1, state
    return runs


def tensorflow_where(plan: Plan) -> None:
    """At most 8 axes, unless the result is empty."""
    if plan.rank > TENSORFLOW_WHERE_RANK and 0 not in plan.shape:
        raise Misfit(
            Reason.RANK_LIMIT,
            f"{plan.rank} axes; the most it carries is {TENSORFLOW_WHERE_RANK}",
        )


def openvino_gaps(plan: Plan) -> None:
    """Explicit with 7 runs of axes or more is right only where the data's axes are the last ones.

    With a gap between them, or after them, the mapping is forgotten: the data are read as if their
    axes were the last ones.
    """
    (mapping,) = plan.axes_mapping
    last = tuple(range(plan.rank - len(mapping), plan.rank))
    if mapping != last and 0 not in plan.shape and _runs(plan) > OPENVINO_RUNS:
        raise Misfit(
            Reason.WRONG_RESULT,
            f"{_runs(plan)} runs of axes that stretch alike, with a gap between the data's axes; "
            f"the most it computes is {OPENVINO_RUNS}",
        )


def openvino_rewritten(plan: Plan) -> None:
    """Under pdpd the CPU plugin rewrites the op into others that have the numpy rule again.

    Only where both rules mean the same is the answer right. Where NumPy's refuses, compiling does.
    """
    if _as_numpy(plan) != plan:
        raise Misfit(
            Reason.WRONG_RESULT, "the plugin rewrites the op and forgets pdpd; numpy differs here"
        )


def openvino_compared(plan: Plan) -> None:
    """Under pdpd the CPU plugin compiles these with the numpy rule, and never with an axis above 0.

    What comes out is NumPy's meaning, if that has the shape that pdpd infers; else it refuses.
    Nothing is looked at where the result is empty.
    """
    if 0 in plan.shape:
        return
    if plan.rule.attributes.get("axis", 0) > 0:
        raise Misfit(Reason.NO_RULE, "the plugin compiles this op only for the axes 0 and -1")
    numpys = _as_numpy(plan)
    if numpys.shape != plan.shape:
        raise Misfit(Reason.NO_RULE, f"by the numpy rule, which the plugin takes, {numpys.shape}")
    if numpys != plan:
        raise Misfit(Reason.WRONG_RESULT, "the plugin computes by the numpy rule")


def _as_numpy(plan: Plan) -> Plan:
    try:
        return apply(RULES["numpy"], plan.operands, {})
    except BroadcastError as error:
        raise Misfit(Reason.EXTENT_MISMATCH, f"by the numpy rule, {error.detail}") from None


def paddle_axis(plan: Plan) -> None:
    """An axis below −1 passes the inference of shapes and fails at run, unless nothing runs."""
    ranks = {len(shape) for shape in plan.operands}
    axis = plan.rule.attributes.get("axis", -1)
    if axis < -1 and len(ranks) > 1 and 0 not in plan.shape:
        raise Misfit(Reason.AXIS_RANGE, f"axis {axis}: the kernel takes none below -1")
