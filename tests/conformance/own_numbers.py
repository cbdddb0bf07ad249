"""Calls of every op with a number among the operands, and their expected results.

A Python float beside bfloat16 is bfloat16 for PyTorch and JAX; so are these calls to be on their
arrays, whatever way they go. The answer is that of the number as an array without axes.
"""

from __future__ import annotations

import numpy as np

import zerostride as zs
from zerostride.ops import OPS

#: Numbers of every kind; 0.3 is rounded.
NUMBERS = (0.5, 0.3, 1, True)
#: What is computed with: both signs, a NaN, an infinity, a zero.
VALUES = (-2.5, -0.3, 0.0, 0.7, 3.0, float("inf"), float("nan"))
#: Ops whose results are truth values.
TRUTHS = frozenset(
    {
        *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"),
        *("logical_and", "logical_or", "logical_xor"),
    }
)


def patterns():
    """For each op with more than one operand, where its arrays (x, c) and its number (n) stand."""
    for op in OPS.values():
        if op.name == "where":
            yield from ((op.name, one) for one in ("cxn", "cnx"))
        elif op.name == "clip":
            yield from ((op.name, one) for one in ("xnx", "xxn", "xnn"))
        elif op.parameters:
            yield op.name, "x" + "n" * len(op.parameters)
        elif op.tensors == 2:
            yield from ((op.name, one) for one in ("xn", "nx"))


def expected(dtype, number):
    """By call ("add xn") the result of NumPy's arrays; what has no meaning for them is left out."""
    x, c, n = np.array(VALUES, dtype), np.arange(len(VALUES)) % 2 == 0, np.asarray(number, dtype)
    table = {}
    for name, pattern in patterns():
        try:
            result = getattr(zs, name)(*({"x": x, "c": c, "n": n}[one] for one in pattern))
        except TypeError:  # the bits of a float
            assert name.startswith("bitwise")
            continue
        table[f"{name} {pattern}"] = np.asarray(result)
    return table


def every(x, c, n, calls):
    """The results of calls, in their order, as a tuple."""
    operands = {"x": x, "c": c, "n": n}
    split = [call.split() for call in calls]
    return tuple(getattr(zs, name)(*(operands[one] for one in pattern)) for name, pattern in split)


def check(results, wanted, to_numpy, own_dtype):
    """Every result has the bits and the dtype that are wanted of it.

    Args:
        results: for each of `wanted`, in its order.
        wanted: as :func:`expected`.
        to_numpy: of a result, the array of its numbers and the dtype as its library says it.
        own_dtype: that the library has for an array and the number.
    """
    assert len(results) == len(wanted)
    for (call, right), result in zip(wanted.items(), results, strict=True):
        array, dtype = to_numpy(result)
        assert str(dtype).endswith("bool" if call.split()[0] in TRUTHS else own_dtype), call
        assert array.dtype == right.dtype, call
        assert same(array, right), (call, array, right)


def same(array, right):
    """Equal bits, but for those of a NaN."""
    nan = np.isnan(right.astype(np.float64))
    return bool(
        (np.isnan(array.astype(np.float64)) == nan).all()
        and array[~nan].tobytes() == right[~nan].tobytes()
    )
