"""Rows of ops that compute: products, reductions, convolutions, normalisations, and fused ops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from ....sizes.dim import Dim, Number, dim
from ..terms.builder import ALONG, Builder
from ..terms.constants import is_number
from ..terms.places import index, stretched
from ..terms.scales import by_largest
from ..terms.term import Shape, Term, numbers_of
from .call import Call, Opaque, Row, axis_of
from .forms import (
    between,
    biased_gelu,
    cast_like,
    clip,
    curve_of,
    inverse,
    minus,
    sloped,
    unary,
)
from .opsets import attributes_of, frozen

# Products.


def dot_of(builder: Builder, a: Term, b: Term, batch: Shape) -> Term:
    """The product of matrices in the last two axes of each operand."""
    rows, columns, inner = a.shape[-2], b.shape[-1], a.shape[-1]
    shape = (*batch, rows, columns)
    rank = len(shape)
    space = builder.space((*shape, inner))

    def outer(term: Term) -> list[Dim]:
        own = term.shape[:-2]
        axes = [len(batch) - len(own) + k for k in range(len(own))]
        return list(stretched(own, axes, shape, space))

    left = [*outer(a), index(rank - 2), index(rank)]
    right = [*outer(b), index(rank), index(rank - 1)]
    wide = (*shape, inner)
    return builder.dot(builder.view(a, wide, left), builder.view(b, wide, right), shape)


def _matmul(call: Call) -> list[Term]:
    builder, a, b = call.builder, call.arg(0), call.arg(1)
    if not a.shape or not b.shape:
        raise Opaque
    shape = list(call.shape)
    left, right = len(a.shape) == 1, len(b.shape) == 1
    if left:
        a = builder.view(a, (1, *a.shape), [index(1)])
        shape.insert(len(shape) - (0 if right else 1), 1)
    if right:
        b = builder.view(b, (*b.shape, 1), [index(0)])
        shape.append(1)
    term = dot_of(builder, a, b, tuple(shape[:-2]))
    if not left and not right:
        return [term]
    places = [index(k) for k in range(len(shape) - 2)]
    rest = len(places)
    places.append(dim(0) if left else index(rest))
    places.append(dim(0) if right else index(rest + (0 if left else 1)))
    return [call.view(term, places)]


def _turned(call: Call, term: Term) -> Term:
    """A matrix, or each of many, transposed."""
    rank = len(term.shape)
    places = [*(index(k) for k in range(rank - 2)), index(rank - 1), index(rank - 2)]
    shape = (*term.shape[:-2], term.shape[-1], term.shape[-2])
    return call.builder.view(term, shape, places)


def _gemm(call: Call) -> list[Term]:
    builder, a, b = call.builder, call.arg(0), call.arg(1)
    if len(a.shape) != 2 or len(b.shape) != 2:
        raise Opaque
    a = _turned(call, a) if call.attribute("transA", 0) else a
    b = _turned(call, b) if call.attribute("transB", 0) else b
    term = _times(call, dot_of(builder, a, b, ()), call.attribute("alpha", 1.0))
    if call.has(2):
        term = _times_and_more(call, term, call.arg(2), call.attribute("beta", 1.0))
    return [_activated(call, term)]


def _times(call: Call, term: Term, factor: float) -> Term:
    if factor == 1:
        return term
    number = call.builder.number(factor, term, term.shape)
    return call.builder.product([number, term], term.shape)


def _times_and_more(call: Call, term: Term, bias: Term, factor: float) -> Term:
    wide = call.right(bias, term.shape)
    return call.builder.total([term, _times(call, wide, factor)], term.shape)


def _fused_matmul(call: Call) -> list[Term]:
    if any(call.attribute(name, 0) for name in ("transBatchA", "transBatchB")):
        raise Opaque
    a, b = call.arg(0), call.arg(1)
    if len(a.shape) < 2 or len(b.shape) < 2:
        raise Opaque
    a = _turned(call, a) if call.attribute("transA", 0) else a
    b = _turned(call, b) if call.attribute("transB", 0) else b
    term = dot_of(call.builder, a, b, call.shape[:-2])
    return [_times(call, term, call.attribute("alpha", 1.0))]


#: Activations of ONNX Runtime's fused ops that take no parameters.
_ACTIVATIONS = frozenset(["Relu", "Tanh", "Sigmoid"])


def _activated(call: Call, term: Term) -> Term:
    """The result of a fused op with its activation."""
    name = call.node.attributes.get("activation")
    if name is None:
        return term
    numbers = call.node.attributes.get("activation_params", ())
    builder = call.builder
    if name == "Relu":
        zero = builder.number(0, term, term.shape)
        return builder.pointwise("Max", [term, zero], term.shape, (), term.dtype)
    if name in _ACTIVATIONS:
        return curve_of(builder, name, term)
    if name == "Clip" and len(numbers) == 2:
        low, high = (builder.number(number, term, term.shape) for number in numbers)
        term = builder.pointwise("Max", [term, low], term.shape, (), term.dtype)
        return builder.pointwise("Min", [term, high], term.shape, (), term.dtype)
    if name == "HardSigmoid" and len(numbers) == 2:
        return between(builder, term, *map(float, numbers))
    if name == "LeakyRelu" and len(numbers) == 1:
        return sloped(builder, term, builder.number(float(numbers[0]), term, term.shape))
    raise Opaque


# Convolutions.


def _conv(call: Call) -> list[Term]:
    x, w = call.arg(0), call.arg(1)
    rank = len(x.shape) - 2
    if rank < 1 or len(w.shape) != rank + 2:
        raise Opaque
    padding = call.attribute("auto_pad", "NOTSET")
    pads = tuple(call.attribute("pads") or (0,) * 2 * rank)
    if padding not in ("NOTSET", "VALID"):
        pads = (padding,)
    elif call.node.op != "ConvTranspose":
        x, pads = _without_pad(x, pads)
    attributes = (
        ("dilations", tuple(call.attribute("dilations") or (1,) * rank)),
        ("group", call.attribute("group", 1)),
        ("pads", pads),
        ("strides", tuple(call.attribute("strides") or (1,) * rank)),
        *(
            (name, frozen(call.attribute(name)))
            for name in ("output_padding", "output_shape")
            if call.attribute(name) is not None and any(call.attribute(name))
        ),
    )
    op = "ConvTranspose" if call.node.op == "ConvTranspose" else "Conv"
    x, number = call.builder.without_number(x)
    w, largest = by_largest(call.builder, w)
    if op == "Conv" and not call.builder.exact and _of_one_point(w, dict(attributes)):
        term = _over_channels(call, x, w)
    else:
        term = call.builder.terms.get(op, (x, w), call.shape, attributes, dtype=x.dtype)
    term = _times(call, term, number * largest)
    parts = [term]
    if call.has(2):
        parts.append(call.view(call.arg(2), [index(1)]))
    if call.has(3):  # ONNX Runtime adds a tensor
        parts.append(call.right(call.arg(3), call.shape))
    return [_activated(call, call.builder.total(parts, call.shape) if parts[1:] else term)]


def _without_pad(x: Term, pads: tuple[int, ...]) -> tuple[Term, tuple[int, ...]]:
    """The tensor without the zeros that are put around it, and these among the pads."""
    if x.op != "Pad" or any(x.attributes[2]):
        return x, pads
    own = dict(x.attributes[1])
    if len(x.args) > 1:
        listed, rest = numbers_of(x.args[1]), x.args[2:]
    else:
        listed, rest = np.array(own.get("pads", own.get("paddings", ()))), ()
    if listed is None or len(rest) > 1 or own.get("mode", "constant") != "constant":
        return x, pads
    zero = all(is_number(value, 0) for value in rest) and not own.get("value", 0)
    before, after = np.split(listed, 2)
    if not zero or (listed < 0).any() or before[:2].any() or after[:2].any():
        return x, pads
    around = np.concatenate([before[2:], after[2:]])
    if len(around) != len(pads):
        return x, pads
    return x.args[0], tuple(int(a + b) for a, b in zip(around, pads, strict=True))


def _of_one_point(weights: Term, attributes: Mapping[str, object]) -> bool:
    """Whether a convolution reads one point for each of its result."""
    one = all(size == 1 for size in weights.shape[2:])
    moves = not any(attributes["pads"]) and set(attributes["strides"]) == {1}  # type: ignore[arg-type, call-overload]
    return one and moves and attributes["group"] == 1


def _over_channels(call: Call, x: Term, weights: Term) -> Term:
    """A convolution of one point as a product of matrices: a sum over channels."""
    builder, shape = call.builder, call.shape
    rank = len(shape)
    wide = (*shape, x.shape[1])
    points = [index(0), index(rank), *(index(axis) for axis in range(2, rank))]
    a = builder.view(x, wide, points)
    b = builder.view(weights, wide, [index(1), index(rank), *[dim(0)] * (rank - 2)])
    return builder.dot(a, b, shape)


# Reductions.


#: Reductions that leave one element as it is.
_OF_ONE = frozenset(["Sum", "Mean", "Max", "Min", "Prod"])


def _reduced(call: Call) -> list[Term]:
    kind = call.node.op.removeprefix("Reduce")
    term = call.arg(0)
    rank = len(term.shape)
    axes = call.whole(1, "axes")
    if not axes:
        if call.attribute("noop_with_empty_axes", 0):
            if kind not in _OF_ONE:
                raise Opaque  # ONNX Runtime squares each number, say
            return [term]
        axes = tuple(range(rank))
    return [_fold(call, kind, term, {axis_of(axis, rank) for axis in axes}, call.shape)]


def _fold(
    call: Call,
    kind: str,
    term: Term,
    axes: set[int],
    shape: Sequence[Number],
    dtype: str | None = None,
) -> Term:
    """A reduction over some axes, whether the result keeps them or not."""
    rank = len(term.shape)
    kept = [axis for axis in range(rank) if axis not in axes]
    # One element is its own sum.
    folded_axes = [a for a in sorted(axes) if kind not in _OF_ONE or term.shape[a] != 1]
    order = [*kept, *folded_axes]
    places = [index(order.index(a)) if a in order else dim(0) for a in range(rank)]
    wide = call.builder.view(term, [term.shape[a] for a in order], places)
    outer = [term.shape[axis] for axis in kept]
    folded = call.builder.reduce(kind, wide, outer, dtype or term.dtype)
    if len(shape) == len(outer):
        return folded
    return call.builder.view(folded, shape, [index(axis) for axis in kept])


def _global_average(call: Call) -> list[Term]:
    term = call.arg(0)
    return [_fold(call, "Mean", term, set(range(2, len(term.shape))), call.shape)]


# Normalisations. Engines compute them in ways of their own, so that what is written out is the same
# but for rounding.

#: The relative error of a number that is stored in 16 bits.
_ROUNDED = 2.0**-8


def _batch_norm(call: Call) -> list[Term]:
    if call.attribute("training_mode", 0) or len(call.node.outputs) > 1 or call.builder.exact:
        raise Opaque
    builder, x, shape = call.builder, call.arg(0), call.shape
    if len(shape) < 2:
        raise Opaque
    scale, bias, mean, variance = (call.view(call.arg(k), [index(1)]) for k in range(1, 5))
    epsilon = _epsilon(call, variance, shape)
    factor = builder.product(
        [scale, inverse(builder, _root(call, builder.total([variance, epsilon], shape)))], shape
    )
    centred = builder.total([x, minus(call, mean)], shape)
    return [builder.total([builder.product([centred, factor], shape), bias], shape)]


def _epsilon(call: Call, like: Term, shape: Sequence[Number]) -> Term:
    """The number that is added to a variance; of float32 where a narrower type has no such."""
    # ONNX Runtime's own ops have another default than ONNX's.
    value = call.attribute("epsilon", 1e-12 if call.node.op.startswith("Skip") else 1e-5)
    term = call.builder.number(value, like, shape)
    if abs(float(term.number_of) - value) <= _ROUNDED * value:
        return term
    return call.builder.view(call.builder.terms.constant(np.array(value, np.float32)), shape, ())


def _root(call: Call, term: Term) -> Term:
    return call.builder.pointwise(
        "Sqrt", [term], term.shape, (), term.dtype, lambda one: np.sqrt(one[0])
    )


def _layer_norm(call: Call) -> list[Term]:
    """LayerNormalization and what is like it: over the last axes, by the definition."""
    x = call.arg(0)
    axis = axis_of(call.attribute("axis", -1), len(x.shape))
    bias = call.right(call.arg(2), x.shape) if call.has(2) else None
    scale = call.right(call.arg(1), x.shape)
    return [_normal(call, x, axis, scale, bias, centred=call.node.op == "LayerNormalization")]


def _instance_norm(call: Call) -> list[Term]:
    """InstanceNormalization: over the axes behind the channels."""
    if call.node.version < 6:
        raise Opaque  # another type of attributes
    x = call.arg(0)
    scale, bias = (call.view(call.arg(k), [index(1)]) for k in (1, 2))
    return [_normal(call, x, 2, scale, bias, centred=True)]


def _group_norm(call: Call) -> list[Term]:
    """GroupNormalization: over the channels of a group and the axes behind them."""
    builder, x, groups = call.builder, call.arg(0), call.attribute("num_groups")
    count, channels, *others = x.shape
    if not isinstance(channels, int) or channels % groups:
        raise Opaque
    each = channels // groups
    shape = (count, groups, each, *others)
    channel = index(1) * each + index(2)
    behind = [index(axis) for axis in range(3, len(shape))]
    wide = builder.view(x, shape, [index(0), channel, *behind])
    of_group = call.node.version < 21  # a scale for each group; later for each channel
    place = index(1) if of_group else channel
    scale, bias = (call.view(call.arg(k), [place], shape) for k in (1, 2))
    term = _normal(call, wide, 2, scale, bias, centred=True)
    behind = [index(axis) for axis in range(2, len(x.shape))]
    places = [index(0), index(1) // each, index(1) % each, *behind]
    return [builder.view(term, x.shape, places)]


def _normal(
    call: Call, x: Term, axis: int, scale: Term, bias: Term | None, *, centred: bool
) -> Term:
    """Divided by the deviation over the axes from one on, times a scale, plus a bias."""
    if any(value.name for value in call.node.outputs[1:]) or call.builder.exact:
        raise Opaque
    builder, shape = call.builder, x.shape
    rank = len(shape)
    axes = set(range(axis, rank))
    kept = tuple(1 if k in axes else size for k, size in enumerate(shape))

    def mean(term: Term) -> Term:
        return call.right(_fold(call, "Mean", term, axes, kept), shape)

    if centred:
        x = builder.total([x, minus(call, mean(x))], shape)
    variance = mean(builder.product([x, x], shape))
    epsilon = _epsilon(call, x, shape)
    root = _root(call, builder.total([variance, epsilon], shape))
    term = builder.product([x, inverse(builder, root), scale], shape)
    return term if bias is None else builder.total([term, bias], shape)


def _skip_norm(call: Call) -> list[Term]:
    """SkipLayerNormalization: of the sum of two tensors and a bias."""
    builder, x = call.builder, call.arg(0)
    simple = call.node.op == "SkipSimplifiedLayerNormalization"
    parts = [x, call.right(call.arg(1), x.shape)]
    last = 3 if simple else 4
    if call.has(last):
        parts.append(call.right(call.arg(last), x.shape))
    whole = builder.total(parts, x.shape)
    node = replace(call.node, outputs=call.node.outputs[:1])
    inner = replace(call, node=node, shapes=(x.shape,))
    bias = None if simple or not call.has(3) else call.right(call.arg(3), x.shape)
    scale = call.right(call.arg(2), x.shape)
    term = _normal(inner, whole, len(x.shape) - 1, scale, bias, centred=not simple)
    outputs = len(call.node.outputs)
    if outputs > 1 and any(value.name for value in call.node.outputs[1:3]):
        raise Opaque
    return [term, term, term, whole][: max(1, outputs)]


def _along(call: Call) -> list[Term]:
    """An op along one axis."""
    x, node = call.arg(0), call.node
    rank = len(x.shape)
    old = node.version < 13 and node.op in ("Softmax", "LogSoftmax", "Hardmax")
    if node.op in ("CumSum", "CumProd"):
        listed = call.whole(1)
        if listed is None or len(listed) != 1:
            raise Opaque
        along = listed[0]
    else:
        along = call.attribute("axis", 1 if old else -1)
    axis = axis_of(along, rank)
    if old and axis != rank - 1:
        raise Opaque  # along several axes at once
    attributes = tuple(item for item in attributes_of(call.node) if item[0] != "axis")
    return [call.builder.along(node.op, x, axis, attributes)]


def _extreme(call: Call) -> list[Term]:
    """ArgMax, ArgMin: a reduction over one axis."""
    x = call.arg(0)
    axis = axis_of(call.attribute("axis", 0), len(x.shape))
    last = call.attribute("select_last_index", 0)
    kind = f"{call.node.op}{last or ''}"
    return [_fold(call, kind, x, {axis}, call.shape, "int64")]


_REDUCTIONS = ("Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "SumSquare", "LogSum", "LogSumExp")

COMPUTED: Mapping[tuple[str, str], Row] = MappingProxyType(
    {
        ("", "CastLike"): cast_like,
        ("", "Clip"): clip,
        ("", "MatMul"): _matmul,
        ("", "Gemm"): _gemm,
        ("com.microsoft", "FusedGemm"): _gemm,
        ("com.microsoft", "FusedMatMul"): _fused_matmul,
        ("", "Conv"): _conv,
        ("", "ConvTranspose"): _conv,
        ("com.microsoft", "FusedConv"): _conv,
        **{("", f"Reduce{kind}"): _reduced for kind in _REDUCTIONS},
        ("", "GlobalAveragePool"): _global_average,
        ("", "BatchNormalization"): _batch_norm,
        ("", "GroupNormalization"): _group_norm,
        ("", "InstanceNormalization"): _instance_norm,
        ("", "LayerNormalization"): _layer_norm,
        ("", "RMSNormalization"): _layer_norm,
        ("", "SimplifiedLayerNormalization"): _layer_norm,
        ("com.microsoft", "SimplifiedLayerNormalization"): _layer_norm,
        ("com.microsoft", "SkipLayerNormalization"): _skip_norm,
        ("com.microsoft", "SkipSimplifiedLayerNormalization"): _skip_norm,
        **{("com.microsoft", op): biased_gelu for op in ("BiasGelu", "FastGelu", "Gelu")},
        ("com.microsoft", "QuickGelu"): unary,
        **{("", op): _along for op in ALONG},
        ("", "ArgMax"): _extreme,
        ("", "ArgMin"): _extreme,
    }
)


__all__ = ["COMPUTED"]
