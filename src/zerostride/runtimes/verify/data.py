"""Random operands, on which engines differ by alignment, by sign, and not by rounding.

Division by zero, overflow and negative bases are no questions of broadcasting; the numbers here
avoid them. Where the op takes them, they have both signs: the sign of a remainder and the slope of
a PRelu show in no positive number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from ...ops import COMPARISONS
from ..task import Array

Draw = Callable[[np.random.Generator, tuple[int, ...], int], Array]


def _reals(low: float, high: float) -> Draw:
    return lambda rng, shape, _: np.asarray(rng.uniform(low, high, shape))


def _signs(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return np.asarray(rng.spawn(1)[0].choice((-1, 1), shape))


def _away_from_zero(rng: np.random.Generator, shape: tuple[int, ...], position: int) -> Array:
    """Dividends of both signs; stored in 8 bits a negative divisor may become 0."""
    numbers = rng.uniform(0.5, 2, shape)
    return np.asarray(numbers if position else numbers * _signs(rng, shape))


def _whole(first: tuple[int, int], rest: tuple[int, int], times: int = 1) -> Draw:
    """Whole numbers, of different ranges in the first operand and in the others."""

    def draw(rng: np.random.Generator, shape: tuple[int, ...], position: int) -> Array:
        low, high = rest if position else first
        return np.asarray(rng.integers(low, high + 1, shape) * (1 if position else times))

    return draw


def _signed(draw: Draw, last: int = 1) -> Draw:
    """The same numbers, with both signs up to the operand at `last`."""

    def signed(rng: np.random.Generator, shape: tuple[int, ...], position: int) -> Array:
        numbers = draw(rng, shape, position)
        return numbers if position > last else numbers * _signs(rng, shape)

    return signed


def _slopes(rng: np.random.Generator, shape: tuple[int, ...], position: int) -> Array:
    numbers = rng.uniform(0.1, 0.9, shape) if position else rng.uniform(0.5, 2, shape)
    return np.asarray(numbers * (_signs(rng, shape) if position else -1))


def _clamp(rng: np.random.Generator, shape: tuple[int, ...], position: int) -> Array:
    if position == 0:
        return np.asarray(rng.uniform(-2, 2, shape))
    return np.full(shape, -0.5 if position == 1 else 0.75)


def _clamp_whole(rng: np.random.Generator, shape: tuple[int, ...], position: int) -> Array:
    if position == 0:
        return np.asarray(rng.integers(0, 9, shape))
    return np.full(shape, 2 if position == 1 else 6)


def _bases(rng: np.random.Generator, shape: tuple[int, ...], position: int) -> Array:
    return np.asarray(rng.uniform(-2, 2, shape) if position else rng.uniform(0.5, 2, shape))


def _thirds(rng: np.random.Generator, shape: tuple[int, ...], position: int) -> Array:
    """Quotients that are no whole numbers and no halves, which engines round differently."""
    if position:
        return np.asarray(2.0 ** rng.integers(0, 4, shape) * _signs(rng, shape))
    return np.asarray((rng.integers(1, 64, shape) + 1 / 3) * _signs(rng, shape))


def _normalised(rng: np.random.Generator, shape: tuple[int, ...], position: int) -> Array:
    """Data, scale, bias and mean of both signs; the fifth operand is a variance."""
    numbers = rng.uniform(0.5, 2, shape)
    return np.asarray(numbers if position == 4 else numbers * _signs(rng, shape))


def _quantised(rng: np.random.Generator, shape: tuple[int, ...], position: int) -> Array:
    # Engines round halves differently; whole multiples of the scale have no halves.
    if position == 1:
        return np.asarray(2.0 ** rng.integers(-1, 2, shape))
    return np.asarray(rng.integers(0, 8, shape) * (1.0 if position else 2.0))


def _quantised_whole(rng: np.random.Generator, shape: tuple[int, ...], position: int) -> Array:
    if position == 1:
        return np.asarray(rng.integers(1, 3, shape))
    return np.asarray(rng.integers(0, 8, shape) * (1 if position else 2))


#: Op to its operands, floats and integers; others have ±2 and small positive integers.
_REALS: Mapping[str, Draw] = MappingProxyType(
    {
        **dict.fromkeys(COMPARISONS, _whole((-2, 2), (-2, 2))),
        **dict.fromkeys(("remainder", "fmod", "floor_divide"), _thirds),
        "divide": _away_from_zero,
        "pow": _bases,
        "prelu": _slopes,
        "PRelu": _slopes,
        "Clip": _clamp,
        "QuantizeLinear": _quantised,
        "DequantizeLinear": _quantised,
        **dict.fromkeys(
            (
                "BatchNormalization",
                "InstanceNormalization",
                "GroupNormalization",
                "LayerNormalization",
                "RMSNormalization",
            ),
            _normalised,
        ),
    }
)
_INTEGERS: Mapping[str, Draw] = MappingProxyType(
    {
        # Divides without remainder, so that rounding has no effect.
        **dict.fromkeys(("divide", "floor_divide"), _signed(_whole((1, 5), (1, 4), times=12), 0)),
        **dict.fromkeys(("remainder", "fmod"), _signed(_whole((1, 63), (1, 8)))),
        **dict.fromkeys(COMPARISONS, _whole((-2, 2), (-2, 2))),
        **dict.fromkeys(("bitwise_left_shift", "bitwise_right_shift"), _whole((1, 15), (0, 3))),
        "pow": _whole((1, 3), (0, 2)),
        "prelu": _whole((-9, -1), (2, 4)),
        "Clip": _clamp_whole,
        **dict.fromkeys(("QuantizeLinear", "DequantizeLinear"), _quantised_whole),
    }
)


def operand(
    rng: np.random.Generator, op: str, position: int, shape: tuple[int, ...], dtype: str
) -> Array:
    """The operand at a position of an op."""
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return np.asarray(rng.integers(0, 2, shape)).astype(bool)
    table, other = (
        (_INTEGERS, _whole((10, 20), (1, 4)))
        if kind.kind in "iu"
        else (_REALS, _reals(-2, 2))
    )  # fmt: skip
    values = table.get(op, other)(rng, shape, position)
    return (np.abs(values) if kind.kind == "u" else values).astype(kind)
