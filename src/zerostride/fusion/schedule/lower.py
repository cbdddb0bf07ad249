"""Lowers a graph to a program for the engine.

`phases.schedule` decides the phases; this module writes their loads, steps and stores. The axes of
ops, views and reductions are composed down to the slots, so that a phase has only its box.
"""

from __future__ import annotations

import functools
import math
from collections import ChainMap
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import replace
from heapq import heapify, heappop, heappush
from typing import Any

import numpy as np

from ...compute.limits import MOST_OPERANDS
from ...compute.special import EXACT_IN_16_BITS, HALVES, cast, working
from ...ops import ops_with
from ..trace.graph import Apply, Constant, Graph, Input, Node, Number, Reduce, landings, places_of
from .batch import batched, find_group
from .materialize import Kept, keep
from .phases import Pass, Schedule, Sink, fold_dtype, root, schedule
from .program import Literal, Load, Phase, Program, Step, Store, Walk
from .repeated import hold_repeated
from .simplify import in_two_steps, simplified

#: The engine's dtypes.
DTYPES = frozenset(
    {
        *("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"),
        *("float16", "bfloat16", "float32", "float64"),
    }
)
_OF_WIDTH = ops_with("width")
#: The equivalent reductions of truth values.
_OF_BOOLS: Mapping[str, str] = {"min": "all", "max": "any"}

Kernels = Collection[tuple[str, str]]


class LoweringError(Exception):
    """The engine cannot compute a graph; the reference computes it. The text says why."""


def lower(graph: Graph, *, kernels: Kernels | None = None) -> Program:
    """The program of a graph.

    Args:
        graph: what to compute.
        kernels: the engine's: pairs of an op and the dtype of its last operand. None: those of the
            installed engine, or all that could exist without one.

    Raises:
        LoweringError: the engine lacks a dtype or an op of the graph.

    >>> x, y = Input(0, (2, 3), "float32"), Input(1, (3,), "float32")
    >>> dtypes = ("float32",) * 3
    >>> total = Apply("add", (0, 1), ((0, 1), (1,)), dtypes, (2, 3), "float32")
    >>> (phase,) = lower(Graph((x, y, total), (2,), 2)).phases
    >>> phase.shape, phase.loads[1].walk, phase.steps[0].op
    ((2, 3), (-1, 0), 'add')
    """
    check(graph, _kernels() if kernels is None else kernels)
    graph = in_two_steps(simplified(graph))
    draft = schedule(graph)
    hold_repeated(graph.nodes, draft)
    program, emissions = _emitted(graph, draft)
    group = find_group(program)
    members = None if group is None else group.axes.keys()
    computed, loaded = (
        [getattr(emission, of) for emission in emissions] for of in ("computed", "loaded")
    )
    kept = keep(graph.nodes, draft, computed, loaded, members)
    if kept:
        with_kept, _ = _emitted(graph, draft, kept)
        wider = find_group(with_kept)
        same = members == (None if wider is None else wider.axes.keys())
        if same and max(map(_operands, with_kept.phases)) <= MOST_OPERANDS:
            program, group = with_kept, wider
    most = max(map(_operands, program.phases))
    if most > MOST_OPERANDS:
        raise LoweringError(f"{most} arrays meet in one pass; the engine takes {MOST_OPERANDS}")
    return program if group is None else batched(program, group)


def _emitted(
    graph: Graph, schedule: Schedule, kept: Mapping[int, Kept] | None = None
) -> tuple[Program, list[Emission]]:
    """The program of a schedule, without batch.

    Without `kept`, each phase that has too many operands is split in two, with half of the sinks
    each, in the schedule too.
    """
    sources: dict[int, list[Sink]] = {}
    targets: dict[int, dict[int, Sink]] = {}
    for node, stored in (kept or {}).items():
        sources.setdefault(stored.source, []).append(stored.sink)
        for k in stored.targets:
            targets.setdefault(k, {})[node] = stored.sink
    ready: dict[int, Sink] = {}
    passes: list[Pass] = []
    emissions: list[Emission] = []
    phases: list[Phase] = []
    ahead = schedule.passes[::-1]
    while ahead:
        one_pass = ahead.pop()
        sinks, k = one_pass.sinks, len(passes)
        whole = replace(one_pass, sinks=(*sinks, *sources.get(k, ())))
        there = ChainMap(targets[k], ready) if k in targets else ready
        emission = Emission(graph.nodes, schedule, whole, there)
        phase = emission.phase()
        half = len(sinks) // 2 if kept is None and _operands(phase) > MOST_OPERANDS else 0
        if half:
            ahead += [replace(one_pass, sinks=part) for part in (sinks[half:], sinks[:half])]
            continue
        passes.append(one_pass)
        emissions.append(emission)
        phases.append(phase)
        ready.update((sink.node, sink) for sink in sinks if schedule.held.get(sink.node) is sink)
    schedule.passes = passes
    return Program(tuple(schedule.slots), tuple(phases)), emissions


def _operands(phase: Phase) -> int:
    return len(phase.loads) + len(phase.stores)


@functools.cache
def _kernels() -> Kernels | None:
    try:
        from ...compute import _native
    except ImportError:
        return None
    return frozenset(_native.kernels())


# Checks


def check(graph: Graph, kernels: Kernels | None) -> None:
    """Refuses what the engine cannot compute."""
    for node in graph.nodes:
        if node.dtype not in DTYPES:
            raise LoweringError(f"the engine has no {node.dtype}")
        if isinstance(node, Apply):
            _check_op(graph.nodes, node, kernels)


def _check_op(nodes: Sequence[Node], node: Apply, kernels: Kernels | None) -> None:
    for dtype in node.compute:
        if dtype not in DTYPES:
            raise LoweringError(f"the engine computes {node.op} in no {dtype}")
    if node.op == "cast":
        return
    operand = node.compute[len(node.args) - 1]
    if node.op in _OF_WIDTH and operand in HALVES:
        raise LoweringError(f"{node.op} of {operand} is no float32's rounded")
    if kernels is not None and (node.op, working(operand)) not in kernels:
        raise LoweringError(f"the engine has no {node.op} of {operand}")
    for arg, dtype in zip(node.args, node.compute, strict=False):
        number = nodes[arg]
        if isinstance(number, Constant) and number.weak and not _fits(number.value, dtype):
            raise LoweringError(f"{node.op}: the number {number.value} is no {dtype}")
    if node.op == "pow" and operand.startswith("int") and not _is_natural(nodes[node.args[1]]):
        raise LoweringError("a negative power of integers is an error, which the engine cannot see")


def _fits(number: Number, dtype: str) -> bool:
    if np.dtype(dtype).kind not in "iu":
        return True
    info = np.iinfo(dtype)
    return bool(info.min <= number <= info.max)


def _is_natural(power: Node) -> bool:
    if isinstance(power, Constant):
        return power.value >= 0
    return power.dtype[0] in "ub"


# A phase


class Emission:
    """Builds a phase: values are added as they are needed, each once, and sorted at the end."""

    def __init__(
        self, nodes: Sequence[Node], schedule: Schedule, pass_: Pass, ready: Mapping[int, Sink]
    ) -> None:
        """
        Args:
            nodes: the graph's.
            schedule: for its slots.
            pass_: the phase to build.
            ready: the sinks by which earlier phases have stored nodes.
        """
        self._nodes = nodes
        self._slots = schedule.slots
        self._inputs = schedule.inputs
        self._pass = pass_
        self._ready = ready
        self._values: list[Load | Literal | Step] = []
        self._numbers: dict[Hashable, int] = {}
        self._stretching: set[int] = set()  # the loads that stretch
        #: For each node and walk its arguments and their walks.
        self._reads: dict[tuple[int, Walk], list[tuple[int, Walk]]] = {}
        #: The nodes that the phase takes from `ready`.
        self.loaded: set[int] = set()
        #: The value of each node for each walk of the box over it (without axes of extent 1).
        self.computed: dict[tuple[int, Walk], int] = {}

    def phase(self) -> Phase:
        """Builds the phase."""
        for k, walks in sorted(self._needed().items()):
            for key, walk in walks.items():
                self.computed[k, key] = self._compute(k, key, walk)
        stores = [self._store(sink) for sink in self._pass.sinks]
        return _sorted(self._pass.shape, self._values, stores, self._stretching)

    def _needed(self) -> dict[int, dict[Walk, Walk]]:
        """The nodes to compute or load, and all walks of the box over each."""
        needed: dict[int, dict[Walk, Walk]] = {}
        for sink in self._pass.sinks:
            top, walk = self._top(sink)
            needed.setdefault(top, {})[self._key(top, walk)] = walk
        ahead = [-k for k in needed]
        heapify(ahead)
        while ahead:
            k = -heappop(ahead)
            if k in self._ready:
                self.loaded.add(k)
                continue
            for key in needed[k]:
                self._reads[k, key] = []
            node = self._nodes[k]
            for arg, lands in landings(node, self._nodes):
                axes = places_of(lands, len(node.shape))
                if arg not in needed:
                    needed[arg] = {}
                    heappush(ahead, -arg)
                for key, walk in needed[k].items():
                    places = (None if axis < 0 else axes[axis] for axis in walk)
                    onward = tuple(-1 if axis is None else axis for axis in places)
                    there = self._key(arg, onward)
                    self._reads[k, key].append((arg, there))
                    needed[arg].setdefault(there, onward)
        return needed

    def _top(self, sink: Sink) -> tuple[int, Walk]:
        """The node that a sink stores or folds, and the box's walk over it."""
        along = tuple(range(len(self._pass.shape)))
        return root(self._nodes, sink), along if sink.walk is None else sink.walk

    def _key(self, k: int, walk: Walk) -> Walk:
        shape = self._nodes[k].shape
        return tuple(-1 if axis < 0 or shape[axis] == 1 else axis for axis in walk)

    # Values

    def _compute(self, k: int, key: Walk, walk: Walk) -> int:
        """A node's value, in the dtype in which its dtype is computed."""
        node = self._nodes[k]
        if k in self._ready:
            sink = self._ready[k]
            held = tuple(-1 if axis < 0 else sink.place[axis] for axis in walk)
            return self._load(sink.slot, held, node.dtype)
        if isinstance(node, Input):
            return self._load(self._inputs[node.index], walk, node.dtype)
        if isinstance(node, Constant):
            return self._literal(node.value, node.dtype)
        if isinstance(node, Apply):
            return self._apply(node, [self.computed[arg] for arg in self._reads[k, key]])
        (under,) = self._reads[k, key]  # of a view; reductions are held in slots
        return self.computed[under]

    def _apply(self, node: Apply, values: Sequence[int]) -> int:
        """An op's value from its arguments' values."""
        args = tuple(
            self._taken(arg, value, dtype)
            for arg, value, dtype in zip(node.args, values, node.compute, strict=False)
        )
        if node.op == "positive":  # the value itself
            return self._convert(args[0], working(node.dtype))
        if node.op == "cast":
            source = node.compute[0]
            rounded = node.dtype in HALVES and source not in EXACT_IN_16_BITS
            if rounded and not self._is_stored_as(node.args[0], node.dtype):
                return self._rounded(args[0], node.dtype)
            return self._convert(args[0], working(node.dtype))
        value = self._step(node.op, args, tuple(map(working, node.compute)))
        return self._convert(value, working(node.dtype))

    def _step(self, op: str, args: tuple[int, ...], dtypes: tuple[str, ...]) -> int:
        """A step, or a cheaper one with the same result."""
        number = self._values[args[-1]]
        if isinstance(number, Literal) and op == "divide" and _is_power_of_two(number.value):
            inverse = self._literal(1 / number.value, number.dtype)  # exact
            return self._add(Step("multiply", (args[0], inverse), dtypes))
        if isinstance(number, Literal) and op == "pow" and number.value == 2:
            return self._add(Step("square", args[:1], dtypes[1:]))
        return self._add(Step(op, args, dtypes))

    def _is_stored_as(self, k: int, dtype: str) -> bool:
        node = self._nodes[k]
        return isinstance(node, Input) and node.dtype == dtype

    def _folded(self, node: Reduce, arg: int, value: int) -> int:
        """The value that a reduction folds, in the dtype of the fold."""
        taken = self._taken(arg, value, node.compute)
        if node.op in ("argmin", "argmax"):
            bools = _dtype(self._values[taken]) == "bool"
            return self._convert(taken, "uint8") if bools else taken
        return self._convert(taken, fold_dtype(node))

    def _taken(self, k: int, value: int, dtype: str) -> int:
        """A node's value converted for an op that computes in `dtype`."""
        node = self._nodes[k]
        weak = isinstance(node, Input | Constant) and node.weak
        if isinstance(node, Constant) and weak:
            return self._literal(node.value, dtype)
        wider = weak or (node.dtype != dtype and node.dtype not in EXACT_IN_16_BITS)
        if dtype in HALVES and wider:
            return self._rounded(value, dtype)
        return self._convert(value, working(dtype))

    def _rounded(self, value: int, dtype: str) -> int:
        """A value rounded to a 16-bit float."""
        return self._convert(self._convert(value, dtype), working(dtype))

    def _convert(self, value: int, dtype: str) -> int:
        source = _dtype(self._values[value])
        literal = self._values[value]
        if source == dtype:
            return value
        if isinstance(literal, Literal) and not {source, dtype} & HALVES:
            return self._literal(cast(np.asarray(literal.value, source), np.dtype(dtype)), dtype)
        return self._add(Step("convert", (value,), (source, dtype)))

    def _load(self, slot: int, walk: Walk, dtype: str) -> int:
        """A slot's values in the dtype in which its node's dtype is computed.

        A load of one element per point of the box is converted by a step, in registers under the
        compiled tier. A load that stretches is converted while loading, once for all rows.
        """
        shape, own = self._slots[slot].shape, self._slots[slot].dtype
        key = tuple(-1 if axis < 0 or shape[axis] == 1 else axis for axis in walk)
        stretches = any(axis < 0 and n > 1 for axis, n in zip(key, self._pass.shape, strict=True))
        value = self._add(Load(slot, walk, working(own) if stretches else own), (slot, key))
        if stretches:
            self._stretching.add(value)
        return self._convert(value, working(dtype))

    def _literal(self, value: Any, dtype: str) -> int:
        """A number in a dtype; of 16-bit floats, rounded to 16 bits and held in float32."""
        number = np.asarray(value, np.dtype(dtype)).astype(working(dtype)).item()
        # repr tells equal but different numbers apart: 0.0 and -0.0.
        return self._add(Literal(number, working(dtype)), (repr(number), working(dtype)))

    def _add(self, value: Load | Literal | Step, key: Hashable | None = None) -> int:
        number = self._numbers.setdefault(value if key is None else key, len(self._values))
        if number == len(self._values):
            self._values.append(value)
        return number

    def _store(self, sink: Sink) -> Store:
        """A sink's store: the box's axes that are not folded walk its slot's axes."""
        node = self._nodes[sink.node]
        top, along = self._top(sink)
        value = self.computed[top, self._key(top, along)]
        if not (isinstance(node, Reduce) and sink.fold):
            dtype = self._slots[sink.slot].dtype
            value = self._before_rounding(value, dtype)
            if dtype in HALVES:
                value = self._convert(value, dtype)
            walk = sink.place if sink.walk is None else tuple(range(len(along)))
            return Store(value, sink.slot, walk)
        value = self._folded(node, top, value)
        ((_, lands),) = landings(node, self._nodes)
        places = tuple(-1 if to is None else sink.place[to] for to in lands)
        fold = node.op
        if _dtype(self._values[value]) == "bool":
            fold = _OF_BOOLS.get(fold, fold)
        return Store(value, sink.slot, places, fold)

    def _before_rounding(self, value: int, dtype: str) -> int:
        """The value to store in a slot of 16-bit floats, which rounds as a cast does."""
        back = self._values[value]
        if not (dtype in HALVES and isinstance(back, Step) and back.dtypes[0] == dtype):
            return value
        rounding = self._values[back.args[0]]
        if isinstance(rounding, Step) and rounding.dtypes[0] == "float32":
            return rounding.args[0]
        return back.args[0]


def _is_power_of_two(number: Number) -> bool:
    """Whether a number is a power of two whose inverse is a normal float32."""
    mantissa, exponent = math.frexp(number)
    return abs(mantissa) == 0.5 and abs(exponent) < 120


def _dtype(value: Load | Literal | Step) -> str:
    return value.dtypes[-1] if isinstance(value, Step) else value.dtype


def _sorted(
    shape: tuple[int, ...],
    values: Sequence[Load | Literal | Step],
    stores: Sequence[Store],
    stretching: Collection[int],
) -> Phase:
    """A phase with the values that are read, ordered by kind and then as they were added."""
    values, stand_ins = _converted_as_loaded(values, stores, stretching)
    read = {stand_ins.get(store.value, store.value) for store in stores}
    for k in range(len(values) - 1, -1, -1):
        if k in read and isinstance(step := values[k], Step):
            read.update(step.args)
    kinds = (Load, Literal, Step)
    order = sorted(read, key=lambda k: (kinds.index(type(values[k])), k))
    number = {k: new for new, k in enumerate(order)}
    kept = [values[k] for k in order]
    return Phase(
        shape,
        tuple(value for value in kept if isinstance(value, Load)),
        tuple(value for value in kept if isinstance(value, Literal)),
        tuple(
            Step(value.op, tuple(number[arg] for arg in value.args), value.dtypes)
            for value in kept
            if isinstance(value, Step)
        ),
        tuple(
            replace(leaving, value=number[stand_ins.get(leaving.value, leaving.value)])
            for leaving in stores
        ),
    )


def _converted_as_loaded(
    values: Sequence[Load | Literal | Step], stores: Sequence[Store], stretching: Collection[int]
) -> tuple[list[Load | Literal | Step], dict[int, int]]:
    """Converts stretching loads while loading if all their uses convert to one dtype. Returns the
    values, and the load that replaces each such conversion."""
    users: dict[int, set[int]] = {}
    for k, value in enumerate(values):
        for arg in value.args if isinstance(value, Step) else ():
            users.setdefault(arg, set()).add(k)
    for store in stores:
        users.setdefault(store.value, set()).add(-1)
    new_values, stand_ins = list(values), dict[int, int]()
    for k in sorted(stretching):
        value = values[k]
        if (
            not isinstance(value, Load) or len(users.get(k, ())) != 1
        ):  # equal conversions are one step
            continue
        (user,) = users[k]
        step = values[user] if user >= 0 else None
        if isinstance(step, Step) and step.op == "convert" and step.dtypes[-1] not in HALVES:
            new_values[k] = replace(value, dtype=step.dtypes[-1])
            stand_ins[user] = k
    for k, value in enumerate(new_values if stand_ins else ()):
        if isinstance(value, Step):
            new_values[k] = replace(
                value, args=tuple(stand_ins.get(arg, arg) for arg in value.args)
            )
    return new_values, stand_ins
