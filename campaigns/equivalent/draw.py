"""Random models with open sizes: patterns that optimisers rewrite, and small networks.

A seed draws the same model on every machine.
"""

from __future__ import annotations

import random

import numpy as np
import onnx

from .drawn import Drawn, Shape
from .networks import BLOCKS

#: Shapes of the input; names are open sizes.
_INPUTS: tuple[Shape, ...] = (
    ("N", 4), ("N", "M", 4), (2, "N", 6), ("N", 4, 6, 6), ("N", 3, "M", 4), ("N", 4, 4),
)  # fmt: skip
_UNARY = ("Relu", "Sigmoid", "Tanh", "Neg", "Abs", "Exp")
#: The share of draws that are networks of blocks.
_NETWORKS = 0.5


def draw(seed: int, length: int = 8) -> onnx.ModelProto:
    """A model of some patterns, or a network of some blocks."""
    # Of a generator of its own: a new kind of network does not change the drawn patterns.
    if random.Random(f"kind of {seed}").random() < _NETWORKS:
        return network(seed, length // 2)
    return patterns(seed, length)


def patterns(seed: int, length: int = 8) -> onnx.ModelProto:
    """A model of some patterns that optimisers rewrite."""
    drawn = Drawn(seed, _INPUTS)
    for _ in range(drawn.pick.randint(3, length)):
        drawn.pick.choice(_PATTERNS)(drawn)
    return drawn.model()


def network(seed: int, length: int = 4) -> onnx.ModelProto:
    """A network of some blocks, as exporters write it."""
    drawn = Drawn(seed, tuple(BLOCKS))
    blocks = BLOCKS[drawn.shapes["x"]]
    for _ in range(drawn.pick.randint(1, length)):
        drawn.pick.choice(blocks)(drawn)
    return drawn.model()


def _unary(d: Drawn) -> None:
    d.node(d.pick.choice(_UNARY), [d.last], d.shapes[d.last])


def _binary(d: Drawn) -> None:
    shape = d.shapes[d.last]
    op = d.pick.choice(("Add", "Sub", "Mul", "Div", "Max"))
    sizes = [n if isinstance(n, int) and d.pick.random() < 0.6 else 1 for n in shape]
    own = sizes[d.pick.randint(0, len(sizes)) :]
    other = d.floats(*own, low=0.5 if op == "Div" else -1.0)
    operands = [d.last, other]
    if d.pick.random() < 0.3 and op != "Div":
        operands.reverse()
    d.node(op, operands, shape)


def _neutral(d: Drawn) -> None:
    op, value = d.pick.choice((("Add", 0), ("Mul", 1), ("Div", 1), ("Sub", 0), ("Pow", 1)))
    d.node(op, [d.last, d.number(value)], d.shapes[d.last])


def _residual(d: Drawn) -> None:
    same = [name for name, shape in d.shapes.items() if shape == d.shapes[d.last]]
    op = d.pick.choice(("Add", "Mul", "Sub"))
    d.node(op, [d.last, d.pick.choice(same)], d.shapes[d.last])


def _transpose(d: Drawn) -> None:
    shape = d.shapes[d.last]
    perm = list(range(len(shape)))
    d.pick.shuffle(perm)
    d.node("Transpose", [d.last], tuple(shape[k] for k in perm), perm=perm)


def _merge(d: Drawn) -> None:
    """Two axes become one, and perhaps two again."""
    shape = d.shapes[d.last]
    places = [k for k in range(len(shape) - 1) if isinstance(shape[k + 1], int)]
    places = [k for k in places if isinstance(shape[k], int) or k == 0]
    if not places or len([n for n in shape if isinstance(n, str)]) > 1:
        return
    k = d.pick.choice(places)
    a, b = shape[k], shape[k + 1]
    assert isinstance(b, int)
    whole = a * b if isinstance(a, int) else f"{a}*{b}"
    target = [0 if j < k else -1 if j == k else n for j, n in enumerate(shape) if j != k + 1]
    if any(isinstance(n, str) for n in target):
        return
    joined = (*shape[:k], whole, *shape[k + 2 :])
    d.node("Reshape", [d.last, d.constant(np.array(target, np.int64))], joined)
    if d.pick.random() < 0.6:
        back = [0] * k + [-1, b] + [n for n in shape[k + 2 :] if isinstance(n, int)]
        if len(back) == len(shape):
            d.node("Reshape", [d.last, d.constant(np.array(back, np.int64))], shape)


def _unsqueeze(d: Drawn) -> None:
    shape = d.shapes[d.last]
    if len(shape) > 4:
        return
    axis = d.pick.randint(0, len(shape))
    axes = d.constant(np.array([axis], np.int64))
    d.node("Unsqueeze", [d.last, axes], (*shape[:axis], 1, *shape[axis:]))
    if d.pick.random() < 0.5:
        d.node("Squeeze", [d.last, axes], shape)


def _slice(d: Drawn) -> None:
    shape = d.shapes[d.last]
    places = [k for k, n in enumerate(shape) if isinstance(n, int) and n > 1]
    if not places:
        return
    axis = d.pick.choice(places)
    size = shape[axis]
    assert isinstance(size, int)
    cut = d.pick.randint(1, size - 1)
    ends = [d.constant(np.array([n], np.int64)) for n in (0, cut, 2**31 - 1, axis)]
    first, second = (*shape[:axis], cut, *shape[axis + 1 :]), (*shape[:axis], size - cut)
    second = (*second, *shape[axis + 1 :])
    source = d.last
    one = d.node("Slice", [source, ends[0], ends[1], ends[3]], first)
    other = d.node("Slice", [source, ends[1], ends[2], ends[3]], second)
    parts = [one, other] if d.pick.random() < 0.6 else [other, one]
    d.node("Concat", parts, shape, axis=axis)


def _softmax(d: Drawn) -> None:
    shape = d.shapes[d.last]
    d.node("Softmax", [d.last], shape, axis=d.pick.randint(-1, len(shape) - 1))


def _reduce(d: Drawn) -> None:
    shape = d.shapes[d.last]
    axis = d.pick.randrange(len(shape))
    if isinstance(shape[axis], str):
        return  # nothing to take the mean of where it is 0
    kept = (*shape[:axis], 1, *shape[axis + 1 :])
    source = d.last
    mean = d.node(d.pick.choice(("ReduceMean", "ReduceMax")), [source], kept, axes=[axis])
    d.node(d.pick.choice(("Sub", "Add", "Mul")), [source, mean], shape)


def _product(d: Drawn) -> None:
    shape = d.shapes[d.last]
    inner = shape[-1]
    if not isinstance(inner, int) or len(shape) < 2:
        return
    width = d.pick.choice((inner, 3))
    result = (*shape[:-1], width)
    if len(shape) == 2 and d.pick.random() < 0.5:
        turned = d.pick.random() < 0.5
        weights = d.floats(*((width, inner) if turned else (inner, width)))
        d.node("Gemm", [d.last, weights, d.floats(width)], result, transB=int(turned))
        return
    d.node("MatMul", [d.last, d.floats(inner, width)], result)
    if d.pick.random() < 0.6:
        d.node("Add", [d.last, d.floats(width)], result)


def _convolution(d: Drawn) -> None:
    shape = d.shapes[d.last]
    if len(shape) != 4 or not all(isinstance(n, int) for n in shape[1:]):
        return
    channels = shape[1]
    assert isinstance(channels, int)
    operands = [d.last, d.floats(channels, channels, 1, 1)]
    if d.pick.random() < 0.5:
        operands.append(d.floats(channels))
    d.node("Conv", operands, shape)
    if d.pick.random() < 0.6:
        d.node(
            "BatchNormalization", [d.last, *(d.floats(channels, low=0.5) for _ in "smbv")], shape
        )


def _layer_norm(d: Drawn) -> None:
    shape = d.shapes[d.last]
    size = shape[-1]
    if not isinstance(size, int):
        return
    kept = (*shape[:-1], 1)
    x = d.last
    centred = d.node("Sub", [x, d.node("ReduceMean", [x], kept, axes=[-1])], shape)
    squared = d.node("Pow", [centred, d.number(2)], shape)
    variance = d.node("ReduceMean", [squared], kept, axes=[-1])
    root = d.node("Sqrt", [d.node("Add", [variance, d.number(1e-3)], kept)], kept)
    d.node("Div", [centred, root], shape)
    d.node("Mul", [d.last, d.floats(d.pick.choice((size, 1)))], shape)
    d.node("Add", [d.last, d.floats(size)], shape)


def _gelu(d: Drawn) -> None:
    shape, x = d.shapes[d.last], d.last
    curve = d.node("Erf", [d.node("Div", [x, d.number(2**0.5)], shape)], shape)
    whole = d.node("Mul", [x, d.node("Add", [curve, d.number(1)], shape)], shape)
    d.node("Mul", [whole, d.number(0.5)], shape)


def _expand(d: Drawn) -> None:
    """A mean along the first axis, stretched to the tensor's own shape again."""
    shape, x = d.shapes[d.last], d.last
    axis = len(shape) - 1
    if isinstance(shape[axis], str):
        return
    small = d.node("ReduceMax", [x], (*shape[:axis], 1), axes=[axis])
    sizes = d.node("Shape", [x], (len(shape),))
    d.node("Expand", [small, sizes], shape)
    d.shapes.pop(sizes)  # of whole numbers
    if d.pick.random() < 0.5:
        d.node("Add", [x, d.last], shape)


def _where(d: Drawn) -> None:
    shape = d.shapes[d.last]
    size = shape[-1] if isinstance(shape[-1], int) else 1
    mask = d.constant(d.numbers.integers(0, 2, size).astype(bool))
    d.node("Where", [mask, d.last, d.number(0)], shape)


_PATTERNS = (
    *(_unary, _binary, _binary, _neutral, _residual, _transpose, _transpose, _merge, _merge),
    *(_unsqueeze, _slice, _softmax, _reduce, _product, _product, _convolution, _layer_norm),
    *(_gelu, _expand, _where),
)
