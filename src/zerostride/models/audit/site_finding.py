"""The finding of one site: whether it can be judged, its meaning in the model and on the target."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from ...core.plan import Plan
from ...derive.size_traps import Side
from ...engines.model import Engine
from ...engines.table import ENGINES
from ...errors import BroadcastError, Reason
from ...sizes import Shape
from ...sizes.condition import Condition
from ..findings import Cause, Finding, Verdict
from ..formats.onnx.sites import Kind, Operand, Site
from ..transport.batch import BatchAxes, Sample, contracted_batch, whole, without_batch
from ..transport.converters import carried_by
from ..transport.pnnx import carried
from ..transport.ways import NotJudged, canonical, transport
from .audit_cache import Like
from .judged_site import Carried, JudgedSite, finding_of, sizes_of
from .symbolic import carried_as_is, compare_open, is_open, related
from .verdict import compare_case, narrowed, other_values, struck
from .witness import find_batch_witness

#: Engines whose tensors hold one sample, without the batch axis.
BATCHLESS = frozenset(name for name, row in ENGINES.items() if row.samples)


def site_finding(
    site: Site,
    engine: Engine,
    via: str | None,
    batch: BatchAxes,
    needs: Condition,
    sample_needs: Condition,
    like: Like | None = None,
    *,
    bare: bool = False,
) -> Finding:
    """The finding of a site: checks that it can be judged, then compares source and target."""
    unknown = _not_judged(site)
    if unknown is not None:
        return _of_any_shape(site, engine, via, unknown)
    shapes = tuple(sizes_of(part) for part in site.operands)
    premises = related(needs, shapes)
    try:
        source = None if like is None else like.source
        source = source or site.plan(shapes, None if premises.always else premises)
    except BroadcastError as error:
        if error.reason is Reason.UNKNOWN_SIZE:
            message = f"its sizes are beyond what is worked with: {error.detail}"
            unknown = finding_of(site, None, None, Verdict.UNKNOWN, Cause.UNKNOWN_SHAPE, message)
            return _of_any_shape(site, engine, via, unknown)
        return _invalid(site, error)
    lost = contracted_batch(site, batch)
    if lost is not None:
        return _across(site, source, lost, engine, ())
    axes: Sequence[int | None] = [batch.of_operand(part) for part in site.operands]
    if via == "pnnx":
        axes = carried(site, axes)
    single = tuple(map(batch.of_one, shapes))
    if single != shapes:
        premises = related(sample_needs, single)
    sample = (
        _sample(site, source, single, axes, premises) if engine.name in BATCHLESS else whole(source)
    )
    if sample.across is not None:
        return _across(site, source, site.operands[sample.across].name, engine, axes)
    try:
        side = carried_by(via)(site, engine)
    except NotJudged as answer:
        return finding_of(site, source, None, Verdict.UNKNOWN, Cause.NOT_MEASURED, str(answer))
    except BroadcastError as error:
        verdict = Verdict.DIFFERENT if error.silent else Verdict.REFUSED
        return finding_of(site, source, error, verdict, error.reason, error.detail)
    case = JudgedSite(site, engine, side, source, sample, bare)
    if (limit := case.unfit) is not None:
        return struck(case, case.plan(case.shapes), limit)
    if not is_open(case):
        return other_values(case, narrowed(case, compare_case(case, like)))
    return other_values(case, narrowed(case, compare_open(case, premises)))


def _sample(
    site: Site,
    source: Plan,
    shapes: tuple[Shape, ...],
    axes: Sequence[int | None],
    premises: Condition,
) -> Sample:
    """The site as an engine of single samples sees it, in these shapes."""
    if shapes[: len(source.operands)] != source.operands:
        with suppress(BroadcastError):  # a site that works for no single sample is judged unchanged
            source = site.plan(shapes, None if premises.always else premises)
    return without_batch(source, axes[: len(source.operands)])


def _not_judged(site: Site) -> Finding | None:
    """The finding of a site that cannot be planned: custom op, op not modelled, unknown shape."""
    node = site.node
    if site.kind is Kind.CUSTOM:
        message = f"nothing is known about {node.op} of domain {node.domain!r}"
        return finding_of(site, None, None, Verdict.UNKNOWN, Cause.CUSTOM_OP, message)
    if site.kind is Kind.NOT_MODELLED:
        message = f"{node.op} may broadcast in a way that is not modelled"
        return finding_of(site, None, None, Verdict.UNKNOWN, Cause.NOT_MODELLED, message)
    for part in site.operands:
        if part.missing is not None and part.shape is None:
            message = f"{part.name!r} is needed, and its data is missing: {part.missing}"
            return finding_of(site, None, None, Verdict.UNKNOWN, Cause.MISSING_DATA, message)
    for part in site.operands:
        if part.shape is None:
            message = f"the shape of {part.name!r} is not known"
            return finding_of(site, None, None, Verdict.UNKNOWN, Cause.UNKNOWN_SHAPE, message)
    return None


def _of_any_shape(site: Site, engine: Engine, via: str | None, unknown: Finding) -> Finding:
    """The finding of unknown shapes: `same` if both sides use the same rule, else `unknown`."""
    if unknown.reason != Cause.UNKNOWN_SHAPE or engine.name in BATCHLESS:
        return unknown
    if any(part.shape is None and not _is_tensor(part) for part in site.operands):
        return unknown
    try:
        case = Carried(site, engine, carried_by(via)(site, engine))
    except (NotJudged, BroadcastError):
        return unknown
    if case.unfit or not carried_as_is(site, case.target, case.divergences):
        return unknown
    message = f"means the same on {engine.name}, by the same rule, whatever the shapes"
    same = finding_of(site, None, None, Verdict.SAME, Cause.SAME_PLAN, message)
    return other_values(case, narrowed(case, same))


def _is_tensor(part: Operand) -> bool:
    """Whether an operand is known to be a tensor: a sequence has no element type."""
    return part.tensor is not None and part.tensor.dtype is not None


def _invalid(site: Site, error: BroadcastError) -> Finding:
    message = f"the model itself does not broadcast here: {error.detail}"
    return finding_of(site, error, None, Verdict.REFUSED, Cause.INVALID, message)


def _across(
    site: Site, source: Plan, name: str, engine: Engine, axes: Sequence[int | None]
) -> Finding:
    """The finding of a broadcast along the axis that the target drops, with a witness."""
    message = (
        f"{name!r} broadcasts across the batch axis, which {engine.name} does not have; "
        "if the batch is another axis, name it (batch_axis)"
    )
    witness = None
    if site.kind is Kind.ELEMENTWISE and len(axes) == 2:
        try:
            side = transport(site, engine)
        except (NotJudged, BroadcastError):
            side = None  # the engine has no such op, so no witness is computed
        if side is not None:
            model = Side(site.rule, site.attributes).plan
            op = canonical(site) or "add"
            witness = find_batch_witness(source.operands, model, side.plan, axes, op)
    return finding_of(site, source, None, Verdict.DIFFERENT, Cause.BATCH, message, witness=witness)


__all__ = ["BATCHLESS", "site_finding"]
