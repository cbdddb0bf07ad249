"""Writes the graph of a function while it is traced: plans, dtypes, equal nodes once."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...compute import native, reference
from ...compute.semantics import WEAK, own_kinds
from ...compute.special import HALVES, is_added_float, keeps_kind
from ...engines.planning import plan
from ...errors import TraceError
from ...ops import OPS, Op
from .captured import Captured, capture
from .constants import (
    MOST_INT64,
    MOST_UINT64,
    WHERE_WRAPS,
    beyond,
    check_power,
    fits,
    is_huge,
    is_pythons,
    number_of,
)
from .graph import Apply, Axes, Constant, Graph, Input, Node, Reduce, View, needed_by, rewired
from .integers import PYTHON
from .operands import ALONE, Operand, is_numeric, operand_of
from .source import current_place, is_of_scope, is_written
from .value import Value, name_of


@functools.lru_cache(1024)
def _promoted(name: str, kinds: tuple[str, ...], dtype: str | None) -> tuple[str, ...] | None:
    return native.promote(OPS[name], kinds, dtype)


class Tracer:
    """Records nodes, equal ones once, and holds the captured arrays."""

    def __init__(
        self, operands: Sequence[Operand], dtype: Any = None, *, own: bool = False
    ) -> None:
        #: The dtype to which incoming numbers are converted, or None.
        self.dtype = None if dtype is None else np.dtype(dtype)
        #: Whether Python floats take the dtype of any floats, as in some libraries (`own_kinds`).
        self.own = own
        self.nodes: list[Node] = []
        self.closed = False
        self._operands = operands
        self._captured: list[Captured] = []
        self._places: dict[int, int] = {}  # in `_captured`, which keeps the objects alive
        self._numbers: dict[Any, int] = {}
        #: Numbers and arrays that Python computed in the trace, each with its line.
        self.computed: list[tuple[Any, str]] = []
        self._weak: set[int] = set()  # results of Python's operators on Python's numbers

    # Values

    def operand(self, k: int) -> Value:
        """The value of an operand of the call."""
        operand = self._operands[k]
        if operand.value is not None:
            return self.lift(operand.value)
        value = self.add(Input(k, operand.shape, operand.dtype, operand.weak), weak=operand.weak)
        value = self.entering(value)
        value.is_view = True
        return value

    def entering(self, value: Value) -> Value:
        """An incoming value in the requested dtype; truth values are not converted."""
        if self.dtype is None or value.weak or value.dtype == np.bool_:
            return value
        if not keeps_kind(value.dtype, self.dtype):
            raise TypeError(f"{value.dtype} operands do not become dtype={self.dtype}")
        return self.cast(value, self.dtype)

    def counted(self, value: Value) -> Value:
        """Truth values as numbers of the requested dtype, if there is one."""
        if self.dtype is None or value.dtype != np.bool_:
            return value
        return self.cast(value, self.dtype)

    def lift(self, value: Any) -> Value:
        """The value of an object in a traced function: a value, a number, or an array."""
        if isinstance(value, Value):
            self._check_own(value)
            return value
        if type(value) in WEAK and type(value) is not complex:
            self._note(value)
            return self._pythons(value)
        if isinstance(value, np.bool_ | np.integer | np.floating) and _is_constant(value.dtype):
            self._note(value)
            return self.entering(self._constant(value.item(), value.dtype.name, weak=False))
        return self.entering(self._capture(value))

    def result(self, returned: Any) -> Value:
        """The value of an object that a traced function returns."""
        value = self.lift(returned)
        number = number_of(value)
        if type(number) is int and not fits(number, value.dtype):
            raise OverflowError(f"Python integer {number} is returned, which no dtype holds")
        return value

    def _pythons(self, number: Any) -> Value:
        """A Python number as a constant."""
        large = type(number) is int and MOST_INT64 < number <= MOST_UINT64
        return self._constant(number, "uint64" if large else ALONE[type(number)], weak=True)

    def _note(self, number: Any) -> None:
        if not is_written(number):
            self.computed.append((number, str(current_place())))

    def _constant(self, number: Any, dtype: str, *, weak: bool) -> Value:
        return self.add(Constant(number, dtype, weak), weak=weak and type(number) is not bool)

    def _capture(self, source: Any) -> Value:
        """Captures an array, by identity: its values are read in each call."""
        weak = type(source) is complex
        captured = capture(source)
        array = captured.read()
        if type(array) in WEAK and not weak:  # a library's weak number
            return self.lift(array)
        if not is_numeric(array.dtype):
            raise TypeError(f"an operand is of {array.dtype}, not of numbers")
        place = None if weak else self._places.get(id(source))
        if place is None:
            place = self._places[id(source)] = len(self._captured)
            self._captured.append(captured)
            if not is_of_scope(captured.name):
                self.computed.append((array, captured.place))
        index = len(self._operands) + place
        return self.add(Input(index, array.shape, array.dtype.name, weak), weak=weak)

    def _check_own(self, value: Value) -> None:
        value.tracer.check_open()
        if value.tracer is not self:
            raise TraceError(
                "a value of one fused function is used in another, which does not take it",
                str(current_place()),
                "make it an operand of the inner function",
            )

    def check_open(self) -> None:
        """Refuses values of a trace that has ended."""
        if self.closed:
            raise TraceError(
                "the call that this value belongs to is over",
                str(current_place()),
                "return values from the fused function; do not keep them elsewhere",
            )

    def add(self, node: Node, *, weak: bool = False, view: bool = False) -> Value:
        """The value of a node whose arguments are nodes of this tracer; equal nodes are shared.

        Args:
            node: the node to record.
            weak: whether it is a Python number.
            view: whether the array would be a view, which is not written to.
        """
        return Value(self, self._number(node), node.shape, np.dtype(node.dtype), weak, view)

    def _number(self, node: Node) -> int:
        self.check_open()
        # 0.0 and -0.0 are equal but different constants; True, 1 and 1.0 differ by their dtypes.
        key = (node, repr(node.value)) if isinstance(node, Constant) else node
        number = self._numbers.setdefault(key, len(self.nodes))
        if number == len(self.nodes):
            self.nodes.append(node)
        return number

    # Nodes

    def apply(
        self,
        name: str,
        args: Sequence[Any],
        *,
        rule: str | None = None,
        axis: int | None = None,
        broadcast: int | None = None,
        dtype: Any = None,
        weak: bool = False,
    ) -> Value:
        """An op of the table on values, numbers and arrays.

        Args:
            name: the op's name.
            args: its operands.
            rule: as for zerostride's functions, with `axis` and `broadcast`.
            dtype: what to compute in, as for NumPy's ufuncs; for "cast" what to convert to.
            weak: whether it is one of Python's operators, whose results for Python numbers are
                Python numbers; those of NumPy's functions are not.
        """
        op = OPS[name]
        values = [self.lift(arg) for arg in args]
        if weak and name in PYTHON and all(map(is_pythons, values)):
            return self._of_pythons(name, values)
        if self.dtype is not None and dtype is None and "truths" not in op.facts:
            values = [self.counted(value) for value in values]
        truths = values if "logical" in op.facts else values[: op.conditions]
        values[: len(truths)] = [
            self.apply("not_equal", (truth, 0)) if truth.dtype.kind == "c" else truth
            for truth in truths
        ]
        shapes = [value.shape for value in values]
        op_plan = plan(*shapes, rule=rule, axis=axis, broadcast=broadcast)
        if name == "cast":
            return self.cast(values[0], np.dtype(dtype))
        asked = None if dtype is None else np.dtype(dtype).name
        values, dtypes = self._typed(op, values, asked)
        if name == "where" and WHERE_WRAPS:
            values = [self._wrapped(value, to) for value, to in zip(values, dtypes, strict=False)]
        answer = beyond(name, values, dtypes)
        if answer is not None:
            return self._decided(values, op_plan.axes_mapping, op_plan.shape, answer)
        check_power(op, values, dtypes)
        values = [
            self._constant(float(number_of(value)), "float64", weak=True)
            if is_huge(value) and np.dtype(to).kind == "f"
            else value
            for value, to in zip(values, dtypes, strict=False)
        ]
        folded = self._folded(op, values, dtypes) if op_plan.shape == () else None
        if folded is not None:
            return self._constant(folded.item(), dtypes[-1], weak=False)
        return self.add(self._apply(name, values, op_plan.axes_mapping, dtypes, op_plan.shape))

    def _of_pythons(self, name: str, values: Sequence[Value]) -> Value:
        """The result of one of Python's operators on Python's numbers; constant if these are."""
        numbers = [number_of(value) for value in values]
        if None not in numbers:
            return self._pythons(PYTHON[name](*numbers))
        # Python's operators treat truth values as integers.
        values = [
            value if number is None else self._pythons(+number)
            for value, number in zip(values, numbers, strict=True)
        ]
        values, dtypes = self._typed(OPS[name], values, None)
        node = self._apply(name, values, ((),) * len(values), dtypes, ())
        weak = dtypes[-1] != "bool"
        value = self.add(node, weak=weak)
        if weak:
            self._weak.add(value.node)
        return value

    def _apply(
        self,
        name: str,
        values: Sequence[Value],
        axes: tuple[Axes, ...],
        dtypes: tuple[str, ...],
        shape: tuple[int, ...],
    ) -> Apply:
        nodes = tuple(value.node for value in values)
        return Apply(name, nodes, axes, dtypes, shape, dtypes[-1])

    def _typed(
        self, op: Op, values: list[Value], dtype: str | None
    ) -> tuple[list[Value], tuple[str, ...]]:
        """The operands, cast where NumPy casts first, and the dtypes in which the op computes."""
        kinds = tuple(value.kind for value in values)
        try:
            met = own_kinds(op.name, kinds) if self.own else kinds
            resolved = _promoted(op.name, met, dtype)
            if resolved is None:
                assert dtype is not None
                kept = op.conditions
                values = [
                    *values[:kept],
                    *(self._narrowed(value, dtype) for value in values[kept:]),
                ]
                return self._typed(op, values, None)
        except TypeError as error:
            names = " and ".join(kinds)
            raise TypeError(f"{op.name} of {names}: {error}") from None
        values = [
            self.cast(value, np.dtype(to)) if native.rounds_first(value.kind, to) else value
            for value, to in zip(values, resolved, strict=False)
        ]
        return values, resolved

    def _wrapped(self, value: Value, dtype: str) -> Value:
        """A Python integer beyond a dtype, wrapped around as by `numpy.where` before 2.5."""
        number, target = number_of(value), np.dtype(dtype)
        if type(number) is not int or target.kind not in "iu" or fits(number, target):
            return value
        return self._constant(np.asarray(number).astype(target).item(), dtype, weak=False)

    def _narrowed(self, value: Value, dtype: str) -> Value:
        source = np.result_type(np.dtype(dtype), value.scalar_type) if value.weak else value.dtype
        if not keeps_kind(source, dtype):
            raise TypeError(f"cannot cast {source} to dtype={dtype} (casting is 'same_kind')")
        return self.cast(value, np.dtype(dtype))

    def _folded(self, op: Op, values: Sequence[Value], dtypes: tuple[str, ...]) -> Any:
        """The result if all operands are constants, else None."""
        nodes = [self.nodes[value.node] for value in values]
        numbers = [node for node in nodes if isinstance(node, Constant)]
        if len(numbers) < len(nodes) or np.dtype(dtypes[-1]).kind not in "biuf":
            return None
        args = [_number(number, to) for number, to in zip(numbers, dtypes, strict=False)]
        op_plan = plan(*[() for _ in args])
        asked = dtypes[-1] if op.name == "cast" else None
        return np.asarray(reference.compute(op, op_plan, args, dtype=asked))

    def _decided(
        self, values: Sequence[Value], axes: tuple[Axes, ...], shape: tuple[int, ...], truth: bool
    ) -> Value:
        """A comparison with the same result for every number, written as x == x or x != x."""
        k = 0 if isinstance(self.nodes[values[1].node], Constant) else 1
        name = "equal" if truth else "not_equal"
        dtypes = (values[k].dtype.name,) * 2 + ("bool",)
        return self.add(self._apply(name, [values[k]] * 2, (axes[k],) * 2, dtypes, shape))

    def cast(self, value: Value, dtype: np.dtype[Any]) -> Value:
        """A value in another dtype, as by `zerostride.cast`."""
        node = self.nodes[value.node]
        rounded = isinstance(node, Input) or (isinstance(node, Apply) and node.op == "cast")
        if not value.weak and value.dtype == dtype and (rounded or dtype.name not in HALVES):
            return value.again()
        _check_castable(value.dtype, dtype)
        dtypes = (name_of(value.dtype), dtype.name)
        if isinstance(node, Constant):
            folded = self._folded(OPS["cast"], [value], dtypes)
            if folded is not None:
                return self._constant(folded.item(), dtype.name, weak=False)
        axes = (tuple(range(len(value.shape))),)
        return self.add(self._apply("cast", [value], axes, dtypes, value.shape))

    def laid(self, value: Value, shape: tuple[int, ...], axes: Axes) -> Value:
        """A value broadcast to a larger shape; `axes` gives the places of its axes."""
        if shape == value.shape:
            return value.again(view=True)
        # "cast" to its own dtype would round 16-bit floats.
        name = "positive" if name_of(value.dtype) in HALVES else "cast"
        node = self._apply(name, [value], (axes,), (name_of(value.dtype),) * 2, shape)
        return self.add(node, view=True)

    def divided(self, value: Value, count: float, dtype: np.dtype[Any]) -> Value:
        """A sum divided by a count, in the sum's own dtype, as a value of `dtype`.

        For 16-bit floats this is one step, without rounding in between, and the count may be beyond
        their range.
        """
        over = self.lift(count)
        axes = (tuple(range(len(value.shape))), ())
        own = name_of(value.dtype)
        node = Apply("divide", (value.node, over.node), axes, (own,) * 3, value.shape, dtype.name)
        return self.add(node)

    def reduce(
        self,
        name: str,
        value: Value,
        over: tuple[int, ...],
        keepdims: bool,
        compute: str,
        dtype: str,
    ) -> Value:
        """A reduction over axes that are in range and rise. The reductions with and without
        `keepdims` share one fold."""
        long = tuple(1 if k in over else size for k, size in enumerate(value.shape))
        kept = tuple(k for k in range(value.ndim) if k not in over)
        short = tuple(value.shape[k] for k in kept)
        node = Reduce(name, value.node, over, keepdims, compute, long if keepdims else short, dtype)
        twin = replace(node, keepdims=not keepdims, shape=short if keepdims else long)
        other = self._numbers.get(twin)
        if other is None or node in self._numbers:
            return self.add(node)
        places = {axis: k for k, axis in enumerate(kept)}
        axes = tuple(places.get(k) for k in range(value.ndim)) if keepdims else kept
        return self.view(Value(self, other, twin.shape, np.dtype(dtype)), axes).again()

    def view(self, value: Value, axes: Axes) -> Value:
        """A value with its axes in another order, and axes of extent 1 more or fewer."""
        source, node = value.node, self.nodes[value.node]
        if isinstance(node, View):  # view its argument instead
            axes = tuple(None if axis is None else node.axes[axis] for axis in axes)
            source = node.arg
        inner = self.nodes[source]
        shape = tuple(1 if axis is None else inner.shape[axis] for axis in axes)
        # Axes of extent 1 are written as new ones, so that equal views are equal nodes.
        axes = tuple(None if size == 1 else axis for axis, size in zip(axes, shape, strict=True))
        if shape == inner.shape and _rises(axes):
            return Value(self, source, shape, value.dtype, value.weak, True)
        return self.add(View(source, axes, shape, inner.dtype), view=True)

    # The graph

    def finish(self, outputs: Sequence[int]) -> tuple[Graph, tuple[Captured, ...], frozenset[int]]:
        """The graph of the nodes that outputs need, the captured arrays, and the nodes that
        Python's operators compute from Python's numbers."""
        needed = needed_by(self.nodes, outputs)
        number = {k: n for n, k in enumerate(sorted(needed))}
        read = [node for k, node in enumerate(self.nodes) if k in needed]
        inputs = {node.index for node in read if isinstance(node, Input)}
        first = len(self._operands)
        kept = [k for k in range(len(self._captured)) if first + k in inputs]
        places = {first + k: first + n for n, k in enumerate(kept)}
        nodes = tuple(
            replace(node, index=places.get(node.index, node.index))
            if isinstance(node, Input)
            else rewired(node, number)
            for node in read
        )
        graph = Graph(nodes, tuple(number[k] for k in outputs), first + len(kept))
        weak = frozenset(number[k] for k in needed & self._weak)
        return graph, tuple(self._captured[k].settled() for k in kept), weak


def _number(node: Constant, dtype: str) -> Any:
    """A constant for an op that computes in a dtype; weak where NumPy can convert it."""
    if node.weak and not is_added_float(np.dtype(dtype)):
        return node.value
    return np.dtype(dtype if node.weak else node.dtype).type(node.value)


def _is_constant(dtype: np.dtype[Any]) -> bool:
    """Whether scalars of a dtype are constants of a graph; a timedelta is an integer to NumPy."""
    return dtype.kind in "biuf" and dtype.itemsize <= 8


def _rises(axes: Axes) -> bool:
    named = [axis for axis in axes if axis is not None]
    return named == sorted(named)


def _check_castable(source: np.dtype[Any], target: np.dtype[Any]) -> None:
    reference.compute("cast", plan((0,)), [np.empty(0, source)], dtype=target)


__all__ = ["Operand", "Tracer", "is_numeric", "operand_of"]
