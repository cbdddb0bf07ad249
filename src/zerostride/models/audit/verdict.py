"""The verdict on a case: source and target planned and compared, with fix and witness."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ...core.alignment import apply
from ...core.alignment import text as shape_text
from ...core.plan import Plan
from ...core.rules import RULES
from ...derive.counterexample import Witness, find_witness
from ...derive.express import Expression
from ...derive.size_traps import Trap, size_traps
from ...engines.model import Divergence
from ...engines.rows_runtimes import MNN_MIXED
from ...errors import BroadcastError, ModelError, Reason
from ...sizes import Asker, Shape
from ..execute.program import readable
from ..findings import Verdict
from ..ir.graph import Value
from ..ir.site import Site
from ..reasons import Cause
from ..transport.ways import canonical
from .fixes import NO_MERGE, fix_of, fix_of_mixed, fix_of_trap, rank_notes
from .judged_site import Carried, JudgedSite, Judgement, Message


def compare_case(case: JudgedSite) -> Judgement:
    """Compares the plans of source and target."""
    name = case.engine.name
    target = case.plan(case.shapes)
    if isinstance(target, BroadcastError):
        return _refused(case, target)
    if target != case.sample.plan and not _handed_on(case, target):
        return case.judged(
            target,
            Verdict.DIFFERENT,
            Cause.OTHER_ALIGNMENT,
            _other_alignment(case, target),
            fix=_fix(case),
            witness=witness_of(case, case.shapes),
        )
    for divergence in case.divergences:
        if divergence.strikes is not None and divergence.strikes(target, Asker()):
            return struck(case, target, divergence)
    if len(case.shapes) > case.target.rule.operands[1] and case.site.rule.operands[0] > 2:
        message = (
            f"{case.site.rule.name} lays {len(case.shapes)} operands at once, {name} two by two"
        )
        return case.judged(target, Verdict.UNKNOWN, Cause.NOT_MODELLED, message)
    traps = _traps(case)
    if traps is not None:
        trap, pair = traps
        return case.judged(
            target,
            Verdict.SAME_HERE,
            Cause.SIZE_TRAP,
            lambda site: f"the same at these sizes only: {trap.named(pair(site)).words}",
            fix=fix_of_trap(case),
            witness=witness_of(case, trap.shapes),
        )
    return case.judged(target, Verdict.SAME, Cause.SAME_PLAN, f"means the same on {name}")


def _handed_on(case: JudgedSite, target: Plan) -> bool:
    """Whether no slope shows: unsigned numbers have none below 0."""
    unsigned = canonical(case.site) == "prelu" and str(case.dtype).startswith("uint")
    return unsigned and target.shape == case.sample.plan.shape


#: The verdict of a divergence's effect; of any other the node is refused.
_OF_EFFECT = {
    Reason.WRONG_RESULT: Verdict.DIFFERENT,
    Reason.NOT_UNDERSTOOD: Verdict.UNKNOWN,
}


def struck(case: JudgedSite, target: Plan | BroadcastError, divergence: Divergence) -> Judgement:
    """The finding where a divergence in the engine's row strikes: wrong, or refused."""
    verdict = _OF_EFFECT.get(divergence.effect, Verdict.REFUSED)
    message = f"{case.engine.name}: {divergence.text}"
    return case.judged(target, verdict, divergence.effect, message, divergences=(divergence,))


def mixed_layouts(case: JudgedSite, one: int) -> Judgement:
    """The finding where MNN labels a result with the layout of an operand of one number."""
    target = case.plan(case.shapes)
    fix = None if case.bare else fix_of_mixed(case, one)
    return replace(struck(case, target, MNN_MIXED), fix=fix)


def narrowed(case: Carried, judged: Judgement) -> Judgement:
    """The judgement; `same_here` instead of `same` where the engine computes narrower."""
    rows = case.narrowed if judged.verdict is Verdict.SAME else ()
    if not rows:
        return judged
    row = rows[0]
    which = "number of its constants" if row.constants else "number"
    least, most = row.held
    fits = f"fits in {row.narrows}"
    if row.most is not None or str(row.narrows).startswith("float"):
        fits = f"is from {least:,} to {most:,}"
    message = f"the same as long as every {which} {fits}; {case.engine.name}: {row.text}"
    return replace(
        judged,
        verdict=Verdict.SAME_HERE,
        reason=Cause.NARROWED,
        message=message,
        divergences=rows,
    )


_BITS = "compares the bits of floats: of two numbers below 0 it says the opposite"
#: MNN's comparisons that may do so; all but `less` only where both operands stretch (MNN 3.6.1, run
#: on negative numbers).
COMPARED_BY_BITS = ("less", "less_equal", "greater", "greater_equal")
#: Ops that compute other numbers on an engine than the op of this name elsewhere.
_OTHER_VALUES: Mapping[tuple[str, str], str] = {
    ("ncnn", "remainder"): "rounds the quotient to the nearest whole number, as IEEE's remainder; "
    "elsewhere it is rounded down, or towards 0",
    ("ncnn", "fmod"): "comes from a rounded quotient: of a multiple of b it may leave b, and not 0",
    ("mnn", "fmod"): "has the sign of the divisor; elsewhere it has the dividend's",
    ("mnn", "remainder"): "has the sign of the dividend; elsewhere it has the divisor's",
    **{("mnn", op): _BITS for op in COMPARED_BY_BITS},
}


def other_values(case: Carried, judged: Judgement) -> Judgement:
    """The judgement; `different` where the op of this name computes other numbers."""
    op = canonical(case.site)
    if op is None or judged.verdict not in (Verdict.SAME, Verdict.SAME_HERE):
        return judged
    for side, other in (
        (case.engine.name, case.site.node.domain),
        (case.site.node.domain, case.engine.name),
    ):
        words = _OTHER_VALUES.get((side, op))
        if words is None or (side == "mnn" and not _strikes_on_mnn(case, op, judged.source)):
            continue
        if other != side:
            message = f"{side}'s {op} {words}"
            return replace(
                judged,
                verdict=Verdict.DIFFERENT,
                reason=Cause.OTHER_VALUES,
                message=message,
                divergences=(),
            )
    return judged


def beside_a_positive(site: Site) -> bool:
    """Whether an operand is a constant without numbers below 0."""
    for part in site.operands:
        value = part.tensor
        if value is None or not value.constant or not readable(value):
            continue
        try:
            negative = _has_negative(value)
        except ModelError:  # its data is missing
            continue
        if not negative:
            return True
    return False


def _has_negative(value: Value) -> bool:
    """Whether a constant has a number below 0; few numbers are known without reading its data."""
    if value.reals is not None:
        return any(number < 0 for number in value.reals)
    if value.content is not None and all(isinstance(number, int) for number in value.content):
        return any(number < 0 for number in value.content)
    return bool((value.data() < 0).any())


def _by_bits(case: Carried) -> bool:
    """Whether MNN may compare two floats below 0."""
    return _of_floats(case) and not beside_a_positive(case.site)


def _of_floats(case: Carried) -> bool:
    return str(case.dtype or "float").startswith("float")


def _all_stretch(plan: Plan) -> bool:
    """Whether no operand fills the result."""
    return all(row != plan.shape for row in plan.aligned)


def _strikes_on_mnn(case: Carried, op: str, source: object) -> bool:
    """Whether MNN's op computes other numbers of this element type.

    Its two remainders of integers are exchanged (MNN 3.6.1, run on numbers of both signs). Its
    converter writes those that are right for integers.
    """
    if op in COMPARED_BY_BITS:
        strikes = op == "less" or (isinstance(source, Plan) and _all_stretch(source))
        return strikes and _by_bits(case)
    floats = _of_floats(case)
    converted = case.engine.reads == "onnx"
    return floats if converted and op == "fmod" else not floats and not converted


def _refused(case: JudgedSite, error: BroadcastError) -> Judgement:
    """The judgement where the target's rule has no plan: it refuses, or silently goes wrong."""
    name = case.engine.name
    fix = _fix(case)
    notes: tuple[str, ...] = ()
    detail = error.detail
    if error.reason is Reason.RANK_LIMIT:
        notes = rank_notes(case, fix)
        detail += "" if fix is not None else NO_MERGE
    if error.reason is Reason.NOT_UNDERSTOOD:
        return case.judged(error, Verdict.UNKNOWN, error.reason, f"{name}: {detail}")
    if not error.silent:
        message = f"{name} refuses: {detail}"
        return case.judged(error, Verdict.REFUSED, error.reason, message, fix=fix, notes=notes)
    message = f"{name} does not refuse, but computes nonsense or crashes: {detail}"
    witness = witness_of(case, case.shapes)
    return case.judged(
        error, Verdict.DIFFERENT, Cause.SILENT, message, fix=fix, witness=witness, notes=notes
    )


def _other_alignment(case: JudgedSite, target: Plan) -> Message:
    meant, before = case.sample.plan, f"on {case.engine.name} "
    result = f"{before}the result is {target.shape}; the model means {meant.shape}"
    return alignment(meant, target.aligned, before) or result


def alignment(meant: Plan, aligned: Sequence[Shape], before: str = "") -> Message | None:
    """The first operand that the target aligns differently, in words."""
    for k, (row, other) in enumerate(zip(meant.aligned, aligned, strict=False)):
        if row != other:
            words = f"is aligned as {shape_text(other)}; the model means {shape_text(row)}"
            return lambda site: f"{before}{site.operands[k].name!r} {words}"
    return None


def _fix(case: JudgedSite) -> Expression | None:
    return None if case.bare else fix_of(case)


def witness_of(
    case: JudgedSite, shapes: Sequence[Shape], *, renamed: bool = True
) -> Witness | None:
    """Numbers that show the difference at these sizes, or at smaller ones (`renamed`)."""
    meaning = None if case.bare else case.meaning
    if meaning is None:
        return None
    return find_witness(shapes, meaning.plan, case.plan, case.op, renamed=renamed)


def _traps(case: JudgedSite) -> tuple[Trap, Callable[[Site], Sequence[str]]] | None:
    """Sizes at which the meaning changes, and the names of the operands that have them.

    With more than two operands the trap concerns a pair, which the target's rule takes.
    """
    meaning = case.meaning
    if meaning is None:
        return None
    if len(case.shapes) <= case.target.rule.operands[1]:
        traps = size_traps(case.target, case.shapes, meaning)
        return (traps[0], _names) if traps else None
    so_far, *rest = case.shapes
    without: set[tuple[Shape, Shape]] = set()
    for k, shape in enumerate(rest, start=1):
        pair = (so_far, shape)
        if pair not in without and (traps := size_traps(case.target, pair, meaning)):
            return traps[0], functools.partial(_names, joined=k)
        without.add(pair)
        so_far = apply(RULES["numpy"], pair, {}).shape
    return None


def _names(site: Site, joined: int = 1) -> list[str]:
    """The operands' names, the first ones joined to one."""
    names = [part.name for part in site.operands]
    return [" and ".join(names[:joined]), *names[joined:]]
