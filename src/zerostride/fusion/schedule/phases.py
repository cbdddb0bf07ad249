"""The phases in which a graph is computed, and the nodes that each of them stores.

Reductions cut a graph: nodes that read one are in a later phase. Other nodes are computed where
they are read, again in each phase. The exception are small parts that are stretched: these become
separate, earlier phases.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush

from ...compute.special import HALVES, working
from ...ops import OPS
from ..trace.graph import Apply, Graph, Input, Node, Reduce, View, arguments, landings
from .program import Slot, Walk

#: Bytes of an element, for dtypes whose names do not end in their bits.
_BYTES = {"bool": 1, "bfloat16": 2}

#: The least cost of a value that is stored rather than recomputed.
DEAR = 6
#: The most bytes of a whole temporary: second caches hold little more.
WHOLE_BYTES = 256 << 10
#: A part is hoisted if its result is no larger than WHOLE_BYTES, it has at least this many times
#: fewer elements than the box that it is stretched over, …
_HOIST_RATIO = 8
#: … and it saves this many additions (some microseconds; another phase takes one).
_HOIST_WORK = 1 << 15


@dataclass(frozen=True, slots=True)
class Sink:
    """A node that a phase stores.

    Attributes:
        node: its number.
        slot: the slot that holds it.
        place: for each axis of the node, the slot's; -1 where it has extent 1 and the slot none.
        fold: whether the node is a reduction that the phase folds; the box is then that of the
            reduction's argument.
        walk: the box's walk over the node, if not axis by axis; the slot then has the box's axes.
    """

    node: int
    slot: int
    place: tuple[int, ...]
    fold: bool = False
    walk: Walk | None = None


@dataclass(frozen=True, slots=True)
class Pass:
    """A planned phase: the box's extents, and the sinks whose values have that shape."""

    shape: tuple[int, ...]
    sinks: tuple[Sink, ...]


@dataclass(slots=True)
class Schedule:
    """Slots and phases.

    Attributes:
        slots: those of operands, of results, then temporaries.
        passes: in the order in which they run.
        held: for a node the sink from which later phases load its values.
        inputs: the slot of each operand that is read.
        temporaries: the number of temporaries.
    """

    slots: list[Slot] = field(default_factory=list)
    passes: list[Pass] = field(default_factory=list)
    held: dict[int, Sink] = field(default_factory=dict)
    inputs: dict[int, int] = field(default_factory=dict)
    temporaries: int = 0

    def add_temporary(self, dtype: str, shape: tuple[int, ...]) -> int:
        """Adds a slot, and returns its number."""
        self.slots.append(Slot("temp", self.temporaries, dtype, shape))
        self.temporaries += 1
        return len(self.slots) - 1


def schedule(graph: Graph) -> Schedule:
    """The phases of a graph, without batch."""
    draft = Schedule()
    nodes = graph.nodes
    inputs = [node for node in nodes if isinstance(node, Input)]
    draft.slots += [Slot("input", node.index, node.dtype, node.shape) for node in inputs]
    draft.inputs = {node.index: k for k, node in reversed([*enumerate(inputs)])}
    loose = _hold_reductions(graph, draft)
    sinks = [*draft.held.values(), *loose]
    _hoist(nodes, draft, sinks)
    draft.passes = _grouped(nodes, draft, sinks)
    return draft


# Stored nodes


def fold_dtype(node: Reduce) -> str:
    """The dtype that a reduction's result has in its slot."""
    if node.op in ("argmin", "argmax"):
        return "int64"
    if node.op in ("any", "all"):
        return "bool"
    source, result = working(node.compute), working(node.dtype)
    wider = node.op in ("sum", "prod") and (source, result) != ("float64", "float32")
    return result if wider else source


def itemsize(dtype: str) -> int:
    """The bytes of an element.

    >>> itemsize("bfloat16"), itemsize("uint32")
    (2, 4)
    """
    return _BYTES.get(dtype) or int(dtype.lstrip("uintfloa")) // 8


def _hold_reductions(graph: Graph, schedule: Schedule) -> list[Sink]:
    """Adds slots for the results and for all reductions; returns the sinks of other results."""
    nodes = graph.nodes
    read = _read_again(graph)
    loose = []
    for index, k in enumerate(graph.outputs):
        schedule.slots.append(Slot("output", index, nodes[k].dtype, nodes[k].shape))
        slot = len(schedule.slots) - 1
        under, place = _through_views(nodes, k)
        if isinstance(nodes[under], Reduce) and _takes(
            nodes[under], nodes[k].dtype, read=under in read
        ):
            schedule.held.setdefault(under, Sink(under, slot, place, fold=True))
        if under not in schedule.held or schedule.held[under].slot != slot:
            loose.append(Sink(k, slot, tuple(range(len(nodes[k].shape)))))
    for k, node in enumerate(nodes):
        if isinstance(node, Reduce) and k not in schedule.held:
            gone = node.over if node.keepdims else ()
            schedule.held[k] = replace(
                temporary(schedule, k, node.shape, fold_dtype(node), gone), fold=True
            )
    return loose


def _takes(node: Node, dtype: str, *, read: bool) -> bool:
    """Whether a reduction may be folded into a result of this dtype. A reduction that other nodes
    read must not be rounded to 16 bits before."""
    assert isinstance(node, Reduce)
    return fold_dtype(node) == working(dtype) and not (read and dtype in HALVES)


def _read_again(graph: Graph) -> set[int]:
    """The nodes that ops or several results read, through views."""
    nodes = graph.nodes
    readers = [arg for node in nodes if not isinstance(node, View) for arg in arguments(node)]
    shown = Counter(_through_views(nodes, k)[0] for k in graph.outputs)
    twice = {k for k, times in shown.items() if times > 1}
    return {_through_views(nodes, k)[0] for k in readers} | twice


def _through_views(nodes: Sequence[Node], k: int) -> tuple[int, tuple[int, ...]]:
    """The node under views, and for each of its axes the view's axis, or -1."""
    place = tuple(range(len(nodes[k].shape)))
    while isinstance(node := nodes[k], View):
        ((_, lands),) = landings(node, nodes)
        place = tuple(-1 if to is None else place[to] for to in lands)
        k = node.arg
    return k, place


def temporary(
    schedule: Schedule, k: int, shape: tuple[int, ...], dtype: str, gone: Iterable[int] = ()
) -> Sink:
    """A new temporary for a node, without its axes `gone`."""
    left = [axis for axis in range(len(shape)) if axis not in gone]
    slot = schedule.add_temporary(dtype, tuple(shape[axis] for axis in left))
    where = {axis: i for i, axis in enumerate(left)}
    return Sink(k, slot, tuple(where.get(a, -1) for a in range(len(shape))))


# Hoisted parts


def root(nodes: Sequence[Node], sink: Sink) -> int:
    """The node whose shape the box of a sink's phase has."""
    node = nodes[sink.node]
    return node.arg if isinstance(node, Reduce) and sink.fold else sink.node


def cone(
    nodes: Sequence[Node], top: int, is_cut: Callable[[int], bool], seen: set[int] | None = None
) -> Iterator[int]:
    """The nodes that a node is computed from, itself first, each after its readers.

    Args:
        nodes: the graph's.
        top: the first node.
        is_cut: whether a node is the last of its branch. It is called after the node was yielded.
        seen: nodes to leave out; the yielded nodes are added.
    """
    seen = set() if seen is None else seen
    ahead = [] if top in seen else [-top]
    seen.add(top)
    while ahead:
        k = -heappop(ahead)
        yield k
        if not is_cut(k):
            for arg in arguments(nodes[k]):
                if arg not in seen:
                    seen.add(arg)
                    heappush(ahead, -arg)


def costs(nodes: Sequence[Node]) -> list[int]:
    """The cost of each node (`Op.cost`), along the longest path to it from loaded values."""
    work = [0] * len(nodes)
    for k, node in enumerate(nodes):
        if isinstance(node, Apply):
            before = max(work[arg] for arg in node.args)
            # Loads convert for free; a cast to the same dtype only stretches a value.
            free = node.op == "cast" and (not before or nodes[node.args[0]].dtype == node.dtype)
            work[k] = before if free else before + OPS[node.op].cost
        elif isinstance(node, View):
            work[k] = work[node.arg]
    return work


def _hoist(nodes: Sequence[Node], schedule: Schedule, sinks: list[Sink]) -> None:
    """Adds a sink for each part that becomes a separate phase."""
    results = {sink.node: sink for sink in sinks}
    work = costs(nodes)
    #: For each size of a box the nodes that were examined: for a box no larger than that the
    #: answer is the same.
    looked: dict[int, set[int]] = {}
    for sink in sinks:  # the list grows in the loop: a part may have parts
        top = root(nodes, sink)
        whole = math.prod(nodes[top].shape)
        if work[top] * whole < _HOIST_WORK:  # no part of it takes more
            continue

        def is_held(k: int, sink: Sink = sink) -> bool:
            return schedule.held.get(k, sink) is not sink

        for k in cone(nodes, top, is_held, looked.setdefault(whole, set())):
            if k == top or is_held(k) or not _worth_a_phase(nodes, k, whole, work[k]):
                continue
            kept = results.get(k)
            if kept is None or schedule.slots[kept.slot].dtype in HALVES:
                kept = temporary(schedule, k, nodes[k].shape, working(nodes[k].dtype))
                sinks.append(kept)
            schedule.held[k] = kept


def _worth_a_phase(nodes: Sequence[Node], k: int, whole: int, work: int) -> bool:
    node = nodes[k]
    elements = math.prod(node.shape)
    return (
        isinstance(node, Apply)
        and elements > 1  # a single value is computed once anyway
        and elements * _HOIST_RATIO <= whole
        and elements * itemsize(working(node.dtype)) <= WHOLE_BYTES
        and work * whole >= _HOIST_WORK
    )


# Sinks that share a phase


def _grouped(nodes: Sequence[Node], schedule: Schedule, sinks: Sequence[Sink]) -> list[Pass]:
    """The phases in order: each has sinks over one box that do not depend on each other."""
    stages = _stages(nodes, schedule, sinks)
    read = _read(nodes, schedule, sinks)
    groups: dict[tuple[int, tuple[int, ...]], list[Sink]] = {}
    there: dict[tuple[int, ...], list[int]] = {}  # the stages of the phases over each box, rising

    def join(sink: Sink, stage: int, shape: tuple[int, ...]) -> None:
        if (stage, shape) not in groups:
            insort(there.setdefault(shape, []), stage)
        groups.setdefault((stage, shape), []).append(sink)

    waiting = []
    for sink in sinks:
        shape = nodes[root(nodes, sink)].shape
        if sink in read or sink.fold:
            join(sink, stages[sink], shape)
        else:
            waiting.append((sink, shape))
    for sink, shape in waiting:  # joins the first phase that exists anyway
        later = there.get(shape, [])
        first = bisect_left(later, stages[sink])
        join(sink, later[first] if first < len(later) else stages[sink], shape)
    order = sorted(groups, key=lambda key: key[0])
    return [Pass(shape, tuple(groups[stage, shape])) for stage, shape in order]


def _stages(nodes: Sequence[Node], schedule: Schedule, sinks: Sequence[Sink]) -> dict[Sink, int]:
    """For each sink the number of phases that have to run before its own."""
    stages: dict[Sink, int] = {}
    own: list[int] = []  # the same of each node where its own sink computes it, …
    others: list[int] = []  # … and where others read it
    for k, node in enumerate(nodes):
        own.append(max((others[arg] for arg in arguments(node)), default=0))
        held = schedule.held.get(k)
        if held is not None:
            stages[held] = others[root(nodes, held)] if held.fold else own[k]
        others.append(own[k] if held is None else stages[held] + 1)
    for sink in sinks:
        stages.setdefault(sink, others[root(nodes, sink)])
    return stages


def _read(nodes: Sequence[Node], schedule: Schedule, sinks: Sequence[Sink]) -> set[Sink]:
    """The sinks whose values another's phase loads."""
    read: set[Sink] = set()
    seen: set[int] = set()
    for sink in sinks:
        top = root(nodes, sink)
        ahead = []
        if schedule.held.get(top, sink) is not sink:
            read.add(schedule.held[top])
        elif top not in seen:
            seen.add(top)
            ahead.append(top)
        while ahead:
            for arg in arguments(nodes[ahead.pop()]):
                if arg in schedule.held:
                    read.add(schedule.held[arg])
                elif arg not in seen:
                    seen.add(arg)
                    ahead.append(arg)
    return read
