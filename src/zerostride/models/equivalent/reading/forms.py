"""Rows of element-wise ops, and the forms into which they are brought."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType

import numpy as np

from ....compute.kernels import KERNELS
from ....errors import BroadcastError
from ....sizes.dim import dim
from ...formats.lowering import ELEMENT_TYPES
from ...ir.graph import Array, Node
from ...ir.site import Kind
from ...onnx_ops.kernels.call import NodeCall
from ...onnx_ops.kernels.pointwise import UNARY, rounded
from ...onnx_ops.sites import find_site
from ...onnx_ops.table import op_row
from ..terms.axes import places_of, spreads
from ..terms.builder import Builder
from ..terms.constants import Compute
from ..terms.places import stretched
from ..terms.term import Shape, Term
from .call import Call, Opaque
from .opsets import attributes_of

#: Rules by which every operand's last axis lies at the result's last axis.
_AT_THE_RIGHT = frozenset(["numpy", "unidirectional"])
#: Ops that leave their operand as it is where it is the only one.
_OF_ONE = frozenset(["Max", "Mean", "Min", "Sum"])


def broadcast(call: Call) -> list[Term]:
    """An op that broadcasts, by its site's plan."""
    node = call.node
    if len(call.args) == 1 and node.op in _OF_ONE:
        return [call.arg(0)]
    site = find_site(node)
    if (
        site is None
        or site.kind not in (Kind.ELEMENTWISE, Kind.WHERE, Kind.PRELU)
        or not site.whole
    ):
        raise Opaque
    args = [call.arg(k) for k in range(len(call.args))]
    shapes = tuple(arg.shape for arg in args)
    if site.rule.name in _AT_THE_RIGHT and not site.attributes:
        views = [call.right(arg, call.shape) for arg in args]
        return [_pointwise(call, node.op, views, _values_of(node))]
    key = site.rule.name, repr(sorted(site.attributes.items())), shapes, site.kind
    plan = call.builder.plans.get(key)
    try:
        if plan is None:
            plan = call.builder.plans[key] = site.plan(shapes, call.builder.facts)
    except BroadcastError:
        raise Opaque from None
    if len(plan.operands) != len(args):
        raise Opaque
    space = call.builder.space(call.shape)
    views = []
    for arg, axes in zip(args, plan.axes_mapping, strict=True):
        views.append(call.view(arg, stretched(arg.shape, axes, call.shape, space)))
    return [_pointwise(call, node.op, views, _values_of(node))]


def _values_of(node: Node) -> Compute | None:
    values = op_row(node.op, node.domain).values
    if values is None:
        return None
    return lambda arrays: values(NodeCall(node, tuple(arrays)), arrays)


def _pointwise(call: Call, op: str, args: Sequence[Term], compute: Compute | None) -> Term:
    row = _FORMS.get(op)
    if row is not None:
        term = row(call, args)
        if term is not None:
            return term
    attributes = attributes_of(call.node)
    return call.builder.pointwise(op, args, call.shape, attributes, _dtype(call), compute)


def _dtype(call: Call) -> str | None:
    return call.node.outputs[0].dtype if call.node.outputs else None


def unary(call: Call) -> list[Term]:
    """An op of one tensor."""
    # The row's kernel has the attributes, and the element type of the result.
    kernel = op_row(call.node.op, call.node.domain).kernel or UNARY.get(call.node.op)
    compute: Compute | None = None
    if kernel is not None:
        chosen = kernel

        def compute(arrays: Sequence[Array]) -> Array:
            result = chosen(NodeCall(call.node, tuple(arrays)))
            return result[0] if isinstance(result, tuple) else result

    return [_pointwise(call, call.node.op, [call.arg(0)], compute)]


def cast_like(call: Call) -> list[Term]:
    """CastLike: Cast to the element type of its result."""
    number = ELEMENT_TYPES.get(_dtype(call) or "")
    if number is None:
        raise Opaque
    attributes = {**call.node.attributes, "to": number}
    node = replace(call.node, op="Cast", inputs=call.node.inputs[:1], attributes=attributes)
    return unary(replace(call, node=node, args=call.args[:1]))


def minus(call: Call, term: Term) -> Term:
    """A term times -1."""
    minus = call.builder.number(-1, term, term.shape)
    return call.builder.product([minus, term], term.shape)


def _signed(term: Term) -> bool:
    return term.dtype is None or not term.dtype.startswith(("u", "bool"))


def _difference(call: Call, args: Sequence[Term]) -> Term | None:
    if not _signed(args[0]):
        return None
    return call.builder.total([args[0], minus(call, args[1])], call.shape)


def _floats(term: Term) -> bool:
    return term.dtype is not None and term.dtype.startswith(("float", "bfloat"))


def _quotient(call: Call, args: Sequence[Term]) -> Term | None:
    builder, (a, b) = call.builder, args
    if b.number_of is not None and b.number_of == 1:
        return a
    if not _floats(b) or builder.exact:
        return None
    return builder.product([a, inverse(builder, b)], call.shape)


def inverse(builder: Builder, term: Term) -> Term:
    """1 / a term."""
    if term.op == "Reciprocal" and not builder.exact:
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
    if exponent in (2, 3, 4):
        return builder.product([a] * int(exponent), call.shape)
    if exponent == 0.5:
        return builder.pointwise("Sqrt", [a], call.shape, (), a.dtype)
    if exponent == -0.5:
        return inverse(builder, builder.pointwise("Sqrt", [a], call.shape, (), a.dtype))
    return None


def _where(call: Call, args: Sequence[Term]) -> Term | None:
    condition, one, other = args
    if condition.base.op == "Not":
        condition, one, other = _inside(call, condition), other, one
    chosen = condition.number_of
    if chosen is not None:
        return one if chosen else other
    return call.builder.pointwise(
        "Where", [condition, one, other], call.shape, (), _dtype(call), _values_of(call.node)
    )


def _inside(call: Call, term: Term) -> Term:
    """The operand of an op of one tensor, with the shape of a view of its result."""
    return call.builder.view(term.base.args[0], term.shape, places_of(term))


def _not(call: Call, args: Sequence[Term]) -> Term | None:
    return _inside(call, args[0]) if args[0].base.op == "Not" else None


def _turned(call: Call, args: Sequence[Term]) -> Term | None:
    """Greater, GreaterOrEqual: Less, LessOrEqual of the operands in the other order."""
    op = call.node.op.replace("Greater", "Less")
    values = op_row(op).values
    assert values is not None
    node = replace(call.node, op=op)

    def compute(arrays: Sequence[Array]) -> Array:
        return values(NodeCall(node, tuple(arrays)), arrays)

    return call.builder.pointwise(op, args[::-1], call.shape, (), "bool", compute)


def _sloped(call: Call, args: Sequence[Term]) -> Term | None:
    """PRelu, LeakyRelu: the number, times a slope where it is below 0."""
    if len(args) > 1:
        return sloped(call.builder, *args)
    slope = call.builder.number(call.attribute("alpha", 0.01), args[0], call.shape)
    return sloped(call.builder, args[0], slope)


def sloped(builder: Builder, x: Term, slope: Term) -> Term:
    """A number, times a slope where it is below 0."""
    shape = x.shape
    below = builder.pointwise("Less", [x, builder.number(0, x, shape)], shape, (), "bool")
    one = builder.number(1, x, shape)
    factor = builder.pointwise("Where", [below, slope, one], shape, (), x.dtype)
    return builder.product([x, factor], shape)


def _largest(call: Call, args: Sequence[Term]) -> Term | None:
    """Relu: the larger of the number and 0."""
    zero = call.builder.number(0, args[0], call.shape)
    return call.builder.pointwise("Max", [args[0], zero], call.shape, (), args[0].dtype)


def _cast(call: Call, args: Sequence[Term]) -> Term | None:
    """Nothing where the type stays, or comes back from one that holds every number of it."""
    (x, *_), to = args, _dtype(call)
    if to is None or to == x.dtype:
        return x if to is not None else None
    if x.base.op != "Cast" or not spreads(x.base.shape, x.shape, places_of(x)):
        return None
    (before,) = x.base.args
    if before.dtype != to or x.dtype is None or not _holds(x.dtype, to):
        return None
    return call.builder.view(before, call.shape, places_of(x))


def _holds(wide: str, narrow: str) -> bool:
    """Whether a type has every number of another."""
    if narrow == "bool":
        return True
    if narrow in ("int64", "uint64") and wide.startswith("float"):
        return False
    try:
        return np.can_cast(np.dtype(narrow), np.dtype(wide))
    except TypeError:  # bfloat16, say
        return False


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
    return None if exact else between(call.builder, args[0], alpha, beta)


def _hard_swish(call: Call, args: Sequence[Term]) -> Term | None:
    if call.builder.exact or not _floats(args[0]):
        return None
    curve = between(call.builder, args[0], 1 / 6, 0.5)
    return call.builder.product([args[0], curve], call.shape)


def between(builder: Builder, x: Term, slope: float, offset: float) -> Term:
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
        "Neg": lambda call, args: minus(call, args[0]) if _signed(args[0]) else None,
        "Div": _quotient,
        "Reciprocal": lambda call, args: inverse(call.builder, args[0]),
        "Pow": _power,
        "Where": _where,
        "Not": _not,
        **dict.fromkeys(("Greater", "GreaterOrEqual"), _turned),
        "Relu": _largest,
        **dict.fromkeys(("PRelu", "LeakyRelu"), _sloped),
        "Cast": _cast,
        **dict.fromkeys(("Swish", "QuickGelu"), _swish),
        "HardSigmoid": _hard_sigmoid,
        "HardSwish": _hard_swish,
        **dict.fromkeys(("Gelu", "FastGelu"), _gelu),
    }
)


def biased_gelu(call: Call) -> list[Term]:
    """ONNX Runtime's Gelu of a tensor and a bias."""
    x = call.arg(0)
    if call.has(1):
        x = call.builder.total([x, call.right(call.arg(1), call.shape)], call.shape)
    return [_gelu(call, [x]) or x]


def _of_two(function: Callable[..., Array], arrays: Sequence[Array]) -> Array:
    return function(*arrays)


def clip(call: Call) -> list[Term]:
    """Clip: the larger of a number and the least, the smaller of that and the most."""
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


__all__ = [
    "between",
    "biased_gelu",
    "broadcast",
    "cast_like",
    "clip",
    "curve_of",
    "inverse",
    "minus",
    "sloped",
    "unary",
]
