"""Writes the graph of a function while it is traced: plans, dtypes, equal nodes once."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..compute import native, reference
from ..compute.semantics import WEAK
from ..errors import BroadcastError, TraceError
from ..ops import OPS, Op
from ..planner import plan
from .constants import MOST_INT64, MOST_UINT64, beyond, check_power, fits, is_huge, number_of
from .graph import Apply, Axes, Constant, Graph, Input, Node, Reduce, View, arguments
from .source import current_place
from .value import Value, name_of

#: What a Python number is until it meets an array.
_ALONE = {bool: "bool", int: "int64", float: "float64", complex: "complex128"}
_HALVES = frozenset({"float16", "bfloat16"})


@dataclass(frozen=True, slots=True)
class Operand:
    """What tracing has to know of an operand of the call.

    Attributes:
        shape: its shape.
        dtype: its dtype's name; of a Python number that of NumPy's for it alone.
        weak: whether it is a Python number whose dtype is that of what it meets.
        value: of a Python number that is to be a constant of this trace; None otherwise.
    """

    shape: tuple[int, ...]
    dtype: str
    weak: bool = False
    value: int | None = None


def operand_of(value: Any, k: int = 0) -> Operand:
    """What tracing has to know of an array, a list, or a number.

    >>> operand_of(np.zeros((2, 3), "float32")), operand_of(1.5)
    (Operand(shape=(2, 3), dtype='float32', weak=False, value=None), \
Operand(shape=(), dtype='float64', weak=True, value=None))
    """
    if type(value) in WEAK:
        return Operand((), _ALONE[type(value)], weak=type(value) is not bool)
    array = reference.as_operand(value, k)
    return Operand(array.shape, array.dtype.name)


def is_numeric(dtype: np.dtype[Any]) -> bool:
    """Whether a dtype is one of numbers, those that packages add and Python's objects among them.

    >>> is_numeric(np.dtype("float16")), is_numeric(np.dtype("U3"))
    (True, False)
    """
    added = dtype.kind == "V" and dtype.fields is None and not dtype.name.startswith("void")
    return dtype.kind in "biufcO" or added


@functools.lru_cache(1024)
def _promoted(name: str, kinds: tuple[str, ...], dtype: str | None) -> tuple[str, ...] | None:
    return native.promote(OPS[name], kinds, dtype)


class Tracer:
    """Writes down nodes, equal ones once, and holds the arrays that were captured."""

    def __init__(self, operands: Sequence[Operand], dtype: Any = None) -> None:
        #: What numbers that come in are converted to, or None.
        self.dtype = None if dtype is None else np.dtype(dtype)
        self.nodes: list[Node] = []
        self.closed = False
        self._operands = operands
        self._captured: list[np.ndarray[Any, Any]] = []
        self._numbers: dict[Any, int] = {}

    # Values

    def operand(self, k: int) -> Value:
        """The value of an operand of the call."""
        given = self._operands[k]
        if given.value is not None:
            return self.lift(given.value)
        value = self.add(Input(k, given.shape, given.dtype, given.weak), weak=given.weak)
        value = self.entering(value)
        value.view = True
        return value

    def entering(self, value: Value) -> Value:
        """What comes in, in the dtype that is computed in; truth values stay what they are."""
        if self.dtype is None or value.weak or value.dtype == np.bool_:
            return value
        if not np.can_cast(value.dtype, self.dtype, "same_kind"):
            raise TypeError(f"{value.dtype} operands do not become dtype={self.dtype}")
        return self.cast(value, self.dtype)

    def lift(self, given: Any) -> Value:
        """The value of what a traced function meets: a value, a number, or an array."""
        if isinstance(given, Value):
            self._check_own(given)
            return given
        if type(given) in WEAK and type(given) is not complex:
            large = type(given) is int and MOST_INT64 < given <= MOST_UINT64
            return self._constant(given, "uint64" if large else _ALONE[type(given)], weak=True)
        if isinstance(given, np.bool_ | np.integer | np.floating) and given.dtype.itemsize <= 8:
            return self.entering(self._constant(given.item(), given.dtype.name, weak=False))
        return self.entering(self._capture(given))

    def _constant(self, number: Any, dtype: str, *, weak: bool) -> Value:
        return self.add(Constant(number, dtype, weak), weak=weak and type(number) is not bool)

    def _capture(self, given: Any) -> Value:
        """An array from elsewhere, by identity: its values are read in each call."""
        weak = type(given) is complex
        array = np.asarray(reference.as_operand(given))
        if not is_numeric(array.dtype):
            raise TypeError(f"an operand is of {array.dtype}, not of numbers\n  {current_place()}")
        place = next((k for k, one in enumerate(self._captured) if one is array), None)
        if place is None or weak:
            place = len(self._captured)
            self._captured.append(array)
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
        """Refuses values of a call that has been traced."""
        if self.closed:
            raise TraceError(
                "the call that this value belongs to is over",
                str(current_place()),
                "return values from the fused function; do not keep them elsewhere",
            )

    def add(self, node: Node, *, weak: bool = False, view: bool = False) -> Value:
        """The value of a node, whose arguments are nodes of this tracer; equal ones are one.

        Args:
            node: what to write down.
            weak: whether it is a Python number.
            view: whether the array would be a view, which is not written to.
        """
        return Value(self, self._number(node), node.shape, np.dtype(node.dtype), weak, view)

    def _number(self, node: Node) -> int:
        self.check_open()
        # 0.0 and -0.0 are equal, and not one constant; True, 1 and 1.0 differ by their dtypes.
        key = (node, repr(node.value)) if isinstance(node, Constant) else node
        found = self._numbers.setdefault(key, len(self.nodes))
        if found == len(self.nodes):
            self.nodes.append(node)
        return found

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
            weak: whether a result of Python numbers alone is one still, as Python's operators have
                it and NumPy's functions do not.
        """
        op = OPS[name]
        values = [self.lift(arg) for arg in args]
        shapes = [value.shape for value in values]
        try:
            made = plan(*shapes, rule=rule, axis=axis, broadcast=broadcast)
        except BroadcastError as error:
            error.add_note(str(current_place()))
            raise
        if name == "cast":
            return self.cast(values[0], np.dtype(dtype))
        asked = None if dtype is None else np.dtype(dtype).name
        values, dtypes = self._typed(op, values, asked)
        # No unsigned integer is negative: a slope for them is read by nobody.
        if name == "where" or (name == "prelu" and dtypes[-1].startswith("uint")):
            values = [self._wrapped(one, to) for one, to in zip(values, dtypes, strict=False)]
        known = beyond(name, values, dtypes)
        if known is not None:
            return self._known(values, made.axes_mapping, made.shape, known)
        check_power(op, values, dtypes)
        values = [
            self._constant(float(number_of(value)), "float64", weak=True)
            if is_huge(value) and np.dtype(to).kind == "f"
            else value
            for value, to in zip(values, dtypes, strict=False)
        ]
        folded = self._folded(op, values, dtypes) if made.shape == () else None
        weak = weak and all(value.weak for value in values) and dtypes[-1] != "bool"
        if folded is not None:
            return self._constant(folded.item(), dtypes[-1], weak=weak)
        return self.add(self._apply(name, values, made.axes_mapping, dtypes, made.shape), weak=weak)

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
        """The dtypes that an op computes in, and its operands, cast where NumPy casts first."""
        kinds = tuple(value.kind for value in values)
        try:
            found = _promoted(op.name, kinds, dtype)
            if found is None:
                assert dtype is not None
                kept = op.name == "where"
                values = [
                    *values[:kept],
                    *(self._narrowed(value, dtype) for value in values[kept:]),
                ]
                return self._typed(op, values, None)
        except TypeError as error:
            names = " and ".join(kinds)
            raise TypeError(f"{op.name} of {names}: {error}\n  {current_place()}") from None
        values = [
            self.cast(value, np.dtype(to)) if native.rounds_first(value.kind, to) else value
            for value, to in zip(values, found, strict=False)
        ]
        return values, found

    def _wrapped(self, value: Value, dtype: str) -> Value:
        """A Python integer beyond a dtype as `numpy.where` takes it: converted, as an array is."""
        number, target = number_of(value), np.dtype(dtype)
        if type(number) is not int or target.kind not in "iu" or fits(number, target):
            return value
        return self._constant(np.asarray(number).astype(target).item(), dtype, weak=False)

    def _narrowed(self, value: Value, dtype: str) -> Value:
        given = np.result_type(np.dtype(dtype), value.scalar_type) if value.weak else value.dtype
        if not np.can_cast(given, dtype, "same_kind"):
            raise TypeError(f"cannot cast {given} to dtype={dtype} (casting is 'same_kind')")
        return self.cast(value, np.dtype(dtype))

    def _folded(self, op: Op, values: Sequence[Value], dtypes: tuple[str, ...]) -> Any:
        """The result where all operands are numbers, or None."""
        nodes = [self.nodes[value.node] for value in values]
        numbers = [node for node in nodes if isinstance(node, Constant)]
        if len(numbers) < len(nodes) or np.dtype(dtypes[-1]).kind not in "biuf":
            return None
        given = [one.value if one.weak else np.dtype(one.dtype).type(one.value) for one in numbers]
        made = plan(*[() for _ in given])
        asked = dtypes[-1] if op.name == "cast" else None
        return np.asarray(reference.compute(op, made, given, dtype=asked))

    def _known(
        self, values: Sequence[Value], axes: tuple[Axes, ...], shape: tuple[int, ...], truth: bool
    ) -> Value:
        """A comparison whose answer is the same for every number: an integer is equal to itself."""
        k = 0 if isinstance(self.nodes[values[1].node], Constant) else 1
        name = "equal" if truth else "not_equal"
        dtypes = (values[k].dtype.name,) * 2 + ("bool",)
        return self.add(self._apply(name, [values[k]] * 2, (axes[k],) * 2, dtypes, shape))

    def cast(self, value: Value, dtype: np.dtype[Any]) -> Value:
        """A value in another dtype, as by `zerostride.cast`."""
        node = self.nodes[value.node]
        rounded = isinstance(node, Input) or (isinstance(node, Apply) and node.op == "cast")
        if not value.weak and value.dtype == dtype and (rounded or dtype.name not in _HALVES):
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
        """A value stretched to a larger shape; `axes` says where its axes land."""
        if shape == value.shape:
            return value.again(view=True)
        # "cast" to its own dtype would round 16-bit floats.
        name = "positive" if name_of(value.dtype) in _HALVES else "cast"
        node = self._apply(name, [value], (axes,), (name_of(value.dtype),) * 2, shape)
        return self.add(node, view=True)

    def divided(self, value: Value, count: float, dtype: np.dtype[Any]) -> Value:
        """A sum by a count, in the sum's own dtype, as a value of `dtype`.

        For 16-bit floats that is one step without rounding, and with a count that they do not hold.
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
        """A reduction over axes that are in range and rise."""
        shape = tuple(
            1 if axis in over else size
            for axis, size in enumerate(value.shape)
            if keepdims or axis not in over
        )
        node = Reduce(name, value.node, over, keepdims, compute, shape, dtype)
        return self.add(node)

    def view(self, value: Value, axes: Axes) -> Value:
        """A value with its axes in another order, and axes of extent 1 more or fewer."""
        source, node = value.node, self.nodes[value.node]
        if isinstance(node, View):  # of what that one views
            axes = tuple(None if axis is None else node.axes[axis] for axis in axes)
            source = node.arg
        inner = self.nodes[source]
        shape = tuple(1 if axis is None else inner.shape[axis] for axis in axes)
        # An axis of extent 1 is as good as a new one: so equal views are equal nodes.
        axes = tuple(None if size == 1 else axis for axis, size in zip(axes, shape, strict=True))
        if shape == inner.shape and _rises(axes):
            return Value(self, source, shape, value.dtype, value.weak, True)
        return self.add(View(source, axes, shape, inner.dtype), view=True)

    # The graph

    def finish(self, outputs: Sequence[int]) -> tuple[Graph, tuple[np.ndarray[Any, Any], ...]]:
        """The graph of what the outputs need, and the captured arrays."""
        needed: set[int] = set()
        ahead = list(outputs)
        while ahead:
            k = ahead.pop()
            if k not in needed:
                needed.add(k)
                ahead.extend(arguments(self.nodes[k]))
        number = {k: n for n, k in enumerate(sorted(needed))}
        read = [node for k, node in enumerate(self.nodes) if k in needed]
        inputs = {node.index for node in read if isinstance(node, Input)}
        first = len(self._operands)
        kept = [k for k in range(len(self._captured)) if first + k in inputs]
        places = {first + k: first + n for n, k in enumerate(kept)}
        nodes = tuple(_renumbered(node, number, places) for node in read)
        graph = Graph(nodes, tuple(number[k] for k in outputs), first + len(kept))
        return graph, tuple(self._captured[k] for k in kept)


def _rises(axes: Axes) -> bool:
    named = [axis for axis in axes if axis is not None]
    return named == sorted(named)


def _renumbered(node: Node, number: Mapping[int, int], places: Mapping[int, int]) -> Node:
    if isinstance(node, Input):
        return Input(places.get(node.index, node.index), node.shape, node.dtype, node.weak)
    if isinstance(node, Apply):
        args = tuple(number[arg] for arg in node.args)
        return Apply(node.op, args, node.axes, node.compute, node.shape, node.dtype)
    if isinstance(node, View):
        return View(number[node.arg], node.axes, node.shape, node.dtype)
    if isinstance(node, Reduce):
        arg = number[node.arg]
        return Reduce(node.op, arg, node.over, node.keepdims, node.compute, node.shape, node.dtype)
    return node


def _check_castable(given: np.dtype[Any], target: np.dtype[Any]) -> None:
    reference.compute("cast", plan((0,)), [np.empty(0, given)], dtype=target)
