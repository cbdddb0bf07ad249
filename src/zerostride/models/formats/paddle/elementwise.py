"""Rows of :mod:`.lowering`: ops that compute element by element.

An `axis` of an old program's op that is not NumPy's rule becomes a reshape of the smaller operand.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from ...ir.graph import Value
from ..lowering import ELEMENT_TYPES, EVERY, NoEquivalent, becomes, real, table, written_by
from .node_writer import BOOL, OpWriter
from .schema import axis_of, canonical

#: Ops of two operands that ONNX has.
_PAIRS: Mapping[str, str] = MappingProxyType(
    {"add": "Add", "subtract": "Sub", "multiply": "Mul", "elementwise_pow": "Pow"}
    | {"maximum": "Max", "minimum": "Min", "equal": "Equal", "less_than": "Less"}
    | {"less_equal": "LessOrEqual", "greater_than": "Greater"}
    | {"greater_equal": "GreaterOrEqual", "bitwise_and": "BitwiseAnd"}
    | {"bitwise_or": "BitwiseOr", "bitwise_xor": "BitwiseXor"}
)
_LOGIC: Mapping[str, str] = MappingProxyType(
    {"logical_and": "And", "logical_or": "Or", "logical_xor": "Xor"}
)


def _placed(w: OpWriter) -> tuple[Value, Value]:
    """The two operands of an op, as NumPy's rule places them."""
    a, b = w.input(), w.input(1)
    axis = axis_of(w.node)
    if axis is None:
        raise NoEquivalent
    if axis == -1:
        return a, b
    ranks = w.rank(0), w.rank(1)
    rank, small = max(ranks), min(ranks)
    if ranks[0] == ranks[1]:
        if axis == 0 or w.sizes(a) == w.sizes(b):
            return a, b
        raise NoEquivalent  # Paddle refuses other axes, unless the shapes are identical
    start = axis if axis >= 0 else rank - small + axis + 1
    if axis < -1 or not 0 <= start <= rank - small:
        raise NoEquivalent
    after = rank - small - start
    if not after:
        return a, b
    axes = w.ints(*range(small, small + after))
    return (w.op("Unsqueeze", a, axes), b) if ranks[0] < rank else (a, w.op("Unsqueeze", b, axes))


def _pair(w: OpWriter) -> None:
    w.last(_PAIRS[canonical(w.node)], *_placed(w))


def _logical(w: OpWriter) -> None:
    """Any number is a truth value."""
    a, b = (
        value if value.dtype == "bool" else w.op("Cast", value, to=BOOL) for value in _placed(w)
    )
    w.last(_LOGIC[canonical(w.node)], a, b)


def _not_equal(w: OpWriter) -> None:
    w.last("Not", w.op("Equal", *_placed(w)))


def _divide(w: OpWriter) -> None:
    """Whole numbers: PIR's division gives floats, an old program's is rounded toward zero."""
    a, b = _placed(w)
    if not w.dtype().startswith("float"):
        raise NoEquivalent
    w.last("Div", a, b)


def _floor_divide(w: OpWriter) -> None:
    """Of whole numbers it is rounded toward zero or down, by release: not translated."""
    a, b = _placed(w)
    if not w.dtype().startswith("float"):
        raise NoEquivalent
    w.last("Floor", w.op("Div", a, b))


def _remainder(w: OpWriter) -> None:
    """The sign of the divisor, as in Python."""
    a, b = _placed(w)
    if w.dtype().startswith("int"):
        return w.last("Mod", a, b, fmod=0)
    if not w.dtype().startswith("float"):
        raise NoEquivalent
    return w.last("Sub", a, w.op("Mul", w.op("Floor", w.op("Div", a, b)), b))


def _scale(w: OpWriter) -> None:
    """scale x + bias, or scale (x + bias)."""
    data, bias = w.input(), w.real("bias", 0.0)
    dtype = w.dtype()
    factor = w.input(1)
    if dtype.startswith(("int", "uint")):
        whole = factor.reals is not None and all(map(float.is_integer, factor.reals))
        if not whole or not bias.is_integer():
            raise NoEquivalent
    scale = w.as_type(w.number_at(1), dtype)
    shift = w.number(bias, dtype)
    if not bias:
        return w.last("Mul", data, scale)
    if w.node.attributes.get("bias_after_scale", True):
        return w.last("Add", w.op("Mul", data, scale), shift)
    return w.last("Mul", w.op("Add", data, shift), scale)


def _clip(w: OpWriter) -> None:
    low, high = (
        None if w.optional(k) is None else w.as_type(w.number_at(k), w.dtype()) for k in (1, 2)
    )
    w.last("Clip", w.input(), low, high)


def _power(w: OpWriter) -> None:
    """A number as exponent."""
    if w.optional(1) is not None:
        raise NoEquivalent
    dtype = w.dtype()
    if not dtype.startswith("float"):
        raise NoEquivalent
    w.last("Pow", w.input(), w.number(w.real("y", 1.0), dtype))


def _relu6(w: OpWriter) -> None:
    dtype = w.dtype()
    w.last("Clip", w.input(), w.number(0.0, dtype), w.number(6.0, dtype))


def _hardtanh(w: OpWriter) -> None:
    dtype = w.dtype()
    low, high = w.real("t_min", -1.0), w.real("t_max", 1.0)
    w.last("Clip", w.input(), w.number(low, dtype), w.number(high, dtype))


def _hard_sigmoid(w: OpWriter) -> None:
    w.last("HardSigmoid", w.input(), alpha=w.real("slope", 0.2), beta=w.real("offset", 0.5))


def _hard_swish(w: OpWriter) -> None:
    """x clip(x + offset, 0, threshold) / scale; ONNX has the usual numbers 3, 6, 6."""
    numbers = w.real("offset", 3.0), w.real("threshold", 6.0), w.real("scale", 6.0)
    if numbers != (3.0, 6.0, 6.0):
        raise NoEquivalent
    w.last("HardSwish", w.input())


def _swish(w: OpWriter) -> None:
    """x sigmoid(beta x)."""
    if w.real("beta", 1.0) != 1.0:
        raise NoEquivalent
    w.last("Mul", w.input(), w.op("Sigmoid", w.input()))


def _gelu(w: OpWriter) -> None:
    w.last("Gelu", w.input(), approximate="tanh" if w.flag("approximate") else None)


def _softplus(w: OpWriter) -> None:
    """Above its threshold, which is 20, it is the number itself."""
    if w.real("beta", 1.0) != 1.0 or w.real("threshold", 20.0) < 20.0:
        raise NoEquivalent
    w.last("Softplus", w.input())


def _prelu(w: OpWriter) -> None:
    """One slope, or one for each channel."""
    data, slope = w.input(), w.input(1)
    mode = w.text("mode", "all")
    sizes = w.numbers(slope)
    if mode == "all":
        return w.last("PRelu", data, w.op("Reshape", slope, w.ints(1)))
    w.channels_first()
    if mode != "channel" or len(sizes) > 1 + w.rank() or w.rank() < 2:
        raise NoEquivalent
    return w.last("PRelu", data, w.op("Reshape", slope, w.ints(-1, *[1] * (w.rank() - 2))))


def _hard_shrink(w: OpWriter) -> None:
    """0 within the threshold."""
    dtype = w.dtype()
    data, threshold = w.input(), w.number(w.real("threshold", 0.5), dtype)
    above = w.op("Greater", w.op("Abs", data), threshold)
    w.last("Where", above, data, w.number(0.0, dtype))


def _tanh_shrink(w: OpWriter) -> None:
    w.last("Sub", w.input(), w.op("Tanh", w.input()))


def _log2(w: OpWriter) -> None:
    w.last("Div", w.op("Log", w.input()), w.number(math.log(2), w.dtype()))


def _cast(w: OpWriter) -> None:
    dtype = w.node.attributes.get("dtype")
    if dtype not in ELEMENT_TYPES:
        raise NoEquivalent
    w.last("Cast", w.input(), to=ELEMENT_TYPES[str(dtype)])


def _dropout(w: OpWriter) -> None:
    """At inference: nothing, or a product with the share that is kept."""
    if not w.flag("is_test"):
        raise NoEquivalent
    if w.text("mode") == "upscale_in_train":
        return w.result(0, "Identity", w.input())
    kept = w.number(1.0 - w.real("p", 0.5), w.dtype())
    return w.result(0, "Mul", w.input(), kept)


def _is_finite(w: OpWriter) -> None:
    bad = w.op("Or", w.op("IsNaN", w.input()), w.op("IsInf", w.input()))
    w.last("Not", bad)


def _log_sigmoid(w: OpWriter) -> None:
    w.last("Neg", w.op("Softplus", w.op("Neg", w.input())))


def _rounded(w: OpWriter) -> None:
    """Half to even; Paddle 3.3 rounds to a number of decimals, 0 by default."""
    if w.whole("decimals", 0):
        raise NoEquivalent
    w.last("Round", w.input())


def _typed(row: Any) -> Callable[[OpWriter], None]:
    """A row for floats: of whole numbers Paddle's result is a float."""

    def write(w: OpWriter) -> None:
        if not w.dtype().startswith("float"):
            raise NoEquivalent
        written_by(row)(w)

    return write


_FLOATS = (
    "acos acosh asin asinh atan atanh cos cosh erf exp log reciprocal sigmoid sin sinh softsign "
    "sqrt tan tanh mish selu"
)
#: Op to row.
ROWS = table(
    (" ".join(_PAIRS), _pair),
    (" ".join(_LOGIC), _logical),
    {name: _typed(name.capitalize()) for name in _FLOATS.split()},
    {name: _typed(name) for name in ("expm1", "log1p", "log10", "rsqrt", "silu", "trunc")},
    {
        "abs": "Abs",
        "add_n": becomes("Sum", EVERY),
        "assign": "Identity",
        "bitwise_not": "BitwiseNot",
        "cast": _cast,
        "ceil": "Ceil",
        "celu": becomes("Celu", alpha=real("alpha", 1.0)),
        "clip": _clip,
        "divide": _divide,
        "dropout": _dropout,
        "elu": becomes("Elu", alpha=real("alpha", 1.0)),
        "floor": "Floor",
        "floor_divide": _floor_divide,
        "gelu": _gelu,
        "hardshrink": _hard_shrink,
        "hardsigmoid": _hard_sigmoid,
        "hardswish": _hard_swish,
        "hardtanh": _hardtanh,
        "isfinite": _is_finite,
        "isinf": "IsInf",
        "isnan": "IsNaN",
        "leaky_relu": becomes("LeakyRelu", alpha=real("negative_slope", 0.02)),
        "log2": _typed(_log2),
        "logical_not": becomes("Not", lambda w: w.as_type(w.input(), "bool")),
        "logsigmoid": _log_sigmoid,
        "not_equal": _not_equal,
        "pow": _power,
        "prelu": _prelu,
        "relu": "Relu",
        "relu6": _relu6,
        "remainder": _remainder,
        "round": _rounded,
        "scale": _scale,
        "share_data": "Identity",
        "sign": "Sign",
        "softplus": _softplus,
        "square": "square",
        "swish": _swish,
        "tanh_shrink": _tanh_shrink,
        "where": becomes("Where", 0, 1, 2),
    },
)
