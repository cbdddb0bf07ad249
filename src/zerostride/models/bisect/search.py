"""Walks until every fault is as small a part of the model as the other side's tensors allow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ...errors import ModelError
from ..ir.graph import Array, Graph
from .judging import judged
from .layouts import layouts
from .part import Part
from .result import Fetch, Stage
from .walk import Fault, Other, Walk

#: Walks for one search: each places one more tensor.
_MOST_WALKS = 8
#: Tensors of the other side that are tried as the first one that is wrong.
_MOST_FIRST = 4
#: Computations that are tried for one fault.
_MOST_TRIED = 400


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
    for _ in range(_MOST_WALKS):
        walk = Walk(graph, inputs, other, reference, most, variants, placed)
        stages = walk.run()
        place = next(filter(None, (_place(walk, fault, stages) for fault in walk.faults)), None)
        if place is None:
            break
        placed = {**placed, **dict([place])}
    return stages, walk.faults, list(dict.fromkeys(walk.notes))


def _outputs(graph: Graph, other: Other) -> dict[str, str]:
    """The outputs in order, where the other side has other names and as many."""
    names = [value.name for value in graph.outputs]
    if len(names) != len(other.outputs):
        return {}
    pairs = zip(names, other.outputs, strict=True)
    return {name: theirs for name, theirs in pairs if name not in other.names}


def _place(walk: Walk, fault: Fault, stages: Sequence[Stage]) -> tuple[str, str] | None:
    """A tensor inside a fault's part, and the other side's tensor that explains the fault.

    With that tensor's numbers in its place, the rest of the part gives the other side's result:
    so the rest means the same, and the fault is in the nodes up to it.
    """
    if len(fault.part.nodes) < 2 or fault.actual is None:
        return None
    taken = {stage.other for stage in stages if stage.other}
    left = [name for name in walk.other.names if name in walk.free and name not in taken]
    tried = 0
    for node in fault.part.nodes[:-1]:
        for value in node.outputs:
            try:
                meant = fault.part.run(fault.values, value)
            except ModelError:
                continue
            fitting = (name for name in left if _size(walk.other, name) == meant.size)
            for name, _ in zip(fitting, range(_MOST_FIRST), strict=False):
                array = walk.other.fetch(name)
                if array is None:
                    continue
                for layout in layouts(array.shape, meant.shape):
                    tried += 1
                    if tried > _MOST_TRIED:
                        return None
                    values = {**fault.values, id(value): layout.read(array).astype(meant.dtype)}
                    if _explains(fault.part, values, fault.actual, walk.most):
                        return value.name, name
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
