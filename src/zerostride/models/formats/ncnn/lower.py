"""Translates ncnn's layers to ONNX nodes of exactly the same meaning.

Blobs have no batch axis: ONNX ops on batches (convolutions, pooling) get a temporary one. For a
BinaryOp of two blobs the operands are reshaped by ncnn's plan, if their sizes are numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from ....errors import BroadcastError, ModelError
from ...ir.graph import Node, Value
from .lower_products import PRODUCTS
from .lower_windows import WINDOWS
from .shapes import cuts, order, spans
from .sites import ELTWISE, binary_op, find_site, onnx_name, weights
from .sizes import Unknown, Wrong
from .writer import OPSET, NoWords, Row, Words, Writer


def lower(node: Node) -> Words:
    """The layer as ONNX nodes, or None."""
    row = ROWS.get(node.op) if node.domain == "ncnn" else None
    if row is None or not node.outputs:
        return None
    sized = all(value is None or value.known for value in node.inputs)
    if node.inputs and sized and any(value.shape is None for value in node.outputs):
        return None  # the layer does not work on these sizes
    writer = Writer(node)
    try:
        row(writer)
    except (NoWords, Unknown, Wrong, ModelError, BroadcastError):
        return None
    return tuple(writer.nodes)


def _plain(op: str, **attributes: Any) -> Row:
    """A row for one operand and one op."""

    def write(w: Writer) -> None:
        w.last(op, w.input(), **attributes)

    return write


def _needs(row: Row, **wanted: float) -> Row:
    """A row for layers whose parameters have these values: p0=1.0."""

    def write(w: Writer) -> None:
        for key, value in wanted.items():
            if w.real(int(key[1:]), value) != value:
                raise NoWords
        row(w)

    return write


def _memory(w: Writer) -> None:
    if not w.node.outputs[0].constant or w.node.outputs[0].shape is None:
        raise NoWords
    w.last("Constant")


def _split(w: Writer) -> None:
    """An Identity for every reader."""
    for value in w.node.outputs:
        w.nodes.append(
            Node(w.node.name, "Identity", "", OPSET, (w.input(),), (value,), place=w.node.place)
        )


def _reshaped(w: Writer) -> None:
    w.last("Reshape", w.input(), w.wholes(w.numbers(w.node.outputs[0])))


def _tiled(w: Writer) -> None:
    """An Expand if only axes of extent 1 are repeated, else a Tile."""
    old, new = w.numbers(w.input()), w.numbers(w.node.outputs[0])
    padded = (1,) * (len(new) - len(old)) + old
    if (len(old), len(new)) == (3, 4):  # the outermost axis stays, and gets a depth of one
        padded = (old[0], 1, *old[1:])
    if padded == old and all(a in (1, b) for a, b in zip(old, new, strict=True)):
        w.last("Expand", w.input(), w.wholes(new))
        return
    data = w.input()
    if padded != old:
        data = w.step("Reshape", data, w.wholes(padded))
    w.last("Tile", data, w.wholes(b // a for a, b in zip(padded, new, strict=True)))


def _unsqueezed(w: Writer) -> None:
    axes = w.array(3)
    if not axes or w.rank + len(axes) > 4 or len(w.sizes(w.node.outputs[0])) == w.rank:
        raise NoWords
    w.last("Unsqueeze", w.input(), w.wholes(axes))


def _permuted(w: Writer) -> None:
    perm = order(w.rank, w.whole(0))
    if perm is None:
        raise NoWords
    w.last("Transpose", w.input(), perm=perm)


def _concat(w: Writer) -> None:
    w.last("Concat", *(w.input(k) for k in range(len(w.node.inputs))), axis=w.whole(0))


def _sliced(w: Writer) -> None:
    parts = [size for size in cuts(w.call()) if isinstance(size, int)]
    if sum(parts) != w.numbers(w.input())[w.whole(1)]:
        raise NoWords  # the parts do not cover the axis, which a Split refuses
    w.last("Split", w.input(), w.wholes(parts), axis=w.whole(1))


def _cropped(w: Writer) -> None:
    if w.whole(0) == -233:
        raise NoWords
    explicit = any({*pair} <= {*w.node.attributes} for pair in (("9", "10"), ("19", "20")))
    if len(w.node.inputs) > 1 and not explicit:
        sizes = w.numbers(w.node.outputs[0])
        keys = {1: (0,), 2: (1, 0), 3: (2, 1, 0), 4: (2, 13, 1, 0)}[w.rank]
        starts = [w.whole(key) for key in keys]
        ends = [start + size for start, size in zip(starts, sizes, strict=True)]
        if any(end > size for end, size in zip(ends, w.numbers(w.input()), strict=True)):
            raise NoWords
    else:
        pairs = spans(w.call())
        starts, ends = ([int(pair[k]) for pair in pairs] for k in (0, 1))
    if min(starts) < 0:
        raise NoWords
    w.last("Slice", w.input(), w.wholes(starts), w.wholes(ends), w.wholes(range(len(starts))))


#: UnaryOp's numbers with an exact ONNX op.
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
        20: "Sign",
        22: "Sinh",
        23: "Asinh",
        24: "Cosh",
        25: "Acosh",
        26: "Atanh",
    }
)


def _unary(w: Writer) -> None:
    number = w.whole(0)
    if number == 4:
        w.last("Mul", w.input(), w.input())
    elif number == 6:
        w.last("Reciprocal", w.step("Sqrt", w.input()))
    elif number == 17:
        w.last("Div", w.step("Log", w.input()), w.constant(math.log(10)))
    elif number == 19:
        sign = w.step("Sign", w.input())
        w.last("Mul", sign, w.step("Floor", w.step("Abs", w.input())))
    elif number == 21:
        w.last("Sub", w.step("Exp", w.input()), w.constant(1.0))
    elif number == 27:
        w.last("Log", w.step("Add", w.input(), w.constant(1.0)))
    elif number in _UNARY:
        w.last(_UNARY[number], w.input())
    else:
        raise NoWords


def _relu(w: Writer) -> None:
    slope = w.real(0, 0.0)
    if slope:
        w.last("LeakyRelu", w.input(), alpha=slope)
    else:
        w.last("Relu", w.input())


def _clip(w: Writer) -> None:
    low, high = w.real(0, -3.402823466e38), w.real(1, 3.402823466e38)
    w.last("Clip", w.input(), w.constant(low), w.constant(high))


def _affine(w: Writer, scale: float, shift: float) -> Value:
    """The data times a number, plus another."""
    value = w.input()
    value = value if scale == 1 else w.step("Mul", value, w.constant(scale))
    return value if shift == 0 else w.step("Add", value, w.constant(shift))


def _power(w: Writer) -> None:
    w.last("Pow", _affine(w, w.real(1, 1.0), w.real(2, 0.0)), w.constant(w.real(0, 1.0)))


def _exp(w: Writer) -> None:
    base, value = w.real(0, -1.0), _affine(w, w.real(1, 1.0), w.real(2, 0.0))
    w.last(*(("Exp", value) if base == -1 else ("Pow", w.constant(base), value)))


def _log(w: Writer) -> None:
    base, value = w.real(0, -1.0), _affine(w, w.real(1, 1.0), w.real(2, 0.0))
    logarithm = w.step("Log", value)
    w.finish(logarithm if base == -1 else w.step("Div", logarithm, w.step("Log", w.constant(base))))


def _threshold(w: Writer) -> None:
    above = w.step("Greater", w.input(), w.constant(w.real(0, 0.0)))
    w.last("Where", above, w.constant(1.0), w.constant(0.0))


def _lrn(w: Writer) -> None:
    if w.whole(0) or w.rank != 3 or not w.whole(1, 5) % 2:
        raise NoWords
    numbers = {"alpha": w.real(2, 1.0), "beta": w.real(3, 0.75), "bias": w.real(4, 1.0)}
    sample = w.step("Unsqueeze", w.input(), w.wholes((0,)))
    w.last("Squeeze", w.step("LRN", sample, size=w.whole(1, 5), **numbers), w.wholes((0,)))


def _flipped(w: Writer) -> None:
    """Reversed along axes: a slice by steps of -1."""
    axes = {axis % w.rank for axis in w.array(0)}
    if not axes:
        w.last("Identity", w.input())
        return
    axes = {0} if w.rank == 1 else axes
    ones = [-1] * len(axes)
    ends = [-(2**31)] * len(axes)
    order_ = w.wholes(sorted(axes))
    w.last("Slice", w.input(), w.wholes(ones), w.wholes(ends), order_, w.wholes(ones))


def _swish(w: Writer) -> None:
    w.last("Mul", w.input(), w.step("Sigmoid", w.input()))


def _hard_sigmoid(w: Writer) -> None:
    w.last("HardSigmoid", w.input(), alpha=w.real(0, 0.2), beta=w.real(1, 0.5))


def _hard_swish(w: Writer) -> None:
    gate = w.step("HardSigmoid", w.input(), alpha=w.real(0, 0.2), beta=w.real(1, 0.5))
    w.last("Mul", w.input(), gate)


def _gelu(w: Writer) -> None:
    w.last("Gelu", w.input(), approximate="tanh" if w.whole(0) else "none")


def _softmax(w: Writer) -> None:
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


def _reduced(w: Writer) -> None:
    operation, rank = w.whole(0), w.rank
    if w.real(2, 1.0) != 1.0 or operation not in _REDUCTIONS:
        raise NoWords
    name = f"Reduce{_REDUCTIONS[operation]}"
    axes = range(rank) if w.whole(1, 1) or rank == 1 else w.array(3)
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


def _binary(w: Writer) -> None:
    """With a number, the op with a constant; with a blob, both reshaped by ncnn's plan."""
    row = binary_op(w.node)
    if row is None or "onnx" not in row[0].names or onnx_name(row[0]) == row[0].name:
        raise NoWords
    op, backwards = row
    name = onnx_name(op)
    if w.whole(1):
        pair = (w.input(), w.constant(w.real(2, 0.0)))
        w.last(name, *(pair[::-1] if backwards else pair))
        return
    site = find_site(w.node)
    if site is None or len(site.operands) != 2:
        raise NoWords
    values = [part.tensor for part in site.operands if part.tensor is not None]
    plan = site.plan((w.numbers(values[0]), w.numbers(values[1])))
    operands = [
        value if shape == aligned else w.step("Reshape", value, w.wholes(aligned))
        for value, shape, aligned in zip(values, plan.operands, plan.aligned, strict=True)
    ]
    w.last(name, *operands)


def _eltwise(w: Writer) -> None:
    name = ELTWISE.get(w.whole(0))
    values = [w.input(k) for k in range(len(w.node.inputs))]
    if name is None or len({w.numbers(value) for value in values}) != 1:
        raise NoWords
    weights_ = w.array(1)
    if name == "Sum" and weights_:
        if len(weights_) != len(values):
            raise NoWords
        pairs = zip(values, weights_, strict=True)
        values = [v if weight == 1 else w.step("Mul", v, w.constant(weight)) for v, weight in pairs]
    if name != "Mul":
        w.last(name, *values)
        return
    product = values[0]
    for value in values[1:-1]:
        product = w.step("Mul", product, value)
    w.last("Mul", product, values[-1])


def _channels(w: Writer, name: str) -> Value:
    """A weight along the outermost axis, reshaped for ONNX."""
    (value,) = weights(w.node, name) or (None,)
    if value is None or value.shape is None:
        raise NoWords
    data = w.sizes(w.input())
    if value.shape != data[:1] and not (name == "slope" and value.shape == (1,)):
        raise NoWords
    return value if w.rank == 1 else w.step("Unsqueeze", value, w.wholes(range(1, w.rank)))


def _prelu(w: Writer) -> None:
    w.last("PRelu", w.input(), _channels(w, "slope"))


def _scale(w: Writer) -> None:
    scale = _channels(w, "scale")
    if not w.whole(1):
        w.last("Mul", w.input(), scale)
        return
    w.last("Add", w.step("Mul", w.input(), scale), _channels(w, "bias"))


def _bias(w: Writer) -> None:
    if w.rank < 3:  # one channel, which takes the first number
        first = w.step("Slice", w.weight("bias"), w.wholes((0,)), w.wholes((1,)))
        w.last("Add", w.input(), first)
        return
    w.last("Add", w.input(), _channels(w, "bias"))


def _matmul(w: Writer) -> None:
    ranks = [len(w.sizes(w.input(k))) for k in (0, 1)]
    second = w.input(1)
    if w.whole(0) and ranks[1] > 1:
        axes = (*range(ranks[1] - 2), ranks[1] - 1, ranks[1] - 2)
        second = w.step("Transpose", second, perm=axes)
    product = w.step("MatMul", w.input(), second)
    w.finish(w.step("Reshape", product, w.wholes((1,))) if ranks == [1, 1] else product)


def _identity(w: Writer) -> None:
    if len(w.node.inputs) != 1 or len(w.node.outputs) != 1:
        raise NoWords
    w.last("Identity", w.input())


ROWS: Mapping[str, Row] = MappingProxyType(
    {
        **WINDOWS,
        **PRODUCTS,
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
        "Exp": _exp,
        "Log": _log,
        "Power": _power,
        "Threshold": _threshold,
        "Shrink": lambda w: w.last("Shrink", w.input(), bias=w.real(0, 0.0), lambd=w.real(1, 0.5)),
        "LRN": _lrn,
        "Flip": _flipped,
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
