"""Any input gives a Plan or a readable BroadcastError."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import zerostride as zs
from sampled import few
from zerostride.core.rules import MODES, RULES
from zerostride.engines import ENGINES

GARBAGE: list[Any] = [
    *(None, True, 0, 1, -1, -2, 2.0, float("nan"), 1j, "", "numpy", "explicit", "Add", "prelu"),
    *([], [1], [0, 1], (1,), {}, set(), b"a", range(2), (None,), (1, "a"), ([1],), ...),
    *(np.int64(1), np.float32(1), np.array(1), np.array([1]), np.array([[1]])),
    *(10**30, -(10**30), 2**63 - 1, (2**40, 2**40), (1,) * 70, object(), len, "ncnn", "openvino"),
]
SHAPES: list[Any] = [
    *((), (1,), (2,), (3,), (2, 3), (3, 1), (1, 3), (2, 3, 4), (0,), (0, 1), (2, 0, 3)),
    *((1,) * 5, (2,) * 9, (1,) * 64),
]


def asked(rng: random.Random, **choices: Any) -> dict[str, Any]:
    """Some of the keywords, now and then with garbage."""
    return {
        name: rng.choice(GARBAGE if rng.random() < 0.3 else list(values))
        for name, values in choices.items()
        if rng.random() < 0.35
    }


def ask(rng: random.Random) -> zs.Plan:
    def shape() -> Any:
        return rng.choice(GARBAGE if rng.random() < 0.15 else SHAPES)

    names = {"engine": ENGINES, "op": ("add", "prelu", "where")}
    if rng.random() < 0.6:
        rules = [rule for rule in RULES if not RULES[rule].to_target]
        shapes = [shape() for _ in range(rng.choice((0, 1, 2, 2, 2, 3)))]
        numbers = {"axis": (0, 1, -1), "broadcast": (0, 1)}
        plan = zs.plan(*shapes, **asked(rng, rule=rules, **numbers, **names))
    else:
        axes = {"axes_mapping": [(0,), (0, 1), (1,), ()]}
        plan = zs.plan_to(shape(), shape(), **asked(rng, mode=MODES, **axes, **names))
    if rng.random() < 0.3:
        plan.express(rng.choice([*RULES, *ENGINES, *GARBAGE]), **asked(rng, **names))
    return plan


@pytest.mark.parametrize("seed", few(3, range(8)))
def test_garbage_gives_a_plan_or_a_readable_error(seed: int) -> None:
    rng = random.Random(seed)
    planned = refused = 0
    for _ in range(800):
        try:
            plan = ask(rng)
        except zs.BroadcastError as error:
            refused += bool(str(error)) and isinstance(error.reason, str) and error.hint != ""
            continue
        planned += bool(repr(plan))
    assert planned + refused == 800
    assert planned > 30
    assert refused > 50
