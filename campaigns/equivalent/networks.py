"""Blocks of real networks as exporters write them: attention, normalisation, convolution, sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper

from .drawn import Drawn, Shape

#: Heads of an attention, and the features of each.
_HEADS, _FEATURES = 2, 4
WIDTH = _HEADS * _FEATURES
#: The score of a key that is masked.
_LOW = -1e4
_EPSILONS = (1e-5, 1e-6, 1e-3, 1e-12)
_INT = np.int64

Block = Callable[[Drawn], None]


# Sizes as exporters write them.


def _sizes(d: Drawn, x: str) -> str:
    return d.node("Shape", [x], (len(d.shapes[x]),), keep=False)


def _size(d: Drawn, x: str, axis: int) -> str:
    """One size of a tensor, as a tensor of one number."""
    number = d.node("Gather", [_sizes(d, x), d.constant(_INT(axis))], (), axis=0, keep=False)
    return d.node("Unsqueeze", [number, d.ints(0)], (1,), keep=False)


def _reshape(d: Drawn, x: str, target: Sequence[int], shape: Shape) -> str:
    """Reshape: to a constant, or to sizes of the operand joined with numbers."""
    if d.pick.random() < 0.5 or 0 not in target:
        return d.node("Reshape", [x, d.ints(*target)], shape)
    parts = [_size(d, x, k) if n == 0 else d.ints(n) for k, n in enumerate(target)]
    whole = d.node("Concat", parts, (len(parts),), axis=0, keep=False)
    return d.node("Reshape", [x, whole], shape)


def _linear(d: Drawn, x: str, width: int) -> str:
    shape = (*d.shapes[x][:-1], width)
    result = d.node("MatMul", [x, d.floats(int(d.shapes[x][-1]), width)], shape)
    if d.pick.random() < 0.6:
        operands = [result, d.floats(width)]
        d.pick.shuffle(operands)
        result = d.node("Add", operands, shape)
    return result


# Text: (batch, length, width).


def attention(d: Drawn) -> None:
    """Self-attention with a mask, perhaps rotary, and a residual."""
    x = d.last
    batch, length, _ = d.shapes[x]
    q, k, v = (_heads(d, _linear(d, x, WIDTH)) for _ in "qkv")
    if d.pick.random() < 0.4:
        angles = _angles(d, x)
        q, k = _rotated(d, q, angles), _rotated(d, k, angles)
    scale = _FEATURES**-0.5
    turned = (batch, _HEADS, _FEATURES, length)
    scores = (batch, _HEADS, length, length)
    if d.pick.random() < 0.5:
        q = d.node("Mul", [q, d.number(scale)], d.shapes[q])
        scale = 1.0
    k = d.node("Transpose", [k], turned, perm=[0, 1, 3, 2])
    last = d.node("MatMul", [q, k], scores)
    if scale != 1.0:
        last = d.node("Div", [last, d.number(1 / scale)], scores)
    last = d.pick.choice((_unmasked, _padding, _added, _causal))(d, x, last)
    weights = d.node("Softmax", [last], scores, axis=-1)
    mixed = d.node("MatMul", [weights, v], (batch, _HEADS, length, _FEATURES))
    mixed = d.node("Transpose", [mixed], (batch, length, _HEADS, _FEATURES), perm=[0, 2, 1, 3])
    mixed = _reshape(d, mixed, (0, 0, WIDTH), (batch, length, WIDTH))
    d.node("Add", [x, _linear(d, mixed, WIDTH)], d.shapes[x])


def _heads(d: Drawn, x: str) -> str:
    batch, length, _ = d.shapes[x]
    split = _reshape(d, x, (0, 0, _HEADS, _FEATURES), (batch, length, _HEADS, _FEATURES))
    shape = (batch, _HEADS, length, _FEATURES)
    return d.node("Transpose", [split], shape, perm=[0, 2, 1, 3])


def _unmasked(d: Drawn, x: str, scores: str) -> str:
    return scores


def _mask(d: Drawn, x: str) -> str:
    """A mask of truth values by batch and key."""
    batch, length, _ = d.shapes[x]
    mask = d.input("mask", TensorProto.BOOL, (batch, length))
    return d.node("Unsqueeze", [mask, d.ints(1, 2)], (batch, 1, 1, length), keep=False)


def _padding(d: Drawn, x: str, scores: str) -> str:
    operands = [_mask(d, x), scores, d.number(_LOW)]
    return d.node("Where", operands, d.shapes[scores])


def _added(d: Drawn, x: str, scores: str) -> str:
    """(1 - mask) * low, added."""
    mask = _mask(d, x)
    shape = (d.shapes[x][0], 1, 1, d.shapes[x][1])
    number = d.node("Cast", [mask], shape, to=TensorProto.FLOAT)
    low = d.node("Mul", [d.node("Sub", [d.number(1), number], shape), d.number(_LOW)], shape)
    return d.node("Add", [scores, low], d.shapes[scores])


def _causal(d: Drawn, x: str, scores: str) -> str:
    """A triangle of the length, made of ConstantOfShape and Trilu."""
    length = d.shapes[x][1]
    size = _size(d, x, 1)
    square = d.node("Concat", [size, size], (2,), axis=0, keep=False)
    one = helper.make_tensor("value", TensorProto.FLOAT, [1], [1.0])
    ones = d.node("ConstantOfShape", [square], (length, length), value=one)
    lower = d.node("Trilu", [ones], (length, length), upper=0)
    gone = d.node("Equal", [lower, d.number(0)], (length, length), keep=False)
    return d.node("Where", [gone, d.number(_LOW), scores], d.shapes[scores])


def _angles(d: Drawn, x: str) -> tuple[str, str]:
    """Cosines and sines of each position, (length, features)."""
    length = d.shapes[x][1]
    number = d.node("Gather", [_sizes(d, x), d.constant(_INT(1))], (), axis=0, keep=False)
    zero, one = d.constant(_INT(0)), d.constant(_INT(1))
    places = d.node("Range", [zero, number, one], (length,), keep=False)
    places = d.node("Cast", [places], (length,), to=TensorProto.FLOAT, keep=False)
    column = d.node("Unsqueeze", [places, d.ints(1)], (length, 1), keep=False)
    half = _FEATURES // 2
    steps = d.constant((0.5 ** np.arange(half)).astype(np.float32).reshape(1, half))
    angles = d.node("Mul", [column, steps], (length, half), keep=False)
    whole = (length, _FEATURES)
    both = d.node("Concat", [angles, angles], whole, axis=-1, keep=False)
    return (d.node("Cos", [both], whole, keep=False), d.node("Sin", [both], whole, keep=False))


def _rotated(d: Drawn, x: str, angles: tuple[str, str]) -> str:
    shape = d.shapes[x]
    half = _FEATURES // 2
    part = (*shape[:-1], half)
    if d.pick.random() < 0.5:
        first, second = d.nodes_of("Split", [x, d.ints(half, half)], [part, part], axis=-1)
    else:
        first, second = (
            d.node("Slice", [x, d.ints(a), d.ints(b), d.ints(3)], part)
            for a, b in ((0, half), (half, 2**31 - 1))
        )
    turned = d.node("Concat", [d.node("Neg", [second], part), first], shape, axis=-1)
    one, other = (
        d.node("Mul", [part, angle], shape) for part, angle in zip((x, turned), angles, strict=True)
    )
    return d.node("Add", [one, other], shape)


def layer_norm(d: Drawn) -> None:
    """LayerNormalization, as one op or written out in some ways."""
    x, shape = d.last, d.shapes[d.last]
    size, kept = int(shape[-1]), (*shape[:-1], 1)
    epsilon = d.pick.choice(_EPSILONS)
    scale, bias = d.floats(size, low=0.5), d.floats(size)
    if d.pick.random() < 0.25:
        d.node("LayerNormalization", [x, scale, bias], shape, axis=-1, epsilon=epsilon)
        return
    centred = d.node("Sub", [x, d.node("ReduceMean", [x], kept, axes=[-1])], shape)
    normal = _over_root(d, centred, epsilon, kept)
    d.node("Add", [d.node("Mul", [normal, scale], shape), bias], shape)


def rms_norm(d: Drawn) -> None:
    """RMSNorm written out."""
    x, shape = d.last, d.shapes[d.last]
    normal = _over_root(d, x, d.pick.choice(_EPSILONS), (*shape[:-1], 1))
    operands = [normal, d.floats(int(shape[-1]), low=0.5)]
    d.pick.shuffle(operands)
    d.node("Mul", operands, shape)


def _over_root(d: Drawn, x: str, epsilon: float, kept: Shape) -> str:
    """A tensor over the root of its mean square along the last axis."""
    shape = d.shapes[x]
    if d.pick.random() < 0.5:
        squared = d.node("Pow", [x, d.number(2)], shape)
    else:
        squared = d.node("Mul", [x, x], shape)
    mean = d.node("ReduceMean", [squared], kept, axes=[-1])
    root = d.node("Sqrt", [d.node("Add", [mean, d.number(epsilon)], kept)], kept)
    if d.pick.random() < 0.5:
        return d.node("Div", [x, root], shape)
    return d.node("Mul", [x, d.node("Reciprocal", [root], kept)], shape)


def gated(d: Drawn) -> None:
    """A gated MLP: two projections, or one that is split."""
    x, shape = d.last, d.shapes[d.last]
    wide = (*shape[:-1], WIDTH)
    if d.pick.random() < 0.5:
        gate, up = _linear(d, x, WIDTH), _linear(d, x, WIDTH)
    else:
        both = _linear(d, x, 2 * WIDTH)
        gate, up = d.nodes_of("Split", [both, d.ints(WIDTH, WIDTH)], [wide, wide], axis=-1)
    open_ = d.node("Mul", [gate, d.node("Sigmoid", [gate], wide)], wide)
    down = _linear(d, d.node("Mul", [open_, up], wide), int(shape[-1]))
    d.node("Add", [x, down], shape)


def gelu(d: Drawn) -> None:
    """An MLP with Gelu by Erf, or by Tanh."""
    x, shape = d.last, d.shapes[d.last]
    h = _linear(d, x, WIDTH)
    wide = d.shapes[h]
    if d.pick.random() < 0.5:
        curve = d.node("Erf", [d.node("Div", [h, d.number(2**0.5)], wide)], wide)
    else:
        cube = d.node("Mul", [d.node("Pow", [h, d.number(3)], wide), d.number(0.044715)], wide)
        inner = d.node("Mul", [d.node("Add", [h, cube], wide), d.number(0.7978846)], wide)
        curve = d.node("Tanh", [inner], wide)
    half = d.node("Mul", [h, d.number(0.5)], wide)
    whole = d.node("Mul", [half, d.node("Add", [curve, d.number(1)], wide)], wide)
    d.node("Add", [x, _linear(d, whole, int(shape[-1]))], shape)


# Images: (batch, channels, height, width).


def convolutions(d: Drawn) -> None:
    """Two convolutions with BatchNormalization, and a residual."""
    x, shape = d.last, d.shapes[d.last]
    y = _activated(d, _convolved(d, x))
    y = _convolved(d, y)
    _activated(d, d.node("Add", [y, x] if d.pick.random() < 0.5 else [x, y], shape))


def _convolved(d: Drawn, x: str) -> str:
    shape = d.shapes[x]
    channels = int(shape[1])
    groups = channels if d.pick.random() < 0.3 else 1
    operands = [x, d.floats(channels, channels // groups, 3, 3)]
    operands += [d.floats(channels)] if d.pick.random() < 0.4 else []
    y = d.node("Conv", operands, shape, pads=[1, 1, 1, 1], group=groups)
    if d.pick.random() < 0.7:
        four = [d.floats(channels, low=0.5) for _ in "smbv"]
        y = d.node("BatchNormalization", [y, *four], shape, epsilon=d.pick.choice(_EPSILONS))
    return y


def _activated(d: Drawn, x: str) -> str:
    shape = d.shapes[x]
    kind = d.pick.randrange(4)
    if kind == 0:
        return d.node("Relu", [x], shape)
    if kind == 1:
        return d.node("Mul", [x, d.node("Sigmoid", [x], shape)], shape)
    if kind == 2:
        return d.node("Clip", [x, d.number(0), d.number(6)], shape)
    shifted = d.node("Add", [x, d.number(3)], shape)
    six = d.node("Clip", [shifted, d.number(0), d.number(6)], shape)
    return d.node("Div", [d.node("Mul", [x, six], shape), d.number(6)], shape)


def group_norm(d: Drawn) -> None:
    """GroupNorm by Reshape, with InstanceNormalization or written out."""
    x, shape = d.last, d.shapes[d.last]
    channels = int(shape[1])
    inner = channels // 2 * int(shape[2]) * int(shape[3])
    flat = (shape[0], 2, inner)
    parts = d.node("Reshape", [x, d.ints(0, 2, -1)], flat)
    epsilon = d.pick.choice(_EPSILONS[:3])
    if d.pick.random() < 0.5:
        ones = [d.constant(np.full(2, n, np.float32)) for n in (1, 0)]
        normal = d.node("InstanceNormalization", [parts, *ones], flat, epsilon=epsilon)
    else:
        kept = (shape[0], 2, 1)
        mean = d.node("ReduceMean", [parts], kept, axes=[2])
        normal = _over_root(d, d.node("Sub", [parts, mean], flat), epsilon, kept)
    back = d.node("Reshape", [normal, _sizes(d, x)], shape)
    scaled = d.node("Mul", [back, d.floats(channels, 1, 1, low=0.5)], shape)
    d.node("Add", [scaled, d.floats(channels, 1, 1)], shape)


def squeezed(d: Drawn) -> None:
    """Squeeze and excitation: a gate of the mean of each channel."""
    x, shape = d.last, d.shapes[d.last]
    channels = int(shape[1])
    small = (shape[0], channels, 1, 1)
    if d.pick.random() < 0.5:
        mean = d.node("GlobalAveragePool", [x], small)
    else:
        mean = d.node("ReduceMean", [x], small, axes=[2, 3])
    gate = d.node("Conv", [mean, d.floats(channels, channels, 1, 1), d.floats(channels)], small)
    d.node("Mul", [x, d.node("Sigmoid", [gate], small)], shape)


def space_to_depth(d: Drawn) -> None:
    """Every second row and column, joined as channels: the first block of some detectors."""
    x = d.last
    batch, channels, height, width = d.shapes[x]
    if int(height) % 2 or int(width) % 2:
        return
    few = (batch, channels, int(height) // 2, int(width) // 2)
    parts = []
    for row, column in ((0, 0), (1, 0), (0, 1), (1, 1)):
        rows = (batch, channels, few[2], width)
        part = d.node("Slice", [x, *_every_second(d, row, 2)], rows)
        parts.append(d.node("Slice", [part, *_every_second(d, column, 3)], few))
    y = d.node("Concat", parts, (batch, 4 * int(channels), *few[2:]), axis=1)
    d.node("Conv", [y, d.floats(int(channels), 4 * int(channels), 1, 1)], few)


def _every_second(d: Drawn, begin: int, axis: int) -> list[str]:
    return [d.ints(n) for n in (begin, 2**31 - 1, axis, 2)]


def padded(d: Drawn) -> None:
    """Pad, and a convolution or a slice that takes the padding away."""
    x, shape = d.last, d.shapes[d.last]
    batch, channels, height, width = shape
    top, left = d.pick.randint(0, 2), d.pick.randint(0, 2)
    wide = (batch, channels, int(height) + 2, int(width) + 2)
    pads = d.ints(0, 0, top, left, 0, 0, 2 - top, 2 - left)
    mode = d.pick.choice(("constant", "constant", "reflect", "edge"))
    if min(int(height), int(width)) < 3 and mode == "reflect":
        mode = "constant"
    y = d.node("Pad", [x, pads], wide, mode=mode)
    if d.pick.random() < 0.7:
        d.node("Conv", [y, d.floats(int(channels), int(channels), 3, 3)], shape)
        return
    ends = d.ints(top + int(height), left + int(width))
    d.node("Slice", [y, d.ints(top, left), ends, d.ints(2, 3)], shape)


def pooled(d: Drawn) -> None:
    """MaxPool or AveragePool of the same size, beside the tensor itself."""
    x, shape = d.last, d.shapes[d.last]
    op = d.pick.choice(("MaxPool", "AveragePool"))
    y = d.node(op, [x], shape, kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    d.node("Add", [x, y], shape)


# Of every shape.


def expanded(d: Drawn) -> None:
    """PyTorch's expand: a size of -1 keeps the operand's, by ConstantOfShape, Equal and Where."""
    x, shape = d.last, d.shapes[d.last]
    rank = len(shape)
    small = d.floats(*(n if isinstance(n, int) else 1 for n in shape[1:]))
    parts = [_size(d, x, k) if isinstance(n, str) else d.ints(n) for k, n in enumerate(shape)]
    sizes = d.node("Concat", parts, (rank,), axis=0, keep=False)
    one = helper.make_tensor("value", TensorProto.INT64, [1], [1])
    ones = d.node("ConstantOfShape", [d.ints(rank)], (rank,), value=one, keep=False)
    below = d.node("Mul", [ones, d.constant(_INT(-1))], (rank,), keep=False)
    open_ = d.node("Equal", [sizes, below], (rank,), keep=False)
    target = d.node("Where", [open_, ones, sizes], (rank,), keep=False)
    wide = d.node("Expand", [small, target], shape)
    d.node(d.pick.choice(("Add", "Mul")), [x, wide], shape)


def filled(d: Drawn) -> None:
    """A tensor of zeros or ones of the operand's sizes."""
    x, shape = d.last, d.shapes[d.last]
    value = helper.make_tensor("value", TensorProto.FLOAT, [1], [float(d.pick.randint(0, 1))])
    same = d.node("ConstantOfShape", [_sizes(d, x)], shape, value=value)
    d.node(d.pick.choice(("Add", "Sub")), [x, same], shape)


def branched(d: Drawn) -> None:
    """If with a constant condition, or with one on a size."""
    x, shape = d.last, d.shapes[d.last]
    if d.pick.random() < 0.5:
        condition = d.constant(np.array(d.pick.random() < 0.5))
    else:
        size = d.node("Gather", [_sizes(d, x), d.constant(_INT(0))], (), axis=0, keep=False)
        condition = d.node("Equal", [size, d.constant(_INT(1))], (), keep=False)
    own = d.number(d.pick.choice((2, 0.5)))
    then = _body(d, "Mul", [x, own], shape)
    other = _body(d, d.pick.choice(("Add", "Mul")), [x, own], shape)
    d.node("If", [condition], shape, then_branch=then, else_branch=other)


def _body(d: Drawn, op: str, inputs: Sequence[str], shape: Shape) -> onnx.GraphProto:
    name = d.fresh("b")
    value = helper.make_tensor_value_info(name, TensorProto.FLOAT, list(shape))
    node = helper.make_node(op, list(inputs), [name], f"n_{name}")
    return helper.make_graph([node], f"body_{name}", [], [value])


#: The blocks of each kind of network, by the shape of its input.
TEXT: Shape = ("N", "M", WIDTH)
IMAGE: Shape = ("N", 4, 6, 6)
_ANY: tuple[Block, ...] = (expanded, filled, branched)
BLOCKS: Mapping[Shape, tuple[Block, ...]] = {
    TEXT: (attention, attention, attention, layer_norm, rms_norm, gated, gelu, *_ANY),
    IMAGE: (
        *(convolutions, convolutions, group_norm, squeezed, space_to_depth, padded, pooled),
        *_ANY,
    ),
}
