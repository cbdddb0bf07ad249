"""Values that a phase stores for later phases instead of having each recompute them.

Only expensive values are stored; cheap ones are recomputed. In a batch pieces are stored, otherwise
whole arrays if they are small."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from ...compute.special import working
from ..trace.graph import Apply, Node
from .phases import DEAR, WHOLE_BYTES, Schedule, Sink, cone, costs, root
from .program import Walk

#: Bytes of the widest number.
_WIDEST = 8

#: The nodes that a phase computes, each with its box's walk over it.
Computed = Collection[tuple[int, Walk]]


class Kept(NamedTuple):
    """A value, the phase that stores it, and those that load it."""

    sink: Sink
    source: int
    targets: set[int]


def keep(
    nodes: Sequence[Node],
    schedule: Schedule,
    computed: Sequence[Computed],
    loaded: Sequence[Collection[int]],
    members: Collection[int] | None,
) -> dict[int, Kept]:
    """The values to store, by node. Adds a temporary to the schedule for each.

    Args:
        nodes: the graph's.
        schedule: the graph's.
        computed: the nodes that each phase computes.
        loaded: the nodes that each phase loads from earlier phases' slots.
        members: the phases that run piece by piece, or None.
    """
    work = costs(nodes)
    kept: dict[int, Kept] = {}
    phases = sorted(range(len(schedule.passes)) if members is None else members)
    whole = _whole_boxes(nodes, schedule, computed, phases)
    if members is None:
        whole = {node: at for node, at in whole.items() if _is_small(schedule.passes[at[0]].shape)}
    for k in phases:
        cut, seen = set(loaded[k]), set[int]()
        for sink in schedule.passes[k].sinks:
            for node in cone(nodes, root(nodes, sink), cut.__contains__, seen):
                source, walk = whole.get(node, (k, ()))
                if node in cut or source >= k or work[node] < DEAR:
                    continue
                cut.add(node)
                if node not in kept:
                    kept[node] = Kept(
                        _temporary(nodes, schedule, node, source, walk), source, set()
                    )
                kept[node].targets.add(k)
    return kept


def _is_small(shape: tuple[int, ...]) -> bool:
    return math.prod(shape) * _WIDEST <= WHOLE_BYTES


def _whole_boxes(
    nodes: Sequence[Node], schedule: Schedule, computed: Sequence[Computed], members: Sequence[int]
) -> Mapping[int, tuple[int, Walk]]:
    """For each node that a phase computes at every point of its box: the first such phase, and its
    box's walk over the node."""
    first_phases: dict[int, tuple[int, Walk]] = {}
    for k in members:
        shape = schedule.passes[k].shape
        for node, walk in computed[k]:
            spread = any(axis < 0 and n != 1 for axis, n in zip(walk, shape, strict=True))
            if isinstance(nodes[node], Apply) and not spread:
                first_phases.setdefault(node, (k, walk))
    return first_phases


def _temporary(nodes: Sequence[Node], schedule: Schedule, node: int, k: int, walk: Walk) -> Sink:
    """A temporary of the shape of a phase's box, for a node with this walk."""
    slot = schedule.add_temporary(working(nodes[node].dtype), schedule.passes[k].shape)
    place = [-1] * len(nodes[node].shape)
    for axis, to in enumerate(walk):
        if to >= 0:
            place[to] = axis
    return Sink(node, slot, tuple(place), walk=walk)
