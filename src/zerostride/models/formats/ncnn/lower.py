"""ncnn's layers in ONNX's words, where those mean exactly the same.

Blobs have no batch axis, so what ONNX says of samples (convolutions, pooling) has no exact words
here; its shapes come from the table of layers. A BinaryOp of two blobs is said by ncnn's own plan:
its operands reshaped to it, where the sizes are numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from ....errors import BroadcastError, ModelError
from ...graph import Node, Value
from .shapes import cuts, order, spans
from .sites import ELTWISE, binary_op, find_site, onnx_name, weights, whole
from .sizes import Call, Sizes, Unknown, Wrong
from .text import Layer

#: The op set whose words are used.
OPSET = 21
Words = tuple[Node, ...] | None


class _No(Exception):  # noqa: N818 - an answer, not a fault
    """There are no such words."""


def lower(node: Node) -> Words:
    """The layer in ONNX's words, or None."""
    row = ROWS.get(node.op) if node.domain == "ncnn" else None
    if row is None or not node.outputs:
        return None
    writer = _Writer(node)
    try:
        row(writer)
    except (_No, Unknown, Wrong, ModelError, BroadcastError):
        return None
    return tuple(writer.nodes)


class _Writer:
    """Collects the nodes that stand for one."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.nodes: list[Node] = []

    def input(self, position: int = 0) -> Value:
        """An operand; there are no words where it is missing."""
        found = self.node.inputs[position] if position < len(self.node.inputs) else None
        if found is None:
            raise _No
        return found

    @property
    def rank(self) -> int:
        """How many axes the first operand has."""
        return len(self.sizes(self.input()))

    def sizes(self, value: Value) -> tuple[Any, ...]:
        """A value's sizes, numbers or not."""
        if value.shape is None:
            raise _No
        return value.shape

    def numbers(self, value: Value) -> tuple[int, ...]:
        """A value's sizes, if all are numbers."""
        if value.shape is None or not value.known:
            raise _No
        return tuple(size for size in value.shape if isinstance(size, int))

    def call(self) -> Call:
        """The layer as its formula asks for it."""
        node = self.node
        blobs = [v for v in node.inputs if v is not None][:1]
        shapes: list[Sizes] = [self.numbers(value) for value in blobs]
        params = {int(key): value for key, value in node.attributes.items()}
        names = tuple(value.name for value in node.outputs)
        layer = Layer(0, 0, node.op, node.name, tuple(v.name for v in blobs), names, params)
        return Call(layer, tuple(shapes))

    def whole(self, number: int, default: int = 0) -> int:
        """A whole-number parameter."""
        return whole(self.node, number, default)

    def real(self, number: int, default: float) -> float:
        """A real parameter."""
        found = self.node.attributes.get(str(number), default)
        if not isinstance(found, int | float):
            raise _No
        return float(found)

    def wholes(self, numbers: Iterable[int]) -> Value:
        """A constant list of whole numbers."""
        content = tuple(numbers)
        name = f"{self.node.name}.numbers{len(self.nodes)}"
        return Value(name, (len(content),), True, content, dtype="int64")

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

    def step(self, op: str, *operands: Value, last: bool = False, **attributes: Any) -> Value:
        """A node between; the last one hands out the layer's own results."""
        node = self.node
        position = len(self.nodes)
        outputs = node.outputs if last else (Value(f"{node.name}.{position}", None),)
        name = node.name if last else f"{node.name}.{position}"
        kept = {key: value for key, value in attributes.items() if value is not None}
        self.nodes.append(
            Node(name, op, "", OPSET, operands, outputs, kept, node.scope, place=node.place)
        )
        return outputs[0]

    def last(self, op: str, *operands: Value, **attributes: Any) -> None:
        """The node that hands out the layer's own results."""
        self.step(op, *operands, last=True, **attributes)


Row = Callable[[_Writer], None]


def _plain(op: str, **attributes: Any) -> Row:
    """One operand, the same op."""

    def write(w: _Writer) -> None:
        w.last(op, w.input(), **attributes)

    return write


def _needs(row: Row, **wanted: float) -> Row:
    """A row that holds where parameters have these values: p0=1.0."""

    def write(w: _Writer) -> None:
        for key, value in wanted.items():
            if w.real(int(key[1:]), value) != value:
                raise _No
        row(w)

    return write


def _memory(w: _Writer) -> None:
    if not w.node.outputs[0].constant or w.node.outputs[0].shape is None:
        raise _No
    w.last("Constant")


def _split(w: _Writer) -> None:
    """The same for every reader."""
    for value in w.node.outputs:
        w.nodes.append(
            Node(w.node.name, "Identity", "", OPSET, (w.input(),), (value,), place=w.node.place)
        )


def _reshaped(w: _Writer) -> None:
    w.last("Reshape", w.input(), w.wholes(w.numbers(w.node.outputs[0])))


def _tiled(w: _Writer) -> None:
    """What repeats axes of extent 1 alone is an Expand."""
    old, new = w.numbers(w.input()), w.numbers(w.node.outputs[0])
    if len(old) != len(new) or any(a not in (1, b) for a, b in zip(old, new, strict=True)):
        raise _No
    w.last("Expand", w.input(), w.wholes(new))


def _unsqueezed(w: _Writer) -> None:
    axes = w.node.attributes.get("3", ())
    if not axes or w.rank + len(axes) > 4 or len(w.sizes(w.node.outputs[0])) == w.rank:
        raise _No
    w.last("Unsqueeze", w.input(), w.wholes(axes))


def _permuted(w: _Writer) -> None:
    found = order(w.rank, w.whole(0))
    if found is None:
        raise _No
    w.last("Transpose", w.input(), perm=found)


def _concat(w: _Writer) -> None:
    w.last("Concat", *(w.input(k) for k in range(len(w.node.inputs))), axis=w.whole(0))


def _sliced(w: _Writer) -> None:
    parts = [size for size in cuts(w.call()) if isinstance(size, int)]
    if sum(parts) != w.numbers(w.input())[w.whole(1)]:
        raise _No  # what is left over goes nowhere, which a Split refuses
    w.last("Split", w.input(), w.wholes(parts), axis=w.whole(1))


def _cropped(w: _Writer) -> None:
    texts = any(str(number) in w.node.attributes for number in (19, 20, 21))
    if len(w.node.inputs) != 1 or texts:
        raise _No
    found = spans(w.call())
    starts, ends = ([int(pair[k]) for pair in found] for k in (0, 1))
    if min(starts) < 0:
        raise _No
    w.last("Slice", w.input(), w.wholes(starts), w.wholes(ends), w.wholes(range(len(found))))


#: UnaryOp's numbers; those without exact words are left out.
_UNARY: Mapping[int, str] = MappingProxyType(
    {
        0: "Abs",
        1: "Neg",
        2: "Floor",
        3: "Ceil",
        5: "Sqrt",
        7: "Exp",
        8: "Log",
        9: "Sin",
        10: "Cos",
        11: "Tan",
        12: "Asin",
        13: "Acos",
        14: "Atan",
        15: "Reciprocal",
        16: "Tanh",
        18: "Round",
        22: "Sinh",
        23: "Asinh",
        24: "Cosh",
        25: "Acosh",
        26: "Atanh",
    }
)


def _unary(w: _Writer) -> None:
    number = w.whole(0)
    if number == 4:
        w.last("Mul", w.input(), w.input())
    elif number == 6:
        w.last("Reciprocal", w.step("Sqrt", w.input()))
    elif number in _UNARY:
        w.last(_UNARY[number], w.input())
    else:
        raise _No


def _relu(w: _Writer) -> None:
    slope = w.real(0, 0.0)
    if slope:
        w.last("LeakyRelu", w.input(), alpha=slope)
    else:
        w.last("Relu", w.input())


def _clip(w: _Writer) -> None:
    low, high = w.real(0, -3.402823466e38), w.real(1, 3.402823466e38)
    w.last("Clip", w.input(), w.constant(low), w.constant(high))


def _swish(w: _Writer) -> None:
    w.last("Mul", w.input(), w.step("Sigmoid", w.input()))


def _hard_sigmoid(w: _Writer) -> None:
    w.last("HardSigmoid", w.input(), alpha=w.real(0, 0.2), beta=w.real(1, 0.5))


def _hard_swish(w: _Writer) -> None:
    gate = w.step("HardSigmoid", w.input(), alpha=w.real(0, 0.2), beta=w.real(1, 0.5))
    w.last("Mul", w.input(), gate)


def _gelu(w: _Writer) -> None:
    w.last("Gelu", w.input(), approximate="tanh" if w.whole(0) else "none")


def _softmax(w: _Writer) -> None:
    w.last("Softmax", w.input(), axis=w.whole(0))


#: Reduction's operations, after "Reduce".
_REDUCTIONS: Mapping[int, str] = MappingProxyType(
    {
        0: "Sum",
        1: "L1",
        2: "SumSquare",
        3: "Mean",
        4: "Max",
        5: "Min",
        6: "Prod",
        7: "L1",
        8: "L2",
        9: "LogSum",
        10: "LogSumExp",
    }
)


def _reduced(w: _Writer) -> None:
    operation, rank = w.whole(0), w.rank
    if w.real(2, 1.0) != 1.0 or operation not in _REDUCTIONS:
        raise _No
    name = f"Reduce{_REDUCTIONS[operation]}"
    axes = range(rank) if w.whole(1, 1) or rank == 1 else w.node.attributes.get("3", ())
    places = {axis % rank for axis in axes}
    kept = bool(w.whole(4))
    operands = (w.input(), w.wholes(sorted(places)))
    if len(places) == rank and not kept:  # a blob has one axis at least
        whole_ = w.step(name, *operands, keepdims=0)
        w.last("Reshape", whole_, w.wholes((1,)))
    elif places:
        w.last(name, *operands, keepdims=int(kept))
    else:
        w.last("Identity", w.input())


def _binary(w: _Writer) -> None:
    """With a number the op with a constant, with a blob both as ncnn's plan lays them."""
    found = binary_op(w.node)
    if found is None or "onnx" not in found[0].names or onnx_name(found[0]) == found[0].name:
        raise _No
    op, backwards = found
    name = onnx_name(op)
    if w.whole(1):
        pair = (w.input(), w.constant(w.real(2, 0.0)))
        w.last(name, *(pair[::-1] if backwards else pair))
        return
    site = find_site(w.node)
    if site is None or len(site.operands) != 2:
        raise _No
    values = [part.tensor for part in site.operands if part.tensor is not None]
    plan = site.plan((w.numbers(values[0]), w.numbers(values[1])))
    operands = [
        value if shape == aligned else w.step("Reshape", value, w.wholes(aligned))
        for value, shape, aligned in zip(values, plan.operands, plan.aligned, strict=True)
    ]
    w.last(name, *operands)


def _eltwise(w: _Writer) -> None:
    name = ELTWISE.get(w.whole(0))
    values = [w.input(k) for k in range(len(w.node.inputs))]
    if name is None or len({w.numbers(value) for value in values}) != 1:
        raise _No
    weights_ = w.node.attributes.get("1", ())
    if name == "Sum" and weights_:
        if len(weights_) != len(values):
            raise _No
        pairs = zip(values, weights_, strict=True)
        values = [v if one == 1 else w.step("Mul", v, w.constant(one)) for v, one in pairs]
    if name != "Mul":
        w.last(name, *values)
        return
    product = values[0]
    for value in values[1:-1]:
        product = w.step("Mul", product, value)
    w.last("Mul", product, values[-1])


def _channels(w: _Writer, name: str) -> Value:
    """A weight along the outermost axis, as ONNX lays it out."""
    (value,) = weights(w.node, name) or (None,)
    if value is None or value.shape is None:
        raise _No
    data = w.sizes(w.input())
    if value.shape != data[:1] and not (name == "slope" and value.shape == (1,)):
        raise _No
    return value if w.rank == 1 else w.step("Unsqueeze", value, w.wholes(range(1, w.rank)))


def _prelu(w: _Writer) -> None:
    w.last("PRelu", w.input(), _channels(w, "slope"))


def _scale(w: _Writer) -> None:
    scale = _channels(w, "scale")
    if not w.whole(1):
        w.last("Mul", w.input(), scale)
        return
    w.last("Add", w.step("Mul", w.input(), scale), _channels(w, "bias"))


def _bias(w: _Writer) -> None:
    if w.rank < 3:
        raise _No  # one channel, to which only the first number goes
    w.last("Add", w.input(), _channels(w, "bias"))


def _matmul(w: _Writer) -> None:
    ranks = [len(w.sizes(w.input(k))) for k in (0, 1)]
    if ranks == [1, 1]:
        raise _No  # a number has one axis in ncnn
    second = w.input(1)
    if w.whole(0) and ranks[1] > 1:
        axes = (*range(ranks[1] - 2), ranks[1] - 1, ranks[1] - 2)
        second = w.step("Transpose", second, perm=axes)
    w.last("MatMul", w.input(), second)


def _identity(w: _Writer) -> None:
    if len(w.node.inputs) != 1 or len(w.node.outputs) != 1:
        raise _No
    w.last("Identity", w.input())


_EXP_OR_LOG: Mapping[str, float] = {"p0": -1.0, "p1": 1.0, "p2": 0.0}

ROWS: Mapping[str, Row] = MappingProxyType(
    {
        "MemoryData": _memory,
        "Split": _split,
        "Noop": _identity,
        "DeepCopy": _identity,
        "Dropout": _needs(_identity, p0=1.0),
        "Reshape": _reshaped,
        "Squeeze": _reshaped,
        "Flatten": _reshaped,
        "ExpandDims": _unsqueezed,
        "Tile": _tiled,
        "Permute": _permuted,
        "Concat": _concat,
        "Slice": _sliced,
        "Crop": _cropped,
        "UnaryOp": _unary,
        "AbsVal": _plain("Abs"),
        "BNLL": _plain("Softplus"),
        "CELU": lambda w: w.last("Celu", w.input(), alpha=w.real(0, 1.0)),
        "Clip": _clip,
        "ELU": lambda w: w.last("Elu", w.input(), alpha=w.real(0, 0.1)),
        "Erf": _plain("Erf"),
        "Exp": _needs(_plain("Exp"), **_EXP_OR_LOG),
        "Log": _needs(_plain("Log"), **_EXP_OR_LOG),
        "GELU": _gelu,
        "HardSigmoid": _hard_sigmoid,
        "HardSwish": _hard_swish,
        "Mish": _plain("Mish"),
        "ReLU": _relu,
        "SELU": lambda w: w.last(
            "Selu", w.input(), alpha=w.real(0, 1.67326324), gamma=w.real(1, 1.050700987)
        ),
        "Sigmoid": _plain("Sigmoid"),
        "Softmax": _softmax,
        "Softplus": _plain("Softplus"),
        "Swish": _swish,
        "TanH": _plain("Tanh"),
        "Reduction": _reduced,
        "BinaryOp": _binary,
        "Eltwise": _eltwise,
        "PReLU": _prelu,
        "Scale": _scale,
        "Bias": _bias,
        "MatMul": _matmul,
    }
)

__all__ = ["ROWS", "lower"]
