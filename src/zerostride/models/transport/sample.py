"""A site as an engine of single samples sees it: its shapes and plan without the batch axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...core.plan import Plan
from ...core.symbolic import assemble
from ...sizes import Shape
from ...sizes.condition import ALWAYS
from ..ir.site import Kind, Site
from .batch import BatchAxes


def contracted_batch(site: Site, batch: BatchAxes) -> int | None:
    """The input of a product whose batch axis is an axis of the matrix.

    Without the batch such an input is a vector, and the product is another one. The rows of a
    Gemm's A are an exception: they are the rows of the result, which loses them too.
    """
    if site.kind not in (Kind.MATMUL, Kind.GEMM):
        return None
    for position, value in enumerate(site.node.inputs[:2]):
        axis = batch.of(value)
        if value is None or axis is None:
            continue
        outside = len(value.shape or ()) - 2
        rows = site.kind is Kind.GEMM and position == 0 and not site.node.attributes.get("transA")
        if axis >= outside + rows:
            return position
    return None


@dataclass(frozen=True, slots=True)
class Sample:
    """A site without its batch axis.

    Attributes:
        shapes: the operands' shapes as the target holds them.
        plan: the source's plan without the batch axis.
        axis: the result axis that was the batch, or None where no operand carried one.
        across: the operand that broadcasts across the batch axis, which the target cannot do.
    """

    shapes: tuple[Shape, ...]
    plan: Plan
    axis: int | None = None
    across: int | None = None


def whole(plan: Plan) -> Sample:
    """A site on an engine that keeps all axes."""
    return Sample(plan.operands, plan)


def without_batch(plan: Plan, batch: Sequence[int | None]) -> Sample:
    """A site's plan and shapes without the batch axis.

    Args:
        plan: the source's plan.
        batch: for each operand its batch axis, or None. An operand without one loses an axis of
            extent 1 that lies on the batch of another.
    """
    carriers = {k: axis for k, axis in enumerate(batch) if axis is not None}
    if not carriers:
        return Sample(*_with_an_axis(plan.operands, plan))
    landed = {k: plan.axes_mapping[k][axis] for k, axis in carriers.items()}
    in_place = [axis for k, axis in carriers.items() if landed[k] == axis]
    outer = plan.shape[: 1 + max(axis or 0 for axis in landed.values())]
    if not in_place and any(size != 1 for size in outer):
        # Aligned with an operand of higher rank, the batch would become another axis.
        return Sample(plan.operands, plan, None, next(iter(carriers)))
    # An operand of higher rank that has only ones there keeps them, and so does the result.
    result_axis = in_place[0] if in_place else -1
    shapes, mappings = [], []
    for k, (shape, mapping) in enumerate(zip(plan.operands, plan.axes_mapping, strict=True)):
        own = batch[k]
        under = mapping.index(result_axis) if result_axis in mapping else None
        if own != under and any(shape[axis] != 1 for axis in (own, under) if axis is not None):
            return Sample(plan.operands, plan, result_axis, k)
        gone = under if own is None else own
        kept = [axis for axis in range(len(shape)) if axis != gone]
        shapes.append(tuple(shape[axis] for axis in kept))
        mappings.append(tuple(_inner(mapping[axis], result_axis) for axis in kept))
    result = tuple(size for axis, size in enumerate(plan.shape) if axis != result_axis)
    left = _rebuilt(plan, result, tuple(shapes), tuple(mappings))
    return Sample(*_with_an_axis(left.operands, left), result_axis if in_place else None)


def _inner(axis: int | None, gone: int) -> int | None:
    """A result axis after another one is removed; −1: none is removed."""
    if axis is None or axis == gone:
        return None
    return axis if gone < 0 or axis < gone else axis - 1


def _rebuilt(
    plan: Plan,
    result: Shape,
    shapes: tuple[Shape, ...],
    mapping: tuple[tuple[int | None, ...], ...],
) -> Plan:
    """The plan of other shapes with the same meaning and the same conditions."""
    if plan.open is None:
        return Plan(result, shapes, mapping, plan.rule)
    whole = plan.open.accepted
    leaf = replace(
        whole[0],
        path=ALWAYS,
        clauses=tuple((None, clause) for clause in plan.open.exists),
        shape=result,
        mapping=mapping,
        alignment=None,
        sizes=shapes,
    )
    return assemble(plan.rule, shapes, (leaf,), plan.open.given)


def _with_an_axis(shapes: tuple[Shape, ...], plan: Plan) -> tuple[tuple[Shape, ...], Plan]:
    """A shape of rank 0 becomes (1,): engines of samples have no rank 0."""
    if plan.rank:
        return shapes, plan
    count = len(shapes)
    return ((1,),) * count, Plan((1,), ((1,),) * count, ((0,),) * count, plan.rule)
