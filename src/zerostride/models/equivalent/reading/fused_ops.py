"""Fused ops of ONNX Runtime, written as the quantised ops that they stand for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from ...ir.graph import FileShape, Node, Value

#: An op set that has the ops.
_VERSION = 13
_FLOAT = 1


@dataclass
class _Writer:
    """Nodes that compute what one node computes.

    Attributes:
        node: the node.
        nodes: those in its place.
    """

    node: Node
    nodes: list[Node] = field(default_factory=list)

    def operand(self, position: int) -> Value | None:
        """An operand; None if it is left out."""
        return self.node.inputs[position] if position < len(self.node.inputs) else None

    def add(
        self,
        op: str,
        inputs: Sequence[Value | None],
        *shapes: FileShape,
        dtypes: Sequence[str] = ("float32",),
        to: int | None = None,
    ) -> tuple[Value, ...]:
        """Adds a node; its results."""
        name = f"{self.node.name}/{op}_{len(self.nodes)}"
        outputs = tuple(
            Value(f"{name}.{k}", shape, dtype=dtype)
            for k, (shape, dtype) in enumerate(zip(shapes, dtypes, strict=True))
        )
        attributes = {} if to is None else {"to": to}
        self.nodes.append(
            Node(name, op, "", _VERSION, tuple(inputs), outputs, attributes, self.node.scope)
        )
        return outputs

    def scaled(self, product: Value, scales: Sequence[Value | None], bias: Value | None) -> None:
        """A product of whole numbers as floats, times two scales, and a bias."""
        shape = self.node.outputs[0].shape
        (number,) = self.add("Cast", [product], shape, to=_FLOAT)
        (scale,) = self.add("Mul", scales, _wider(scales))
        (real,) = self.add("Mul", [number, scale], shape)
        if bias is not None:
            self.add("Add", [real, bias], shape)
        self.nodes[-1] = replace(self.nodes[-1], outputs=self.node.outputs)


def _wider(values: Sequence[Value | None]) -> FileShape:
    """The shape of a scale and of another that is one number."""
    shapes = [value.shape for value in values if value is not None]
    known = [shape for shape in shapes if shape is not None]
    if len(known) < len(shapes):
        return None
    # Of as many axes, the one of more than one number.
    return max(known, key=lambda shape: (len(shape), shape != (1,)), default=None)


def _dynamic_product(writer: _Writer) -> None:
    """DynamicQuantizeMatMul: a, and b with its scale and its zero point; bias."""
    a, b, scale, zero, bias = map(writer.operand, range(5))
    assert a is not None
    numbers, own_scale, own_zero = writer.add(
        "DynamicQuantizeLinear", [a], a.shape, (), (), dtypes=("uint8", "float32", "uint8")
    )
    shape = writer.node.outputs[0].shape
    inputs = [numbers, b, own_zero, *([] if zero is None else [zero])]
    (product,) = writer.add("MatMulInteger", inputs, shape, dtypes=("int32",))
    writer.scaled(product, [own_scale, scale], bias)


def _scaled_product(writer: _Writer) -> None:
    """MatMulIntegerToFloat: a, b, their scales, their zero points; bias."""
    a, b, *rest = map(writer.operand, range(7))
    zeros = rest[2:4]
    while zeros and zeros[-1] is None:
        zeros.pop()
    shape = writer.node.outputs[0].shape
    (product,) = writer.add("MatMulInteger", [a, b, *zeros], shape, dtypes=("int32",))
    writer.scaled(product, rest[:2], rest[4])


_ROWS: Mapping[str, Callable[[_Writer], None]] = MappingProxyType(
    {"DynamicQuantizeMatMul": _dynamic_product, "MatMulIntegerToFloat": _scaled_product}
)


def unfused(node: Node) -> Sequence[Node]:
    """The nodes that a fused op stands for; the node itself for another."""
    row = _ROWS.get(node.op) if node.domain == "com.microsoft" else None
    if row is None or len(node.outputs) != 1:
        return (node,)
    writer = _Writer(node)
    row(writer)
    return writer.nodes


__all__ = ["unfused"]
