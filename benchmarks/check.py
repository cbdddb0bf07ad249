"""Compares a library's result with NumPy's before it is timed."""

from __future__ import annotations

import numpy as np

from .peers import Prepared
from .rows import Array, Task

#: Relative errors that are no mistake: elementary functions differ by some units in the last place,
#: and those of 16 bits are rounded once or twice.
_TOLERANCE = {"float16": 2e-3, "bfloat16": 1.6e-2, "float32": 2e-6, "float64": 1e-14}
#: What no row's result consists of.
_POISON = 77


def difference(prepared: Prepared, task: Task) -> str | None:
    """What is wrong with the result of each of the calls, None if nothing is.

    The output is spoilt before, so that a call that does nothing is found, and operands that were
    written over by a call in place are put back.
    """
    for call in prepared.calls:
        task.put_back()
        if task.out is not None and not task.row.in_place:
            task.out[...] = not task.expected.flat[0] if task.out.dtype == bool else _POISON
        found = unequal(prepared.result(call()), task.expected, task.row.tolerance)
        if found:
            return found
    return None


def unequal(got: Array, expected: Array, tolerance: float | None = None) -> str | None:
    """How two arrays differ in shape, dtype or values; None if they do not.

    A tolerance that is given holds of the result's root mean square, too: what was subtracted from
    a larger number has its error.
    """
    if got.shape != expected.shape or got.dtype != expected.dtype:
        return f"{got.dtype} {got.shape} instead of {expected.dtype} {expected.shape}"
    if np.array_equal(got, expected):
        return None
    known = _TOLERANCE.get(expected.dtype.name, 0.0)
    wide = np.float64 if known else expected.dtype
    right = expected.astype(wide)
    if tolerance is None:
        tolerance, near_0 = known, 0.0
    else:
        near_0 = tolerance * float(np.sqrt(np.mean(np.square(right))))
    close = np.isclose(got.astype(wide), right, tolerance, near_0, equal_nan=True)
    if close.all():
        return None
    first = tuple(int(k) for k in np.argwhere(~close)[0])
    return f"{(~close).sum():,} values differ; at {first} {got[first]} instead of {expected[first]}"
