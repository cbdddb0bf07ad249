"""Operands whose values prove where every element went, for any op.

The values are random. They come from the first domain in which the op's function depends on each of
its operands; there nearly every other alignment gives other results.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...compute.kernels import KERNELS, VARIANTS, Kernel
from ...core.plan import Plan
from ...ops import Op
from ..task import Array
from .shapes import Question

Domain = Callable[[np.random.Generator, int], NDArray[np.generic]]
#: The relative tolerance of a float of so many bytes; engines approximate.
_TOLERANCE = {2: 2e-2, 4: 2e-3, 8: 2e-3}
#: Passes where a question tells little: results are truth values, or an operand is one number (for
#: some numbers engines have code of their own).
_PASSES = 3
_SAMPLE = 64

#: Types in which an engine may compute whole numbers of others.
_NARROWER = ("int32", "float32")

_FLOATS: tuple[Domain, ...] = (
    lambda rng, n: rng.uniform(0.2, 4.0, n),
    lambda rng, n: rng.uniform(-4.0, 4.0, n),
    lambda rng, n: rng.integers(1, 4, n),
    lambda rng, n: rng.integers(0, 2, n),
)
_WHOLE: tuple[Domain, ...] = (
    lambda rng, n: rng.integers(1, 6, n),
    lambda rng, n: rng.integers(1, 30, n),
    lambda rng, n: rng.integers(0, 2, n),
    lambda rng, n: rng.integers(-5, 6, n),
)
_TRUTHS: tuple[Domain, ...] = (lambda rng, n: rng.integers(0, 2, n),)


@dataclass(frozen=True, slots=True)
class Function:
    """The function of an op on an element type, on numbers for which all engines agree.

    Attributes:
        op: its row; None: the op that broadcasts to a target.
        dtype: NumPy's name of the element type.
        kernel: the function on operands that are laid out.
        domain: of the operands' values.
        passes: how many times a question is asked at least, with other values.
    """

    op: Op | None
    dtype: str
    kernel: Kernel
    domain: Domain
    passes: int = 1

    def operands(self, question: Question) -> list[tuple[Array, ...]]:
        """The operands of each pass. Equal questions have equal operands."""
        shapes = question[:1] if self.op is None else question
        seed = zlib.crc32(repr(question).encode())
        passes = _PASSES if any(math.prod(shape) == 1 for shape in shapes) else self.passes
        return [
            tuple(_values(self, shape, k, seed + turn) for k, shape in enumerate(shapes))
            for turn in range(passes)
        ]

    def matches(
        self, plan: Plan, passes: Sequence[Sequence[Array]], results: Sequence[Array]
    ) -> bool:
        """Whether results are those of a plan."""
        return all(
            result.shape == plan.shape and close(result, self.value(plan.views(*operands)))
            for operands, result in zip(passes, results, strict=True)
        )

    def value(self, views: Sequence[Array]) -> Array:
        """The function of operands that are laid out."""
        with np.errstate(all="ignore"):
            return np.asarray(self.kernel(*views))


def _values(function: Function, shape: tuple[int, ...], place: int, seed: int) -> Array:
    count = int(np.prod(shape, dtype=np.int64))
    rng = np.random.default_rng((seed, place))
    condition = function.op is not None and place < function.op.conditions
    domain = _TRUTHS[0] if condition else function.domain
    dtype = "bool" if condition else function.dtype
    return domain(rng, count).astype(dtype).reshape(shape)


def close(result: Array, expected: Array) -> bool:
    """Whether values are equal: truth values and whole numbers exactly, floats nearly.

    One element in fifty may differ: an engine's own rounding decides a quotient's floor.
    """
    if result.shape != expected.shape:
        return False
    if expected.dtype.kind != "f" or result.dtype.kind != "f":
        equal = np.equal(result, expected)
    else:
        tolerance = _TOLERANCE.get(min(result.dtype.itemsize, expected.dtype.itemsize), 2e-3)
        equal = np.isclose(result, expected, rtol=tolerance, atol=tolerance / 4, equal_nan=True)
    return int((~equal).sum()) <= equal.size // 50


def functions(op: Op | None, dtype: str) -> Iterator[Function]:
    """The functions that an op may compute on a type: NumPy's, then those of known engines.

    Where none is known, one that equals no result: whether an engine takes the type can be asked.
    """
    if op is None:
        yield Function(None, dtype, lambda x: x, _domains(dtype)[0], _passes(dtype))
        return
    known = list(_known(op, dtype))
    yield from known or [Function(op, dtype, _unlike_any, _domains(dtype)[0])]


def _unlike_any(*views: Array) -> Array:
    """The function of an op for which none is known: it equals no result."""
    return np.zeros((0,) * 9)


def other_types(op: Op) -> Iterator[tuple[str, Kernel]]:
    """NumPy's function of an op, computed in another type, with the words that say so."""
    for dtype in _NARROWER:
        yield f"in {dtype}", _within(KERNELS[op.name], dtype)
    yield "saturated", _saturated(KERNELS[op.name])


def _within(kernel: Kernel, dtype: str) -> Kernel:
    def within(*operands: Array) -> Array:
        return np.asarray(kernel(*(x.astype(dtype) for x in operands)))

    return within


def _saturated(kernel: Kernel) -> Kernel:
    """The function in int64, cut off at the ends of the operands' type."""

    def saturated(*operands: Array) -> Array:
        info = np.iinfo(operands[-1].dtype)
        value = np.asarray(kernel(*(x.astype(np.int64) for x in operands)))
        return np.asarray(np.clip(value, info.min, info.max), operands[-1].dtype)

    return saturated


def _known(op: Op, dtype: str) -> Iterator[Function]:
    names = dict.fromkeys(name for row in op.variants.values() for name in row.values())
    kernels = [KERNELS[op.name], *(VARIANTS[name] for name in names if name in VARIANTS)]
    if dtype.startswith(("int", "uint")):
        kernels += [kernel for _, kernel in other_types(op)]
    for kernel in kernels:
        for domain in _domains(dtype):
            function = Function(op, dtype, kernel, domain)
            result = _telling(function)
            if result is not None:
                passes = _PASSES if result.dtype.kind == "b" else _passes(dtype)
                yield Function(op, dtype, kernel, domain, passes)
                break


def _domains(dtype: str) -> tuple[Domain, ...]:
    if dtype == "bool":
        return _TRUTHS
    if dtype.startswith("float"):
        return _FLOATS
    return _WHOLE[:3] if dtype.startswith("u") else _WHOLE


def _passes(dtype: str) -> int:
    return _PASSES if dtype == "bool" else 1 if dtype.startswith("float") else 2


def _telling(function: Function) -> Array | None:
    """The function of a sample, if it depends on each operand; None if not, or if it fails."""
    assert function.op is not None
    question = ((_SAMPLE,),) * function.op.tensors
    (operands,) = function.operands(question)
    try:
        result = function.value(operands)
        for place in range(len(operands)):
            turned = [np.roll(x, 1) if k == place else x for k, x in enumerate(operands)]
            if np.mean(function.value(turned) != result) < 0.15:
                return None
    except Exception:  # noqa: BLE001 - NumPy has no such function of this type
        return None
    return result


__all__ = ["Function", "close", "functions"]
