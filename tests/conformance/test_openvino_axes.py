"""OpenVINO beyond 12 axes: which shapes end its process, compared with the row.

python -m pytest --override-ini addopts= -m conformance tests/conformance/test_openvino_axes.py
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest

import zerostride as zs
from zerostride.engines.rows_openvino import OPENVINO
from zerostride.ops import OPS
from zerostride.runtimes.process import running
from zerostride.runtimes.task import Form, ReplyKind, Task
from zerostride.sizes import Asker

pytestmark = pytest.mark.conformance

Shapes = tuple[tuple[int, ...], ...]
#: Ops that the plugin computes in each way that the row tells apart, and ops that it compiles.
ASKED = (
    *(("equal", "float32"), ("greater", "float16"), ("less", "float64"), ("less_equal", "uint8")),
    *(("equal", "int32"), ("not_equal", "bool"), ("logical_xor", "bool"), ("where", "float32")),
    *(("where", "int8"), ("subtract", "uint16")),
    *(("subtract", "int8"), ("divide", "int32"), ("fmod", "int64"), ("remainder", "uint16")),
    *(("pow", "int32"), ("maximum", "uint32"), ("squared_difference", "int32")),
    *(("prelu", "int16"), ("add", "float32"), ("multiply", "float16"), ("pow", "float32")),
    *(("bitwise_and", "int32"), ("bitwise_xor", "uint8"), ("bitwise_left_shift", "int64")),
)
#: The rows that this test is the source of.
ROWS = [row for row in OPENVINO.divergences if "test_openvino_axes" in row.source]


def drawn(rng: random.Random, dies: bool) -> tuple[str, str, Shapes]:
    """An op, an element type and shapes that the row says die, or do not."""
    while True:
        op, dtype = rng.choice(ASKED)
        shapes = _shapes(rng, OPS[op].tensors, whole=0 if op == "prelu" else None)
        if not _at_the_edge(shapes) and struck(op, dtype, shapes) is dies:
            return op, dtype, shapes


def _shapes(rng: random.Random, count: int, whole: int | None) -> Shapes:
    """Shapes of one result, which one operand has (`whole`, or any); most extents are 1."""
    rank = rng.choice((13, 13, 14, 15, 17, 20, 21, 22, 24, 25, 26))
    result = [1] * rank
    for axis in {12, rank - 1, *rng.sample(range(rank), rng.randint(0, 5))}:
        result[axis] = rng.choice((1, 2, 3, 4, 5, 7, 8, 9))
    shapes = []
    for _ in range(count):
        shape = [size if rng.random() < 0.7 else 1 for size in result]
        shapes.append(tuple(shape[rng.randint(0, rank) if rng.random() < 0.2 else 0 :]))
    shapes[rng.randrange(count) if whole is None else whole] = tuple(result)
    return tuple(shapes)


def _at_the_edge(shapes: Shapes) -> bool:
    """Whether it depends on memory: many numbers lie behind axis 12, but not enough to be sure."""
    every = [shape for shape in (np.broadcast_shapes(*shapes), *shapes) if len(shape) > 13]
    behind = [(len(shape), int(np.prod(shape[13:]))) for shape in every]
    return any(size >= 256 and (size < 512 or rank > 25) for rank, size in behind)


def struck(op: str, dtype: str, shapes: Shapes) -> bool:
    """Whether one of the rows says that the process ends."""
    plan = zs.plan(*shapes, engine="openvino", op=op)
    rows = [row for row in ROWS if row.concerns(op, dtype) and row.strikes is not None]
    return any(row.strikes(plan, Asker()) for row in rows if row.strikes)


def operands(op: str, dtype: str, shapes: Shapes) -> Iterator[np.ndarray]:
    for k, shape in enumerate(shapes):
        yield np.ones(shape, bool if (op, k) == ("where", 0) else dtype)


@pytest.mark.slow
def test_shapes_that_end_the_process() -> None:
    rng, seen, contrary = random.Random(12), Counter[bool](), []
    pytest.importorskip("openvino", reason="openvino is not installed")
    with running("openvino", 60.0) as process:
        for dies in [True, False] * 60:
            op, dtype, shapes = drawn(rng, dies)
            arrays = list(operands(op, dtype, shapes))
            reply = process.ask(Task(Form.OP, op), arrays, again=False)
            assert reply.kind in (ReplyKind.RESULT, ReplyKind.CRASHED), (op, dtype, reply)
            seen[dies] += 1
            if (reply.kind is ReplyKind.CRASHED) is not dies:
                contrary.append((op, dtype, shapes, reply.describe()))
    assert not contrary
    assert seen == {True: 60, False: 60}
