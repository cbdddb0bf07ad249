"""Walks until every fault is as small a part of the model as the other side's tensors allow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ...errors import ModelError
from ..bisection import Fetch, Stage
from ..execute.part import Part
from ..ir.graph import Array, Graph, Value
from ..judging import judged
from .layouts import layouts
from .matching import Place
from .sides import Fault, Other, ops_of
from .walk import Walk

#: Walks for one search: each places one more tensor.
_MOST_WALKS = 8
#: Tensors of the other side that are tried for one of the model.
_MOST_LAST = 8
#: Computations that are tried for one fault, and nodes that are run for all faults of a search.
_MOST_TRIED, _MOST_RUN = 400, 6000


def search(
    graph: Graph,
    inputs: Mapping[str, Array],
    other: Other,
    reference: Fetch,
    most: float,
    variants: Sequence[Callable[[Graph], Graph]] = (),
) -> tuple[list[Stage], list[Fault], list[str]]:
    """The stages, the faults and notes; arguments as of :class:`~.walk.Walk`."""
    placed = _outputs(graph, other)
    left = _Budget(_MOST_RUN)
    for _ in range(_MOST_WALKS):
        walk = Walk(graph, inputs, other, reference, most, variants, placed)
        stages = walk.run()
        explained = (_places(walk, fault, stages, left) for fault in walk.faults)
        places = next(filter(None, explained), None)
        if places is None:
            break
        placed = {**placed, **places}
    return stages, walk.faults, list(dict.fromkeys(walk.notes))


@dataclass
class _Budget:
    """The nodes that may still be run."""

    nodes: int

    def spend(self, part: Part) -> bool:
        """Counts a part's nodes; whether they may be run."""
        self.nodes -= len(part.nodes)
        return self.nodes >= 0


def _outputs(graph: Graph, other: Other) -> dict[str, Place]:
    """The outputs in order, where the other side has other names and as many."""
    names = [value.name for value in graph.outputs]
    if len(names) != len(other.outputs):
        return {}
    pairs = zip(names, other.outputs, strict=True)
    return {name: Place(theirs) for name, theirs in pairs if name not in other.names}


def _places(walk: Walk, fault: Fault, stages: Sequence[Stage], budget: _Budget) -> dict[str, Place]:
    """Tensors inside a fault's part, and the other side's tensors that explain the fault.

    With such a tensor's numbers in its place, the rest of the part gives the other side's result:
    so the rest means the same, and the fault is in the nodes up to it. The search goes from the
    result back.
    """
    places: dict[str, Place] = {}
    part, actual, name = fault.part, fault.actual, fault.other
    taken = {stage.other for stage in stages if stage.other}
    while len(part.nodes) > 1 and actual is not None and name in walk.other.names:
        earlier = walk.other.names[: walk.other.names.index(name)]
        left = [other for other in earlier if other in walk.tensors.free and other not in taken]
        explained = _last(walk, part, fault.values, actual, left, budget)
        if explained is None:
            break
        value, place, actual = explained
        places[value.name], name = place, place.name
        part = walk.parts.before(value, {id(operand) for operand in part.operands})
    return places


def _last(
    walk: Walk,
    part: Part,
    values: Mapping[int, Array],
    actual: Array,
    left: Sequence[str],
    budget: _Budget,
) -> tuple[Value, Place, Array] | None:
    """The last tensor of a part that one of the other side's explains, that one, and its numbers.

    Of several the one counts whose axes are in order and that the same op makes: a Relu of a Relu,
    or of a copy, explains nothing. Of those the last one counts: a Softmax hides what was added
    before it.
    """
    tried = 0
    makers = ((node, value) for node in reversed(part.nodes[:-1]) for value in node.outputs)
    for node, value in makers:
        if not budget.spend(part):
            return None
        try:
            meant = part.run(values, value)
        except ModelError:
            continue
        fitting = (name for name in reversed(left) if _size(walk.other, name) == meant.size)
        explaining = []
        for name, _ in zip(fitting, range(_MOST_LAST), strict=False):
            array = walk.other.fetch(name)
            if array is None:
                continue
            for layout in layouts(array.shape, meant.shape):
                tried += 1
                if tried > _MOST_TRIED or not budget.spend(part):
                    return None
                held = layout.read(array).astype(meant.dtype)
                if _explains(part, {**values, id(value): held}, actual, walk.most):
                    alike = walk.other.ops.get(name, frozenset()) & ops_of(part.graph, node)
                    order = layout.order is not None, not alike
                    explaining.append((order, Place(name, layout), held))
                    break
        if explaining:
            _, place, held = min(explaining, key=lambda candidate: candidate[0])
            return value, place, held
    return None


def _size(other: Other, name: str) -> int:
    array = other.fetch(name)
    return -1 if array is None else array.size


def _explains(part: Part, values: Mapping[int, Array], actual: Array, most: float) -> bool:
    try:
        result = part.run(values)
    except ModelError:
        return False
    return result.shape == actual.shape and judged(result, actual, most).agrees
