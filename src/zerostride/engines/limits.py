"""Plans that engines refuse although the rule allows them: checks of finished plans.

Each check raises a Misfit; an engine's row in `rows_*` names it as the `check` of a rule. Checks
ask about sizes as align functions do, so they also work with open sizes.
"""

from __future__ import annotations

from ..core.alignment import laid_out, resolve
from ..core.plan import Plan
from ..core.rules import RULES
from ..errors import Misfit, Reason
from ..sizes import Asker, Shape, Size

#: TensorFlow's kernels for a binary op: BCast's axes after merging, tensorflow/core/util/bcast.h
#: and the switch over them in cwise_ops_common.h.
TENSORFLOW_RUNS = 5
#: The same for SelectV2, which does not merge.
TENSORFLOW_WHERE_RANK = 8
#: Paddle 3.3.1: the limit of expand, which stretches the operands of where
#: (phi/infermeta/unary.cc).
PADDLE_WHERE_RANK = 8
#: OpenVINO 2026.4.1, explicit with gaps: 284 of 284 with 7 runs or more were wrong, 1,000 of 1,000
#: with fewer were right.
OPENVINO_RUNS = 6

#: LiteRT 2.3.0: axes of its stretching loops, NdArrayDesc<8> of tflite/kernels/internal/common.h;
#: beyond them a check ends the process. The limits of 4 to 6 in documents are outdated.
LITERT_RANK = 8


def tensorflow_runs(plan: Plan, asker: Asker) -> None:
    """At most 5 runs of neighbouring axes that stretch alike; axes of extent 1 do not count.

    An empty result needs no computation and is never refused.
    """
    if plan.rank <= TENSORFLOW_RUNS or is_empty(plan, asker):
        return
    runs = count_runs(plan, asker)
    if runs > TENSORFLOW_RUNS:
        raise Misfit(
            Reason.RANK_LIMIT,
            f"{runs} runs of axes that stretch alike; the most it carries is {TENSORFLOW_RUNS}",
        )


def is_empty(plan: Plan, asker: Asker) -> bool:
    """Whether the result has no elements."""
    return any(asker.equal(size, 0) for size in plan.shape)


def count_runs(plan: Plan, asker: Asker) -> int:
    """The number of runs of neighbouring axes along which the same operands stretch."""
    runs = 0
    previous: tuple[bool, ...] | None = None
    for axis, size in enumerate(plan.shape):
        if asker.is_one(size):
            continue
        # The result's extent is not 1 here, so an operand with extent 1 stretches.
        state = tuple(asker.is_one(aligned[axis]) for aligned in plan.aligned)
        if state != previous:
            runs, previous = runs + 1, state
    return runs


def tensorflow_where(plan: Plan, asker: Asker) -> None:
    """At most 8 axes, unless the result is empty."""
    if plan.rank > TENSORFLOW_WHERE_RANK and not is_empty(plan, asker):
        raise Misfit(
            Reason.RANK_LIMIT,
            f"{plan.rank} axes; the most it carries is {TENSORFLOW_WHERE_RANK}",
        )


def paddle_where(plan: Plan, asker: Asker) -> None:
    """At most 8 axes, unless nothing stretches."""
    if plan.rank > PADDLE_WHERE_RANK and (any(plan.stretched) or len(set(plan.operands)) > 1):
        detail = f"{plan.rank} axes; the most it stretches is {PADDLE_WHERE_RANK}"
        raise Misfit(Reason.RANK_LIMIT, detail)


def openvino_gaps(plan: Plan, asker: Asker) -> None:
    """Explicit with 7 runs of axes or more is right only if the data's axes are the last ones.

    With a gap between or after them, the mapping is lost: the data are read as if their axes were
    the last ones.
    """
    (mapping,) = plan.axes_mapping
    last = tuple(range(plan.rank - len(mapping), plan.rank))
    if mapping == last or plan.rank <= OPENVINO_RUNS or is_empty(plan, asker):
        return
    runs = count_runs(plan, asker)
    if runs > OPENVINO_RUNS:
        raise Misfit(
            Reason.WRONG_RESULT,
            f"{runs} runs of axes that stretch alike, with a gap between the data's axes; "
            f"the most it computes is {OPENVINO_RUNS}",
        )


def openvino_rewritten(plan: Plan, asker: Asker) -> None:
    """Under pdpd the CPU plugin rewrites the op into others that use the numpy rule.

    The result is right only if both rules mean the same. Compiling refuses if NumPy's rule refuses.
    """
    shape, aligned = _as_numpy(plan, asker)
    if not _alike(shape, plan.shape, asker) or not _aligned_alike(aligned, plan, asker):
        raise Misfit(
            Reason.WRONG_RESULT, "the plugin rewrites the op and forgets pdpd; numpy differs here"
        )


def openvino_compared(plan: Plan, asker: Asker) -> None:
    """Under pdpd the CPU plugin compiles these ops by the numpy rule, never with an axis above 0.

    The result has NumPy's meaning if its shape is the one that pdpd infers; otherwise the plugin
    refuses. An empty result is not checked.
    """
    if not is_empty(plan, asker) and plan.rule.attributes.get("axis", 0) > 0:
        raise Misfit(Reason.NO_RULE, "the plugin compiles this op only for the axes 0 and -1")
    openvino_by_numpy(plan, asker)


def openvino_by_numpy(plan: Plan, asker: Asker) -> None:
    """Under pdpd the CPU plugin computes these ops by the numpy rule, and refuses with it."""
    if is_empty(plan, asker):
        return
    shape, aligned = _as_numpy(plan, asker)
    if not _alike(shape, plan.shape, asker):
        raise Misfit(Reason.NO_RULE, f"by the numpy rule, which the plugin takes, {shape}")
    if not _aligned_alike(aligned, plan, asker):
        raise Misfit(Reason.WRONG_RESULT, "the plugin computes by the numpy rule")


def openvino_shifted(plan: Plan, asker: Asker) -> None:
    """Under pdpd the CPU plugin shifts by the numpy rule; where that refuses, it reads on."""
    try:
        openvino_by_numpy(plan, asker)
    except Misfit as misfit:
        raise Misfit(Reason.WRONG_RESULT, misfit.detail) from None


def openvino_uncompiled(plan: Plan, asker: Asker) -> None:
    """Under pdpd the CPU plugin has no kernel for the op on this element type."""
    raise Misfit(Reason.NO_RULE, "the plugin does not compile this op on this element type")


def _as_numpy(plan: Plan, asker: Asker) -> tuple[Shape, tuple[Shape, ...]]:
    """The result and the aligned operands by NumPy's rule; the Asker lets open sizes work."""
    rule = RULES["numpy"]
    alignment = rule.align(asker, plan.operands, {})
    try:
        shape = resolve(asker, plan.operands, alignment, rule)
    except Misfit as misfit:
        raise Misfit(Reason.EXTENT_MISMATCH, f"by the numpy rule, {misfit.detail}") from None
    rows = laid_out(plan.operands, alignment.mapping, alignment.rank, 1)
    return shape, tuple(map(tuple, rows))


def _alike(a: Shape, b: Shape, asker: Asker) -> bool:
    return len(a) == len(b) and all(map(asker.equal, a, b))


def _aligned_alike(aligned: tuple[Shape, ...], plan: Plan, asker: Asker) -> bool:
    return all(_alike(a, b, asker) for a, b in zip(aligned, plan.aligned, strict=True))


def paddle_axis(plan: Plan, asker: Asker) -> None:
    """An axis below −1 passes shape inference and fails at run, unless nothing runs."""
    ranks = {len(shape) for shape in plan.operands}
    axis = plan.rule.attributes.get("axis", -1)
    if axis < -1 and len(ranks) > 1 and not is_empty(plan, asker):
        raise Misfit(Reason.AXIS_RANGE, f"axis {axis}: the kernel takes none below -1")


def paddle_compared(plan: Plan, asker: Asker) -> None:
    """A comparison's kernel reads the axis, its inference of shapes does not: both must fit."""
    paddle_axis(plan, asker)
    shape, _ = _as_numpy(plan, asker)
    if not _alike(shape, plan.shape, asker):
        detail = f"it infers {shape} without the axis, and the kernel computes {plan.shape} with it"
        raise Misfit(Reason.WRONG_RESULT, detail)


def litert_axes(plan: Plan, asker: Asker, most: int = LITERT_RANK) -> None:
    """More axes only if nothing stretches: the operands have one and the same shape."""
    if plan.rank > most and not of_one_shape(plan, asker):
        raise Misfit(
            Reason.RANK_LIMIT,
            f"{plan.rank} axes; the most it carries where sizes differ is {most}",
        )


def of_one_shape(plan: Plan, asker: Asker) -> bool:
    """Whether all operands have one and the same shape."""
    first, *rest = plan.operands
    return all(_alike(first, other, asker) for other in rest)


def litert_select(plan: Plan, asker: Asker) -> None:
    """As `litert_axes`; for operands of one element SELECT_V2 keeps the model's declared shape."""
    if not all_ones(plan, asker):
        litert_axes(plan, asker)


def all_ones(plan: Plan, asker: Asker) -> bool:
    """Whether every operand has one element."""
    return all(asker.is_one(size) for shape in plan.operands for size in shape)


def litert_fivefold(plan: Plan, asker: Asker) -> None:
    """As `litert_axes`, but without a limit if the axes merge into five loops."""
    if plan.rank > LITERT_RANK and not merges_fivefold(plan, asker):
        litert_axes(plan, asker)


def litert_fivefold_stretched(plan: Plan, asker: Asker) -> None:
    """As `litert_fivefold`, but shapes that differ by ones in front alone are not merged."""
    if all(_alike(aligned, plan.shape, asker) for aligned in plan.aligned):
        litert_axes(plan, asker)
    litert_fivefold(plan, asker)


def merges_fivefold(plan: Plan, asker: Asker) -> bool:
    """Whether the axes of two operands merge into LiteRT's five loops.

    From the last axis outwards: equal sizes, ones of one operand, equal sizes, ones of the other,
    equal sizes (tflite/kernels/internal/reference/process_broadcast_shapes.h).
    """
    if len(plan.aligned) != 2:
        return True
    pairs = list(zip(*plan.aligned, strict=True))[::-1]
    states = [_stretching_side(asker, *pair) for pair in pairs]
    first = next((state for state in states if state is not None), None)
    axis = 0
    for side in (None, first, None, None if first is None else 1 - first, None):
        while axis < len(states) and _goes_with(asker, pairs[axis], states[axis], side):
            axis += 1
    return axis == len(states)


def _stretching_side(asker: Asker, a: Size, b: Size) -> int | None:
    """The index of the size that is the 1 that stretches; None if the sizes are equal."""
    if asker.equal(a, b):
        return None
    return 0 if asker.is_one(a) else 1


def _goes_with(asker: Asker, pair: tuple[Size, Size], state: int | None, side: int | None) -> bool:
    """Whether an axis belongs to a loop over equal sizes (None), or over one operand's ones."""
    if state is None and side is not None:
        return asker.is_one(pair[side])
    return state == side


def first_is_whole(plan: Plan, asker: Asker) -> None:
    """The first operand does not stretch, even if it lacks an axis."""
    for size, whole in zip(plan.aligned[0], plan.shape, strict=True):
        if not asker.equal(size, whole):
            raise Misfit(Reason.ONE_WAY, f"{size} of the first operand against {whole}")


def one_stretches(plan: Plan, asker: Asker) -> None:
    """At most one operand stretches."""
    moving = [
        k
        for k, axes in enumerate(plan.stretched)
        if any(not asker.equal(plan.aligned[k][axis], plan.shape[axis]) for axis in axes)
    ]
    if len(moving) > 1:
        raise Misfit(Reason.ONE_WAY, "both operands would stretch")


def condition_by_fours(plan: Plan, asker: Asker) -> None:
    """For a result of one slice of channels, four truth values are read, not one stretched."""
    condition = plan.aligned[0]
    if not condition or all(map(asker.is_one, condition)) or not asker.is_one(condition[-1]):
        return
    channels = plan.shape[-1]
    if len(condition) > 1 and any(asker.equal(channels, few) for few in (2, 3, 4)):
        detail = "a condition of one channel is read as four, of which it has one"
        raise Misfit(Reason.WRONG_RESULT, detail)


def mnn_where(plan: Plan, asker: Asker) -> None:
    """MNN stretches the third operand of a Select only if it also stretches the second one.

    It tests the second one's size instead of the third's, and then reads past the end of the third
    (run: MNN 3.6.1, tests/conformance/test_mnn_format.py). A single number is accepted for all.
    """
    if len(plan.aligned) != 3:
        return  # two operands: their sizes are tested
    _, second, third = plan.aligned
    if all(map(asker.is_one, third)):
        return
    pairs = zip(second, third, plan.shape, strict=True)
    whole = [(asker.equal(a, size), asker.equal(b, size)) for a, b, size in pairs]
    if all(a for a, _ in whole) and not all(b for _, b in whole):
        raise Misfit(
            Reason.WRONG_RESULT, "the third operand is not stretched beside a whole second"
        )
