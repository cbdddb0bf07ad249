"""Ops of one tensor, element by element, and the values of the ops that broadcast."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from ...compute.kernels import VARIANTS, prelu, to_integer
from ..graph import Array
from .call import Call, Kernel, Unfit

# Ops of one tensor. A half float is computed as a float and rounded once, as engines do.


def _wide(x: Array) -> Array:
    return x.astype(np.float32) if x.dtype.kind not in "biuc" and x.dtype.itemsize < 4 else x


def rounded(function: Callable[..., Any]) -> Callable[..., Array]:
    """The function computed in at least single precision, its result in the operand's dtype."""

    def computed(x: Array, *more: Any) -> Array:
        return np.asarray(function(_wide(x), *more)).astype(x.dtype)

    return computed


def _unary(function: Callable[[Array], Any]) -> Kernel:
    inner = rounded(function)
    return lambda call: inner(call[0])


def _with(function: Callable[..., Any], **defaults: float) -> Kernel:
    """A function of a tensor and attributes, with the documents' defaults."""
    inner = rounded(function)

    def kernel(call: Call) -> Array:
        x = call[0]
        kind = _wide(x).dtype.type
        return inner(x, *(kind(call.attribute(name, value)) for name, value in defaults.items()))

    return kernel


def _erf(x: Array) -> Array:
    flat = map(math.erf, x.astype(np.float64).ravel().tolist())
    return np.fromiter(flat, np.float64, x.size).reshape(x.shape)


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)), without overflow on either side."""
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + small), small / (1 + small)).astype(x.dtype)


def softplus(x: Array) -> Array:
    """log(1 + exp(x)), without overflow."""
    return np.asarray(np.log1p(np.exp(-np.abs(x))) + np.maximum(x, 0), x.dtype)


def _gelu(call: Call) -> Array:
    x = _wide(call[0])
    if call.attribute("approximate", "none") == "tanh":
        inner = x.dtype.type(math.sqrt(2 / math.pi)) * (x + x.dtype.type(0.044715) * x**3)
        result = x * (1 + np.tanh(inner)) / 2
    else:
        result = x * (1 + _erf(x * math.sqrt(0.5))) / 2
    return np.asarray(result).astype(call[0].dtype)


def _selu(x: Array, alpha: Any, gamma: Any) -> Array:
    return np.asarray(gamma * np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0))))


def _elu(x: Array, alpha: Any) -> Array:
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def _celu(x: Array, alpha: Any) -> Array:
    return np.asarray(np.maximum(x, 0) + np.minimum(0, alpha * np.expm1(x / alpha)))


def _hard_sigmoid(x: Array, alpha: Any, beta: Any) -> Array:
    return np.asarray(np.clip(alpha * x + beta, 0, 1))


def _shrink(x: Array, bias: Any, lambd: Any) -> Array:
    return np.where(x < -lambd, x + bias, np.where(x > lambd, x - bias, np.zeros_like(x)))


def _is_inf(call: Call) -> Array:
    x = call[0]
    wanted = np.zeros(x.shape, bool)
    if call.flag("detect_negative", 1):
        wanted |= x < 0
    if call.flag("detect_positive", 1):
        wanted |= x > 0
    return np.asarray(np.isinf(x) & wanted)


def _clip(call: Call) -> Array:
    """Bounds are attributes up to opset 6, operands of one number from 11 on."""
    x = call[0]
    bounds: list[Any] = []
    for position, name in ((1, "min"), (2, "max")):
        bound = call.maybe(position)
        if bound is None and name in call.node.attributes:
            bound = np.array(call.attribute(name), x.dtype)
        if bound is not None and (bound.size != 1 or bound.ndim > 1):
            raise Unfit(f"the bound {name} has the shape {bound.shape}; it is one number")
        bounds.append(None if bound is None else bound.reshape(()))
    low, high = bounds
    if low is not None:
        x = np.maximum(x, low)
    return np.asarray(x if high is None else np.minimum(x, high))


_OF_ONE: Mapping[str, Callable[[Array], Any]] = MappingProxyType(
    {
        "Abs": np.abs,
        "Neg": np.negative,
        "Sign": np.sign,
        "Ceil": np.ceil,
        "Floor": np.floor,
        "Round": np.rint,
        "Sqrt": np.sqrt,
        "Reciprocal": lambda x: 1 / x,
        "Exp": np.exp,
        "Log": np.log,
        "Erf": _erf,
        "Sin": np.sin,
        "Cos": np.cos,
        "Tan": np.tan,
        "Asin": np.arcsin,
        "Acos": np.arccos,
        "Atan": np.arctan,
        "Sinh": np.sinh,
        "Cosh": np.cosh,
        "Tanh": np.tanh,
        "Asinh": np.arcsinh,
        "Acosh": np.arccosh,
        "Atanh": np.arctanh,
        "Sigmoid": sigmoid,
        "Relu": lambda x: np.maximum(x, 0),
        "Softplus": softplus,
        "Softsign": lambda x: x / (1 + np.abs(x)),
        "HardSwish": lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
        "Mish": lambda x: x * np.tanh(softplus(x)),
        "Not": np.logical_not,
        "BitwiseNot": np.bitwise_not,
    }
)

UNARY: Mapping[str, Kernel] = MappingProxyType(
    {
        **{name: _unary(function) for name, function in _OF_ONE.items()},
        "LeakyRelu": _with(lambda x, a: np.where(x < 0, a * x, x), alpha=0.01),
        "ThresholdedRelu": _with(lambda x, a: np.where(x > a, x, 0), alpha=1.0),
        "Elu": _with(_elu, alpha=1.0),
        "Celu": _with(_celu, alpha=1.0),
        "Selu": _with(_selu, alpha=1.67326319217681884765625, gamma=1.05070102214813232421875),
        "HardSigmoid": _with(_hard_sigmoid, alpha=0.2, beta=0.5),
        "Swish": _with(lambda x, a: x * sigmoid(a * x), alpha=1.0),
        "Shrink": _with(_shrink, bias=0.0, lambd=0.5),
        "Gelu": _gelu,
        "IsNaN": lambda call: np.asarray(np.isnan(call[0])),
        "IsInf": _is_inf,
        "Clip": _clip,
    }
)

# Ops that broadcast: their operands are views of one shape.

Values = Callable[[Call, Sequence[Array]], Array]


def _plain(function: Callable[..., Any]) -> Values:
    """A function of all operands, folded from the left where there are more than two."""

    def values(_: Call, operands: Sequence[Array]) -> Array:
        wide = [_wide(x) for x in operands]
        made = wide[0]
        for x in wide[1:]:
            made = function(made, x)
        return np.asarray(made).astype(operands[0].dtype)

    return values


def _compared(function: Callable[..., Any]) -> Values:
    return lambda _, operands: np.asarray(function(*operands))


def _divide(_: Call, operands: Sequence[Array]) -> Array:
    """Integers are truncated towards zero, as in C."""
    x, y = operands
    if x.dtype.kind not in "iu":
        return np.asarray(np.divide(_wide(x), _wide(y))).astype(x.dtype)
    try:
        return np.asarray(VARIANTS["truncated_divide"](x, y)).astype(x.dtype)
    except ZeroDivisionError:
        raise Unfit("an integer is divided by zero") from None


def _modulo(call: Call, operands: Sequence[Array]) -> Array:
    x, y = operands
    if x.dtype.kind in "iu" and not np.all(y):
        raise Unfit("an integer is divided by zero")
    if call.flag("fmod"):
        return np.asarray(np.fmod(_wide(x), _wide(y))).astype(x.dtype)
    return np.asarray(np.remainder(_wide(x), _wide(y))).astype(x.dtype)


def _power(_: Call, operands: Sequence[Array]) -> Array:
    """The base decides the dtype; integers by float64's power, as ONNX Runtime computes them."""
    x, y = operands
    if x.dtype.kind not in "iu":
        kind = np.float64 if x.dtype == np.float64 or y.dtype == np.float64 else np.float32
        return np.asarray(np.power(x.astype(kind), y.astype(kind))).astype(x.dtype)
    if y.dtype.kind in "iu":
        return np.asarray(VARIANTS["pow_by_float64"](x, y))
    return np.asarray(to_integer(np.power(x.astype(np.float64), y.astype(np.float64)), x.dtype))


def _shifted(call: Call, operands: Sequence[Array]) -> Array:
    """A shift by the whole width or more leaves nothing."""
    x, y = operands
    direction = call.attribute("direction")
    if direction not in ("LEFT", "RIGHT"):
        raise Unfit(f"direction is {direction!r}; it is LEFT or RIGHT")
    function = np.left_shift if direction == "LEFT" else np.right_shift
    return np.asarray(function(x, y))


def _mean(call: Call, operands: Sequence[Array]) -> Array:
    wide = [_wide(x) for x in operands]
    total = wide[0]
    for x in wide[1:]:
        total = total + x
    return np.asarray(total / total.dtype.type(len(operands))).astype(operands[0].dtype)


def _where(_: Call, operands: Sequence[Array]) -> Array:
    condition, x, y = operands
    return np.where(condition.astype(bool), x, y)


def _slope(_: Call, operands: Sequence[Array]) -> Array:
    x, slope = operands
    return np.asarray(prelu(_wide(x), _wide(slope))).astype(x.dtype)


#: The values of ONNX's ops that broadcast.
BROADCAST: Mapping[str, Values] = MappingProxyType(
    {
        **{
            name: _plain(function)
            for name, function in {
                "Add": np.add,
                "Sub": np.subtract,
                "Mul": np.multiply,
                "Sum": np.add,
                "Max": np.maximum,
                "Min": np.minimum,
                "And": np.logical_and,
                "Or": np.logical_or,
                "Xor": np.logical_xor,
                "BitwiseAnd": np.bitwise_and,
                "BitwiseOr": np.bitwise_or,
                "BitwiseXor": np.bitwise_xor,
            }.items()
        },
        **{
            name: _compared(function)
            for name, function in {
                "Equal": np.equal,
                "Greater": np.greater,
                "Less": np.less,
                "GreaterOrEqual": np.greater_equal,
                "LessOrEqual": np.less_equal,
            }.items()
        },
        "Div": _divide,
        "Mod": _modulo,
        "Pow": _power,
        "BitShift": _shifted,
        "Mean": _mean,
        "Where": _where,
        "PRelu": _slope,
    }
)
