"""Rows of :mod:`.lowering`: ops that compute element by element."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ...ir.graph import Value
from .broadcasts import word
from .schema import DTYPES
from .words import BOOL, INT32, Row, Said, Unsaid, Words, is_image, named


def _relu(words: Words, value: Value, kind: int) -> Said:
    """The activation inside an op: none, or a ReLU."""
    return words.last("Relu" if kind else "Identity", value)


# Element-wise.

_COMPARISONS = frozenset({"Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"})
_LOGIC = frozenset({"Or", "Xor", "And"})


def _binary(words: Words) -> Said:
    """Comparisons give int32 in MNN, and logical ops take any number."""
    op = word(str(words.parameters.get("opType")))
    a, b = words.input(0), words.input(1)
    kind = words.parameters.get("activationType", 0)
    if op == "not_equal":
        unequal = words.op("Not", words.op("Equal", a, b))
        return words.last("Cast", unequal, to=INT32)
    if op == "squared_difference":
        difference = words.op("Sub", a, b)
        return words.last("Mul", difference, difference)
    if op in ("floor_divide", "remainder", "fmod"):
        return _quotient(words, op, a, b)
    if op in _COMPARISONS and not kind:
        return words.last("Cast", words.op(op, a, b), to=INT32)
    if op in _LOGIC and not kind:
        a, b = words.op("Cast", a, to=BOOL), words.op("Cast", b, to=BOOL)
        return words.last("Cast", words.op(op, a, b), to=INT32)
    if not op or not op[0].isupper():
        raise Unsaid
    if not kind:
        return words.last(op, a, b)
    return _relu(words, words.op(op, a, b), kind)


def _quotient(words: Words, op: str, a: Value, b: Value) -> Said:
    """For whole numbers MNN's two remainders are swapped; see the op table."""
    if words.parameters.get("activationType", 0) or a.dtype not in ("int32", "float32"):
        raise Unsaid
    whole = a.dtype == "int32"
    if op == "fmod":
        return words.last("Mod", a, b, fmod=0 if whole else 1)
    if op == "remainder" and whole:
        return words.last("Mod", a, b, fmod=1)
    if op == "remainder":
        times = words.op("Floor", words.op("Div", a, b))
        return words.last("Sub", a, words.op("Mul", times, b))
    if whole:
        below = words.op("Sub", a, words.op("Mod", a, b, fmod=0))
        return words.last("Div", below, b)
    return words.last("Floor", words.op("Div", a, b))


def _select(words: Words) -> Said:
    condition = words.op("Cast", words.input(0), to=BOOL)
    return words.last("Where", condition, words.input(1), words.input(2))


def _capitalised(names: str) -> dict[str, str]:
    return {name: name.capitalize() for name in names.split()}


_UNARY: Mapping[str, str] = MappingProxyType(
    {
        **_capitalised(
            "ABS NEG FLOOR CEIL SQRT EXP LOG SIN COS TAN ASIN ACOS ATAN ACOSH SINH ASINH ATANH "
            "SIGN ROUND COSH ERF SIGMOID TANH"
        ),
        "RECIPROCAL": "Reciprocal",
        "HARDSWISH": "HardSwish",
        "BNLL": "Softplus",
    }
)


def _unary(words: Words) -> Said:
    name, data = str(words.parameters.get("opType")), words.input(0)
    if name == "SQUARE":
        return words.last("Mul", data, data)
    if name == "RSQRT":
        return words.last("Reciprocal", words.op("Sqrt", data))
    if name == "SILU":
        return words.last("Mul", data, words.op("Sigmoid", data))
    if name == "GELU":
        return words.last("Gelu", data, approximate="tanh")
    if name == "GELU_STANDARD":
        return words.last("Gelu", data, approximate="none")
    if name == "LOG1P":
        return words.last("Log", words.op("Add", data, words.reals(1.0)))
    if name == "EXPM1":
        return words.last("Sub", words.op("Exp", data), words.reals(1.0))
    if name == "ERFC":
        return words.last("Sub", words.reals(1.0), words.op("Erf", data))
    if name not in _UNARY:
        raise Unsaid
    return words.last(_UNARY[name], data)


def _rectified(words: Words) -> Said:
    slope = words.parameters.get("slope", 0.0)
    if slope:
        return words.last("LeakyRelu", words.input(0), alpha=slope)
    return words.last("Relu", words.input(0))


def _clipped(words: Words) -> Said:
    low, high = words.parameters.get("minValue", 0.0), words.parameters.get("maxValue", 6.0)
    return words.last("Clip", words.input(0), words.reals(low), words.reals(high))


def _prelu(words: Words) -> Said:
    """One slope, or one per channel."""
    data, slope = words.input(0), words.input(1)
    if not slope.constant or slope.shape is None or len(slope.shape) != 1:
        raise Unsaid
    if slope.shape == (1,):
        return words.last("PRelu", data, slope)
    is_image(words)
    if data.shape is not None:
        ones = [1] * (len(data.shape) - 2)
        return words.last("PRelu", data, words.op("Reshape", slope, words.ints(-1, *ones)))
    # The rank may be unknown, so the slopes have no shape: negative parts are scaled by channels.
    below = words.op("Relu", words.op("Neg", data))
    scaled = words.op("BatchNormalization", *_channels(words, below, slope, None), epsilon=0.0)
    return words.last("Sub", words.op("Relu", data), scaled)


def _scale(words: Words) -> Said:
    """A scale and a shift of every channel.

    Translated to a normalisation by a mean of 0 and a variance of 1. Unlike a product and a sum it
    does not need the rank, which is unknown for some tensors.
    """
    is_image(words)
    operands = _channels(words, words.input(0), words.input(1), words.optional(2))
    return words.last("BatchNormalization", *operands, epsilon=0.0)


def _channels(
    words: Words, data: Value, scale: Value, bias: Value | None
) -> tuple[Value, Value, Value, Value, Value]:
    """The operands of a BatchNormalization that only scales and shifts."""
    if scale.shape is None or len(scale.shape) != 1 or not isinstance(scale.shape[0], int):
        raise Unsaid
    zero, unit = (words.filled(number, scale.shape[0]) for number in (0.0, 1.0))
    return data, scale, zero if bias is None else bias, zero, unit


def _cast(words: Words) -> Said:
    import_number = {1: 1, 3: INT32, 9: 7, 4: 2, 6: 3, 10: BOOL, 19: 10, 2: 11}
    kind = words.parameters.get("dstT")
    if kind not in import_number or kind not in DTYPES:
        raise Unsaid
    if kind == 10:  # truth values are int32 to MNN, 0 and 1
        return words.last("Cast", words.op("Cast", words.input(0), to=BOOL), to=INT32)
    # MNN has no int64: such a cast gives int32.
    return words.last("Cast", words.input(0), to=INT32 if kind == 9 else import_number[kind])


#: Op type to row.
ROWS: Mapping[str, Row] = MappingProxyType(
    {
        "AbsVal": named("Abs"),
        "BinaryOp": _binary,
        "Cast": _cast,
        **dict.fromkeys(("Copy", "Dropout", "Identity"), named("Identity")),
        "PReLU": _prelu,
        "ReLU": _rectified,
        "ReLU6": _clipped,
        "Scale": _scale,
        "Select": _select,
        "Sigmoid": named("Sigmoid"),
        "TanH": named("Tanh"),
        "UnaryOp": _unary,
    }
)
