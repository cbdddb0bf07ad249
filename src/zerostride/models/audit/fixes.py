"""What to change so that a target means what the model means: the fix of a finding."""

from __future__ import annotations

from dataclasses import replace

from ...core.plan import Plan, RuleUse
from ...derive.express import Expression, express
from ...derive.express.merging import fewer_axes, groups_of
from ...errors import NotExpressible
from ...sizes import Shape
from ..formats.onnx.sites import Kind
from ..transport.compound_engines import CARRIERS, MANY
from .judged_site import JudgedSite

#: Added to the reason of a rank limit that nothing helps against.
NO_MERGE = "; no merge of neighbouring axes fits"


def fix_of(case: JudgedSite) -> Expression | None:
    """How the target says what the source means, or None."""
    if not _tabled(case):
        return _reshaped(case) or _merged(case)
    fix = expressed(case)
    return fix and (_in_both(case, fix) or fix)


def _in_both(case: JudgedSite, fix: Expression) -> Expression | None:
    """Shapes that the model's own rule reads likewise, where it would misread those of `said`.

    The target's least change may leave out axes on which the model's rule counts: (1, 4) for ncnn
    is (1, 4, 1) for both. Who makes the change before converting is right with the latter alone.
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
    """Whether the target's rule is one that `express` looks for, in the engine table."""
    stacked = len(case.shapes) > 2 and (case.engine.name, case.site.stands_for) in MANY
    many = stacked or len(case.shapes) > case.target.rule.operands[1]
    return case.target.op not in CARRIERS and not many


def expressed(case: JudgedSite) -> Expression | None:
    """The source's plan in the words of the target's row, sizes that are not known included."""
    if not _tabled(case):
        return None
    try:
        fix = express(case.sample.plan, None, engine=case.engine.name, op=case.target.op)
    except NotExpressible:
        return None
    if case.site.kind is Kind.EXPAND:
        # The plan knows the data alone; the target that the model writes may have been another.
        return replace(fix, changed=(*fix.changed, fix.shapes[1] != case.shapes[1]))
    return fix


def fix_of_trap(case: JudgedSite) -> Expression | None:
    """For a size trap: every operand at the result's rank, where no size can misplace it."""
    return _try(case, case.sample.plan.aligned)


def rank_notes(case: JudgedSite, fix: Expression | None) -> tuple[str, ...]:
    """What else a rank limit asks for: where tensors end at it, a merge has to go further."""
    most = case.engine.tensor_rank
    if fix is None or not fix.merged_axes or most is None:
        return ()
    return (
        f"{case.engine.name} has no tensors of more than {most} axes: what makes these operands "
        "and what takes the result must have the axes merged too",
    )


def _reshaped(case: JudgedSite) -> Expression | None:
    """The operands after the first as they are meant, with all their axes, or without ones."""
    meant = case.sample.plan
    first, *rest = meant.operands
    outer = tuple(_without_outer(aligned) for aligned in meant.aligned[1:])
    bare = tuple(tuple(size for size in shape if size != 1) for shape in rest)
    forms = [(first, *meant.aligned[1:]), (first, *outer), (first, *bare), meant.aligned]
    return next(filter(None, (_try(case, shapes) for shapes in forms)), None)


def _without_outer(shape: Shape) -> Shape:
    filled = [axis for axis, size in enumerate(shape) if size != 1]
    return shape[filled[0] :] if filled else ()


def _merged(case: JudgedSite) -> Expression | None:
    """More operands than a rule takes at once, with as few axes merged as makes it fit."""
    if case.site.kind is not Kind.ELEMENTWISE:
        return None
    for merged in fewer_axes(case.sample.plan):
        plan = case.plan(merged.aligned)
        if isinstance(plan, Plan) and plan == merged:
            every = (True,) * len(merged.aligned)
            groups = groups_of(merged)
            return Expression(merged.aligned, {}, False, groups, merged.shape, _use(case), every)
    return None


def _try(case: JudgedSite, shapes: tuple[Shape, ...]) -> Expression | None:
    """The operands reshaped to `shapes`, if the target then means what the source means."""
    meant = case.sample.plan
    plan = case.plan(shapes)
    changed = tuple(a != b for a, b in zip(shapes, meant.operands, strict=True))
    if plan != meant or not any(changed):
        return None
    return Expression(shapes, {}, False, (), meant.shape, _use(case), changed)


def _use(case: JudgedSite) -> RuleUse:
    return RuleUse(case.target.rule.name, case.target.attributes, case.engine.name, case.target.op)
