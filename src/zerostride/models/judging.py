"""Two arrays of one tensor compared, with the kinds of failure told apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from .ir.graph import Array, Node


class Difference(StrEnum):
    """The kind of difference between a tensor and the expected one."""

    NONE = "none"
    NUMBERS = "numbers"
    NAN = "nan"  # NaN where a number is expected
    INFINITE = "infinite"  # an infinity where a finite number is expected
    SATURATED = "saturated"  # the largest or smallest number of a type, and a larger is expected
    SHAPE = "shape"
    MISSING = "missing"  # the engine refused or crashed


@dataclass(frozen=True, slots=True)
class Judged:
    """The comparison of one tensor.

    Attributes:
        difference: its kind.
        error: the largest difference; see :func:`judged`.
        wrong: how many numbers differ.
        elements: how many were compared.
        detail: the first of the worst, in words.
    """

    difference: Difference
    error: float = 0.0
    wrong: int = 0
    elements: int = 0
    detail: str = ""

    @property
    def agrees(self) -> bool:
        """Whether all numbers are equal within the tolerance."""
        return self.difference is Difference.NONE


#: Ends of ranges at which an engine may stop: of int8, uint8, int16, float16, int32 and int64.
_ENDS = (127.0, -128.0, 255.0, 32767.0, -32768.0, 65504.0, -65504.0, 2.0**31, -(2.0**31), 2.0**63)


#: The least tolerance of types of few bits, relative: 16 units in the last place, because a sum of
#: many numbers is rounded often.
_FEW_BITS: Mapping[str, float] = {"float16": 2.0**-7, "bfloat16": 2.0**-4}


#: Functions that engines compute as a difference to 1, so that their small results have the error
#: of 1; and that error.
NEAR_1 = frozenset({"Sigmoid", "Tanh", "Erf", "Softmax", "Gelu", "HardSwish", "Swish", "Mish"})
STEPS_OF_1 = 4 * 2.0**-23  # of float32


#: Functions that an engine approximates on purpose, by op in ONNX's words, and how far that is from
#: the exact result at most; of the ops in `OF_LARGEST`, relative to the largest number of the
#: result. `campaigns.models.approximations` measures the rows on 200,704 numbers. mnnconvert joins
#: what stands around an Erf to a GELU (MNN 3.6.1: 4.74e-4 at 2.7; with tanh 1.82e-4 at 3.8), and
#: MNN's convolutions of windows of 3x3 and more use Winograd's transforms (6.7e-4). No function of
#: ncnn 1.0.20261020 or OpenVINO 2026.4.1 that the campaign asks is further off than 9e-6.
APPROXIMATED: Mapping[str, Mapping[str, float]] = {
    "mnn": {"Erf": 4.8e-4, "Gelu": 4.8e-4, "Conv": 8e-4}
}
OF_LARGEST = frozenset({"Conv"})


def tolerance_of(dtype: object) -> float:
    """The least tolerance of an element type; 0 for those that are not rounded coarsely."""
    return _FEW_BITS.get(str(dtype), 0.0)


def one_step(node: Node, expected: Array) -> Array | float:
    """The tolerance of one step of a quantised result, for each number; 0 for other results.

    Engines round halves up, down or to even.
    """
    quantised = "quant" in node.op.lower() or node.op.startswith("QLinear")
    quantised = quantised or any(value.quantised is not None for value in node.outputs)
    if expected.dtype.kind not in "iu" or not quantised:
        return 0.0
    return 1.0 / np.maximum(np.abs(expected.astype(np.float64)), 1.0)


def relative(expected: Array, actual: Array) -> Array:
    """The differences, each relative to its number or, if larger, to the tensor's size up to 1.

    A tensor of numbers of order 1 has an absolute tolerance for its small numbers; a tensor of
    small numbers one that follows its largest.
    """
    wide = np.complex128 if "c" in (expected.dtype.kind, actual.dtype.kind) else np.float64
    with np.errstate(all="ignore"):  # memory that an engine never wrote may hold signalling NaNs
        a, b = expected.astype(wide), actual.astype(wide)
        size = np.abs(a)
        floor = min(1.0, float(size[np.isfinite(size)].max(initial=0.0))) or 1.0
        error = np.abs(a - b) / np.maximum(size, floor)
        same = (a == b) | (np.isnan(a) & np.isnan(b))
    return np.where(same, 0.0, np.where(np.isnan(error), np.inf, error))


def judged(expected: Array, actual: Array, most: float, excused: Array | float = 0.0) -> Judged:
    """Compares an array with the expected one of the same shape.

    Args:
        expected: the array by the meaning of the model.
        actual: the array of an engine.
        most: the tolerance of every number, relative as in :func:`relative`.
        excused: more tolerance, for each number: what rounding alone changes there.

    >>> judged(np.array([1.0, 2.0]), np.array([1.0, np.nan]), 1e-3).difference.value
    'nan'
    """
    error = relative(expected, actual)
    wrong = error > most + excused
    largest = float(error.max(initial=0.0))
    count = int(wrong.sum())
    if not count:
        return Judged(Difference.NONE, largest, 0, expected.size)
    worst = np.where(wrong, error, -1.0)
    index = tuple(int(k) for k in np.unravel_index(int(worst.argmax()), error.shape))
    place = f"[{', '.join(map(str, index))}]" if index else ""
    detail = f"{place} is {actual[index]:g}, expected {expected[index]:g}".strip()
    kind = _kind(expected[wrong], actual[wrong])
    return Judged(kind, largest, count, expected.size, detail)


def _kind(expected: Array, actual: Array) -> Difference:
    """The kind of failure of numbers that differ."""
    if actual.dtype.kind == "c" or expected.dtype.kind == "c":
        return Difference.NUMBERS
    if actual.dtype.kind == "f":
        if (np.isnan(actual) & ~np.isnan(expected)).any():
            return Difference.NAN
        if (np.isinf(actual) & np.isfinite(expected)).any():
            return Difference.INFINITE
    ends = np.isin(actual.astype(np.float64), _ENDS)
    beyond = np.abs(expected.astype(np.float64)) > np.abs(actual.astype(np.float64))
    return Difference.SATURATED if bool((ends & beyond).all()) else Difference.NUMBERS
