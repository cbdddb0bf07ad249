"""Outputs compared by what rounding does to them, and explained by the tensors inside."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from zerostride.models.bisection import Bisection, Stage
from zerostride.models.findings import Check, Outcome
from zerostride.models.judging import Difference, Judged
from zerostride.runtimes.verify.inside import _explained, _right
from zerostride.runtimes.verify.rounding import compared, effect_explains, small_compared

#: Boxes of hundreds, and scores of a hundred-thousandth.
MEANT = np.array([[320.0, 17.5], [1e-5, 4e-5]], np.float32)
ROUNDED = [MEANT * (1 + sign * np.float32(2**-23)) for sign in (-1, 1)]


def outcome(actual: np.ndarray, moved: list[np.ndarray] = ROUNDED) -> Outcome:
    answer = compared(MEANT, actual, "onnxruntime")
    return small_compared(answer, MEANT, actual, moved).outcome


def test_small_numbers_are_compared_by_their_own_size() -> None:
    """By the size of the tensor, exchanged scores are the same to one part in ten million."""
    exchanged = MEANT[:, ::-1].copy()
    exchanged[0] = MEANT[0]
    assert compared(MEANT, exchanged, "onnxruntime").outcome is Outcome.AGREES
    assert outcome(exchanged) is Outcome.DIFFERS
    assert outcome(MEANT) is Outcome.AGREES
    # What rounding does to numbers of that size is no fault.
    restless = [MEANT + np.array([[0, 0], [1e-6, 1e-6]], np.float32)]
    assert outcome(exchanged, restless) is Outcome.AGREES


def test_an_approximated_function_is_no_fault() -> None:
    """Engines compute the small results of a Sigmoid as a difference to 1."""
    assert outcome(MEANT + np.array([[0, 0], [4e-7, 0]], np.float32)) is Outcome.AGREES
    assert outcome(MEANT + np.array([[0, 0], [4e-6, 0]], np.float32)) is Outcome.DIFFERS


def test_probabilities_of_many_classes_have_a_tolerance_of_their_size() -> None:
    meant = np.full(6000, 1 / 6000, np.float32)
    wrong = meant.copy()
    wrong[:2] *= (1.5, 0.5)
    assert compared(meant, wrong, "onnxruntime").outcome is Outcome.DIFFERS


OUTPUT = Check("", "y", (("y", (4,)),), Outcome.DIFFERS, "2 of 4 numbers differ", 4, 0.008)


@pytest.mark.parametrize(
    ("check", "expected"),
    [
        (OUTPUT, Outcome.AGREES),
        (replace(OUTPUT, error=0.1), Outcome.DIFFERS),  # more than small differences add up to
        (replace(OUTPUT, elements=0), Outcome.DIFFERS),  # another shape
        (replace(OUTPUT, outcome=Outcome.REFUSED), Outcome.REFUSED),
    ],
)
def test_small_differences_inside_explain_a_small_one(check: Check, expected: Outcome) -> None:
    assert _explained(check).outcome is expected


def test_an_output_that_was_not_judged_is_not_explained() -> None:
    right = Stage("y", "n", "Add", "y", judged=Judged(Difference.NONE))
    wrong = Stage("t", "m", "Add", "t", judged=Judged(Difference.NUMBERS))
    assert _right(Bisection((right,), (), ())) == {"y"}
    assert _right(Bisection((replace(right, judged=None),), (), ())) == set()
    assert _right(Bisection((right, wrong), (), ())) == set()


def test_an_approximation_explains_no_more_than_it_makes() -> None:
    moved = [MEANT + np.array([[0, 0], [1e-3, 1e-3]], np.float32)]
    for error, explained in ((1.5e-3, True), (4e-3, False)):
        actual = MEANT + np.array([[0, 0], [error, 0]], np.float32)
        assert effect_explains(MEANT, actual, moved) is explained
    large = _explained(replace(OUTPUT, error=0.2), "mnn approximates Gelu by up to 0.00048")
    assert (large.outcome, large.detail[:16]) == (Outcome.AGREES, "mnn approximates")
