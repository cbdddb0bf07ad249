"""Functions of floats in plain Python are NumPy's, infinity and NaN included."""

from __future__ import annotations

import itertools
import math
import random

import numpy as np
import pytest

from zerostride.ops import OPS
from zerostride.ops.floats import FLOATS, in_single

RNG = random.Random(0)
NUMBERS = [0.0, 1.0, -1.0, 0.75, -2.5, math.inf, -math.inf, math.nan, 1e300, -1e300, 1e-300]
NUMBERS += [*map(float, range(2, 25)), *(RNG.uniform(-9, 9) for _ in range(12))]


def test_every_op_of_two_floats_in_numpy_has_a_row() -> None:
    numpys = {
        name
        for name in OPS
        if any(types.startswith("dd->") for types in getattr(getattr(np, name, None), "types", ()))
    }
    assert numpys == set(FLOATS)


@pytest.mark.parametrize("name", FLOATS)
def test_function_is_numpys(name: str) -> None:
    for x, y in itertools.product(NUMBERS, NUMBERS):
        with np.errstate(all="ignore"):
            expected = getattr(np, name)(x, y).item()
        number = FLOATS[name](x, y)
        assert type(number) is type(expected), (x, y)
        # NumPy's own vector code has another last digit on some processors.
        assert number == pytest.approx(expected, rel=1e-14, abs=0.0, nan_ok=True), (x, y)


@pytest.mark.parametrize(
    "name", sorted(FLOATS.keys() - {"hypot", "atan2", "logaddexp", "logaddexp2"})
)
def test_whole_numbers_give_the_same_digits(name: str) -> None:
    for x, y in itertools.product(range(1, 15), range(1, 15)):
        assert FLOATS[name](float(x), float(y)) == getattr(np, name)(float(x), float(y)), (x, y)


def test_rounding_to_32_bits_is_numpys() -> None:
    numbers = [RNG.uniform(-1, 1) * 10 ** RNG.uniform(-50, 45) for _ in range(5000)]
    with np.errstate(all="ignore"):
        for number in (*numbers, *NUMBERS, 2**60 + 1):
            assert in_single(number) == pytest.approx(
                float(np.float32(number)), rel=0, abs=0, nan_ok=True
            )
