"""Element-wise ops of one tensor, and the values of the ops that broadcast.

The functions come from the op table; this module maps ONNX's nodes to them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from ....compute.kernels import KERNELS, VARIANTS, to_integer
from ....ops import OPS, Op, find_op
from ...ir.graph import Array
from .call import Kernel, NodeCall, Unfit

# Ops of one tensor. Half floats are computed as floats and rounded once, as in engines.


def _wide(x: Array) -> Array:
    return x.astype(np.float32) if x.dtype.kind not in "biuc" and x.dtype.itemsize < 4 else x


def rounded(function: Callable[..., Any]) -> Callable[..., Array]:
    """The function computed in at least single precision, its result in the operand's dtype."""

    def computed(x: Array, *more: Any) -> Array:
        return np.asarray(function(_wide(x), *more)).astype(x.dtype)

    return computed


def _by_row(op: Op) -> Kernel:
    """A function of the op table; its parameters are attributes, with the table's defaults."""
    inner = rounded(KERNELS[op.name])

    def kernel(call: NodeCall) -> Array:
        x = call[0]
        kind = _wide(x).dtype.type
        parameters = (call.attribute(name, value) for name, value in op.parameters.items())
        return inner(x, *map(kind, parameters))

    return kernel


def run_gelu(call: NodeCall) -> Array:
    """Gelu: exact, or approximated by tanh."""
    by_tanh = call.attribute("approximate", "none") == "tanh"
    return rounded(KERNELS["gelu_tanh" if by_tanh else "gelu"])(call[0])


def run_is_inf(call: NodeCall) -> Array:
    """IsInf: truth values, of one sign or of both."""
    x = call[0]
    wanted = np.zeros(x.shape, bool)
    if call.flag("detect_negative", 1):
        wanted |= x < 0
    if call.flag("detect_positive", 1):
        wanted |= x > 0
    return np.asarray(np.isinf(x) & wanted)


def run_clip(call: NodeCall) -> Array:
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


def run_is_nan(call: NodeCall) -> Array:
    """IsNaN: truth values."""
    return np.asarray(np.isnan(call[0]))


#: The ops of one tensor that the op table has, by their names in ONNX.
UNARY: Mapping[str, Kernel] = MappingProxyType(
    {
        str(name): _by_row(op)
        for op in OPS.values()
        if op.tensors == 1 and op.name != "cast"
        for name in op.names.get("onnx", ())
    }
)

# Ops that broadcast. Their operands are views of one shape.

Values = Callable[[NodeCall, Sequence[Array]], Array]


def _plain(function: Callable[..., Any]) -> Values:
    """A function folded over all operands from the left."""

    def values(_: NodeCall, operands: Sequence[Array]) -> Array:
        wide = [_wide(x) for x in operands]
        result = wide[0]
        for x in wide[1:]:
            result = function(result, x)
        return np.asarray(result).astype(operands[0].dtype)

    return values


def _compared(function: Callable[..., Any]) -> Values:
    return lambda _, operands: np.asarray(function(*operands))


def run_divide(_: NodeCall, operands: Sequence[Array]) -> Array:
    """Integers are truncated towards zero, as in C."""
    x, y = operands
    if x.dtype.kind not in "iu":
        return np.asarray(np.divide(_wide(x), _wide(y))).astype(x.dtype)
    try:
        return np.asarray(VARIANTS["truncated_divide"](x, y)).astype(x.dtype)
    except ZeroDivisionError:
        raise Unfit("an integer is divided by zero") from None


def run_modulo(call: NodeCall, operands: Sequence[Array]) -> Array:
    """Mod: the divisor's sign, or with `fmod` the dividend's."""
    x, y = operands
    if x.dtype.kind in "iu" and not np.all(y):
        raise Unfit("an integer is divided by zero")
    if call.flag("fmod"):
        return np.asarray(np.fmod(_wide(x), _wide(y))).astype(x.dtype)
    return np.asarray(np.remainder(_wide(x), _wide(y))).astype(x.dtype)


def run_power(_: NodeCall, operands: Sequence[Array]) -> Array:
    """The base decides the dtype; integers by float64's power, as ONNX Runtime computes them."""
    x, y = operands
    if x.dtype.kind not in "iu":
        kind = np.float64 if x.dtype == np.float64 or y.dtype == np.float64 else np.float32
        return np.asarray(np.power(x.astype(kind), y.astype(kind))).astype(x.dtype)
    if y.dtype.kind in "iu":
        return np.asarray(VARIANTS["pow_by_float64"](x, y))
    return np.asarray(to_integer(np.power(x.astype(np.float64), y.astype(np.float64)), x.dtype))


def run_shifted(call: NodeCall, operands: Sequence[Array]) -> Array:
    """A shift by the whole width or more gives 0."""
    x, y = operands
    direction = call.attribute("direction")
    if direction not in ("LEFT", "RIGHT"):
        raise Unfit(f"direction is {direction!r}; it is LEFT or RIGHT")
    function = np.left_shift if direction == "LEFT" else np.right_shift
    return np.asarray(function(x, y))


def run_mean(call: NodeCall, operands: Sequence[Array]) -> Array:
    """Mean of all operands."""
    wide = [_wide(x) for x in operands]
    total = wide[0]
    for x in wide[1:]:
        total = total + x
    return np.asarray(total / total.dtype.type(len(operands))).astype(operands[0].dtype)


def run_where(_: NodeCall, operands: Sequence[Array]) -> Array:
    """Where: one of two operands for each element."""
    condition, x, y = operands
    return np.where(condition.astype(bool), x, y)


def run_slope(_: NodeCall, operands: Sequence[Array]) -> Array:
    """PRelu: the slope scales what is below 0."""
    x, slope = operands
    return np.asarray(KERNELS["prelu"](_wide(x), _wide(slope))).astype(x.dtype)


def folded(name: str) -> Values:
    """The op table's function of an ONNX op, folded over all operands."""
    return _plain(KERNELS[find_op(name, "onnx").name])


def compared(name: str) -> Values:
    """The op table's comparison of an ONNX op."""
    return _compared(KERNELS[find_op(name, "onnx").name])


run_sum = _plain(np.add)
