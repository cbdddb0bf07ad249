"""The verdict on a case: source and target planned and compared, with fix and witness."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ...core.plan import Plan
from ...derive.express import Expression
from ...derive.size_traps import Trap, size_traps
from ...engines.model import Divergence
from ...errors import BroadcastError, Reason
from ...sizes import Asker, Shape
from ..findings import Cause, Finding, Verdict, Witness
from ..transport.ways import canonical
from .audit_cache import Like
from .fixes import NO_MERGE, fix_of, fix_of_trap, rank_notes
from .judged_site import Carried, JudgedSite
from .witness import find_witness


def compare_case(case: JudgedSite, like: Like | None = None) -> Finding:
    """Compares the plans of source and target; reuses fix and witness of a similar case."""
    name = case.engine.name
    target = case.plan(case.shapes)
    if isinstance(target, BroadcastError):
        return _refused(case, target, like)
    if target != case.sample.plan:
        message = f"on {name} {_alignment_words(case, target)}"
        return case.finding(
            target,
            Verdict.DIFFERENT,
            Cause.OTHER_ALIGNMENT,
            message,
            fix=_fix(case, like),
            witness=_witness(case, like),
        )
    for divergence in case.divergences:
        if divergence.strikes is not None and divergence.strikes(target, Asker()):
            return struck(case, target, divergence)
    if len(case.shapes) > case.target.rule.operands[1] and case.site.rule.operands[0] > 2:
        message = (
            f"{case.site.rule.name} lays {len(case.shapes)} operands at once, {name} two by two"
        )
        return case.finding(target, Verdict.UNKNOWN, Cause.NOT_MODELLED, message)
    traps = _traps(case)
    if traps:
        return case.finding(
            target,
            Verdict.SAME_HERE,
            Cause.SIZE_TRAP,
            f"the same at these sizes only: {traps[0].words}",
            fix=fix_of_trap(case),
            witness=_trap_witness(case, traps[0]),
        )
    return case.finding(target, Verdict.SAME, Cause.SAME_PLAN, f"means the same on {name}")


def struck(case: JudgedSite, target: Plan | BroadcastError, divergence: Divergence) -> Finding:
    """The finding where a divergence in the engine's row strikes: wrong, or refused."""
    wrong = divergence.effect is Reason.WRONG_RESULT
    verdict = Verdict.DIFFERENT if wrong else Verdict.REFUSED
    message = f"{case.engine.name}: {divergence.text}"
    return case.finding(target, verdict, divergence.effect, message)


def narrowed(case: Carried, finding: Finding) -> Finding:
    """The finding; `same_here` instead of `same` where the engine computes narrower."""
    row = case.narrowed if finding.verdict is Verdict.SAME else None
    if row is None:
        return finding
    message = (
        f"the same as long as every number fits in {row.narrows}; {case.engine.name}: {row.text}"
    )
    return replace(finding, verdict=Verdict.SAME_HERE, reason=Cause.NARROWED, message=message)


#: Ops that compute other numbers on an engine than the op of this name elsewhere.
_OTHER_VALUES: Mapping[tuple[str, str], str] = {
    ("ncnn", "remainder"): "rounds the quotient to the nearest whole number, as IEEE's remainder; "
    "elsewhere it is rounded down, or towards 0",
    ("ncnn", "fmod"): "comes from a rounded quotient: of a multiple of b it may leave b, and not 0",
}


def other_values(case: Carried, finding: Finding) -> Finding:
    """The finding; `different` where the op of this name computes other numbers."""
    op = canonical(case.site)
    if op is None or finding.verdict not in (Verdict.SAME, Verdict.SAME_HERE):
        return finding
    for side, other in (
        (case.engine.name, case.site.node.domain),
        (case.site.node.domain, case.engine.name),
    ):
        words = _OTHER_VALUES.get((side, op))
        if words is not None and other != side:
            message = f"{side}'s {op} {words}"
            return replace(
                finding, verdict=Verdict.DIFFERENT, reason=Cause.OTHER_VALUES, message=message
            )
    return finding


def _refused(case: JudgedSite, error: BroadcastError, like: Like | None) -> Finding:
    """The finding where the target's rule has no plan: it refuses, or silently goes wrong."""
    name = case.engine.name
    fix = _fix(case, like)
    notes: tuple[str, ...] = ()
    detail = error.detail
    if error.reason is Reason.RANK_LIMIT:
        notes = rank_notes(case, fix)
        detail += "" if fix is not None else NO_MERGE
    if not error.silent:
        message = f"{name} refuses: {detail}"
        return case.finding(error, Verdict.REFUSED, error.reason, message, fix=fix, notes=notes)
    message = f"{name} does not refuse, but computes nonsense or crashes: {detail}"
    return case.finding(
        error,
        Verdict.DIFFERENT,
        Cause.SILENT,
        message,
        fix=fix,
        witness=_witness(case, like),
        notes=notes,
    )


def _alignment_words(case: JudgedSite, target: Plan) -> str:
    for part, meant, aligned in zip(
        case.site.operands, case.sample.plan.aligned, target.aligned, strict=False
    ):
        if meant != aligned:
            return f"{part.name!r} is aligned as {aligned}; the model means {meant}"
    return f"the result is {target.shape}; the model means {case.sample.plan.shape}"


def _fix(case: JudgedSite, like: Like | None) -> Expression | None:
    if case.bare:
        return None
    return (like.fix if like is not None else None) or fix_of(case)


def _witness(case: JudgedSite, like: Like | None) -> Witness | None:
    if like is not None and like.witness is not None:
        return like.witness
    meaning = None if case.bare else case.meaning
    if meaning is None:
        return None
    return find_witness(case.shapes, meaning.plan, case.plan, case.op)


def _trap_witness(case: JudgedSite, trap: Trap) -> Witness | None:
    meaning = None if case.bare else case.meaning
    if meaning is None:
        return None
    # With more than two operands the trap concerns a pair, which the target's rule takes.
    return find_witness(trap.shapes, meaning.plan, case.plan, case.op)


def _traps(case: JudgedSite) -> tuple[Trap, ...]:
    """The sizes at which the meaning changes, of the first pair that has such sizes."""
    meaning = case.meaning
    names = [part.name for part in case.site.operands]
    if meaning is None:
        return ()
    if len(case.shapes) <= case.target.rule.operands[1]:
        return size_traps(case.target, case.shapes, meaning, names)
    so_far, *rest = case.shapes
    without: set[tuple[Shape, Shape]] = set()
    for k, shape in enumerate(rest, start=1):
        pair = (so_far, shape)
        if pair not in without and size_traps(case.target, pair, meaning):
            called = (" and ".join(names[:k]), names[k])
            return size_traps(case.target, pair, meaning, called)
        without.add(pair)
        so_far = np.broadcast_shapes(*pair)
    return ()
