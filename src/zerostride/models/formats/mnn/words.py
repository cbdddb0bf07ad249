"""Saying an op in ONNX's words: what the rows of :mod:`.lowering` say it with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from ...ir.graph import Array, Node, Value

#: The op set whose words are used.
VERSION = 21


class Unsaid(Exception):  # noqa: N818 - an answer
    """ONNX has no words for a node."""


class Words:
    """Says one node in ONNX's words, op after op."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.parameters = node.attributes
        self.nodes: list[Node] = []

    def input(self, position: int) -> Value:
        """An operand; Unsaid where it is left out."""
        value = self.optional(position)
        if value is None:
            raise Unsaid
        return value

    def optional(self, position: int) -> Value | None:
        """An operand, if it is there."""
        return self.node.inputs[position] if 0 <= position < len(self.node.inputs) else None

    def rank(self, position: int = 0) -> int:
        """The rank of an operand; Unsaid where it is not known."""
        shape = self.input(position).shape
        if shape is None:
            raise Unsaid
        return len(shape)

    def ints(self, *numbers: int) -> Value:
        """A constant of whole numbers: axes, sizes."""
        return Value("", (len(numbers),), True, numbers, dtype="int64")

    def int32(self, number: int) -> Value:
        """One whole number to compute with, of the type that MNN's own have."""
        return Value("", (), True, (number,), dtype="int32")

    def reals(self, *numbers: float) -> Value:
        """A float32 constant: one number without axes, or a row."""
        shape = () if len(numbers) == 1 else (len(numbers),)
        source = partial(_array, numbers, shape)
        return Value("", shape, True, reals=numbers, dtype="float32", source=source)

    def filled(self, number: float, count: int) -> Value:
        """A float32 vector of one number over and over."""
        source = partial(np.full, count, number, np.float32)
        return Value("", (count,), True, dtype="float32", source=source)

    def op(self, op: str, *operands: Value | None, shape: Any = None, **attributes: Any) -> Value:
        """An op whose result the next one reads."""
        constant = all(value is None or value.constant for value in operands)
        # What executes a Cast reads the type of its result.
        dtype = _NAMES.get(attributes.get("to", 0)) if op == "Cast" else None
        result = Value("", shape, constant, dtype=dtype)
        self._add(op, operands, (result,), attributes)
        return result

    def last(self, op: str, *operands: Value | None, **attributes: Any) -> tuple[Node, ...]:
        """The op that hands out the node's own results."""
        self._add(op, operands, self.node.outputs, attributes)
        return tuple(self.nodes)

    def _add(
        self,
        op: str,
        operands: Sequence[Value | None],
        outputs: tuple[Value, ...],
        attributes: Mapping[str, Any],
    ) -> None:
        node = self.node
        # A name of its own for each: what is said of a node is said of the file's.
        self.nodes.append(
            Node(
                node.name,
                op,
                "",
                VERSION,
                tuple(operands),
                outputs,
                MappingProxyType(dict(attributes)),
                node.scope,
                node.bodies,
                node.place,
            )
        )


Said: TypeAlias = tuple[Node, ...]
Row: TypeAlias = Callable[[Words], Said]
#: ONNX's numbers of the two types that MNN counts with.
INT32, BOOL = 6, 9
_NAMES = {INT32: "int32", BOOL: "bool"}


def _array(numbers: Sequence[float], shape: tuple[int, ...]) -> Array:
    return np.array(numbers, np.float32).reshape(shape)


def named(op: str) -> Row:
    """A row for an op with another name and nothing else that differs."""
    return lambda words: words.last(op, words.input(0))


def is_image(words: Words) -> None:
    """Unsaid where the channels are not axis 1."""
    if words.parameters.get("layout") not in ("NCHW", "NC4HW4"):
        raise Unsaid


def plain_order(words: Words) -> None:
    """Unsaid where the op counts axes in another order than its operand's."""
    if words.parameters.get("layout") == "NC4HW4" and words.parameters.get("format") == "NHWC":
        raise Unsaid


def axes_of(words: Words, name: str) -> Value | None:
    """Axes of the parameter, else of an operand."""
    if words.parameters.get(f"has_{name}"):
        return words.ints(*words.parameters[name])
    return words.optional(1)
