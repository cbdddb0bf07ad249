"""Draws cases: quantisation and the way back, in every placement, with the numbers that differ.

Numbers are ties of both signs and their neighbours, whole numbers, the ends of types, numbers
beyond int32, infinity, NaN, 0 of both signs and a subnormal. One case in ten has a scale or an axis
that does not fit, or a placement that the opset lacks, so that refusals are compared, too.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from zerostride.compute.quantised import ENDS
from zerostride.quantisation import QUANTIZERS, Quantizer
from zerostride.quantisation.model import Placement
from zerostride.quantisation.rows import FLOAT8

Array = NDArray[Any]
OPSETS = (10, 13, 19, 21, 23, 24, 25)
#: The first opset of stored types.
SINCE = {"int8": 10, "uint8": 10, "int32": 10, "int2": 25, "uint2": 25} | dict.fromkeys(FLOAT8, 19)
#: Scales with and without an exact reciprocal.
SCALES = (1.0, 0.5, 0.1, 0.3, 7.0, 0.0123, 0.0078125, 2.5)
_SPECIAL = (
    *(0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40),
    *(1e9, -1e9, 3e9, -3e9, 1e20, -1e20, 3e38, -3e38, 2.0**31, -(2.0**31)),
)


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """A quantisation, or the way back.

    Attributes:
        op: "quantize" or "dequantize".
        x: the numbers, or the quantised ones.
        stored: the stored type.
        opset: ONNX's opset, or None for engines without.
    """

    engine: str
    op: str
    x: Array
    scale: Array
    zero: Array | None
    axis: int | None
    block: int | None
    stored: str
    opset: int | None

    def __str__(self) -> str:
        zero = None if self.zero is None else self.zero.shape
        return (
            f"{self.engine} {self.op} {self.stored} opset={self.opset} axis={self.axis} "
            f"block={self.block} x {self.x.dtype}{self.x.shape} scale {self.scale.dtype}"
            f"{self.scale.shape} zero {zero}"
        )


def dtype_of(name: str) -> np.dtype[Any]:
    """A type of NumPy or ml_dtypes."""
    return np.dtype(getattr(ml_dtypes, name, name))


def draw(engine: str, seed: int, number: int) -> Case:
    """Case `number` of a seed for an engine."""
    rng = np.random.default_rng([seed, number, zlib.crc32(engine.encode())])
    row = QUANTIZERS[engine]
    opset = int(rng.choice(OPSETS)) if any(row.placements.values()) else None
    op = "quantize" if rng.random() < 0.65 else "dequantize"
    names = row.stores if op == "quantize" else row.reads
    stored = _choice(rng, [n for n in sorted(names) if (opset or 99) >= SINCE.get(n, 21)])
    halves = "float16" in row.floats and (opset or 0) >= 19 and rng.random() < 0.2
    floats = "float16" if halves else "float32"
    least = max(1, row.least_rank)
    shape = tuple(int(n) for n in rng.integers(1, 7, rng.integers(least, least + 3)))
    shape = (*shape[:-1], int(shape[-1] * rng.integers(1, 9)))
    scale_shape, axis, block = _place(rng, row, shape, opset)
    scale = rng.choice(SCALES, scale_shape).astype(floats)
    zero = _zero(rng, stored, scale_shape, opset if op == "quantize" else 99)
    zero = zero if row.zeros and (engine, stored) != ("litert", "int16") else None
    if (engine, stored, op) == ("litert", "int16", "dequantize"):
        scale, axis, zero = scale.reshape(-1)[:1].reshape(()), None, None
    if zero is None and row.divides and block:
        zero = np.zeros(scale_shape, dtype_of(stored))
    wide = _spread(scale, shape, axis, block)
    with np.errstate(over="ignore"):  # of float16
        x = (
            numbers(rng, shape, wide, stored).astype(floats)
            if op == "quantize"
            else _stored(rng, shape, stored)
        )
    return Case(engine, op, x, scale, zero, axis, block, stored, opset)


def _choice(rng: np.random.Generator, values: Sequence[str]) -> str:
    return str(values[int(rng.integers(len(values)))])


def _place(
    rng: np.random.Generator, row: Quantizer, shape: tuple[int, ...], opset: int | None
) -> tuple[tuple[int, ...], int | None, int | None]:
    """A scale's shape, axis and block; one in ten does not fit."""
    has = [str(p) for p, since in row.placements.items() if (opset or 99) >= since]
    # OpenVINO reads attributes that an opset lacks.
    every = rng.random() < 0.05 and not row.divides
    placement = _choice(rng, [*map(str, row.placements)] if every else has)
    low = -len(shape) if opset is not None else 0  # PyTorch counts axes from 0 alone
    axis: int | None = int(rng.integers(low, len(shape)))
    if row.default_axis is not None and len(shape) > 1 and rng.random() < 0.2:
        axis = None  # the default, 1
    if opset == 10:
        axis = None
    k = (1 if axis is None else axis) % len(shape)
    wrong = rng.random() < 0.1 and bool(row.placements) and opset is not None
    if placement == Placement.TENSOR:
        return ((), (1,))[int(rng.integers(2))] if opset else (), axis if opset else None, None
    if placement == Placement.AXIS and row.name in ("litert", "mnn", "ncnn"):
        return _own_axis(row, shape, axis)
    if placement == Placement.AXIS:
        if wrong:
            fault = int(rng.integers(3))
            # The reference stretches a tensor along an axis of 1.
            if fault == 0 and not (row.name == "onnx.reference" and shape[k] == 1):
                return (shape[k] + 1,), axis, None
            if fault == 1 and opset != 10:
                return (shape[k] + 1,), len(shape) + 1, None
        return (shape[k],), axis, None
    block = int(rng.choice([1, 2, 3, 4, 5, 8, 16]))
    if row.divides and not wrong:
        block = int(rng.choice([b for b in (1, 2, 3, 4, 6, 8) if shape[k] % b == 0]))
    blocks = tuple(-(-n // block) if j == k else n for j, n in enumerate(shape))
    # The reference repeats scales and cuts off what is too much, so it takes more than there are.
    if wrong and not row.divides and row.name != "onnx.reference" and rng.random() < 0.5:
        blocks = tuple(n + 1 if j == k else n for j, n in enumerate(blocks))
    return blocks, axis, block


def _own_axis(
    row: Quantizer, shape: tuple[int, ...], axis: int | None
) -> tuple[tuple[int, ...], int | None, None]:
    """An axis of these engines, or none: LiteRT takes one scale for the tensor's."""
    k = axis if row.vector_axis is None else row.vector_axis
    alone = row.vector_axis is not None and len(shape) == 1
    mixed = row.packs and len(shape) > 1 and shape[1] > row.packs and shape[0] > 1
    if k is None or alone or mixed or shape[k] == 1:
        return (), None, None
    return (shape[k],), k, None


def _zero(
    rng: np.random.Generator, stored: str, shape: tuple[int, ...], opset: int | None
) -> Array | None:
    """A zero point, or none if the stored type is known without."""
    if (stored == "uint8" or opset is None or opset >= 21) and rng.random() < 0.15:
        return None
    if stored in FLOAT8:
        return np.zeros(shape, dtype_of(stored))
    low, high = ENDS[stored]
    kind = rng.random()
    if kind < 0.2:
        return np.zeros(shape, dtype_of(stored))
    if kind < 0.35:
        return np.full(shape, high if rng.random() < 0.5 else low).astype(dtype_of(stored))
    near = min(100, high)
    zero: Array = rng.integers(max(low, -near), near + 1, shape)
    return np.asarray(zero).astype(dtype_of(stored))


def _spread(scale: Array, shape: tuple[int, ...], axis: int | None, block: int | None) -> Array:
    """The scale of each element, or of the first where it does not fit."""
    k = (1 if axis is None else axis) % len(shape)
    if scale.size == 1:
        return scale.reshape(())
    try:
        if block is not None:
            wide = np.take(scale, np.arange(shape[k]) // block, k)
        else:
            wide = scale.reshape([-1 if j == k else 1 for j in range(len(shape))])
        return np.broadcast_to(wide, shape)
    except (ValueError, IndexError):
        return scale.reshape(-1)[:1].reshape(())


def numbers(rng: np.random.Generator, shape: tuple[int, ...], scale: Array, stored: str) -> Array:
    """Numbers to quantise, of each kind."""
    low, high = ENDS.get(stored, (-500, 500))
    low, high = max(low, -40_000), min(high, 80_000)
    room = max(4, (high - low) // 5)
    whole = rng.integers(low - room, high + room, shape)
    kind = rng.integers(0, 8, shape)
    with np.errstate(all="ignore"):
        ties = ((whole + 0.5) * scale).astype(np.float32)
        x = np.where(kind < 3, ties, (whole * scale).astype(np.float32))
        up = np.nextafter(ties, np.float32(np.inf))
        down = np.nextafter(ties, np.float32(-np.inf))
        x = np.where(kind == 4, up, np.where(kind == 5, down, x))
        x = np.where(kind == 6, (rng.uniform(low, high, shape) * scale).astype(np.float32), x)
        special = rng.choice(_SPECIAL, shape).astype(np.float32)
        return np.where(kind == 7, special, x)


def _stored(rng: np.random.Generator, shape: tuple[int, ...], stored: str) -> Array:
    """Quantised numbers, the ends among them."""
    if stored in FLOAT8:
        return rng.integers(0, 256, shape).astype(np.uint8).view(dtype_of(stored))
    low, high = ENDS[stored]
    numbers = rng.integers(low, high + 1, shape)
    ends = rng.choice([low, high, 0], shape)
    return np.where(rng.random(shape) < 0.2, ends, numbers).astype(dtype_of(stored))
