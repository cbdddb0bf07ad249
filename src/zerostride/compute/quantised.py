"""Quantised numbers and back, under ONNX's rule or as an engine's measured release computes them.

`zerostride.quantisation` says which elements share a scale, and which arithmetic an engine has; the
functions here carry it out over NumPy's arrays. Types that NumPy lacks come from ml_dtypes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.plan import RuleUse
from ..errors import BroadcastError, Reason
from ..quantisation import (
    STANDARD,
    QuantizationPlan,
    Quantizer,
    Rounding,
    find_quantizer,
    plan_quantization,
)
from ..quantisation.model import Divided, Huge, NotANumber, Placement, Shifted, Subtracted, Ties
from ..quantisation.rows import FLOAT8, NEWEST_OPSET
from ..sizes import brief
from .dtypes import as_dtype
from .reference import as_operand

Array = NDArray[Any]
#: Types whose numbers are whole, by name: their least and largest number.
ENDS = {
    f"{'u' if unsigned else ''}int{bits}": (
        (0, 2**bits - 1) if unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    )
    for bits in (2, 4, 8, 16, 32)
    for unsigned in (False, True)
}
#: Those that NumPy has, and those of ml_dtypes.
_BYTES = frozenset({"int8", "uint8", "int16", "uint16", "int32"})
_SMALL = FLOAT8 | {"int2", "uint2", "int4", "uint4", "bfloat16"}


@dataclass(frozen=True, slots=True)
class Call:
    """Operands of a quantisation, or of the way back, that fit each other.

    Attributes:
        plan: how they lie on each other.
        row: the engine's row, or the standard's.
        x: the tensor.
        scale: its scale, of floats.
        shift: its zero point in the stored type, or None.
        dtype: the type of the quantised numbers.
        opset: ONNX's opset.
        stored: the stored type's name; of unpacked numbers not that of `dtype`.
    """

    plan: QuantizationPlan
    row: Quantizer
    x: Array
    scale: Array
    shift: Array | None
    dtype: np.dtype[Any]
    opset: int
    stored: str

    @property
    def operands(self) -> tuple[Array, Array, Array | None]:
        """The operands over the split axes, or over the tensor's own where a block is cut off."""
        shift = None if self.shift is None else spread(self.plan, 2, self.shift)
        return spread(self.plan, 0, self.x), spread(self.plan, 1, self.scale), shift


def quantization(
    x: Any, scale: Any, zero_point: Any, dtype: Any, places: Mapping[str, Any]
) -> Call:
    """The operands of `quantize`, checked; `places` are axis, block, engine and opset."""
    row = _row(places)
    array, factors = _numbers(x, scale)
    target = _stored_type(dtype, zero_point, row)
    shift = None if zero_point is None else _zero_point(zero_point, target, row)
    plan = _plan(array, factors, shift, places)
    for each in (array, factors):
        if each.dtype.name not in row.floats:
            raise _no_type(each.dtype.name, "quantises numbers of", row.floats, plan.rule)
    opset = places.get("opset") or NEWEST_OPSET
    return Call(plan, row, array, factors, shift, target, opset, target.name)


def dequantization(
    q: Any, scale: Any, zero_point: Any, places: Mapping[str, Any], packed: str | None = None
) -> Call:
    """The operands of `dequantize`, checked; `places` are axis, block, engine and opset.

    `packed` is the stored type of numbers that were unpacked to int8.
    """
    row = _row(places)
    array, factors = np.asarray(as_operand(q)), np.asarray(as_operand(scale))
    if factors.dtype.kind in "iub" or (factors.dtype == np.float64 and _is_weak(scale)):
        factors = factors.astype(np.float32)
    stored = packed or array.dtype.name
    if stored not in row.reads:
        raise _no_type(stored, "dequantises from", row.reads, _use(places))
    shift = None if zero_point is None else _zero_point(zero_point, array.dtype, row)
    plan = _plan(array, factors, shift, places)
    if factors.dtype.name not in row.floats:
        raise _no_type(factors.dtype.name, "takes scales of", row.floats, plan.rule)
    opset = places.get("opset") or NEWEST_OPSET
    if opset < row.reads_from:
        raise BroadcastError(
            f"{row.name} dequantises from opset {row.reads_from} on, and this is opset {opset}",
            reason=Reason.NO_OP,
            rule=plan.rule,
        )
    if row.divides and plan.placement is Placement.BLOCK and len(plan.split) == 2 > array.ndim:
        raise BroadcastError(
            f"{row.name} refuses to dequantise blocks of a tensor of one axis",
            reason=Reason.RANK,
            rule=plan.rule,
            shapes=plan.operands,
            hint="reshape q and the scale to have an axis of 1 in front",
        )
    one = factors.size == 1 and factors.ndim > 1 and plan.placement is Placement.BLOCK
    if row.divides and one and (shift is None or math.prod(array.shape) % _block(places)):
        raise BroadcastError(
            f"{row.name} refuses to dequantise a block that is longer than its axis, or without a "
            "zero point",
            reason=Reason.EXTENT_MISMATCH,
            rule=plan.rule,
            shapes=plan.operands,
            hint="pass the scale as one number of shape ()",
        )
    return Call(plan, row, array, factors, shift, array.dtype, opset, stored)


def _block(places: Mapping[str, Any]) -> int:
    """The block that is asked for; 1 without one."""
    return int(places.get("block") or 1)


def dequantised(call: Call) -> Array:
    """The numbers that quantised ones stand for, by NumPy."""
    numbers, scale, shift = call.operands
    work = np.float64 if scale.dtype == np.float64 else np.float32
    with np.errstate(all="ignore"):
        fused = call.row.subtracts is Subtracted.FUSED and call.stored in _BYTES
        if fused and shift is not None:
            exact = numbers.astype(np.float32).astype(np.float64) * scale.astype(np.float64)
            product = exact - (shift.astype(work) * scale.astype(work)).astype(np.float64)
        else:
            product = _difference(numbers, shift, call.row, work) * scale.astype(work)
        return np.asarray(product.astype(scale.dtype, copy=False)).reshape(call.plan.shape)


def _difference(q: Array, shift: Array | None, row: Quantizer, work: Any) -> Array:
    """The quantised numbers minus their zero point, as floats."""
    if shift is None or q.dtype.name in FLOAT8:
        return q.astype(work)
    if q.dtype.itemsize < 4:
        return (q.astype(np.int32) - shift.astype(np.int32)).astype(work)
    if row.subtracts is Subtracted.DOUBLES:
        return np.asarray(q.astype(np.float32).astype(np.float64) - shift)
    if row.subtracts is Subtracted.WRAPS:
        return np.asarray(q - shift).astype(work)
    return (q.astype(np.int64) - shift.astype(np.int64)).astype(work)


# Operands


def _row(places: Mapping[str, Any]) -> Quantizer:
    engine = places.get("engine")
    return STANDARD if engine is None else find_quantizer(engine)


def _use(places: Mapping[str, Any]) -> RuleUse:
    return RuleUse("quantization", engine=places.get("engine"))


def _plan(
    x: Array, scale: Array, shift: Array | None, places: Mapping[str, Any]
) -> QuantizationPlan:
    zero = None if shift is None else shift.shape
    return plan_quantization(x.shape, scale.shape, zero, **places)


def _numbers(x: Any, scale: Any) -> tuple[Array, Array]:
    """The tensor and its scale as floats; a Python number takes the other's type."""
    array, factors = np.asarray(as_operand(x)), np.asarray(as_operand(scale))
    if array.dtype.kind in "iub":
        array = array.astype(np.float32)
    if _is_weak(scale) or factors.dtype.kind in "iu":
        factors = factors.astype(array.dtype)
    return array, factors


def _is_weak(value: Any) -> bool:
    """Whether it is a Python number, or a list of some, without a type of its own."""
    return not hasattr(value, "dtype")


def _dtype(dtype: Any) -> np.dtype[Any]:
    """A type of NumPy or, by its name, of ml_dtypes."""
    if not isinstance(dtype, str) or dtype not in _SMALL:
        return as_dtype(dtype)
    try:
        import ml_dtypes
    except ImportError:
        raise BroadcastError(
            f"{dtype} is a type of ml_dtypes, which is not installed",
            reason=Reason.DTYPE,
            hint="pip install ml_dtypes",
        ) from None
    small: np.dtype[Any] = np.dtype(getattr(ml_dtypes, dtype))
    return small


def _stored_type(dtype: Any, zero_point: Any, row: Quantizer) -> np.dtype[Any]:
    """The type to which numbers are quantised; raises BroadcastError if the row lacks it."""
    own = getattr(zero_point, "dtype", None)
    target = _dtype(dtype if dtype is not None else own if own is not None else "uint8")
    if target.name not in row.stores:
        raise _no_type(target.name, "quantises to", row.stores, RuleUse("quantization"))
    return target


def _no_type(name: str, does: str, has: frozenset[str], use: RuleUse) -> BroadcastError:
    engine = use.engine or "zerostride"
    return BroadcastError(
        f"{engine} {does} {', '.join(sorted(has))}, not {name}", reason=Reason.DTYPE, rule=use
    )


def _zero_point(value: Any, dtype: np.dtype[Any], row: Quantizer) -> Array:
    """The zero point in the stored type; raises BroadcastError if a number of it does not fit."""
    array = np.asarray(as_operand(value))
    if dtype.name in FLOAT8:
        if np.any(array.astype(np.float32)):
            raise BroadcastError(
                f"the zero point of {dtype.name} is 0", reason=Reason.ATTRIBUTE, hint="leave it out"
            )
        return array.astype(np.float32).astype(dtype)
    whole = array.astype(np.int64)
    if np.any(whole != array):
        raise BroadcastError(
            f"a zero point is a whole number, not {brief(value)}", reason=Reason.ATTRIBUTE
        )
    if dtype.name in ENDS:
        low, high = ENDS[dtype.name]
        if whole.size and not (low <= whole.min() and whole.max() <= high):
            raise BroadcastError(
                f"a zero point of {dtype.name} is in {low} .. {high}, not {brief(value)}",
                reason=Reason.ATTRIBUTE,
            )
        return whole.astype(dtype)
    return whole


def spread(plan: QuantizationPlan, k: int, array: Array) -> Array:
    """Operand `k` over the split axes, or over the tensor's own where a block is cut off."""
    if not any(plan.padding):
        return array.reshape(plan.plan.aligned[k])
    if k == 0:
        return array
    result = array
    for axis, (n, block) in enumerate(zip(plan.shape, plan.blocks, strict=True)):
        if array.ndim == len(plan.shape) and array.shape[axis] > 1:
            result = np.repeat(result, block, axis).take(range(n), axis)
    return result


# The arithmetic


def quantised(call: Call) -> Array:
    """The quantised numbers, by NumPy."""
    dtype, rounding = call.dtype, call.row.rounding_of(call.plan.placement, call.dtype.name)
    return _stored(call, dtype, rounding).reshape(call.plan.shape)


def work_type(call: Call) -> np.dtype[Any]:
    """The type in which numbers are divided by their scale."""
    work = np.result_type(call.x, call.scale)
    own = call.row.own
    return np.dtype(np.float32) if work.itemsize < 4 and (not own or call.opset < own) else work


def _stored(call: Call, dtype: np.dtype[Any], rounding: Rounding) -> Array:
    x, scale, shift = call.operands
    work = work_type(call)
    with np.errstate(all="ignore"):
        numbers, factors = x.astype(work), scale.astype(work)
        if dtype.name in FLOAT8:
            return _as_float8(np.asarray(numbers / factors), dtype)
        if rounding.divided is Divided.RANGE:
            return _by_range(numbers, factors, shift, dtype)
        quotient = _quotient(numbers, factors, shift, rounding)
        later = shift if rounding.shifted is Shifted.AFTER else None
        whole = _whole(quotient, later, dtype, rounding)
        left = x.size % rounding.lanes if rounding.lanes else 0
        if left:
            numbers, factor = x.reshape(-1)[-left:], scale.reshape(-1)[0]
            exact = np.asarray(numbers.astype(np.float64) / np.float64(factor))
            rest = replace(rounding, ties=Ties.AWAY, lanes=0)
            point = None if shift is None else shift.reshape(-1)
            whole = whole.reshape(-1)
            whole[-left:] = _whole(exact, point, dtype, rest)
        ends = _row_ends(call.plan.shape, rounding.row_lanes)
        if ends is not None:
            apart = _whole(quotient, later, dtype, replace(rounding, ties=Ties.AWAY))
            whole = np.where(ends.reshape(whole.shape), apart, whole)
        return whole


def _row_ends(shape: tuple[int, ...], lanes: int) -> Array | None:
    """The elements that rows of lanes leave over; None where they leave none."""
    rows = shape[0] if len(shape) > 1 else 1
    size = math.prod(shape) // rows if rows else 0
    left = size % lanes if lanes and (rows % lanes or len(shape) == 1) else 0
    if not left:
        return None
    return np.broadcast_to(np.arange(size) >= size - left, (rows, size))


def _as_float8(quotient: Array, dtype: np.dtype[Any]) -> Array:
    """Saturated: numbers beyond the type, infinity too, give its largest."""
    import ml_dtypes

    limits: Any = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
    wide = quotient.astype(np.float32)
    return np.clip(wide, np.float32(limits.min), np.float32(limits.max)).astype(dtype)


def _quotient(x: Array, scale: Array, shift: Array | None, rounding: Rounding) -> Array:
    """The numbers to be rounded."""
    one = scale.dtype.type(1)
    by = None if rounding.divided is Divided.DIVIDE else np.asarray(one / scale)
    if rounding.shifted is Shifted.FUSED and by is not None and shift is not None:
        exact = x.astype(np.float64) * by.astype(np.float64) + shift.astype(np.float64)
        return exact.astype(x.dtype)
    quotient = np.asarray(x / scale if by is None else x * by)
    if shift is None or rounding.shifted is Shifted.AFTER:
        return quotient
    return np.asarray(quotient + shift.astype(x.dtype))


def _rounded(numbers: Array, ties: Ties) -> Array:
    if ties is Ties.HALF:
        half = numbers.dtype.type(0.5)
        whole: Array = np.trunc(numbers + np.copysign(half, numbers)).astype(np.float64)
        return whole
    wide = numbers.astype(np.float64)
    if ties is Ties.EVEN:
        return np.rint(wide)
    return np.asarray(np.trunc(wide + np.copysign(0.5, wide)))


def _whole(quotient: Array, shift: Array | None, dtype: np.dtype[Any], rounding: Rounding) -> Array:
    """Rounded, shifted and saturated."""
    low, high = ENDS[dtype.name]
    low = -high if rounding.symmetric else low
    rounded = _rounded(quotient, rounding.ties)
    nan = np.isnan(rounded)
    if rounding.huge is Huge.LOWEST:
        narrow = np.where(np.abs(rounded) < 2.0**31, rounded, -(2.0**31)).astype(np.int32)
        # int32 wraps around
        whole = narrow if shift is None else narrow + shift.astype(np.int32)
        return np.clip(whole, low, high).astype(dtype)
    shifted = rounded if shift is None else rounded + shift.astype(np.float64)
    filler = {NotANumber.LOWEST: low, NotANumber.HIGHEST: high, NotANumber.ZERO: 0}[rounding.nan]
    return np.where(nan, np.clip(filler, low, high), np.clip(shifted, low, high)).astype(dtype)


def _by_range(x: Array, scale: Array, shift: Array | None, dtype: np.dtype[Any]) -> Array:
    """OpenVINO's FakeQuantize: the numbers that the two ends of the type stand for, in `levels`.

    With zero points of 0 it leaves the shift out for int8, and for 16 bits of scale 1 all of it, so
    that a conversion is left, which cuts off and wraps around.
    """
    low, high = (scale.dtype.type(end) for end in ENDS[dtype.name])
    zero = np.zeros((), x.dtype) if shift is None else shift.astype(x.dtype)
    least, most = (low - zero) * scale, (high - zero) * scale
    steps = (high - low) / (most - least)
    if not zero.any() and dtype.name == "int8":
        return _whole(np.asarray(x * steps), None, dtype, Rounding())
    if not zero.any() and dtype.itemsize == 2 and np.all(scale == 1):
        cut = np.where(np.abs(x) < 2.0**31, x, np.float32(-(2.0**31)))
        return cut.astype(np.int64).astype(dtype)
    places = np.rint(x * steps + -least * steps)
    level = np.where(np.isnan(places), 0, np.clip(places, 0, high - low))
    return np.asarray(level + low).astype(dtype)
