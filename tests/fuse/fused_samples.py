"""Shared fused functions, operands and comparisons of the tests of calls."""

import numpy as np

import zerostride as zs

RNG = np.random.default_rng(11)
X = RNG.uniform(0.5, 3, (6, 8)).astype(np.float32)
Y = RNG.uniform(0.5, 3, (8,)).astype(np.float32)


@zs.fuse
def scaled(x, y, *, gain=1.0):
    """Scales and shifts."""
    return (x * y + 1) * gain


@zs.fuse
def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def same(result, wanted):
    """Equal in shape, dtype and values."""
    wanted = np.asarray(wanted)
    assert (np.shape(result), result.dtype) == (wanted.shape, wanted.dtype)
    np.testing.assert_array_equal(result, wanted)
