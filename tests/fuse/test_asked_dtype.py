"""`fuse(dtype=)`: the dtype of computation, with bools among the operands."""

import numpy as np
import pytest

import zerostride as zs

B = np.array([True, False, True])
X = np.array([0.5, 1.5, 2.5], np.float64)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "complex64"])
@pytest.mark.parametrize(
    "function",
    [
        lambda m: m * 2,
        lambda m: m + m,
        lambda m: m - m * 3,
        lambda m: m.sum(),
        lambda m: m.mean() * 2,
        lambda m: (m > 0) * m,
        lambda m: m**2,
        lambda m: np.square(m),
    ],
)
def test_bools_are_numbers_in_arithmetic(function, dtype):
    result = zs.fuse(function, dtype=dtype)(B)
    wanted = np.asarray(function(B.astype(dtype)))
    assert result.dtype == wanted.dtype
    np.testing.assert_array_equal(result, wanted)


def test_bools_stay_bools_in_logic_choices_and_comparisons():
    def function(x, m):
        return (
            ~m,
            m & (x > 1),
            np.where(m, x, 0),
            m.any(),
            np.maximum(m, m),
            m >= m,
            zs.clip(m, m, m),
        )

    result = zs.fuse(function, dtype="float32")(X, B)
    assert [one.dtype.name for one in result] == ["bool", "bool", "float32", *["bool"] * 4]
    assert result[0].tolist() == [False, True, False]
    assert np.count_nonzero(B) == zs.fuse(np.count_nonzero, dtype="float16")(B) == 2


def test_masked_mean_stays_in_the_dtype():
    @zs.fuse(dtype="float32")
    def masked_mean(x, mask):
        return zs.where(mask, x, 0).sum() / mask.sum()

    assert masked_mean(X, B).dtype == np.float32
    assert masked_mean(X, B) == 1.5


@pytest.mark.parametrize("dtype", ["str", "S3", object, bool, "datetime64[s]", "i4,f4"])
def test_non_numeric_dtype_is_refused_at_once(dtype):
    with pytest.raises(TypeError, match="dtype is one of numbers to compute in"):
        zs.fuse(lambda x: x, dtype=dtype)
