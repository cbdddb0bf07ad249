"""Compares the numbers of a learnt engine with those of the op table's functions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from zerostride.compute.kernels import KERNELS, VARIANTS
from zerostride.compute.semantics import variant
from zerostride.ops import OPS
from zerostride.runtimes.learn.numbers import numbers_of
from zerostride.runtimes.learn.space import REFUSED, RESULT
from zerostride.runtimes.task import Array


def other_numbers(engine: str, ops: Mapping[str, Any]) -> Iterator[list[str]]:
    """Aspects in which learnt numbers are not those of the op table's function.

    Element types that the table says an engine computes in others are left out.
    """
    for op, entry in ops.items():
        for dtype, aspect, does, *example in entry["numbers"]:
            name = variant(OPS[op], engine, dtype)
            own = None if name is None else _aspects(op, dtype, name)
            if own is not None and does not in own.get(aspect, [""]):
                words = " or ".join(own.get(aspect, ["NumPy's"]))
                yield [op, dtype, aspect, does or "unknown", words, *example]


def _aspects(op: str, dtype: str, name: str) -> dict[str, list[str]]:
    """The learner's words for the numbers of a function of the table, by aspect."""
    kernel = VARIANTS.get(name, KERNELS[op])

    def compute(operands: tuple[Array, ...]) -> tuple[str, Array | None]:
        try:
            with np.errstate(all="ignore"):
                return RESULT, np.asarray(kernel(*operands))
        except (ArithmeticError, TypeError, ValueError):
            return REFUSED, None

    does: dict[str, list[str]] = {}
    for usual in (KERNELS[op], kernel):
        for numbers in numbers_of(OPS[op], dtype, usual, compute):
            does.setdefault(numbers.aspect, []).append(numbers.does)
    return does


__all__ = ["other_numbers"]
