"""Paddle's eager and static modes: empty results, and the axis of ops that are no arithmetic."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest

import zerostride as zs
from zerostride.runtimes.process import Missing, Process, interpreter_for
from zerostride.runtimes.task import Form, Reply, ReplyKind, Task

SECONDS = 60.0
#: An operator of old programs of each kind, its name in the op table, and NumPy's function.
PLACED = {"greater_than": "greater", "equal": "equal"}
UNPLACED = {"logical_and": "logical_and", "bitwise_or": "bitwise_or", "elementwise_fmax": "fmax"}
CASES = tuple(
    (x, y, axis)
    for x, y, axis in itertools.product(
        [(2, 3), (2, 2), (2, 1), (2, 2, 2), (2, 3, 3)],
        [(2,), (3,), (1,), (2, 2), (1, 3)],
        (-1, 0, 1),
    )
    if axis + len(y) <= len(x)
)


@pytest.fixture(scope="module")
def process() -> Iterator[Process]:
    try:
        with Process("paddle", interpreter_for("paddle"), SECONDS) as started:
            yield started
    except Missing as missing:
        pytest.skip(f"Paddle is not installed: {missing}")


def ask(process: Process, op: str, x: tuple[int, ...], y: tuple[int, ...], **more: int) -> Reply:
    rng = np.random.default_rng(1)
    dtype = "bool" if op.startswith("logical") else "int32"
    arrays = [rng.integers(0, 9, shape).astype(dtype) for shape in (x, y)]
    return process.ask(Task(Form.CALL, op, more), arrays)


class Silent(Exception):  # noqa: N818 - an answer
    """Paddle does not refuse, and its result is wrong."""


def planned(x: tuple[int, ...], y: tuple[int, ...], op: str, axis: int = -1) -> zs.Plan | None:
    try:
        return zs.plan(x, y, engine="paddle", op=op, axis=axis)
    except zs.BroadcastError as error:
        if error.silent:
            raise Silent from None
        return None


@pytest.mark.parametrize("mode", ["add", "elementwise_add"])
def test_both_modes_stretch_to_empty_results(mode: str, process: Process) -> None:
    """As PaddlePaddle/Paddle#79365 wants it; `add` is the function of eager mode."""
    shapes = [s for rank in range(3) for s in itertools.product((0, 1, 2), repeat=rank)]
    for x, y in itertools.product(shapes, repeat=2):
        if 0 not in (*x, *y):
            continue
        plan, reply = planned(x, y, "add"), ask(process, mode, x, y)
        assert (reply.kind is ReplyKind.RESULT) == (plan is not None), (x, y, reply.message)
        if plan is not None:
            assert reply.arrays[0].shape == plan.shape, (x, y)


@pytest.mark.parametrize("op", [*PLACED, *UNPLACED])
def test_axis_is_read_by_comparisons_and_by_nothing_else(op: str, process: Process) -> None:
    name = (PLACED | UNPLACED)[op]
    for x, y, axis in CASES:
        try:
            plan = planned(x, y, name, axis)
        except Silent:
            continue
        reply = ask(process, op, x, y, axis=axis)
        assert (reply.kind is ReplyKind.RESULT) == (plan is not None), (op, x, y, axis, plan)
        if plan is None:
            continue
        rng = np.random.default_rng(1)
        dtype = "bool" if op.startswith("logical") else "int32"
        operands = [rng.integers(0, 9, shape).astype(dtype) for shape in (x, y)]
        wide = [a.reshape(s) for a, s in zip(operands, plan.aligned, strict=True)]
        np.testing.assert_array_equal(reply.arrays[0], getattr(np, name)(*wide), str((x, y, axis)))


@pytest.mark.parametrize("op", PLACED)
@pytest.mark.parametrize(
    ("x", "y"), [((), (2, 1)), ((3, 2, 1), ()), ((), (4,)), ((), ()), ((3, 2, 2), (1, 1))]
)
def test_comparison_with_one_element_bounds_its_axis(
    op: str, x: tuple[int, ...], y: tuple[int, ...], process: Process
) -> None:
    for axis in range(-4, 6):
        reply = ask(process, op, x, y, axis=axis)
        plan = planned(x, y, PLACED[op], axis)
        assert (reply.kind is ReplyKind.RESULT) == (plan is not None), axis
