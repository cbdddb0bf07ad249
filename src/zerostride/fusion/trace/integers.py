"""Python's integers among a call's operands: when int64 gives Python's results.

Python computes integers exactly, and the result meets an array as one number. A program uses int64.
For most numbers the results are equal. For others (a sum beyond 64 bits, a division by 0, a power
that is a fraction, a number that the array's dtype does not hold) the operands become constants of
the trace, where Python itself computes (`PYTHON`), or refuses.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .constants import COMPARISONS
from .graph import Apply, Constant, Graph, Input

#: Python's operators by the op that they record.
PYTHON: Mapping[str, Callable[..., Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "pow": operator.pow,
    "negative": operator.neg,
    "positive": operator.pos,
    "abs": operator.abs,
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
    "bitwise_invert": operator.invert,
    "bitwise_left_shift": operator.lshift,
    "bitwise_right_shift": operator.rshift,
    **COMPARISONS,
}
#: The largest integer up to which float64 holds all integers.
_EXACT = 2**53


@dataclass(frozen=True, slots=True)
class Integers:
    """The conditions on the Python integers of a call.

    Attributes:
        places: for a node that is such an operand, its place.
        constants: for a node that is a number of the function, that number.
        steps: (node, op, arguments) of nodes computed from nodes of this object alone.
        limits: (node, least, greatest) where a node meets integers of fewer bits.
    """

    places: Mapping[int, int]
    constants: Mapping[int, int]
    steps: tuple[tuple[int, str, tuple[int, ...]], ...]
    limits: tuple[tuple[int, int, int], ...]

    def __bool__(self) -> bool:
        return bool(self.steps or self.limits)

    @property
    def may_fit(self) -> bool:
        """Whether 64 bits are enough for some operands."""
        return all(map(_fits, self.constants.values()))

    def beyond(self, values: Sequence[Any]) -> tuple[int, ...]:
        """The operands for whose values int64 differs from Python, rising.

        >>> k = Input(0, (), "int64", weak=True)
        >>> square = Apply("multiply", (0, 0), ((), ()), ("int64",) * 3, (), "int64")
        >>> needs = integers_of(Graph((k, square), (1,), 1), frozenset({1}))
        >>> needs.beyond([3]), needs.beyond([2**40])
        ((), (0,))
        """
        numbers: dict[int, Any] = {node: values[k] for node, k in self.places.items()}
        numbers.update(self.constants)
        for node, op, args in self.steps:
            numbers[node] = _value(op, [numbers[arg] for arg in args])
        wrong = [node for node, *_ in self.steps if numbers[node] is None]
        wrong += [
            node
            for node, low, high in self.limits
            if numbers[node] is None or not low <= numbers[node] <= high
        ]
        return tuple(sorted(self._sources(wrong))) if wrong else ()

    def _sources(self, nodes: Sequence[int]) -> set[int]:
        """The operands that nodes depend on."""
        of = {node: args for node, _, args in self.steps}
        operands: set[int] = set()
        ahead = list(nodes)
        while ahead:
            node = ahead.pop()
            if node in self.places:
                operands.add(self.places[node])
            ahead.extend(of.get(node, ()))
        return operands


def _value(op: str, args: Sequence[Any]) -> Any:
    """Python's result for integers, or None where int64 differs."""
    if not all(map(_fits, args)):
        return None
    try:
        result = PYTHON[op](*args)
    except (ArithmeticError, ValueError):
        return None
    if op == "divide":
        return result if max(map(abs, args)) <= _EXACT else None
    return result if _fits(result) else None


def _fits(number: Any) -> bool:
    """Whether a number is an integer of 64 bits."""
    return type(number) is int and -(2**63) <= number < 2**63


def integers_of(graph: Graph, weak: frozenset[int]) -> Integers:
    """The conditions of a graph on Python integers.

    Args:
        graph: the graph.
        weak: its nodes that Python's operators compute from Python numbers alone.
    """
    places: dict[int, int] = {}
    constants: dict[int, int] = {}
    steps: list[tuple[int, str, tuple[int, ...]]] = []
    limits: set[tuple[int, int, int]] = set()
    whole: set[int] = set()
    for k, node in enumerate(graph.nodes):
        if isinstance(node, Input) and node.weak and node.dtype == "int64":
            places[k] = node.index
            whole.add(k)
        elif isinstance(node, Constant) and type(node.value) is int:
            constants[k] = node.value
        elif isinstance(node, Apply):
            mine = [arg for arg in node.args if arg in whole]
            if not mine:
                continue
            if k in weak:
                if all(arg in whole or arg in constants for arg in node.args):
                    steps.append((k, node.op, node.args))
                    whole |= {k} if node.dtype == "int64" else set()
            else:
                limits |= {
                    (arg, *limit)
                    for arg, dtype in zip(node.args, node.compute, strict=False)
                    if arg in whole and (limit := _limit(dtype))
                }
    used = {arg for _, _, args in steps for arg in args} | {node for node, *_ in limits}
    return Integers(
        {node: k for node, k in places.items() if node in used},
        {node: number for node, number in constants.items() if node in used},
        tuple(steps),
        tuple(sorted(limits)),
    )


def _limit(dtype: str) -> tuple[int, int] | None:
    """The range of an integer dtype that does not hold all of int64."""
    if np.dtype(dtype).kind not in "iu" or dtype == "int64":
        return None
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)
