"""Rows of :mod:`.lowering`: ops that compute element by element, and along one axis."""

from __future__ import annotations

from ..lowering import EVERY, NoEquivalent, becomes, real, squared_difference, table
from .broadcasts import ROWS as SITES
from .broadcasts import word
from .words import Words

_COMPARISONS = ("Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "And", "Or")


def _binary(words: Words) -> None:
    op = word(words.node.op)
    a, b = words.input(0), words.input(1)
    whole = (words.stored(0).computed_type or "").startswith(("int", "uint"))
    if op == "not_equal":
        words.last("Not", words.op("Equal", a, b))
    elif op == "squared_difference":
        squared_difference(words, a, b)
    elif op == "remainder" and whole:
        words.last("Mod", a, b, fmod=0)
    elif op == "floor_divide" and whole:
        words.last("Div", words.op("Sub", a, words.op("Mod", a, b, fmod=0)), b)
    elif op in ("remainder", "floor_divide"):
        quotient = words.op("Floor", words.op("Div", a, b))
        if op == "floor_divide":
            words.finish(quotient)
        else:
            words.last("Sub", a, words.op("Mul", quotient, b))
    elif not op[0].isupper():
        raise NoEquivalent
    elif op in _COMPARISONS:
        words.last(op, a, b)
    else:
        words.activated(op, a, b)


def _where(words: Words) -> None:
    """The condition of the older op may be a vector along axis 0."""
    condition, a, b = (words.input(k) for k in range(3))
    if words.node.op == "SELECT" and condition.shape is not None and len(condition.shape) == 1:
        ones = [1] * (words.rank(1) - 1)
        condition = words.op("Reshape", condition, words.ints(-1, *ones))
    words.last("Where", condition, a, b)


def _clipped(words: Words) -> None:
    low, high = {"RELU6": (0.0, 6.0), "RELU_0_TO_1": (0.0, 1.0)}.get(words.node.op, (-1.0, 1.0))
    words.last("Clip", words.input(), words.number(low), words.number(high))


def _gelu(words: Words) -> None:
    words.last("Gelu", words.input(), approximate="tanh" if words.flag("approximate") else "none")


def _cast(words: Words) -> None:
    words.last("Cast", words.input(), to=words.out_type())


def _convert(words: Words) -> None:
    """QUANTIZE, DEQUANTIZE: the numbers stay the same, in another element type."""
    value = words.input()
    if value.computed_type == words.node.outputs[0].computed_type:
        words.last("Identity", value)
    else:
        words.last("Cast", value, to=words.out_type())


def _softmax(words: Words) -> None:
    beta = words.real("beta", 1.0)
    data = words.input()
    if beta != 1.0:
        data = words.op("Mul", data, words.number(beta))
    words.last("Softmax", data, axis=-1)


def _normalised(words: Words) -> None:
    """L2_NORMALIZATION: the last axis over its length, which is at least 1e-3."""
    data = words.input()
    total = words.op("ReduceSumSquare", data, words.ints(-1), keepdims=1)
    length = words.op("Sqrt", words.op("Max", total, words.number(1e-6)))
    words.activated("Div", data, length)


#: Builtin op to row.
ROWS = table(
    {op: _binary for op, row in SITES.items() if row is SITES["ADD"]},
    {
        "ABS": "Abs",
        "ADD_N": becomes("Sum", EVERY),
        "CAST": _cast,
        "CEIL": "Ceil",
        "COS": "Cos",
        "DENSIFY": "Identity",
        "ELU": "Elu",
        "EXP": "Exp",
        "FLOOR": "Floor",
        "GELU": _gelu,
        "HARD_SWISH": "HardSwish",
        "L2_NORMALIZATION": _normalised,
        "LEAKY_RELU": becomes("LeakyRelu", alpha=real("alpha", 0.0)),
        "LOG": "Log",
        "LOGICAL_NOT": "Not",
        "LOGISTIC": "Sigmoid",
        "LOG_SOFTMAX": becomes("LogSoftmax", axis=-1),
        "NEG": "Neg",
        "PRELU": becomes("PRelu", 0, 1),
        "RELU": "Relu",
        "ROUND": "Round",
        "RSQRT": "rsqrt",
        "SIGN": "Sign",
        "SIN": "Sin",
        "SOFTMAX": _softmax,
        "SQRT": "Sqrt",
        "SQUARE": "square",
        "TANH": "Tanh",
    },
    ("RELU6 RELU_0_TO_1 RELU_N1_TO_1", _clipped),
    ("QUANTIZE DEQUANTIZE", _convert),
    ("SELECT SELECT_V2", _where),
)
