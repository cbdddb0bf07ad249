"""Whether a peer computed what NumPy computes: asked before it is timed."""

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
        found = unequal(prepared.result(call()), task.expected)
        if found:
            return found
    return None


def unequal(got: Array, expected: Array) -> str | None:
    """How two arrays differ in shape, dtype or values; None if they do not."""
    if got.shape != expected.shape or got.dtype != expected.dtype:
        return f"{got.dtype} {got.shape} instead of {expected.dtype} {expected.shape}"
    if np.array_equal(got, expected):
        return None
    tolerance = _TOLERANCE.get(expected.dtype.name, 0.0)
    wide = np.float64 if tolerance else expected.dtype
    close = np.isclose(got.astype(wide), expected.astype(wide), tolerance, 0.0, equal_nan=True)
    if close.all():
        return None
    first = tuple(int(k) for k in np.argwhere(~close)[0])
    return f"{(~close).sum():,} values differ; at {first} {got[first]} instead of {expected[first]}"
