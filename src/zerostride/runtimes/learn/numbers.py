"""Learns an op's numbers: signs, ends of whole numbers, division by zero, infinity, NaN.

Each aspect is one question: operands of one shape with every pair of its telling values. The answer
is compared with NumPy's function, with those of known engines, and with functions of narrower
types.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from ...compute.kernels import KERNELS, VARIANTS, Kernel
from ...ops import Op
from ..task import Array
from .operands import close, other_types
from .space import CRASHED, REFUSED, RESULT

#: Runs an op on vectors: the kind of answer, and the result; None for one of another shape.
Compute = Callable[[tuple[Array, ...]], tuple[str, Array | None]]
#: Values by aspect, for floats; in each pair one value at least is of the aspect.
_PLAIN_FLOATS = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 7.0)
_FLOAT_ASPECTS: Mapping[str, tuple[float, ...]] = MappingProxyType(
    {
        "negative numbers": (-0.5, -1.0, -1.5, -2.5, -3.0, -7.0),
        "zero": (0.0, -0.0),
        "infinity": (np.inf, -np.inf),
        "NaN": (np.nan,),
    }
)
#: Numbers that a narrower float does not hold.
_LARGE_FLOATS: Mapping[str, tuple[float, ...]] = MappingProxyType(
    {"float64": (2.0**200, -(2.0**400)), "float32": (2.0**40, -(2.0**60))}
)
_WITHOUT_RESULT: Mapping[str, str] = MappingProxyType(
    {CRASHED: "crashes", REFUSED: "refuses", RESULT: "has another shape"}
)


@dataclass(frozen=True, slots=True)
class Numbers:
    """An aspect in which an op's numbers are not NumPy's.

    Attributes:
        dtype: the element type.
        aspect: which values.
        does: "crashes", "refuses", "has another shape", the name of a known function, "in int32",
            or "" for numbers of no known function.
        example: operands, the engine's result and NumPy's, as text, which is "" where NumPy
            refuses; empty without a result.
    """

    dtype: str
    aspect: str
    does: str
    example: tuple[str, ...] = ()

    def as_list(self) -> list[str]:
        """For a file."""
        return [self.dtype, self.aspect, self.does, *self.example]


def numbers_of(op: Op, dtype: str, usual: Kernel, compute: Compute) -> Iterator[Numbers]:
    """The aspects in which an op's numbers are not those of NumPy's function.

    Args:
        op: its row; it has two operands.
        dtype: NumPy's name of the element type.
        usual: the op's function on plain numbers.
        compute: runs it on the engine.
    """
    numpy = KERNELS[op.name]
    for aspect, operands in _aspects(dtype):
        kind, result = compute(operands)
        if kind != RESULT or result is None:
            yield Numbers(dtype, aspect, _WITHOUT_RESULT[kind])
            continue
        expected = _value(numpy, operands)
        if expected is not None and _equal(result, expected):
            continue
        name = next(
            (name for name, kernel in _others(op, usual) if _fits(kernel, operands, result)), ""
        )
        yield Numbers(dtype, aspect, name, _example(operands, result, expected))


def _others(op: Op, usual: Kernel) -> Iterator[tuple[str, Kernel]]:
    """Functions that an engine may compute instead of NumPy's, by name."""
    names = dict.fromkeys(name for row in op.variants.values() for name in row.values())
    known = {name: VARIANTS[name] for name in names if name in VARIANTS}
    yield from ((name, kernel) for name, kernel in known.items() if kernel is usual)
    yield from known.items()
    yield from other_types(op)


def _fits(kernel: Kernel, operands: Sequence[Array], result: Array) -> bool:
    value = _value(kernel, operands)
    return value is not None and _equal(result, value.astype(result.dtype))


def _value(kernel: Kernel, operands: Sequence[Array]) -> Array | None:
    try:
        with np.errstate(all="ignore"):
            return np.asarray(kernel(*operands))
    except Exception:  # noqa: BLE001 - the function does not take these numbers
        return None


def _equal(result: Array, expected: Array) -> bool:
    if result.shape != expected.shape:
        return False
    if expected.dtype.kind == "f" and result.dtype.kind == "f":
        zeros = np.where((result == 0) & (expected == 0), np.signbit(result), False)
        others = np.where((result == 0) & (expected == 0), np.signbit(expected), False)
        return _all_close(result, expected) and bool(np.array_equal(zeros, others))
    return bool(np.array_equal(result, expected))


def _all_close(result: Array, expected: Array) -> bool:
    return all(close(x.reshape(1), y.reshape(1)) for x, y in zip(result, expected, strict=True))


def pieces(operands: Sequence[Array], shape: tuple[int, ...]) -> Iterator[tuple[Array, ...]]:
    """Vectors of numbers as tensors of one shape: as many as hold all, the last one filled up.

    >>> [x.tolist() for (x,) in pieces([np.arange(3)], (2, 1))]
    [[[0], [1]], [[2], [0]]]
    """
    count, total = math.prod(shape), operands[0].size
    for start in range(0, total, count):
        places = np.arange(start, start + count) % total
        yield tuple(x[places].reshape(shape) for x in operands)


def joined(results: Sequence[Array], shape: tuple[int, ...], total: int) -> Array | None:
    """The vector of so many numbers out of the results of `pieces`; None for other shapes."""
    if any(result.shape != shape for result in results):
        return None
    return np.concatenate([result.ravel() for result in results])[:total]


def _aspects(dtype: str) -> Iterator[tuple[str, tuple[Array, ...]]]:
    if dtype == "bool":
        return
    if dtype.startswith("float"):
        for aspect, values in _FLOAT_ASPECTS.items():
            yield aspect, _pairs(_PLAIN_FLOATS, values, dtype)
        if large := _LARGE_FLOATS.get(dtype):
            yield "large numbers", _pairs(_PLAIN_FLOATS, large, dtype)
        return
    info = np.iinfo(dtype)
    plain = (1, 2, 3, 5, 7)
    if info.min < 0:
        yield "negative numbers", _pairs(plain, (-1, -2, -3, -5, -7), dtype)
    yield "zero as the first operand", _pairs((), (0,), dtype, plain)
    yield "zero as the second operand", _pairs((), plain, dtype, (0,))
    large = tuple(v for v in (2**24 + 1, 2**31 + 1, 2**53 + 1) if v <= info.max)
    yield "large numbers", _pairs((1, 2), large or (info.max - 1,), dtype)
    yield "the ends of the type", _pairs((1, 2), tuple({int(info.min) or 1, int(info.max)}), dtype)


def _pairs(
    plain: Sequence[float], values: Sequence[float], dtype: str, second: Sequence[float] = ()
) -> tuple[Array, ...]:
    """Every pair with a value of an aspect, in both orders; or of two lists, in one."""
    pairs = [(a, b) for a in values for b in second or (*values, *plain)]
    pairs += [] if second else [(a, b) for a in plain for b in values]
    return tuple(np.array(column, dtype) for column in zip(*pairs, strict=True))


def _example(operands: Sequence[Array], result: Array, expected: Array | None) -> tuple[str, ...]:
    if expected is None:
        return (*(str(x[0]) for x in operands), str(result[0]), "")
    for k, (x, y) in enumerate(zip(result, expected, strict=True)):
        if not _equal(x.reshape(1), y.reshape(1)):
            return (*(str(operand[k]) for operand in operands), str(x), str(y))
    return ()


__all__ = ["Compute", "Numbers", "joined", "numbers_of", "pieces"]
