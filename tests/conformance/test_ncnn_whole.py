"""ncnn's quotients and remainders of whole numbers, which its row says are not exact."""

from __future__ import annotations

import numpy as np
import pytest

from zerostride.engines.rows_runtimes import NCNN
from zerostride.engines.supports import dtype_limit
from zerostride.errors import Reason
from zerostride.runtimes.process import running
from zerostride.runtimes.task import Form, Task

pytestmark = pytest.mark.conformance

FUNCTIONS = {
    "remainder": np.mod,
    "fmod": np.fmod,
    "floor_divide": np.floor_divide,
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
}


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_small_whole_numbers_are_right_or_a_row_says_not(dtype: str) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.integers(-100, 100, 400).astype(dtype), rng.integers(1, 10, 400).astype(dtype)
    pytest.importorskip("ncnn", reason="ncnn is not installed")
    with running("ncnn", 60.0) as process:
        for op, function in FUNCTIONS.items():
            reply = process.ask(Task(Form.OP, op), [x, y])
            right = np.array_equal(reply.arrays[0], function(x, y))
            limit = dtype_limit(NCNN, op, dtype)
            wrong = limit is not None and limit.narrows is None
            assert right is not wrong, op
            if wrong and limit is not None:
                assert limit.effect is Reason.WRONG_RESULT
