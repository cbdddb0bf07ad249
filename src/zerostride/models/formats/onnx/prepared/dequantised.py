"""A quantised model as one of floats: the numbers that its whole numbers stand for, not rounded.

Weights become the floats that they stand for, exactly. Activations keep their bounds, which are a
Relu of many models, and are not rounded. So results differ from the model's by what rounding does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from .....errors import ModelError
from ....onnx_ops.validation import nodes_of
from .files import inferred, save, with_shapes
from .rewriting import Rewriting, attributes_of

if TYPE_CHECKING:
    import onnx

#: Element types of ONNX: float32, and those of quantised numbers.
_FLOAT = 1
_BOUNDS: Mapping[int, tuple[int, int]] = MappingProxyType(
    {
        2: (0, 255), 3: (-128, 127), 4: (0, 65535), 5: (-32768, 32767),
        21: (0, 15), 22: (-8, 7), 25: (0, 3), 26: (-2, 1),
    }
)  # fmt: skip
_UINT8, _INT32 = 2, 6
#: The scale of numbers that have no bounds: small, since a bias may still be rounded to it.
_STEP = np.float32(2.0**-10)
#: Ops that move numbers, take the largest, or add: they do the same to floats.
_MOVES = frozenset(
    {"Add", "Concat", "DepthToSpace", "Expand", "Flatten", "Gather", "Identity", "MaxPool", "Pad"}
    | {"Reshape", "Slice", "SpaceToDepth", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze"}
)


class _Scale(NamedTuple):
    """How whole numbers stand for floats: the tensors of a scale and of its zero point."""

    scale: str
    zero: str


def dequantised(source: Path, goal: Path) -> tuple[str, ...]:
    """Writes a model without quantised ops; the ops that were written as others.

    Args:
        source: an ONNX model; its external numbers come inside.
        goal: the file to write.

    Raises:
        ModelError: the file cannot be read, or a quantised op stays.
    """
    with_shapes(source, goal, {})
    model = inferred(goal)
    if model is None:
        raise ModelError(f"{source}: its op set is too old to write its quantised ops as others")
    graph = _Dequantised(Rewriting(model), model.graph)
    done = graph.graph.each(graph.node)
    for node in nodes_of(model.graph.node):  # those in bodies stay
        if is_quantised(node.op_type):
            graph.left = graph.left or f"{node.op_type} '{node.name or node.output[0]}'"
    if graph.left:
        raise ModelError(f"{source}: no floats are written for {graph.left}")
    save(model, goal)
    return tuple(dict.fromkeys(node.op_type for node in done if is_quantised(node.op_type)))


def is_quantised(op: str) -> bool:
    """Whether an op reads or writes quantised numbers."""
    return "Quant" in op or "QLinear" in op or op in _RULES


class _Dequantised:
    """A graph whose quantised numbers become the floats that they stand for.

    Attributes:
        graph: what is rewritten.
        ranks: of tensors.
        readers: the ops that read a tensor.
        floats: tensors of quantised numbers that are floats now: those that the numbers stand for,
            or, with None, the numbers themselves.
        left: the node for which nothing is written.
    """

    def __init__(self, graph: Rewriting, model: onnx.GraphProto) -> None:
        self.graph = graph
        values = (*model.input, *model.value_info, *model.output)
        self.ranks = {value.name: len(value.type.tensor_type.shape.dim) for value in values}
        self.readers: dict[str, set[str]] = {}
        for node in model.node:
            for name in node.input:
                self.readers.setdefault(name, set()).add(node.op_type)
        self.floats: dict[str, _Scale | None] = {}
        self.results = {value.name for value in graph.graph.output}
        self.left = ""

    def node(self, node: onnx.NodeProto) -> bool:
        """Adds other nodes for a node, if it computes with quantised numbers."""
        rule = _RULES.get(node.op_type)
        if rule is not None:
            done = rule(self, node, [*node.input, *[""] * 12])
        elif self.starts(node) or any(name in self.floats for name in node.input):
            done = self._moved(node)
        else:
            done = not is_quantised(node.op_type)
            if done:
                return False
        if not done:
            self.left = self.left or f"{node.op_type} '{node.name or node.output[0]}'"
        return done

    def array(self, name: str) -> np.ndarray[Any, Any] | None:
        return self.graph.array(name) if name else None

    def real(self, names: Sequence[str], axis: int = -1, block: int = 0) -> str:
        """The floats that quantised numbers stand for: of a tensor, its scale, its zero point."""
        name, scale, zero = names
        data, factor, offset = map(self.array, names)
        if data is not None and factor is not None and (offset is not None or not zero):
            numbers = data.astype(np.int64)
            if offset is not None:
                numbers -= _spread(offset.astype(np.int64), data.shape, axis, block)
            factor = _spread(factor.astype(np.float32), data.shape, axis, block)
            return self.graph.constant(numbers.astype(np.float32) * factor)
        known = self.floats.get(name)
        if known is not None and not block and self._same(known, _Scale(scale, zero)):
            return name
        whole = self.whole(name)
        if zero:
            whole = self.graph.add("Sub", whole, self._along(self.whole(zero), name, axis))
        return self.graph.add("Mul", whole, self._along(scale, name, axis))

    def whole(self, name: str) -> str:
        """A tensor of quantised numbers as floats: the numbers themselves."""
        array = self.array(name)
        if array is not None:
            return self.graph.constant(array.astype(np.float32))
        if name not in self.floats:
            return self.graph.as_float(name)
        known = self.floats[name]
        if known is None:
            return name
        number = self.graph.add("Div", name, known.scale)
        return self.graph.add("Add", number, self.whole(known.zero)) if known.zero else number

    def bounded(self, number: str, scale: _Scale, to: str, kind: int, axis: int = 1) -> bool:
        """Writes floats as the quantised tensor `to`: within its bounds, and not rounded."""
        factor, zero = self.array(scale.scale), self.array(scale.zero)
        low, high = _BOUNDS[kind]
        if to in self.results:
            return False
        single = factor is not None and factor.size == 1 and (zero is not None or not scale.zero)
        if single and factor is not None:
            offset = 0 if zero is None else int(zero.flat[0])
            ends = ((end - offset) * factor.reshape(()).astype(np.float32) for end in (low, high))
            self.graph.add("Clip", number, *map(self.graph.constant, ends), to=to)
            self.floats[to] = scale
            return True
        number = self.graph.add("Div", number, self._along(scale.scale, number, axis))
        if scale.zero:
            zeros = self._along(self.whole(scale.zero), number, axis)
            number = self.graph.add("Add", number, zeros)
        bounds = (self.graph.constant(np.float32(end)) for end in (low, high))
        self.graph.add("Clip", number, *bounds, to=to)
        self.floats[to] = None
        return True

    def _same(self, one: _Scale, other: _Scale) -> bool:
        pairs = ((self.array(a), self.array(b)) for a, b in zip(one, other, strict=True))
        equal = (a is not None and b is not None and np.array_equal(a, b) for a, b in pairs)
        return one == other or all(equal)

    def _along(self, name: str, data: str, axis: int) -> str:
        """A line of scales along an axis of a tensor."""
        shape, rank = self.graph.shape(name), self.ranks.get(data)
        if not shape or shape == (1,) or rank is None or axis % rank == rank - 1:
            return name
        return self.graph.reshaped(name, [*shape, *[1] * (rank - 1 - axis % rank)])

    def _moved(self, node: onnx.NodeProto) -> bool:
        """A node that moves quantised numbers moves floats."""
        if node.op_type == "Cast":
            if attributes_of(node)["to"] != _FLOAT:
                return False
            self.graph.add("Identity", self.whole(node.input[0]), to=node.output[0])
            return True
        if node.op_type not in _MOVES or self.results & {*node.output}:
            return False
        inputs = [*node.input]
        data = _DATA.get(node.op_type, (0,)) or range(len(inputs))
        moved = [k for k in data if k < len(inputs) and inputs[k]]
        scale = self.floats.get(inputs[0]) if len(moved) == 1 else None
        for k in moved if scale is None else ():
            inputs[k] = self.whole(inputs[k])
        self.graph.repeat(node, inputs)
        self.floats[node.output[0]] = scale
        return True

    def starts(self, node: onnx.NodeProto) -> bool:
        """Whether a node takes rows of a quantised table."""
        kind = self.graph.types.get(node.input[0]) if node.op_type == "Gather" else None
        table = kind in _BOUNDS and self.array(node.input[0]) is not None
        return table and self.readers.get(node.output[0]) == {"DequantizeLinear"}


def _spread(
    numbers: np.ndarray[Any, Any], shape: Sequence[int], axis: int, block: int
) -> np.ndarray[Any, Any]:
    """Scales or zero points beside the numbers of a tensor of this shape."""
    if numbers.size == 1:
        return numbers.reshape(())
    if block:
        return np.repeat(numbers, block, axis)[tuple(map(slice, shape))]
    if numbers.ndim > 1:
        return numbers
    sizes = [1] * len(shape)
    sizes[axis] = numbers.size
    return numbers.reshape(sizes)


def _quantize(graph: _Dequantised, node: onnx.NodeProto, names: Sequence[str]) -> bool:
    """QuantizeLinear: x, scale, zero point."""
    options = attributes_of(node)
    kind = options.get("output_dtype") or graph.graph.types.get(names[2]) or _UINT8
    if kind not in _BOUNDS or options.get("block_size"):
        return False
    axis = options.get("axis", 1)
    return graph.bounded(names[0], _Scale(names[1], names[2]), node.output[0], kind, axis)


def _dequantize(graph: _Dequantised, node: onnx.NodeProto, names: Sequence[str]) -> bool:
    """DequantizeLinear: x, scale, zero point."""
    options = attributes_of(node)
    if graph.graph.types.get(names[0], _UINT8) not in (*_BOUNDS, _INT32):
        return False
    where = options.get("axis", 1), options.get("block_size", 0)
    graph.graph.add("Identity", graph.real(names[:3], *where), to=node.output[0])
    return True


def _from_largest(graph: _Dequantised, node: onnx.NodeProto, names: Sequence[str]) -> bool:
    """DynamicQuantizeLinear: within its bounds, which are the numbers' own, in small steps."""
    if graph.results & {*node.output}:
        return False
    numbers, scale, zero = node.output
    step = graph.graph.constant(_STEP)
    graph.graph.add("Div", names[0], step, to=numbers)
    graph.graph.add("Identity", step, to=scale)
    graph.graph.add("Identity", graph.graph.constant(np.float32(0)), to=zero)
    graph.floats |= {numbers: None, zero: None}
    return True


def _product(op: str) -> _Rule:
    """ConvInteger, MatMulInteger: two operands, and their zero points."""

    def rule(graph: _Dequantised, node: onnx.NodeProto, names: Sequence[str]) -> bool:
        one = np.float32(1)
        operands = []
        for k in range(2):
            axis = k if op == "MatMul" else 0  # of a line of zero points
            scale = graph.graph.constant(one)
            operands.append(graph.real((names[k], scale, names[k + 2]), axis))
        graph.graph.add(op, *operands, to=node.output[0], **attributes_of(node))
        graph.floats[node.output[0]] = None
        return node.output[0] not in graph.results

    return rule


def _linear(op: str, *operands: int, scale: int, bias: int = 0, axis: int = 0) -> _Rule:
    """An op of quantised numbers: floats in, the same op, quantised numbers out.

    Args:
        op: of floats.
        operands: the places of quantised operands, each before its scale and its zero point.
        scale: the place of the result's scale.
        bias: the place of a bias in the scale of the product; 0 without one.
        axis: of the second operand, along which its scales lie.
    """

    def rule(graph: _Dequantised, node: onnx.NodeProto, names: Sequence[str]) -> bool:
        options = attributes_of(node)
        if options.pop("channels_last", 0):
            return False
        options.pop("opset", 0)
        kind = graph.graph.types.get(names[scale + 1], _UINT8)
        real = [
            graph.real(names[place : place + 3], axis if k else -1)
            for k, place in enumerate(operands)
        ]
        if bias and names[bias]:
            factors = [graph.array(names[place + 1]) for place in operands]
            if any(factor is None for factor in factors):
                return False
            real.append(_bias(graph, names[bias], factors, options.get("alpha", 1.0)))
        condition = names[:1] if 0 not in operands else []  # of QLinearWhere
        result = graph.graph.add(op, *condition, *real, **options)
        if not names[scale]:
            graph.graph.add("Identity", result, to=node.output[0])
            return True
        to = _Scale(names[scale], names[scale + 1])
        return graph.bounded(result, to, node.output[0], kind)

    return rule


def _bias(graph: _Dequantised, name: str, factors: Sequence[Any], alpha: float) -> str:
    """A bias of whole numbers, in the scale of a product."""
    scale = np.float32(alpha)
    for factor in factors:
        scale = scale * factor
    array = graph.array(name)
    if array is not None:
        return graph.graph.constant(array.astype(np.float32) * scale)
    return graph.graph.add("Mul", graph.whole(name), graph.graph.constant(scale))


def _joined(graph: _Dequantised, node: onnx.NodeProto, names: Sequence[str]) -> bool:
    """QLinearConcat: scale, zero point, and three names for each operand."""
    parts = [graph.real(names[k : k + 3]) for k in range(2, len(node.input), 3)]
    result = graph.graph.add("Concat", *parts, **attributes_of(node))
    kind = graph.graph.types.get(names[1], _UINT8)
    return graph.bounded(result, _Scale(names[0], names[1]), node.output[0], kind)


def _scaled_product(graph: _Dequantised, node: onnx.NodeProto, names: Sequence[str]) -> bool:
    """MatMulIntegerToFloat: a, b, their scales, their zero points, bias."""
    a, b = (graph.real(names[k:6:2]) for k in range(2))
    return _with_bias(graph, node, a, b, names[6])


def _dynamic_product(graph: _Dequantised, node: onnx.NodeProto, names: Sequence[str]) -> bool:
    """DynamicQuantizeMatMul: a, and b with its scale, its zero point; bias."""
    return _with_bias(graph, node, names[0], graph.real(names[1:4]), names[4])


def _with_bias(graph: _Dequantised, node: onnx.NodeProto, a: str, b: str, bias: str) -> bool:
    if bias:
        graph.graph.add("Add", graph.graph.add("MatMul", a, b), bias, to=node.output[0])
    else:
        graph.graph.add("MatMul", a, b, to=node.output[0])
    return True


def _recurrent(graph: _Dequantised, node: onnx.NodeProto, names: Sequence[str]) -> bool:
    """DynamicQuantizeLSTM: an LSTM's inputs, whose weights are transposed, and their scales."""
    weights = []
    for k in (1, 2):
        data, scale, zero = (graph.array(names[m]) for m in (k, 6 + 2 * k, 7 + 2 * k))
        if data is None or scale is None or zero is None:
            return False
        lines = [-1 if part.ndim > 1 else 1 for part in (scale, zero)]
        scale, zero = (
            part.reshape(len(data), 1, line)
            for part, line in zip((scale, zero), lines, strict=True)
        )
        number = (data.astype(np.int64) - zero).astype(np.float32) * scale
        weights.append(graph.graph.constant(number.transpose(0, 2, 1).copy()))
    inputs = [names[0], *weights, *names[3:8]]
    while not inputs[-1]:
        inputs.pop()
    graph.graph.put("LSTM", inputs, node.output, **attributes_of(node))
    return True


_Rule: TypeAlias = "Callable[[_Dequantised, onnx.NodeProto, Sequence[str]], bool]"
#: Places of operands that are numbers, where it is not the first alone; none for all.
_DATA: Mapping[str, Sequence[int]] = MappingProxyType({"Add": (), "Concat": (), "Pad": (0, 2)})
_RULES: Mapping[str, _Rule] = MappingProxyType(
    {
        "ConvInteger": _product("Conv"),
        "DequantizeLinear": _dequantize,
        "DynamicQuantizeLSTM": _recurrent,
        "DynamicQuantizeLinear": _from_largest,
        "DynamicQuantizeMatMul": _dynamic_product,
        "MatMulInteger": _product("MatMul"),
        "MatMulIntegerToFloat": _scaled_product,
        "QGemm": _linear("Gemm", 0, 3, scale=7, bias=6, axis=1),
        "QLinearAdd": _linear("Add", 0, 3, scale=6),
        "QLinearAveragePool": _linear("AveragePool", 0, scale=3),
        "QLinearConcat": _joined,
        "QLinearConv": _linear("Conv", 0, 3, scale=6, bias=8),
        "QLinearGlobalAveragePool": _linear("GlobalAveragePool", 0, scale=3),
        "QLinearLeakyRelu": _linear("LeakyRelu", 0, scale=3),
        "QLinearMatMul": _linear("MatMul", 0, 3, scale=6, axis=-1),
        "QLinearMul": _linear("Mul", 0, 3, scale=6),
        "QLinearSigmoid": _linear("Sigmoid", 0, scale=3),
        "QLinearSoftmax": _linear("Softmax", 0, scale=3),
        "QLinearWhere": _linear("Where", 1, 4, scale=7),
        "QuantizeLinear": _quantize,
    }
)

__all__ = ["dequantised", "is_quantised"]
