"""Rows of :mod:`.lower` for products, normalisations and recurrent layers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType

from ...ir.graph import Value
from .sites import weights
from .writer import NoWords, Row, Writer


def _inner_product(w: Writer) -> None:
    if w.whole(8):
        raise NoWords
    shape = w.numbers(w.input())
    count = w.whole(0)
    if count < 1:
        raise NoWords
    wide = w.whole(2) // count
    matrix = len(shape) == 2 and shape[1] == wide
    if not matrix and math.prod(shape) != wide:
        raise NoWords
    data = w.input() if matrix else w.step("Reshape", w.input(), w.wholes((1, wide)))
    turned = w.step("Transpose", w.weight("weight", (count, wide)), perm=(1, 0))
    product = w.step("MatMul", data, turned)
    product = w.step("Add", product, w.weight("bias")) if w.whole(1) else product
    if not matrix:
        product = w.step("Reshape", product, w.wholes((count,)))
    w.finish(product, activation=True)


#: The shape of a Gemm's C weight, by its kind.
_ADDENDS = {0: (1, 1), 1: (-1, 1), 2: (-1, 1), 3: None, 4: (1, -1)}


def _gemm(w: Writer) -> None:
    """alpha * A @ B + beta * C."""
    if w.whole(18) or w.whole(12) or w.whole(13):
        raise NoWords
    own = {value.name for name in "ABC" for value in weights(w.node, name)}
    blobs = [value for value in w.node.inputs if value is not None and value.name not in own]
    if len(blobs) < (not w.whole(4)) + (not w.whole(5)):
        raise NoWords
    a = w.weight("A") if w.whole(4) else blobs.pop(0)
    b = w.weight("B") if w.whole(5) else blobs.pop(0)
    if len(w.sizes(a)) != 2 or len(w.sizes(b)) != 2:
        raise NoWords
    a = w.step("Transpose", a, perm=(1, 0)) if w.whole(2) else a
    b = w.step("Transpose", b, perm=(1, 0)) if w.whole(3) else b
    product = w.step("MatMul", a, b)
    alpha, beta = w.real(0, 1.0), w.real(1, 1.0)
    if alpha != 1:
        product = w.step("Mul", product, w.constant(alpha))
    addend = _addend(w, blobs)
    if addend is not None:
        addend = w.step("Mul", addend, w.constant(beta)) if beta != 1 else addend
        product = w.step("Add", product, addend)
    if w.whole(14):
        product = w.step("Transpose", product, perm=(1, 0))
    if w.whole(11):
        product = w.step("Unsqueeze", product, w.wholes((1,)))
    w.finish(product)


def _addend(w: Writer, blobs: list[Value]) -> Value | None:
    if w.whole(6):
        kind = w.whole(10)
        if kind == -1:
            return None
        if kind not in _ADDENDS:
            raise NoWords
        return w.weight("C", _ADDENDS[kind])
    if not blobs:
        return None
    shape = w.numbers(w.node.outputs[0])
    rows, columns = (shape[0], shape[-1])[:: -1 if w.whole(14) else 1]
    shape = w.numbers(blobs[0])
    # A vector aligns with the rows if it has their number, else with the columns.
    if shape in ((rows,), (columns,)) and rows != columns:
        target = (rows, 1) if shape == (rows,) else (1, columns)
        return w.step("Reshape", blobs[0], w.wholes(target))
    if shape in ((rows, columns), (1, columns), (rows, 1), (1,)):
        return blobs[0]
    raise NoWords


# Normalisations.


def _outer_axis(w: Writer, value: Value) -> Value:
    """A vector aligned with the outermost axis."""
    return value if w.rank == 1 else w.step("Unsqueeze", value, w.wholes(range(1, w.rank)))


def _batch_norm(w: Writer) -> None:
    """(x - mean) / sqrt(variance + eps) * slope + bias."""
    slope, mean, variance, bias = (
        _outer_axis(w, w.weight(name)) for name in ("slope", "mean", "variance", "bias")
    )
    if w.real(1, 0.0):
        variance = w.step("Add", variance, w.constant(w.real(1, 0.0)))
    scale = w.step("Div", slope, w.step("Sqrt", variance))
    centred = w.step("Sub", w.input(), mean)
    w.last("Add", w.step("Mul", centred, scale), bias)


def _normalised(w: Writer, value: Value, axes: tuple[int, ...], eps: float, centre: bool) -> Value:
    """The data normalised by its mean and deviation along axes."""
    over = w.wholes(axes)
    if centre:
        value = w.step("Sub", value, w.step("ReduceMean", value, over, keepdims=1))
    power = w.step("ReduceMean", w.step("Mul", value, value), over, keepdims=1)
    spread = w.step("Sqrt", w.step("Add", power, w.constant(eps)))
    return w.step("Div", value, spread)


def _scaled(w: Writer, value: Value, *shaped: Value) -> None:
    """The value times the first weight, plus the second."""
    for op, weight in zip(("Mul", "Add"), shaped, strict=False):
        value = w.step(op, value, weight)
    w.finish(value)


def _instance_norm(w: Writer) -> None:
    if w.rank < 3:
        raise NoWords
    axes = tuple(range(1, w.rank))
    normalised = _normalised(w, w.input(), axes, w.real(1, 1e-3), True)
    names = ("gamma", "beta") if w.whole(2, 1) else ()
    _scaled(w, normalised, *(_outer_axis(w, w.weight(name)) for name in names))


def _group_norm(w: Writer) -> None:
    shape, sets = w.numbers(w.input()), w.whole(0, 1)
    if sets < 1 or shape[0] != w.whole(1) or shape[0] % sets:
        raise NoWords
    grid = w.step("Reshape", w.input(), w.wholes((sets, -1)))
    normalised = _normalised(w, grid, (1,), w.real(2, 1e-3), True)
    normalised = w.step("Reshape", normalised, w.wholes(shape))
    names = ("gamma", "beta") if w.whole(3, 1) else ()
    _scaled(w, normalised, *(_outer_axis(w, w.weight(name)) for name in names))


def _trailing_norm(centre: bool) -> Row:
    """LayerNorm and RMSNorm, over the inner axes that the line's count covers."""

    def write(w: Writer) -> None:
        shape, count = w.numbers(w.input()), w.whole(0)
        axes = 1 if shape[-1] == count else 2
        if math.prod(shape[-axes:]) != count or axes >= max(len(shape), 2):
            raise NoWords
        over = tuple(range(len(shape) - axes, len(shape)))
        normalised = _normalised(w, w.input(), over, w.real(1, 1e-3), centre)
        names = ["gamma", "beta"][: 2 if centre else 1] if w.whole(2, 1) else []
        _scaled(w, normalised, *(w.weight(name, shape[-axes:]) for name in names))

    return write


# Others with weights.


def _embed(w: Writer) -> None:
    if w.whole(18):
        raise NoWords
    count, words = w.whole(0), w.whole(1)
    table = w.weight("weight", (words, count))
    if w.input().dtype != "int32":
        raise NoWords  # the bits of floats, read as integers
    # An index outside the table is clamped.
    indices = w.step("Max", w.input(), w.wholes((0,), "int32"))
    indices = w.step("Min", indices, w.wholes((words - 1,), "int32"))
    rows = w.step("Gather", table, indices, axis=0)
    w.finish(w.step("Add", rows, w.weight("bias")) if w.whole(2) else rows)


def _attended(w: Writer, q: Value, k: Value, v: Value, mask: Value | None, scale: float) -> Value:
    """Heads of queries, keys and values: (heads, rows, columns)."""
    product = w.step("MatMul", q, w.step("Transpose", k, perm=(0, 2, 1)))
    product = w.step("Mul", product, w.constant(scale))
    product = product if mask is None else w.step("Add", product, mask)
    return w.step("MatMul", w.step("Softmax", product, axis=-1), v)


def _attention(w: Writer) -> None:
    """MultiHeadAttention; a missing key is the query, a missing value is the key."""
    if w.whole(18) or w.whole(7) or len(w.node.outputs) != 1:
        raise NoWords
    embed, heads = w.whole(0), w.whole(1)
    if embed < 1 or heads < 1 or embed % heads:
        raise NoWords
    wide = embed // heads
    blobs = [value for value in w.node.inputs if value is not None and not _own(w, value)]
    mask = blobs.pop() if w.whole(5) else None
    q = blobs[0]
    k = blobs[1] if len(blobs) > 1 else q
    v = blobs[2] if len(blobs) > 2 else k
    sizes = {"q": w.whole(2) // embed, "k": w.whole(3, embed), "v": w.whole(4, embed)}
    parts = []
    for name, data in (("q", q), ("k", k), ("v", v)):
        matrix = w.weight(f"{name}_weight", (embed, sizes[name]))
        projection = w.step("MatMul", data, w.step("Transpose", matrix, perm=(1, 0)))
        projection = w.step("Add", projection, w.weight(f"{name}_bias"))
        projection = w.step("Reshape", projection, w.wholes((-1, heads, wide)))
        parts.append(w.step("Transpose", projection, perm=(1, 0, 2)))
    scale = w.real(6, 1 / math.sqrt(wide))
    heads_out = _attended(w, parts[0], parts[1], parts[2], mask, scale)
    rows = w.step("Transpose", heads_out, perm=(1, 0, 2))
    rows = w.step("Reshape", rows, w.wholes((-1, embed)))
    matrix = w.step("Transpose", w.weight("out_weight", (sizes["q"], embed)), perm=(1, 0))
    w.last("Add", w.step("MatMul", rows, matrix), w.weight("out_bias"))


def _own(w: Writer, value: Value) -> bool:
    """Whether a value is a weight of the layer."""
    return value.constant and value.name.startswith(f"{w.node.name}.")


def _sdpa(w: Writer) -> None:
    if w.whole(7) or w.whole(18) or len(w.node.outputs) != 1:
        raise NoWords
    q, k, v = (w.input(at) for at in range(3))
    heads, others = w.numbers(q)[0], w.numbers(k)[0]
    if heads != others:  # several heads of queries share one head of keys
        if heads % others:
            raise NoWords
        k, v = (_repeated(w, value, heads // others) for value in (k, v))
    mask = w.input(3) if w.whole(5) else None
    scale = w.real(6, 0.0) or 1 / math.sqrt(w.numbers(q)[-1])
    w.finish(_attended(w, q, k, v, mask, scale))


def _repeated(w: Writer, value: Value, times: int) -> Value:
    heads, rows, columns = w.numbers(value)
    stacked = w.step("Unsqueeze", value, w.wholes((1,)))
    stacked = w.step("Expand", stacked, w.wholes((heads, times, rows, columns)))
    return w.step("Reshape", stacked, w.wholes((heads * times, rows, columns)))


def _mean_variance(w: Writer) -> None:
    """MVN: a blob of fewer axes is one channel."""
    shape = w.numbers(w.input())
    data = w.input()
    if len(shape) < 3:
        data = w.step("Reshape", data, w.wholes((1,) * (3 - len(shape)) + shape))
    rank = max(len(shape), 3)
    axes = w.wholes(range(rank) if w.whole(1) else range(1, rank))
    centred = w.step("Sub", data, w.step("ReduceMean", data, axes, keepdims=1))
    if w.whole(0):
        power = w.step("ReduceMean", w.step("Mul", centred, centred), axes, keepdims=1)
        spread = w.step("Add", w.step("Sqrt", power), w.constant(w.real(2, 1e-4)))
        centred = w.step("Div", centred, spread)
    w.finish(centred)


def _rows(w: Writer, value: Value, count: int, order: tuple[int, ...]) -> Value:
    """Blocks of `count` rows along axis 1 in another order."""
    parts = [
        w.step("Slice", value, w.wholes((k * count,)), w.wholes(((k + 1) * count,)), w.wholes((1,)))
        for k in order
    ]
    return w.step("Concat", *parts, axis=1)


#: ONNX's order of gates by ncnn's numbers, and of the biases of data and state; -1: no bias.
_GATES: Mapping[str, tuple[tuple[int, ...], tuple[int, ...]]] = MappingProxyType(
    {
        "RNN": ((0,), (0, -1)),
        "GRU": ((1, 0, 2), (1, 0, 2, -1, -1, 3)),
        "LSTM": ((0, 2, 1, 3), (0, 2, 1, 3, -1, -1, -1, -1)),
    }
)


def _recurrent(op: str) -> Row:
    """One sequence as a batch of one; states have one row per direction."""

    def write(w: Writer) -> None:
        count, way = w.whole(0), w.whole(2)
        if w.whole(8) or count < 1 or way not in (0, 1, 2) or w.whole(3, count) != count:
            raise NoWords
        gates, biases = _GATES[op]
        directions = 2 if way == 2 else 1
        bias = w.weight("bias_c", (directions, -1))
        none = w.step(
            "Mul",
            w.step("Slice", bias, w.wholes((0,)), w.wholes((count,)), w.wholes((1,))),
            w.constant(0.0),
        )
        parts = [
            none if k < 0 else _rows(w, bias, count, (k,)) for k in biases
        ]  # fmt: skip
        data = w.step("Unsqueeze", w.input(), w.wholes((1,)))
        blobs = [value for value in w.node.inputs if value is not None and not _own(w, value)]
        states = [w.step("Unsqueeze", value, w.wholes((1,))) for value in blobs[1:]]
        outputs = len(w.node.outputs)
        if outputs not in (1, 1 + (2 if op == "LSTM" else 1)):
            raise NoWords
        results = w.several(
            op,
            outputs,
            data,
            _rows(w, w.weight("weight_xc"), count, gates),
            _rows(w, w.weight("weight_hc"), count, gates),
            w.step("Concat", *parts, axis=1),
            None,
            *states,
            hidden_size=count,
            direction=("forward", "reverse", "bidirectional")[way],
            linear_before_reset=1 if op == "GRU" else None,
        )
        ends = [w.step("Squeeze", value, w.wholes((1,))) for value in results[1:]]
        rows = w.step("Squeeze", results[0], w.wholes((2,)))
        w.finish_all([w.step("Reshape", rows, w.wholes((0, -1))), *ends])

    return write


def _glu(w: Writer) -> None:
    shape, axis = w.numbers(w.input()), w.whole(0)
    axis += len(shape) if axis < 0 else 0
    half = shape[axis] // 2
    first, second = (
        w.step("Slice", w.input(), w.wholes((k * half,)), w.wholes(((k + 1) * half,)),
               w.wholes((axis,)))
        for k in (0, 1)
    )  # fmt: skip
    w.last("Mul", first, w.step("Sigmoid", second))


def _cumulated(w: Writer) -> None:
    w.last("CumSum", w.input(), w.wholes((w.whole(0),)))


PRODUCTS: Mapping[str, Row] = MappingProxyType(
    {
        "InnerProduct": _inner_product,
        "Gemm": _gemm,
        "BatchNorm": _batch_norm,
        "InstanceNorm": _instance_norm,
        "GroupNorm": _group_norm,
        "LayerNorm": _trailing_norm(True),
        "RMSNorm": _trailing_norm(False),
        "Embed": _embed,
        "MultiHeadAttention": _attention,
        "SDPA": _sdpa,
        **{op: _recurrent(op) for op in _GATES},
        "MVN": _mean_variance,
        "GLU": _glu,
        "CumulativeSum": _cumulated,
    }
)
