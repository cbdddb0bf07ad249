"""legacy_opset6.onnx: broadcasting as it was before opset 7, by attribute.

`broadcast=1, axis=1` puts a vector on the channels, where NumPy's rule would put it on the width;
without `axis` it goes to the last axes. The shapes are square first, (1,4,4,4), so that the two
readings differ in numbers alone, and then (1,6,4,5), where NumPy's rule would refuse.
"""

from __future__ import annotations

import onnx

from builders.net import Net, around_one, model, value, weights

# Opset 6 was released with IR version 3, in which every initialiser is also a graph input.
OPSET, IR_VERSION = 6, 3


def build() -> onnx.ModelProto:
    net = Net()
    x = square(net, "image")
    x = oblong(net, x)
    classifier(net, x)
    inputs = [value("image", (1, 3, 4, 4))]
    inputs += [value(t.name, tuple(t.dims), t.data_type) for t in net.initializers]
    outputs = [value("logits", (1, 3))]
    return model(net.graph("legacy_opset6", inputs, outputs), {"": OPSET}, IR_VERSION)


def square(net: Net, image: str) -> str:
    """(1,4,4,4): a vector of 4 fits the channels, the height and the width alike."""
    kernel = net.const("square_kernel", weights(4, 3, 3, 3, seed=1))
    x = net.op("Conv", image, kernel, name="square/conv", pads=[1, 1, 1, 1], kernel_shape=[3, 3])
    scale = net.const("square_scale", around_one(4))
    x = net.op("Mul", x, scale, name="square/scale", broadcast=1, axis=1)
    shift = net.const("square_shift", weights(4, seed=2))
    x = net.op("Add", x, shift, name="square/shift", broadcast=1, axis=1)
    # No axis: the last axes, which is NumPy's reading.
    column = net.const("square_column", weights(4, seed=3))
    x = net.op("Add", x, column, name="square/column", broadcast=1)
    # A run in the middle: (C,H) at axis 1, spread over the width.
    plane = net.const("square_plane", weights(4, 4, seed=4))
    x = net.op("Add", x, plane, name="square/plane", broadcast=1, axis=1)
    # One element fits everything, with or without an axis.
    one = net.const("square_one", around_one(1, seed=5))
    x = net.op("Mul", x, one, name="square/one_number", broadcast=1)
    slope = net.const("square_slope", weights(4, seed=6))
    x = net.op("PRelu", x, slope, name="square/prelu")
    return net.op("Add", x, x, name="square/double")  # identical shapes, no attribute


def oblong(net: Net, x: str) -> str:
    """(1,6,4,5): a vector of 6 fits the channels alone."""
    kernel = net.const("oblong_kernel", weights(6, 4, 1, 2, seed=7))
    x = net.op("Conv", x, kernel, name="oblong/conv", pads=[0, 1, 0, 1], kernel_shape=[1, 2])
    shift = net.const("oblong_shift", weights(6, seed=8))
    x = net.op("Sub", x, shift, name="oblong/shift", broadcast=1, axis=1)
    scale = net.const("oblong_scale", around_one(6, 4, seed=9))
    x = net.op("Div", x, scale, name="oblong/scale", broadcast=1, axis=1)
    rows = net.const("oblong_rows", around_one(4, 5, seed=10))
    x = net.op("Mul", x, rows, name="oblong/rows", broadcast=1)
    other = net.op("Relu", x, name="oblong/relu")
    return net.op("Sum", x, other, name="oblong/sum")  # identical shapes until opset 8


def classifier(net: Net, x: str) -> str:
    x = net.op("GlobalAveragePool", x, name="head/pool")
    x = net.op("Flatten", x, name="head/flatten")
    matrix = net.const("head_weight", weights(6, 3, seed=11))
    bias = net.const("head_bias", weights(3, seed=12))
    return net.op("Gemm", x, matrix, bias, name="logits", broadcast=1)
