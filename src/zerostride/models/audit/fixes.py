"""Fixes of findings: changes after which the target means what the model means."""

from __future__ import annotations

from dataclasses import replace

from ...core.plan import Plan, RuleUse
from ...derive.express import Expression, express
from ...derive.express.merging import fewer_axes, groups_of
from ...errors import BroadcastError, NotExpressible
from ...sizes import Shape
from ...sizes.condition import Condition
from ..ir.site import Kind
from ..transport.compound_engines import CARRIERS, MANY
from .judged_site import JudgedSite

#: Added to the reason of a rank limit that no fix avoids.
NO_MERGE = "; no merge of neighbouring axes fits"


def fix_of(case: JudgedSite) -> Expression | None:
    """The change by which the target means what the source means, or None."""
    if not _tabled(case):
        return _reshaped(case) or _merged(case)
    fix = expressed(case)
    return fix and (_in_both(case, fix) or fix)


def _in_both(case: JudgedSite, fix: Expression) -> Expression | None:
    """Shapes with the same meaning under the model's own rule, where those of `fix` have another.

    The target's least change may leave out axes that the model's rule needs: (1, 4) for ncnn is
    (1, 4, 1) for both. Only the latter is right for a user who changes the model and then converts.
    """
    meaning, meant = case.meaning, case.sample.plan
    by_shapes = not (fix.swapped or fix.attributes or fix.merged_axes or fix.explicit)
    if meaning is None or meaning.rule.to_target or not by_shapes:
        return None
    if meaning.plan(fix.shapes) == meant:
        return None
    pairs = zip(fix.changed, meant.aligned, meant.operands, strict=True)
    shapes = tuple(aligned if changed else shape for changed, aligned, shape in pairs)
    return _try(case, shapes) if meaning.plan(shapes) == meant else None


def _tabled(case: JudgedSite) -> bool:
    """Whether the target's rule is in the engine table, where `express` looks for it."""
    stacked = len(case.shapes) > 2 and (case.engine.name, case.site.stands_for) in MANY
    many = stacked or len(case.shapes) > case.target.rule.operands[1]
    missing = case.site.kind is Kind.EXPAND and not case.engine.to_target  # a converter's rule
    return case.target.op not in CARRIERS and not many and not missing


def expressed(case: JudgedSite) -> Expression | None:
    """The source's plan as the target's rule expresses it, open sizes included."""
    if not _tabled(case):
        return None
    try:
        fix = express(case.sample.plan, None, engine=case.engine.title, op=case.target.op)
    except (NotExpressible, BroadcastError):  # a converter writes ops that the table lacks
        return None
    if case.site.kind is Kind.EXPAND:
        # The plan has the data alone; the model may write another target shape.
        return replace(fix, changed=(*fix.changed, fix.shapes[1] != case.shapes[1]))
    return fix


def fix_of_trap(case: JudgedSite) -> Expression | None:
    """The fix of a size trap: every operand at the result's rank, where no size can misplace it."""
    return _try(case, case.sample.plan.aligned)


def fix_of_mixed(case: JudgedSite, one: int) -> Expression | None:
    """The fix of mixed layouts: the operand of one number without axes."""
    return _try(case, tuple(() if k == one else shape for k, shape in enumerate(case.shapes)))


def rank_notes(case: JudgedSite, fix: Expression | None) -> tuple[str, ...]:
    """Notes on a rank limit: if all tensors have it, neighbouring nodes need the merge too."""
    most = case.engine.tensor_rank
    if fix is None or not fix.merged_axes or most is None:
        return ()
    return (
        f"{case.engine.name} has no tensors of more than {most} axes: what makes these operands "
        "and what takes the result must have the axes merged too",
    )


def _reshaped(case: JudgedSite) -> Expression | None:
    """The operands after the first in aligned form: with all axes, without outer ones, or none."""
    first, *rest = case.sample.plan.operands
    bare = tuple(tuple(size for size in shape if size != 1) for shape in rest)
    *others, every = forms(case.sample.plan)
    tries = (_try(case, shapes) for shapes in (*others, (first, *bare), every))
    return next(filter(None, tries), None)


def forms(meant: Plan) -> list[tuple[Shape, ...]]:
    """Candidate shapes for the operands, the least change first."""
    first, outer = meant.operands[0], tuple(map(without_outer, meant.aligned[1:]))
    return [(first, *meant.aligned[1:]), (first, *outer), meant.aligned]


def without_outer(shape: Shape) -> Shape:
    """The shape without the ones at its front."""
    filled = [axis for axis, size in enumerate(shape) if size != 1]
    return shape[filled[0] :] if filled else ()


def _merged(case: JudgedSite) -> Expression | None:
    """The operands with as few axes merged as possible, where a rule takes them one by one."""
    if case.site.kind is not Kind.ELEMENTWISE:
        return None
    for merged in fewer_axes(case.sample.plan):
        plan = case.plan(merged.aligned)
        if isinstance(plan, Plan) and plan == merged:
            every = (True,) * len(merged.aligned)
            groups = groups_of(merged)
            return Expression(merged.aligned, {}, False, groups, merged.shape, use_of(case), every)
    return None


def _try(case: JudgedSite, shapes: tuple[Shape, ...]) -> Expression | None:
    """The operands reshaped to `shapes`, if the target then means what the source means."""
    fix = reshaped_to(case, shapes)
    return fix if any(fix.changed) and case.plan(shapes) == case.sample.plan else None


def reshaped_to(
    case: JudgedSite, shapes: tuple[Shape, ...], only_if: Condition | None = None
) -> Expression:
    """The operands reshaped to `shapes`, as a fix."""
    meant = case.sample.plan
    changed = tuple(a != b for a, b in zip(shapes, meant.operands, strict=True))
    return Expression(shapes, {}, False, (), meant.shape, use_of(case), changed, only_if=only_if)


def use_of(case: JudgedSite) -> RuleUse:
    """The target's rule, as plans name it."""
    return RuleUse(case.target.rule.name, case.target.attributes, case.engine.title, case.target.op)
