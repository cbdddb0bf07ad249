"""The shapes of a rewrite's steps compared with NumPy's."""

from __future__ import annotations

import math

import numpy as np
import pytest

from zerostride.models.ir.moves import at_rank, filled, inserted, moved, removed, repeats, with_kept
from zerostride.models.ir.rewrite import Input, RewriteStep


def test_moves_are_numpy_s() -> None:
    rng = np.random.default_rng(0)
    for _ in range(300):
        shape = tuple(int(n) for n in rng.integers(1, 4, rng.integers(0, 5)))
        data = np.zeros(shape)
        rank = len(shape) + int(rng.integers(0, 3))
        axes = tuple(sorted(int(a) for a in rng.permutation(rank)[: rank - len(shape)]))
        wide = np.expand_dims(data, axes) if axes else data
        assert inserted(shape, axes) == wide.shape
        assert removed(wide.shape, axes) == shape
        target = list(rng.permutation(shape)) if shape else []
        if target:
            target[int(rng.integers(0, len(target)))] = -1
        assert filled([int(n) for n in target], shape) == data.reshape(target).shape
        assert at_rank(shape, 6) == np.broadcast_shapes(shape, (1,) * 6)
        goal = tuple(
            int(n) if size == 1 else size
            for n, size in zip(rng.integers(1, 4, len(shape)), shape, strict=True)
        )
        counts = repeats(shape, goal)
        assert counts is not None
        assert np.tile(data, counts).shape == goal


def test_targets_that_do_not_fit() -> None:
    assert filled((4, -1), (2, 3)) is None
    assert filled((-1, -1), (2, 3)) is None
    assert filled((0, -1), (2, 3)) is None
    assert filled((5,), (2, 3)) is None
    assert filled((5, -1), None) == (5, None)
    assert repeats((2,), (3,)) is None
    assert repeats((2,), (1, 2)) is None
    assert with_kept((0, 7, 0), (2, 3)) == (2, 7, 0)


@pytest.mark.parametrize(
    ("step", "shape", "result"),
    [
        (RewriteStep("expand", (Input(0),), shape=(4, 3)), (3,), (4, 3)),
        (RewriteStep("unsqueeze", (Input(0),), axes=(0,)), None, None),
        (RewriteStep("unsqueeze", (Input(0),), axes=(0, 2)), (3, None), (1, 3, 1, None)),
        (RewriteStep("squeeze", (Input(0),), axes=(1,)), (3, None), (3,)),
        (RewriteStep("reshape", (Input(0),), shape=(2, -1)), (3, 4), (2, 6)),
    ],
)
def test_steps(step: RewriteStep, shape: object, result: object) -> None:
    assert moved(step, shape) == result  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("step", "shape"),
    [
        (RewriteStep("squeeze", (Input(0),), axes=(0,)), (3, 1)),
        (RewriteStep("squeeze", (Input(0),), axes=(2,)), (3, 1)),
        (RewriteStep("unsqueeze", (Input(0),), axes=(2, 2)), (3, 1)),
        (RewriteStep("unsqueeze", (Input(0),), axes=(3,)), (3,)),
        (RewriteStep("reshape", (Input(0),), shape=(5, -1)), (3, 4)),
    ],
)
def test_steps_that_do_not_fit(step: RewriteStep, shape: tuple[int, ...]) -> None:
    assert math.prod(shape)
    with pytest.raises(ValueError, match=r"axes|elements"):
        moved(step, shape)
