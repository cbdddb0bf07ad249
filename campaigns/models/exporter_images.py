"""Forms of networks for images, and of quantised ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from .exporter_sheet import Sheet


def group_norm(s: Sheet) -> None:
    """GroupNorm as PyTorch exports it: InstanceNormalization of a reshaped tensor."""
    x = s.input("x", s.batch(), 8, s.open("h", 6), s.open("w", 5))
    flat = s.reshape(x, 0, 4, -1)
    unit, zero = s.const(np.ones(4)), s.const(np.zeros(4))
    normal = s.op("InstanceNormalization", flat, unit, zero, epsilon=1e-5)
    back = s.op("Reshape", normal, s.op("Shape", x))
    scaled = s.op("Add", s.op("Mul", back, s.weight(8, 1, 1)), s.weight(8, 1, 1))
    s.output(s.conv(s.op("Mul", scaled, s.op("Sigmoid", scaled)), 8, 4))


def yolo_head(s: Sheet) -> None:
    """A head of YOLOv5: grids made of Range and Expand, or constant; xy, wh and the rest."""
    x = s.input("images", s.batch(), 4, 6, 6)
    y = s.reshape(s.conv(x, 4, 3 * 7, 1), -1, 3, 7, 6, 6)
    y = s.op("Sigmoid", s.transpose(y, 0, 1, 3, 4, 2))
    grid: Any = np.stack(np.meshgrid(np.arange(6), np.arange(6)), -1)[None, None]
    if s.opset >= 11 and s.rng.random() < 0.5:
        steps = s.cast(s.op("Range", s.const(0, "int64"), s.size(y, 2), s.const(1, "int64")),
                       "float32")  # fmt: skip
        square = s.shape(s.size(y, 2, vector=True), s.size(y, 3, vector=True))
        rows = s.op("Expand", s.unsqueeze(steps, 1), square)
        columns = s.op("Expand", s.unsqueeze(steps, 0), square)
        places = s.op("Concat", s.unsqueeze(columns, -1), s.unsqueeze(rows, -1), axis=-1)
        places = s.unsqueeze(places, 0, 1) if s.rng.random() < 0.5 else places
    else:
        places = s.const(grid)
    centre, extent, rest = s.split(y, [2, 2, 3], 4)
    moved = s.op("Add", s.op("Mul", centre, s.const(2.0)), s.op("Sub", places, s.const(0.5)))
    centre = s.op("Mul", moved, s.const(8.0))
    doubled = s.op("Pow", s.op("Mul", extent, s.const(2.0)), s.const(2.0))
    extent = s.op("Mul", doubled, s.weight(1, 3, 1, 1, 2))
    s.output(s.reshape(s.op("Concat", centre, extent, rest, axis=4), -1, 108, 7))


def free_anchors(s: Sheet) -> None:
    """A head of YOLOv8: distances by Softmax, anchors, halves by Slice, strides."""
    x = s.input("images", s.batch(), 4, 4, 4)
    flat = s.reshape(s.conv(x, 4, 20, 1), s.size(x, 0, vector=True), 20, -1)
    box, score = s.split(flat, [16, 4], 1)
    parts = s.transpose(s.reshape(box, -1, 4, 4, 16), 0, 2, 1, 3)
    expected = s.op("Conv", s.op("Softmax", parts, axis=1), s.weight(1, 4, 1, 1))
    near = s.reshape(expected, -1, 4, 16)
    low, high = s.part(near, 0, 2, 1), s.part(near, 2, 4, 1)
    anchors = s.unsqueeze(s.weight(2, 16), 0)
    first, last = s.op("Sub", anchors, low), s.op("Add", high, anchors)
    centre = s.op("Div", s.op("Add", first, last), s.const(2.0))
    whole = s.op("Concat", centre, s.op("Sub", last, first), axis=1)
    scaled = s.op("Mul", whole, s.weight(1, 16))
    s.output(s.op("Concat", scaled, s.op("Sigmoid", score), axis=1))


def suppression(s: Sheet) -> None:
    """Boxes through NonMaxSuppression and Gathers."""
    boxes, scores = s.input("boxes", 1, 20, 4), s.input("scores", 1, 2, s.open("n", 20))
    most, overlap, least = s.ints(5), s.const([0.5]), s.const([0.1])
    kept = s.op("NonMaxSuppression", boxes, scores, most, overlap, least)
    index = s.op("Gather", kept, s.const(2, "int64"), axis=1)
    chosen = s.op("Gather", boxes, index, axis=1)
    s.output(s.op("Mul", chosen, s.const([1.0, 2.0, 1.0, 2.0])))


def pyramid(s: Sheet) -> None:
    """A feature pyramid: a Resize to the computed size of a skip connection, and a sum."""
    x = s.input("x", s.batch(), 4, s.open("h", 8), s.open("w", 8))
    skip = s.conv(x, 4, 6)
    small = s.op("MaxPool", s.conv(x, 4, 6), kernel_shape=[2, 2], strides=[2, 2])
    if s.opset >= 11 and s.rng.random() < 0.5:
        rows = s.part(s.op("Shape", small), 0, 2, 0)
        image = s.part(s.op("Shape", skip), 2, 4, 0)
        sizes = s.op("Concat", rows, image, axis=0)
        large = s.resize(small, s.const([]) if s.opset < 13 else "", sizes)
    else:
        large = s.resize(small, s.const([1.0, 1, 2, 2]), mode="nearest")
    s.output(s.op("Relu", s.op("Add", skip, large)))


def shuffle(s: Sheet) -> None:
    """PixelShuffle by Reshape and Transpose, or by DepthToSpace, beside a Resize of the input."""
    x = s.input("x", s.batch(), 3, s.open("h", 6), s.open("w", 5))
    y = s.conv(x, 3, 12)
    if s.opset >= 11 and s.rng.random() < 0.5:
        y = s.op("DepthToSpace", y, blocksize=2, mode="CRD")
    else:
        n, h, w = (s.size(y, axis, vector=True) for axis in (0, 2, 3))
        parted = s.transpose(s.reshape(y, n, 3, 2, 2, h, w), 0, 1, 4, 2, 5, 3)
        double = [s.op("Mul", size, s.ints(2)) for size in (h, w)]
        y = s.reshape(parted, n, 3, *double)
    scale = s.const([1.0, 1, 2, 2])
    big = s.resize(x, scale)
    s.output(s.clip(s.op("Add", y, big), 0, 1))


def squeeze_excite(s: Sheet) -> None:
    """Channel attention, with HardSwish written out, and a PRelu."""
    x = s.input("x", s.batch(), 6, s.open("h", 6), s.open("w", 5))
    pooled = s.op("GlobalAveragePool", x) if s.rng.random() < 0.5 else s.mean(x, 2, 3)
    gate = s.clip(s.op("Add", s.conv(pooled, 6, 6, 1), s.const(3.0)), 0, 6)
    y = s.op("Mul", x, s.op("Div", gate, s.const(6.0)))
    y = s.op("PRelu", y, s.weight(6, 1, 1))
    rows = [s.weight(6) for _ in range(3)] + [s.const(np.ones(6))]
    s.output(s.op("BatchNormalization", y, *rows))


def channels_last(s: Sheet) -> None:
    """A graph as TensorFlow's converter writes it: transposes, 4-D constants, sizes cast twice."""
    x = s.input("input:0", s.batch(), 6, 6, 3)
    y = s.op("Sub", s.op("Div", x, s.const(127.5)), s.const([1.0]))
    y = s.conv(s.transpose(y, 0, 3, 1, 2), 3, 4)
    y = s.clip(s.op("Mul", y, s.weight(1, 4, 1, 1)), 0, 6)
    back = s.transpose(y, 0, 2, 3, 1)
    sizes = s.cast(s.op("Shape", back), "int32")
    rows = s.cast(s.squeeze(s.part(s.cast(sizes, "int64"), 0, 1, 0), 0), "int32")
    shape = s.op("Concat", s.cast(s.unsqueeze(rows, 0), "int64"), s.ints(-1), axis=0)
    flat = s.op("Reshape", back, shape)
    s.output(s.softmax(s.linear(flat, 144, 5)) if s.opset >= 13 else s.linear(flat, 144, 5))


# Quantised.


def dynamic_quantisation(s: Sheet) -> None:
    """DynamicQuantizeLinear, MatMulInteger, Cast, a Mul by the product of scales, a bias."""
    x = s.input("x", s.batch(), s.open("seq", 5), 8)
    data, scale, point = s.op("DynamicQuantizeLinear", x, count=3)
    weights = s.const(s.rng.integers(-5, 5, (8, 6)), "int8")
    wide = s.rng.random() < 0.5
    own = s.const(np.full(6, 0.1) if wide else 0.1)
    zero = s.const(np.zeros(6) if wide else 0, "int8")
    product = s.cast(s.op("MatMulInteger", data, weights, point, zero), "float32")
    y = s.op("Mul", product, s.op("Mul", scale, own))
    s.output(s.op("Relu", s.op("Add", y, s.weight(6))))


def quantised_image(s: Sheet) -> None:
    """QuantizeLinear and DequantizeLinear around a convolution and a sum."""
    x = s.input("x", s.batch(), 3, 6, 6)

    def through(y: str) -> str:
        scale, point = s.const(0.1), s.const(3, "int8")
        both = s.op("QuantizeLinear", y, scale, point)
        return str(s.op("DequantizeLinear", both, scale, point))

    weights = s.const(s.rng.integers(-5, 5, (4, 3, 3, 3)), "int8")
    rows, zeros = s.const(np.full(4, 0.1)), s.const(np.zeros(4), "int8")
    loose = s.op("DequantizeLinear", weights, rows, zeros, axis=0)
    y = through(s.op("Conv", through(x), loose, s.weight(4), pads=[1] * 4))
    s.output(through(s.op("Add", y, s.op("Mul", y, s.const(0.5)))))
