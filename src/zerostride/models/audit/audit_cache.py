"""Reuse of findings between broadcasts that differ in their sizes alone.

Rules ask of sizes only whether two are equal and whether one is 1. Engines' faults depend on the
same questions, on ones, zeros and ranks. The numbers of elements decide which operand is changed
first, and where some engines put a constant. So sizes above 1 can be renamed, as long as equal
sizes stay equal, and larger sizes and larger operands stay larger. A finding that names no size
then holds for the other sites too. Where it names one, target and message are computed again; the
fix and the witness, which take longest, are reused. A model whose nodes all have different sizes
is judged in a third of the time (benchmarks/audit_scale.py).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...core.plan import Plan
from ...derive.express import Expression
from ...errors import BroadcastError, Misfit
from ...sizes import Shape, elements
from ..findings import Cause, Finding, Verdict, Witness
from ..formats.onnx.sites import Kind, Site

Renamed = tuple[Hashable, tuple[int, ...]]


def pattern(site: Site, rest: Hashable) -> Renamed | None:
    """A key that is the same for sites that differ in sizes alone, and the site's sizes above 1.

    Args:
        site: a site; only element-wise sites have a pattern.
        rest: everything else that its finding depends on.

    Returns:
        None where a size is not a number, or the site is of another kind.
    """
    if site.kind is not Kind.ELEMENTWISE:
        return None
    shapes = [part.shape for part in site.operands]
    shapes += [None if value is None else value.shape for value in site.node.inputs]
    distinct: dict[int, None] = {}
    for shape in shapes:
        for size in shape or ():
            if type(size) is not int:
                return None
            if size > 1:
                distinct[size] = None
    sizes = tuple(sorted(distinct))
    names = {size: -place for place, size in enumerate(sizes, start=2)}
    alike = tuple(None if shape is None else _named(shape, names) for shape in shapes)
    return (alike, _order([part.shape or () for part in site.operands]), rest), sizes


def _named(shape: Sequence[Any], names: Mapping[int, int]) -> tuple[int, ...]:
    return tuple([names.get(size, size) for size in shape])


def _order(shapes: Sequence[Sequence[Any]]) -> tuple[int, ...]:
    """Each operand's rank by number of elements; equal operands have the same rank."""
    counts = [elements(shape) for shape in shapes]
    places = sorted(counts)
    return tuple(map(places.index, counts))


@dataclass(frozen=True, slots=True)
class Like:
    """A site that differs from an already judged one in its sizes alone.

    Attributes:
        finding: the finding of the judged site.
        sizes: the judged site's sizes above 1, each with the size here.
    """

    finding: Finding
    sizes: Mapping[int, int]

    @property
    def source(self) -> Plan | None:
        """The site's plan in the model, or None where it has to be planned."""
        source = self.finding.source
        return self._plan(source) if isinstance(source, Plan) and source.open is None else None

    @property
    def witness(self) -> Witness | None:
        """The counter-example, whose sizes are the smallest in the same order.

        None where it has to be searched for: that of a size trap has a size of neither site.
        """
        taken = (Cause.SILENT, Cause.OTHER_ALIGNMENT, Cause.BATCH)
        return self.finding.witness if self.finding.reason in taken else None

    @property
    def fix(self) -> Expression | None:
        """The change, or None where it has to be searched for.

        Candidates are tried in order of the elements that they reshape. Where that order differs
        here, another candidate may be the first that fits. Merged axes have sizes of their own.
        """
        fix = self.finding.fix
        if fix is None or fix.merged_axes or fix.explicit or fix.only_if is not None:
            return None
        shapes = tuple(map(self._shape, fix.shapes))
        # With three operands, the order of two also decides the order of the sums without them.
        if len(shapes) > 3 or _order(shapes) != _order(fix.shapes):
            return None
        return replace(
            fix,
            shapes=shapes,
            attributes=dict(fix.attributes),
            result_shape=self._shape(fix.result_shape),
        )

    def resized(self) -> Finding | None:
        """The finding at these sizes, or None where it names a size."""
        old = self.finding
        if old.when is not None or old.fix is not None or not isinstance(old.source, Plan):
            return None
        if old.reason == Cause.BATCH:
            source = self.source
            whole = source is not None and old.target is None
            return replace(old, source=source) if whole else None
        same = old.verdict is Verdict.SAME and old.reason == Cause.SAME_PLAN
        if not same or old.witness is not None or not isinstance(old.target, Plan):
            return None
        source, target = self.source, self._plan(old.target)
        if source is None or target is None:
            return None
        return replace(old, source=source, target=target)

    def _shape(self, old: Shape) -> Shape:
        return _named(old, self.sizes)

    def _plan(self, old: Plan) -> Plan | None:
        try:
            shape, operands = self._shape(old.shape), tuple(map(self._shape, old.operands))
            return Plan(shape, operands, old.axes_mapping, old.rule)
        except (BroadcastError, Misfit):
            return None  # too large


__all__ = ["Like", "pattern"]
