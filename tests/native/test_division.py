"""Rows divided by one number, compared with rows divided by rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import zerostride as zs

DTYPES = [np.float32, np.float64]
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 2.0**-149, 1e-310, 3e38, 1e308]


def divisors(dtype: type) -> np.ndarray:
    """Positive ones, mostly: over the range that is quick, and around its ends."""
    quick, rng = (24 if dtype is np.float32 else 100), np.random.default_rng(2)
    array = np.ldexp(rng.uniform(1, 2, 40), rng.integers(-quick - 2, quick + 2, 40)).astype(dtype)
    ends = np.array([2.0**-quick, 1, 3, 255, 2.0**quick], dtype)
    around = [np.nextafter(ends, dtype(to)) for to in (0, np.inf)]
    return np.concatenate([array, ends, *around, -array[:3], np.array(SPECIAL, dtype)])


def dividends(dtype: type) -> np.ndarray:
    """All exponents, and those where being quick ends; zeros and what is no number among them."""
    rng, info = np.random.default_rng(3), np.finfo(dtype)
    quick = 100 if dtype is np.float32 else 900
    exponents = [
        rng.integers(info.minexp - info.nmant, info.maxexp, 20000),
        *(rng.integers(end - 2, end + 2, 2000) for end in (-quick, quick)),
    ]
    x = np.concatenate([np.ldexp(rng.uniform(1, 2, e.size), e) for e in exponents]).astype(dtype)
    x[::2] *= -1
    x[::101] = 0
    x[50::101] = -0.0  # among numbers that are quick: its sign has to stay
    x[-1000 : -1000 + len(SPECIAL)] = SPECIAL
    return x


def divided(x: np.ndarray, d: np.generic) -> Any:
    return zs.divide(x, d)


FUSED = zs.fuse(lambda x, d: x / d)


def in_a_program(x: np.ndarray, d: np.generic) -> Any:
    """The interpreter's; ZEROSTRIDE_JIT=eager makes it the compiled tier's."""
    return FUSED(x, np.array([d]))


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("divide", [divided, in_a_program])
def test_quotients_match_the_processors(divide: Callable[..., Any], dtype: type) -> None:
    with np.errstate(all="ignore"):
        x = dividends(dtype)
        for rows in (x, x[:1000], np.abs(x[20000:])):
            for d in divisors(dtype):
                expected, quotients = rows / d, divide(rows, d)
                bits = np.dtype(f"u{dtype().itemsize}")
                same = (quotients.view(bits) == expected.view(bits)) | (
                    np.isnan(quotients) & np.isnan(expected)
                )
                where = np.flatnonzero(~same)
                assert same.all(), (d, rows[where[:3]], quotients[where[:3]], expected[where[:3]])
