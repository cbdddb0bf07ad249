"""Random fused functions of DataArrays: they match xarray's results by name, or are refused.

All sizes are equal, so that no wrong name shows in a shape.
"""

from __future__ import annotations

import random

import numpy as np
import pytest

pytest.importorskip("xarray", reason="its names are what is tested")

import xarray as xr

import zerostride as zs

pytestmark = pytest.mark.conformance

NAMES, SIZE = ("t", "y", "x"), 3
COMBINED = {
    "sum": lambda a, b: a + b,
    "product": lambda a, b: a * b,
    "most": lambda a, b: np.maximum(a, b),
}


REDUCTIONS = (None, ("sum", None), ("max", 0), ("mean", -1), ("min", 1))


def drawn(numbers, values):
    """An array of some dimensions in any order, or one without names."""
    dims = numbers.sample(NAMES, numbers.randint(0, 3))
    data = values.standard_normal((SIZE,) * len(dims))
    return data[(0,) * (data.ndim - 1)] if numbers.random() < 0.2 else xr.DataArray(data, dims=dims)


def reduced(value, how, axis):
    """A reduction that keeps its axis where axes have places, and by name where they have names."""
    if axis is None:
        return getattr(value, how)()
    if not -value.ndim <= axis < value.ndim:
        return value
    if isinstance(value, xr.DataArray):
        return getattr(value, how)(value.dims[axis])
    return getattr(value, how)(axis, keepdims=True)


def program(numbers, named):
    """A function of three arrays. An axis that is kept has a place, and by name it is gone: there
    are no such reductions beside arrays without names, which go by places."""
    steps = [
        (
            numbers.randrange(3),
            numbers.choice(list(COMBINED.values())),
            numbers.choice(REDUCTIONS if all(named) else REDUCTIONS[:2]),
        )
        for _ in range(3)
    ]
    first = numbers.randrange(3)

    def function(*operands):
        value = operands[first]
        for k, combine, reduction in steps:
            other = operands[k]
            if reduction is not None and named[k]:
                other = reduced(other, *reduction)
            value = combine(value, other)
        return value

    return function


def test_names_match_xarray_or_the_call_is_refused():
    numbers, values = random.Random(5), np.random.default_rng(5)
    equal = refused = 0
    for _ in range(400):
        operands = [drawn(numbers, values) for _ in range(3)]
        function = program(numbers, [isinstance(one, xr.DataArray) for one in operands])
        try:
            wanted = function(*operands)
        except ValueError:  # an array of more axes than that beside it has names
            continue
        if not isinstance(wanted, xr.DataArray):
            continue
        try:
            result = zs.fuse(function)(*operands)
        except (zs.BroadcastError, ValueError):
            refused += 1
            continue
        # Results are of all dimensions together.
        xr.testing.assert_allclose(result, wanted.broadcast_like(result).transpose(*result.dims))
        equal += 1
    assert equal > 100, (equal, refused)
