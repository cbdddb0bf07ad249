"""Plans that older releases of engines did otherwise: the conditions of `changes`."""

from __future__ import annotations

from collections.abc import Collection

from ..core.plan import Plan
from ..errors import Misfit, Reason
from ..sizes import Asker, Shape
from . import limits
from .rows import is_target


def _stretches(plan: Plan, asker: Asker) -> list[tuple[bool, ...]]:
    """For each operand that stretches, whether it does along each result axis above 1."""
    wide = [axis for axis, size in enumerate(plan.shape) if not asker.is_one(size)]
    rows = [tuple(asker.is_one(aligned[axis]) for axis in wide) for aligned in plan.aligned]
    return [row for row in rows if any(row)]


def _one_rank(plan: Plan) -> bool:
    return len(set(map(len, plan.operands))) == 1


def both_or_between(plan: Plan, asker: Asker) -> bool:
    """Operands of one rank: both stretch, or one does along axes neither outer nor inner.

    The middle axis of three had its own kernel.
    """
    runs = _stretches(plan, asker) if _one_rank(plan) else []
    if len(runs) != 1:
        return len(runs) > 1
    one_run = list(runs[0]) in (sorted(runs[0]), sorted(runs[0], reverse=True))
    return not one_run and not (plan.rank == 3 and runs[0] == (False, True, False))


def no_kernel(plan: Plan, asker: Asker) -> bool:
    """Operands of one rank without a kernel before 2023; two and four axes had none at all."""
    runs = _stretches(plan, asker) if _one_rank(plan) else []
    if not runs or plan.rank not in (2, 3, 4):
        return False
    if plan.rank != 3 or both_or_between(plan, asker):
        return True
    (stretched,) = (row for row in plan.aligned if row != plan.shape)
    return asker.is_one(stretched[0]) and sum(map(asker.is_one, stretched)) > 1


def outer_or_middle(plan: Plan, asker: Asker) -> bool:
    """(2,3,4) with (2,1,4) or (1,3,4)."""
    stretches = (0,) in plan.stretched or (1,) in plan.stretched
    return _one_rank(plan) and plan.rank == 3 and stretches


def inner_vector(plan: Plan, asker: Asker) -> bool:
    """A vector that lands on the innermost axis of a higher rank."""
    return any(
        len(shape) == 1 < plan.rank and mapping == (plan.rank - 1,)
        for shape, mapping in zip(plan.operands, plan.axes_mapping, strict=True)
    )


def empty(plan: Plan, asker: Asker) -> bool:
    """An operand without elements."""
    return any(asker.equal(size, 0) for shape in plan.operands for size in shape)


def any_plan(plan: Plan, asker: Asker) -> bool:
    """Every plan."""
    return True


def rank_0(plan: Plan, asker: Asker) -> bool:
    """A result of rank 0."""
    return plan.rank == 0


def four_axes(plan: Plan, asker: Asker) -> bool:
    """A result of four axes."""
    return plan.rank == 4


def beyond(most: int, plan: Plan, asker: Asker) -> bool:
    """A result of more axes than that."""
    return plan.rank > most


def empty_target(plan: Plan, asker: Asker) -> bool:
    """A Broadcast op to a shape without elements."""
    return limits.is_empty(plan, asker)


def unchanged(plan: Plan, asker: Asker) -> bool:
    """A Broadcast op that returns its data."""
    return is_target(plan) and not any(plan.stretched)


def empty_unlike(plan: Plan, asker: Asker) -> bool:
    """A result without elements, of operands that differ."""
    return limits.is_empty(plan, asker) and len(set(plan.operands)) > 1


def inside_empty(plan: Plan, asker: Asker) -> bool:
    """A Broadcast op that stretches an axis inside of an empty one."""
    (aligned,) = plan.aligned
    extents = [asker.equal(size, 0) for size in plan.shape]
    return any(
        any(extents[:axis])
        and asker.is_one(aligned[axis])
        and not asker.is_one(size)
        and not extents[axis]
        for axis, size in enumerate(plan.shape)
    )


def slope_beyond_5(plan: Plan, asker: Asker) -> bool:
    """Data of more than 5 axes without elements, or with a slope along others than the last."""
    lists = all(map(asker.is_one, plan.aligned[1][:-1]))
    whole = limits.of_one_shape(plan, asker)
    return plan.rank > 5 and not whole and (limits.is_empty(plan, asker) or not lists)


def among(shapes: Collection[tuple[Shape, ...]], plan: Plan, asker: Asker) -> bool:
    """One of these combinations of shapes; of a Broadcast op with the target's."""
    target = (plan.shape,) if is_target(plan) else ()
    return (*plan.operands, *target) in shapes


def unlimited(plan: Plan, asker: Asker) -> None:
    """A check that every plan passes."""


def most_axes(full: int, empty: int, plan: Plan, asker: Asker) -> None:
    """LiteRT before 2.1: axes of an op's loop where sizes differ.

    Args:
        full: the most axes of a result with elements; XNNPACK may compute it.
        empty: the most of one without.
        plan, asker: as of a check.
    """
    most = empty if limits.is_empty(plan, asker) else full
    ones = len(plan.operands) == 3 and limits.all_ones(plan, asker)
    if plan.rank > most and not ones and not limits.of_one_shape(plan, asker):
        detail = f"{plan.rank} axes; the most it carries where sizes differ is {most}"
        raise Misfit(Reason.RANK_LIMIT, detail)


def beyond_most(full: int, empty: int, plan: Plan, asker: Asker) -> bool:
    """Whether `most_axes` refuses."""
    try:
        most_axes(full, empty, plan, asker)
    except Misfit:
        return True
    return False


def sixfold(plan: Plan, asker: Asker) -> None:
    """LiteRT before 2.1: arithmetic of up to 6 axes, or as many as merge into five loops."""
    if not_sixfold(plan, asker):
        detail = f"{plan.rank} axes that do not merge; the loops hold 6"
        raise Misfit(Reason.OVERRUN, detail)


def six_axes(plan: Plan, asker: Asker) -> None:
    """LiteRT before 1.4: more than 6 axes are refused, or not noticed."""
    if plan.rank > 6:
        raise Misfit(Reason.OVERRUN, f"{plan.rank} axes; the most it carries is 6")


def not_sixfold(plan: Plan, asker: Asker) -> bool:
    """Whether `sixfold` refuses."""
    return plan.rank > 6 and not limits.merges_fivefold(plan, asker)
