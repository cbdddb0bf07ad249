"""Rows of :mod:`.lowering`: ops that compute element by element."""

from __future__ import annotations

from functools import partial

import numpy as np

from ...ir.graph import Value
from ..lowering import ELEMENT_TYPES, NoEquivalent, squared_difference, table, written_by
from .node_writer import BOOL, INT32, OpWriter
from .schema import DTYPES
from .sites import clips_below_zero, word

_COMPARISONS = frozenset({"Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"})
_LOGIC = frozenset({"Or", "Xor", "And"})


def _binary(w: OpWriter) -> None:
    """Comparisons give int32 in MNN, and logical ops take any number."""
    op = word(str(w.node.attributes.get("opType")))
    a, b = w.input(), w.input(1)
    clips = clips_below_zero(w.node)
    if op == "not_equal":
        unequal = w.op("Not", w.op("Equal", a, b))
        return w.last("Cast", unequal, to=INT32)
    if op == "squared_difference":
        return squared_difference(w, a, b)
    if op in ("floor_divide", "remainder", "fmod"):
        return _quotient(w, op, a, b)
    if op in _COMPARISONS and not clips:
        return w.last("Cast", w.op(op, a, b), to=INT32)
    if op in _LOGIC and not clips:
        a, b = w.op("Cast", a, to=BOOL), w.op("Cast", b, to=BOOL)
        return w.last("Cast", w.op(op, a, b), to=INT32)
    if not op or not op[0].isupper():
        raise NoEquivalent
    return w.finish(w.op("Relu", w.op(op, a, b)) if clips else w.op(op, a, b))


def _quotient(w: OpWriter, op: str, a: Value, b: Value) -> None:
    """For whole numbers MNN's two remainders are swapped; see the op table."""
    if clips_below_zero(w.node) or a.dtype not in ("int32", "float32"):
        raise NoEquivalent
    whole = a.dtype == "int32"
    if op == "fmod":
        return w.last("Mod", a, b, fmod=0 if whole else 1)
    if op == "remainder" and whole:
        return w.last("Mod", a, b, fmod=1)
    if op == "remainder":
        times = w.op("Floor", w.op("Div", a, b))
        return w.last("Sub", a, w.op("Mul", times, b))
    if whole:
        below = w.op("Sub", a, w.op("Mod", a, b, fmod=0))
        return w.last("Div", below, b)
    return w.last("Floor", w.op("Div", a, b))


def _select(w: OpWriter) -> None:
    condition = w.op("Cast", w.input(), to=BOOL)
    return w.last("Where", condition, w.input(1), w.input(2))


#: UnaryOpOperation: ONNX's op, or a formula.
_SAME = (
    "ABS NEG FLOOR CEIL SQRT EXP LOG SIN COS TAN ASIN ACOS ATAN ACOSH SINH ASINH ATANH SIGN ROUND "
    "COSH ERF SIGMOID TANH RECIPROCAL"
)
_UNARY = {
    **{name: name.capitalize() for name in _SAME.split()},
    **{name: name.lower() for name in ("SQUARE", "RSQRT", "SILU", "LOG1P", "EXPM1", "ERFC")},
    "HARDSWISH": "HardSwish",
    "BNLL": "Softplus",
    "GELU": "gelu_tanh",
    "GELU_STANDARD": "Gelu",
}


def _unary(w: OpWriter) -> None:
    name = str(w.node.attributes.get("opType"))
    if name not in _UNARY:
        raise NoEquivalent
    written_by(_UNARY[name])(w)


def _rectified(w: OpWriter) -> None:
    slope = w.real("slope", 0.0)
    w.last("LeakyRelu" if slope else "Relu", w.input(), alpha=slope or None)


def _clipped(w: OpWriter) -> None:
    low, high = w.real("minValue", 0.0), w.real("maxValue", 6.0)
    w.last("Clip", w.input(), w.number(low), w.number(high))


def _prelu(w: OpWriter) -> None:
    """One slope, or one per channel."""
    data, slope = w.input(), w.input(1)
    if not slope.constant or slope.shape is None or len(slope.shape) != 1:
        raise NoEquivalent
    if slope.shape == (1,):
        return w.last("PRelu", data, slope)
    w.is_image()
    if data.shape is not None:
        ones = [1] * (len(data.shape) - 2)
        return w.last("PRelu", data, w.op("Reshape", slope, w.ints(-1, *ones)))
    # The rank may be unknown, so the slopes have no shape: negative parts are scaled by channels.
    below = w.op("Relu", w.op("Neg", data))
    scaled = w.op("BatchNormalization", *_channels(w, below, slope, None), epsilon=0.0)
    return w.last("Sub", w.op("Relu", data), scaled)


def _scale(w: OpWriter) -> None:
    """A scale and a shift of every channel.

    Translated to a normalisation by a mean of 0 and a variance of 1. Unlike a product and a sum it
    does not need the rank, which is unknown for some tensors.
    """
    w.is_image()
    operands = _channels(w, w.input(), w.input(1), w.optional(2))
    return w.last("BatchNormalization", *operands, epsilon=0.0)


def _channels(
    w: OpWriter, data: Value, scale: Value, bias: Value | None
) -> tuple[Value, Value, Value, Value, Value]:
    """The operands of a BatchNormalization that only scales and shifts."""
    if scale.shape is None or len(scale.shape) != 1 or not isinstance(scale.shape[0], int):
        raise NoEquivalent
    zero, unit = (_filled(number, scale.shape[0]) for number in (0.0, 1.0))
    return data, scale, zero if bias is None else bias, zero, unit


def _filled(number: float, count: int) -> Value:
    """A constant vector of one number."""
    source = partial(np.full, count, number, np.float32)
    return Value("", (count,), True, dtype="float32", source=source)


#: The numbers of DataType that MNN casts to.
_CASTS = frozenset({1, 2, 3, 4, 6, 9, 19})


def _cast(w: OpWriter) -> None:
    """MNN has no int64, and truth values are int32: such casts give int32."""
    kind = w.whole("dstT")
    if kind == 10:
        return w.last("Cast", w.op("Cast", w.input(), to=BOOL), to=INT32)
    if kind not in _CASTS:
        raise NoEquivalent
    return w.last("Cast", w.input(), to=INT32 if kind == 9 else ELEMENT_TYPES[DTYPES[kind]])


#: Op type to row.
ROWS = table(
    ("Copy Dropout Identity", "Identity"),
    {
        "AbsVal": "Abs",
        "BinaryOp": _binary,
        "Cast": _cast,
        "PReLU": _prelu,
        "ReLU": _rectified,
        "ReLU6": _clipped,
        "Scale": _scale,
        "Select": _select,
        "Sigmoid": "Sigmoid",
        "TanH": "Tanh",
        "UnaryOp": _unary,
    },
)
