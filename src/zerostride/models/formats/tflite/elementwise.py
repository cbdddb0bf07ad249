"""Rows of :mod:`.lowering`: ops that compute element by element, and along one axis."""

from __future__ import annotations

from ..lowering import EVERY, NoEquivalent, becomes, real, squared_difference, table
from .node_writer import OperatorWriter
from .sites import ROWS as SITES
from .sites import word

_COMPARISONS = ("Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "And", "Or")


def _binary(writer: OperatorWriter) -> None:
    op = word(writer.node.op)
    a, b = writer.input(0), writer.input(1)
    whole = (writer.stored(0).computed_type or "").startswith(("int", "uint"))
    if op == "not_equal":
        writer.last("Not", writer.op("Equal", a, b))
    elif op == "squared_difference":
        squared_difference(writer, a, b)
    elif op == "remainder" and whole:
        writer.last("Mod", a, b, fmod=0)
    elif op == "floor_divide" and whole:
        writer.last("Div", writer.op("Sub", a, writer.op("Mod", a, b, fmod=0)), b)
    elif op in ("remainder", "floor_divide"):
        quotient = writer.op("Floor", writer.op("Div", a, b))
        if op == "floor_divide":
            writer.finish(quotient)
        else:
            writer.last("Sub", a, writer.op("Mul", quotient, b))
    elif not op[0].isupper():
        raise NoEquivalent
    elif op in _COMPARISONS:
        writer.last(op, a, b)
    else:
        writer.activated(op, a, b)


def _where(writer: OperatorWriter) -> None:
    """The condition of the older op may be a vector along axis 0."""
    condition, a, b = (writer.input(k) for k in range(3))
    if writer.node.op == "SELECT" and condition.shape is not None and len(condition.shape) == 1:
        ones = [1] * (writer.rank(1) - 1)
        condition = writer.op("Reshape", condition, writer.ints(-1, *ones))
    writer.last("Where", condition, a, b)


def _clipped(writer: OperatorWriter) -> None:
    low, high = {"RELU6": (0.0, 6.0), "RELU_0_TO_1": (0.0, 1.0)}.get(writer.node.op, (-1.0, 1.0))
    writer.last("Clip", writer.input(), writer.number(low), writer.number(high))


def _gelu(writer: OperatorWriter) -> None:
    writer.last(
        "Gelu", writer.input(), approximate="tanh" if writer.flag("approximate") else "none"
    )


def _cast(writer: OperatorWriter) -> None:
    writer.last("Cast", writer.input(), to=writer.out_type())


def _convert(writer: OperatorWriter) -> None:
    """QUANTIZE, DEQUANTIZE: the numbers stay the same, in another element type."""
    value = writer.input()
    if value.computed_type == writer.node.outputs[0].computed_type:
        writer.last("Identity", value)
    else:
        writer.last("Cast", value, to=writer.out_type())


def _softmax(writer: OperatorWriter) -> None:
    beta = writer.real("beta", 1.0)
    data = writer.input()
    if beta != 1.0:
        data = writer.op("Mul", data, writer.number(beta))
    writer.last("Softmax", data, axis=-1)


def _normalised(writer: OperatorWriter) -> None:
    """L2_NORMALIZATION: the last axis over its length, which is at least 1e-3."""
    data = writer.input()
    total = writer.op("ReduceSumSquare", data, writer.ints(-1), keepdims=1)
    length = writer.op("Sqrt", writer.op("Max", total, writer.number(1e-6)))
    writer.activated("Div", data, length)


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
