"""The public functions of quantisation: one pass over memory where the engine has the types.

Other types, and other engines' arithmetic, are computed by :mod:`zerostride.compute.quantised`,
with which tests compare the passes here.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..compute import unary
from ..compute.dtypes import as_dtype
from ..compute.foreign import NotPlain, any_foreign, dispatch, is_foreign
from ..compute.functions import FUNCTIONS
from ..compute.quantised import (
    ENDS,
    Call,
    dequantised,
    dequantization,
    quantised,
    quantization,
    work_type,
)
from ..compute.reference import as_operand
from ..errors import BroadcastError, Reason
from ..quantisation import QuantizationPlan, Rounding, plan_quantization
from ..quantisation.model import Subtracted
from ..sizes import brief
from . import fuse
from .trace.value import Value

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .function import Fused

#: Types of few enough bits that float32 has their differences, and that the engine loads.
_EXACT = frozenset({"int8", "uint8", "int16", "uint16"})
#: Types of 4 bits, two of which packed data hold in a byte.
_NIBBLES = ("int4", "uint4")


def quantize(
    x: Any,
    scale: Any,
    zero_point: Any = None,
    *,
    axis: Any = None,
    block: Any = None,
    dtype: Any = None,
    engine: str | None = None,
    opset: int | None = None,
) -> Any:
    """Quantises: round(x / scale) + zero point, saturated; ties to even.

    Args:
        x: an array of floats.
        scale: one number, a vector along `axis`, an array of x's rank that is 1 where it repeats,
            or with `block` a number for each block.
        zero_point: of the scale's shape, or one number; 0 if left out.
        axis: the axis of a vector or of blocks; 1 if left out, as in ONNX.
        block: the elements of a block; the last one may have fewer.
        dtype: int8, uint8, int16, uint16, int4, uint4, int2, uint2 (ml_dtypes has those of fewer
            than 8 bits) or a float8; the zero point's if left out, else uint8, as in ONNX.
        engine: compute what that engine's measured release computes.
        opset: ONNX's opset; an engine may compute otherwise in older ones.

    Returns:
        An array of x's shape and library. NaN gives the lowest number, which ONNX leaves open, or
        under an engine what it gives there.

    Raises:
        BroadcastError: the scale does not fit, or the engine lacks the placement or the type.
        TypeError: x is on a device, has labels or is lazy.

    Source: ONNX, QuantizeLinear-25.

    >>> import numpy as np, zerostride as zs
    >>> zs.quantize([0.5, 1.5, -300.0], 1.0, 3, dtype="int8").tolist()
    [3, 5, -128]
    >>> zs.quantize(np.float32([0.5, 1.5, -300.0]), 1, 3, dtype="int8", engine="openvino").tolist()
    [4, 4, -128]
    """
    places = {"axis": axis, "block": block, "engine": engine, "opset": opset}
    _refuse_traced("quantize", x, scale, zero_point)
    if any_foreign((x, scale, zero_point)):
        return _of_library(quantize, (x, scale, zero_point), {**places, "dtype": dtype})
    call = quantization(x, scale, zero_point, dtype, places)
    if not _in_one_pass(call, call.dtype.name):
        return quantised(call)
    if work_type(call) != np.float32 or not _is_standard(call):
        return quantised(call)
    numbers, factors, shift = call.operands
    low, high = ENDS[call.dtype.name]
    shifts = () if shift is None else (shift,)
    program = _quantising(call.dtype.name, low, high, len(shifts))
    result: NDArray[Any] = np.asarray(program(numbers, factors, *shifts))
    return result.reshape(call.plan.shape)


def dequantize(
    q: Any,
    scale: Any,
    zero_point: Any = None,
    *,
    axis: Any = None,
    block: Any = None,
    dtype: Any = None,
    engine: str | None = None,
    opset: int | None = None,
    packed: str | None = None,
) -> Any:
    """The numbers that quantised ones stand for: (q - zero point) * scale.

    Args:
        q: an array of whole numbers, or of float8.
        scale: one number, a vector along `axis`, an array of q's rank that is 1 where it repeats,
            or with `block` a number for each block.
        zero_point: of the scale's shape, or one number; 0 if left out. It is not packed.
        axis: the axis of a vector or of blocks; 1 if left out, as in ONNX.
        block: the elements of a block; the last one may have fewer.
        dtype: the result's; the scale's if left out.
        engine: compute what that engine's measured release computes.
        opset: ONNX's opset.
        packed: "int4" or "uint4" if the bytes of q hold two numbers each along the last axis, the
            first one in the low half, as ONNX stores them.

    Returns:
        An array of q's shape and library; of twice the last axis if it is packed.

    Raises:
        BroadcastError: the scale does not fit, or the engine lacks the placement or the type.
        TypeError: q is on a device, has labels or is lazy.

    Source: ONNX, DequantizeLinear-25.

    >>> import numpy as np, zerostride as zs
    >>> q = np.array([[1, 2, 3, 4]], np.int8)
    >>> zs.dequantize(q, np.float32([[10, 0.5]]), block=2).tolist()
    [[10.0, 20.0, 1.5, 2.0]]
    >>> zs.dequantize(np.uint8([0x21, 0xF3]), 1.0, packed="int4").tolist()
    [1.0, 2.0, 3.0, -1.0]
    """
    places = {"axis": axis, "block": block, "engine": engine, "opset": opset}
    _refuse_traced("dequantize", q, scale, zero_point)
    if any_foreign((q, scale, zero_point)):
        more = {**places, "dtype": dtype, "packed": packed}
        return _of_library(dequantize, (q, scale, zero_point), more)
    values = q if packed is None else _unpacked(q, packed)
    call = dequantization(values, scale, zero_point, places, packed)
    result = _dequantised(call)
    return result if dtype is None else result.astype(as_dtype(dtype), copy=False)


def _dequantised(call: Call) -> NDArray[Any]:
    name = call.dtype.name
    if name in (*_NIBBLES, "int2", "uint2"):
        name = "int8"
    fused = call.row.subtracts is Subtracted.FUSED and call.shift is not None
    fused = fused and call.stored == name
    if fused or call.scale.dtype != np.float32 or not _in_one_pass(call, name):
        return dequantised(call)
    parts = [part for part in call.operands if part is not None]
    if name != call.dtype.name:
        parts = [parts[0].astype(np.int8), parts[1], *(part.astype(np.int8) for part in parts[2:])]
    result: NDArray[Any] = np.asarray(_dequantising(len(parts) == 3)(*parts))
    return result.reshape(call.plan.shape)


def _in_one_pass(call: Call, name: str) -> bool:
    """Whether a fused program computes the same: types that it loads, whole blocks."""
    return name in _EXACT and not any(call.plan.padding) and call.x.size > 0


def _is_standard(call: Call) -> bool:
    return call.row.rounding_of(call.plan.placement, call.dtype.name) == Rounding()


def _of_library(
    function: Callable[..., Any], operands: Sequence[Any], options: Mapping[str, Any]
) -> Any:
    """The function of another library's arrays in this processor's memory, by NumPy's views."""
    arrays = [operand for operand in operands if is_foreign(operand)]
    if any(hasattr(array, "dims") or hasattr(array, "dask") for array in arrays):
        raise TypeError("quantisation takes arrays of numbers; pass x.to_numpy(), or x.compute()")
    foreign = dispatch()
    try:
        plain = [foreign.data_of(x) if is_foreign(x) else x for x in operands]
    except NotPlain as fault:
        raise TypeError(f"an operand {fault.reason}; pass it as an array of NumPy") from None
    adapter = foreign.adapter_of([x for x in operands if x is not None])
    return adapter.from_numpy(function(*plain, **options), arrays)


def _refuse_traced(name: str, *operands: Any) -> None:
    if any(isinstance(operand, Value) for operand in operands):
        raise TypeError(
            f"a fused function does not record {name}; call zs.fake_quantize there, which has a "
            f"gradient, or {name} outside"
        )


@functools.cache
def _quantising(name: str, low: int, high: int, shifts: int) -> Fused:
    """round(x / scale) + zero point; NaN becomes the lowest number, which fmax prefers to it."""
    rounded, fmax, fmin = unary.FUNCTIONS["round"], FUNCTIONS["fmax"], FUNCTIONS["fmin"]

    def program(x: Any, scale: Any, *zero: Any) -> Any:
        numbers = rounded(x / scale)
        if shifts:
            numbers = numbers + unary.cast(zero[0], np.float32)
        return unary.cast(fmin(fmax(numbers, low), high), name)

    return fuse(program)


@functools.cache
def _dequantising(shifted: bool) -> Fused:
    def program(q: Any, scale: Any, *zero: Any) -> Any:
        numbers = unary.cast(q, np.float32)
        return (numbers - unary.cast(zero[0], np.float32) if shifted else numbers) * scale

    return fuse(program)


def _unpacked(q: Any, packed: Any) -> NDArray[Any]:
    """The numbers of bytes that hold two each, as int8."""
    array = np.asarray(q)
    if packed not in _NIBBLES or array.dtype != np.uint8 or array.ndim == 0:
        raise BroadcastError(
            f"packed= is 'int4' or 'uint4', of an array of uint8; not {brief(packed)} of "
            f"{array.dtype}",
            reason=Reason.ATTRIBUTE,
        )
    halves = _halves(packed == "int4")(array[..., None], np.array([0, 4], np.uint8))
    whole: NDArray[Any] = np.asarray(halves).reshape(*array.shape[:-1], 2 * array.shape[-1])
    return whole


@functools.cache
def _halves(signed: bool) -> Fused:
    both, right, flip = (
        FUNCTIONS[name] for name in ("bitwise_and", "bitwise_right_shift", "bitwise_xor")
    )

    def program(q: Any, bits: Any) -> Any:
        half = unary.cast(both(right(q, bits), 15), np.int8)
        return flip(half, 8) - 8 if signed else half

    return fuse(program)


def fake_quantize(
    x: Any,
    scale: Any,
    zero_point: Any = None,
    *,
    axis: Any = None,
    block: Any = None,
    dtype: str = "uint8",
) -> Any:
    """Quantises and goes back, in floats: what a quantised model makes of x.

    In a fused function it has a gradient that goes straight through: x's gradient is the result's
    where x is within the range, and 0 outside; the scale has that of a learned step (LSQ).

    Args:
        x: an array of floats, or a value of a fused function.
        scale: as for :func:`zerostride.quantize`.
        zero_point: of the scale's shape, or one number; 0 if left out.
        axis: the axis of a vector or of blocks; 1 if left out.
        block: the elements of a block, which divides its axis.
        dtype: the stored type, of whole numbers.

    Returns:
        An array of x's shape.

    Raises:
        BroadcastError: the scale does not fit; blocks do not divide their axis.

    Source: the straight-through estimator of Bengio and others, 2013 (arXiv:1308.3432).

    >>> import numpy as np, zerostride as zs
    >>> x = np.float32([0.3, 1.4, 999])
    >>> zs.fake_quantize(x, np.float32(0.5), dtype="int8").tolist()
    [0.5, 1.5, 63.5]
    >>> zs.grad(lambda x: zs.sum(zs.fake_quantize(x, np.float32(0.5), dtype="int8")))(x).tolist()
    [1.0, 1.0, 0.0]
    """
    if dtype not in ENDS:
        raise BroadcastError(
            f"a stored type is one of {', '.join(ENDS)}, not {brief(dtype)}", reason=Reason.DTYPE
        )
    operands = [each for each in (x, scale, zero_point) if each is not None]
    traced = any(isinstance(operand, Value) for operand in operands)
    if not traced:
        operands = [np.asarray(as_operand(operand)) for operand in operands]
        operands[1:] = [part.astype(operands[0].dtype) for part in operands[1:]]
    shapes = [*map(np.shape, operands), None]
    plan = plan_quantization(shapes[0], shapes[1], shapes[2], axis, block)
    _check_whole_blocks(plan)
    if not traced:
        parts = [part.reshape(plan.plan.aligned[k]) for k, part in enumerate(operands)]
        return np.asarray(_straight_through(dtype)(*parts)).reshape(plan.shape)
    if plan.split != plan.shape:
        raise BroadcastError(
            "a fused function does not split the axis of a block",
            reason=Reason.ATTRIBUTE,
            rule=plan.rule,
            shapes=plan.operands,
            names=("x", "scale", "zero point")[: len(operands)],
            hint=f"outside of it reshape x to {plan.split} and the scale to "
            f"{plan.plan.aligned[1]}; inside leave out axis= and block=",
        )
    return _through(dtype, *(_aligned(part, plan, k) for k, part in enumerate(operands)))


def _check_whole_blocks(plan: QuantizationPlan) -> None:
    if any(plan.padding):
        raise BroadcastError(
            "fake_quantize takes blocks that divide their axis",
            reason=Reason.EXTENT_MISMATCH,
            rule=plan.rule,
            shapes=plan.operands,
            names=("x", "scale", "zero point")[: len(plan.operands)],
            hint="pad x to a multiple of the block",
        )


def _aligned(part: Any, plan: QuantizationPlan, k: int) -> Any:
    return part.reshape(plan.plan.aligned[k]) if np.shape(part) else part


@functools.cache
def _straight_through(dtype: str) -> Fused:
    return fuse(functools.partial(_through, dtype))


def _through(dtype: str, x: Any, scale: Any, *zero: Any) -> Any:
    """The rounded number is a constant beside the clipped one, whose gradient is left."""
    low, high = ENDS[dtype]
    fmax, fmin, held = (FUNCTIONS[name] for name in ("fmax", "fmin", "nextafter"))
    least, most = (low - zero[0], high - zero[0]) if zero else (low, high)
    quotient = x / scale
    inside = unary.clip(quotient, least, most)
    step = fmin(fmax(unary.FUNCTIONS["round"](quotient), least), most) - inside
    # nextafter(v, v) is v, and its derivative is 0.
    return (inside + held(step, step)) * scale
