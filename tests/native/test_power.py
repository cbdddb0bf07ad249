"""Powers of rows by one element, compared with powers by rows."""

from __future__ import annotations

import numpy as np
import pytest

import zerostride as zs

SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 3e38, -7.0, 0.5]
ONES = [2.0, 3.0, -2.0, -3.0, 0.5, -0.5, 1e9, -0.0, 1.0, -1.0, 150.0, np.inf, -np.inf, np.nan]


@pytest.mark.skipif(
    zs.backend() == "reference",
    reason="NumPy's power of one element differs from its vector power, without AVX-512",
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("special", [False, True])
def test_one_element_has_the_result_of_its_row(dtype: type, special: bool) -> None:
    row = np.random.default_rng(1).uniform(0.1, 9, 1000).astype(dtype)
    row[::3] *= -1
    if special:
        row[300 : 300 + len(SPECIAL)] = SPECIAL
    for one in np.array(ONES, dtype):
        many = np.full_like(row, one)
        np.testing.assert_array_equal(zs.pow(row, one), zs.pow(row, many), err_msg=str(one))
        np.testing.assert_array_equal(zs.pow(one, row), zs.pow(many, row), err_msg=str(one))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_special_powers_match_numpy(dtype: type) -> None:
    x, y = (grid.ravel() for grid in np.meshgrid(*[np.array(SPECIAL + ONES, dtype)] * 2))
    with np.errstate(all="ignore"):
        expected = np.power(x.astype(np.longdouble), y).astype(dtype)
    got = zs.pow(x, y)
    np.testing.assert_array_max_ulp(got[np.isfinite(expected)], expected[np.isfinite(expected)], 2)
    odd = ~np.isfinite(expected) | (expected == 0)
    np.testing.assert_array_equal(got[odd], expected[odd])
    zeros = expected == 0
    np.testing.assert_array_equal(np.signbit(got[zeros]), np.signbit(expected[zeros]))
