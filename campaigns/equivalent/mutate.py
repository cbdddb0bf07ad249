"""Mutants: a model with one thing changed in one node."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper, numpy_helper

Change = Callable[[onnx.ModelProto, onnx.NodeProto, random.Random], bool]
_OTHERS = {
    "Add": "Sub", "Sub": "Add", "Mul": "Add", "Div": "Mul", "Max": "Min", "ReduceMean": "ReduceSum",
    "ReduceMax": "ReduceMin", "Relu": "Abs", "Sigmoid": "Tanh", "Tanh": "Sigmoid", "Abs": "Neg",
    "Neg": "Abs", "Exp": "Sigmoid", "Erf": "Tanh",
}  # fmt: skip


#: Draws for each mutant that is wanted: many changes do not fit the drawn node.
_TRIES = 40


def mutants_of(
    model: onnx.ModelProto, seed: int, count: int
) -> Iterator[tuple[onnx.ModelProto, str]]:
    """Yield mutants of a model, each with its change in words."""
    yielded = 0
    for k in range(_TRIES * count):
        if yielded == count:
            return
        mutant = mutate(model, seed * 10_007 + k)
        if mutant is not None:
            yielded += 1
            yield mutant


def mutate(model: onnx.ModelProto, seed: int) -> tuple[onnx.ModelProto, str] | None:
    """A mutant, and its change in words; None if the draw changes nothing."""
    pick = random.Random(seed)
    mutant = onnx.ModelProto()
    mutant.CopyFrom(model)
    change = pick.choice(_CHANGES)
    node = pick.choice(mutant.graph.node)
    if not change(mutant, node, pick):
        return None
    return mutant, f"{change.__name__.strip('_')} at {node.op_type} {node.name}"


def _attribute(node: onnx.NodeProto, name: str) -> onnx.AttributeProto | None:
    return next((entry for entry in node.attribute if entry.name == name), None)


def _numbers(
    model: onnx.ModelProto, node: onnx.NodeProto, position: int
) -> npt.NDArray[Any] | None:
    """The numbers of an operand that is a constant."""
    if position >= len(node.input):
        return None
    name = node.input[position]
    tensor = next((one for one in model.graph.initializer if one.name == name), None)
    return None if tensor is None else numpy_helper.to_array(tensor).copy()


def _replace(
    model: onnx.ModelProto, node: onnx.NodeProto, position: int, array: npt.NDArray[Any]
) -> None:
    """Gives a node a constant of its own: others may read the old one."""
    name = f"mutated_{node.name}_{position}"
    model.graph.initializer.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
    node.input[position] = name


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
    if node.op_type == "Identity" or not node.input or len(node.output) > 1:
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
    if not node.input:
        return False
    position = pick.randrange(len(node.input))
    node.input[position] = pick.choice(before)
    return True


def _axes(model: onnx.ModelProto, node: onnx.NodeProto, pick: random.Random) -> bool:
    """Unsqueeze, Squeeze or Slice along another axis."""
    position = {"Unsqueeze": 1, "Squeeze": 1, "Slice": 3}.get(node.op_type)
    array = None if position is None else _numbers(model, node, position)
    if position is None or array is None or not array.size:
        return False
    array.reshape(-1)[pick.randrange(array.size)] += pick.choice((-1, 1))
    _replace(model, node, position, array)
    return True


def _epsilon(model: onnx.ModelProto, node: onnx.NodeProto, pick: random.Random) -> bool:
    """The number that keeps a root above 0, an attribute or a small constant."""
    entry = _attribute(node, "epsilon")
    if entry is not None:
        entry.f = pick.choice((0.1, 0.5))
        return True
    for position in range(len(node.input)):
        array = _numbers(model, node, position)
        if array is not None and array.size == 1 and array.dtype.kind == "f":
            if node.op_type != "Add" or not 0 < abs(float(array.reshape(-1)[0])) < 0.01:
                continue
            _replace(model, node, position, array * 0 + array.dtype.type(0.25))
            return True
    return False


def _order(model: onnx.ModelProto, node: onnx.NodeProto, pick: random.Random) -> bool:
    """The operands of a subtraction, a division or a concatenation in another order."""
    if node.op_type not in ("Sub", "Div", "Concat", "MatMul") or len(node.input) < 2:
        return False
    node.input[0], node.input[-1] = node.input[-1], node.input[0]
    return True


def _pads(model: onnx.ModelProto, node: onnx.NodeProto, pick: random.Random) -> bool:
    """Padding moved from one end to the other."""
    entry = _attribute(node, "pads")
    array = _numbers(model, node, 1) if node.op_type == "Pad" else None
    if entry is not None:
        pads = list(entry.ints)
    elif array is not None:
        pads = [int(n) for n in array.reshape(-1)]
    else:
        return False
    places = [k for k, n in enumerate(pads) if n > 0]
    if not places:
        return False
    place = pick.choice(places)
    pads[place] -= 1
    pads[(place + len(pads) // 2) % len(pads)] += 1
    if entry is not None:
        entry.ints[:] = pads
    else:
        _replace(model, node, 1, np.array(pads, np.int64))
    return True


def _shifted(model: onnx.ModelProto, node: onnx.NodeProto, pick: random.Random) -> bool:
    """A slice that begins, or begins and ends, one further."""
    if node.op_type != "Slice":
        return False
    for position in (1, 2) if pick.random() < 0.5 else (1,):
        array = _numbers(model, node, position)
        if array is None:
            return False
        _replace(model, node, position, array + (np.abs(array) < 2**30).astype(array.dtype))
    return True


def _gamma(model: onnx.ModelProto, node: onnx.NodeProto, pick: random.Random) -> bool:
    """A factor or a summand by feature dropped."""
    if node.op_type not in ("Mul", "Add"):
        return False
    for position, other in ((1, 0), (0, 1)):
        array = _numbers(model, node, position)
        if array is not None and array.size > 1:
            name = node.name
            node.CopyFrom(helper.make_node("Identity", [node.input[other]], node.output, name))
            return True
    return False


def _unstretched(model: onnx.ModelProto, node: onnx.NodeProto, pick: random.Random) -> bool:
    """Expand or Unsqueeze dropped."""
    return node.op_type in ("Expand", "Unsqueeze") and _bypass(model, node, pick)


def _along(model: onnx.ModelProto, node: onnx.NodeProto, pick: random.Random) -> bool:
    """A vector that is added or multiplied lies along the axis before."""
    if node.op_type not in ("Add", "Mul", "Sub", "Div"):
        return False
    for position in range(2):
        array = _numbers(model, node, position)
        if array is not None and array.size > 1 and array.ndim < 4:
            _replace(model, node, position, array[..., None])
            return True
    return False


def _turned(model: onnx.ModelProto, node: onnx.NodeProto, pick: random.Random) -> bool:
    """A matrix turned, or a convolution's groups or weights in another order."""
    entry = _attribute(node, "transB")
    if entry is not None:
        entry.i = 1 - entry.i
        return True
    if node.op_type not in ("MatMul", "Conv"):
        return False
    array = _numbers(model, node, 1)
    if array is None:
        return False
    _replace(model, node, 1, array.swapaxes(-1, -2) if node.op_type == "MatMul" else array[::-1])
    return True


_CHANGES: tuple[Change, ...] = (
    *(_permutation, _axis, _constant, _constant, _operands, _op, _op, _bypass, _another),
    *(_axes, _epsilon, _order, _pads, _shifted, _gamma, _unstretched, _along, _turned),
)
