"""The public functions of quantisation: one pass over memory where the engine has the types.

Other types, and other engines' arithmetic, are computed by :mod:`zerostride.compute.quantised`,
with which tests compare the passes here.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
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
from .run import checked, put
from .trace.value import Value

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .function import Fused

#: Types of few enough bits that float32 has their differences, and that the engine loads.
_EXACT = frozenset({"int8", "uint8", "int16", "uint16"})
#: The bits of types that arrays hold in bytes.
_FEW = {"int4": 4, "uint4": 4, "int2": 2, "uint2": 2}


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
    out: Any = None,
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
        out: an array of x's shape that receives the result and is returned.

    Returns:
        An array of x's shape and library. NaN gives the lowest number, which ONNX leaves open, or
        under an engine what it gives there.

    Raises:
        BroadcastError: the scale or `out` does not fit; the engine lacks the placement or the type.
        TypeError: x is on a device, has labels or is lazy; the result does not fit `out`.

    Source: ONNX, QuantizeLinear-25.

    >>> import numpy as np, zerostride as zs
    >>> zs.quantize([0.5, 1.5, -300.0], 1.0, 3, dtype="int8").tolist()
    [3, 5, -128]
    >>> zs.quantize(np.float32([0.5, 1.5, -300.0]), 1, 3, dtype="int8", engine="openvino").tolist()
    [4, 4, -128]
    """
    places = {"axis": axis, "block": block, "engine": engine, "opset": opset}
    _refuse_traced("quantize", x, scale, zero_point)
    if any_foreign((x, scale, zero_point, out)):
        return _of_library(quantize, (x, scale, zero_point), {**places, "dtype": dtype}, out)
    call = quantization(x, scale, zero_point, dtype, places)
    one_pass = _in_one_pass(call, call.dtype.name) and work_type(call) == np.float32
    if not one_pass or not _is_standard(call):
        return _stored_in(out, quantised(call))
    numbers, factors, shift = call.operands
    low, high = ENDS[call.dtype.name]
    shifts = () if shift is None else (shift,)
    program = _quantising(call.dtype.name, low, high, len(shifts))
    return _run(program, (numbers, factors, *shifts), call.plan.shape, out)


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
    out: Any = None,
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
        out: an array of the result's shape that receives it and is returned.

    Returns:
        An array of q's shape and library; of twice the last axis if it is packed.

    Raises:
        BroadcastError: the scale or `out` does not fit; the engine lacks the placement or the type.
        TypeError: q is on a device, has labels or is lazy; the result does not fit `out`.

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
    if any_foreign((q, scale, zero_point, out)):
        more = {**places, "dtype": dtype, "packed": packed}
        return _of_library(dequantize, (q, scale, zero_point), more, out)
    values = q if packed is None else _room(q, packed)
    call = dequantization(values, scale, zero_point, places, packed)
    target = None if dtype is None else as_dtype(dtype)
    direct = out if target in (None, call.scale.dtype) else None
    result = _dequantised(call, None if packed is None else np.asarray(q), direct)
    return _stored_in(out, result if target is None else result.astype(target, copy=False))


def _dequantised(call: Call, packed: NDArray[Any] | None, out: Any) -> NDArray[Any]:
    """The numbers of a call; `packed` are the bytes of one whose numbers are not unpacked yet."""
    few = _FEW.get(call.stored, 0)
    name = "int8" if few else call.dtype.name
    fused = call.row.subtracts is Subtracted.FUSED and call.shift is not None and not few
    odd = packed is not None and call.plan.split[-1] % 2
    if fused or odd or call.scale.dtype != np.float32 or not _in_one_pass(call, name):
        whole = call.x if packed is None else _unpacked(packed, call.stored)
        return dequantised(replace(call, x=whole))
    numbers, *others = (part for part in call.operands if part is not None)
    if few:
        kind = "u" if call.stored.startswith("u") else "i"
        others[1:] = [part.astype(np.int8) for part in others[1:]]
        words, spare = numbers.view(f"{kind}1"), np.array(8 - few, f"{kind}1")
        if packed is not None:
            words = _words(packed, call.plan.split[-1], kind)
            numbers_of_word = 2 * words.itemsize
            words = words.reshape(*call.plan.split[:-1], -1, 1)
            spare = few * np.arange(numbers_of_word)[::-1].astype(words.dtype)
            others = [_in_words(part, numbers_of_word) for part in others]
        numbers, others = words, [*others, spare]
    program = _dequantising(call.shift is not None, few)
    result: NDArray[Any] = _run(program, (numbers, *others), call.plan.shape, out)
    return result


def _words(packed: NDArray[Any], run: int, kind: str) -> NDArray[Any]:
    """Packed bytes as words of 32 bits where `run` numbers fill such words, else as bytes."""
    word = np.dtype(f"<{kind}4")
    whole = word.isnative and run % 8 == 0 and packed.flags.c_contiguous
    whole = whole and packed.ctypes.data % word.itemsize == 0
    return packed.view(word if whole else f"{kind}1")


def _in_words(part: NDArray[Any], numbers: int) -> NDArray[Any]:
    """An operand whose last axis is split into words of so many numbers."""
    size = part.shape[-1]
    inner = (1, 1) if size == 1 else (size // numbers, numbers)
    return part.reshape(*part.shape[:-1], *inner)


def _run(program: Fused, operands: Sequence[Any], shape: tuple[int, ...], out: Any) -> Any:
    """The result of a program over split axes, in `out` if that is one without a copy."""
    split = np.broadcast_shapes(*(operand.shape for operand in operands))
    if type(out) is np.ndarray and out.shape == shape and out.flags.c_contiguous:
        program(*operands, out=out.reshape(split))
        return out
    return _stored_in(out, np.asarray(program(*operands)).reshape(shape))


def _stored_in(out: Any, result: NDArray[Any]) -> Any:
    """A result, or `out` with its numbers."""
    if out is None or out is result:
        return result
    target = checked(out, result.shape, result.dtype, "out")
    put(target, result)
    return out


def _in_one_pass(call: Call, name: str) -> bool:
    """Whether a fused program computes the same: types that it loads, whole blocks."""
    return name in _EXACT and not any(call.plan.padding) and call.x.size > 0


def _is_standard(call: Call) -> bool:
    return call.row.rounding_of(call.plan.placement, call.dtype.name) == Rounding()


def _of_library(
    function: Callable[..., Any], operands: Sequence[Any], options: Mapping[str, Any], out: Any
) -> Any:
    """The function of another library's arrays in this processor's memory, by NumPy's views."""
    arrays = [operand for operand in (*operands, out) if is_foreign(operand)]
    if any(hasattr(array, "dims") or hasattr(array, "dask") for array in arrays):
        raise TypeError("quantisation takes arrays of numbers; pass x.to_numpy(), or x.compute()")
    foreign = dispatch()
    try:
        plain = [foreign.data_of(x) if is_foreign(x) else x for x in (*operands, out)]
    except NotPlain as fault:
        raise TypeError(f"an operand {fault.reason}; pass it as an array of NumPy") from None
    result = function(*plain[:-1], **options, out=plain[-1])
    if out is not None:
        return out
    adapter = foreign.adapter_of([x for x in operands if x is not None])
    return adapter.from_numpy(result, arrays)


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
def _dequantising(shifted: bool, few: int) -> Fused:
    """(q - zero point) * scale.

    Of a type of `few` bits, q are words, and the last operand says how far left each number in a
    word has to go; the way back brings its sign along.
    """
    left, right = FUNCTIONS["bitwise_left_shift"], FUNCTIONS["bitwise_right_shift"]

    def program(q: Any, scale: Any, *more: Any) -> Any:
        numbers = right(left(q, more[-1]), 8 * q.dtype.itemsize - few) if few else q
        numbers = unary.cast(numbers, np.float32)
        return (numbers - unary.cast(more[0], np.float32) if shifted else numbers) * scale

    return fuse(program)


def _room(q: Any, packed: Any) -> NDArray[Any]:
    """An array of the shape that bytes with two numbers each have when unpacked."""
    array = np.asarray(q)
    if packed not in ("int4", "uint4") or array.dtype != np.uint8 or array.ndim == 0:
        raise BroadcastError(
            f"packed= is 'int4' or 'uint4', of an array of uint8; not {brief(packed)} of "
            f"{array.dtype}",
            reason=Reason.ATTRIBUTE,
        )
    return np.broadcast_to(np.int8(0), (*array.shape[:-1], 2 * array.shape[-1]))


def _unpacked(q: NDArray[Any], stored: str) -> NDArray[Any]:
    """The numbers of bytes that hold two each, as int8."""
    low, high = ENDS[stored]
    halves = (q[..., None] >> np.array([0, 4], np.uint8) & high - low).astype(np.int8)
    whole: NDArray[Any] = (halves ^ -low) + low if low else halves
    return whole.reshape(*q.shape[:-1], 2 * q.shape[-1])


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
