"""Writes ncnn's layers as ONNX nodes of exactly the same meaning.

Blobs have no batch axis: ONNX ops on batches (convolutions, pooling) get a temporary one. For a
BinaryOp of two blobs the operands are reshaped by ncnn's plan, if their sizes are numbers.
"""

from __future__ import annotations

from typing import Any

from .....ops import find_op
from ....ir.graph import Value
from ...lowering import FAR, FORMULAS, NoEquivalent, written_by
from ..shapes.call import number
from ..shapes.formulas import cuts, order, reduced_axes, repeated, spans
from ..sites import ELTWISE, binary, binary_op, onnx_name
from .writer import LayerWriter

# Layers that pass on or move elements.


def memory(w: LayerWriter) -> None:
    """MemoryData: a constant."""
    if not w.node.outputs[0].constant or w.node.outputs[0].shape is None:
        raise NoEquivalent
    w.last("Constant")


def split(w: LayerWriter) -> None:
    """Split: an Identity for every reader."""
    for k in range(len(w.node.outputs)):
        w.result(k, "Identity", w.input())


def identity(w: LayerWriter) -> None:
    """One operand, one result."""
    if len(w.node.inputs) != 1 or len(w.node.outputs) != 1:
        raise NoEquivalent
    w.last("Identity", w.input())


def dropout(w: LayerWriter) -> None:
    """Dropout: the operand, unless it is scaled."""
    if w.real(0, 1.0) != 1.0:
        raise NoEquivalent
    identity(w)


def reshaped(w: LayerWriter) -> None:
    """Reshape, Squeeze and Flatten: to the result's sizes."""
    w.last("Reshape", w.input(), w.ints(*w.result_sizes()))


def tiled(w: LayerWriter) -> None:
    """An Expand if only axes of extent 1 are repeated, else a Tile."""
    pairs = [(number(size), times) for size, times in repeated(w.call())]
    padded = tuple(size for size, _ in pairs)
    if padded == w.numbers(w.input()) and all(1 in pair for pair in pairs):
        w.last("Expand", w.input(), w.ints(*w.result_sizes()))
        return
    w.last("Tile", w.reshaped(w.input(), padded), w.ints(*(times for _, times in pairs)))


def unsqueezed(w: LayerWriter) -> None:
    """ExpandDims; beyond four axes the layer does nothing."""
    if len(w.sizes(w.node.outputs[0])) == w.rank():
        raise NoEquivalent
    w.last("Unsqueeze", w.input(), w.ints(*w.listed(3)))


def permuted(w: LayerWriter) -> None:
    """Permute: by the number of an order."""
    w.last("Transpose", w.input(), perm=order(w.rank(), w.whole(0)))


def sliced(w: LayerWriter) -> None:
    """Slice: parts along one axis."""
    parts = [size for size in cuts(w.call()) if isinstance(size, int)]
    if sum(parts) != w.numbers(w.input())[w.whole(1)]:
        raise NoEquivalent  # the parts do not cover the axis, which a Split refuses
    w.last("Split", w.input(), w.ints(*parts), axis=w.whole(1))


def cropped(w: LayerWriter) -> None:
    """Crop: by starts and ends, or to another blob's size."""
    pairs = [(number(start), number(end)) for start, end in spans(w.call())]
    if any(a < 0 or b > size for (a, b), size in zip(pairs, w.numbers(w.input()), strict=True)):
        raise NoEquivalent
    starts, ends = zip(*pairs, strict=True)
    w.last("Slice", w.input(), w.ints(*starts), w.ints(*ends), w.ints(*range(len(starts))))


def flipped(w: LayerWriter) -> None:
    """Flip: reversed along axes, a slice by steps of -1."""
    rank = w.rank()
    axes = sorted({axis % rank for axis in w.listed(0)})
    if not axes:
        w.last("Identity", w.input())
        return
    axes = [0] if rank == 1 else axes
    ones, ends = (w.ints(*[number] * len(axes)) for number in (-1, -FAR - 1))
    w.last("Slice", w.input(), ones, ends, w.ints(*axes), ones)


# Functions of each element.


def unary(w: LayerWriter) -> None:
    """UnaryOp: by the number of its function."""
    op = find_op(f"UnaryOp.{w.whole(0)}", "ncnn")
    if "onnx" not in op.names and op.name not in FORMULAS:
        raise NoEquivalent
    written_by(onnx_name(op))(w)


def relu(w: LayerWriter) -> None:
    """ReLU, with a slope below 0 or without."""
    slope = w.real(0, 0.0)
    w.last("LeakyRelu" if slope else "Relu", w.input(), alpha=slope or None)


def clip(w: LayerWriter) -> None:
    """Clip: between two numbers."""
    low, high = w.real(0, -3.402823466e38), w.real(1, 3.402823466e38)
    w.last("Clip", w.input(), w.number(low), w.number(high))


def _affine(w: LayerWriter) -> Value:
    """The data times parameter 1, plus parameter 2."""
    value, scale, shift = w.input(), w.real(1, 1.0), w.real(2, 0.0)
    value = value if scale == 1 else w.op("Mul", value, w.number(scale))
    return value if shift == 0 else w.op("Add", value, w.number(shift))


def power(w: LayerWriter) -> None:
    """Power: (scale * x + shift) ** exponent."""
    w.last("Pow", _affine(w), w.number(w.real(0, 1.0)))


def exponential(w: LayerWriter) -> None:
    """Exp: base ** (scale * x + shift)."""
    base, value = w.real(0, -1.0), _affine(w)
    w.last(*(("Exp", value) if base == -1 else ("Pow", w.number(base), value)))


def logarithm(w: LayerWriter) -> None:
    """Log: of scale * x + shift, to a base."""
    base, value = w.real(0, -1.0), w.op("Log", _affine(w))
    w.finish(value if base == -1 else w.op("Div", value, w.op("Log", w.number(base))))


def threshold(w: LayerWriter) -> None:
    """Threshold: 1 above a number, else 0."""
    above = w.op("Greater", w.input(), w.number(w.real(0, 0.0)))
    w.last("Where", above, w.number(1.0), w.number(0.0))


def hard_swish(w: LayerWriter) -> None:
    """HardSwish: the data times a HardSigmoid."""
    gate = w.op("HardSigmoid", w.input(), alpha=w.real(0, 0.2), beta=w.real(1, 0.5))
    w.last("Mul", w.input(), gate)


def lrn(w: LayerWriter) -> None:
    """LRN across channels, as a batch of one."""
    if w.whole(0) or w.rank() != 3 or not w.whole(1, 5) % 2:
        raise NoEquivalent
    numbers: dict[str, Any] = {
        "alpha": w.real(2, 1.0),
        "beta": w.real(3, 0.75),
        "bias": w.real(4, 1.0),
    }
    sample = w.op("Unsqueeze", w.input(), w.ints(0))
    w.last("Squeeze", w.op("LRN", sample, size=w.whole(1, 5), **numbers), w.ints(0))


def gelu(w: LayerWriter) -> None:
    """GELU, exact or by tanh."""
    w.last("Gelu", w.input(), approximate="tanh" if w.whole(0) else "none")


#: Reduction's operations, after "Reduce".
_REDUCTIONS = "Sum L1 SumSquare Mean Max Min Prod L1 L2 LogSum LogSumExp"


def reduced(w: LayerWriter) -> None:
    """Reduction over all or some axes; a blob keeps at least one axis."""
    operation, rank, names = w.whole(0), w.rank(), _REDUCTIONS.split()
    if w.real(2, 1.0) != 1.0 or not 0 <= operation < len(names):
        raise NoEquivalent
    name = f"Reduce{names[operation]}"
    places, kept = reduced_axes(w.call(), rank), w.flag(4)
    operands = (w.input(), w.ints(*sorted(places)))
    if len(places) == rank and not kept:
        w.last("Reshape", w.op(name, *operands, keepdims=0), w.ints(1))
    elif places:
        w.last(name, *operands, keepdims=int(kept))
    else:
        w.last("Identity", w.input())


# Layers that broadcast.


def binary_with_plan(w: LayerWriter) -> None:
    """With a number, the op with a constant; with a blob, both reshaped by ncnn's plan."""
    row = binary_op(w.node)
    if row is None or "onnx" not in row[0].names or onnx_name(row[0]) == row[0].name:
        raise NoEquivalent
    op, backwards = row
    name = onnx_name(op)
    if w.whole(1):
        pair = (w.input(), w.number(w.real(2, 0.0)))
        w.last(name, *(pair[::-1] if backwards else pair))
        return
    site = binary(w.node)
    if site is None or len(site.operands) != 2:
        raise NoEquivalent
    values = [part.tensor for part in site.operands if part.tensor is not None]
    plan = site.plan((w.numbers(values[0]), w.numbers(values[1])))
    w.last(name, *map(w.reshaped, values, plan.aligned))


def eltwise(w: LayerWriter) -> None:
    """Eltwise: blobs of one shape; a sum may have weights."""
    name, values = ELTWISE.get(w.whole(0)), w.inputs()
    if name is None or len({w.numbers(value) for value in values}) != 1:
        raise NoEquivalent
    scales = w.node.attributes.get("1", ())
    if name == "Sum" and scales:
        if not isinstance(scales, tuple) or len(scales) != len(values):
            raise NoEquivalent
        pairs = zip(values, scales, strict=True)
        values = [v if scale == 1 else w.op("Mul", v, w.number(scale)) for v, scale in pairs]
    if name != "Mul":
        w.last(name, *values)
        return
    product = values[0]
    for value in values[1:-1]:
        product = w.op("Mul", product, value)
    w.last("Mul", product, values[-1])


def _channels(w: LayerWriter, name: str) -> Value:
    """A weight with one number for each outermost extent, reshaped for ONNX."""
    value = w.weight(name)
    if value.shape != w.sizes(w.input())[:1] and not (name == "slope" and value.shape == (1,)):
        raise NoEquivalent
    return w.along_channels(value)


def prelu(w: LayerWriter) -> None:
    """PReLU: one slope, or one per channel."""
    w.last("PRelu", w.input(), _channels(w, "slope"))


def scale(w: LayerWriter) -> None:
    """Scale: a factor per channel, and a bias."""
    product = w.op("Mul", w.input(), _channels(w, "scale"))
    w.finish(w.op("Add", product, _channels(w, "bias")) if w.whole(1) else product)


def bias(w: LayerWriter) -> None:
    """Bias: one number per channel."""
    if w.rank() < 3:  # one channel, which takes the first number
        first = w.op("Slice", w.weight("bias"), w.ints(0), w.ints(1))
        w.last("Add", w.input(), first)
        return
    w.last("Add", w.input(), _channels(w, "bias"))


def matmul(w: LayerWriter) -> None:
    """MatMul: numpy.matmul, of a transposed second operand if wanted."""
    ranks = [w.rank(k) for k in (0, 1)]
    second = w.transposed(w.input(1)) if w.whole(0) and ranks[1] > 1 else w.input(1)
    product = w.op("MatMul", w.input(), second)
    w.finish(w.op("Reshape", product, w.ints(1)) if ranks == [1, 1] else product)
