"""tiny_vision.onnx: a small image network in which every common kind of broadcast occurs.

Its shapes are square on purpose: after the stem C = H = W = 8, and later there are 16 tokens of
16 numbers. NumPy aligns a vector of 8 with the last axis of (8,8,8), an engine that looks at
extents may take the first, and neither complains. The second stage is (16,4,4), where the same
pattern is safe. Both occur, so that a rule that depends on sizes is seen to.
"""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto

from builders.net import Net, around_one, model, value, weights

# Opset 23 (IR 11) is the newest that onnx 1.18, ONNX Runtime 1.22 and OpenVINO 2025 all read.
OPSET, IR_VERSION = 23, 11
HEADS, TOKENS, WIDTH, CLASSES = 4, 16, 16, 10
EPSILON = 2.0**-10


def build() -> onnx.ModelProto:
    net = Net()
    x = stem(net, "image")
    x = second_stage(net, x)
    x = squeeze_and_excite(net, x)
    x = gating_branch(net, x)
    x = to_tokens(net, x)
    x = attention(net, layer_norm(net, x, "norm1", seed=20), "keep", residual=x)
    x = quantised_mlp(net, layer_norm(net, x, "norm2", seed=24), residual=x)
    accepted = classifier(net, x)
    inputs = [value("image", (1, 3, 16, 16)), value("keep", (1, TOKENS))]
    outputs = [
        value("logits", (1, CLASSES)),
        value(accepted, (1, CLASSES), TensorProto.BOOL),
    ]
    return model(net.graph("tiny_vision", inputs, outputs), {"": OPSET}, IR_VERSION)


def stem(net: Net, image: str) -> str:
    """(1,3,16,16) -> (1,8,8,8): convolution, then scale and shift in three spellings."""
    mean = net.const("stem_mean", weights(3, 1, 1, seed=1))
    x = net.op("Sub", image, mean, name="stem/center")
    kernel = net.const("stem_kernel", weights(8, 3, 3, 3, seed=2))
    x = net.op("Conv", x, kernel, name="stem/conv", pads=[1, 1, 1, 1], strides=[2, 2])
    # A batch normalisation folded into element-wise ops, as exporters write it: (C,1,1).
    x = net.op("Mul", x, net.const("stem_scale", around_one(8, 1, 1)), name="stem/scale")
    x = net.op("Add", x, net.const("stem_shift", weights(8, 1, 1, seed=3)), name="stem/shift")
    # The same as one-dimensional constants: NumPy puts them on the width, and here W = C.
    x = net.op("Mul", x, net.const("stem_column", around_one(8, seed=4)), name="stem/column_scale")
    x = net.op("Add", x, net.const("stem_bias", weights(8, seed=5)), name="stem/column_shift")
    moments = [
        net.const("stem_bn_scale", around_one(8, seed=6)),
        net.const("stem_bn_bias", weights(8, seed=7)),
        net.const("stem_bn_mean", weights(8, seed=8)),
        net.const("stem_bn_var", around_one(8, seed=9)),
    ]
    x = net.op("BatchNormalization", x, *moments, name="stem/norm", epsilon=EPSILON)
    slope = net.const("stem_slope", around_one(8, 1, 1, seed=10))
    x = net.op("PRelu", x, slope, name="stem/prelu")
    bounds = net.const("stem_low", -6.0), net.const("stem_high", 6.0)
    return net.op("Clip", x, *bounds, name="stem/clip")


def second_stage(net: Net, x: str) -> str:
    """(1,8,8,8) -> (1,16,4,4): here a vector of W = 4 cannot be taken for the 16 channels."""
    kernel = net.const("stage_kernel", weights(16, 8, 3, 3, seed=11))
    bias = net.const("stage_conv_bias", weights(16, seed=12))
    x = net.op("Conv", x, kernel, bias, name="stage/conv", pads=[1, 1, 1, 1], strides=[2, 2])
    x = net.op("Add", x, net.const("stage_column", weights(4, seed=13)), name="stage/column_shift")
    rows = net.const("stage_rows", weights(4, 1, seed=14))
    x = net.op("Add", x, rows, name="stage/row_shift")
    floor = net.const("stage_floor", weights(16, 1, 1, seed=15) - 2)
    everywhere = net.const("stage_everywhere", np.full((1,), -2, dtype=np.float32))
    return net.op("Max", x, floor, everywhere, name="stage/floor")


def squeeze_and_excite(net: Net, x: str) -> str:
    """A gate of (1,16,1,1) times (1,16,4,4)."""
    squeezed = net.op("GlobalAveragePool", x, name="se/squeeze")
    down = net.const("se_down", weights(4, 16, 1, 1, seed=16))
    up = net.const("se_up", weights(16, 4, 1, 1, seed=17))
    hidden = net.op("Conv", squeezed, down, name="se/down")
    hidden = net.op("Relu", hidden, name="se/relu")
    gate = net.op("Sigmoid", net.op("Conv", hidden, up, name="se/up"), name="se/gate")
    return net.op("Mul", gate, x, name="se/excite")  # the smaller operand first, as some export


def gating_branch(net: Net, x: str) -> str:
    """A gate computed as (1,16), unsqueezed to (1,16,1,1); where it is low, x is halved."""
    pooled = net.op("ReduceMean", x, net.const("gate_axes", [2, 3]), name="gate/pool", keepdims=0)
    matrix = net.const("gate_weight", weights(WIDTH, WIDTH, seed=18))
    bias = net.const("gate_bias", weights(WIDTH, seed=19))
    gate = net.op("Gemm", pooled, matrix, bias, name="gate/gemm", transB=1)
    gate = net.op("Sigmoid", gate, name="gate/sigmoid")
    gate = net.op("Unsqueeze", gate, net.const("gate_last", [2, 3]), name="gate/unsqueeze")
    gated = net.op("Mul", x, gate, name="gate/mul")
    half = net.op("Mul", x, net.const("gate_half", 0.5), name="gate/half")
    is_open = net.op("Greater", gate, net.const("gate_threshold", 0.25), name="gate/is_open")
    return net.op("Where", is_open, gated, half, name="gate/select")


def to_tokens(net: Net, x: str) -> str:
    """(1,16,4,4) -> (1,16,16): sixteen tokens of sixteen numbers, plus an expanded embedding."""
    shape = net.const("token_shape", [1, WIDTH, TOKENS])
    x = net.op("Reshape", x, shape, name="tokens/flatten")
    x = net.op("Transpose", x, name="tokens/transpose", perm=[0, 2, 1])
    kind = net.const("token_kind", weights(1, WIDTH, seed=30))
    target = net.const("token_target", [1, TOKENS, WIDTH])
    kind = net.op("Expand", kind, target, name="tokens/expand")
    x = net.op("Add", x, kind, name="tokens/add_kind")
    position = net.const("token_position", weights(1, TOKENS, 1, seed=31))
    return net.op("Add", x, position, name="tokens/add_position")


def layer_norm(net: Net, x: str, scope: str, seed: int) -> str:
    """Layer normalisation written out; gamma and beta are vectors against a square (16,16)."""
    last = net.const(f"{scope}_axes", [-1])
    mean = net.op("ReduceMean", x, last, name=f"{scope}/mean", keepdims=1)
    centered = net.op("Sub", x, mean, name=f"{scope}/sub")
    squared = net.op("Pow", centered, net.const(f"{scope}_two", 2.0), name=f"{scope}/pow")
    variance = net.op("ReduceMean", squared, last, name=f"{scope}/variance", keepdims=1)
    epsilon = net.const(f"{scope}_epsilon", EPSILON)
    padded = net.op("Add", variance, epsilon, name=f"{scope}/add_epsilon")
    deviation = net.op("Sqrt", padded, name=f"{scope}/sqrt")
    x = net.op("Div", centered, deviation, name=f"{scope}/div")
    gamma = net.const(f"{scope}_gamma", around_one(WIDTH, seed=seed))
    beta = net.const(f"{scope}_beta", weights(WIDTH, seed=seed + 1))
    return net.op("Add", net.op("Mul", x, gamma, name=f"{scope}/mul"), beta, name=f"{scope}/add")


def attention(net: Net, x: str, keep: str, residual: str) -> str:
    """Four query heads share one key and one value head; three masks, each of its own rank."""
    size = WIDTH // HEADS
    query = heads(net, project(net, x, "query", WIDTH, seed=40), "query", HEADS)
    key = heads(net, project(net, x, "key", size, seed=42), "key", 1)
    values = heads(net, project(net, x, "value", size, seed=44), "value", 1)
    key = net.op("Transpose", key, name="attention/key_transpose", perm=[0, 1, 3, 2])
    # (1,4,16,4) times (1,1,4,16): the one key head serves all four.
    scores = net.op("MatMul", query, key, name="attention/scores")
    scores = net.op("Mul", scores, net.const("attention_scale", 0.5), name="attention/scale")
    # A learned bias by distance: (S,S).
    bias = net.const("attention_bias", weights(TOKENS, TOKENS, seed=46))
    scores = net.op("Add", scores, bias, name="attention/add_bias")
    # A padding mask that adds, from the input `keep`: (1,1,1,S).
    axes = net.const("attention_keep_axes", [1, 2])
    kept = net.op("Unsqueeze", keep, axes, name="attention/keep")
    dropped = net.op("Sub", net.const("attention_one", 1.0), kept, name="attention/dropped")
    penalty = net.const("attention_penalty", -1024.0)
    mask = net.op("Mul", dropped, penalty, name="attention/padding_mask")
    scores = net.op("Add", scores, mask, name="attention/add_padding_mask")
    # A second one that adds, (1,1,S,S), and a causal one that selects: (S,1) against (1,S).
    window = net.const("attention_window", -np.tri(TOKENS, k=-8, dtype=np.float32)[None, None])
    scores = net.op("Add", scores, window, name="attention/add_window")
    index = np.arange(TOKENS, dtype=np.int64)
    rows = net.const("attention_rows", index[:, None])
    columns = net.const("attention_columns", index[None, :])
    causal = net.op("GreaterOrEqual", rows, columns, name="attention/causal")
    scores = net.op("Where", causal, scores, penalty, name="attention/mask_causal")
    weight = net.op("Softmax", scores, name="attention/softmax", axis=-1)
    x = net.op("MatMul", weight, values, name="attention/mix")
    x = net.op("Transpose", x, name="attention/transpose", perm=[0, 2, 1, 3])
    shape = net.const("attention_merge", [1, TOKENS, WIDTH])
    x = net.op("Reshape", x, shape, name="attention/merge_heads")
    return net.op("Add", residual, x, name="attention/residual")


def project(net: Net, x: str, scope: str, width: int, seed: int) -> str:
    """(1,16,16) times a matrix, rank 3 against rank 2, plus a vector."""
    matrix = net.const(f"{scope}_weight", weights(WIDTH, width, seed=seed))
    bias = net.const(f"{scope}_bias", weights(width, seed=seed + 1))
    x = net.op("MatMul", x, matrix, name=f"{scope}/matmul")
    return net.op("Add", x, bias, name=f"{scope}/bias")


def heads(net: Net, x: str, scope: str, number: int) -> str:
    """(1,S,h*d) -> (1,h,S,d)."""
    shape = net.const(f"{scope}_shape", [1, TOKENS, number, WIDTH // HEADS])
    x = net.op("Reshape", x, shape, name=f"{scope}/split_heads")
    return net.op("Transpose", x, name=f"{scope}/transpose", perm=[0, 2, 1, 3])


def quantised_mlp(net: Net, x: str, residual: str) -> str:
    """An int8 matrix with one scale per column: axis=1 of a square, which axis 0 would fit too."""
    stored = (weights(WIDTH, WIDTH, seed=50) * 64).astype(np.int8)
    scale = net.const("mlp_scale", (around_one(WIDTH, seed=51) / 64).astype(np.float32))
    zero = net.const("mlp_zero", np.zeros(WIDTH, dtype=np.int8))
    matrix = net.const("mlp_weight", stored)
    matrix = net.op("DequantizeLinear", matrix, scale, zero, name="mlp/dequantize", axis=1)
    x = net.op("MatMul", x, matrix, name="mlp/matmul")
    x = net.op("Add", net.const("mlp_bias", weights(WIDTH, seed=52)), x, name="mlp/bias")
    x = net.op("Tanh", x, name="mlp/tanh")
    return net.op("Sum", residual, x, net.const("mlp_shift", 0.125), name="mlp/residual")


def classifier(net: Net, x: str) -> str:
    """Normalise with the standard op, pool, and compare every logit with its own threshold."""
    gamma = net.const("head_gamma", around_one(WIDTH, seed=60))
    beta = net.const("head_beta", weights(WIDTH, seed=61))
    x = net.op("LayerNormalization", x, gamma, beta, name="head/norm", epsilon=EPSILON)
    x = net.op("ReduceMean", x, net.const("head_axes", [1]), name="head/pool", keepdims=0)
    matrix = net.const("head_weight", weights(CLASSES, WIDTH, seed=62))
    bias = net.const("head_bias", weights(CLASSES, seed=63))
    logits = net.op("Gemm", x, matrix, bias, name="logits", transB=1)
    threshold = net.const("head_threshold", weights(CLASSES, seed=64))
    return net.op("Greater", logits, threshold, name="accepted")
