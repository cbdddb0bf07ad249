"""Judging a broadcast with open sizes: for which sizes the target differs.

The answer is a condition, simplified by the model's own needs, and an example of sizes for which it
holds; the witness is computed for those. A verdict is about sizes from 1. A note says what the
target does with tensors without elements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...core.alignment import Rule, complete
from ...core.alignment import text as shape_text
from ...derive.counterexample import Witness
from ...derive.express import Expression
from ...derive.regions import Kind, Meanings, Region, meanings, not_empty, real_shapes
from ...derive.size_traps import Side
from ...engines.model import Divergence
from ...errors import BroadcastError, Misfit, Reason
from ...sizes import Answer, Shape
from ...sizes.budget import Same, SpentError, answer_cache, used_up
from ...sizes.condition import ALWAYS, Condition, all_of
from ...sizes.dim import Dim, Symbol, dim
from ...sizes.solve import implies, listing
from ..findings import Verdict
from ..ir.site import Site
from ..reasons import Cause
from .fixes import expressed, forms, reshaped_to, use_of
from .judged_site import JudgedSite, Judgement, sizes_of
from .verdict import alignment, witness_of

_BAD: tuple[Kind, ...] = ("different", "silent", "refused")
_BEYOND = "whether sizes part the two is beyond what is decided here"
#: The outcome in a region, by its kind: at some sizes, and at all sizes.
_WHERE: Mapping[Kind, str] = {
    "different": "different when {when}, for example {values}",
    "silent": "when {when} it does not refuse, but computes nonsense or crashes, "
    "for example {values}",
    "refused": "refused when {when}, for example {values}",
}
_ALWAYS: Mapping[Kind, str] = {
    "different": "different for all sizes",
    "silent": "it does not refuse, but computes nonsense or crashes",
    "refused": "refused for all sizes",
}
_CAUSES: Mapping[Kind, Cause] = {"different": Cause.OTHER_ALIGNMENT, "silent": Cause.SILENT}


def is_open(case: JudgedSite) -> bool:
    """Whether a size that the plan depends on is not a number."""
    return case.sample.plan.open is not None or any(
        isinstance(size, Dim) for shape in case.shapes for size in shape
    )


def compare_open(case: JudgedSite, premises: Condition) -> Judgement:
    """The judgement of a case with open sizes.

    Args:
        case: the site, its source plan and the target's rule.
        premises: conditions on the symbols, from the model and the caller.
    """
    if carried_as_is(case.site, case.target, case.divergences, case.shapes):
        return _as_is(case)
    try:
        return _compared(case, premises)
    except (SpentError, Misfit) as problem:
        if isinstance(problem, Misfit) and problem.reason is not Reason.UNKNOWN_SIZE:
            raise
        return _unknown(case, str(problem))


def _compared(case: JudgedSite, premises: Condition) -> Judgement:
    """The judgement of a case whose target may align the operands differently."""
    if len(case.shapes) > case.target.rule.operands[1]:
        return _unknown(case, f"{len(case.shapes)} operands of sizes that are not known")
    filled = all_of([premises, not_empty(case.shapes)])
    outcomes = _meanings(case, case.shapes, filled)
    if case.bare and any(outcomes.possible(kind) is not Answer.NO for kind in _BAD):
        return _unknown(case, "not the same")
    possible = {kind: outcomes.possible(kind) for kind in ("same", *_BAD)}
    bad = [kind for kind in _BAD if possible[kind] is Answer.YES]
    certain = possible["same"] is Answer.NO
    if not bad and certain:
        # No sizes mean the same, so no example is needed to show it.
        bad = [kind for kind in _BAD if possible[kind] is Answer.UNKNOWN]
    if not bad:
        # The verdict covers sizes at which the model works; whether any exist is not asked here.
        if any(possible[kind] is Answer.UNKNOWN for kind in _BAD):
            return _unknown(case, str(SpentError()) if used_up() else _BEYOND)
        return _same(case, outcomes, premises)
    examples = {
        kind: example for kind in bad if (example := _example(outcomes, kind, certain)) is not None
    }
    if not examples:
        return _unknown(case, "there are sizes that part the two, but none were found")
    worst = next(iter(examples))
    when = outcomes.words(*bad)
    region, values = examples[worst]
    if certain:
        verdict = Verdict.REFUSED if bad == ["refused"] else Verdict.DIFFERENT
        reason: str = _CAUSES.get(worst) or str(region.reason)
    else:
        verdict = Verdict.SAME_HERE
        reason = str(region.reason) if bad == ["refused"] else Cause.SIZE_TRAP
    shown = {worst: examples[worst]} if certain else examples
    parts = [
        _words(case, outcomes, kind, *example, certain=certain) for kind, example in shown.items()
    ]
    return case.judged(
        case.plan(case.shapes),
        verdict,
        reason,
        lambda site: f"on {case.engine.name} {'; '.join(part(site) for part in parts)}",
        fix=_fix(case, filled),
        witness=_witness(case, values),
        when=when,
        values={symbol.name: value for symbol, value in values.items()},
        divergences=tuple(
            example.divergence for example, _ in shown.values() if example.divergence is not None
        ),
    )


def _example(
    outcomes: Meanings, kind: Kind, certain: bool
) -> tuple[Region, dict[Symbol, int]] | None:
    """A region of a kind, with example values for the symbols that decide here.

    Where none were found but no sizes mean the same, a region without values.
    """
    example = outcomes.example(kind)
    if example is None:
        regions = (
            r for r in outcomes.regions if r.kind == kind and outcomes.reached(r) is not Answer.NO
        )
        return next(((region, {}) for region in regions if certain), None)
    region, values = example
    return region, {symbol: values[symbol] for symbol in outcomes.symbols}


def _meanings(case: JudgedSite, shapes: tuple[Shape, ...], premises: Condition) -> Meanings:
    return meanings(
        case.sample.plan, case.target, shapes, known=premises, divergences=case.divergences
    )


def carried_as_is(
    site: Site,
    target: Side,
    divergences: Iterable[Divergence],
    shapes: tuple[Shape, ...] | None = None,
) -> bool:
    """Whether the target aligns operands as the model does, for all sizes.

    Args:
        site: the broadcast.
        target: the rule by which the target carries it.
        divergences: the engine's divergences for this op.
        shapes: the shapes that the target gets, or None where they are not known.
    """
    meant, rule = site.rule, target.rule
    # No tensor of the model has more axes than its own engine carries.
    ranks = meant.max_rank if shapes is None else max(map(len, shapes), default=0)
    if rule.max_rank is not None and (ranks is None or ranks > rule.max_rank):
        return False
    return (
        rule.align is meant.align
        and rule.to_target == meant.to_target
        and rule.check in (None, meant.check)
        and rule.operands[0] <= len(site.operands) <= rule.operands[1]
        and _read_attributes(rule, target.attributes) == _read_attributes(meant, site.attributes)
        and (shapes is None or shapes == tuple(sizes_of(part) for part in site.operands))
        and not any(row.may_strike(rule.name, ranks) for row in divergences)
    )


def _read_attributes(rule: Rule, attributes: Mapping[str, Any]) -> Mapping[str, Any]:
    """The attributes that the rule reads, defaults filled in."""
    values = {k: v for k, v in attributes.items() if v is not None and k in rule.attributes}
    return complete(rule, values)


def _as_is(case: JudgedSite) -> Judgement:
    """The judgement where both sides use the same rule: same, for all sizes."""
    message = f"means the same on {case.engine.name}{_everywhere(case, _symbols(case))}"
    return case.judged(
        replace(case.source, rule=use_of(case)), Verdict.SAME, Cause.SAME_PLAN, message
    )


def _symbols(case: JudgedSite) -> tuple[Symbol, ...]:
    """The symbols in the operands' shapes."""
    sizes = (size for shape in (*case.source.operands, *case.shapes) for size in shape)
    return tuple(dict.fromkeys(symbol for size in sizes for symbol in dim(size).symbols))


def _unknown(case: JudgedSite, message: str) -> Judgement:
    return Judgement(case.source, None, Verdict.UNKNOWN, Cause.UNKNOWN_SHAPE, message)


def _same(case: JudgedSite, outcomes: Meanings, premises: Condition) -> Judgement:
    """The judgement `same`, for all sizes from 1; a note covers tensors without elements."""
    message = f"means the same on {case.engine.name}{_everywhere(case, outcomes.symbols)}"
    notes: tuple[str, ...] = ()
    with_empty = _meanings(case, case.shapes, premises)
    example = with_empty.example(*_BAD)
    if example is not None:
        region, values = example
        real = case.plan(real_shapes(case.shapes, values))
        what = real.detail if isinstance(real, BroadcastError) else region.detail
        notes = (f"for {listing(values)}: {what or 'it means something else'}",)
    target = case.plan(case.shapes)
    return case.judged(target, Verdict.SAME, Cause.SAME_PLAN, message, notes=notes)


def _everywhere(case: JudgedSite, symbols: Sequence[Symbol]) -> str:
    """The sizes that a verdict covers, in words."""
    names = ", ".join(symbol.name for symbol in symbols)
    needs = case.sample.plan.conditions
    words = f" for every {names}" if names else ""
    return f"{words} that the model takes ({needs})" if len(needs) else words


def _words(
    case: JudgedSite,
    outcomes: Meanings,
    kind: Kind,
    region: Region,
    values: Mapping[Symbol, int],
    *,
    certain: bool,
) -> Callable[[Site], str]:
    """The sentence about a region."""
    when = outcomes.words(kind)
    meant = case.sample.plan
    detail = region.detail or alignment(meant, region.aligned)
    detail = detail or f"the result is not {shape_text(meant.shape)}"
    before = _ALWAYS[kind]
    if not (certain or when.always or not values):
        before = _WHERE[kind].format(when=when, values=listing(values))
    return lambda site: f"{before}: {detail if isinstance(detail, str) else detail(site)}"


# Witness and fix.


def _witness(case: JudgedSite, values: Mapping[Symbol, int]) -> Witness | None:
    """Numbers that show the difference at these sizes."""
    needed = {symbol for shape in case.shapes for size in shape for symbol in dim(size).symbols}
    if not needed <= values.keys():
        return None
    return witness_of(case, real_shapes(case.shapes, values), renamed=False)


def _fix(case: JudgedSite, premises: Condition) -> Expression | None:
    """Reshapes after which the target means the same: for all sizes, or under `only_if`."""
    limited: Expression | None = None
    meant = case.sample.plan
    for shapes in forms(meant):
        if shapes == meant.operands or len(shapes) != len(meant.operands):
            continue
        changed = (*shapes, *case.shapes[len(shapes) :])
        outcomes = _meanings(case, changed, premises)
        if outcomes.possible("same") is not Answer.YES:
            continue
        bad = outcomes.possible(*_BAD)
        if bad is Answer.NO:
            return reshaped_to(case, shapes, None)
        if bad is Answer.YES and limited is None:
            limited = reshaped_to(case, shapes, outcomes.words("same"))
    fix = expressed(case)
    if fix is not None and fix.only_if is not None and implies(premises, fix.only_if):
        fix = replace(fix, only_if=None)
    if limited is None or (fix is not None and fix.only_if is None):
        return fix
    return limited


#: The most clauses of the needs by which a site is judged. Leaving premises out is safe.
MAX_PREMISES = 12


def related(needs: Condition, shapes: Any) -> Condition:
    """The clauses of a model's needs about the symbols in these shapes, the shortest first."""
    named = [size for shape in shapes for size in shape if type(size) is not int]
    wanted = {symbol for size in named for symbol in dim(size).symbols}
    if not wanted:
        return ALWAYS
    about = _about(Same(needs))
    places = sorted({place for symbol in wanted for place in about.get(symbol, ())})
    clauses = [needs[place] for place in places]
    return all_of(sorted(clauses, key=lambda clause: len(clause.symbols))[:MAX_PREMISES])


@answer_cache
def _about(where: Same) -> Mapping[Symbol, Sequence[int]]:
    """For each symbol, the places of the clauses that contain it."""
    places: dict[Symbol, list[int]] = {}
    for place, clause in enumerate(where.value.clauses):
        for symbol in clause.symbols:
            places.setdefault(symbol, []).append(place)
    return places
