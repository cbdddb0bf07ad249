"""Exact reductions of an array's numbers, without rounding.

A float is an integer times a power of two, so sums and sums of squares are integers, products
integers cut off far below anybody's last place. What is compared are ratios of integers. logsumexp
alone is judged by long doubles.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

import numpy as np

from .rows import Array

#: Bits of a product that are kept.
_KEPT = 256
_MANTISSA = 53
#: Relative errors beyond this are as good as infinite.
_BEYOND = 10**12


def integers(values: Array) -> tuple[Array, int]:
    """Python integers m, and the exponent e of which values = m · 2^e."""
    fractions, exponents = np.frexp(values.astype(np.float64))
    least = int(exponents.min())
    mantissas = np.ldexp(fractions, _MANTISSA).astype(np.int64).astype(object)
    return mantissas << (exponents - least).astype(object), least - _MANTISSA


def total(values: Array) -> list[Fraction]:
    """The sum of each row."""
    whole, exponent = integers(values)
    return [_scaled(sum(row), exponent) for row in whole.tolist()]


def mean(values: Array) -> list[Fraction]:
    """The mean of each row."""
    return [one / values.shape[1] for one in total(values)]


def variance(values: Array) -> list[Fraction]:
    """The mean square distance from each row's mean."""
    whole, exponent = integers(values)
    count = values.shape[1]
    found = []
    for row in whole.tolist():
        once, squares = sum(row), sum(m * m for m in row)
        found.append(_scaled(count * squares - once * once, 2 * exponent) / count**2)
    return found


def product(values: Array) -> list[Fraction]:
    """The product of each row, to some 250 bits."""
    whole, exponent = integers(values)
    return [_product(row, exponent) for row in whole.tolist()]


def _product(row: Iterable[int], exponent: int) -> Fraction:
    value, power = 1, 0
    for m in row:
        value *= m
        power += exponent
        spare = value.bit_length() - _KEPT
        if spare > 0:
            value >>= spare
            power += spare
    return _scaled(value, power)


def logsumexp(values: Array) -> list[Fraction]:
    """log(sum(exp)) of each row, in long doubles."""
    wide = values.astype(np.longdouble)
    top = wide.max(axis=1)
    found = top + np.log(np.exp(wide - top[:, None]).sum(axis=1))
    # Two doubles hold what a long double does.
    heads = found.astype(np.float64)
    tails = (found - heads).astype(np.float64)
    return [Fraction(float(h)) + Fraction(float(t)) for h, t in zip(heads, tails, strict=True)]


def _scaled(value: int, exponent: int) -> Fraction:
    return Fraction(value) * Fraction(2) ** exponent


def relative_error(got: Array, right: list[Fraction], sizes: list[Fraction] | None = None) -> float:
    """The largest |got − right| over |right|, or over sizes; infinite of what is not finite."""
    worst, values = 0.0, got.astype(np.float64).ravel().tolist()
    for value, exact, size in zip(values, right, sizes or right, strict=True):
        if not math.isfinite(value):
            return math.inf
        error = abs(Fraction(value) - exact)
        if error > _BEYOND * abs(size):
            return math.inf
        if error:
            worst = max(worst, float(error / abs(size)))
    return worst
