"""Composed NumPy functions, compared with NumPy."""

import warnings

import numpy as np
import pytest

import zerostride as zs

RNG = np.random.default_rng(11)
X = RNG.standard_normal((6, 8))
HOLES = np.where(RNG.random((6, 8)) < 0.3, np.nan, X)
HOLES[2] = np.nan
W = RNG.random(8)


def same(function, *operands):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # NumPy's of means of nothing
        wanted = function(*operands)
    result = zs.fuse(function)(*operands)
    assert (np.shape(result), result.dtype) == (np.shape(wanted), wanted.dtype)
    rtol = 2e-6 if wanted.dtype == np.float32 else 1e-12
    np.testing.assert_allclose(result, wanted, rtol=rtol, atol=rtol)


FUNCTIONS = {
    "nansum": lambda x: np.nansum(x, axis=1),
    "nanprod": lambda x: np.nanprod(x, 0, keepdims=True),
    "nanmax": lambda x: np.nanmax(x, axis=1),
    "nanmin": lambda x: np.nanmin(x, axis=-1, keepdims=True),
    "nanmin of all": lambda x: np.nanmin(x),
    "nanmean": lambda x: np.nanmean(x, axis=1),
    "nanmean of all": lambda x: np.nanmean(x),
    "average": lambda x: np.average(x, axis=0),
    "average of a row": lambda x: np.average(x, axis=1, weights=(W * 9 + 1).astype(x.dtype)),
    "average by values": lambda x: np.average(x, axis=-1, weights=abs(x) + 1),
    "select": lambda x: np.select([x < -1, x < 1], [x * 2, 0.5], default=7),
    "polyval": lambda x: np.polyval([1, 2.5, -3], x),
    "fix": lambda x: np.fix(x / 2),
    "sinc": lambda x: np.sinc(np.where(x > 1, 0, x)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", ["float64", "float32", "int32"])
def test_composed_numpy_functions_match_numpy(name, dtype):
    operand = X if dtype == "int32" else HOLES
    same(
        FUNCTIONS[name], (operand * 3).astype(dtype) if dtype == "int32" else operand.astype(dtype)
    )


def test_weights_of_the_wrong_shape_are_refused():
    with pytest.raises(zs.TraceError, match="weights are of the array's shape"):
        zs.fuse(lambda x: np.average(x, weights=W))(X)


#: What people write: the fused function has NumPy's values, shapes and dtypes.
REAL = {
    "batch norm": lambda x: (x - x.mean(0, keepdims=True)) / np.sqrt(x.var(0) + 1e-5),
    "minimum and maximum": lambda x: (x - x.min(0)) / (x.max(0) - x.min(0)),
    "unit rows": lambda x: x / np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), 1e-12),
    "log softmax": lambda x: (
        x
        - x.max(1, keepdims=True)
        - np.log(np.exp(x - x.max(1, keepdims=True)).sum(1, keepdims=True))
    ),
    "causal mask": lambda x: np.where(np.tri(6, 8, dtype=bool), x, -np.inf),
    "cross entropy of logits": lambda x: (np.maximum(x, 0) - x + np.log1p(np.exp(-abs(x)))).mean(),
    "huber": lambda x: np.where(abs(x) < 1, 0.5 * x**2, abs(x) - 0.5).mean(),
    "pairs": lambda x: np.sqrt(((x[:, None, :] - x[None]) ** 2).sum(-1)),
    "skewness": lambda x: ((x - x.mean()) ** 3).mean() / x.std() ** 3,
    "standard error": lambda x: x.std(0, ddof=1) / len(x) ** 0.5,
    "geometric mean": lambda x: np.exp(np.mean(np.log(abs(x) + 1), axis=1)),
    "brightness": lambda x: np.clip(np.round(abs(x) * 90 + 3), 0, 255).astype(np.uint8),
    "gelu": lambda x: 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x**3))),
    "angle": lambda x: np.mod(np.degrees(np.arctan2(x, x[::1] + 2)) + 360, 360),
    "one hot": lambda x: (np.argmax(x, 1)[:, None] == np.arange(8)).astype("f4"),
    "accuracy": lambda x: (x.argmax(1) == np.arange(6)).mean(),
    "lennard-jones": lambda x: 4 * ((1 / (x * x + 1)) ** 12 - (1 / (x * x + 1)) ** 6),
    "in place": lambda x: _rectified(x),
}


def _rectified(x):
    y = x.copy()
    y *= y > 0
    return y


@pytest.mark.parametrize("name", REAL)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_common_expressions_match_numpy(name, dtype):
    same(REAL[name], X.astype(dtype))
