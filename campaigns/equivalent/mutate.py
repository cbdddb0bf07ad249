"""Mutants: a model with one thing changed in one node."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import onnx
from onnx import helper, numpy_helper

Change = Callable[[onnx.ModelProto, onnx.NodeProto, random.Random], bool]
_OTHERS = {
    "Add": "Sub", "Sub": "Add", "Mul": "Add", "Div": "Mul", "Max": "Min", "ReduceMean": "ReduceSum",
    "ReduceMax": "ReduceMin", "Relu": "Abs", "Sigmoid": "Tanh", "Tanh": "Sigmoid", "Abs": "Neg",
    "Neg": "Abs", "Exp": "Sigmoid", "Erf": "Tanh",
}  # fmt: skip


def mutate(model: onnx.ModelProto, seed: int) -> tuple[onnx.ModelProto, str] | None:
    """A mutant, and its change in words; None if the draw changes nothing."""
    pick = random.Random(seed)
    mutant = onnx.ModelProto()
    mutant.CopyFrom(model)
    node = pick.choice(mutant.graph.node)
    change = pick.choice(_CHANGES)
    if not change(mutant, node, pick):
        return None
    return mutant, f"{change.__name__.strip('_')} at {node.op_type} {node.name}"


def _attribute(node: onnx.NodeProto, name: str) -> onnx.AttributeProto | None:
    return next((entry for entry in node.attribute if entry.name == name), None)


def _permutation(model: onnx.ModelProto, node: onnx.NodeProto, pick: random.Random) -> bool:
    perm = _attribute(node, "perm")
    if perm is None or len(perm.ints) < 2:
        return False
    a, b = pick.sample(range(len(perm.ints)), 2)
    perm.ints[a], perm.ints[b] = perm.ints[b], perm.ints[a]
    return True


def _axis(model: onnx.ModelProto, node: onnx.NodeProto, pick: random.Random) -> bool:
    entry = _attribute(node, "axis") or _attribute(node, "axes")
    if entry is None:
        return False
    if entry.name == "axis":
        entry.i += pick.choice((-1, 1))
    else:
        entry.ints[0] += pick.choice((-1, 1))
    return True


def _constant(model: onnx.ModelProto, node: onnx.NodeProto, pick: random.Random) -> bool:
    """One number of a constant, its order, or where it lies."""
    own = [t for t in model.graph.initializer if t.name in node.input]
    if not own:
        return False
    tensor = pick.choice(own)
    array = numpy_helper.to_array(tensor).copy()
    if array.dtype.kind not in "fib" or not array.size:
        return False
    how = pick.randrange(4)
    flat = array.reshape(-1)
    if how == 0 and array.dtype.kind == "f":
        flat[pick.randrange(array.size)] += pick.choice((0.25, -0.5, 1))
    elif how == 1 and array.size > 1:
        flat[:] = np.roll(flat, 1)
    elif how == 2 and array.ndim > 1:
        array = array.swapaxes(0, -1)
    elif how == 3 and array.ndim == 1 and array.dtype.kind == "f":
        array = array.reshape(-1, 1)
    else:
        return False
    tensor.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(array), tensor.name))
    return True


def _operands(model: onnx.ModelProto, node: onnx.NodeProto, pick: random.Random) -> bool:
    if len(node.input) < 2 or node.op_type in ("Add", "Mul", "Max"):
        return False
    node.input[0], node.input[1] = node.input[1], node.input[0]
    return True


def _op(model: onnx.ModelProto, node: onnx.NodeProto, pick: random.Random) -> bool:
    if node.op_type not in _OTHERS:
        return False
    node.op_type = _OTHERS[node.op_type]
    return True


def _bypass(model: onnx.ModelProto, node: onnx.NodeProto, pick: random.Random) -> bool:
    if node.op_type == "Identity":
        return False
    source, result = node.input[0], node.output[0]
    name = node.name
    node.CopyFrom(helper.make_node("Identity", [source], [result], name))
    return True


def _another(model: onnx.ModelProto, node: onnx.NodeProto, pick: random.Random) -> bool:
    """An operand is another tensor that comes before."""
    before = ["x"]
    for one in model.graph.node:
        if one is node or one.name == node.name:
            break
        before += one.output
    position = pick.randrange(len(node.input))
    node.input[position] = pick.choice(before)
    return True


_CHANGES: tuple[Change, ...] = (
    *(_permutation, _axis, _constant, _constant, _constant, _operands, _op, _bypass, _another),
)
