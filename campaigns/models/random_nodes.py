"""Random nodes, each of one op that broadcasts; `random_files` writes files of them.

Every op of a format, every element type that its document allows, every rule, mode and axis, and
shapes that often have equal sizes, for engines tell axes apart by their sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np

Shape = tuple[int, ...]
Array = np.ndarray[Any, Any]
Rng = np.random.Generator

#: How often an operand is a weight of the file.
CONSTANT = 0.3


@dataclass(frozen=True, slots=True)
class Drawn:
    """A node before it is written.

    Attributes:
        op: the op in the format's words.
        shapes: of its operands.
        constant: for each operand its numbers where the file has them, True where any will do, None
            where it is an input.
        attributes: its attributes.
    """

    op: str
    shapes: tuple[Shape, ...]
    constant: tuple[Any, ...] = ()
    attributes: Mapping[str, Any] = field(default_factory=dict)


def pick(rng: Rng, options: Sequence[Any]) -> Any:
    """One of the options."""
    return options[int(rng.integers(len(options)))]


# Shapes.


def whole_shape(rng: Rng, least: int = 0, most: int = 5) -> Shape:
    """A shape whose sizes are often equal; the first is often 1, a batch."""
    rank = int(rng.integers(least, most + 1))
    usual = pick(rng, (2, 3, 4, 5))
    sizes = [usual if rng.random() < 0.5 else int(rng.integers(1, 6)) for _ in range(rank)]
    if rank > 1 and rng.random() < 0.5:
        sizes[0] = 1
    return tuple(sizes)


def smaller(rng: Rng, shape: Shape) -> Shape:
    """A shape that broadcasts to `shape` by NumPy's rule."""
    start = int(rng.integers(len(shape) + 1)) if rng.random() < 0.6 else 0
    ones = rng.random()
    return tuple(1 if rng.random() < ones * 0.7 else n for n in shape[start:])


def broadcastable(rng: Rng, count: int, most: int = 5) -> tuple[Shape, ...]:
    """Shapes that broadcast together, now and then all but."""
    shape = whole_shape(rng, 0, most)
    listed = [shape if rng.random() < 0.4 else smaller(rng, shape) for _ in range(count)]
    if rng.random() < 0.05:
        listed[-1] = whole_shape(rng, 0, 3)
    return tuple(listed)


def weights(rng: Rng, count: int) -> tuple[Any, ...]:
    """Draws the operands that are weights: all but the first, or one of them."""
    chance = rng.random()
    if chance < CONSTANT:
        return (None, *[True] * (count - 1))
    chosen = int(rng.integers(count)) if chance < 2 * CONSTANT else -1
    return tuple(True if k == chosen else None for k in range(count))


# ONNX.


def _elementwise(count: int, **attributes: Sequence[Any]) -> Callable[[Rng, str], Drawn]:
    def draw(rng: Rng, op: str) -> Drawn:
        many = int(rng.integers(2, 5)) if count == 0 else count
        by_name = {name: pick(rng, values) for name, values in attributes.items()}
        return Drawn(op, broadcastable(rng, many), weights(rng, many), by_name)

    return draw


def _expand(rng: Rng, op: str) -> Drawn:
    target = whole_shape(rng)
    data = smaller(rng, target)
    if rng.random() < 0.2:
        target = smaller(rng, target)
    return Drawn(op, (data, (len(target),)), (None, np.array(target, np.int64)))


def prelu(rng: Rng, op: str) -> Drawn:
    """Data and slopes, often one a channel."""
    data = whole_shape(rng, 1)
    slope = smaller(rng, data)
    if len(data) > 1 and rng.random() < 0.4:
        slope = (data[1],)
    return Drawn(op, (data, slope), (None, True if rng.random() < 0.7 else None))


def _clip(rng: Rng, op: str) -> Drawn:
    bound: Shape = () if rng.random() < 0.7 else (1,)
    fixed = True if rng.random() < 0.6 else None
    data = whole_shape(rng)
    bound = bound if data else ()  # by the document; a vector of one is often taken, too
    return Drawn(op, (data, bound, bound), (None, fixed, fixed))


def _gemm(rng: Rng, op: str) -> Drawn:
    m, n, k = (int(rng.integers(1, 5)) for _ in range(3))
    c: Shape = pick(rng, ((n,), (1, n), (m, 1), (m, n), (1,), (), (1, 1), (m,)))
    turned = {name: int(rng.random() < 0.3) for name in ("transA", "transB")}
    a = (k, m) if turned["transA"] else (m, k)
    b = (n, k) if turned["transB"] else (k, n)
    fixed = True if rng.random() < 0.6 else None
    return Drawn(op, (a, b, c), (None, fixed, fixed), turned)


def matmul(rng: Rng, op: str) -> Drawn:
    """A product of matrices in batches, or of a vector."""
    m, n, k = (int(rng.integers(1, 5)) for _ in range(3))
    first, second = broadcastable(rng, 2, 3)
    a: Shape = (k,) if rng.random() < 0.1 else (*first, m, k)
    b: Shape = (k,) if rng.random() < 0.1 else (*second, k, n)
    return Drawn(op, (a, b), (None, True if rng.random() < 0.4 else None))


def channels(count: int, groups: bool = False) -> Callable[[Rng, str], Drawn]:
    """Draws data and `count` vectors of one number a channel."""

    def draw(rng: Rng, op: str) -> Drawn:
        data = whole_shape(rng, 2 if op == "BatchNormalization" else 3)
        vectors = [(data[1],)] * count
        divisors = [n for n in range(1, data[1] + 1) if data[1] % n == 0]
        attributes = {"num_groups": pick(rng, divisors)} if groups else {}
        return Drawn(op, (data, *vectors), (None, *[True] * count), attributes)

    return draw


def _trailing(count: int) -> Callable[[Rng, str], Drawn]:
    def draw(rng: Rng, op: str) -> Drawn:
        data = whole_shape(rng, 1)
        kept = int(rng.integers(1, len(data) + 1))
        scale = data[-kept:]
        if rng.random() < 0.3:
            scale = smaller(rng, scale)
        attributes = {"axis": -kept if rng.random() < 0.7 else len(data) - kept}
        fixed = True if rng.random() < 0.8 else None
        return Drawn(op, (data, *[scale] * count), (None, *[fixed] * count), attributes)

    return draw


def _per_axis(rng: Rng, op: str) -> Drawn:
    data = whole_shape(rng, 1)
    axis = int(rng.integers(-len(data), len(data)))
    scale: Shape = (data[axis],) if rng.random() < 0.6 else ()
    attributes = {} if scale == () else {"axis": axis}
    return Drawn(op, (data, scale, scale), (None, True, True), attributes)


_BINARY = (
    "Add Sub Mul Div Pow And Or Xor BitwiseAnd BitwiseOr BitwiseXor Equal Greater Less "
    "GreaterOrEqual LessOrEqual"
)
_ONNX: Mapping[str, Callable[[Rng, str], Drawn]] = MappingProxyType(
    {
        **dict.fromkeys(_BINARY.split(), _elementwise(2)),
        "Mod": _elementwise(2, fmod=(0, 1)),
        "BitShift": _elementwise(2, direction=("LEFT", "RIGHT")),
        **dict.fromkeys(("Max", "Min", "Sum", "Mean"), _elementwise(0)),
        "Where": _elementwise(3),
        "Expand": _expand,
        "PRelu": prelu,
        "Clip": _clip,
        "Gemm": _gemm,
        "MatMul": matmul,
        "BatchNormalization": channels(4),
        "InstanceNormalization": channels(2),
        "GroupNormalization": channels(2, groups=True),
        "LayerNormalization": _trailing(2),
        "RMSNormalization": _trailing(1),
        "QuantizeLinear": _per_axis,
        "DequantizeLinear": _per_axis,
    }
)
#: Types of ONNX's documents that NumPy has, by their names there.
_ONNX_TYPES = {
    f"tensor({name})": {"float": "float32", "double": "float64"}.get(name, name)
    for name in (
        *("float", "double", "float16", "bool", "int8", "int16", "int32", "int64"),
        *("uint8", "uint16", "uint32", "uint64"),
    )
}


@dataclass(frozen=True, slots=True)
class OnnxNode:
    """A node of ONNX: drawn, with the element types of its operands."""

    drawn: Drawn
    dtypes: tuple[str, ...]
    attributes: Mapping[str, Any]


def onnx_node(rng: Rng, opset: int, op: str | None = None) -> OnnxNode | None:
    """A node of an op set; None where the op that was drawn is not in it."""
    from onnx import defs

    op = str(pick(rng, tuple(_ONNX))) if op is None else op
    try:
        schema = defs.get_schema(op, opset)
    except defs.SchemaError:
        return None
    drawn = _ONNX[op](rng, op)
    allowed = {
        row.type_param_str: [_ONNX_TYPES[t] for t in row.allowed_type_strs if t in _ONNX_TYPES]
        for row in schema.type_constraints
    }
    if opset < 11 and op == "Clip":
        return None  # its bounds are attributes
    chosen = {name: pick(rng, kinds) for name, kinds in allowed.items() if kinds}
    attributes = {k: v for k, v in drawn.attributes.items() if k in schema.attributes}
    if opset < 7 and "broadcast" in schema.attributes and rng.random() < 0.8:
        attributes["broadcast"] = 1
        if rng.random() < 0.6:
            data = drawn.shapes[0]
            axis = int(rng.integers(0, max(1, len(data))))
            attributes["axis"] = axis
            if op != "Gemm" and rng.random() < 0.8:  # a part of the data, from that axis on
                part = data[axis : int(rng.integers(axis, len(data) + 1))]
                drawn = replace(drawn, shapes=(data, part, *drawn.shapes[2:]))
    if op == "Mod" and any(chosen[t].startswith("float") for t in chosen):
        attributes["fmod"] = 1
    formal = [schema.inputs[min(k, len(schema.inputs) - 1)] for k in range(len(drawn.shapes))]
    dtypes = [chosen.get(one.type_str) or _ONNX_TYPES[one.type_str] for one in formal]
    return OnnxNode(drawn, tuple(dtypes), attributes)
