"""Garbage for the planner: the result is a Plan, or a BroadcastError with the reason.

    python tests/fuzz/fuzz_plan.py --cases 200000 --seed 0

Shapes of wrong types and sizes, rules, engines, ops and attributes that do not exist or do not fit,
names with control characters; into plan, plan_to, compare and every method of a Plan. A case fails
if anything but a BroadcastError, or a TypeError of a wrong call, comes out, if a message or drawing
could act on a terminal, or if a plan breaks its own promises.
"""

from __future__ import annotations

import pickle
import random
import sys
import xml.etree.ElementTree as ElementTree
from typing import Any

import harness
import numpy as np

import zerostride as zs
from zerostride.core.rules import MODES, RULES
from zerostride.derive.code import TARGETS
from zerostride.engines import ENGINES
from zerostride.errors import Reason
from zerostride.ops import OPS
from zerostride.sizes import elements

SIZES = (0, 1, 1, 1, 2, 2, 3, 4, 5, 5, 8, 2**31, 2**62, 2**63 - 1)
ODD_SIZES = (
    *(-1, -(2**63), 2**63, 2**64, 10**400, 2.0, 2.5, float("nan"), float("inf"), True, None, "3"),
    *(b"3", (2,), [2], np.int64(3), np.uint8(2), np.float32(2), np.bool_(True), np.array(3), 3j),
    *(np.array([3]), object(), type, Ellipsis),
)
ODD_SHAPES = (
    *(None, 3, 3.0, "2,3", b"23", {2, 3}, {2: 3}, object(), iter((2, 3)), range(3), range(10**9)),
    *(np.array([2, 3]), np.array(3), np.array([[2]]), np.array([2.0]), np.zeros(0), type, Ellipsis),
    *((1,) * 65, (1,) * 64, (2,) * 64, (1,) * 100_000, bytearray(b"\x02\x03")),
)
NAMES = ("", "x", "a b", "\x1b[31m", "two\nlines", "\x00", "<script>&", "ü", "n" * 5000, "\udcff")
ODD = (
    None,
    0,
    1,
    -1,
    2,
    64,
    -64,
    2**63,
    1.0,
    "1",
    "",
    True,
    (),
    [],
    (0,),
    [0, 1],
    object(),
    "numpy",
)


class Fuzz:
    """One case: a random call, and all that can be made of its answer."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        # Without calls that are nearly right, few would get far.
        self.garbage = rng.choice((0.0, 0.0, 0.0, 0.02, 0.3))

    def odd(self) -> bool:
        """Whether the next value is garbage."""
        return self.rng.random() < self.garbage

    def size(self) -> Any:
        return self.rng.choice(ODD_SIZES if self.odd() else SIZES)

    def shape(self) -> Any:
        if self.odd():
            return self.rng.choice(ODD_SHAPES)
        rank = self.rng.choice((0, 1, 1, 2, 2, 2, 3, 3, 4, 5, 9, 64))
        sizes = [self.size() for _ in range(rank)]
        return self.rng.choice((tuple, tuple, tuple, list))(sizes)

    def shapes(self) -> list[Any]:
        """Some that have nothing to do with one another, and some that nearly fit."""
        first = self.shape()
        if self.rng.random() < 0.5 and isinstance(first, tuple | list) and len(first):
            start = self.rng.randrange(len(first))
            part = [1 if self.rng.random() < 0.3 else size for size in first[start:]]
            return [first, tuple(part[: self.rng.randint(0, len(part))])]
        return [first, *(self.shape() for _ in range(self.rng.choice((0, 1, 1, 1, 1, 2, 16, 40))))]

    def one_of(self, known: Any, chance: float = 0.5) -> Any:
        """None or a known name, sometimes neither."""
        if self.odd():
            return self.rng.choice((*ODD, *NAMES))
        return self.rng.choice(list(known)) if self.rng.random() < chance else None

    def axis(self, rule: Any = None) -> Any:
        """An axis, mostly where the rule has one."""
        if self.odd():
            return self.rng.choice(ODD)
        has = rule in ("pdpd", "paddle", "onnx6")
        return self.rng.choice((-1, 0, 1, 2)) if has and self.rng.random() < 0.6 else None

    def names(self) -> list[Any]:
        return [self.rng.choice((*NAMES, 3, None)) for _ in range(self.rng.choice((0, 1, 2, 3)))]

    def call(self) -> Any:
        """The call that starts the case."""
        match self.rng.randrange(10):
            case 0:
                return zs.compare(
                    *self.shapes(),
                    reference=self.one_of(RULES, 0.3) or "numpy",
                    axis=self.axis("pdpd"),
                )
            case 1 | 2:
                target, data = (*self.shapes(), (2,))[:2]
                mode = self.one_of(MODES)
                axes = self.rng.choice(((0,), [1], [0, 1], [1, 2], self.shape()))
                return zs.plan_to(
                    data,
                    target,
                    mode,
                    axes if mode == "explicit" or self.odd() else None,
                    self.one_of(ENGINES, 0.2),
                    self.one_of(OPS, 0.05),
                )
            case _:
                rule = self.one_of(RULES)
                given = self.rng.choice(ODD) if self.odd() else 1 if rule == "onnx6" else None
                return zs.plan(
                    *self.shapes(),
                    rule=rule,
                    axis=self.axis(rule),
                    broadcast=given,
                    engine=self.one_of(ENGINES, 0.3 if rule is None else 0.1),
                    op=self.one_of(OPS, 0.1),
                )

    def use(self, plan: zs.Plan) -> None:
        """Everything that a plan can do."""
        promises(plan)
        printed(str(plan))
        names = self.names()
        printed(plan.explain(names))
        ElementTree.fromstring(plan.svg(names).encode("utf-8", "backslashreplace"))
        assert pickle.loads(pickle.dumps(plan)) == plan
        for action in self.rng.sample((self.express, self.code, self.data), 2):
            try:
                action(plan)
            except zs.BroadcastError as error:
                refusal(error)

    def express(self, plan: zs.Plan) -> None:
        made = plan.express(
            self.one_of((*RULES, *ENGINES), 1.0) or "ncnn",
            engine=self.one_of(ENGINES, 0.1),
            op=self.one_of(OPS, 0.1),
        )
        printed(made.describe(self.names()))
        made.as_dict()

    def code(self, plan: zs.Plan) -> None:
        plan.code(self.one_of(TARGETS, 1.0) or "numpy", self.names())

    def data(self, plan: zs.Plan) -> None:
        if sum(map(elements, plan.operands)) + elements(plan.shape) < 10_000:
            views = plan.views(*(np.zeros(shape, np.int8) for shape in plan.operands))
            assert all(view.shape == plan.shape for view in views)
            operand = self.rng.randrange(len(plan.operands))
            back = plan.unbroadcast(np.ones(plan.shape, np.int8), operand)
            assert back.sum() == elements(plan.shape)
        plan.strides(0, self.rng.choice(((), (8,), (8, 4), (1,) * len(plan.operands[0]))))


def promises(plan: zs.Plan) -> None:
    """What every Plan says of itself."""
    assert all(type(size) is int for shape in (plan.shape, *plan.operands) for size in shape)
    for aligned, stretched in zip(plan.aligned, plan.stretched, strict=True):
        assert len(aligned) == len(plan.shape)
        for axis, (size, full) in enumerate(zip(aligned, plan.shape, strict=True)):
            assert (size == 1 and full != 1) if axis in stretched else size == full


def printed(words: str) -> None:
    """Nothing in it may act on a terminal, and it has an end."""
    bad = [c for c in words if c != "\n" and not c.isprintable()]
    assert not bad, f"{bad[0]!r} would reach the terminal"
    assert len(words) < 200_000, f"{len(words)} characters"


def refusal(error: zs.BroadcastError) -> None:
    """An error that says what is wrong."""
    printed(str(error))
    assert error.reason in Reason
    assert error.detail
    assert len(str(error)) < 60_000, "a message without end"
    error.hint  # noqa: B018 - found, and planned, when first looked at
    pickle.loads(pickle.dumps(error))


def run_case(seed: int, number: int) -> str:
    """How a case ended."""
    fuzz = Fuzz(random.Random(f"{seed}/{number}"))
    try:
        answer = fuzz.call()
        if isinstance(answer, zs.Plan):
            fuzz.use(answer)
        else:
            printed(str(answer))
            answer.to_json()
        return type(answer).__name__
    except zs.BroadcastError as error:
        try:
            refusal(error)
        except Exception as fault:  # noqa: BLE001 - what slips through is what is looked for
            return harness.slipped(fault)
        return f"{type(error).__name__} {error.reason}"
    except Exception as error:  # noqa: BLE001 - as above
        return harness.slipped(error)


if __name__ == "__main__":
    sys.exit(harness.main(__file__, run_case, __doc__.splitlines()[0]))
