"""Ops that change element types: casts, quantisation, and products of quantised numbers.

Types that NumPy lacks come from ml_dtypes, which the onnx package installs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir.graph import Array
from .call import NodeCall, Unfit, axis_of, room
from .reduction import product
from .windows import run_conv

#: 8-bit floats for which a saturating cast clips large numbers (ONNX, Cast).
_CLIPPED = frozenset({"float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"})
#: The type of powers of two; an attribute gives its rounding.
_POWERS = "float8_e8m0fnu"
#: Integers and floats to which tensors are quantised (ONNX, QuantizeLinear).
_INTEGERS = frozenset(
    {"int8", "uint8", "int16", "uint16", "int32", "int4", "uint4", "int2", "uint2"}
)
_FLOATS = _CLIPPED | {"float4_e2m1fn"}


def _limits(dtype: np.dtype[Any]) -> tuple[Any, Any]:
    """The smallest and the largest number of a type, in a wider one."""
    import ml_dtypes

    if dtype.name in _INTEGERS:
        whole: Any = ml_dtypes.iinfo(dtype)  # type: ignore[no-untyped-call]
        return int(whole.min), int(whole.max)
    real: Any = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
    return np.float32(real.min), np.float32(real.max)


def _saturated(x: Array, dtype: np.dtype[Any]) -> Array:
    low, high = _limits(dtype)
    return np.clip(x, low, high).astype(dtype)


def _power_of_two(x: Array, dtype: np.dtype[Any], call: NodeCall) -> Array:
    """The exponents, biased by 127: the type has no sign and no zero."""
    mode = call.attribute("round_mode", "up")
    if mode not in ("up", "down"):
        raise Unfit(f"round_mode {mode!r} is not executed")
    bits = x.astype(np.float32).view(np.uint32)
    exponent = (bits >> 23) & 0xFF
    up = (bits & 0x7FFFFF != 0) & (exponent < (0xFE if call.flag("saturate", 1) else 0xFF))
    rounded_exponent = exponent + up if mode == "up" else exponent
    return np.where(exponent == 0xFF, 0xFF, rounded_exponent).astype(np.uint8).view(dtype)


def run_cast(call: NodeCall) -> Array:
    """Integers wrap around; NaN and floats too large for an integer convert as on x86."""
    x, dtype = call[0], call.output_dtype()
    if dtype is None:
        dtype = call[1].dtype if call.node.op == "CastLike" else None
    if dtype is None or x.dtype.kind in "OSU":
        raise Unfit("the element type that it casts from or to is none that is executed")
    if dtype.name == _POWERS:
        return _power_of_two(x, dtype, call)
    if dtype.name in _CLIPPED and call.flag("saturate", 1):
        return _saturated(x.astype(np.float32) if x.dtype.itemsize < 4 else x, dtype)
    return x.astype(dtype)


def run_bit_cast(call: NodeCall) -> Array:
    """BitCast: the same bits as another type."""
    x, dtype = call[0], call.output_dtype()
    if dtype is None or x.dtype.kind in "OSU":
        raise Unfit("the element type that it casts from or to is none that is executed")
    if dtype.itemsize != x.dtype.itemsize:
        raise Unfit(f"{x.dtype} and {dtype} have not as many bits")
    return np.ascontiguousarray(x).view(dtype).reshape(x.shape)


def _along_axis(call: NodeCall, x: Array, vector: Array) -> Array:
    """A scale or zero point: one number, or one per index of `axis`, or one per block of it."""
    if vector.size == 1 and vector.ndim < 2:
        return vector.reshape(())
    axis, block = axis_of(call.attribute("axis", 1), x.ndim), call.attribute("block_size", 0)
    if block:
        blocks = tuple(-(-n // block) if k == axis else n for k, n in enumerate(x.shape))
        if block < 0 or vector.shape != blocks:
            raise Unfit(f"scales of shape {vector.shape} for {x.shape} in blocks of {block}")
        room(x.shape, vector.dtype)
        places = np.arange(x.shape[axis]) // block
        return np.asarray(np.take(vector, places, axis))
    if vector.ndim != 1 or vector.shape[0] != x.shape[axis]:
        raise Unfit(f"scales of shape {vector.shape} for {x.shape[axis]} elements of axis {axis}")
    return vector.reshape([-1 if k == axis else 1 for k in range(x.ndim)])


def _stored(numbers: Array, zero: Array | None, dtype: np.dtype[Any], saturate: bool) -> Array:
    """Numbers already divided by their scale, converted to the stored type."""
    if dtype.name in _CLIPPED:
        return _saturated(numbers, dtype) if saturate else numbers.astype(dtype)
    if dtype.name in _FLOATS:
        return numbers.astype(dtype)
    if dtype.name not in _INTEGERS:
        raise Unfit(f"quantisation to {dtype} is not executed")
    wide = np.float64 if dtype.itemsize > 2 else np.float32
    whole = np.rint(numbers).astype(wide)
    return _saturated(whole if zero is None else whole + zero.astype(wide), dtype)


def run_quantise(call: NodeCall) -> Array:
    """QuantizeLinear: divided by the scale, shifted, rounded."""
    x, scale, zero = call[0], _along_axis(call, call[0], call[1]), call.maybe(2)
    dtype = zero.dtype if zero is not None else call.output_dtype() or np.dtype(np.uint8)
    shift = None if zero is None else _along_axis(call, x, zero)
    divided = np.asarray(x / scale)
    return _stored(divided, shift, dtype, call.flag("saturate", 1))


def run_dynamic_quantise(call: NodeCall) -> tuple[Array, Array, Array]:
    """DynamicQuantizeLinear: to uint8 by the data's own range, which includes 0.

    The document gives no scale for data that are all 0; it is 1, as in ONNX Runtime.
    """
    x = call[0]
    low, high = (np.float32(end(x, initial=0.0)) for end in (np.min, np.max))
    scale = (high - low) / np.float32(255) if high > low else np.float32(1)
    zero = _saturated(np.rint(-low / scale), np.dtype(np.uint8))
    return _stored(x / scale, zero, zero.dtype, True), np.asarray(scale), zero


def run_dequantise(call: NodeCall) -> Array:
    """DequantizeLinear: shifted back and scaled."""
    x, scale, zero = call[0], _along_axis(call, call[0], call[1]), call.maybe(2)
    if x.dtype.name not in _INTEGERS | _FLOATS:
        raise Unfit(f"quantised numbers of {x.dtype} are not executed")
    wide = x.astype(np.int32 if x.dtype.name in _INTEGERS else np.float32)
    if zero is not None and x.dtype.name in _INTEGERS:
        wide = wide - _along_axis(call, x, zero).astype(np.int32)
    elif zero is not None and zero.astype(np.float32).any():
        raise Unfit(f"the zero point of {x.dtype} is not zero")
    return np.asarray(wide.astype(scale.dtype) * scale)


def _shifted(x: Array, zero: Array | None, per_row: bool) -> Array:
    """Quantised numbers minus their zero point: one for all, or one per row (of a) or column."""
    wide = x.astype(np.int32)
    if zero is None:
        return wide
    shift = zero.astype(np.int32)
    if shift.ndim == 1 and shift.size > 1 and per_row:
        shift = shift[:, None]
    if np.broadcast_shapes(shift.shape, x.shape) != x.shape:
        raise Unfit(f"a zero point of shape {zero.shape} for data of shape {x.shape}")
    return wide - shift


def run_matmul_integer(call: NodeCall) -> Array:
    """MatMulInteger: a product of shifted integers."""
    return product(_shifted(call[0], call.maybe(2), True), _shifted(call[1], call.maybe(3), False))


def run_conv_integer(call: NodeCall) -> Array:
    """ConvInteger: a convolution of shifted integers."""
    x, weight = _shifted(call[0], call.maybe(2), False), call[1].astype(np.int32)
    zero = call.maybe(3)
    if zero is not None:
        if zero.size not in (1, weight.shape[0]):
            raise Unfit(f"a zero point of shape {zero.shape} for weights of shape {weight.shape}")
        weight = weight - zero.astype(np.int32).reshape(-1, *(1,) * (weight.ndim - 1))
    return run_conv(NodeCall(call.node, (x, weight)))


def run_quantised_matmul(call: NodeCall) -> Array:
    """QLinearMatMul: a product of quantised numbers, quantised again."""
    a, b = _shifted(call[0], call[2], True), _shifted(call[3], call[5], False)
    scales = [call[1], call[4], call[6]]
    if any(scale.size != 1 for scale in scales) or call[7].size != 1:
        raise Unfit("scales a row or column are not executed")
    first, second, third = (scale.reshape(()) for scale in scales)
    whole = product(a, b)
    scaled = np.asarray(whole * (first * second / third))
    return _stored(scaled, call[7].reshape(()), call[7].dtype, True)
