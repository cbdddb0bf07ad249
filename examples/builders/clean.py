"""clean.onnx: a network whose broadcasts mean the same on ncnn when carried over op for op.

The operands of each broadcast have equal rank once the batch axis is gone, or hold one number, so
no extent can change how they align. Global pooling is a ReduceMean that keeps its axes: ncnn's
own global pooling would return rank 1.
"""

from __future__ import annotations

import onnx

from builders.net import Net, around_one, model, value, weights

OPSET, IR_VERSION = 18, 8


def build() -> onnx.ModelProto:
    net = Net()
    kernel = net.const("kernel", weights(8, 3, 3, 3, seed=1))
    x = net.op("Conv", "image", kernel, name="conv", pads=[1, 1, 1, 1])
    x = net.op("Mul", x, net.const("scale", around_one(8, 1, 1)), name="scale_channels")
    x = net.op("Add", x, net.const("shift", weights(8, 1, 1, seed=2)), name="shift_channels")
    skip = net.op("Relu", x, name="relu")
    x = net.op("ReduceMean", skip, net.const("axes", [2, 3]), name="squeeze", keepdims=1)
    x = net.op("Conv", x, net.const("mix", weights(8, 8, 1, 1, seed=3)), name="mix_channels")
    gate = net.op("Sigmoid", x, name="gate")
    x = net.op("Mul", skip, gate, name="excite")
    x = net.op("Sub", x, net.const("rows", weights(1, 6, 1, seed=4)), name="shift_rows")
    x = net.op("Div", x, net.const("two", 2.0), name="halve")
    x = net.op("Add", x, skip, name="residual")
    net.op("Max", x, net.const("floor", -4.0), name="features")
    inputs, outputs = [value("image", (1, 3, 6, 5))], [value("features", (1, 8, 6, 5))]
    return model(net.graph("clean", inputs, outputs), {"": OPSET}, IR_VERSION)
