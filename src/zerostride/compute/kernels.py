"""The function that computes each op: NumPy's, or one of `special` or of this module.

A function here takes operands that are already laid out (views of one shape, or Python numbers,
which stay weak) and returns a new array. NumPy's ufuncs are used unchanged. `VARIANTS` holds what
engines compute instead; the op table says which engine and dtype uses which variant.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..ops import OPS
from .special import SPECIAL, by_formula, cast, clip, join, relu

Kernel = Callable[..., Any]
Array = NDArray[Any]


def prelu(x: Any, slope: Any) -> Any:
    """x where it is not negative, slope times x where it is.

    Only the negative elements are multiplied. A number that the dtype cannot hold is refused.
    """
    result = np.empty(np.shape(x) or np.shape(slope), join(x, slope))
    result[...] = x
    factor = np.asarray(slope, result.dtype)
    negative = np.less(result, np.zeros((), result.dtype))  # a zero of a timedelta's own unit
    return np.multiply(result, factor, out=result, where=negative)


# Variants: what engines compute instead. Their operands are arrays of one dtype.


def _checked(kernel: Kernel) -> Kernel:
    """Refuses an integer division by zero: NumPy gives 0; engines refuse, crash or differ."""

    def checked(x: Array, y: Array) -> Any:
        if not np.all(y):
            raise ZeroDivisionError("the engine has no answer for integers divided by zero")
        return kernel(x, y)

    return checked


def _within(dtype: type[np.generic], kernel: Kernel, *, back: bool) -> Kernel:
    """Converts the operands to `dtype` first; with `back` converts the result back as C does."""

    def within(x: Array, *more: Any) -> Any:
        converted = [y.astype(dtype) if isinstance(y, np.ndarray) else y for y in more]
        result = kernel(x.astype(dtype), *converted)
        return to_integer(np.asarray(result), x.dtype) if back else result

    return within


def to_integer(values: Array, dtype: np.dtype[Any]) -> Any:
    """Truncates floats as x86 does: NaN and values out of range become the smallest integer.

    >>> to_integer(np.array([2.7, 3e9]), np.dtype("int32")).tolist()
    [2, -2147483648]
    """
    info = np.iinfo(dtype)
    fits = (values >= float(info.min)) & (values < float(info.max) + (dtype.itemsize < 8))
    return np.where(fits, values, 0).astype(dtype) + np.where(fits, 0, info.min).astype(dtype)


def _in_16_bits(kernel: Kernel) -> Kernel:
    """Makes results of 32,768 and more 0: bytes are packed by way of signed 16-bit numbers."""

    def packed(*values: Array) -> Any:
        result = kernel(*values)
        return np.where(result > np.iinfo(np.int16).max, 0, result)

    return packed


def _subtract_by_negation(x: Array, y: Array) -> Any:
    """x + -y; the negation of the smallest int8 is the largest."""
    return x + np.minimum(-y, np.iinfo(np.int8).max)


def _truncated_divide(x: Array, y: Array) -> Any:
    # The remainder of truncated division has the sign of x; without it the division is exact.
    return np.floor_divide(x - np.fmod(x, y), y)


def _integer_pow(x: Array, y: Array) -> Any:
    """Wraps around; a negative power is 0 unless the base is 1 or -1."""
    positive = np.power(x, np.maximum(y, 0))
    odd = np.where(y % 2 == 1, x, x * x)
    return np.where(y >= 0, positive, np.where(np.abs(x) == 1, odd, 0)).astype(x.dtype)


def _pow_six_bits(x: Array, y: Array) -> Any:
    """Six rounds of squaring: uses the power's low six bits and ignores its sign."""
    return np.power(x, y & np.asarray(63, y.dtype))


def _pow_by_float64(x: Array, y: Array) -> Any:
    """Float64's power, converted to the base's dtype."""
    return to_integer(_rounded_power(x, y, np.float64), x.dtype)


def _pow_of_zero_is_zero(x: Array, y: Array) -> Any:
    """As `_pow_by_float64`, but a negative power of zero is 0, not the smallest integer."""
    return np.where((x == 0) & (y < 0), 0, _pow_by_float64(x, y)).astype(x.dtype)


def _pow_by_float32(x: Array, y: Array) -> Any:
    """Float32's power of float32s, converted to the base's dtype."""
    single = x.astype(np.float32), y.astype(np.float32)
    return to_integer(_rounded_power(*single, np.float32), x.dtype)


def _rounded_power(x: Array, y: Array, dtype: type[np.floating[Any]]) -> Any:
    # Computed wider and rounded once: C's pow is within half an ulp, NumPy's may not be.
    return np.power(x.astype(np.longdouble), y.astype(np.longdouble)).astype(dtype)


def _first_dtype(kernel: Kernel) -> Kernel:
    """The second operand converted to the first one's dtype."""
    return lambda x, y: kernel(x, y.astype(x.dtype))


def _small_float_divide(x: Array, y: Array) -> Any:
    """True division of integers: up to 16 bits in float32, wider in float64."""
    dtype = np.float32 if x.dtype.itemsize <= 2 else np.float64
    return np.divide(x.astype(dtype), y.astype(dtype))


def _bits(kernel: Kernel) -> Kernel:
    """Floats compared as if their bits were integers."""

    def compare(x: Array, y: Array) -> Any:
        integer = f"i{x.dtype.itemsize}"
        # A view needs contiguous elements; a broadcast operand's are not.
        return kernel(x.copy().view(integer), y.copy().view(integer))

    return compare


def _shift(kernel: Kernel, count: Callable[[Array, int], Array]) -> Kernel:
    """A shift; `count` maps its shift count into the width of the dtype."""

    def shift(x: Array, y: Array) -> Any:
        return kernel(x, count(y, 8 * x.dtype.itemsize).astype(x.dtype))

    return shift


def _clamp(count: Array, width: int) -> Array:
    return np.clip(count, 0, width - 1)


def _wrap(count: Array, width: int) -> Array:
    return count % width


def _quotient_rest(rounding: Kernel) -> Kernel:
    """x - rounding(x / y) * y, with the quotient's rounding error."""
    return lambda x, y: x - rounding(x / y) * y


def _floor_of_float64_quotient(x: Array, y: Array) -> Any:
    return np.floor(x / y.astype(np.float64)).astype(x.dtype)


def _atan2_of_float32(x: Array, y: Array) -> Any:
    """The angle of integers as float32s, rounded to float32, as a float64."""
    angle = np.arctan2(*(values.astype(np.float32).astype(np.float64) for values in (x, y)))
    return angle.astype(np.float32).astype(np.float64)


def _larger_or_second(x: Array, y: Array) -> Array:
    return np.where(x > y, x, y)


def _smaller_or_second(x: Array, y: Array) -> Array:
    return np.where(x < y, x, y)


def _instead(kernel: Kernel, value: float, where: Callable[[Array], Any]) -> Kernel:
    """`kernel`, but `value` where `where` holds for the first operand."""

    def instead(x: Array, *more: Any) -> Any:
        result = np.asarray(kernel(x, *more))
        return np.where(where(x), np.asarray(value, result.dtype), result)

    return instead


def _heaviside_of_nan_is_zero(x: Array, y: Array) -> Array:
    return np.where(x == 0, y, (x > 0).astype(y.dtype))


def _clip_of_nan_is_low(x: Array, low: Array, high: Array) -> Any:
    return np.minimum(_larger_or_second(x, low), high)


def _round_half_away(x: Array) -> Any:
    return np.trunc(x + np.copysign(np.asarray(0.5, x.dtype), x))


_FLOOR_REST = _quotient_rest(np.floor)
_TRUNC_REST = _quotient_rest(np.trunc)

#: For truth values NumPy computes these in int8, JAX in int32.
_ON_BOOLS: Mapping[str, Kernel] = {
    "floor_divide": _checked(np.floor_divide),
    "remainder": _checked(np.remainder),
    "fmod": _checked(np.fmod),
    "pow": np.power,
    "left_shift": np.left_shift,
    "right_shift": np.right_shift,
}

#: The function of each op without an engine, by the op's name.
KERNELS: Mapping[str, Kernel] = MappingProxyType(
    {
        **{op.name: by_formula(op.name) for op in OPS.values() if op.formula is not None},
        **{op.name: getattr(np, op.numpy) for op in OPS.values() if op.numpy},
        **SPECIAL,
        "clip": clip,
        # Takes the dtype as its second argument.
        "cast": cast,
        "prelu": prelu,
    }
)

#: Variants that many ops have are named by the op and one of these endings.
_FORMS: Mapping[str, Callable[[Kernel], Kernel]] = {
    "_in_float32": lambda kernel: _within(np.float32, kernel, back=False),
    "_by_float32": lambda kernel: _within(np.float32, kernel, back=True),
    "_in_int32": lambda kernel: _within(np.int32, kernel, back=False),
    "_in_int64": lambda kernel: _within(np.int64, kernel, back=False),
    "_nan_at_zero": lambda kernel: _instead(kernel, np.nan, lambda x: x == 0),
    # For activations whose limit is a number (or -0) and whose formula gives NaN there.
    "_nan_at_infinity": lambda kernel: _instead(kernel, np.nan, np.isneginf),
}
#: Formulas that give NaN at both infinities.
_AT_BOTH = frozenset({"softsign", "sqrt", "erf"})


def _made_for_ops() -> dict[str, Kernel]:
    """The variants whose names are an op's and a form's."""
    named = {
        word for op in OPS.values() for row in op.variants.values() for word in set(row.values())
    }
    variants = {}
    for op in OPS.values():
        for ending, form in _FORMS.items():
            if op.name + ending in named:
                variants[op.name + ending] = form(KERNELS[op.name])
        name = f"{op.name}_nan_at_infinity"
        if op.name in _AT_BOTH:
            variants[name] = _instead(KERNELS[op.name], np.nan, np.isinf)
    return variants


#: The functions that `Op.variants` names.
VARIANTS: Mapping[str, Kernel] = MappingProxyType(
    {
        **_made_for_ops(),
        "sign_of_nan_is_zero": _instead(np.sign, 0, np.isnan),
        "relu_of_nan_is_zero": _instead(relu, 0, np.isnan),
        "exp_of_nan_is_infinity": _instead(np.exp, np.inf, np.isnan),
        "heaviside_of_nan_is_zero": _heaviside_of_nan_is_zero,
        "clip_of_nan_is_low": _clip_of_nan_is_low,
        "round_half_away": _round_half_away,
        "square_of_difference": lambda x, y: np.square(x - y),
        "truncated_divide": _checked(_truncated_divide),
        "divide_in_small_float": _small_float_divide,
        "checked_floor_divide": _checked(np.floor_divide),
        "floor_of_quotient": lambda x, y: np.floor(x / y),
        "floor_of_float64_quotient": _floor_of_float64_quotient,
        "checked_remainder": _checked(np.remainder),
        "remainder_of_quotient": _FLOOR_REST,
        "remainder_by_float32": _within(np.float32, _FLOOR_REST, back=True),
        "nearest_remainder": _quotient_rest(np.round),
        "multiply_in_16_bits": _in_16_bits(np.multiply),
        "pow_in_16_bits": _in_16_bits(_pow_by_float32),
        "subtract_by_negation": _subtract_by_negation,
        "prelu_of_zeros": lambda x, slope: np.where(x > 0, x, x * slope),
        "not_less": lambda x, y: ~np.less(x, y),
        "not_less_equal": lambda x, y: ~np.less_equal(x, y),
        **{
            f"{name}_in_int32": _within(np.int32, kernel, back=False)
            for name, kernel in _ON_BOOLS.items()
        },
        "checked_fmod": _checked(np.fmod),
        "fmod_of_quotient": _TRUNC_REST,
        "fmod_by_float32": _within(np.float32, _TRUNC_REST, back=True),
        "integer_pow": _integer_pow,
        "pow_six_bits": _pow_six_bits,
        "pow_by_float64": _pow_by_float64,
        "pow_by_float32": _pow_by_float32,
        "pow_of_zero_is_zero": _pow_of_zero_is_zero,
        "pow_of_first_dtype": _first_dtype(np.power),
        "larger_or_second": _larger_or_second,
        "smaller_or_second": _smaller_or_second,
        "atan2_of_float32": _atan2_of_float32,
        "less_of_bits": _bits(np.less),
        "equal_of_bits": _bits(np.equal),
        "clamped_left_shift": _shift(np.left_shift, _clamp),
        "clamped_right_shift": _shift(np.right_shift, _clamp),
        "wrapped_left_shift": _shift(np.left_shift, _wrap),
        "wrapped_right_shift": _shift(np.right_shift, _wrap),
    }
)
