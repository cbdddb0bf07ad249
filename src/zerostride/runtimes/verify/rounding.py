"""The effect of rounding on a model's outputs, and the differences that it explains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from ...models.findings import Outcome
from ...models.judging import STEPS_OF_1
from ...models.transport.batch import BATCHLESS
from ..task import Array
from .compare import COMPOUND_ULPS, WIDEST, Agreement, compare

#: The comparison of each output, by its name.
Answers: TypeAlias = Mapping[str, Agreement]
#: A measured effect explains a difference of at most this many times its size: the effect of
#: rounding, and of the storage of weights; and in at most this many times as many numbers: a single
#: tie of quantisation does not explain a step in all numbers. Networks of 1 to 10 quantised layers
#: on ONNX Runtime have up to 1.7 times as many numbers.
ROUNDING, STORAGE, _COUNTS = 8, 2, 16
#: The same for an engine's approximations. Their errors have one sign over a range of operands, and
#: the measured ones random signs.
APPROXIMATION = 2
#: Small results of functions that engines approximate have a larger error, relative to themselves.
_APPROXIMATED = 2.0**-7
#: An engine's error is at most so many times what one rounding of each tensor makes.
_ROUNDINGS = 64


def compared(expected: Array, actual: Array, engine: str) -> Agreement:
    """The comparison of an engine's output with the expected one, as after many ops."""
    if expected.dtype.kind == "f" and expected.size and np.isnan(expected).all():
        detail = "the model itself makes nothing but NaN of these random inputs"
        return Agreement(Outcome.NOT_RUN, detail)
    return compare(expected, actual, _tolerated(expected), any_rank=engine in BATCHLESS)


def _tolerated(expected: Array) -> float:
    """The largest tolerated difference of an output, as in :func:`~.compare.tolerance`.

    An output of small numbers, such as the probabilities of many classes, has a smaller one.
    """
    if expected.dtype.kind not in "fc":
        return 0.0
    kind = expected.dtype if expected.dtype.kind == "f" else np.dtype(np.float32)
    # A double is single on several engines.
    eps = float(np.finfo(np.float32 if kind.itemsize > 4 else kind).eps)
    size = np.abs(expected)
    largest = float(size[np.isfinite(size)].max(initial=0.0))
    return max(min(eps * COMPOUND_ULPS, WIDEST) * (min(1.0, largest) or 1.0), STEPS_OF_1)


def like(array: Array, shape: tuple[int, ...]) -> Array:
    """The array without the one axis of extent 1 that `shape` lacks: the batch that was dropped.

    >>> like(np.ones((1, 2)), (2,)).shape, like(np.ones((3, 2)), (2,)).shape
    ((2,), (3, 2))
    """
    if array.ndim != len(shape) + 1:
        return array
    tries = (
        array.shape[:k] + array.shape[k + 1 :] for k in range(array.ndim) if array.shape[k] == 1
    )
    return array.reshape(shape) if shape in tries else array


def moved_array(rng: np.random.Generator, array: Array) -> Array:
    """The array, each finite number moved up or down by one part in 2 to the bits of its type.

    1 and -1 stay, as 0 does: a mask is exact, and every output may depend on `mask == 1`.

    >>> moved = moved_array(np.random.default_rng(0), np.array([1.5, 1], np.float32))
    >>> abs(moved - [1.5, 1]) * 2**23
    array([2., 0.])
    """
    if array.dtype.kind != "f":
        return array
    with np.errstate(all="ignore"):
        signs = rng.choice([-1, 1], array.shape) * (abs(array) != 1)
        nudged: Array = (array * (1 + np.finfo(array.dtype).eps * signs)).astype(array.dtype)
    return nudged


def approximated_array(
    rng: np.random.Generator, rows: Mapping[str, float], op: str, array: Array
) -> Array:
    """The array, moved up or down by as much as an engine's results of its op are off.

    1 and -1 stay: an error function is exact where it is flat.

    >>> rng = np.random.default_rng(0)
    >>> approximated_array(rng, {"Erf": 0.25}, "Erf", np.array([0.5, 1], np.float32)).tolist()
    [0.75, 1.0]
    >>> approximated_array(rng, {"Erf": 0.25}, "Add", np.ones(1)).tolist()
    [1.0]
    """
    if op not in rows or array.dtype.kind != "f":
        return array
    with np.errstate(all="ignore"):
        signs = rng.choice([-1, 1], array.shape) * (abs(array) != 1)
        moved: Array = (array + rows[op] * signs).astype(array.dtype)
    return moved


def excused(
    answers: Answers,
    expected: Mapping[str, Array],
    moved: Sequence[Mapping[str, Array]],
    effect_of: str,
    times: int = ROUNDING,
) -> Answers:
    """The comparisons; a difference that a measured effect explains is none of the engine's.

    It explains one of at most `times` its size, in at most 16 times as many numbers. An infinite
    effect measures nothing: the root of a number that was moved below 0, say.

    Args:
        answers: of the outputs.
        expected: the outputs by the meaning of the model.
        moved: the same outputs with the effect.
        effect_of: the effect in words, before its size.
        times: how many times the effect a difference may be.
    """
    return {
        name: _explained(answer, expected[name], [one[name] for one in moved], effect_of, times)
        if answer.outcome is Outcome.DIFFERS and answer.elements
        else answer
        for name, answer in answers.items()
    }


def _explained(
    answer: Agreement, meant: Array, moved: Sequence[Array], effect_of: str, times: int
) -> Agreement:
    most = _tolerated(meant) / times
    effects = [compare(meant, like(one, meant.shape), most) for one in moved]
    effect = max(one.error for one in effects)
    if not answer.error <= times * effect < np.inf:
        return answer
    if answer.wrong > _COUNTS * max(one.wrong for one in effects):
        return answer
    return replace(answer, outcome=Outcome.AGREES, detail=f"{effect_of} up to {effect:.2g}")


def is_doubted(expected: Array, actual: Array) -> bool:
    """Whether a number differs by more than is tolerated, relative to its own size."""
    if expected.dtype.kind != "f" or expected.shape != actual.shape:
        return False
    with np.errstate(all="ignore"):
        error = np.abs(actual.astype(np.float64) - expected.astype(np.float64))
        return bool((error > _APPROXIMATED * np.abs(expected) + STEPS_OF_1).any())


def effect_explains(expected: Array, actual: Array, moved: Sequence[Array]) -> bool:
    """Whether each difference of an output is no larger than a measured effect makes.

    Args:
        expected, actual: the output.
        moved: the output with the effect.
    """
    if expected.dtype.kind != "f" or expected.shape != actual.shape:
        return False
    apart = np.abs(actual.astype(np.float64) - expected.astype(np.float64))
    most = _tolerated(expected) * np.maximum(1, np.abs(expected))
    return bool((apart <= most + APPROXIMATION * _effect(expected, moved)).all())


def small_compared(
    answer: Agreement, expected: Array, actual: Array, moved: Sequence[Array]
) -> Agreement:
    """The comparison of an output by the size of each number.

    Args:
        answer: the comparison by the size of the tensor.
        expected, actual: the output.
        moved: the output with every tensor of the model moved by one rounding.
    """
    if answer.outcome is not Outcome.AGREES or not is_doubted(expected, actual):
        return answer
    with np.errstate(all="ignore"):
        a, b = expected.astype(np.float64), actual.astype(np.float64)
        size = np.maximum(np.abs(a), STEPS_OF_1)
        most = _APPROXIMATED * size + STEPS_OF_1 + _ROUNDINGS * _effect(expected, moved)
        wrong = np.abs(a - b) > most
    count = int(wrong.sum())
    if not count:
        return answer
    index = tuple(int(k) for k in np.argwhere(wrong)[0])
    place = ", ".join(map(str, index))
    detail = (
        f"{count} of {a.size} numbers differ: result[{place}] is {b[index]:g}, and the model means "
        f"{a[index]:g}"
    )
    error = float((np.abs(a - b) / size)[wrong].max())
    return replace(answer, outcome=Outcome.DIFFERS, detail=detail, error=error, wrong=count)


def _effect(expected: Array, moved: Sequence[Array]) -> Array:
    """The largest effect on numbers of like size, for each number of an output."""
    with np.errstate(all="ignore"):
        a = expected.astype(np.float64)
        effect = np.max(
            [np.abs(like(one, a.shape).astype(np.float64) - a) for one in moved], axis=0
        )
        size = np.maximum(np.abs(a), STEPS_OF_1)
        group = np.where(np.isfinite(size), np.frexp(size)[1], 0)
        group -= group.min()
        largest = np.zeros(int(group.max(initial=0)) + 1)
        np.maximum.at(largest, group.reshape(-1), np.nan_to_num(effect).reshape(-1))
    effects: Array = largest[group]
    return effects
