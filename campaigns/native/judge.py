"""Compares two backends on a call: the result, its dtype, type, layout, and memory beside it.

Exact ops must agree bit for bit (NaN with NaN whatever its bits); `maximum` and its like may differ
in the sign of a zero. The others may be `BOUND` units in the last place from the reference; where
they are further away, the same op in more digits says whether the reference is the one that errs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zerostride.compute.kernels import KERNELS
from zerostride.engines.planning import plan

from .cases import CallArrays, DrawnCall, Shape, dtype_of

#: Ops that are rounded once, or choose: no other answer than the reference's is right.
_EXACT = MappingProxyType(
    {
        "arithmetic": "add subtract multiply divide squared_difference negative positive abs sign "
        "square reciprocal sqrt copysign nextafter heaviside",
        "division": "floor_divide remainder fmod",
        "choice": "where maximum minimum fmax fmin clip prelu relu leaky_relu thresholded_relu",
        "comparison": "equal not_equal less less_equal greater greater_equal isnan isinf isfinite",
        "logic and bits": "logical_and logical_or logical_xor logical_not bitwise_and bitwise_or "
        "bitwise_xor bitwise_invert bitwise_left_shift bitwise_right_shift",
        "rounding": "floor ceil round trunc cast",
        # A few roundings, in a stated order.
        "lines": "softsign hard_sigmoid hard_swish shrink",
    }
)
#: Results of `_BOUNDED`, in units in the last place; 16-bit results by 1.
BOUND = 4.0
#: By op and bytes, where it is another. The argument of an exponential is rounded before, and that
#: error counts as many times as the argument is large, up to 745; where the exponential is
#: subnormal it has few digits, which `swish` multiplies by x.
BOUNDS = MappingProxyType({("gelu", 8): 64.0, ("gelu_tanh", 8): 2500.0, ("swish", 8): 1e5})
#: Ops whose result is bounded by `BOUND` or `BOUNDS`.
_BOUNDED = MappingProxyType(
    {
        "functions": "exp expm1 log log1p log2 log10 pow sin cos tan asin acos atan atan2 sinh "
        "cosh tanh asinh acosh atanh erf sigmoid rsqrt hypot logaddexp logaddexp2 elu celu selu "
        "gelu gelu_tanh softplus mish swish"
    }
)
#: Family of every op of the table; "functions" are those that are not exact.
FAMILIES: Mapping[str, str] = MappingProxyType(
    {op: family for family, names in (_EXACT | _BOUNDED).items() for op in names.split()}
)
#: Either zero will do. (ml_dtypes' sign of bfloat16 -0 is -0, NumPy's own +0.)
_EITHER_ZERO = frozenset({"maximum", "minimum", "fmax", "fmin", "clip"})
#: A NaN gives way to a number. NumPy's fmax(x, y) of a signalling one is NaN, at times.
_IGNORE_NAN = frozenset({"fmax", "fmin"})
#: Sums that may cancel: what counts is the last place of the larger operand.
_SCALED = frozenset({"logaddexp", "logaddexp2"})
#: What an op is computed in to see who errs.
_WIDER = MappingProxyType(
    {"float16": "float64", "bfloat16": "float64", "float32": "float64", "float64": "longdouble"}
)


#: Refusals of Python integers beyond 64 bits: objects to NumPy, no numbers to ml_dtypes.
_BEYOND_INT64 = ("expected number, got int", "has no callable", "not of object", "from dtype('O')")
#: Refusals of the reference that do not count as differences. The engine leaves out a limit of clip
#: that no value of x can exceed, and so its dtype: the other two may have a dtype in common.
_TOLERATED = (*_BEYOND_INT64, "clip of uint32 and int and bfloat16")


@dataclass(frozen=True, slots=True)
class CallJudged:
    """The result of a call.

    Attributes:
        difference: what is not as the reference has it; "" if all is.
        refused: whether both refused it.
        ulp: the largest distance of a result.
    """

    difference: str = ""
    refused: bool = False
    ulp: float = 0.0


Function = Callable[..., Any]


def judge(
    call: DrawnCall,
    function: Function,
    *,
    layout: bool = True,
    reference: Callable[[CallArrays], Any] = CallArrays.by_reference,
) -> CallJudged:
    """Runs a call by a public function and by the reference, and compares.

    Args:
        call: what to run.
        function: the public function, or what stands for it.
        layout: whether the results' strides are compared, too.
        reference: what gives the right answer.
    """
    ours, theirs = call.make(), call.make()
    result, error = outcome(lambda: ours.by(function))
    expected, refusal = outcome(lambda: reference(theirs))
    if error is not None or refusal is not None:
        return _refusals(error, refusal, ours, theirs)
    difference = _around(call, ours, theirs, result, expected, layout=layout)
    if difference:
        return CallJudged(difference)
    with np.errstate(all="ignore"):  # the judge's own comparisons
        verdict = _values(call, np.asarray(result), np.asarray(expected))
    if not verdict.difference and not _memory_agrees(ours, theirs):
        return replace(verdict, difference="memory that is no part of the result has changed")
    return verdict


def outcome(run: Callable[[], Any]) -> tuple[Any, Exception | None]:
    """The value or the exception of a call."""
    try:
        return run(), None
    except Exception as error:  # noqa: BLE001 - what is raised is what is compared
        return None, error


def _refusals(
    error: Exception | None, refusal: Exception | None, ours: CallArrays, theirs: CallArrays
) -> CallJudged:
    for given in (error, refusal):
        if isinstance(given, Warning):
            return CallJudged(f"a warning is given: {given!r}")
    if any(text in str(refusal) for text in _TOLERATED):
        return CallJudged(refused=True)
    if type(error) is not type(refusal):
        return CallJudged(f"raised {error!r}, the reference {refusal!r}")
    if not _memory_agrees(ours, theirs):
        return CallJudged("refused, but memory has changed")
    return CallJudged(refused=True)


def _around(
    call: DrawnCall,
    ours: CallArrays,
    theirs: CallArrays,
    result: Any,
    expected: Any,
    *,
    layout: bool,
) -> str:
    """A difference besides values, or ""."""
    if type(result) is not type(expected):
        return f"a {type(result).__name__}, the reference's is a {type(expected).__name__}"
    if (result is ours.out) != (expected is theirs.out):
        return "the result is not out"
    if not isinstance(expected, (np.ndarray, np.generic)):  # numbers too large for any dtype
        return "" if result == expected else f"{result!r}, the reference's {expected!r}"
    if result.dtype != expected.dtype:
        return f"dtype {result.dtype}, the reference's {expected.dtype}"
    if result.shape != expected.shape:
        return f"shape {result.shape}, the reference's {expected.shape}"
    if layout and call.out is None and result.size and _has_layout(call):
        for n, mine, other in zip(result.shape, result.strides, expected.strides, strict=True):
            if n > 1 and mine != other:
                return f"strides {result.strides}, the reference's {expected.strides}"
    return ""


def _has_layout(call: DrawnCall) -> bool:
    """Whether the layout of the reference's result is one that NumPy chose."""
    if "engine" in call.options:  # whose dtypes may have been converted to on the way
        return False
    if call.op == "where":
        return "dtype" not in call.options
    return isinstance(KERNELS[call.op], np.ufunc)


def _memory_agrees(ours: CallArrays, theirs: CallArrays) -> bool:
    if ours.out is not None and theirs.out is not None:
        # The values were compared; what is left must be equal to the bit.
        ours.out[...] = theirs.out
    pairs = zip(ours.memories, theirs.memories, strict=True)
    return all(mine.tobytes() == other.tobytes() for mine, other in pairs)


# Values


def _values(call: DrawnCall, result: NDArray[Any], expected: NDArray[Any]) -> CallJudged:
    shape = result.shape
    result, expected = result.reshape(-1), expected.reshape(-1)
    if result.tobytes() == expected.tobytes():  # of one axis: before NumPy 2.4, 32 at most
        return CallJudged()
    wrong = ~_same(call.op, result, expected)
    if call.op in _IGNORE_NAN and _has_signalling_nan(call):
        wrong &= expected == expected
    if call.op == "pow" and wrong.any():
        wrong &= ~_square_roots(call, shape)
    if not wrong.any():
        return CallJudged()
    dtype = _computed_in(call, result.dtype)
    if FAMILIES[call.op] != "functions" or dtype.name not in _WIDER:
        return CallJudged(_first(result, expected, wrong))
    result, expected = result.astype(dtype), expected.astype(dtype)
    bound = BOUNDS.get((call.op, dtype.itemsize), BOUND) if dtype.itemsize > 2 else 1.0
    scale = _scale(call, dtype, shape) if call.op in _SCALED else None
    apart = np.where(wrong, _distance(result, expected, scale), 0.0)
    if apart.max() > bound:
        exact = _in_more_digits(call, dtype, shape)
        if exact is not None:
            apart = np.minimum(apart, _distance(result, exact, scale))
    wrong &= ~(apart <= bound)
    if wrong.any():
        text = f"{_first(result, expected, wrong)}: {apart[wrong].max():g} ulp apart"
        return CallJudged(text, ulp=float(apart[wrong].max()))
    return CallJudged(ulp=float(apart.max()))


def _same(op: str, result: NDArray[Any], expected: NDArray[Any]) -> NDArray[np.bool_]:
    """Equal to the bit, but for the bits of NaN, and the sign of zero where either will do."""
    same = result == expected
    if result.dtype.kind in "iubO":
        return np.asarray(same)
    either = op in _EITHER_ZERO or (op == "sign" and result.dtype.name == "bfloat16")
    if not either and result.dtype.kind != "c":
        same &= np.signbit(result) == np.signbit(expected)
    return np.asarray(same | ((result != result) & (expected != expected)))


def _computed_in(call: DrawnCall, dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype that a result was rounded to; it may have been converted to `out`'s."""
    if call.out is None:
        return dtype
    own = np.asarray(replace(call, out=None).make().by_reference()).dtype
    return own if own.name in _WIDER and own.itemsize < dtype.itemsize else dtype


def _laid_out(call: DrawnCall, shape: Shape) -> list[NDArray[Any]]:
    """Each operand as the elements of the result see it."""
    arrays = call.make()
    laid = plan(*map(np.shape, arrays.operands), **_rule(call))
    views = [laid.view(k, np.asarray(operand)) for k, operand in enumerate(arrays.operands)]
    return [np.broadcast_to(view, shape).reshape(-1) for view in views]


def _square_roots(call: DrawnCall, shape: Shape) -> NDArray[np.bool_]:
    """Marks powers of 0.5, which NumPy takes as square roots: NaN of -inf, -0 of -0."""
    x, power = _laid_out(call, shape)
    with np.errstate(all="ignore"):
        return np.asarray((power == 0.5) & ((x == -np.inf) | (x == 0)))


def _scale(call: DrawnCall, dtype: np.dtype[Any], shape: Shape) -> NDArray[Any]:
    """The largest operand of each element."""
    with np.errstate(all="ignore"):
        return np.asarray(np.fmax(*(np.abs(x.astype(dtype)) for x in _laid_out(call, shape))))


def _rule(call: DrawnCall) -> dict[str, Any]:
    options = {name: value for name, value in call.options.items() if name != "dtype"}
    return {**options, "op": call.op} if "engine" in options else options


def _distance(
    result: NDArray[Any], expected: NDArray[Any], scale: NDArray[Any] | None
) -> NDArray[np.float64]:
    """In units in the last place; of an operand where that is larger."""
    apart = ulps(result, expected)
    if scale is None:
        return apart
    with np.errstate(all="ignore"):
        large = np.fmax(np.abs(expected), scale)
        of_scale = np.abs(result - expected) / np.spacing(large)
        return np.where(np.isfinite(large), np.minimum(apart, of_scale.astype(np.float64)), apart)


def _has_signalling_nan(call: DrawnCall) -> bool:
    for operand in call.make().operands:
        array = np.ascontiguousarray(operand)
        if array.dtype.name in _WIDER:
            quiet = (
                1 << {"float16": 9, "bfloat16": 6, "float32": 22, "float64": 51}[array.dtype.name]
            )
            bits = array.view(f"u{array.dtype.itemsize}")
            with np.errstate(all="ignore"):
                if ((array != array) & (bits & np.array(quiet, bits.dtype) == 0)).any():
                    return True
    return False


def ulps(result: NDArray[Any], expected: NDArray[Any]) -> NDArray[np.float64]:
    """The count of the dtype's numbers in between; 0 for two NaNs, infinity for one.

    >>> ulps(np.array([1, 0, np.nan], "f4"), np.array([1 + 2**-23, -0.0, 1], "f4")).tolist()
    [1.0, 0.0, inf]
    """
    places = _place(result) - _place(expected)
    with np.errstate(all="ignore"):
        nan, other = result != result, expected != expected
    apart = np.abs(places)
    return np.where(nan | other, np.where(nan & other, 0.0, np.inf), apart)


def _place(values: NDArray[Any]) -> NDArray[np.longdouble]:
    """The number of each among the numbers of its dtype, counted from 0."""
    bits = np.ascontiguousarray(values).view(f"i{values.dtype.itemsize}").astype(np.int64)
    least = -(2 ** (8 * values.dtype.itemsize - 1))
    # A long double, so that the difference of two does not overflow.
    return np.where(bits < 0, least - bits, bits).astype(np.longdouble)


def _in_more_digits(call: DrawnCall, dtype: np.dtype[Any], shape: Shape) -> NDArray[Any] | None:
    """The reference's result from operands with more digits, rounded, or None."""
    arrays = call.make()
    wide = dtype_of(_WIDER[dtype.name])
    with np.errstate(all="ignore"):
        operands = [
            operand
            if isinstance(operand, (int, float, complex))
            else _widened(operand, dtype, wide)
            for operand in arrays.operands
        ]
        options = {name: value for name, value in arrays.options.items() if name != "dtype"}
        try:
            result = CallArrays(arrays.op, [], operands, None, options).by_reference()
        except TypeError:
            return None
        return np.broadcast_to(np.asarray(result), shape).astype(dtype).reshape(-1)


def _widened(operand: Any, dtype: np.dtype[Any], wide: np.dtype[Any]) -> Any:
    array = np.asarray(operand)
    # As the engine reads it: first what it computes in, then more digits.
    inner = np.dtype(np.float32) if dtype.itemsize == 2 else dtype
    return array.astype(inner).astype(wide)


def _first(result: NDArray[Any], expected: NDArray[Any], wrong: NDArray[np.bool_]) -> str:
    k = int(np.argmax(wrong))
    count = int(wrong.sum())
    return f"element {k}: {result[k]!r}, the reference's {expected[k]!r} ({count} differ)"
