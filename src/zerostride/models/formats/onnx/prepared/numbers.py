"""Truth values and whole numbers as floats: 0 and 1, and numbers without a fraction.

ncnn computes with floats alone, and pnnx writes comparisons and whole numbers as layers that ncnn
has not. Whole numbers below 2**23 are exact as floats of 32 bits; the proof on the engine shows
whether a model has others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from .layouts import part
from .ranges import wrapping
from .rewriting import Rewriting, attributes_of, read_inside

if TYPE_CHECKING:
    import onnx

#: Element types of ONNX: float32, and what is written as float32.
_FLOAT, _BOOL = 1, 9
_WHOLE = frozenset({2, 3, 4, 5, 6, 7, _BOOL, 12, 13})
#: A factor that makes 1 at least of any positive float, in two steps with a bound after each.
_HUGE = 1e30
#: No float is beyond.
_MOST = float(np.finfo(np.float32).max)
#: Operands that say which rows are taken, by op: they stay whole.
_INDICES: Mapping[str, int] = MappingProxyType(
    {"Gather": 1, "GatherElements": 1, "GatherND": 1, "ScatterElements": 1, "ScatterND": 1}
)
#: Ops that do the same to floats; the number of operands that are numbers (others say sizes).
_SAME: Mapping[str, int] = MappingProxyType(
    {
        **dict.fromkeys(("Abs", "Neg", "Identity", "Transpose", "Flatten", "Reshape"), 1),
        **dict.fromkeys(("Slice", "Squeeze", "Unsqueeze", "Expand", "Split", "Tile"), 1),
        **dict.fromkeys(("ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "Gather"), 1),
        **dict.fromkeys(("Add", "Sub", "Mul", "MatMul"), 2),
        **dict.fromkeys(("Clip", "Max", "Min", "Concat", "Sum"), 99),
    }
)


class _UnableError(Exception):
    """A node computes with whole numbers in a way that no floats are written for."""


class _Floats:
    """A graph whose whole numbers become floats.

    Attributes:
        graph: what is rewritten.
        whole: tensors that held whole numbers or truth values, and are floats now.
        stay: tensors that say which rows are taken.
        wrapping: tensors of whole numbers that may wrap around.
    """

    def __init__(self, graph: Rewriting) -> None:
        self.graph = graph
        self.whole: set[str] = set()
        self.stay = _rows_taken(graph)
        self.wrapping = wrapping(graph)

    def kind(self, name: str) -> int:
        """The element type of a tensor."""
        return self.graph.types.get(name, _FLOAT)

    def number(self, name: str) -> str:
        """A tensor as floats."""
        array = self.graph.array(name)
        if array is not None and self.kind(name) in _WHOLE:
            name = self.graph.constant(array.astype(np.float32))
            self.whole.add(name)
        if self.kind(name) in _WHOLE:
            raise _UnableError
        return name

    def is_whole(self, name: str) -> bool:
        array = self.graph.array(name)
        return name in self.whole or (array is not None and array.dtype.kind in "biu")

    def constant(self, number: float) -> str:
        return self.graph.constant(np.float32(number))

    def bounded(self, name: str, low: float = 0, high: float = 1, to: str | None = None) -> str:
        return self.graph.add("Clip", name, self.constant(low), self.constant(high), to=to)

    def positive(self, name: str, *, whole: bool, to: str | None = None) -> str:
        """1 for numbers above 0, else 0."""
        if not whole:
            scaled = self.graph.add("Mul", name, self.constant(_HUGE))
            name = self.graph.add("Mul", self.bounded(scaled, -1), self.constant(_HUGE))
        return self.bounded(name, to=to)

    def within(self, name: str, test: str) -> str:
        """Numbers where the test is 1, else 0; an engine's maximum and minimum drop a NaN.

        A vector's maximum is its second operand where one is NaN, and a number's is its first.
        """
        high = test
        for _ in range(2):
            high = self.graph.add("Mul", high, self.constant(_HUGE))  # 0 or infinity
        above = self.graph.add("Max", name, self.graph.add("Neg", high))
        return self.graph.add("Min", high, above)

    def opposite(self, name: str, to: str | None = None) -> str:
        """1 for 0, and 0 for 1."""
        return self.graph.add("Sub", self.constant(1), name, to=to)

    def without_fraction(self, name: str, divisor: float, to: str) -> None:
        """The quotient toward 0. A half more keeps its rounding from another whole number."""
        ends = []
        for sign in ("", "Neg"):
            side = self.graph.add("Relu", self.graph.add(sign, name) if sign else name)
            if divisor != 1:
                more = self.graph.add("Add", side, self.constant(0.5))
                side = self.graph.add("Mul", more, self.constant(1 / divisor))
            ends.append(self.graph.add("Floor", side))
        self.graph.add("Sub", *ends, to=to)

    def rewrite(self, node: onnx.NodeProto) -> bool:
        """Writes one node for floats, if it reads or makes whole numbers."""
        constant = {name for name in node.input if self.graph.array(name) is not None}
        read = [name for name in node.input if name and name not in constant]
        makes = [name for name in node.output if name and self.kind(name) in _WHOLE]
        tests = [*read, *(node.input[:1] if node.op_type == "Where" else ())]
        if not makes and not any(name in self.whole or self.kind(name) in _WHOLE for name in tests):
            return False
        if self.stay.intersection(node.output):
            return False
        index = _INDICES.get(node.op_type)
        if index is not None and node.input[index] in self.stay and not makes:
            return False
        if self.wrapping.intersection(node.output):
            raise _UnableError
        rule = _RULES.get(node.op_type)
        if rule is not None:
            rule(self, node)
        elif node.op_type in _SAME and not [*read_inside(node)]:
            count = _SAME[node.op_type]
            numbers = [self.number(name) if name else "" for name in node.input[:count]]
            self.graph.repeat(node, [*numbers, *node.input[count:]])
        else:
            raise _UnableError
        for name in makes:
            self.graph.types[name] = _FLOAT
            self.whole.add(name)
        return True


Rule: TypeAlias = Callable[[_Floats, "onnx.NodeProto"], None]


def _rows_taken(graph: Rewriting) -> set[str]:
    """Tensors that become the rows that are taken, by ops of whole numbers."""
    stay: set[str] = set()
    for node in reversed(graph.graph.node):
        index = _INDICES.get(node.op_type)
        if index is not None and graph.array(node.input[index]) is None:
            stay.add(node.input[index])
        if stay.intersection(node.output):
            stay |= {name for name in node.input if graph.types.get(name) in _WHOLE}
    return stay


# --- Ops -----------------------------------------------------------------------------------------


def _cast(floats: _Floats, node: onnx.NodeProto) -> None:
    name, goal, to = node.input[0], attributes_of(node)["to"], node.output[0]
    whole, number = floats.is_whole(name), floats.number(name)
    if goal == _BOOL:
        size = floats.graph.add("Abs", number)
        floats.positive(size, whole=whole, to=to)
    elif goal in _WHOLE and not whole:
        floats.without_fraction(number, 1, to)
    elif goal in {*_WHOLE, _FLOAT}:
        floats.graph.add("Identity", number, to=to)
    else:
        raise _UnableError


def _compared(floats: _Floats, node: onnx.NodeProto) -> None:
    one, other = node.input if node.op_type.startswith("Greater") else reversed(node.input)
    whole = floats.is_whole(one) and floats.is_whole(other)
    left, right, to = floats.number(one), floats.number(other), node.output[0]
    if node.op_type in ("Greater", "Less"):
        floats.positive(floats.graph.add("Sub", left, right), whole=whole, to=to)
    else:
        below = floats.positive(floats.graph.add("Sub", right, left), whole=whole)
        floats.opposite(below, to)


def _equal(floats: _Floats, node: onnx.NodeProto) -> None:
    whole = all(map(floats.is_whole, node.input))
    apart = floats.graph.add("Sub", *map(floats.number, node.input))
    size = floats.graph.add("Abs", apart)
    floats.opposite(floats.positive(size, whole=whole), node.output[0])


def _logical(floats: _Floats, node: onnx.NodeProto) -> None:
    names, to = [floats.number(name) for name in node.input], node.output[0]
    if node.op_type == "Not":
        floats.opposite(names[0], to)
    elif node.op_type == "Xor":
        floats.graph.add("Abs", floats.graph.add("Sub", *names), to=to)
    else:
        floats.graph.add({"And": "Mul", "Or": "Max"}[node.op_type], *names, to=to)


def _divided(floats: _Floats, node: onnx.NodeProto) -> None:
    """A quotient by a constant number."""
    divisor = floats.graph.array(node.input[1])
    if divisor is None or divisor.size != 1 or divisor.flat[0] < 1:
        raise _UnableError
    floats.without_fraction(floats.number(node.input[0]), float(divisor.flat[0]), node.output[0])


def _chosen(floats: _Floats, node: onnx.NodeProto) -> None:
    """The sum of two terms: each side where it is taken, and 0 elsewhere.

    A constant side of finite numbers is multiplied by 0. Another side is bounded to 0, since 0
    times infinity or NaN is NaN.
    """
    test, *sides = (floats.number(name) for name in node.input)
    add, to = floats.graph.add, node.output[0]
    factors = test, floats.opposite(test)
    terms = []
    for one, (name, factor) in enumerate(zip(sides, factors, strict=True)):
        array = floats.graph.array(name)
        if array is not None and array.size == 1 and abs(array.flat[0]) >= _MOST:
            # The other side is at most the largest number where it counts, else at most the bound.
            sign = math.copysign(1, array.flat[0])
            twice = add("Mul", factor, floats.constant(2 * sign))
            ends = add("Mul", add("Sub", twice, floats.constant(sign)), floats.constant(_MOST))
            add("Max" if sign > 0 else "Min", sides[1 - one], ends, to=to)
            return
        if array is not None and np.isfinite(array).all():
            if not _is_nothing(floats, name, sides, node):
                terms.append(add("Mul", factor, name))
        else:
            terms.append(floats.within(name, factor))
    add("Add" if len(terms) == 2 else "Identity", *terms, to=to)


def _is_nothing(floats: _Floats, name: str, sides: list[str], node: onnx.NodeProto) -> bool:
    """Whether a side is zeros, and the other one has the result's shape without it."""
    graph, other = floats.graph, sides[name == sides[0]]
    array, shape = graph.array(name), graph.shape(other)
    return (
        array is not None
        and not array.any()
        and graph.array(other) is None
        and shape is not None
        and shape == graph.shape(node.output[0])
    )


_RULES: Mapping[str, Rule] = MappingProxyType(
    {
        "Cast": _cast,
        "Div": _divided,
        "Equal": _equal,
        "Where": _chosen,
        **dict.fromkeys(("Greater", "GreaterOrEqual", "Less", "LessOrEqual"), _compared),
        **dict.fromkeys(("And", "Not", "Or", "Xor"), _logical),
    }
)


# --- The graph -----------------------------------------------------------------------------------


def as_floats(graph: Rewriting) -> list[str] | None:
    """Writes a graph's truth values and whole numbers as floats; which inputs are floats now.

    Inputs and outputs of the graph become floats, too; only what says which rows are taken stays.
    A constant result is made one that reads an input: pnnx drops it otherwise. None: there is
    nothing to write, or not all of it can be.
    """
    floats = _Floats(graph)
    inputs = []
    for value in graph.graph.input:
        if floats.kind(value.name) in _WHOLE and value.name not in floats.stay:
            value.type.tensor_type.elem_type = _FLOAT
            graph.types[value.name] = _FLOAT
            floats.whole.add(value.name)
            inputs.append(value.name)
    try:
        done = graph.each(floats.rewrite)
    except _UnableError:
        return None
    constant = [value for value in graph.graph.output if graph.array(value.name) is not None]
    if not all(_read_constant(floats, value) for value in constant):
        return None
    for value in graph.graph.output:
        if value.type.tensor_type.elem_type in _WHOLE:
            value.type.tensor_type.elem_type = _FLOAT
    return inputs if done or constant or inputs else None


def _read_constant(floats: _Floats, value: onnx.ValueInfoProto) -> bool:
    """Makes a constant result the sum of itself and an input's first number times 0."""
    graph = floats.graph
    array = graph.array(value.name)
    shapes = {one.name: graph.shape(one.name) for one in graph.graph.input}
    source = next((n for n, shape in shapes.items() if shape and math.prod(shape)), None)
    if array is None or source is None or floats.kind(source) != _FLOAT:
        return False
    graph.drop_constant(value.name)
    numbers = graph.constant(array.astype(np.float32).reshape(array.shape or (1,)))
    size = math.prod(shapes[source] or ())
    first = graph.reshaped(part(graph, source, (1, size), 1, 0, 1), (1,) * max(array.ndim, 1))
    none = graph.add("Mul", first, floats.constant(0))
    graph.add("Add", numbers, none, to=value.name)
    graph.end()
    return True


__all__ = ["as_floats"]
