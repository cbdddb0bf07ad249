"""The results of a library's own functions for the aligned operands of a call.

Where arrays are computed by their library, its function's values are what a user of it expects,
whatever the reference has: what is judged then is the dtypes, the layout and the function chosen.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from zerostride import plan
from zerostride.compute.native import promote
from zerostride.compute.semantics import WEAK
from zerostride.compute.special import HALVES
from zerostride.ops import OPS

from ..native.cases import CallArrays, dtype_of
from .libraries import Library

Array = NDArray[Any]


def computed_in(arrays: CallArrays) -> tuple[str, ...] | None:
    """The dtypes that the operands of a call of an op become, and the result's before `out`'s.

    Returns:
        Their names, or None: there is no one such list.

    >>> computed_in(Made("add", [], [np.ones(2, "int8"), 0.5], np.ones(2), {}))
    ('float64', 'float64', 'float64')
    """
    op, asked = OPS[arrays.op], arrays.options.get("dtype")
    left_out = list(op.parameters.values())[len(arrays.operands) - op.tensors :]
    kinds = [
        type(one).__name__ if type(one) in WEAK else np.asarray(one).dtype.name
        for one in (*arrays.operands, *left_out)
    ]
    try:
        return promote(op, tuple(kinds), None if asked is None else np.dtype(asked).name)
    except TypeError:  # of which the reference makes objects
        return None


def laid_out(arrays: CallArrays) -> list[Array]:
    """The operands in their aligned shapes; memory is in the order in which the library has it."""
    rule = {name: value for name, value in arrays.options.items() if name != "dtype"}
    laid = plan(*map(np.shape, arrays.operands), **rule)
    pairs = zip(arrays.operands, laid.aligned, strict=True)
    return [np.array(operand).reshape(aligned) for operand, aligned in pairs]


def own_values(library: Library, arrays: CallArrays, shape: tuple[int, ...]) -> Array | None:
    """The result by the library's own function, or None: it is none whose values are another."""
    names = computed_in(arrays)
    if library.function is None or arrays.op not in dict(library.own) or names is None:
        return None
    with np.errstate(all="ignore"):
        result = np.asarray(library.function(arrays.op, laid_out(arrays), names, shape))
        result = result.astype(dtype_of(names[-1]))
        return result if arrays.out is None else result.astype(arrays.out.dtype)


def rounded_twice(arrays: CallArrays) -> Array | None:
    """The reference's result where float64 becomes 16-bit floats by way of float32, or None."""
    names, asked = computed_in(arrays), np.dtype(arrays.options.get("dtype", np.float64))
    if names is None:
        return None
    with np.errstate(all="ignore"):
        operands = [
            one.astype(np.float32) if asked.name in HALVES and _is_double(one) else one
            for one in arrays.operands
        ]
        result = np.asarray(
            CallArrays(arrays.op, [], operands, None, arrays.options).by_reference()
        )
        if arrays.out is None:
            return result
        if arrays.out.dtype.name in HALVES and _is_double(result):
            result = result.astype(np.float32)
        return result.astype(arrays.out.dtype)


def _is_double(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype == np.float64
