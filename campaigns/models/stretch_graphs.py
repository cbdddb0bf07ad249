"""Random models that stretch a tensor, read it in several ways, and have it misread."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

#: Shapes of the whole tensor; in a cube the wrong axis has the right extent.
SHAPES = ((1, 4, 6, 5), (1, 5, 5, 5))
STRETCHES = ("Expand", "Where", "Add")
ELEMENTWISE = ("Add", "Mul", "Sub")
READERS = ("Add", "Mul", "Concat", "MatMul", "ReduceSum", "Relu", "Transpose")


def stretched(
    seed: int, *, misread: bool = False, readers: tuple[str, ...] = READERS
) -> onnx.ModelProto:
    """A model of `x`: tensor `e` is stretched, and up to three nodes read it.

    Args:
        seed: of the form.
        misread: whether the tensor that is stretched has its numbers in another order, as an
            operand on wrong axes of a cube has.
        readers: the ops that may read it.
    """
    rng, draw = random.Random(seed), np.random.default_rng(seed)
    shape = rng.choice(SHAPES)
    lean = list(shape)
    for axis in rng.sample((1, 2, 3), rng.choice((1, 2))):
        lean[axis] = 1
    nodes: list[onnx.NodeProto] = []
    constants: list[onnx.TensorProto] = []

    def constant(name: str, array: Any) -> str:
        constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def node(op: str, *operands: str, to: str, **attributes: Any) -> str:
        nodes.append(helper.make_node(op, [*operands], [to], f"n_{to}", **attributes))
        return to

    # 1. A small tensor, which is made of x so that no converter folds it.
    axes = [axis for axis, size in enumerate(lean) if size == 1]
    node("ReduceMean", "x", to="m", axes=axes, keepdims=1)
    weights = draw.uniform(0.5, 2, lean).astype(np.float32)
    if misread:
        weights = np.roll(weights.reshape(-1), 1).reshape(lean) + np.float32(0.25)
    node("Mul", "m", constant("w", weights), to="p")
    node("Clip", "p", constant("low", np.float32(-8)), to="s")
    # 2. It is stretched.
    stretch = STRETCHES[seed % len(STRETCHES)]
    if stretch == "Expand":
        node("Expand", "s", constant("size", np.array(shape, np.int64)), to="e")
    elif stretch == "Where":
        node("Greater", "x", constant("zero", np.float32(0)), to="c")
        node("Where", "c", "s", constant("far", np.float32(-2)), to="e")
    else:
        node("Add", "s", "x", to="e")
    # 3. Nodes read it.
    results = []
    if rng.choice((True, False)):
        # OpenVINO does not stretch a tensor if every reader stretches it itself.
        readers = ELEMENTWISE
    for k, reader in enumerate(rng.sample(readers, rng.choice((1, 2, 3)))):
        if reader in ELEMENTWISE:
            result = node(reader, *rng.sample(("e", "x"), 2), to=f"r{k}")
        elif reader == "Concat":
            result = node("Concat", "e", "x", to=f"r{k}", axis=rng.choice((1, 2, 3)))
        elif reader == "MatMul":
            right = constant(f"b{k}", draw.uniform(-1, 1, (shape[3], 3)).astype(np.float32))
            result = node("MatMul", "e", right, to=f"r{k}")
        elif reader == "ReduceSum":
            axes_name = constant(f"a{k}", np.array([rng.choice((1, 2, 3))], np.int64))
            result = node("ReduceSum", "e", axes_name, to=f"r{k}", keepdims=1)
        elif reader == "Transpose":
            result = node("Transpose", "e", to=f"r{k}", perm=[0, 1, 3, 2])
        else:
            result = node("Relu", "e", to=f"r{k}")
        results.append(node("Sigmoid", result, to=f"y{k}"))
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in results]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]
    graph = helper.make_graph(nodes, "stretched", inputs, outputs, constants)
    opsets = [helper.make_opsetid("", 17)]
    return onnx.shape_inference.infer_shapes(
        helper.make_model(graph, opset_imports=opsets, ir_version=8)
    )
