"""Broadcasts that are alike but for their sizes: what means the same for one means it for all.

Rules ask of sizes only whether two are equal and whether one is 1, and what engines do wrong goes
by the same questions, by ones, zeros and ranks. So sizes above 1 can be renamed, as long as equal
ones stay equal, and a finding without a drawing of numbers holds of the others too. A model whose
nodes are all of other sizes is judged in a third of the time (benchmarks/audit_scale.py).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..dims import Shape
from ..errors import BroadcastError, Misfit
from ..plan import Plan
from .findings import Cause, Finding, Verdict
from .sites import Kind, Site

Renamed = tuple[Hashable, tuple[int, ...]]


def pattern(site: Site, rest: Hashable) -> Renamed | None:
    """What a site has in common with those of other sizes, and its own sizes above 1.

    Args:
        site: a site; only what is element-wise has a pattern.
        rest: everything else that its finding depends on.

    Returns:
        None where a size is no number, or the site is of another kind.
    """
    if site.kind is not Kind.ELEMENTWISE:
        return None
    shapes = [part.shape for part in site.operands]
    shapes += [None if value is None else value.shape for value in site.node.inputs]
    found: dict[int, None] = {}
    for shape in shapes:
        for size in shape or ():
            if type(size) is not int:
                return None
            if size > 1:
                found[size] = None
    sizes = tuple(sorted(found))
    names = {size: -place for place, size in enumerate(sizes, start=2)}
    alike = tuple(None if shape is None else _named(shape, names) for shape in shapes)
    return (alike, rest), sizes


def _named(shape: Sequence[Any], names: Mapping[int, int]) -> tuple[int, ...]:
    return tuple(names.get(size, size) for size in shape)


def resized(finding: Finding, old: Sequence[int], new: Sequence[int], site: Site) -> Finding | None:
    """The finding of a site that has the sizes `new` where the one judged had `old`.

    Returns:
        None where it may be another one: for anything but `same` numbers are part of the finding.
    """
    source, target = finding.source, finding.target
    if finding.verdict is not Verdict.SAME or finding.reason != Cause.SAME_PLAN:
        return None
    if not isinstance(source, Plan) or not isinstance(target, Plan):
        return None
    if finding.fix is not None or finding.witness is not None or finding.when is not None:
        return None
    sizes = dict(zip(old, new, strict=True))
    try:
        plans = [_resized(plan, sizes) for plan in (source, target)]
    except (BroadcastError, Misfit):
        return None  # too large
    operands = tuple((part.name, part.shape) for part in site.operands)
    return replace(finding, operands=operands, source=plans[0], target=plans[1])


def _resized(plan: Plan, sizes: Mapping[int, int]) -> Plan:
    def shape(old: Shape) -> Shape:
        return tuple(sizes.get(size, size) if isinstance(size, int) else size for size in old)

    return Plan(shape(plan.shape), tuple(map(shape, plan.operands)), plan.axes_mapping, plan.rule)


__all__ = ["pattern", "resized"]
