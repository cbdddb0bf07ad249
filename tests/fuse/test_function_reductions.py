"""Reductions in fused functions, and the public ones, compared with NumPy."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from fused_samples import RNG, X, Y, same, softmax

import zerostride as zs

# Reductions that feed the rest


def test_softmax_and_layer_norm_match_numpy():
    result = softmax(X)
    wide = np.exp(X.astype("f8") - X.max(-1, keepdims=True))
    np.testing.assert_allclose(result, wide / wide.sum(-1, keepdims=True), rtol=1e-6)

    @zs.fuse
    def norm(x, gamma, beta):
        centred = x - x.mean(-1, keepdims=True)
        return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * gamma + beta

    wide = X.astype("f8")
    wanted = (wide - wide.mean(-1, keepdims=True)) / np.sqrt(wide.var(-1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(norm(X, Y, Y), wanted * Y + Y, rtol=1e-5, atol=1e-6)


REDUCTIONS = ["sum", "prod", "mean", "min", "max", "any", "all", "argmin", "argmax"]


@pytest.mark.parametrize("dtype", ["float64", "float32", "int8", "uint16", "int64", "bool", "c16"])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_public_reductions_match_numpy(name, dtype):
    x = RNG.integers(0, 3, (3, 4, 5)).astype(dtype)
    x[1] = 0
    axes = [None, 0, -1] if name.startswith("arg") else [None, 0, -1, (0, 2), (), (-1, -3)]
    for axis in axes:
        for keepdims in (False, True):
            wanted = np.asarray(getattr(np, name)(x, axis=axis, keepdims=keepdims))
            result = np.asarray(getattr(zs, name)(x, axis=axis, keepdims=keepdims))
            assert (result.shape, result.dtype) == (wanted.shape, wanted.dtype)
            np.testing.assert_allclose(result, wanted, rtol=1e-6)


@pytest.mark.parametrize("name", ["min", "max", "argmin", "argmax", "sum", "any", "all"])
def test_reductions_of_nan_and_infinities_match_numpy(name):
    x = np.array([[1, np.nan, 3], [np.inf, -np.inf, 0], [-np.inf, 2, 1]], np.float32)
    with np.errstate(invalid="ignore"):
        for axis in (None, 0, 1):
            same(np.asarray(getattr(zs, name)(x, axis)), getattr(np, name)(x, axis))


def test_reductions_of_empty_arrays_match_numpy():
    x = np.empty((0, 3), np.float32)
    for name in ("sum", "prod", "any", "all"):
        for axis in (None, 0, 1):
            same(np.asarray(getattr(zs, name)(x, axis)), getattr(np, name)(x, axis))
    for name in ("min", "max", "argmin", "argmax"):
        with pytest.raises(ValueError, match=f"{name} of no elements"):
            getattr(zs, name)(x, 0)
        assert getattr(zs, name)(x, 1).shape == (0,)
    assert np.isnan(zs.mean(x))
    assert zs.logsumexp(x) == -np.inf
    assert zs.sum_of_squares(x) == 0


def test_logsumexp_is_right_for_infinities():
    inf = np.inf
    x = np.array([[1000.0, 1000], [-inf, -inf], [inf, 1], [inf, -inf], [np.nan, 1], [-1000, -1001]])
    wanted = [1000 + np.log(2), -inf, inf, inf, np.nan, np.logaddexp(-1000, -1001)]
    np.testing.assert_allclose(zs.logsumexp(x, 1), wanted)
    np.testing.assert_allclose(zs.logsumexp(x[5:], keepdims=True), [[wanted[5]]])
    ints = np.array([[100, -100, 127]], np.int8)
    np.testing.assert_allclose(zs.logsumexp(ints, -1), np.logaddexp.reduce([100.0, -100, 127]))
    with pytest.raises(TypeError, match="real numbers"):
        zs.logsumexp(np.array([1j]))


def test_sums_of_squares_do_not_wrap():
    same(zs.sum_of_squares(np.full(1000, 127, np.int8)), np.int64(127**2 * 1000))
    assert zs.sum_of_squares(np.full(3, 200, np.float16)) == np.float16(np.inf)
    assert zs.mean(zs.square(np.full(3, 200.0, np.float32)).astype("f2")) == 40000


def test_reductions_take_dtype_and_out():
    x = np.full((2, 3), 100, np.int8)
    same(zs.sum(x, dtype="int8"), np.sum(x, dtype="int8"))
    same(zs.sum(X, axis=[0], dtype=np.float64), np.sum(X.astype("f8"), 0))
    assert zs.mean(x, dtype="float32").dtype == np.float32
    out = np.empty(2, np.float64)
    assert zs.sum(x, 1, out=out) is out
    assert out.tolist() == [300, 300]
    line = np.arange(4.0)
    zs.sum(line[None], 0, out=line)
    same(line, np.arange(4.0))
    with pytest.raises(zs.BroadcastError, match="axis 2 of an array of 2 axes"):
        zs.sum(x, 2)
    assert zs.max(3) == 3
    assert zs.argmax(np.float64(3)) == 0


def test_variances_match_numpy():
    wide = RNG.standard_normal((5, 7)) + 1e6
    result = zs.fuse(lambda x: (x.var(0), x.std(1, ddof=1), np.var(x)))(wide)
    np.testing.assert_allclose(result[0], wide.var(0), rtol=1e-9)
    np.testing.assert_allclose(result[1], wide.std(1, ddof=1), rtol=1e-9)
    np.testing.assert_allclose(result[2], wide.var(), rtol=1e-9)


def test_a_sum_over_no_axes_does_not_round():
    x = np.array([2.859375, 1.21875], ml_dtypes.bfloat16)  # their mean has more than 8 bits
    result = zs.fuse(lambda a: a / zs.sum(zs.mean(a)))(x)
    mean = x.astype(np.float32).sum() / 2
    assert np.array_equal(result, (x.astype(np.float32) / mean).astype(ml_dtypes.bfloat16))


def test_unrepresentable_slope_is_refused_as_unfused():
    x = np.array([1, 2], np.uint32)
    for function in (
        zs.prelu,
        zs.fuse(zs.prelu),
        lambda a, k: zs.fuse(lambda b: zs.prelu(b, k))(a),
    ):
        with pytest.raises(OverflowError, match="-1 out of bounds for uint32"):
            function(x, -1)
