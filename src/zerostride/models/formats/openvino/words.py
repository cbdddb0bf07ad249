"""Builds ONNX nodes for a layer; used by the rows of :mod:`.lower`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....core.plan import Plan
from ....errors import BroadcastError
from ...ir.graph import FileShape, Node, Value
from ..onnx.sites import Kind
from .opsets import canonical
from .sites import find_site

#: The op set of the nodes: axes are operands in it, and GroupNormalization is by channel.
VERSION = 21


class NoWords(Exception):  # noqa: N818 - an answer, not a fault
    """ONNX has no exact equivalent."""


class Words:
    """One layer, and its nodes so far."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.op = canonical(node.op)
        self.nodes: list[Node] = []

    # The layer.

    def input(self, position: int) -> Value:
        """A required operand."""
        value = self.optional(position)
        if value is None:
            raise NoWords
        return value

    def optional(self, position: int) -> Value | None:
        """An operand; None if it is left out."""
        inputs = self.node.inputs
        return inputs[position] if position < len(inputs) else None

    def numbers(self, position: int) -> tuple[int, ...]:
        """The whole numbers of a constant operand."""
        content = self.input(position).content
        if content is None or not all(isinstance(number, int) for number in content):
            raise NoWords
        return tuple(int(number) for number in content if isinstance(number, int))

    def rank(self, position: int) -> int:
        """The rank of an operand."""
        shape = self.input(position).shape
        if shape is None:
            raise NoWords
        return len(shape)

    def text(self, name: str, default: str = "") -> str:
        """An attribute that is a word, in lower case."""
        return str(self.node.attributes.get(name, default)).lower()

    def flag(self, name: str, default: bool = False) -> bool:
        """An attribute that is a truth value."""
        return bool(self.node.attributes.get(name, default))

    def integer(self, name: str, default: int | None = None) -> int:
        """An attribute that is one whole number."""
        value = self.node.attributes.get(name, default)
        if not isinstance(value, int):
            raise NoWords
        return int(value)

    def real(self, name: str, default: float | None = None) -> float:
        """An attribute that is a number."""
        value = self.node.attributes.get(name, default)
        if not isinstance(value, int | float):
            raise NoWords
        return float(value)

    def list(self, name: str, default: tuple[int, ...] = ()) -> tuple[int, ...]:
        """An attribute that is a list of whole numbers."""
        value = self.node.attributes.get(name, default)
        if isinstance(value, int):
            return (int(value),)
        if not isinstance(value, tuple) or not all(isinstance(item, int) for item in value):
            if value == "":
                return ()
            raise NoWords
        return value

    @property
    def dtype(self) -> str:
        """The element type of the first operand; NoWords if it is unknown."""
        dtype = self.input(0).dtype
        if dtype is None:
            raise NoWords
        return dtype

    def plan(self) -> Plan:
        """The plan of the layer's broadcast; NoWords unless all sizes are numbers."""
        site = find_site(self.node)
        if site is None or site.kind in (Kind.NOT_MODELLED, Kind.CUSTOM):
            raise NoWords
        if any(part.shape is None for part in site.operands):
            raise NoWords
        shapes = tuple(part.shape or () for part in site.operands)
        if not all(isinstance(size, int) for shape in shapes for size in shape):
            raise NoWords
        try:
            return site.plan(shapes)
        except BroadcastError:
            raise NoWords from None

    # New nodes.

    def ints(self, numbers: Sequence[int], scalar: bool = False) -> Value:
        """A constant of whole numbers: a vector, or one number."""
        shape = () if scalar else (len(numbers),)
        name = f"{self.node.name}~{len(self.nodes)}"
        return Value(name, shape, True, tuple(numbers), declared=shape, dtype="int64")

    def number(self, value: float, dtype: str) -> Value:
        """A constant that is one number of a tensor's type."""
        name = f"{self.node.name}~{len(self.nodes)}"
        if dtype.startswith(("int", "uint")):
            return Value(name, (), True, (int(value),), declared=(), dtype=dtype)
        return Value(name, (), True, declared=(), reals=(value,), dtype=dtype)

    def make(
        self,
        op: str,
        *inputs: Value | None,
        dtype: str | None = None,
        shape: FileShape = None,
        **more: Any,
    ) -> Value:
        """Adds a node; returns its result, by default of the first operand's type."""
        first_dtype = next((value.dtype for value in inputs if value is not None), None)
        constant = all(value is None or value.constant for value in inputs)
        name = f"{self.node.name}~{len(self.nodes)}"
        result = Value(name, shape, constant, dtype=dtype or first_dtype)
        self._node(op, inputs, (result,), more)
        return result

    def several(
        self, op: str, *inputs: Value | None, count: int = 3, **more: Any
    ) -> tuple[Value, ...]:
        """Adds a node of several results, all of the first operand's type."""
        first_dtype = next((value.dtype for value in inputs if value is not None), None)
        name = f"{self.node.name}~{len(self.nodes)}"
        results = tuple(Value(f"{name}.{k}", None, False, dtype=first_dtype) for k in range(count))
        self._node(op, inputs, results, more)
        return results

    def hand_out(self, position: int, op: str, *inputs: Value, **more: Any) -> tuple[Node, ...]:
        """Adds the node that makes one of the layer's own results; returns all nodes."""
        self._node(op, inputs, (self.node.outputs[position],), more)
        return tuple(self.nodes)

    def last(self, op: str, *inputs: Value | None, **more: Any) -> tuple[Node, ...]:
        """Adds the node that makes the layer's own results; returns all nodes."""
        self._node(op, inputs, self.node.outputs, more)
        return tuple(self.nodes)

    def _node(
        self,
        op: str,
        inputs: tuple[Value | None, ...],
        outputs: tuple[Value, ...],
        attributes: dict[str, Any],
    ) -> None:
        own = self.node
        place = own.place if outputs is own.outputs else None
        self.nodes.append(
            Node(own.name, op, "", VERSION, inputs, outputs, attributes, own.scope, (), place)
        )

    def reshaped(self, value: Value, shape: Sequence[int]) -> Value:
        """A value in a shape; itself if it already has the shape."""
        if value.shape == tuple(shape):
            return value
        return self.make("Reshape", value, self.ints(shape), shape=tuple(shape), allowzero=1)
