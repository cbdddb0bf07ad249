"""A broadcast that was read another way: the operand that went to other axes, found by numbers."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ...core.plan import Plan, RuleUse
from ...errors import BroadcastError, ModelError
from ..execute.broadcasts import PLANNED
from ..formats import module_of
from ..ir.graph import Array, Node, Value
from ..ir.site import Kind, Site
from .judging import judged
from .walk import Fault

#: Readings that are computed for one fault; an operand of 3 axes in a result of 6 has 20.
_MOST_TRIED = 64


@dataclass(frozen=True, slots=True)
class Reading:
    """One operand of a broadcast, as the model means it and as the other side reads it.

    Attributes:
        node: the node.
        names: the operands' names.
        position: the operand's position among them.
        source, target: the plans of the two meanings.
    """

    node: Node
    names: tuple[str, ...]
    position: int
    source: Plan
    target: Plan

    def describe(self) -> str:
        """The two meanings, in words."""
        shape = self.source.operands[self.position]
        meant, read = (_axes(plan, self.position) for plan in (self.source, self.target))
        name = self.names[self.position]
        return f"{self.node.op}: {name} {shape} goes to {read}; the model means {meant}"

    def fix(self) -> str:
        """A shape that leaves no choice, in words."""
        return (
            f"reshape {self.names[self.position]} to {self.source.aligned[self.position]} "
            "before the conversion"
        )


def reading(fault: Fault, most: float) -> Reading | None:
    """The reading that gives the other side's numbers, or None.

    Args:
        fault: the fault.
        most: the tolerance of one node.
    """
    if fault.actual is None:
        return None
    tried = 0
    for node in reversed(fault.part.nodes):
        site = module_of(fault.part.graph).find_site(node)
        if site is None or site.kind not in PLANNED or site.kind is Kind.EXPAND:
            continue
        arrays = _operands(fault, site)
        if arrays is None:
            continue
        try:
            source = site.plan(tuple(array.shape for array in arrays))
        except BroadcastError:
            continue
        for k, target in _otherwise(source):
            tried += 1
            if tried > _MOST_TRIED:
                return None
            if _gives(fault, site, k, arrays[k].reshape(target.aligned[k]), most):
                return Reading(node, tuple(o.name for o in site.operands), k, source, target)
    return None


def _operands(fault: Fault, site: Site) -> list[Array] | None:
    try:
        return [_array(fault, _value(site, k)) for k in range(len(site.operands))]
    except (ModelError, StopIteration):
        return None


def _value(site: Site, k: int) -> Value:
    name = site.operands[k].name
    return next(v for v in site.node.inputs if v is not None and v.name == name)


def _array(fault: Fault, value: Value) -> Array:
    if id(value) in fault.values:
        return fault.values[id(value)]
    return fault.part.run(fault.values, value)


def _otherwise(plan: Plan) -> Iterator[tuple[int, Plan]]:
    """Yield the plans that differ in the axes of one operand, and its position."""
    seen = {plan}
    for k, shape in enumerate(plan.operands):
        lean = [(axis, size) for axis, size in enumerate(shape) if size != 1]
        for places in itertools.combinations(range(len(plan.shape)), len(lean)):
            if any(plan.shape[p] != size for p, (_, size) in zip(places, lean, strict=True)):
                continue
            mapping: list[int | None] = [None] * len(shape)
            for place, (axis, _) in zip(places, lean, strict=True):
                mapping[axis] = place
            axes = (*plan.axes_mapping[:k], tuple(mapping), *plan.axes_mapping[k + 1 :])
            other = Plan(plan.shape, plan.operands, axes, RuleUse("by the numbers"))
            if other not in seen:
                seen.add(other)
                yield k, other


def _gives(fault: Fault, site: Site, k: int, array: Array, most: float) -> bool:
    """Whether the part has the other side's result with an operand's array in another form."""
    old, node = _value(site, k), site.node
    assert fault.actual is not None
    new = Value(old.name, array.shape, dtype=old.dtype)
    changed = replace(node, inputs=tuple(new if value is old else value for value in node.inputs))
    nodes = tuple(changed if other is node else other for other in fault.part.nodes)
    try:
        result = replace(fault.part, nodes=nodes).run({**fault.values, id(new): array})
    except ModelError:
        return False
    return result.shape == fault.actual.shape and judged(result, fault.actual, most).agrees


def _axes(plan: Plan, k: int) -> str:
    """The result axes on which an operand lies without repetition.

    >>> import zerostride as zs
    >>> _axes(zs.plan((2, 3, 4), (3, 1)), 1)
    'axis 1'
    """
    axes = [str(axis) for axis, size in enumerate(plan.aligned[k]) if size != 1]
    return f"ax{'is' if len(axes) == 1 else 'es'} {', '.join(axes)}"


__all__ = ["Reading", "reading"]
