"""An engine's numbers compared with zerostride's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from ...compute.semantics import DTYPES
from ...models.findings import Outcome
from ..runners import RUNNERS
from ..task import Array, Reply, ReplyKind

#: The tolerance of a single operation, in units in the last place: libraries differ in the last
#: bits of powers and quotients.
ULPS = 8
_LOOSE: Mapping[str, int] = MappingProxyType(
    {
        **dict.fromkeys(("divide", "remainder", "floor_divide", "fmod"), 64),
        **dict.fromkeys(("pow", "atan2", "logaddexp", "Mean"), 256),
    }
)
#: The same for compounds, which add many numbers in any order, and for whole models, where more is
#: tolerated if rounding is seen to make it.
COMPOUND_ULPS = 4096
#: Compounds that are computed in single precision, whatever their operands are, by ONNX's documents
#: (stash_type).
_SINGLE = frozenset({"GroupNormalization", "LayerNormalization", "RMSNormalization"})
#: A larger difference is a disagreement in any type: 4096 units of half precision are 4 times the
#: number itself, and random operands that are aligned otherwise differ by less.
WIDEST = 2.0**-4


#: The outcomes of replies without a result. A runner's own fault says nothing about the engine.
_WITHOUT_RESULT: Mapping[ReplyKind, Outcome] = MappingProxyType(
    {
        ReplyKind.REFUSED: Outcome.REFUSED,
        ReplyKind.CRASHED: Outcome.CRASHED,
        ReplyKind.ABSENT: Outcome.NOT_RUN,
        ReplyKind.BROKEN: Outcome.NOT_RUN,
    }
)


@dataclass(frozen=True, slots=True)
class Agreement:
    """The comparison of two results, with the fields of a :class:`~..models.findings.Check`.

    Attributes:
        wrong: how many numbers differ by more than is tolerated.
    """

    outcome: Outcome
    detail: str = ""
    elements: int = 0
    error: float = 0.0
    wrong: int = 0


def without_result(reply: Reply) -> Agreement | None:
    """The comparison of a reply that has no result; None if it has one."""
    if reply.kind is ReplyKind.RESULT:
        return None
    return Agreement(_WITHOUT_RESULT[reply.kind], reply.message)


def tolerance(
    engine: str, op: str, dtype: np.dtype[np.generic], *, compound: bool, source: str = ""
) -> float:
    """The largest tolerated difference, relative to the larger of 1 and the number.

    Args:
        engine: the engine that computes.
        op: the op.
        dtype: of the result.
        compound: the op adds many numbers up.
        source: the engine whose file defines the meaning; it may compute narrower, too.

    >>> tolerance("torch", "add", np.dtype("int64"), compound=False)
    0.0
    >>> tolerance("torch", "MatMul", np.dtype("float16"), compound=True)
    0.0625
    """
    if dtype.kind not in "fc":
        return 0.0
    rows = [DTYPES[name] for name in (engine, source) if name in DTYPES]
    kinds = [np.dtype(row.computes_in.get(dtype.name, dtype.name)) for row in rows]
    kinds += [dtype, *([np.dtype(np.float32)] if op in _SINGLE else ())]
    narrow = max(float(np.finfo(kind).eps) for kind in kinds)
    ulps = COMPOUND_ULPS if compound else _LOOSE.get(op, ULPS)
    return min(narrow * max(ulps, RUNNERS[engine].ulps), WIDEST)


def compare(
    expected: Array, actual: Array, most: float, *, any_rank: bool = False, steps: int = 0
) -> Agreement:
    """Whether an engine's result is the expected one.

    Args:
        expected: zerostride's result.
        actual: the engine's result.
        most: see :func:`tolerance`.
        any_rank: one number is the same with or without axes (ncnn has no rank 0).
        steps: whole numbers may differ by so much: of a quantised tensor, by one step.
    """
    if any_rank and expected.size == actual.size == 1:
        actual = actual.reshape(expected.shape)
    if actual.shape != expected.shape:
        detail = f"its result has the shape {actual.shape}; the model means {expected.shape}"
        return Agreement(Outcome.DIFFERS, detail)
    wide = np.complex128 if "c" in (expected.dtype.kind, actual.dtype.kind) else np.float64
    with np.errstate(all="ignore"):  # memory that an engine never wrote may hold signalling NaNs
        a, b = expected.astype(wide), actual.astype(wide)
        error = np.abs(a - b) / np.maximum(1, np.abs(a))
        same = (a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= steps)
        error = np.where(same, 0.0, error)
    error = np.where(np.isnan(error), np.inf, error)
    largest = float(error.max(initial=0.0))
    if largest <= most:
        return Agreement(Outcome.AGREES, "", expected.size, largest)
    index = tuple(int(i) for i in np.unravel_index(int(error.argmax()), error.shape))
    wrong = int((error > most).sum())
    detail = (
        f"{wrong} of {expected.size} numbers differ: result[{', '.join(map(str, index))}] is "
        f"{actual[index]:g}, and the model means {expected[index]:g}"
    )
    return Agreement(Outcome.DIFFERS, detail, expected.size, largest, wrong)
