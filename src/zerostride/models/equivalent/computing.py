"""Rows of ops that compute: element-wise ops, products, reductions, convolutions, and fused ops."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np

from ...compute.kernels import KERNELS
from ...errors import BroadcastError
from ...sizes.dim import Dim, Number, dim
from ..ir.graph import Array, Node
from ..ir.site import Kind
from ..onnx_ops.kernels.call import NodeCall
from ..onnx_ops.kernels.pointwise import UNARY, rounded
from ..onnx_ops.sites import find_site
from ..onnx_ops.table import op_row
from .builder import ALONG, Builder, Compute
from .call import Call, Opaque, axis_of, right_places, schema
from .places import index, own_places, stretched
from .terms import Shape, Term

Row = Callable[[Call], "Sequence[Term]"]


def frozen(value: Any) -> Any:
    """An attribute as something that can be compared."""
    if isinstance(value, np.ndarray):
        return str(value.dtype), value.shape, value.tobytes()
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return tuple(map(frozen, value))
    return value


# Element-wise ops.


def broadcast(call: Call) -> list[Term]:
    """An op that broadcasts, by its site's plan."""
    node = call.node
    site = find_site(node)
    if (
        site is None
        or site.kind not in (Kind.ELEMENTWISE, Kind.WHERE, Kind.PRELU)
        or not site.whole
    ):
        raise Opaque
    args = [call.arg(k) for k in range(len(call.args))]
    try:
        plan = site.plan(tuple(arg.shape for arg in args), call.builder.facts)
    except BroadcastError:
        raise Opaque from None
    if len(plan.operands) != len(args):
        raise Opaque
    space = call.builder.space(call.shape)
    views = []
    for arg, axes in zip(args, plan.axes_mapping, strict=True):
        views.append(call.view(arg, stretched(arg.shape, axes, call.shape, space)))
    values = op_row(node.op, node.domain).values
    compute = None if values is None else _by_values(node, values)
    return [_pointwise(call, node.op, views, compute)]


def _by_values(node: Node, values: Callable[..., Array]) -> Compute:
    return lambda arrays: values(NodeCall(node, tuple(arrays)), arrays)


def _pointwise(call: Call, op: str, args: Sequence[Term], compute: Compute | None) -> Term:
    row = _FORMS.get(op)
    if row is not None:
        term = row(call, args)
        if term is not None:
            return term
    attributes = _attributes(call)
    return call.builder.pointwise(op, args, call.shape, attributes, _dtype(call), compute)


def _dtype(call: Call) -> str | None:
    return call.node.outputs[0].dtype if call.node.outputs else None


def _attributes(call: Call) -> tuple[Any, ...]:
    node = call.node
    given = {**schema(node.op, node.domain, node.version)[0], **node.attributes}
    return tuple(sorted((name, frozen(value)) for name, value in given.items()))


def unary(call: Call) -> list[Term]:
    """An op of one tensor."""
    kernel = UNARY.get(call.node.op) or op_row(call.node.op, call.node.domain).kernel
    compute: Compute | None = None
    if kernel is not None:
        chosen = kernel

        def compute(arrays: Sequence[Array]) -> Array:
            result = chosen(NodeCall(call.node, tuple(arrays)))
            return result[0] if isinstance(result, tuple) else result

    return [_pointwise(call, call.node.op, [call.arg(0)], compute)]


def _minus(call: Call, term: Term) -> Term:
    minus = call.builder.number(-1, term, term.shape)
    return call.builder.product([minus, term], term.shape)


def _signed(term: Term) -> bool:
    return term.dtype is None or not term.dtype.startswith(("u", "bool"))


def _difference(call: Call, args: Sequence[Term]) -> Term | None:
    if not _signed(args[0]):
        return None
    return call.builder.total([args[0], _minus(call, args[1])], call.shape)


def _floats(term: Term) -> bool:
    return term.dtype is not None and term.dtype.startswith(("float", "bfloat"))


def _quotient(call: Call, args: Sequence[Term]) -> Term | None:
    builder, (a, b) = call.builder, args
    if b.number_of is not None and b.number_of == 1:
        return a
    if not _floats(b) or builder.exact:
        return None
    return builder.product([a, _inverse(builder, b)], call.shape)


def _inverse(builder: Builder, term: Term) -> Term:
    """1 / a term."""
    if term.op == "Reciprocal":
        return term.args[0]

    def compute(arrays: Sequence[Array]) -> Array:
        return np.asarray(1 / arrays[0]).astype(arrays[0].dtype)

    return builder.pointwise("Reciprocal", [term], term.shape, (), term.dtype, compute)


def _power(call: Call, args: Sequence[Term]) -> Term | None:
    builder, (a, b) = call.builder, args
    exponent = b.number_of
    if exponent is None:
        return None
    if exponent == 1:
        return a
    if builder.exact or not _floats(a):
        return None
    if exponent == 2:
        return builder.product([a, a], call.shape)
    if exponent == 0.5:
        return builder.pointwise("Sqrt", [a], call.shape, (), a.dtype)
    if exponent == -0.5:
        return _inverse(builder, builder.pointwise("Sqrt", [a], call.shape, (), a.dtype))
    return None


def _where(call: Call, args: Sequence[Term]) -> Term | None:
    chosen = args[0].number_of
    return None if chosen is None else args[1 if chosen else 2]


def _largest(call: Call, args: Sequence[Term]) -> Term | None:
    """Relu: the larger of the number and 0."""
    zero = call.builder.number(0, args[0], call.shape)
    return call.builder.pointwise("Max", [args[0], zero], call.shape, (), args[0].dtype)


def _cast(call: Call, args: Sequence[Term]) -> Term | None:
    return args[0] if _dtype(call) is not None and _dtype(call) == args[0].dtype else None


def _swish(call: Call, args: Sequence[Term]) -> Term | None:
    (x,) = args
    builder = call.builder
    factor = call.attribute("alpha", 1.702 if call.node.op == "QuickGelu" else 1.0)
    inner = builder.product([x, builder.number(factor, x, call.shape)], call.shape)
    return builder.product([x, curve_of(builder, "Sigmoid", inner)], call.shape)


def curve_of(builder: Builder, name: str, x: Term) -> Term:
    """A function of the op table without parameters."""
    function = rounded(KERNELS[name.lower()])
    return builder.pointwise(name, [x], x.shape, (), x.dtype, lambda arrays: function(arrays[0]))


def gelu_of(builder: Builder, x: Term, shape: Shape, by_tanh: bool) -> Term:
    """Gelu, written out."""

    def number(value: float) -> Term:
        return builder.number(value, x, shape)

    if by_tanh:
        cube = builder.product([x, x, x, number(0.044715)], shape)
        inner = builder.product(
            [builder.total([x, cube], shape), number(np.sqrt(2 / np.pi))], shape
        )
        curve = curve_of(builder, "Tanh", inner)
    else:
        inner = builder.product([x, number(np.sqrt(0.5))], shape)
        curve = curve_of(builder, "Erf", inner)
    return builder.product([x, number(0.5), builder.total([curve, number(1)], shape)], shape)


def _hard_sigmoid(call: Call, args: Sequence[Term]) -> Term | None:
    alpha, beta = call.attribute("alpha", 0.2), call.attribute("beta", 0.5)
    exact = call.builder.exact or not _floats(args[0])
    return None if exact else _between(call.builder, args[0], alpha, beta)


def _hard_swish(call: Call, args: Sequence[Term]) -> Term | None:
    if call.builder.exact or not _floats(args[0]):
        return None
    curve = _between(call.builder, args[0], 1 / 6, 0.5)
    return call.builder.product([args[0], curve], call.shape)


def _between(builder: Builder, x: Term, slope: float, offset: float) -> Term:
    """A line, cut off below 0 and above 1."""
    shape = x.shape

    def number(value: float) -> Term:
        return builder.number(value, x, shape)

    line = builder.total([builder.product([x, number(slope)], shape), number(offset)], shape)
    low = builder.pointwise("Max", [line, number(0)], shape, (), x.dtype)
    return builder.pointwise("Min", [low, number(1)], shape, (), x.dtype)


def _gelu(call: Call, args: Sequence[Term]) -> Term | None:
    by_tanh = call.node.op == "FastGelu" or call.attribute("approximate", "none") == "tanh"
    return gelu_of(call.builder, args[0], call.shape, by_tanh)


_FORMS: Mapping[str, Callable[[Call, Sequence[Term]], Term | None]] = MappingProxyType(
    {
        "Add": lambda call, args: call.builder.total(args, call.shape),
        "Sum": lambda call, args: call.builder.total(args, call.shape),
        "Mul": lambda call, args: call.builder.product(args, call.shape),
        "Sub": _difference,
        "Neg": lambda call, args: _minus(call, args[0]) if _signed(args[0]) else None,
        "Div": _quotient,
        "Reciprocal": lambda call, args: _inverse(call.builder, args[0]),
        "Pow": _power,
        "Where": _where,
        "Relu": _largest,
        "Cast": _cast,
        "CastLike": _cast,
        **dict.fromkeys(("Swish", "QuickGelu"), _swish),
        "HardSigmoid": _hard_sigmoid,
        "HardSwish": _hard_swish,
        **dict.fromkeys(("Gelu", "FastGelu"), _gelu),
    }
)


def _biased_gelu(call: Call) -> list[Term]:
    x = call.arg(0)
    if call.has(1):
        x = call.builder.total([x, call.right(call.arg(1), call.shape)], call.shape)
    return [_gelu(call, [x]) or x]


def _of_two(function: Callable[..., Array], arrays: Sequence[Array]) -> Array:
    return function(*arrays)


def _clip(call: Call) -> list[Term]:
    term = call.arg(0)
    for position, name, op in ((1, "min", "Max"), (2, "max", "Min")):
        if call.has(position):
            bound = call.view(call.arg(position), [dim(0)] * len(call.arg(position).shape))
        elif name in call.node.attributes:
            bound = call.builder.number(call.node.attributes[name], term, call.shape)
        else:
            continue
        function = np.maximum if op == "Max" else np.minimum
        term = call.builder.pointwise(
            op, [term, bound], call.shape, (), term.dtype, partial(_of_two, function)
        )
    return [term]


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
        return _between(builder, term, *map(float, numbers))
    if name == "LeakyRelu" and len(numbers) == 1:
        attributes = (("alpha", float(numbers[0])),)
        return builder.pointwise(name, [term], term.shape, attributes, term.dtype)
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
    if number != 1 and w.constant:
        w = call.builder.product([w, call.builder.number(number, w, w.shape)], w.shape)
    elif number != 1:
        x = call.arg(0)
    term = call.builder.terms.get(op, (x, w), call.shape, attributes, dtype=x.dtype)
    parts = [term]
    if call.has(2):
        parts.append(call.view(call.arg(2), [index(1)]))
    if call.has(3):  # ONNX Runtime adds a tensor
        parts.append(call.right(call.arg(3), call.shape))
    return [_activated(call, call.builder.total(parts, call.shape) if parts[1:] else term)]


# Reductions.


#: Reductions that leave one element as it is.
_OF_ONE = frozenset(["Sum", "Mean", "Max", "Min", "Prod"])


def _reduced(call: Call) -> list[Term]:
    kind = call.node.op.removeprefix("Reduce")
    term = call.arg(0)
    rank = len(term.shape)
    axes = call.whole(1, "axes")
    if not axes:
        if axes is not None and call.attribute("noop_with_empty_axes", 0):
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


# Normalisations.


def _batch_norm(call: Call) -> list[Term]:
    if call.attribute("training_mode", 0) or len(call.node.outputs) > 1:
        raise Opaque
    builder, x, shape = call.builder, call.arg(0), call.shape
    if len(shape) < 2:
        raise Opaque
    scale, bias, mean, variance = (call.view(call.arg(k), [index(1)]) for k in range(1, 5))
    epsilon = builder.number(call.attribute("epsilon", 1e-5), variance, shape)
    factor = builder.product(
        [scale, _inverse(builder, _root(call, builder.total([variance, epsilon], shape)))], shape
    )
    centred = builder.total([x, _minus(call, mean)], shape)
    return [builder.total([builder.product([centred, factor], shape), bias], shape)]


def _root(call: Call, term: Term) -> Term:
    return call.builder.pointwise(
        "Sqrt", [term], term.shape, (), term.dtype, lambda one: np.sqrt(one[0])
    )


def _layer_norm(call: Call) -> list[Term]:
    """LayerNormalization and what is like it: over the last axes, by the definition."""
    x = call.arg(0)
    axis = axis_of(call.attribute("axis", -1), len(x.shape))
    scale, bias = call.arg(1), call.arg(2) if call.has(2) else None
    return [_normal(call, x, axis, scale, bias, centred=call.node.op == "LayerNormalization")]


def _normal(
    call: Call, x: Term, axis: int, scale: Term, bias: Term | None, *, centred: bool
) -> Term:
    if any(value.name for value in call.node.outputs[1:]):
        raise Opaque
    builder, shape = call.builder, x.shape
    rank = len(shape)
    axes = set(range(axis, rank))
    kept = tuple(1 if k in axes else size for k, size in enumerate(shape))

    def mean(term: Term) -> Term:
        return call.right(_fold(call, "Mean", term, axes, kept), shape)

    if centred:
        x = builder.total([x, _minus(call, mean(x))], shape)
    variance = mean(builder.product([x, x], shape))
    epsilon = builder.number(call.attribute("epsilon", 1e-5), x, shape)
    root = _root(call, builder.total([variance, epsilon], shape))
    parts = [x, _inverse(builder, root), call.right(scale, shape)]
    term = builder.product(parts, shape)
    return term if bias is None else builder.total([term, call.right(bias, shape)], shape)


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
    bias = None if simple or not call.has(3) else call.arg(3)
    term = _normal(inner, whole, len(x.shape) - 1, call.arg(2), bias, centred=not simple)
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
        given = listed[0]
    else:
        given = call.attribute("axis", 1 if old else -1)
    axis = axis_of(given, rank)
    if old and axis != rank - 1:
        raise Opaque  # along several axes at once
    attributes = tuple(item for item in _attributes(call) if item[0] != "axis")
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
        ("", "Clip"): _clip,
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
        ("", "LayerNormalization"): _layer_norm,
        ("", "RMSNormalization"): _layer_norm,
        ("", "SimplifiedLayerNormalization"): _layer_norm,
        ("com.microsoft", "SimplifiedLayerNormalization"): _layer_norm,
        ("com.microsoft", "SkipLayerNormalization"): _skip_norm,
        ("com.microsoft", "SkipSimplifiedLayerNormalization"): _skip_norm,
        **{("com.microsoft", op): _biased_gelu for op in ("BiasGelu", "FastGelu", "Gelu")},
        ("com.microsoft", "QuickGelu"): unary,
        **{("", op): _along for op in ALONG},
        ("", "ArgMax"): _extreme,
        ("", "ArgMin"): _extreme,
    }
)

__all__ = ["COMPUTED", "broadcast", "frozen", "own_places", "right_places", "unary"]
