"""The walk over a model: each node is computed on the other side's own numbers, and judged.

A tensor that the other side has is compared with what the model means by its node on the operands
that the other side had. Then the walk goes on with the other side's numbers. So a fault is seen
once, where it happens, and does not hide the faults after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from ...errors import ModelError
from ..bisection import Fetch, How, Stage
from ..execute.part import Part, Parts, last_uses, read_by
from ..execute.program import readable
from ..ir.graph import Array, Graph, Value
from ..judging import (
    NEAR_1,
    OF_LARGEST,
    STEPS_OF_1,
    Difference,
    Judged,
    judged,
    one_step,
    relative,
    tolerance_of,
)
from .layouts import Layout, layouts
from .matching import Match, Place, Tensors, equal, likeliest
from .readings import find_reading
from .sides import Fault, Other, ops_of

#: Operands are moved by this part of the tolerance to see how far rounding alone moves a result.
_NUDGE = 1 / 8
#: A result may move by so many times that.
_TIMES = 8
#: Nodes that a converter may have fused into the one before.
_MOST_FUSED = 3


class Walk:
    """One walk.

    Args:
        graph: the model, with known sizes.
        inputs: arrays by the names of its inputs.
        other: the other side.
        reference: tensors of the model by its own engine, for nodes that are not executed here and
            to see what a converter fused.
        most: the tolerance of one node.
        variants: the model changed in ways that are no faults, such as weights in half precision.
        placed: matches that are known already, by the names of the model's tensors.
    """

    def __init__(
        self,
        graph: Graph,
        inputs: Mapping[str, Array],
        other: Other,
        reference: Fetch,
        most: float,
        variants: Sequence[Callable[[Graph], Graph]] = (),
        placed: Mapping[str, Place] | None = None,
    ) -> None:
        self.graph, self.other, self.reference = graph, other, reference
        self.most, self.variants = most, variants
        self.parts = Parts(graph)
        names = {value.name for node in self.parts.nodes for value in node.outputs}
        self.tensors = Tensors(other, names, most, placed or {})
        self.values = {id(v): inputs[v.name] for v in graph.inputs if v.name in inputs}
        # How to read a known tensor again, which the walk has dropped.
        self.known: dict[int, Callable[[], Array | None]] = {
            key: partial(_itself, array) for key, array in self.values.items()
        }
        self.faults: list[Fault] = []
        self.notes: list[str] = []
        # Tensors that the other side failed to compute or has in another shape, and those that
        # need them: what follows cannot be judged.
        self.lost: set[int] = set()

    def run(self) -> list[Stage]:
        """The stages, in the model's order; `faults` has the culprits after it."""
        nodes, stages = self.parts.nodes, []
        last = last_uses(nodes)
        for position, node in enumerate(nodes):
            for value in node.outputs:
                if value.name and not readable(value):
                    stages.append(self._stage(node.path, node.op, value))
            for key in [key for key in self.values if last.get(key, -1) <= position]:
                del self.values[key]
        return stages

    def _stage(self, path: str, op: str, value: Value) -> Stage:
        expected = self._expected(self.parts.before(value, self.values.keys() | self.known.keys()))
        match = self.tensors.match(value, expected)
        verdict = None
        if match is not None:
            part = self.parts.before(value, self.known.keys())
            verdict, match = self._judge(part, expected, match)
        self._feed(value, match, expected, cut=verdict is not None)
        if match is None:
            return Stage(value.name, path, op)
        layout = match.layout.words if match.layout is not None else ""
        drift = self._drift(value, match)
        held = (match.name, match.how, match.sure, layout, verdict, drift)
        return Stage(value.name, path, op, *held)

    def _expected(self, part: Part) -> Array | None:
        """The tensor by the model's meaning on the other side's operands.

        A node that is not executed here has the numbers of the model's own engine, if its operands
        are equal on both sides.
        """
        try:
            return part.run(self._operands(part))
        except ModelError as error:
            self.notes.append(str(error))
        array = self.reference(part.result.name)
        if array is None:
            return None
        for operand in part.operands:
            model_array, other_array = self._value(operand), self.reference(operand.name)
            if model_array is None or (
                other_array is not None and not equal(other_array, model_array, self.most)
            ):
                return None
        self.known[id(part.result)] = partial(self.reference, part.result.name)
        return array

    def _operands(self, part: Part) -> dict[int, Array]:
        arrays = {id(operand): self._value(operand) for operand in part.operands}
        return {key: array for key, array in arrays.items() if array is not None}

    def _value(self, value: Value) -> Array | None:
        array = self.values.get(id(value))
        return self.known[id(value)]() if array is None and id(value) in self.known else array

    def _judge(
        self, part: Part, expected: Array | None, match: Match
    ) -> tuple[Judged | None, Match | None]:
        after = any(id(v) in self.lost for node in part.nodes for v in read_by(node))
        if match.array is None:
            detail = self.other.failures.get(match.name, "it is not in the other's results")
            failed = Judged(Difference.MISSING, float("inf"), detail=detail)
            if match.name in self.other.failures:
                if not after:
                    self._blame(part, match, failed, expected, None)
                self.lost.add(id(part.result))
                return failed, match
            return None, match
        if expected is None:
            return None, match
        late, array = "", match.array
        if match.layout is not None and match.layout.stretched:
            actual = match.layout.read(array)
            verdict = self._verdict(part, expected, actual)
            late = self._reader_unstretched(part.result, expected, array)
            ends = {id(output) for output in self.graph.outputs}
            if verdict.agrees and not late and id(part.result) not in ends:
                return verdict, match
            match = replace(match, layout=None)
        if match.layout is None and self._no_fault(part.result, expected, match):
            return None, None
        if match.layout is None:
            detail = f"its shape is {array.shape}, expected {expected.shape}{late}"
            failed = Judged(Difference.SHAPE, float("inf"), detail=detail)
            if not after:
                self._blame(part, match, failed, expected, array)
            self.lost.add(id(part.result))
            return failed, match
        actual = match.layout.read(array)
        verdict = self._verdict(part, expected, actual)
        # Axes that seem permuted may be a misread operand, too.
        unsure = not verdict.agrees or match.layout.order is not None
        if unsure and (layout := self._misread(part, expected, array)):
            match, actual = replace(match, layout=layout), layout.read(array)
            verdict = judged(expected, actual, self._most(part, expected))
        elif not verdict.agrees and self._no_fault(part.result, expected, match):
            return None, None
        if not verdict.agrees and after:
            return None, match  # the other side had operands that are not known here
        if not verdict.agrees:
            self._blame(part, match, verdict, expected, actual)
        return verdict, match

    def _verdict(self, part: Part, expected: Array, actual: Array) -> Judged:
        """The comparison; what rounding and allowed changes of the model explain is no fault."""
        most = self._most(part, expected)
        verdict = judged(expected, actual, most)
        if verdict.agrees:
            return verdict
        excused = self._excused(part, expected) + one_step(part.nodes[-1], expected)
        return judged(expected, actual, most, excused)

    def _most(self, part: Part, expected: Array) -> float:
        return max(self.most, tolerance_of(expected.dtype), tolerance_of(part.result.dtype))

    def _reader_unstretched(self, value: Value, expected: Array, held: Array) -> str:
        """The node, in words, that took a tensor before it was stretched and so is wrong; or ""."""
        lean = held.reshape((1,) * (expected.ndim - held.ndim) + held.shape)
        for end in self._held_readers(value)[0]:
            right, late = (
                self._later(end, value, array) for array in (expected, lean.astype(expected.dtype))
            )
            name = self.tensors.same_names[end.name]
            if late is None or not self.tensors.holds(name, late):
                continue
            if right is None or not self.tensors.holds(name, right):
                return f", and {end.name} is made of it unstretched"
        return ""

    def _misread(self, part: Part, expected: Array, array: Array) -> Layout | None:
        """The layout, of several, in which a broadcast read another way explains the numbers.

        In a cube an operand on another axis looks much like permuted axes.
        """
        ways = list(layouts(array.shape, expected.shape))
        values = self._operands(part) if len(ways) > 1 else {}
        for way in ways if values else ():
            actual = way.read(array)
            if find_reading(part, values, partial(equal, actual=actual, most=self.most)):
                return way
        return None

    def _excused(self, part: Part, expected: Array) -> Array | float:
        """The tolerance that rounding and allowed changes of the model add, number by number."""
        try:
            values = self._operands(part)
            moved = _TIMES * part.spread(values, self.most * _NUDGE)
            for variant in self.variants:
                other = part.changed(variant(_graph_of(part))).run(values)
                moved = moved + 2 * np.abs(other.astype(np.float64) - expected)
        except (ModelError, TypeError):
            return 0.0
        if any("conv" in node.op.lower() for node in part.nodes):
            # Winograd's transforms mix the numbers of a tile, so that rounding of the largest ones
            # is seen in the smallest.
            finite = np.abs(expected[np.isfinite(expected)]).max(initial=0.0)
            mixed = max(self.most, self.other.approximated.get("Conv", 0.0)) * float(finite)
            moved = np.full_like(moved, max(moved.max(initial=0.0), mixed))
        ops = {op for node in part.nodes for op in ops_of(part.graph, node)}
        if ops & NEAR_1:
            moved = moved + STEPS_OF_1
        rows = (self.other.approximated.get(op, 0.0) for op in ops - OF_LARGEST)
        moved = moved + max(rows, default=0.0)
        size = np.abs(expected.astype(np.float64))
        floor = min(1.0, float(size[np.isfinite(size)].max(initial=0.0))) or 1.0
        with np.errstate(all="ignore"):
            return np.nan_to_num(moved / np.maximum(size, floor), nan=0.0)

    def _blame(
        self,
        part: Part,
        match: Match,
        verdict: Judged,
        expected: Array | None,
        actual: Array | None,
    ) -> None:
        values = self._operands(part)
        self.faults.append(Fault(part, match.name, verdict, values, expected, actual))

    def _no_fault(self, value: Value, expected: Array, match: Match) -> bool:
        """Whether nothing is wrong yet, though the tensor of this name has other numbers.

        It holds a later tensor, where a converter fused nodes or an engine wrote in place. Or the
        next nodes make it up: a converter moved a factor of theirs into this node. A later node
        that had other operands differs itself.
        """
        if match.array is None or match.how is not How.NAME:
            return False
        return self._holds_later(value, expected, match) or self._made_up(value, expected, match)

    def _holds_later(self, value: Value, expected: Array, match: Match) -> bool:
        """Whether the right numbers give the held ones in a node that follows."""
        for later in self._after(value):
            meant = self._later(later, value, expected)
            if meant is not None and self.tensors.holds(match.name, meant):
                if later.name not in self.tensors.same_names:
                    self.tensors.placed.setdefault(later.name, Place(match.name))
                return True
        return False

    def _made_up(self, value: Value, expected: Array, match: Match) -> bool:
        """Whether each node that reads the tensor is right if its right numbers are read.

        With the held numbers these nodes would be wrong, or a fault here could be hidden.
        """
        if match.layout is None or match.array is None:
            return False
        held = match.layout.read(match.array).astype(expected.dtype)
        ends, left = self._held_readers(value)
        if left or not ends:
            return False
        for end in ends:
            right, wrong = (self._later(end, value, array) for array in (expected, held))
            if right is None or not self.tensors.holds(self.tensors.same_names[end.name], right):
                return False
            if wrong is not None and self.tensors.holds(self.tensors.same_names[end.name], wrong):
                return False
        return True

    def _held_readers(self, value: Value) -> tuple[list[Value], list[Value]]:
        """The first tensors after one that the other side has by name; where it has none, others.

        The others are the last that were looked at.
        """
        ends: list[Value] = []
        left, depth = [value], 0
        while left and depth < _MOST_FUSED:
            depth += 1
            later = [v for read in left for v in self._results_of(read)]
            ends += [v for v in later if v.name in self.tensors.same_names]
            left = [v for v in later if v.name not in self.tensors.same_names]
        return ends, left

    def _later(self, later: Value, value: Value, array: Array) -> Array | None:
        """A tensor by its meaning, with an array for a tensor before it."""
        part = self.parts.before(later, {*self.values.keys(), *self.known.keys(), id(value)})
        try:
            return part.run({**self._operands(part), id(value): array})
        except ModelError:
            return None

    def _results_of(self, value: Value) -> list[Value]:
        """The results of the nodes that read a tensor; of copies that nobody holds, theirs."""
        results: list[Value] = []
        waiting = [value]
        while waiting:
            for node in self.parts.users_of(waiting.pop()):
                made = [v for v in node.outputs if v.name]
                held = node.onnx_op != "Identity" or any(
                    v.name in self.tensors.same_names for v in made
                )
                (results if held else waiting).extend(made)
        return results

    def _after(self, value: Value) -> Iterator[Value]:
        """Yield the tensors that are made from this one, at most some nodes later."""
        now = [value]
        for _ in range(_MOST_FUSED):
            now = [v for read in now for v in self._results_of(read)]
            yield from now

    def _feed(
        self, value: Value, match: Match | None, expected: Array | None, *, cut: bool
    ) -> None:
        """Goes on with the other side's numbers, or with the right ones where it has none."""
        if match is None or match.array is None or match.layout is None:
            if expected is not None:
                self.values[id(value)] = expected
                if cut:
                    self.known[id(value)] = partial(_itself, expected)
            return
        layout, name = match.layout, match.name
        dtype = value.dtype or (expected.dtype if expected is not None else match.array.dtype)

        def read() -> Array | None:
            array = self.other.fetch(name)
            return None if array is None else _typed(layout.read(array), dtype)

        array = read()
        if array is not None:
            self.values[id(value)], self.known[id(value)] = array, read

    def _drift(self, value: Value, match: Match) -> float | None:
        meant = self.reference(value.name)
        if meant is None or match.array is None:
            return None
        layout = likeliest(match.array, meant.shape, meant)
        if layout is None:
            return None
        return float(relative(meant, layout.read(match.array)).max(initial=0.0))


def _itself(array: Array) -> Array:
    return array


def _graph_of(part: Part) -> Graph:
    return replace(part.graph, nodes=part.nodes)


def _typed(array: Array, dtype: object) -> Array:
    with np.errstate(all="ignore"):
        return np.asarray(array, np.dtype(str(dtype)), order="C")
