"""The walk over a model: each node is computed on the other side's own numbers, and judged.

A tensor that the other side has is compared with what the model means by its node on the operands
that the other side had. Then the walk goes on with the other side's numbers. So a fault is seen
once, where it happens, and does not hide the faults after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice

import numpy as np

from ...errors import ModelError
from ..bisection import Fetch, How, Stage
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
from .part import Part, Parts, last_uses, read_by
from .readings import find_reading
from .sides import Fault, Other, has_numbers_for_names, ops_of

#: Operands are moved by this part of the tolerance to see how far rounding alone moves a result.
_NUDGE = 1 / 8
#: A result may move by so many times that.
_TIMES = 8
#: Tensors of the other side that are tried for one place.
_MOST_TRIED = 64
#: A tensor has another layout than the likeliest if its error is then less than this part. Wrong
#: numbers are a little nearer in one layout or another by chance.
_NEARER = 0.1
#: Nodes that a converter may have fused into the one before.
_MOST_FUSED = 3


@dataclass(frozen=True, slots=True)
class Place:
    """The other side's tensor that stands for one of another name.

    Attributes:
        name: its name there.
        layout: how its numbers lie there, if that is known.
    """

    name: str
    layout: Layout | None = None


@dataclass(frozen=True, slots=True)
class _Match:
    name: str
    how: How
    sure: float
    layout: Layout | None
    array: Array | None


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
        self.placed = dict(placed or {})
        self.parts = Parts(graph)
        self.values = {id(v): inputs[v.name] for v in graph.inputs if v.name in inputs}
        # How to read a known tensor again, which the walk has dropped.
        self.known: dict[int, Callable[[], Array | None]] = {
            key: partial(_itself, array) for key, array in self.values.items()
        }
        self.faults: list[Fault] = []
        self.notes: list[str] = []
        own = {value.name for node in self.parts.nodes for value in node.outputs}
        if has_numbers_for_names(other.outputs):
            own = {name for name in own if not name.isdecimal()}
        taken = {place.name for place in self.placed.values()}
        held = set(other.names)
        names = {name: alias for name, alias in other.aliases.items() if alias in held}
        # The other side's name of a tensor, by the model's.
        self.same_names = {n: names.get(n, n) for n in own if n in held or n in names}
        self.free = [n for n in other.names if n not in own and n not in taken]
        # Tensors that the other side failed to compute or has in another shape, and those that
        # need them: what follows cannot be judged.
        self.lost: set[int] = set()
        self._sizes: dict[int, dict[str, tuple[float, float]]] | None = None

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
        match = self._match(value, expected)
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
                other_array is not None and not _equal(other_array, model_array, self.most)
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

    def _match(self, value: Value, expected: Array | None) -> _Match | None:
        """The other side's tensor: by name, by its place, or by its numbers."""
        if value.name in self.other.failures:
            return _Match(value.name, How.NAME, 1.0, None, None)
        if value.name in self.same_names:
            return self._held(self.same_names[value.name], How.NAME, 1.0, value, expected)
        if value.name in self.placed:
            place = self.placed[value.name]
            match = self._held(place.name, How.POSITION, 0.8, value, expected)
            return match if place.layout is None else replace(match, layout=place.layout)
        return None if expected is None else self._by_value(expected)

    def _held(
        self, name: str, how: How, sure: float, value: Value, expected: Array | None
    ) -> _Match:
        array = self.other.fetch(name)
        if array is None:
            return _Match(name, how, sure, None, None)
        shape = tuple(s for s in value.shape or () if isinstance(s, int))
        if expected is not None:
            shape = expected.shape
        elif value.shape is None or not value.known:
            shape = array.shape
        return _Match(name, how, sure, _best(array, shape, expected), array)

    def _by_value(self, expected: Array) -> _Match | None:
        if self._sizes is None:
            self._sizes = {}
            for name in self.free:
                array = self.other.fetch(name)
                if array is not None:
                    self._sizes.setdefault(array.size, {})[name] = _extremes(array)
        # A sum of about 1 is no size of 1.
        most = 0.0 if expected.dtype.kind in "iub" else self.most
        least, largest = _extremes(expected)
        # No number of equal arrays is further apart than this, so their extremes are not.
        apart = most * max(1.0, abs(least), abs(largest))
        near = (
            name
            for name, ends in self._sizes.get(expected.size, {}).items()
            if abs(ends[0] - least) <= apart and abs(ends[1] - largest) <= apart
        )
        equal = []
        for name in islice(near, _MOST_TRIED):
            array = self.other.fetch(name)
            if array is None:
                continue
            layout = _best(array, expected.shape, expected)
            if layout is not None and _equal(expected, layout.read(array), most):
                equal.append(_Match(name, How.VALUE, 1.0, layout, array))
        if not equal:
            return None
        best = equal[0]
        del self._sizes[expected.size][best.name]
        return _Match(best.name, How.VALUE, 1 / len(equal), best.layout, best.array)

    def _judge(
        self, part: Part, expected: Array | None, match: _Match
    ) -> tuple[Judged | None, _Match | None]:
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
            name = self.same_names[end.name]
            if late is None or not self._held_as(name, late):
                continue
            if right is None or not self._held_as(name, right):
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
            if find_reading(part, values, partial(_equal, actual=actual, most=self.most)):
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
        match: _Match,
        verdict: Judged,
        expected: Array | None,
        actual: Array | None,
    ) -> None:
        values = self._operands(part)
        self.faults.append(Fault(part, match.name, verdict, values, expected, actual))

    def _no_fault(self, value: Value, expected: Array, match: _Match) -> bool:
        """Whether nothing is wrong yet, though the tensor of this name has other numbers.

        It holds a later tensor, where a converter fused nodes or an engine wrote in place. Or the
        next nodes make it up: a converter moved a factor of theirs into this node. A later node
        that had other operands differs itself.
        """
        if match.array is None or match.how is not How.NAME:
            return False
        return self._holds_later(value, expected, match) or self._made_up(value, expected, match)

    def _holds_later(self, value: Value, expected: Array, match: _Match) -> bool:
        """Whether the right numbers give the held ones in a node that follows."""
        for later in self._after(value):
            meant = self._later(later, value, expected)
            if meant is not None and self._held_as(match.name, meant):
                if later.name not in self.same_names:
                    self.placed.setdefault(later.name, Place(match.name))
                return True
        return False

    def _made_up(self, value: Value, expected: Array, match: _Match) -> bool:
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
            if right is None or not self._held_as(self.same_names[end.name], right):
                return False
            if wrong is not None and self._held_as(self.same_names[end.name], wrong):
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
            ends += [v for v in later if v.name in self.same_names]
            left = [v for v in later if v.name not in self.same_names]
        return ends, left

    def _later(self, later: Value, value: Value, array: Array) -> Array | None:
        """A tensor by its meaning, with an array for a tensor before it."""
        part = self.parts.before(later, {*self.values.keys(), *self.known.keys(), id(value)})
        try:
            return part.run({**self._operands(part), id(value): array})
        except ModelError:
            return None

    def _held_as(self, name: str, meant: Array) -> bool:
        """Whether the other side has the numbers under a name."""
        array = self.other.fetch(name)
        if array is None:
            return False
        layout = _best(array, meant.shape, meant)
        return layout is not None and _equal(meant, layout.read(array), self.most)

    def _results_of(self, value: Value) -> list[Value]:
        """The results of the nodes that read a tensor; of copies that nobody holds, theirs."""
        results: list[Value] = []
        waiting = [value]
        while waiting:
            for node in self.parts.users_of(waiting.pop()):
                made = [v for v in node.outputs if v.name]
                held = node.onnx_op != "Identity" or any(v.name in self.same_names for v in made)
                (results if held else waiting).extend(made)
        return results

    def _after(self, value: Value) -> Iterator[Value]:
        """Yield the tensors that are made from this one, at most some nodes later."""
        now = [value]
        for _ in range(_MOST_FUSED):
            now = [v for read in now for v in self._results_of(read)]
            yield from now

    def _feed(
        self, value: Value, match: _Match | None, expected: Array | None, *, cut: bool
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

    def _drift(self, value: Value, match: _Match) -> float | None:
        meant = self.reference(value.name)
        if meant is None or match.array is None:
            return None
        layout = _best(match.array, meant.shape, meant)
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


def _equal(expected: Array, actual: Array, most: float) -> bool:
    return expected.shape == actual.shape and not (relative(expected, actual) > most).any()


def _extremes(array: Array) -> tuple[float, float]:
    """The least and the largest of the finite numbers; of complex ones, of their sizes."""
    numbers = np.abs(array) if array.dtype.kind == "c" else array
    finite = numbers[np.isfinite(numbers)] if numbers.dtype.kind == "f" else numbers
    return (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)


def _best(array: Array, shape: tuple[int, ...], expected: Array | None) -> Layout | None:
    """The likeliest layout, or one in which an array is far nearer to the expected one."""
    best, least = None, np.inf
    for layout in layouts(array.shape, shape):
        if expected is None:
            return layout
        error = float(np.minimum(relative(expected, layout.read(array)), 1e30).mean() or 0.0)
        if best is None or error < least * _NEARER:
            best, least = layout, error
        if least <= 1e-6 or not layout.words:
            break
    return best
