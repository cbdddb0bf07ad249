"""Bounds how often a program computes a value: a value that many phases compute is stored.

Each phase recomputes the values of earlier phases that it reads, except reductions. In a chain of n
reductions the last phase would compute all n links, and the program would have n * n steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...compute.limits import MOST_OPERANDS
from ...compute.special import HALVES, working
from ..trace.graph import Apply, Node, View, arguments
from .phases import Pass, Schedule, Sink, cone, costs, root, temporary

#: The most phases that compute a value before it, or a value that depends on it, is stored.
#: Networks' blocks and losses with their gradients have fewer phases.
_MOST_TIMES = 16


def hold_repeated(nodes: Sequence[Node], schedule: Schedule) -> None:
    """Adds sinks to a schedule until no phase computes what `_MOST_TIMES` phases before it do.

    Of the values that depend on such a value, those that later phases read are stored. The value
    itself is stored if phases still compute it after as many times again.
    """
    ahead = [half for pass_ in reversed(schedule.passes) for half in reversed(_halves(pass_))]
    schedule.passes = []
    work = costs(nodes)
    times = [0] * len(nodes)
    pending = _readers(nodes, ahead)
    ready: set[int] = set()
    while ahead:
        pass_ = ahead.pop()
        computed = _computed(nodes, pass_, ready)
        for sink in pass_.sinks:
            pending[_shown(nodes, root(nodes, sink))] -= 1
        for k in computed:
            if not times[k] and isinstance(nodes[k], Apply):
                for arg in arguments(nodes[k]):
                    pending[_shown(nodes, arg)] -= 1
            times[k] += work[k] > 0  # values that are only loaded may be loaded again
        if any(times[k] > _MOST_TIMES for k in computed):
            chosen = [k for k in _chosen(nodes, computed, times, pending) if k not in schedule.held]
            pass_, others = _with_sinks(nodes, schedule, pass_, chosen)
            ahead += others
        schedule.passes.append(pass_)
        ready.update(sink.node for sink in pass_.sinks if schedule.held.get(sink.node) is sink)


def _halves(pass_: Pass) -> list[Pass]:
    """Splits a phase into phases with at most `MOST_OPERANDS` sinks."""
    if len(pass_.sinks) <= MOST_OPERANDS:
        return [pass_]
    half = len(pass_.sinks) // 2
    first, second = (
        replace(pass_, sinks=pass_.sinks[:half]),
        replace(pass_, sinks=pass_.sinks[half:]),
    )
    return [*_halves(first), *_halves(second)]


def _shown(nodes: Sequence[Node], k: int) -> int:
    """The node under views."""
    while isinstance(node := nodes[k], View):
        k = node.arg
    return k


def _readers(nodes: Sequence[Node], passes: Sequence[Pass]) -> list[int]:
    """For each node the number of ops and sinks that read it, through views."""
    count = [0] * len(nodes)
    tops = [root(nodes, sink) for pass_ in passes for sink in pass_.sinks]
    args = [arg for node in nodes if isinstance(node, Apply) for arg in node.args]
    for k in (*tops, *args):
        count[_shown(nodes, k)] += 1
    return count


def _computed(nodes: Sequence[Node], pass_: Pass, ready: set[int]) -> list[int]:
    """The nodes that a phase computes, rising."""
    seen: set[int] = set()
    for sink in pass_.sinks:
        for _ in cone(nodes, root(nodes, sink), ready.__contains__, seen):
            pass
    return sorted(seen - ready)


def _chosen(
    nodes: Sequence[Node], computed: Sequence[int], times: Sequence[int], pending: Sequence[int]
) -> list[int]:
    """The computed nodes of a phase that are to be stored."""
    chosen: list[int] = []
    often: set[int] = set()  # nodes computed too often, and nodes that depend on them
    read: set[int] = set()
    for k in computed:
        if times[k] > _MOST_TIMES or not often.isdisjoint(arguments(nodes[k])):
            often.add(k)
        if times[k] > 2 * _MOST_TIMES:
            read.update(_shown(nodes, arg) for arg in arguments(nodes[k]))
    for k in computed:
        last = times[k] > 2 * _MOST_TIMES and k not in read
        if isinstance(nodes[k], Apply) and k in often and (pending[k] or last):
            chosen.append(k)
    return chosen


def _with_sinks(
    nodes: Sequence[Node], schedule: Schedule, pass_: Pass, chosen: Sequence[int]
) -> tuple[Pass, list[Pass]]:
    """A phase that also stores these nodes, and later phases for nodes over other boxes."""
    stored = {sink.node: sink for sink in pass_.sinks if not sink.fold}
    more: list[Sink] = []
    others: list[Pass] = []
    for k in chosen:
        sink = stored.get(k)
        if sink is None or schedule.slots[sink.slot].dtype in HALVES:
            sink = temporary(schedule, k, nodes[k].shape, working(nodes[k].dtype))
            if nodes[k].shape == pass_.shape:
                more.append(sink)
            else:
                others.append(Pass(nodes[k].shape, (sink,)))
        schedule.held[k] = sink
    return replace(pass_, sinks=(*pass_.sinks, *more)), others
