"""Builds ONNX nodes for an op; used by the rows of :mod:`.lowering`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from ...ir.graph import Array, Node, Value

#: The op set of the nodes.
VERSION = 21


class Unsaid(Exception):  # noqa: N818 - an answer
    """ONNX has no equivalent of a node."""


class Words:
    """Builds the ONNX nodes for one node of MNN."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.parameters = node.attributes
        self.nodes: list[Node] = []

    def input(self, position: int) -> Value:
        """An operand; Unsaid if it is left out."""
        value = self.optional(position)
        if value is None:
            raise Unsaid
        return value

    def optional(self, position: int) -> Value | None:
        """An operand, or None."""
        return self.node.inputs[position] if 0 <= position < len(self.node.inputs) else None

    def rank(self, position: int = 0) -> int:
        """The rank of an operand; Unsaid if it is unknown."""
        shape = self.input(position).shape
        if shape is None:
            raise Unsaid
        return len(shape)

    def ints(self, *numbers: int) -> Value:
        """A constant of whole numbers: axes, sizes."""
        return Value("", (len(numbers),), True, numbers, dtype="int64")

    def int32(self, number: int) -> Value:
        """A constant int32 number, MNN's type of whole numbers."""
        return Value("", (), True, (number,), dtype="int32")

    def reals(self, *numbers: float) -> Value:
        """A float32 constant: a scalar, or a vector."""
        shape = () if len(numbers) == 1 else (len(numbers),)
        source = partial(_array, numbers, shape)
        return Value("", shape, True, reals=numbers, dtype="float32", source=source)

    def filled(self, number: float, count: int) -> Value:
        """A float32 vector filled with one number."""
        source = partial(np.full, count, number, np.float32)
        return Value("", (count,), True, dtype="float32", source=source)

    def op(self, op: str, *operands: Value | None, shape: Any = None, **attributes: Any) -> Value:
        """Adds a node; returns its result."""
        constant = all(value is None or value.constant for value in operands)
        # The execution of a Cast reads the type of its result.
        dtype = _NAMES.get(attributes.get("to", 0)) if op == "Cast" else None
        result = Value("", shape, constant, dtype=dtype)
        self._add(op, operands, (result,), attributes)
        return result

    def last(self, op: str, *operands: Value | None, **attributes: Any) -> tuple[Node, ...]:
        """Adds the node that makes the op's own results."""
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
#: ONNX's numbers of int32 and bool.
INT32, BOOL = 6, 9
_NAMES = {INT32: "int32", BOOL: "bool"}


def _array(numbers: Sequence[float], shape: tuple[int, ...]) -> Array:
    return np.array(numbers, np.float32).reshape(shape)


def named(op: str) -> Row:
    """A row for an op that differs only in its name."""
    return lambda words: words.last(op, words.input(0))


def is_image(words: Words) -> None:
    """Unsaid if the channels are not axis 1."""
    if words.parameters.get("layout") not in ("NCHW", "NC4HW4"):
        raise Unsaid


def plain_order(words: Words) -> None:
    """Unsaid if the op's order of axes differs from its operand's."""
    if words.parameters.get("layout") == "NC4HW4" and words.parameters.get("format") == "NHWC":
        raise Unsaid


def axes_of(words: Words, name: str) -> Value | None:
    """Axes from the parameter, else from an operand."""
    if words.parameters.get(f"has_{name}"):
        return words.ints(*words.parameters[name])
    return words.optional(1)
