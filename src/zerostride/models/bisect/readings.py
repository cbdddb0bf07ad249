"""A broadcast that was read another way: the operand that went to other axes, found by numbers."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from ...core.plan import Plan, RuleUse
from ...errors import BroadcastError, ModelError
from ..execute.broadcasts import PLANNED
from ..execute.part import Part, Parts
from ..format_table import module_of
from ..ir.graph import Array, Graph, Node, Value
from ..ir.site import Kind, Site
from ..judging import judged
from .layouts import layouts
from .sides import Fault, Other
from .written import measured, operands, value_of

#: Readings that are computed for one fault; an operand of 3 axes in a result of 6 has 20.
_MOST_TRIED = 64
#: Nodes of the other file, one before the other, among which the broadcast is looked for.
_MOST_DEEP = 12

#: Whether a result is the wanted one.
_Wanted = Callable[[Array], bool]


@dataclass(frozen=True, slots=True)
class Reading:
    """One operand of a broadcast, as the model means it and as the other side reads it.

    Attributes:
        node: the node.
        names: the operands' names.
        position: the operand's position among them.
        source, target: the plans of the two meanings.
        file: the other side's file if the node is of that; "" if it is the model's.
    """

    node: Node
    names: tuple[str, ...]
    position: int
    source: Plan
    target: Plan
    file: str = ""

    def describe(self) -> str:
        """The two meanings, in words."""
        shape = self.source.operands[self.position]
        meant, read = (_axes(plan, self.position) for plan in (self.source, self.target))
        name = self.names[self.position]
        where = f"{self.node.path} ({self.node.op}) of {self.file}" if self.file else self.node.op
        return f"{where}: {name} {shape} goes to {read}; the model means {meant}"

    def fix(self) -> str:
        """A shape that leaves no choice, in words."""
        place = f"in {self.file}" if self.file else "before the conversion"
        return (
            f"reshape {self.names[self.position]} to {self.source.aligned[self.position]} {place}"
        )


def reading(fault: Fault, most: float) -> Reading | None:
    """The reading of the model's nodes that gives the other side's numbers, or None.

    Args:
        fault: the fault.
        most: the tolerance of one node.
    """
    actual = fault.actual
    if actual is None:
        return None

    def wanted(result: Array) -> bool:
        return result.shape == actual.shape and judged(result, actual, most).agrees

    return find_reading(fault.part, fault.values, wanted)


def reading_in_other(fault: Fault, other: Graph, side: Other, most: float) -> Reading | None:
    """The reading of the other file's nodes that gives the model's numbers, or None.

    A converter may have joined the constant of a broadcast with others, so that the model's own
    nodes do not have it any more.

    Args:
        fault: the fault.
        other: the other side's file.
        side: its tensors.
        most: the tolerance of one node.
    """
    expected, actual, held = fault.expected, fault.actual, side.fetch(fault.other)
    other = other.with_values(partial(measured, side))
    result = next((v for n in other.nodes for v in n.outputs if v.name == fault.other), None)
    if expected is None or actual is None or held is None or result is None:
        return None
    ways = layouts(held.shape, expected.shape)
    layout = next((way for way in ways if np.array_equal(way.read(held), actual)), None)
    if layout is None:
        return None

    def wanted(array: Array) -> bool:
        agrees = array.shape == held.shape
        return agrees and judged(expected, layout.read(array), most).agrees

    parts, inner = Parts(other), {id(result)}
    tensors = {id(v) for n in parts.nodes for v in n.outputs if v.name in side.names}
    given = {id(v): side.inputs[v.name] for v in other.inputs if v.name in side.inputs}
    known = tensors | given.keys()
    for _ in range(_MOST_DEEP):
        part = parts.before(result, known - inner)
        arrays = {id(value): side.fetch(value.name) for value in part.operands}
        values = {key: array for key, array in arrays.items() if array is not None} | given
        if (read := find_reading(part, values, wanted)) is not None:
            file = Path(other.path).name
            return replace(read, source=read.target, target=read.source, file=file)
        if inner >= (further := inner | {id(value) for value in part.operands}):
            return None
        inner = further
    return None


def find_reading(part: Part, values: Mapping[int, Array], wanted: _Wanted) -> Reading | None:
    """The reading of an operand with which a part has the wanted result, or None.

    Args:
        part: the part.
        values: the arrays of its operands, by identity.
        wanted: whether a result is the wanted one.
    """
    tried = 0
    for node in reversed(part.nodes):
        site = module_of(part.graph).find_site(node)
        if site is None or site.kind not in PLANNED or site.kind is Kind.EXPAND:
            continue
        arrays = operands(part, values, site)
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
            changed = _changed(part, values, site, k, arrays[k].reshape(target.aligned[k]))
            if changed is not None and wanted(changed):
                return Reading(node, tuple(o.name for o in site.operands), k, source, target)
    return None


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


def _changed(
    part: Part, values: Mapping[int, Array], site: Site, k: int, array: Array
) -> Array | None:
    """The part's result with an operand's array in another form."""
    old, node = value_of(site, k), site.node
    new = Value(old.name, array.shape, dtype=old.dtype)
    changed = replace(node, inputs=tuple(new if value is old else value for value in node.inputs))
    nodes = tuple(changed if other is node else other for other in part.nodes)
    try:
        return replace(part, nodes=nodes).run({**values, id(new): array})
    except ModelError:
        return None


def _axes(plan: Plan, k: int) -> str:
    """The result axes on which an operand lies without repetition.

    >>> import zerostride as zs
    >>> _axes(zs.plan((2, 3, 4), (3, 1)), 1)
    'axis 1'
    """
    axes = [str(axis) for axis, size in enumerate(plan.aligned[k]) if size != 1]
    return f"ax{'is' if len(axes) == 1 else 'es'} {', '.join(axes)}"


__all__ = ["Reading", "find_reading", "reading", "reading_in_other"]
