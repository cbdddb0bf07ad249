"""Builds the ONNX nodes for a layer of ncnn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from ...ir.graph import Node, Value
from .sites import weights, whole
from .sizes import LayerCall, Sizes
from .text import Layer

#: The op set of the nodes.
OPSET = 21
Words: TypeAlias = "tuple[Node, ...] | None"


class NoWords(Exception):  # noqa: N818 - an answer, not a fault
    """ONNX has no exact equivalent."""


class Writer:
    """Collects the ONNX nodes that replace a layer."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.nodes: list[Node] = []

    def input(self, position: int = 0) -> Value:
        """An operand; NoWords if it is missing."""
        value = self.node.inputs[position] if position < len(self.node.inputs) else None
        if value is None:
            raise NoWords
        return value

    @property
    def rank(self) -> int:
        """The rank of the first operand."""
        return len(self.sizes(self.input()))

    def sizes(self, value: Value) -> tuple[Any, ...]:
        """A value's sizes; NoWords if the rank is unknown."""
        if value.shape is None:
            raise NoWords
        return value.shape

    def numbers(self, value: Value) -> tuple[int, ...]:
        """A value's sizes; NoWords unless all are numbers."""
        if value.shape is None or not value.known:
            raise NoWords
        return tuple(size for size in value.shape if isinstance(size, int))

    def call(self) -> LayerCall:
        """The layer's call for its formula; without the data's shape if its sizes are open."""
        node = self.node
        blobs = [v for v in node.inputs if v is not None][:1]
        shapes: list[Sizes] = [self.numbers(value) for value in blobs if value.known]
        params = {int(key): value for key, value in node.attributes.items()}
        names = tuple(value.name for value in node.outputs)
        layer = Layer(0, 0, node.op, node.name, tuple(v.name for v in blobs), names, params)
        return LayerCall(layer, tuple(shapes))

    def whole(self, number: int, default: int = 0) -> int:
        """A whole-number parameter."""
        return whole(self.node, number, default)

    def array(self, number: int) -> tuple[Any, ...]:
        """A parameter that is a list; () if it is absent."""
        value = self.node.attributes.get(str(number), ())
        if not isinstance(value, tuple):
            raise NoWords
        return value

    def real(self, number: int, default: float) -> float:
        """A real parameter."""
        value = self.node.attributes.get(str(number), default)
        if not isinstance(value, int | float):
            raise NoWords
        return float(value)

    def wholes(self, numbers: Iterable[int], dtype: str = "int64") -> Value:
        """A constant list of whole numbers."""
        content = tuple(numbers)
        name = f"{self.node.name}.numbers{len(self.nodes)}"
        return Value(name, (len(content),), True, content, dtype=dtype)

    def reals(self, numbers: Iterable[float]) -> Value:
        """A constant list of real numbers."""
        import numpy as np

        content = tuple(map(float, numbers))
        return Value(
            f"{self.node.name}.numbers{len(self.nodes)}",
            (len(content),),
            True,
            reals=content,
            dtype="float32",
            source=lambda: np.array(content, np.float32),
        )

    def constant(self, number: float) -> Value:
        """A constant real number."""
        import numpy as np

        single = np.float32(number)
        return Value(
            f"{self.node.name}.number{len(self.nodes)}",
            (),
            True,
            reals=(float(single),),
            dtype="float32",
            source=lambda: np.array(single),
        )

    def weight(self, name: str, shape: Sequence[int] | None = None) -> Value:
        """A weight of the layer, in another shape if one is given."""
        (value,) = weights(self.node, name) or (None,)
        if value is None:
            raise NoWords
        return value if shape is None else self.step("Reshape", value, self.wholes(shape))

    def step(self, op: str, *operands: Value | None, **attributes: Any) -> Value:
        """Adds a node; returns its result."""
        return self.several(op, 1, *operands, **attributes)[0]

    def several(
        self, op: str, results: int, *operands: Value | None, **attributes: Any
    ) -> tuple[Value, ...]:
        """Adds a node with several results."""
        node, position = self.node, len(self.nodes)
        name = f"{node.name}.{position}"
        values = tuple(Value(f"{name}.{k}" if k else name, None) for k in range(results))
        kept = {key: value for key, value in attributes.items() if value is not None}
        self.nodes.append(
            Node(name, op, "", OPSET, operands, values, kept, node.scope, place=node.place)
        )
        return values

    def last(self, op: str, *operands: Value | None, **attributes: Any) -> None:
        """Adds the node that makes the layer's own results."""
        outputs = self.node.outputs
        self.step(op, *operands, **attributes)
        self.nodes[-1] = replace(self.nodes[-1], name=self.node.name, outputs=outputs)

    def activated(self, value: Value, kind: int, numbers: Sequence[float]) -> Value:
        """The value after the activation inside a layer with weights."""
        if kind == 1:
            return self.step("Relu", value)
        if kind == 2 and len(numbers) == 1:
            return self.step("LeakyRelu", value, alpha=float(numbers[0]))
        if kind == 3 and len(numbers) == 2:
            return self.step("Clip", value, *map(self.constant, numbers))
        if kind in (4, 5):
            return self.step("Sigmoid" if kind == 4 else "Mish", value)
        if kind == 6 and len(numbers) == 2:
            alpha, beta = map(float, numbers)
            gate = self.step("HardSigmoid", value, alpha=alpha, beta=beta)
            return self.step("Mul", value, gate)
        raise NoWords

    def finish(self, value: Value, activation: bool = False) -> None:
        """Makes a value the layer's result, after the layer's activation if wanted."""
        numbers = self.node.attributes.get("10", ())
        if activation and self.whole(9):
            value = self.activated(value, self.whole(9), numbers)
        if self.nodes[-1].outputs[0] is not value:
            self.step("Identity", value)
        node = self.node
        self.nodes[-1] = replace(self.nodes[-1], name=node.name, outputs=node.outputs)

    def finish_all(self, values: Sequence[Value]) -> None:
        """Makes values the layer's results."""
        node = self.node
        for value, output in zip(values, node.outputs, strict=True):
            self.nodes.append(
                Node(node.name, "Identity", "", OPSET, (value,), (output,), place=node.place)
            )


Row: TypeAlias = "Callable[[Writer], None]"

__all__ = ["OPSET", "NoWords", "Row", "Words", "Writer"]
