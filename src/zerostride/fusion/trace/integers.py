"""Python's integers among a call's operands: what has to hold for 64 bits to be what Python does.

Python computes with integers exactly, and the result meets an array as one number. A program does
so in int64. For most numbers that is the same; for the others (a sum beyond 64 bits, a division by
0, a power that is a fraction, a number that the array's dtype does not hold) the operands become
constants of the trace, where Python itself computes (`PYTHON`), or refuses.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .constants import COMPARISONS
from .graph import Apply, Constant, Graph, Input

#: What Python's operators do, by the op that they write down.
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
#: Integers that float64 holds, all of them.
_EXACT = 2**53


@dataclass(frozen=True, slots=True)
class Integers:
    """What has to hold of the Python integers of a call.

    Attributes:
        places: for a node that is one, which operand.
        constants: for a node that is a number of the function, that number.
        steps: (node, op, arguments), each of nodes that are here: what is made of these alone.
        limits: (node, least, greatest) where one meets integers of fewer bits.
    """

    places: Mapping[int, int]
    constants: Mapping[int, int]
    steps: tuple[tuple[int, str, tuple[int, ...]], ...]
    limits: tuple[tuple[int, int, int], ...]

    def __bool__(self) -> bool:
        return bool(self.steps or self.limits)

    @property
    def may_fit(self) -> bool:
        """Whether there are operands for which 64 bits are enough."""
        return all(map(_fits, self.constants.values()))

    def beyond(self, values: Sequence[Any]) -> tuple[int, ...]:
        """The operands for whose values 64 bits are not what Python does, rising.

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
        """The operands that nodes are made of."""
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
    """What Python makes of integers, or None where 64 bits have something else."""
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
    """Whether it is an integer of 64 bits."""
    return type(number) is int and -(2**63) <= number < 2**63


def integers_of(graph: Graph, weak: frozenset[int]) -> Integers:
    """What a graph asks of Python integers.

    Args:
        graph: what is computed.
        weak: its nodes that are made of Python numbers alone, by Python's operators.
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
    """The range of a dtype of integers that does not hold all of int64."""
    if np.dtype(dtype).kind not in "iu" or dtype == "int64":
        return None
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)
