"""The reference backend: NumPy over a Plan's views. It is the oracle of the tests, and slow.

Every other way of computing is compared with this one, so it is simple: lay the operands out by the
plan, call the function that the op table names, return the result as NumPy would.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.plan import Plan
from ..errors import BroadcastError, Reason
from ..ops import Op, find_op
from .foreign import NotPlain, dispatch, has_own_arithmetic, is_foreign
from .kernels import Kernel
from .outputs import as_target
from .semantics import WEAK, select
from .special import is_added_float, keeps_kind

#: NumPy 2.4 on x86 writes wrong values into an `out` whose elements are not contiguous.
_OUT_IN_ROWS = (np.isnan, np.isinf, np.isfinite, np.negative)


def compute(
    op: Op | str, plan: Plan, arrays: Sequence[Any], out: Any = None, dtype: Any = None
) -> Any:
    """The result of an op on operands laid out by a plan; under an engine's plan, that engine's.

    No floating-point warning is given, whatever `numpy.errstate` says: infinity and NaN are
    results, and the native backend has no such flags to read.

    Args:
        op: a row of the op table, or a name for it.
        plan: of the operands' shapes.
        arrays: the operands: arrays, lists, or Python numbers, which promote as in NumPy.
        out: an array (or a tuple of one) of the plan's shape, or of one that NumPy broadcasts that
            to, which receives the result. It may overlap the operands, but not itself.
        dtype: what to compute in, as for NumPy's ufuncs.

    Returns:
        `out`, or a new array of the plan's shape; a NumPy scalar where that has rank 0.

    Raises:
        BroadcastError: `out` or an operand has another shape than the plan's, or the engine whose
            plan it is does not take the operands' dtypes.
        TypeError: the op has no meaning for the dtypes, or its result does not fit `out`.
        ValueError: `out` is read-only, or two of its elements share memory.

    >>> from zerostride import plan
    >>> compute("add", plan((2, 2), (2,), rule="pdpd", axis=0), [[[1, 2], [3, 4]], [10, 20]])
    array([[11, 12],
           [23, 24]])
    """
    row = op if isinstance(op, Op) else find_op(op)
    operands = [as_operand(array, k) for k, array in enumerate(arrays)]
    _check_count(row, plan, operands)
    target = as_target(out, plan.shape, plan)
    with np.errstate(all="ignore"):  # an engine's conversions, too
        kernel, operands, asked = select(row, plan, operands, dtype)
    values = [
        value if type(value) in WEAK else plan.view(k, value) for k, value in enumerate(operands)
    ]
    try:
        with np.errstate(all="ignore"):
            if _drops_parts(values, target, asked):
                result = _kept(kernel, values, target, asked)
            elif target is not None and kernel in _OUT_IN_ROWS:
                result = _call(functools.partial(kernel, dtype=asked), values, target)
            elif isinstance(kernel, np.ufunc):
                result = kernel(*values, out=target, dtype=asked)
            else:
                result = _call(kernel, values, target)
    except TypeError as error:
        raise refusal(row.name, values, error) from error
    return result if target is not None else _as_result(result, plan)


def as_operand(value: Any, k: int = 0) -> Any:
    """An operand as a base array, or untouched if it is a Python number.

    Raises:
        BroadcastError: a list whose rows differ in length.
        TypeError: a masked array, or one with units: the mask or the units would be lost.
    """
    if type(value) is np.ndarray or type(value) in WEAK:
        return value
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError(f"operand {k} is a masked array; pass its data, or fill it first")
    if has_own_arithmetic(value):
        raise TypeError(
            f"operand {k} is a {type(value).__name__}, whose arithmetic is its own, as that of "
            "units; pass np.asarray(x) to compute with its numbers"
        )
    try:
        if isinstance(value, list | tuple) and value and is_foreign(value[0]):
            return _of_parts(value, k)
        return np.asarray(value)
    except ValueError as error:
        raise BroadcastError(
            f"operand {k} is not an array: {error}", reason=Reason.BAD_EXTENT
        ) from None


def _of_parts(value: Sequence[Any], k: int) -> NDArray[Any]:
    """A list of another library's arrays as one array; they have to be plain data."""
    try:
        parts = [dispatch().data_of(part) if is_foreign(part) else part for part in value]
    except NotPlain as error:
        raise TypeError(
            f"operand {k} is a {type(value).__name__} that holds what {error.reason}; make it one "
            "array, by its library"
        ) from None
    return np.asarray(parts)


def shape_of(operand: Any) -> tuple[int, ...]:
    """An operand's shape; a Python number has rank 0."""
    return () if type(operand) in WEAK else operand.shape


def _check_count(op: Op, plan: Plan, operands: Sequence[Any]) -> None:
    for count, what in ((op.operands, op.name), (len(plan.operands), "the plan")):
        if len(operands) != count:
            raise BroadcastError(
                f"{len(operands)} operands given; {what} takes {count}",
                reason=Reason.OPERAND_COUNT,
                rule=plan.rule,
                shapes=plan.operands,
            )


def _drops_parts(values: Sequence[Any], target: Any, asked: Any) -> bool:
    """Whether NumPy might convert complex numbers to a package's floats by their real parts."""
    to = [np.dtype(asked)] if asked is not None else []
    to += [] if target is None else [target.dtype]
    return any(map(is_added_float, to)) and (
        any(map(_is_complex, to))
        or any(
            type(value) is complex or _is_complex(getattr(value, "dtype", None)) for value in values
        )
    )


def _is_complex(dtype: Any) -> bool:
    return getattr(dtype, "kind", "") == "c"


def _kept(kernel: Kernel, values: Sequence[Any], target: Any, asked: Any) -> Any:
    """Writes the result to `target`.

    Raises:
        TypeError: the result is complex, and the target is not.
    """
    if asked is not None and is_added_float(np.dtype(asked)):
        raise TypeError(f"complex numbers have no value in {asked}; cast their real part")
    options = {"dtype": asked} if isinstance(kernel, np.ufunc) else {}
    result = np.asarray(kernel(*values, **options))
    if not keeps_kind(result.dtype, target.dtype):
        raise TypeError(f"complex numbers have no value in {target.dtype}; cast their real part")
    np.copyto(target, result)
    return target


def _call(kernel: Kernel, values: Sequence[Any], target: NDArray[Any] | None) -> Any:
    """Calls a function that is not a ufunc, with a ufunc's `out`."""
    result = kernel(*values)
    if target is None:
        return result
    # The result is a new array, so the operands that `target` overlaps have been read.
    np.copyto(target, result, casting="same_kind")
    return target


def _as_result(result: Any, plan: Plan) -> Any:
    """The result in the plan's shape; a scalar at rank 0, as a ufunc's."""
    if np.shape(result) != plan.shape:  # Python numbers alone, under a rule that gives them axes
        result = np.full(plan.shape, result)
    return result[()] if isinstance(result, np.ndarray) and not result.shape else result


def refusal(op: str, values: Sequence[Any], error: TypeError) -> TypeError:
    """NumPy's refusal of operands, with the op and their dtypes."""
    dtypes = " and ".join(
        type(value).__name__ if type(value) in WEAK else str(value.dtype) for value in values
    )
    return TypeError(f"{op} of {dtypes}: {error}")


def unbroadcast(
    plan: Plan,
    grad: Any,
    k: int,
    total_of: Callable[[NDArray[Any], tuple[int, ...]], Any] | None = None,
) -> NDArray[Any]:
    """The adjoint of broadcasting operand `k`: `grad` summed to that operand's shape.

    For every x and g: the inner product of ``unbroadcast(plan, g, k)`` with x is that of g with x
    broadcast.

    Args:
        plan: the plan that the operand was broadcast by.
        grad: of the plan's shape.
        k: which operand, from 0.
        total_of: sums an array over some axes and keeps them, in a new array; NumPy if None.

    Returns:
        A new array of the operand's shape. Floats keep their dtype (16-bit ones are summed in
        32 bits); other dtypes become those of NumPy's sum.

    Raises:
        BroadcastError: `grad` has another shape, or there is no operand `k`.

    >>> from zerostride import plan
    >>> unbroadcast(plan((2, 3), (2, 1)), [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], 1)
    array([[ 6.],
           [15.]])
    """
    place = plan.operand_number(k)
    data = np.asarray(as_operand(grad))
    if data.shape != plan.shape:
        raise BroadcastError(
            f"grad has shape {data.shape}; the result, and so its gradient, has {plan.shape}",
            reason=Reason.EXTENT_MISMATCH,
            rule=plan.rule,
            shapes=plan.operands,
        )
    try:
        with np.errstate(all="ignore"):
            total = (total_of or summed)(data, plan.stretched[place])
    except ValueError as error:  # an empty sum whose other sizes have too large a product
        raise BroadcastError(
            f"the sum has more bytes than NumPy can count: {error}",
            reason=Reason.TOO_LARGE,
            rule=plan.rule,
            shapes=plan.operands,
        ) from None
    # Axes that the rule dropped have extent 1: putting them back moves nothing.
    return np.asarray(total).reshape(plan.operands[place])


def summed(data: NDArray[Any], axes: tuple[int, ...]) -> Any:
    """The sum over axes, which are kept, as a new array; 16-bit floats are summed in 32 bits."""
    inexact = data.dtype.kind in "fc" or data.dtype.name == "bfloat16"
    if not inexact or data.dtype.itemsize > 2:
        return data.sum(axis=axes, dtype=data.dtype if inexact else None, keepdims=True)
    return data.sum(axis=axes, dtype=np.float32, keepdims=True).astype(data.dtype)
