"""Writes the ONNX nodes for an op of LiteRT."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...ir.graph import Array, Node, Quantisation, Value
from ..lowering import ELEMENT_TYPES, NodeWriter, NoEquivalent

#: Axes from channels last to channels first, and back.
FIRST, LAST = (0, 3, 1, 2), (0, 2, 3, 1)
#: Activation inside an op: ONNX's op, and the bounds of a Clip. LiteRT's kernels ignore the others
#: (2.3.0, run: ADD, SUB, MUL, DIV, convolutions and pools).
ACTIVATION: Mapping[str, tuple[str, tuple[float, ...]]] = {
    "RELU": ("Relu", ()),
    "RELU_N1_TO_1": ("Clip", (-1.0, 1.0)),
    "RELU6": ("Clip", (0.0, 6.0)),
}
#: Ops that move numbers and do not change them: on quantised tensors of one scale they are exact.
_MOVES = frozenset(
    {
        *("BATCH_TO_SPACE_ND", "BROADCAST_TO", "CONCATENATION", "DEPTH_TO_SPACE", "EXPAND_DIMS"),
        *("GATHER", "GATHER_ND", "MIRROR_PAD", "PACK", "RESHAPE", "REVERSE_SEQUENCE"),
        *("REVERSE_V2", "SLICE", "SPACE_TO_DEPTH", "SPLIT", "SPLIT_V", "SQUEEZE"),
        *("STRIDED_SLICE", "TILE", "TRANSPOSE", "UNPACK"),
    }
)


def activation_of(node: Node) -> str:
    """The activation that the interpreter computes inside an op; "NONE" without one."""
    kind = str(node.attributes.get("fused_activation_function", "NONE"))
    return kind if kind in ACTIVATION else "NONE"


class OperatorWriter(NodeWriter):
    """Writes the ONNX nodes that replace an op; its options are attributes.

    Operands are real numbers: a quantised one is dequantised first, and a quantised result is
    quantised last. Ops that move numbers within one scale move them as they are stored.
    """

    def __init__(self, node: Node) -> None:
        super().__init__(node)
        self.parameters = node.attributes
        self._real: dict[int, Value] = {}
        values = [value for value in (*node.inputs, *node.outputs) if value is not None]
        scales = {value.quantised for value in values if value.quantised is not None}
        self._stored = node.op in _MOVES and len(scales) == 1 and activation_of(node) == "NONE"
        self._stored = self._stored and all(value.quantised for value in node.outputs)

    # Operands.

    def stored(self, position: int) -> Value:
        """An operand as the file stores it."""
        value = super().optional(position)
        if value is None:
            raise NoEquivalent
        return value

    def optional(self, position: int) -> Value | None:
        """An operand as real numbers, or None."""
        value = super().optional(position)
        if value is None or value.quantised is None or self._stored:
            return value
        if id(value) not in self._real:
            scale, zero = _parameters(value.quantised, value.dtype or "int8")
            axis = value.quantised.axis
            self._real[id(value)] = self.op(
                "DequantizeLinear", value, scale, zero, dtype="float32", axis=axis
            )
        return self._real[id(value)]

    def rank(self, position: int = 0) -> int:
        """The rank of an operand, which must be known."""
        return len(self.sizes(self.stored(position)))

    def known_sizes(self, position: int) -> tuple[int, ...]:
        """The sizes of an operand, which must be numbers."""
        return self.numbers(self.stored(position))

    def zero(self, like: Value) -> Value:
        """A constant 0 of a tensor's element type."""
        return _constant((0,), (), self._element_type(like))

    def number(self, number: float, dtype: str = "") -> Value:
        """A constant that is one number, of the first result's type or another."""
        return super().number(number, dtype or self._element_type(self.node.outputs[0]))

    def truths(self, *numbers: bool) -> Value:
        """A constant vector of truth values."""
        return self.ints(*map(int, numbers), dtype="bool")

    def as_int64(self, value: Value) -> Value:
        """Whole numbers as int64, which ONNX requires of sizes."""
        if value.dtype == "int64":
            return value
        if value.content is not None and value.constant:
            return Value(value.name, value.shape, True, value.content, dtype="int64")
        return self.op("Cast", value, to=ELEMENT_TYPES["int64"])

    def out_type(self) -> int:
        """The element type of the first result, as ONNX's number."""
        return ELEMENT_TYPES[self._element_type(self.node.outputs[0])]

    @staticmethod
    def _element_type(value: Value) -> str:
        """The type that an op computes with, which ONNX must have."""
        dtype = value.computed_type
        if dtype is None or dtype not in ELEMENT_TYPES:
            raise NoEquivalent
        return dtype

    # Results.

    def activated(self, op: str, *operands: Value | None, **attributes: Any) -> None:
        """The last node, and the activation in the op's options after it."""
        kind = activation_of(self.node)
        if kind == "NONE":
            self.last(op, *operands, **attributes)
            return
        name, bounds = ACTIVATION[kind]
        self.last(name, self.op(op, *operands, **attributes), *map(self.number, bounds))

    def _write(
        self,
        op: str,
        operands: Sequence[Value | None],
        outputs: tuple[Value, ...],
        attributes: Mapping[str, Any],
    ) -> None:
        if self._stored or all(value.quantised is None for value in outputs):
            super()._write(op, operands, outputs, attributes)
            return
        reals = tuple(
            value if value.quantised is None else Value("~", None, value.constant, dtype="float32")
            for value in outputs
        )
        super()._write(op, operands, reals, attributes)
        for real, value in zip(reals, outputs, strict=True):
            if value.quantised is not None:
                scale, zero = _parameters(value.quantised, value.dtype or "int8")
                axis = {"axis": value.quantised.axis}
                super()._write("QuantizeLinear", (real, scale, zero), (value,), axis)


def known(value: Value) -> tuple[int, ...]:
    """The whole numbers of a value, which must be known."""
    content = value.content
    if content is None or not all(isinstance(number, int) for number in content):
        raise NoEquivalent
    return tuple(number for number in content if isinstance(number, int))


def _parameters(quantised: Quantisation, dtype: str) -> tuple[Value, Value]:
    """Scale and zero point as constants: one number, or one for each index of an axis."""
    single = len(quantised.scales) == 1
    shape = () if single else (len(quantised.scales),)
    return (
        _constant(quantised.scales, shape, "float32"),
        _constant(quantised.zero_points, shape, dtype),
    )


def _constant(numbers: Sequence[float], shape: tuple[int, ...], dtype: str) -> Value:
    kind = dtype if dtype not in ("int4", "int2") else "int8"
    source = partial(_array, numbers, shape, kind)
    return Value("", shape, True, dtype=dtype, source=source)


def _array(numbers: Sequence[float], shape: tuple[int, ...], dtype: str) -> Array:
    return np.array(numbers).astype(dtype).reshape(shape)
