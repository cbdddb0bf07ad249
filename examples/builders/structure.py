"""functions_and_subgraphs.onnx: broadcasts that are not simply in the main graph.

Model-local functions (one calls another, one is never called), the branches of an If, the bodies
of a Loop and a Scan, symbolic extents, a tensor of unknown rank, and a custom op whose result no
shape inference knows. What cannot be judged here is to be reported as unknown, never left out.
"""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper

from builders.net import Net, around_one, model, value, weights

OPSET, IR_VERSION = 18, 8
BLOCKS, CUSTOM = "example.blocks", "example.custom"
WIDTH = 4


def build() -> onnx.ModelProto:
    net = Net()
    scale = net.const("scale", around_one(WIDTH))
    shift = net.const("shift", weights(WIDTH, seed=1))
    # The same function at (N,4) with vectors, and below, in the If, with columns of (4,1).
    x = net.op("Normalize", "x", scale, shift, name="normalized", domain=BLOCKS)
    # Two symbolic extents: the same if N = M, a stretch if one is 1, otherwise refused.
    x = net.op("Add", x, "y", name="add_symbolic")
    x = net.op("If", "flag", name="chosen", then_branch=then_branch(x), else_branch=else_branch(x))
    looped = loop(net, shift)
    summed = scan(net, looped)
    window = net.op("SoftWindow", x, name="window", domain=CUSTOM, size=3)
    # The rank of `window` is unknown: these two nodes, and later ones, are unknown.
    added = net.op("Add", window, shift, name="add_to_custom")
    matrix = net.const("matrix", weights(WIDTH, WIDTH, seed=6))
    product = net.op("MatMul", window, matrix, name="matmul")
    net.op("Mean", summed, added, product, name="result")
    inputs = [
        value("x", ("N", WIDTH)),
        value("y", ("M", WIDTH)),
        value("flag", (), TensorProto.BOOL),
    ]
    graph = net.graph("functions_and_subgraphs", inputs, [value("result", ("rows", WIDTH))])
    opsets = {"": OPSET, BLOCKS: 1, CUSTOM: 1}
    return model(graph, opsets, IR_VERSION, [scale_shift(), normalize(), never_called()])


def function(
    name: str, inputs: list[str], output: str, net: Net, uses_blocks: bool = False
) -> onnx.FunctionProto:
    imports = [helper.make_opsetid("", OPSET)]
    if uses_blocks:
        imports.append(helper.make_opsetid(BLOCKS, 1))
    return helper.make_function(BLOCKS, name, inputs, [output], net.nodes, imports)


def scale_shift() -> onnx.FunctionProto:
    net = Net()
    scaled = net.op("Mul", "value", "scale", name="scaled")
    shifted = net.op("Add", scaled, "shift", name="shifted")
    return function("ScaleShift", ["value", "scale", "shift"], shifted, net)


def normalize() -> onnx.FunctionProto:
    net = Net()
    axes = net.op("Constant", name="axes", value_ints=[-1])
    mean = net.op("ReduceMean", "value", axes, name="mean", keepdims=1)
    centered = net.op("Sub", "value", mean, name="centered")
    inputs = (centered, "scale", "shift")
    result = net.op("ScaleShift", *inputs, name="rescaled", domain=BLOCKS)
    return function("Normalize", ["value", "scale", "shift"], result, net, uses_blocks=True)


def never_called() -> onnx.FunctionProto:
    net = Net()
    result = net.op("Mul", "value", "value", name="squared")
    return function("NeverCalled", ["value"], result, net)


def then_branch(x: str) -> onnx.GraphProto:
    net = Net("then_")
    columns = (
        net.const("scale", around_one(WIDTH, 1, seed=2)),
        net.const("shift", weights(WIDTH, 1, seed=3)),
    )
    # (N,4) with (4,1): both stretch unless N = 4.
    result = net.op("ScaleShift", x, *columns, name="rescaled", domain=BLOCKS)
    return net.graph("then_branch", [], [value(result, (None, WIDTH))])


def else_branch(x: str) -> onnx.GraphProto:
    net = Net("else_")
    result = net.op("Sub", x, "shift", name="shifted")  # the vector of the graph around it
    return net.graph("else_branch", [], [value(result, (None, WIDTH))])


def loop(net: Net, shift: str) -> str:
    """Three rounds that add a vector to a square."""
    body = Net("loop_")
    again = body.op("Identity", "loop_condition", name="again")
    state = body.op("Add", "loop_state", shift, name="state_out")
    inputs = [
        value("loop_round", (), TensorProto.INT64),
        value("loop_condition", (), TensorProto.BOOL),
        value("loop_state", (WIDTH, WIDTH)),
    ]
    outputs = [value(again, (), TensorProto.BOOL), value(state, (WIDTH, WIDTH))]
    graph = body.graph("loop_body", inputs, outputs)
    start = net.const("loop_start", weights(WIDTH, WIDTH, seed=4))
    rounds = net.const("loop_rounds", np.array(3, dtype=np.int64))
    return net.op("Loop", rounds, "", start, name="looped", body=graph)


def scan(net: Net, rows: str) -> str:
    """Adds up the rows of a square: equal shapes, a site all the same."""
    body = Net("scan_")
    total = body.op("Add", "scan_total", "scan_row", name="total_out")
    inputs = [value("scan_total", (WIDTH,)), value("scan_row", (WIDTH,))]
    graph = body.graph("scan_body", inputs, [value(total, (WIDTH,))])
    start = net.const("scan_start", weights(WIDTH, seed=5))
    return net.op("Scan", start, rows, name="summed", body=graph, num_scan_inputs=1)
