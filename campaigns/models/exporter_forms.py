"""Small models in the forms that exporters write: blocks of real networks, not single ops.

Each form is a function that writes a block on a `Sheet`. `FORMS` says from which op set on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np
from onnx import helper, numpy_helper

from . import exporter_images as images
from .exporter_sheet import BOOL, FLOAT, INT64, Sheet

if TYPE_CHECKING:
    from onnx import ModelProto


# Normalisations.


def _layer_norm(s: Sheet, x: str, width: int) -> str:
    """A LayerNormalization, fused or written out."""
    scale, bias = s.weight(width), s.weight(width)
    if s.opset >= 17 and s.rng.random() < 0.5:
        return str(s.op("LayerNormalization", x, scale, bias, axis=-1, epsilon=1e-5))
    centred = s.op("Sub", x, s.mean(x, -1))
    squared = (
        s.op("Pow", centred, s.const(2.0))
        if s.rng.random() < 0.7
        else s.op("Mul", centred, centred)
    )
    spread = s.op("Sqrt", s.op("Add", s.mean(squared, -1), s.const(1e-5)))
    return str(s.op("Add", s.op("Mul", s.op("Div", centred, spread), scale), bias))


def _rms_norm(s: Sheet, x: str, width: int) -> str:
    if s.opset >= 23 and s.rng.random() < 0.5:
        return str(s.op("RMSNormalization", x, s.weight(width), axis=-1))
    squared = s.mean(s.op("Pow", x, s.const(2.0)), -1)
    root = s.op("Sqrt", s.op("Add", squared, s.const(1e-6)))
    if s.rng.random() < 0.5:
        return str(s.op("Mul", s.weight(width), s.op("Mul", x, s.op("Reciprocal", root))))
    return str(s.op("Mul", s.weight(width), s.op("Div", x, root)))


def unit_length(s: Sheet) -> None:
    """functional.normalize: ReduceL2, Clip, Expand, Div."""
    x = s.input("x", s.batch(), s.open("seq", 5), 8)
    norm = s.reduce("ReduceL2", 18, x, -1)
    low = s.op("Clip", norm, s.const(1e-12)) if s.opset >= 11 else s.op("Clip", norm, min=1e-12)
    s.output(s.op("Div", x, s.op("Expand", low, s.op("Shape", x))))


# Attention.


def _mask(s: Sheet, x: str) -> str:
    """A causal mask of (length, length), added to scores, in one of the usual ways."""
    length = s.size(x, 1, vector=True)
    square = s.shape(length, length)
    way = int(s.rng.integers(4))
    if way == 0 and s.opset >= 14:
        full = s.op("Expand", s.const(-1e4), square)
        return str(s.op("Trilu", full, s.const(1, "int64"), upper=1))
    if way == 1 and s.opset >= 11:
        steps = s.op("Range", s.const(0, "int64"), s.squeeze(length, 0), s.const(1, "int64"))
        later = s.op("Less", s.unsqueeze(steps, 1), s.unsqueeze(steps, 0))
        return str(s.op("Where", later, s.const(-np.inf), s.const(0.0)))
    value = numpy_helper.from_array(np.array([1.0], np.float32))
    ones = s.op("ConstantOfShape", square, value=value)
    if way == 2 and s.opset >= 14:
        lower = s.cast(s.op("Trilu", ones, upper=0), "bool")
        return str(s.op("Where", lower, s.const(0.0), s.const([-1e9])))
    return str(s.op("Mul", s.op("Sub", s.const(1.0), ones), s.const(-1e4)))


def attention(s: Sheet) -> None:
    """A block of a transformer encoder: heads by computed Reshapes, a mask, a residual."""
    heads, width = 2, 8
    x = s.input("x", s.batch(), s.open("seq", 5), heads * width)
    batch, length = s.size(x, 0, vector=True), s.size(x, 1, vector=True)
    parts = []
    if s.rng.random() < 0.5:
        both = s.linear(x, heads * width, 3 * heads * width)
        parts = s.split(both, [heads * width] * 3, -1 if s.opset >= 11 else 2)
    else:
        parts = [s.linear(x, heads * width, heads * width) for _ in range(3)]
    q, k, v = (
        s.transpose(s.reshape(part, batch, length, heads, width), 0, 2, 1, 3) for part in parts
    )
    scores = s.op("MatMul", q, s.transpose(k, 0, 1, 3, 2))
    scores = s.op("Div", scores, s.const(width**0.5))
    scores = s.op("Add", scores, _mask(s, x))
    mixed = s.transpose(s.op("MatMul", s.softmax(scores), v), 0, 2, 1, 3)
    out = s.linear(s.reshape(mixed, batch, length, heads * width), heads * width, heads * width)
    s.output(_layer_norm(s, s.op("Add", x, out), heads * width))


def masked_encoder(s: Sheet) -> None:
    """BERT: ids and attention_mask, embeddings of tokens, positions and types, an added mask."""
    batch, seq = s.batch(), s.open("sequence", 6)
    ids = s.input("input_ids", batch, seq, dtype="int64")
    mask = s.input("attention_mask", batch, seq, dtype="int64")
    words = s.op("Gather", s.weight(30, 16), ids, axis=0)
    length = s.size(ids, 1, vector=True)
    positions = s.part(s.const(np.arange(20)[None], "int64"), 0, length, 1)
    placed = s.op("Gather", s.weight(20, 16), positions, axis=0)
    x = _layer_norm(s, s.op("Add", s.op("Add", words, s.weight(1, 1, 16)), placed), 16)
    wide = s.cast(s.unsqueeze(mask, 1, 2), "float32")
    bias = s.op("Mul", s.op("Sub", s.const(1.0), wide), s.const(-1e4))
    rows = s.size(ids, 0, vector=True)
    q, k, v = (
        s.transpose(s.reshape(s.linear(x, 16, 16), rows, length, 2, 8), 0, 2, 1, 3)
        for _ in range(3)
    )
    scores = s.op("Div", s.op("MatMul", q, s.transpose(k, 0, 1, 3, 2)), s.const(8**0.5))
    mixed = s.transpose(s.op("MatMul", s.softmax(s.op("Add", scores, bias)), v), 0, 2, 1, 3)
    first = s.op("Gather", s.reshape(mixed, rows, length, 16), s.const(0, "int64"), axis=1)
    s.output(s.op("Tanh", s.op("Gemm", first, s.weight(3, 16), s.weight(3), transB=1)))


def rotary(s: Sheet) -> None:
    """Rotary positions, computed from a Range, on queries of a decoder."""
    batch, seq = s.batch(), s.open("seq", 5)
    x = s.input("x", batch, seq, 2, 8)
    length = s.size(x, 1)
    steps = s.op("Range", s.const(0, "int64"), length, s.const(1, "int64"))
    rates = s.const(1 / 10000 ** (np.arange(0, 8, 2) / 8))
    angles = (
        s.op("Einsum", s.cast(steps, "float32"), rates, equation="i,j->ij")
        if s.opset >= 12 and s.rng.random() < 0.4
        else s.op("Mul", s.unsqueeze(s.cast(steps, "float32"), 1), s.unsqueeze(rates, 0))
    )
    both = s.op("Concat", angles, angles, axis=-1)
    cos, sin = (s.unsqueeze(s.op(name, both), 0, 1) for name in ("Cos", "Sin"))
    q = s.transpose(x, 0, 2, 1, 3)
    low, high = s.part(q, 0, 4, 3), s.part(q, 4, 2**31 - 1, 3)
    turned = s.op("Concat", s.op("Neg", high), low, axis=-1)
    s.output(s.op("Add", s.op("Mul", q, cos), s.op("Mul", turned, sin)))


def key_cache(s: Sheet) -> None:
    """A decoder's step with past keys; each key serves several heads."""
    batch = s.batch()
    q = s.input("q", batch, 4, s.open("seq", 1), 8)
    past = s.input("past_key", batch, 2, s.open("past", 3), 8)
    new = s.input("key", batch, 2, 1, 8)
    keys = s.op("Concat", past, new, axis=2)
    rows, length = s.size(keys, 0, vector=True), s.size(keys, 2, vector=True)
    wide = s.op("Expand", s.unsqueeze(keys, 2), s.shape(rows, 2, 2, length, 8))
    every = s.reshape(wide, rows, 4, length, 8)
    scores = s.op("Mul", s.op("MatMul", q, s.transpose(every, 0, 1, 3, 2)), s.const(8**-0.5))
    s.output(s.softmax(scores), keys)


def padding_mask(s: Sheet) -> None:
    """Lengths to a mask by Range, Expand and Where."""
    batch = s.batch()
    x = s.input("x", batch, s.open("time", 7), 6)
    lengths = s.input("lengths", batch, dtype="int64")
    steps = s.op("Range", s.const(0, "int64"), s.size(x, 1), s.const(1, "int64"))
    inside = s.op("Less", s.unsqueeze(steps, 0), s.unsqueeze(lengths, 1))
    kept = s.op("Where", s.unsqueeze(inside, 2), x, s.const(0.0))
    sums = s.total(kept, 1, keep=0)
    s.output(s.op("Div", sums, s.unsqueeze(s.cast(lengths, "float32"), 1)))


def windows(s: Sheet) -> None:
    """Swin: a shift by slices, windows by six axes, a bias of positions, a mask of five axes."""
    x = s.input("x", s.batch(), 8, 8, 4)
    rolled = s.op("Concat", s.part(x, 2, 2**31 - 1, 1), s.part(x, 0, 2, 1), axis=1)
    parted = s.transpose(s.reshape(rolled, -1, 2, 4, 2, 4, 4), 0, 1, 3, 2, 4, 5)
    tokens = s.reshape(parted, -1, 16, 4)
    q = s.transpose(s.reshape(s.linear(tokens, 4, 4), -1, 16, 2, 2), 0, 2, 1, 3)
    scores = s.op("MatMul", q, s.transpose(q, 0, 1, 3, 2))
    scores = s.op("Add", scores, s.unsqueeze(s.weight(2, 16, 16), 0))
    many = s.reshape(scores, -1, 4, 2, 16, 16)
    masked = s.op("Add", many, s.unsqueeze(s.weight(4, 16, 16), 0, 2))
    s.output(s.softmax(s.reshape(masked, -1, 2, 16, 16)))


def fused_attention(s: Sheet) -> None:
    """The ops of op set 23: Attention with a mask, RMSNormalization."""
    q = s.input("q", s.batch(), 2, s.open("seq", 5), 8)
    mask = s.const(np.triu(np.full((1, 1, 5, 5), -1e4), 1)) if s.rng.random() < 0.5 else ""
    y = s.op("Attention", q, q, q, *([mask] if mask else []))
    s.output(_rms_norm(s, y, 8))


def rms_block(s: Sheet) -> None:
    """A gated block of a language model."""
    x = s.input("x", s.batch(), s.open("seq", 5), 8)
    y = _rms_norm(s, x, 8)
    gate = s.op("MatMul", y, s.weight(8, 12))
    gated = s.op(
        "Mul", s.op("Mul", gate, s.op("Sigmoid", gate)), s.op("MatMul", y, s.weight(8, 12))
    )
    s.output(s.op("Add", x, s.op("MatMul", gated, s.weight(12, 8))))


# Recurrences.


def _recurrent(s: Sheet, op: str, gates: int) -> None:
    batch, both = s.batch(), s.rng.random() < 0.5
    x = s.input("x", batch, s.open("time", 6), 4)
    swapped = s.transpose(x, 1, 0, 2)
    d, hidden = 1 + both, 3
    rows = s.size(x, 0, vector=True)
    start = s.op("Expand", s.const(np.zeros((d, 1, hidden))), s.shape(d, rows, hidden))
    weights = [s.weight(d, gates * hidden, n) for n in (4, hidden)]
    direction = "bidirectional" if both else "forward"
    y = s.op(op, swapped, *weights, s.weight(d, 2 * gates * hidden), "", start,
             *([start] if op == "LSTM" else []), count=2, hidden_size=hidden,
             direction=direction)[0]  # fmt: skip
    flat = s.transpose(y, 2, 0, 1, 3) if both else s.squeeze(y, 1)
    if both:
        merged = s.reshape(flat, 0, 0, -1)
        s.output(s.op("Sigmoid", s.linear(merged, 2 * hidden, 5)))
    else:
        s.output(s.op("Sigmoid", s.linear(s.transpose(flat, 1, 0, 2), hidden, 5)))


def gru(s: Sheet) -> None:
    """A GRU between transposes, its first state expanded to the batch."""
    _recurrent(s, "GRU", 3)


def lstm(s: Sheet) -> None:
    """The same with an LSTM."""
    _recurrent(s, "LSTM", 4)


# Speech.


def features(s: Sheet) -> None:
    """A spectrogram by a convolution, mel filters, a logarithm, the mean over time removed."""
    x = s.input("waveform", s.batch(), s.open("samples", 64))
    y = s.op("Conv", s.unsqueeze(x, 1), s.weight(10, 1, 8), strides=[4], kernel_shape=[8])
    real, other = s.part(y, 0, 5, 1), s.part(y, 5, 10, 1)
    power = s.op("Add", s.op("Pow", real, s.const(2.0)), s.op("Mul", other, other))
    mel = s.op("MatMul", s.weight(4, 5), power)
    logs = s.op("Log", s.op("Max", mel, s.const(1e-10)))
    top = s.op("ReduceMax", logs, keepdims=0)
    logs = s.op("Max", logs, s.op("Sub", top, s.const(8.0)))
    s.output(s.op("Sub", logs, s.mean(logs, 2)))


# Control.


def branches(s: Sheet) -> None:
    """Squeeze as PyTorch exports it: an If by a size, whose branches have other ranks."""
    x = s.input("x", s.batch(), s.open("c", 1), 4)
    one = s.op("Equal", s.size(x, 1), s.const(1, "int64"))
    bodies = []
    for word in ("then", "else"):
        b = s.body(word)
        b.output(b.squeeze(x, 1) if word == "then" else b.op("Identity", x))
        bodies.append(b.graph(word))
    y = s.op("If", one, then_branch=bodies[0], else_branch=bodies[1])
    s.output(s.op("Mul", y, s.weight(4)))


def repetition(s: Sheet) -> None:
    """A Loop that adds a bias to a state, and stacks it."""
    x = s.input("x", s.batch(), 4)
    b = s.body("loop")
    b.inputs = [
        helper.make_tensor_value_info("i", INT64, []),
        helper.make_tensor_value_info("go", BOOL, []),
        helper.make_tensor_value_info("state", FLOAT, None),
    ]
    state = b.op("Add", b.op("Mul", "state", b.weight(4)), b.cast("i", "float32"))
    going, copy = b.op("Identity", "go"), b.op("Identity", state)
    b.output(going, dtype="bool")
    b.output(state, copy)
    last, every = s.op(
        "Loop", s.const(3, "int64"), s.const(True, "bool"), x, count=2, body=b.graph("body")
    )
    s.output(s.op("Add", last, s.mean(every, 0, keep=0)))


def sequences(s: Sheet) -> None:
    """SplitToSequence, SequenceAt, ConcatFromSequence."""
    x = s.input("x", s.batch(), 6, 4)
    pieces = s.op("SplitToSequence", x, s.ints(2, 4), axis=1)
    first, second = (s.op("SequenceAt", pieces, s.const(k, "int64")) for k in (0, 1))
    y = s.op("Mul", first, s.weight(1, 2, 4))
    z = s.op("Add", second, s.weight(4))
    both = s.op("SequenceConstruct", y, z)
    s.output(s.op("ConcatFromSequence", both, axis=1))


def local_functions(s: Sheet) -> None:
    """A graph as PyTorch's newer exporter writes it: a call of a function of the file."""
    domain = "pkg.onnxscript.torch_lib"
    x = s.input("x", s.batch(), s.open("seq", 5), 8)
    nodes = [
        helper.make_node("Constant", [], ["root"], value_float=2**0.5),
        helper.make_node("Constant", [], ["half"], value_float=0.5),
        helper.make_node("Constant", [], ["unit"], value_float=1.0),
        helper.make_node("Div", ["a", "root"], ["d"]),
        helper.make_node("Erf", ["d"], ["e"]),
        helper.make_node("Add", ["e", "unit"], ["f"]),
        helper.make_node("Mul", ["a", "f"], ["g"]),
        helper.make_node("Mul", ["g", "half"], ["r"]),
    ]
    ids = [helper.make_opsetid("", s.opset)]
    s.functions.append(helper.make_function(domain, "aten_gelu", ["a"], ["r"], nodes, ids))
    s.output(s.linear(s.op("aten_gelu", s.linear(x, 8, 12), domain=domain), 12, 8))


# Indices.


def ranking(s: Sheet) -> None:
    """TopK and GatherElements, a weight of the best."""
    x = s.input("x", s.batch(), s.open("n", 12))
    most = s.op("Min", s.size(x, 1, vector=True), s.ints(4)) if s.opset >= 12 else s.ints(4)
    values, places = s.op("TopK", x, most, count=2, axis=1)
    again = s.op("GatherElements", x, places, axis=1)
    s.output(s.op("Mul", s.op("Sub", values, s.mean(values, 1)), again))


def scatter(s: Sheet) -> None:
    """An assignment to a slice, as ScatterND with indices of Range and Expand."""
    x = s.input("x", s.batch(), 6, 4)
    update = s.op("Mul", s.part(x, 0, 1, 1), s.weight(1, 1, 4))
    rows = s.op("Range", s.const(0, "int64"), s.size(x, 0), s.const(1, "int64"))
    n = s.size(x, 0, vector=True)
    indices = s.op("Concat", s.reshape(rows, -1, 1),
                   s.op("Expand", s.const([[2]], "int64"), s.shape(n, 1)), axis=1)  # fmt: skip
    y = s.op("ScatterND", x, indices, s.squeeze(update, 1))
    s.output(s.op("Add", y, x))


def positions(s: Sheet) -> None:
    """RoBERTa: positions by CumSum of a mask of ids."""
    ids = s.input("ids", s.batch(), s.open("seq", 6), dtype="int64")
    kept = s.cast(s.op("Not", s.op("Equal", ids, s.const(1, "int64"))), "int32")
    counted = s.op("CumSum", kept, s.const(1, "int32"))
    places = s.op("Add", s.cast(s.op("Mul", counted, kept), "int64"), s.const(1, "int64"))
    s.output(s.op("Add", s.op("Gather", s.weight(20, 8), places), s.op("Gather", s.weight(30, 8),
                                                                       ids)))  # fmt: skip


def contraction(s: Sheet) -> None:
    """Einsum of attention scores, of a bilinear form, and with an ellipsis."""
    q = s.input("q", s.batch(), s.open("seq", 5), 2, 4)
    scores = s.op("Einsum", q, q, equation="bqhd,bkhd->bhqk")
    y = s.op("Einsum", s.softmax(s.op("Mul", scores, s.const(0.5))), q,
             equation="bhqk,bkhd->bqhd")  # fmt: skip
    s.output(s.op("Einsum", y, s.weight(4, 3), equation="...d,de->...e"))


_SINCE: Mapping[int, tuple[Callable[[Sheet], None], ...]] = {
    9: (attention, features, gru, lstm, rms_block, unit_length, windows, images.channels_last,
        images.group_norm, images.pyramid, images.shuffle, images.squeeze_excite,
        images.yolo_head),
    11: (branches, masked_encoder, padding_mask, ranking, repetition, rotary, scatter, sequences,
         images.dynamic_quantisation, images.suppression),
    13: (contraction, key_cache, images.free_anchors, images.quantised_image),
    14: (positions,),
    18: (local_functions,),
    23: (fused_attention,),
}  # fmt: skip
#: Each form, with its first op set.
FORMS: Mapping[str, tuple[Callable[[Sheet], None], int]] = {
    form.__name__: (form, since) for since, forms in _SINCE.items() for form in forms
}
#: Op sets that exporters write.
OPSETS = (9, 11, 12, 13, 14, 16, 17, 18, 20, 21, 23, 24)


def write_form(name: str, seed: int, *, fixed: bool = False) -> ModelProto:
    """The model of a form; the seed decides its op set, its open sizes and its ways.

    Args:
        name: one of `FORMS`.
        seed: a number.
        fixed: all sizes of inputs are numbers.
    """
    rng = np.random.default_rng([seed, sorted(FORMS).index(name)])
    form, since = FORMS[name]
    opset = int(rng.choice([n for n in OPSETS if n >= since]))
    sheet = Sheet(rng, opset, fixed)
    form(sheet)
    return sheet.model()
