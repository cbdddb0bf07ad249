"""OpenVINO's PRelu on slopes that fit and do not, compared with the row.

python -m pytest --override-ini addopts= -m conformance tests/conformance/test_openvino_slopes.py
"""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from zerostride.core.alignment import apply
from zerostride.core.plan import Plan
from zerostride.engines.planning import rule_row
from zerostride.engines.rows_openvino import OPENVINO
from zerostride.engines.supports import typed_rule
from zerostride.errors import BroadcastError, Reason
from zerostride.runtimes.process import running
from zerostride.runtimes.task import Form, ReplyKind, Task

pytestmark = pytest.mark.conformance

#: Slopes that OpenVINO takes although they do not fit, and reads beyond.
UNCHECKED = [
    ("float32", ((3, 4, 2, 3), (2, 1, 1))),
    ("float32", ((2, 3, 1, 3), (2, 1, 1))),
    ("uint8", ((3, 5, 1, 4), (6, 4, 5, 4))),
]


def drawn(rng: random.Random) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Data, and a slope some of whose extents fit."""
    data = [rng.choice((1, 2, 3, 4, 5)) for _ in range(rng.randint(2, 5))]
    slope = [size if rng.random() < 0.6 else rng.choice((1, 2, 3, 5)) for size in data]
    return tuple(data), tuple(slope[rng.randint(0, 2) :])


def predicted(dtype: str, shapes: tuple[tuple[int, ...], ...]) -> Plan | BroadcastError:
    rule = typed_rule(OPENVINO, "prelu", dtype)
    rule = rule or rule_row(None, engine=OPENVINO, op="prelu", to_target=False)
    try:
        return apply(rule, shapes, {}, engine="openvino", op="prelu")
    except BroadcastError as error:
        return error


def test_slopes() -> None:
    rng, seen, wrong = random.Random(8), Counter[str](), []
    cases = [(rng.choice(("float32", "uint8", "int32")), drawn(rng)) for _ in range(200)]
    pytest.importorskip("openvino", reason="openvino is not installed")
    with running("openvino", 60.0) as process:
        for dtype, shapes in UNCHECKED + cases:
            arrays = [np.ones(shape, dtype) for shape in shapes]
            reply = process.ask(Task(Form.OP, "prelu"), arrays, again=False)
            answer = predicted(dtype, shapes)
            if isinstance(answer, BroadcastError) and answer.reason is Reason.OVERRUN:
                seen[f"overrun: {reply.kind}"] += 1
                continue
            refuses = isinstance(answer, BroadcastError) and not answer.silent
            seen["refused" if refuses else "taken"] += 1
            if (reply.kind is ReplyKind.REFUSED) is not refuses:
                wrong.append((dtype, shapes, str(answer)[:99], reply.describe()))
    assert not wrong, "\n".join(map(str, wrong))
    assert seen["overrun: result"] >= len(UNCHECKED)
    assert min(seen["refused"], seen["taken"]) > 10, seen
