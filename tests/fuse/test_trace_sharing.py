"""Equal reductions are computed once, with or without kept axes."""

import numpy as np
import pytest

import zerostride as zs
from zerostride.fusion.trace.graph import Reduce

X = np.random.default_rng(3).random((5, 7, 3))


def folds(function, *operands):
    """How many reductions a function computes."""
    return sum(isinstance(node, Reduce) for node in zs.fuse(function).graph(*operands).nodes)


SHARED = [
    (lambda x: x.mean(0) / (1 + x.std(0)), 2),
    (lambda x: x.std(0) - x.mean(0), 2),
    (lambda x: (x - x.mean(-1, keepdims=True)).sum() + x.mean(-1).sum() + x.sum(2).max(), 4),
    (lambda x: (x.max((0, 2), keepdims=True), x.max((2, 0)), np.amax(x, (0, -1))), 1),
    (lambda x: (x.sum(), x.sum(keepdims=True), x.mean(), x.var()), 2),
    (lambda x: (x.argmax(1), x.argmax(1, keepdims=True)), 1),
    (lambda x: (x.sum(1), x.sum(2), x.prod(1), x.sum(1, dtype="f4")), 4),
]


@pytest.mark.parametrize(("function", "count"), SHARED)
@pytest.mark.parametrize("dtype", ["float64", "float32", "int32", "bool"])
def test_equal_folds_are_shared(function, count, dtype):
    x = (X * 5).astype(dtype)
    if dtype == "float64":  # sums of integers are not those that their means are made of
        assert folds(function, x) == count
    result, wanted = zs.fuse(function)(x), function(x)
    pairs = zip(result, wanted, strict=True) if isinstance(wanted, tuple) else [(result, wanted)]
    for one, other in pairs:
        assert (one.shape, one.dtype) == (np.shape(other), other.dtype)
        np.testing.assert_allclose(one, other, rtol=1e-5)


def test_shared_value_may_be_changed_in_place():
    def function(x):
        row = x.sum(0, keepdims=True)
        again = x.sum(0)
        again += 1
        row *= 2
        return row, again

    for result, wanted in zip(zs.fuse(function)(X), function(X), strict=True):
        np.testing.assert_allclose(result, wanted, rtol=1e-12)


def test_powers_of_ml_dtypes_floats_have_numpys_dtype():
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    x = np.array([0.5, 3, 7], bfloat16)
    for power in (2.0, 2, 3, 0.5, 1.0, -1.0, 4, np.float32(2)):
        result = zs.fuse(lambda x, p=power: x**p)(x)
        wanted = np.power(x, power)  # as `**` from NumPy 2.3 on; before, it squares x as it is
        assert result.dtype == wanted.dtype
        np.testing.assert_allclose(result.astype("f8"), wanted.astype("f8"), rtol=1e-2)
