"""The reference of ops on one tensor that NumPy lacks: erf, sigmoid, activations, casts.

Dtypes: `relu` keeps its operand's. The others compute floats: an integer or truth value is computed
in the float that `numpy.exp` has for it (float16 for 8 bits, float32 for 16, else float64), and
parameters join by NumPy's promotion. Transcendental functions of up to 32 bits are computed in
float64 and rounded, so that they can be the oracle of faster ones; 16-bit floats are rounded to
float32 first, as by kernels that compute in float32. Arithmetic functions are computed as written,
in float32 for 16 bits. Complex numbers are refused.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..ops import OPS

Array = NDArray[Any]
Kernel = Callable[..., Any]
#: Types of Python numbers, which take the other operands' dtype.
_WEAK = (bool, int, float, complex)
#: How the names of custom float dtypes begin (bfloat16, float8_e4m3fn, ...).
_CUSTOM_FLOATS = ("bfloat", "float")
#: Floats of 16 bits: their values are computed, and held between ops, as float32.
HALVES = frozenset({"float16", "bfloat16"})
#: Dtypes that convert to a 16-bit float without rounding.
EXACT_IN_16_BITS = frozenset({"bool", "int8", "uint8"})


def working(dtype: str) -> str:
    """The dtype in which values of a dtype are computed.

    >>> working("bfloat16")
    'float32'
    """
    return "float32" if dtype in HALVES else dtype


def is_float(dtype: np.dtype[Any]) -> bool:
    """Whether a dtype holds real floats; dtypes that packages add (bfloat16) have no kind."""
    return dtype.kind == "f" or (dtype.kind == "V" and dtype.name.startswith(_CUSTOM_FLOATS))


def is_added_float(dtype: np.dtype[Any]) -> bool:
    """Whether a dtype of real floats comes from a package; NumPy's promotion barely covers these.

    >>> is_added_float(np.dtype("float16"))
    False
    """
    return dtype.isbuiltin == 2 and is_float(dtype)


def keeps_kind(source: Any, to: Any) -> bool:
    """Whether NumPy's `same_kind` lets one dtype become another. Complex numbers never become a
    package's floats: NumPy would drop their imaginary parts silently.

    >>> keeps_kind("complex64", "float32"), keeps_kind("float64", "float16")
    (False, True)
    """
    if source is to:
        return True
    if np.dtype(source).kind == "c" and is_added_float(np.dtype(to)):
        return False
    return np.can_cast(source, to, "same_kind")


def meet(*operands: Any) -> np.dtype[Any]:
    """The common dtype of operands, or of dtypes, where Python floats never widen a float.

    Parameters combine so with their operand, and Python's numbers with PyTorch's and JAX's floats.
    `numpy.result_type` does so for NumPy's dtypes only: bfloat16 and 0.5 give float64.
    """
    numbers = [value for value in operands if type(value) in _WEAK]
    common = _common_dtype(operands)
    if common is None or not is_float(common) or complex in map(type, numbers):
        return np.result_type(*([] if common is None else [common]), *numbers)
    return common


def join(*operands: Any) -> np.dtype[Any]:
    """The common dtype of operands, as in NumPy's ufuncs; numbers are weak (NEP 50).

    >>> join(np.zeros(3, np.float16), 0.5).name
    'float16'
    """
    common = _common_dtype(operands)
    if common is None or common.isbuiltin == 1:
        return meet(*operands)
    for value in operands:
        if type(value) in _WEAK and type(value) is not bool:  # bool widens no number
            common = np.multiply.resolve_dtypes((common, type(value), None))[-1]
    return common


#: NumPy's dtypes, in the order in which its ufuncs search for one that holds all operands.
_LOOPS = "?bBhHiIlLqQefdgFDG"


def _common_dtype(operands: Sequence[Any]) -> np.dtype[Any] | None:
    """The dtype that arrays, or dtypes, are promoted to; None for numbers alone.

    Raises:
        TypeError: no dtype holds them all.
    """
    dtypes = [
        value if isinstance(value, np.dtype) else value.dtype
        for value in operands
        if type(value) not in _WEAK
    ]
    try:
        return np.result_type(*dtypes) if dtypes else None
    except TypeError:  # no promotion between them, as for bfloat16 and int16
        for dtype in map(np.dtype, _LOOPS):
            if all(np.can_cast(operand_dtype, dtype) for operand_dtype in dtypes):
                return dtype
        raise


def _float_for(x: Any, *parameters: Any) -> np.dtype[Any]:
    """The float dtype of the result."""
    own = np.asarray(x).dtype
    own = own if is_float(own) else np.exp.resolve_dtypes((own, None))[1]
    dtype = meet(own, *parameters)
    if not is_float(dtype):
        raise TypeError(f"it is a function of real numbers, not of {dtype}")
    return dtype


def _computed(function: Kernel, *, wide: bool) -> Kernel:
    """`function` with this module's dtypes; `wide` computes up to float32 in float64."""

    def kernel(x: Any, *parameters: Any) -> Any:
        dtype = _float_for(x, *parameters)
        single = dtype.itemsize < 4
        inner = np.dtype(np.float64 if wide and dtype.itemsize < 8 else dtype)
        if single and not wide:
            inner = np.dtype(np.float32)
        # A parameter is rounded to the result's dtype before it is widened.
        values = [np.asarray(value).astype(dtype).astype(inner) for value in (x, *parameters)]
        result = np.asarray(function(*values))
        return (result.astype(np.float32) if single else result).astype(dtype)

    kernel.__doc__ = function.__doc__
    return kernel


# The error function.

#: Distance of the centres of Taylor's series: a power of two, so that c * c and 2 * c are exact.
_STEP = 0.125
#: From here on erfc is 0 in float64.
_END = 27.25
#: Terms of the series of erfcx about a centre, at most _STEP / 2 away.
_TERMS = 14
#: Terms of erf's series about 0, up to 1: the next one is below 1e-19.
_NEAR = tuple((-1.0) ** n / (math.factorial(n) * (2 * n + 1)) for n in range(19))


@functools.cache
def _erfcx_table() -> Array:
    """Taylor's coefficients of erfcx(x) = exp(x * x) erfc(x) about 0, _STEP, ..., _END.

    erfcx' = 2 x erfcx - 2 / sqrt(pi) gives each coefficient from the two before it.
    """
    table = []
    for k in range(int(_END / _STEP) + 1):
        c = k * _STEP
        first = math.erfc(c) * math.exp(c * c) if c <= 26 else _erfcx_of_far(c)
        row = [first, 2 * c * first - 2 / math.sqrt(math.pi)]
        for n in range(1, _TERMS - 1):
            row.append(2 * (c * row[n] + row[n - 1]) / (n + 1))
        table.append(row)
    return np.array(table)


def _erfcx_of_far(c: float) -> float:
    """erfcx by its asymptotic series, where erfc would be denormal. 8 terms: 1e-19 at 26."""
    total = term = 1.0
    for n in range(1, 8):
        term *= -(2 * n - 1) / (2 * c * c)
        total += term
    return total / (c * math.sqrt(math.pi))


def _erfcx(x: Array) -> Array:
    """exp(x * x) erfc(x) of float64s from 0 to _END."""
    table = _erfcx_table()
    place = np.rint(x / _STEP).astype(np.intp)
    t = x - place * _STEP
    series = table[place, _TERMS - 1]
    for n in range(_TERMS - 2, -1, -1):
        series = series * t + table[place, n]
    return np.asarray(series)


def _bell(x: Array, scale: float) -> Array:
    """exp(-scale x * x), scale a power of two; x * x is split in two, the first part exact."""
    high = np.rint(x * 16) / 16
    return np.asarray(np.exp(-high * high * scale) * np.exp(-(x - high) * (x + high) * scale))


def _erfc_of_large(x: Array) -> Array:
    """erfc of float64s from 0.5 on."""
    x = np.minimum(x, _END)
    return _erfcx(x) * _bell(x, 1.0)


def _erf_of_small(x: Array) -> Array:
    """erf of float64s from -1 to 1."""
    square = x * x
    series = np.full_like(square, _NEAR[-1])
    for coefficient in _NEAR[-2::-1]:
        series = series * square + coefficient
    return np.asarray(series * x * (2 / math.sqrt(math.pi)))


def _double_only(x: Array) -> None:
    if x.dtype != np.float64:
        raise TypeError(f"the error function is not known in {x.dtype}")


def _erf(x: Array) -> Array:
    """The error function, within 2 units in the last place of float64."""
    _double_only(x)
    size = np.abs(x)
    small = _erf_of_small(np.where(size <= 1, x, 0))
    large = np.copysign(1 - _erfc_of_large(np.where(size > 1, size, 1)), x)
    return np.where(size <= 1, small, np.where(np.isnan(x), x, large))


# Sigmoid and functions of it.


def _sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)), without overflow on either side."""
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + small), small / (1 + small))


def _softplus(x: Array) -> Array:
    """log(1 + exp(x)), without overflow."""
    return np.asarray(np.log1p(np.exp(-np.abs(x))) + np.maximum(x, 0))


def _mish(x: Array) -> Array:
    # tanh(log(1 + e)) is a quotient of polynomials in e; this one is also exact for small e.
    e = np.exp(-np.abs(x))
    positive = (1 + 2 * e) / (1 + 2 * e + 2 * e * e)
    negative = (e * e + 2 * e) / (e * e + 2 * e + 2)
    # x * e of minus infinity is -inf * 0.
    return np.where(x >= 0, x * positive, np.where(np.isneginf(x), -0.0, x * negative))


def _gelu(x: Array) -> Array:
    """x times (1 + erf(x / sqrt(2))) / 2, without loss of digits where x is far below 0."""
    _double_only(x)
    size = np.minimum(np.abs(np.where(np.isnan(x), 0, x)), _END * math.sqrt(2))
    rest = _erfcx(np.minimum(size * math.sqrt(0.5), _END)) * _bell(size, 0.5) / 2
    factor = np.where(x < 0, rest, 1 - rest)
    return np.where(np.isneginf(x), -0.0, x * factor)


class NumPy:
    """NumPy's functions as formulas (`ops.formulas`) name them."""

    sigmoid = staticmethod(_sigmoid)

    def __getattr__(self, name: str) -> Kernel:
        function: Kernel = getattr(np, name)
        return function

    def cast_like(self, x: Any, like: Any) -> Any:
        """An array in another's dtype."""
        return np.asarray(x).astype(like.dtype)

    def is_real_float(self, x: Any) -> bool:
        """Whether an array is of real floats."""
        return is_float(x.dtype)

    def is_signed(self, x: Any) -> bool:
        """Whether an array is of signed integers."""
        return bool(x.dtype.kind == "i")

    def bits(self, x: Any) -> int:
        """The width of an array's dtype."""
        return 8 * int(x.dtype.itemsize)


def formula(name: str) -> Kernel:
    """An op by its formula, in NumPy's functions."""
    function = OPS[name].formula
    assert function is not None
    return functools.partial(function, NumPy())


def relu(x: Any) -> Any:
    """x where it is above 0, else 0 (never -0); NaN stays. Keeps the dtype."""
    values = np.asarray(x)
    if values.dtype.kind == "c":
        raise TypeError("complex numbers have no order")
    zero = np.zeros((), values.dtype)  # a timedelta's has its own unit
    return np.where(values <= zero, zero, values)


_TRANSCENDENTAL: Mapping[str, Kernel] = {
    "erf": _erf,
    "gelu": _gelu,
    "mish": _mish,
    "sigmoid": _sigmoid,
    "softplus": _softplus,
    **{name: formula(name) for name in ("celu", "elu", "gelu_tanh", "rsqrt", "selu", "swish")},
}
#: Ops of one tensor whose formulas are computed as written.
_ARITHMETIC = (
    *("hard_sigmoid", "hard_swish", "leaky_relu", "reciprocal", "shrink", "softsign"),
    "thresholded_relu",
)
#: By the names of the op table.
SPECIAL: Mapping[str, Kernel] = MappingProxyType(
    {
        "relu": relu,
        **{name: _computed(function, wide=True) for name, function in _TRANSCENDENTAL.items()},
        **{name: _computed(formula(name), wide=False) for name in _ARITHMETIC},
    }
)


def by_formula(name: str) -> Kernel:
    """An op of several tensors by its formula; 16-bit floats in float32, rounded once."""
    function = formula(name)

    def kernel(*operands: Any) -> Any:
        dtype = join(*operands)
        short = is_float(dtype) and dtype.itemsize < 4
        arrays = [_in_dtype(value, dtype) for value in operands]
        if short:
            arrays = [np.asarray(array).astype(np.float32) for array in arrays]
        result = np.asarray(function(*arrays))
        return result.astype(dtype) if short and result.dtype == np.float32 else result

    return kernel


def _in_dtype(value: Any, dtype: np.dtype[Any]) -> Any:
    """An operand in the common dtype; a Python integer beyond it stays as it is.

    The formula may convert to floats first, where the integer has a value.
    """
    try:
        return np.asarray(value, dtype)
    except OverflowError:
        return value


# Other dtypes, and limits.


def cast(x: Any, dtype: Any) -> Any:
    """x in another dtype; every value has a defined result.

    A float that becomes an integer is truncated and saturates; NaN gives 0. Integers wrap around.
    Values other than 0 are true.

    Raises:
        TypeError: complex numbers to real ones, or dtypes that are not numbers.
    """
    values, target = np.asarray(x), np.dtype(dtype)
    for checked in (values.dtype, target):
        if checked.kind not in "biufc" and not is_float(checked):
            raise TypeError(f"{checked} is no dtype of numbers")
    if values.dtype.kind == "c" and target.kind != "c":
        raise TypeError(f"complex numbers have no value in {target}; cast their real part")
    if target.kind not in "iu" or not is_float(values.dtype):
        return values.astype(target)
    if values.dtype.kind != "f":
        values = values.astype(np.float32)
    info = np.iinfo(target)
    # The limits are powers of two: exact in each float dtype that reaches them (float16 does not).
    wide = values.astype(np.float64) if values.dtype.itemsize < 8 else values
    above = wide >= math.ldexp(1.0, info.bits - (target.kind == "i"))
    below = wide < float(info.min)
    inside = np.where(above | below | np.isnan(wide), 0, wide).astype(target)
    return np.where(above, target.type(info.max), np.where(below, target.type(info.min), inside))


def clip(x: Any, low: Any, high: Any) -> Any:
    """numpy.clip in the operands' common dtype; numpy.clip itself lacks bfloat16."""
    values = (x, low, high)
    dtype = join(*values)
    if any(type(value) not in _WEAK and value.dtype.isbuiltin == 2 for value in values):
        arrays = (np.asarray(value).astype(dtype) for value in values)
        return np.asarray(np.clip(*arrays)).astype(dtype)
    if type(x) not in _WEAK and not {type(low), type(high)} <= set(_WEAK):
        # NumPy drops a limit out of x's range, even where the other limit's dtype reaches it.
        x = x.astype(dtype)
    return np.asarray(np.clip(x, low, high))
