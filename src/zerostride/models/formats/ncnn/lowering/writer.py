"""Writes the ONNX nodes for a layer of ncnn."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from ....ir.graph import Value
from ....onnx_ops.sizes.facts import NoSizes, Unclear
from ...lowering import NodeWriter, NoEquivalent
from ..shapes.call import LayerCall
from ..sites import weights
from ..text import Layer


class LayerWriter(NodeWriter):
    """Writes the ONNX nodes that replace a layer; its parameters are numbered attributes."""

    refusals = (*NodeWriter.refusals, Unclear, NoSizes)

    def whole(self, key: str | int, default: int | None = 0) -> int:
        """A whole-number parameter, 0 by default."""
        return super().whole(key, default)

    def call(self) -> LayerCall:
        """The layer's call for its formula, with the blobs' shapes before the first open one."""
        node, blobs = self.node, self.blobs()
        shapes = [self.numbers(v) for v in itertools.takewhile(lambda v: v.known, blobs)]
        params = {int(key): value for key, value in node.attributes.items()}
        names = tuple(value.name for value in node.outputs)
        layer = Layer(0, 0, node.op, node.name, tuple(v.name for v in blobs), names, params)
        return LayerCall(layer, tuple(shapes))

    def blobs(self) -> list[Value]:
        """The operands without the layer's own weights."""
        own = f"{self.node.name}."
        values = [value for value in self.node.inputs if value is not None]
        return [v for v in values if not (v.constant and v.name.startswith(own))]

    def result_sizes(self) -> tuple[int, ...]:
        """The sizes of the layer's first result, which must be numbers."""
        return self.numbers(self.node.outputs[0])

    def weight(self, name: str, shape: Sequence[int] | None = None) -> Value:
        """A weight of the layer, in another shape if one is given."""
        (value,) = weights(self.node, name) or (None,)
        if value is None:
            raise NoEquivalent
        return value if shape is None else self.op("Reshape", value, self.ints(*shape))

    def along_channels(self, value: Value) -> Value:
        """A vector aligned with the outermost axis of the first operand."""
        inner = range(1, self.rank())
        return self.op("Unsqueeze", value, self.ints(*inner)) if inner else value

    def activated(self, value: Value) -> Value:
        """The value after the activation inside a layer with weights."""
        kind, numbers = self.whole(9), self.node.attributes.get("10", ())
        if not kind:
            return value
        if kind == 1:
            return self.op("Relu", value)
        if kind == 2 and len(numbers) == 1:
            return self.op("LeakyRelu", value, alpha=float(numbers[0]))
        if kind == 3 and len(numbers) == 2:
            return self.op("Clip", value, *map(self.number, numbers))
        if kind in (4, 5):
            return self.op("Sigmoid" if kind == 4 else "Mish", value)
        if kind == 6 and len(numbers) == 2:
            alpha, beta = map(float, numbers)
            return self.op("Mul", value, self.op("HardSigmoid", value, alpha=alpha, beta=beta))
        raise NoEquivalent
