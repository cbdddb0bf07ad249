"""Phases that run piece by piece: the axes that they share, and the program in that order.

Where phases over the same rows follow one another (softmax: the maximum, the sum, the quotients), a
few rows at a time stay in the caches, and the values stored between phases take a few rows.
"""

from __future__ import annotations

import math
from bisect import bisect_right, insort
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from ...compute.limits import MOST_OPERANDS
from .phases import WHOLE_BYTES, itemsize
from .program import Load, Phase, Program, Slot, Step, Store, Walk

#: A phase over a box so many times smaller than the largest costs little, batched or not.
_LARGE = 8
#: Bytes that one index of the batch may load and store: what second caches hold, or half of it.
_PIECE_BYTES = 1 << 20
#: Contiguous bytes of a piece that is cut across rows. With 1024, subtracting the columns' means
#: from float32 (64, 1024) and (512, 4096) took twice as long as without pieces.
_RUN_BYTES = 4096
#: The most phases from which a group is searched for, the last of a program first: each search
#: walks over all phases. Programs written by hand have fewer phases.
_MOST_SEEDS = 32


class Edge(NamedTuple):
    """A slot that one phase stores and a later one loads."""

    source: int
    store: Store
    target: int
    load: Load


@dataclass(frozen=True, slots=True)
class Group:
    """Phases that are run piece by piece.

    Attributes:
        axes: for each of the phases, the batch's axes in its box, in the same order.
    """

    axes: Mapping[int, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Links:
    """How the phases of a program depend on each other.

    Attributes:
        edges: all slots that are stored and loaded.
        touching: for each phase its edges.
        after: for each phase those that need it, directly or not, as the bits of an integer.
        before: for each phase those that it needs, in the same way.
    """

    edges: Sequence[Edge]
    touching: list[list[Edge]] = field(default_factory=list)
    after: list[int] = field(default_factory=list)
    before: list[int] = field(default_factory=list)


def links_of(program: Program) -> Links:
    """The dependencies of a program's phases."""
    count = len(program.phases)
    links = Links(edges(program), [[] for _ in range(count)], [0] * count, [0] * count)
    for link in links.edges:
        links.touching[link.source].append(link)
        links.touching[link.target].append(link)
    for k in range(count):
        for link in links.touching[k]:
            if link.target == k:
                links.before[k] |= links.before[link.source] | 1 << link.source
    for k in reversed(range(count)):
        for link in links.touching[k]:
            if link.source == k:
                links.after[k] |= links.after[link.target] | 1 << link.target
    return links


def _bits(mask: int) -> Iterator[int]:
    """The indices of an integer's set bits, rising."""
    while mask:
        yield (mask & -mask).bit_length() - 1
        mask &= mask - 1


def edges(program: Program) -> list[Edge]:
    """All slots that are stored and loaded."""
    stored = {
        store.slot: (k, store) for k, phase in enumerate(program.phases) for store in phase.stores
    }
    return [
        Edge(*stored[load.slot], k, load)
        for k, phase in enumerate(program.phases)
        for load in phase.loads
        if load.slot in stored
    ]


def find_group(program: Program) -> Group | None:
    """The phases to run piece by piece, or None.

    The group is the largest set of phases of large boxes that share an axis which none of them
    folds for the others. The batch has the first of their shared axes, as many as make pieces small
    enough.
    """
    links = links_of(program)
    large = _large(program, links.edges)
    if len(large) < 2:
        return None
    candidates: list[dict[int, int]] = []
    seen: set[int] = set()
    seeds = 0
    for seed in sorted(large, reverse=True):
        if seed in seen or seeds == _MOST_SEEDS:
            continue
        seeds += 1
        for axis, extent in enumerate(program.phases[seed].shape):
            members = _sharing(program, links, seed, axis) if extent > 1 else {}
            if len(large & members.keys()) > 1:
                candidates.append(members)
                seen |= members.keys()
    if not candidates:
        return None
    most = max(len(large & members.keys()) for members in candidates)
    best = next(members for members in candidates if len(large & members.keys()) == most)
    alike = [members for members in candidates if members.keys() == best.keys()]
    return _small_enough(program, alike)


def _large(program: Program, links: Sequence[Edge]) -> set[int]:
    """The phases that should run piece by piece: those of large boxes or temporaries."""
    sizes = [math.prod(phase.shape) for phase in program.phases]
    phases = {k for k, size in enumerate(sizes) if size and size * _LARGE >= max(sizes)}
    for link in links:
        slot = program.slots[link.load.slot]
        if slot.kind == "temp" and math.prod(slot.shape) * itemsize(slot.dtype) > WHOLE_BYTES:
            phases |= {link.source, link.target}
    return phases


# Which phases share an axis


def _sharing(program: Program, links: Links, seed: int, axis: int) -> dict[int, int]:
    """The phases that can run piece by piece along an axis of the seed, and their axes."""
    axes = {seed: axis}
    work = [seed]
    while work:
        k = work.pop()
        for link in links.touching[k]:
            other = link.target if link.source == k else link.source
            if other not in axes:
                to = _along(program, link, axes[k], down=link.source == k)
                if to is not None:
                    axes[other] = to
                    work.append(other)
    for k in [k for k in axes if _folds_all(program.phases[k], axes[k])]:
        del axes[k]
    if seed in axes:
        _leave_out(program, links, seed, axes)
    return axes if seed in axes else {}


def _along(program: Program, link: Edge, axis: int, *, down: bool) -> int | None:
    """The axis of a slot's other phase that matches an axis of this phase, or None."""
    here, there = (link.store, link.load) if down else (link.load, link.store)
    walked = here.walk[axis]
    if walked < 0 or program.slots[link.load.slot].shape[walked] == 1 or walked not in there.walk:
        return None
    return there.walk.index(walked)


def _folds_all(phase: Phase, axis: int) -> bool:
    return all(store.walk[axis] < 0 for store in phase.stores)


def _leave_out(program: Program, links: Links, seed: int, axes: dict[int, int]) -> None:
    """Takes out phases that have to end before others of the group begin: the phases before such a
    point if the seed is after it, otherwise the phases after it."""
    left = sum(1 << k for k in axes)

    def leave_out(source: int, target: int) -> int:
        """Takes out the phases on the other side of an edge than the seed, and returns them."""
        if source == seed or links.after[seed] >> source & 1:
            out = left & (links.after[target] | 1 << target)
        else:
            out = left & (links.before[source] | 1 << source)
        for k in _bits(out):
            del axes[k]
        return out

    # Pairs of phases where the second needs more of the first than the same piece, …
    for link in links.edges:
        if link.source in axes and link.target in axes:
            to = _along(program, link, axes[link.source], down=True)
            if to != axes[link.target]:
                left &= ~leave_out(link.source, link.target)
    # … or a value that a phase outside the group computes from all pieces of it.
    outside = [k for k in range(len(program.phases)) if k not in axes]
    heapify(outside)
    while outside:
        k = outside[0]
        sources, targets = left & links.before[k], left & links.after[k]
        if not sources or not targets:
            heappop(outside)
            continue
        out = leave_out(sources.bit_length() - 1, (targets & -targets).bit_length() - 1)
        left &= ~out
        for other in _bits(out):
            heappush(outside, other)


# How many axes


def _small_enough(program: Program, alike: Sequence[Mapping[int, int]]) -> Group | None:
    """The first axes in memory, as few as leave pieces that fit the cache."""
    largest = max(alike[0], key=lambda k: math.prod(program.phases[k].shape))
    order = _in_memory(program, program.phases[largest])
    alike = sorted(alike, key=lambda members: order.index(members[largest]))
    for count in range(1, len(alike) + 1):
        axes = {k: tuple(members[k] for members in alike[:count]) for k in alike[0]}
        piece = sum(
            _piece_bytes(program.slots[slot], walk, {*axes[k]}, program.phases[k])
            for slot, walk, k in _operands(program, axes)
        )
        least, k = _indices(program, axes), next(iter(axes))
        if least > 1 and least >= program.phases[k].shape[axes[k][-1]]:
            continue  # in one piece
        if piece * least <= _PIECE_BYTES:
            return Group(axes)
    return None


def _operands(
    program: Program, axes: Mapping[int, tuple[int, ...]]
) -> Iterator[tuple[int, Walk, int]]:
    """Each slot that the batched phases touch, with one walk of it and the phase."""
    seen = set()
    for k in axes:
        for slot, walk in _touched(program.phases[k]):
            if slot not in seen:
                seen.add(slot)
                yield slot, walk, k


def _touched(phase: Phase) -> list[tuple[int, Walk]]:
    loads = [(load.slot, load.walk) for load in phase.loads]
    return loads + [(store.slot, store.walk) for store in phase.stores]


def _piece_bytes(slot: Slot, walk: Walk, batch: set[int], phase: Phase) -> int:
    """The bytes of a slot that one index of the batch touches."""
    gone = {walk[axis] for axis in batch}
    extents = (extent for axis, extent in enumerate(slot.shape) if axis not in gone)
    return math.prod(extents) * itemsize(slot.dtype)


def _indices(program: Program, axes: Mapping[int, tuple[int, ...]]) -> int:
    """The least number of indices of the last batch axis in a piece, so that it reads runs and not
    single elements."""
    k = max(axes, key=lambda member: math.prod(program.phases[member].shape))
    phase = program.phases[k]
    order = _in_memory(program, phase)
    last = order.index(axes[k][-1])
    if all(phase.shape[axis] == 1 or axis in axes[k] for axis in order[:last]):
        return 1
    width = itemsize(program.slots[phase.loads[0].slot].dtype) if phase.loads else _RUN_BYTES
    run = math.prod(phase.shape[axis] for axis in order[last + 1 :]) * width
    return max(1, _RUN_BYTES // run)


def _in_memory(program: Program, phase: Phase) -> list[int]:
    """The axes of a phase's box in the memory order of its largest operand. Arrays are taken to be
    in C order, because their strides are not known."""
    inputs = [load for load in phase.loads if program.slots[load.slot].kind == "input"]
    axes = list(range(len(phase.shape)))
    if not inputs:
        return axes
    walk = max(inputs, key=lambda load: math.prod(program.slots[load.slot].shape)).walk
    return sorted(axes, key=lambda axis: (axis if walk[axis] < 0 else walk[axis], axis))


# The program in order of pieces


def batched(program: Program, group: Group) -> Program:
    """The program with a group's phases side by side, the batch's axes first in their boxes.

    Folds over the batch's axes are moved to a separate phase after the group.
    """
    after = links_of(program).after
    needing = 0
    for k in group.axes:
        needing |= after[k]
    behind = set(_bits(needing)) - group.axes.keys()
    before = [k for k in range(len(program.phases)) if k not in group.axes and k not in behind]
    inner, outer = [], {k: program.phases[k] for k in behind}
    for k in sorted(group.axes):
        phase, axes = program.phases[k], group.axes[k]
        across = [s for s in phase.stores if any(s.walk[axis] < 0 for axis in axes)]
        if across:
            outer[k] = with_stores(phase, across)
            phase = with_stores(phase, [store for store in phase.stores if store not in across])
        rest = [axis for axis in range(len(phase.shape)) if axis not in axes]
        inner.append(_permuted(phase, (*axes, *rest)))
    first = [program.phases[k] for k in before]
    last = _together([outer[k] for k in sorted(outer)])
    batch = len(next(iter(group.axes.values())))
    slots, inner = _with_pieces(program.slots, inner, [*first, *last], batch)
    phases = (*first, *inner, *last)
    return Program(tuple(slots), phases, batch, len(first), len(first) + len(inner))


def with_stores(phase: Phase, stores: Sequence[Store]) -> Phase:
    """A phase with these stores only, and the steps that they need."""
    inputs = (*phase.loads, *phase.literals)
    read = {store.value for store in stores}
    for k in range(len(phase.steps) - 1, -1, -1):
        if len(inputs) + k in read:
            read.update(phase.steps[k].args)
    number = {k: new for new, k in enumerate(sorted(read))}
    start = len(phase.loads)
    return Phase(
        phase.shape,
        tuple(load for k, load in enumerate(phase.loads) if k in read),
        tuple(literal for k, literal in enumerate(phase.literals, start) if k in read),
        tuple(
            replace(step, args=tuple(number[arg] for arg in step.args))
            for k, step in enumerate(phase.steps, len(inputs))
            if k in read
        ),
        tuple(replace(store, value=number[store.value]) for store in stores),
    )


def _together(phases: Sequence[Phase]) -> list[Phase]:
    """Joins phases over one box, unless a phase between them reads the earlier one's stores."""
    left = list(phases)
    following = _following(phases)
    readers: dict[int, list[int]] = {}  # for each slot the phases that load it, rising
    for k, phase in enumerate(phases):
        for load in phase.loads:
            readers.setdefault(load.slot, []).append(k)
    joined: list[Phase] = []
    for k, later in enumerate(following):
        phase = left[k]
        if later is None or not _can_join(phase, left[later], k, later, readers):
            joined.append(phase)
            continue
        left[later] = _joined(phase, left[later])
        for load in phase.loads:
            insort(readers[load.slot], later)
    return joined


def _following(phases: Sequence[Phase]) -> list[int | None]:
    """For each phase the next one over the same box."""
    following: list[int | None] = []
    seen: dict[tuple[int, ...], int] = {}
    for k in reversed(range(len(phases))):
        following.append(seen.get(phases[k].shape))
        seen[phases[k].shape] = k
    return following[::-1]


def _can_join(
    first: Phase, second: Phase, k: int, later: int, readers: Mapping[int, Sequence[int]]
) -> bool:
    for store in first.stores:
        reading = readers.get(store.slot, ())
        after = bisect_right(reading, k)
        if after < len(reading) and reading[after] <= later:
            return False
    return _operand_count(first, second) <= MOST_OPERANDS


def _operand_count(*phases: Phase) -> int:
    return sum(len(phase.loads) + len(phase.stores) for phase in phases)


def _joined(earlier: Phase, behind: Phase) -> Phase:
    """Two phases over one box as one; common loads and steps occur once."""
    loads = list(dict.fromkeys(earlier.loads + behind.loads))
    literals = [*earlier.literals, *behind.literals]
    steps: dict[Step, int] = {}
    stores: list[Store] = []
    first = len(loads) + len(literals)
    before = 0
    for phase in (earlier, behind):
        number = [loads.index(load) for load in phase.loads]
        number += [len(loads) + before + i for i in range(len(phase.literals))]
        before += len(phase.literals)
        for step in phase.steps:
            moved = Step(step.op, tuple(number[arg] for arg in step.args), step.dtypes)
            number.append(first + steps.setdefault(moved, len(steps)))
        stores += [replace(store, value=number[store.value]) for store in phase.stores]
    return Phase(earlier.shape, tuple(loads), tuple(literals), tuple(steps), tuple(stores))


def _permuted(phase: Phase, order: Sequence[int]) -> Phase:
    """A phase with the axes of its box in another order."""
    if list(order) == sorted(order):
        return phase

    def walk(old: Walk) -> Walk:
        return tuple(old[axis] for axis in order)

    return replace(
        phase,
        shape=walk(phase.shape),
        loads=tuple(Load(load.slot, walk(load.walk), load.dtype) for load in phase.loads),
        stores=tuple(
            Store(store.value, store.slot, walk(store.walk), store.fold) for store in phase.stores
        ),
    )


def _with_pieces(
    slots: Sequence[Slot], inner: Sequence[Phase], others: Sequence[Phase], batch: int
) -> tuple[list[Slot], list[Phase]]:
    """Turns temporaries that only the batched phases use into pieces, the batch's axes first."""
    outside = {slot for phase in others for slot, _ in _touched(phase)}
    new_slots, place = list(slots), dict[int, list[int]]()
    for store in (store for phase in inner for store in phase.stores):
        slot = slots[store.slot]
        if slot.kind == "temp" and store.slot not in outside:
            order = [*store.walk[:batch]]
            order += [axis for axis in range(len(slot.shape)) if axis not in order]
            new_slots[store.slot] = replace(
                slot, kind="piece", shape=tuple(slot.shape[axis] for axis in order)
            )
            place[store.slot] = [order.index(axis) for axis in range(len(order))]

    def walk(access: Load | Store) -> Walk:
        to = place.get(access.slot)
        return access.walk if to is None else tuple(-1 if a < 0 else to[a] for a in access.walk)

    if not place:
        return new_slots, list(inner)
    phases = [
        replace(
            phase,
            loads=tuple(Load(load.slot, walk(load), load.dtype) for load in phase.loads),
            stores=tuple(
                Store(store.value, store.slot, walk(store), store.fold) for store in phase.stores
            ),
        )
        for phase in inner
    ]
    return new_slots, phases
