"""Writes ncnn's products, normalisations and recurrent layers as ONNX nodes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType

from ....ir.graph import Value
from ...lowering import Function, NoEquivalent
from ..sites import covered
from .writer import LayerWriter


def inner_product(w: LayerWriter) -> None:
    """InnerProduct: of each row of a matrix that fits, else of all elements."""
    if w.whole(8):
        raise NoEquivalent
    shape = w.numbers(w.input())
    count = w.whole(0)
    if count < 1:
        raise NoEquivalent
    wide = w.whole(2) // count
    matrix = len(shape) == 2 and shape[1] == wide
    if not matrix and math.prod(shape) != wide:
        raise NoEquivalent
    data = w.input() if matrix else w.op("Reshape", w.input(), w.ints(1, wide))
    turned = w.op("Transpose", w.weight("weight", (count, wide)), perm=(1, 0))
    product = w.op("MatMul", data, turned)
    product = w.op("Add", product, w.weight("bias")) if w.whole(1) else product
    if not matrix:
        product = w.op("Reshape", product, w.ints(count))
    w.finish(w.activated(product))


def gemm(w: LayerWriter) -> None:
    """alpha * A @ B + beta * C."""
    if w.whole(18) or w.whole(12) or w.whole(13):
        raise NoEquivalent
    blobs = w.blobs()
    if len(blobs) < (not w.whole(4)) + (not w.whole(5)):
        raise NoEquivalent
    a = w.weight("A") if w.whole(4) else blobs.pop(0)
    b = w.weight("B") if w.whole(5) else blobs.pop(0)
    if len(w.sizes(a)) != 2 or len(w.sizes(b)) != 2:
        raise NoEquivalent
    product = w.op("MatMul", *(w.transposed(v) if w.whole(k) else v for v, k in ((a, 2), (b, 3))))
    alpha, beta = w.real(0, 1.0), w.real(1, 1.0)
    if alpha != 1:
        product = w.op("Mul", product, w.number(alpha))
    addend = _addend(w, blobs)
    if addend is not None:
        addend = w.op("Mul", addend, w.number(beta)) if beta != 1 else addend
        product = w.op("Add", product, addend)
    if w.whole(14):
        product = w.op("Transpose", product, perm=(1, 0))
    if w.whole(11):
        product = w.op("Unsqueeze", product, w.ints(1))
    w.finish(product)


def _addend(w: LayerWriter, blobs: list[Value]) -> Value | None:
    if w.whole(6):
        kind = w.whole(10)
        return None if kind == -1 else w.weight("C", (-1, 1) if kind == 1 else None)
    if not blobs:
        return None
    shape = w.result_sizes()
    rows, columns = (shape[0], shape[-1])[:: -1 if w.whole(14) else 1]
    shape = w.numbers(blobs[0])
    # A vector aligns with the rows if it has their number, else with the columns.
    if shape in ((rows,), (columns,)) and rows != columns:
        target = (rows, 1) if shape == (rows,) else (1, columns)
        return w.op("Reshape", blobs[0], w.ints(*target))
    if shape in ((rows, columns), (1, columns), (rows, 1), (1,)):
        return blobs[0]
    raise NoEquivalent


# Normalisations.


def batch_norm(w: LayerWriter) -> None:
    """(x - mean) / sqrt(variance + eps) * slope + bias."""
    slope, mean, variance, bias = (
        w.along_channels(w.weight(name)) for name in ("slope", "mean", "variance", "bias")
    )
    if w.real(1, 0.0):
        variance = w.op("Add", variance, w.number(w.real(1, 0.0)))
    scale = w.op("Div", slope, w.op("Sqrt", variance))
    centred = w.op("Sub", w.input(), mean)
    w.last("Add", w.op("Mul", centred, scale), bias)


def _normalised(
    w: LayerWriter, value: Value, axes: tuple[int, ...], eps: float, centre: bool
) -> Value:
    """The data normalised by its mean and deviation along axes."""
    over = w.ints(*axes)
    if centre:
        value = w.op("Sub", value, w.op("ReduceMean", value, over, keepdims=1))
    power = w.op("ReduceMean", w.op("Mul", value, value), over, keepdims=1)
    spread = w.op("Sqrt", w.op("Add", power, w.number(eps)))
    return w.op("Div", value, spread)


def _scaled(w: LayerWriter, value: Value, *shaped: Value) -> None:
    """The value times the first weight, plus the second."""
    for op, weight in zip(("Mul", "Add"), shaped, strict=False):
        value = w.op(op, value, weight)
    w.finish(value)


def instance_norm(w: LayerWriter) -> None:
    """InstanceNorm: each channel normalised over its elements."""
    if w.rank() < 3:
        raise NoEquivalent
    axes = tuple(range(1, w.rank()))
    normalised = _normalised(w, w.input(), axes, w.real(1, 1e-3), True)
    names = ("gamma", "beta") if w.whole(2, 1) else ()
    _scaled(w, normalised, *(w.along_channels(w.weight(name)) for name in names))


def group_norm(w: LayerWriter) -> None:
    """GroupNorm: each group of channels normalised over its elements."""
    shape, sets = w.numbers(w.input()), w.whole(0, 1)
    if sets < 1 or shape[0] != w.whole(1) or shape[0] % sets:
        raise NoEquivalent
    grid = w.op("Reshape", w.input(), w.ints(sets, -1))
    normalised = _normalised(w, grid, (1,), w.real(2, 1e-3), True)
    normalised = w.op("Reshape", normalised, w.ints(*shape))
    names = ("gamma", "beta") if w.whole(3, 1) else ()
    _scaled(w, normalised, *(w.along_channels(w.weight(name)) for name in names))


def trailing_norm(centre: bool) -> Function[LayerWriter]:
    """LayerNorm and RMSNorm, over the inner axes that the line's count covers."""

    def write(w: LayerWriter) -> None:
        shape = w.numbers(w.input())
        axes = covered(shape, w.whole(0))
        if axes is None:
            raise NoEquivalent
        over = tuple(range(len(shape) - axes, len(shape)))
        normalised = _normalised(w, w.input(), over, w.real(1, 1e-3), centre)
        names = ["gamma", "beta"][: 2 if centre else 1] if w.whole(2, 1) else []
        _scaled(w, normalised, *(w.weight(name, shape[-axes:]) for name in names))

    return write


# Others with weights.


def embed(w: LayerWriter) -> None:
    """Embed: rows of a table; an index outside it is clamped."""
    if w.whole(18):
        raise NoEquivalent
    count, words = w.whole(0), w.whole(1)
    table = w.weight("weight", (words, count))
    if w.input().dtype != "int32":
        raise NoEquivalent  # the bits of floats, read as integers
    # An index outside the table is clamped.
    indices = w.op("Max", w.input(), w.ints(0, dtype="int32"))
    indices = w.op("Min", indices, w.ints(words - 1, dtype="int32"))
    rows = w.op("Gather", table, indices, axis=0)
    w.finish(w.op("Add", rows, w.weight("bias")) if w.whole(2) else rows)


def _attended(
    w: LayerWriter, q: Value, k: Value, v: Value, mask: Value | None, scale: float
) -> Value:
    """Heads of queries, keys and values: (heads, rows, columns)."""
    product = w.op("MatMul", q, w.op("Transpose", k, perm=(0, 2, 1)))
    product = w.op("Mul", product, w.number(scale))
    product = product if mask is None else w.op("Add", product, mask)
    return w.op("MatMul", w.op("Softmax", product, axis=-1), v)


def attention(w: LayerWriter) -> None:
    """MultiHeadAttention; a missing key is the query, a missing value is the key."""
    if w.whole(18) or w.whole(7) or len(w.node.outputs) != 1:
        raise NoEquivalent
    embed, heads = w.whole(0), w.whole(1)
    if embed < 1 or heads < 1 or embed % heads:
        raise NoEquivalent
    wide = embed // heads
    blobs = w.blobs()
    mask = blobs.pop() if w.whole(5) else None
    q = blobs[0]
    k = blobs[1] if len(blobs) > 1 else q
    v = blobs[2] if len(blobs) > 2 else k
    parts = []
    for name, data in (("q", q), ("k", k), ("v", v)):
        matrix = w.op("Transpose", w.weight(f"{name}_weight"), perm=(1, 0))
        projection = w.op("MatMul", data, matrix)
        projection = w.op("Add", projection, w.weight(f"{name}_bias"))
        projection = w.op("Reshape", projection, w.ints(-1, heads, wide))
        parts.append(w.op("Transpose", projection, perm=(1, 0, 2)))
    scale = w.real(6, 1 / math.sqrt(wide))
    heads_out = _attended(w, parts[0], parts[1], parts[2], mask, scale)
    rows = w.op("Transpose", heads_out, perm=(1, 0, 2))
    rows = w.op("Reshape", rows, w.ints(-1, embed))
    matrix = w.op("Transpose", w.weight("out_weight"), perm=(1, 0))
    w.last("Add", w.op("MatMul", rows, matrix), w.weight("out_bias"))


def sdpa(w: LayerWriter) -> None:
    """SDPA: attention of heads that are given."""
    if w.whole(7) or w.whole(18) or len(w.node.outputs) != 1:
        raise NoEquivalent
    q, k, v = (w.input(at) for at in range(3))
    heads, others = w.numbers(q)[0], w.numbers(k)[0]
    if heads != others:  # several heads of queries share one head of keys
        if heads % others:
            raise NoEquivalent
        k, v = (_repeated(w, value, heads // others) for value in (k, v))
    mask = w.input(3) if w.whole(5) else None
    scale = w.real(6, 0.0) or 1 / math.sqrt(w.numbers(q)[-1])
    w.finish(_attended(w, q, k, v, mask, scale))


def _repeated(w: LayerWriter, value: Value, times: int) -> Value:
    heads, rows, columns = w.numbers(value)
    stacked = w.op("Unsqueeze", value, w.ints(1))
    stacked = w.op("Expand", stacked, w.ints(heads, times, rows, columns))
    return w.op("Reshape", stacked, w.ints(heads * times, rows, columns))


def mean_variance(w: LayerWriter) -> None:
    """MVN: a blob of fewer axes is one channel."""
    data = w.reshaped(w.input(), w.result_sizes())
    rank = len(w.result_sizes())
    axes = w.ints(*range(rank) if w.whole(1) else range(1, rank))
    centred = w.op("Sub", data, w.op("ReduceMean", data, axes, keepdims=1))
    if w.whole(0):
        power = w.op("ReduceMean", w.op("Mul", centred, centred), axes, keepdims=1)
        spread = w.op("Add", w.op("Sqrt", power), w.number(w.real(2, 1e-4)))
        centred = w.op("Div", centred, spread)
    w.finish(centred)


#: ONNX's order of gates by ncnn's numbers, and of the biases of data and state; -1: no bias.
_GATES: Mapping[str, tuple[tuple[int, ...], tuple[int, ...]]] = MappingProxyType(
    {
        "RNN": ((0,), (0, -1)),
        "GRU": ((1, 0, 2), (1, 0, 2, -1, -1, 3)),
        "LSTM": ((0, 2, 1, 3), (0, 2, 1, 3, -1, -1, -1, -1)),
    }
)


def recurrent(op: str) -> Function[LayerWriter]:
    """One sequence as a batch of one; states have one row per direction."""

    def write(w: LayerWriter) -> None:
        count, way = w.whole(0), w.whole(2)
        if w.whole(8) or count < 1 or way not in (0, 1, 2) or w.whole(3, count) != count:
            raise NoEquivalent
        gates, biases = _GATES[op]
        directions = 2 if way == 2 else 1
        bias = w.weight("bias_c", (directions, -1))
        none = w.op("Mul", w.block(bias, 1, count, 0), w.number(0.0))
        parts = [none if k < 0 else w.block(bias, 1, count, k) for k in biases]
        data = w.op("Unsqueeze", w.input(), w.ints(1))
        blobs = w.blobs()
        states = [w.op("Unsqueeze", value, w.ints(1)) for value in blobs[1:]]
        outputs = len(w.node.outputs)
        if outputs not in (1, 1 + (2 if op == "LSTM" else 1)):
            raise NoEquivalent
        results = w.several(
            op,
            outputs,
            data,
            w.blocks(w.weight("weight_xc"), 1, count, gates),
            w.blocks(w.weight("weight_hc"), 1, count, gates),
            w.op("Concat", *parts, axis=1),
            None,
            *states,
            hidden_size=count,
            direction=("forward", "reverse", "bidirectional")[way],
            linear_before_reset=1 if op == "GRU" else None,
        )
        ends = [w.op("Squeeze", value, w.ints(1)) for value in results[1:]]
        rows = w.op("Squeeze", results[0], w.ints(2))
        for k, value in enumerate((w.op("Reshape", rows, w.ints(0, -1)), *ends)):
            w.result(k, "Identity", value)

    return write


def glu(w: LayerWriter) -> None:
    """GLU: the first half of an axis times the Sigmoid of the second."""
    shape, axis = w.numbers(w.input()), w.call().axis(0)
    first, second = (w.block(w.input(), axis, shape[axis] // 2, k) for k in (0, 1))
    w.last("Mul", first, w.op("Sigmoid", second))
