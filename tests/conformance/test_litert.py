"""LiteRT's limits by dtype and rank on the real runtime, compared with `supports` and plans.

    python -m pytest --override-ini addopts= -m conformance tests/conformance/test_litert.py

Alignment by value is `zerostride.runtimes.probe`'s; here is what its catalogue does not draw.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import zerostride as zs
from zerostride.core.alignment import apply
from zerostride.engines.supports import dtype_limit
from zerostride.engines.table import find_engine
from zerostride.errors import Reason
from zerostride.models.transport.compound_engines import CARRIERS
from zerostride.models.transport.element_types import UNFIT
from zerostride.ops import OPS
from zerostride.runtimes.process import interpreter_for

pytestmark = pytest.mark.conformance

WORKER = Path(__file__).with_name("litert_worker.py")
ROW = find_engine("litert")
DTYPES = (
    *("float16", "float32", "float64", "int8", "uint8", "int16", "uint16"),
    *("int32", "uint32", "int64", "uint64", "bool"),
)
#: The op as LiteRT calls it, and by its canonical name.
NAMES = {str(op.names["litert"][0]): op.name for op in OPS.values() if "litert" in op.names}
#: What the row says of a dtype, and what is seen then.
SEEN = {Reason.DTYPE: "refused", Reason.CRASH: "died", Reason.WRONG_RESULT: "wrong"}

#: Ops that have float16 in the default delegate alone, which the row says beside its table.
BY_XNNPACK = ("SUB", "DIV", "SQUARED_DIFFERENCE")

Question = tuple[str, Sequence[tuple[int, ...]], str, dict[str, Any]]


def ask(questions: Sequence[Question]) -> list[str]:
    """What the installed release does with each; a process each."""
    done = subprocess.run(
        [interpreter_for("litert"), str(WORKER)],
        input=json.dumps(questions),
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
        env={"PYTHONPATH": ":".join(filter(None, sys.path)), "PATH": "/usr/bin:/bin"},
    )
    document = json.loads(done.stdout)
    if "missing" in document:
        pytest.skip(f"LiteRT is not installed: {document['missing']}")
    assert document["version"].startswith(ROW.release + ".")
    return list(document["answers"])


def shapes_for(op: str) -> list[tuple[tuple[int, ...], ...]]:
    """Equal shapes, a suffix, and both ways; what the op takes of them."""
    pairs = [((2, 3, 2), (2, 3, 2)), ((2, 3, 2), (3, 2)), ((2, 1, 2), (3, 1))]
    if op == "ATAN2":
        return pairs[:1]
    if op == "PRELU":
        pairs[2] = ((2, 3, 2), (3, 1))
    return [(*pair, pair[0]) if op == "SELECT_V2" else pair for pair in pairs]


@pytest.mark.slow
@pytest.mark.parametrize("delegate", ["default", "none"])
def test_every_op_matches_litert_on_every_dtype(delegate: str) -> None:
    attributes = {} if delegate == "default" else {"delegate": "none"}
    questions: list[Question] = [
        (op, shapes, dtype, attributes)
        for op in NAMES
        for dtype in DTYPES
        for shapes in shapes_for(op)[: None if delegate == "default" else 1]
    ]
    wrong = []
    seen: Counter[str] = Counter()
    for (op, shapes, dtype, _), answer in zip(questions, ask(questions), strict=True):
        limit = dtype_limit(ROW, NAMES[op], dtype)
        wanted = "right" if limit is None else SEEN[Reason(limit.effect)]
        if delegate == "none" and dtype == "float16" and op in BY_XNNPACK:
            wanted = "refused"
        seen[answer] += 1
        if answer != wanted:
            wrong.append(f"{op} of {dtype} on {shapes}: {answer}, the row says {wanted}")
    assert not wrong, "\n".join(wrong)
    assert set(seen) == {"right", "refused", "died", "wrong"}
    assert sum(seen.values()) == len(questions)


def patterns(rank: int) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Ways to stretch at a rank, from none to all axes in turn."""
    full = (2, 3, 2, 2, 2, 3, 2, 2, 2, 2)[:rank]
    turns = tuple(size if axis % 2 else 1 for axis, size in enumerate(full))
    others = tuple(1 if axis % 2 else size for axis, size in enumerate(full))
    return [(full, full), (full, full[1:]), (full, ()), (full, turns), (turns, others)]


@pytest.mark.slow
def test_every_op_matches_litert_on_every_rank() -> None:
    questions: list[Question] = []
    for op in NAMES:
        dtype = "bool" if op.startswith("LOGICAL") else "float32"
        dtype = "int32" if op in ("BITWISE_XOR", "RIGHT_SHIFT") else dtype
        for rank in range(1, 11):
            for pair in patterns(rank):
                if op == "POW" and pair[1] == ():
                    continue  # whole numbers as exponents know no limit, others do
                shapes = (*pair, pair[0]) if op == "SELECT_V2" else pair
                questions.append((op, shapes, dtype, {}))
    wrong = []
    seen: Counter[tuple[str, bool]] = Counter()
    for (op, shapes, _, _), answer in zip(questions, ask(questions), strict=True):
        try:
            zs.plan(*shapes, engine="litert", op=NAMES[op])
            wanted = {"right"}
        except zs.BroadcastError as error:
            wanted = {"died", "wrong"} if error.silent else {"refused"}
        seen[answer, len(shapes[0]) > 8] += 1
        if answer not in wanted:
            wrong.append(f"{op} on {shapes}: {answer}, the row says {wanted}")
    assert not wrong, "\n".join(wrong)
    assert seen["died", True] > 100
    assert not seen["died", False]


def test_maximum_of_int8_matches_litert_beyond_8_axes() -> None:
    """Of all types int8 alone merges axes into five loops."""
    pairs = [pair for rank in (8, 9, 10) for pair in patterns(rank)]
    for rank in (9, 10):
        ones = (1,) * (rank - 2)
        pairs += [((2, *ones, 3), pair) for pair in ((), (1,), (3,), (2, *ones, 1))]
        pairs += [((2, *ones, 1), (*ones, 3)), ((1,) * rank, (1,) * (rank - 1))]
    questions: list[Question] = [
        (op, pair, dtype, {})
        for op in ("MAXIMUM", "MINIMUM")
        for dtype in ("int8", "uint8", "int16")
        for pair in pairs
    ]
    seen: Counter[str] = Counter()
    for (op, pair, dtype, _), answer in zip(questions, ask(questions), strict=True):
        carried = zs.supports("litert", op, dtype, pair).ok
        seen[f"{dtype} {answer}"] += 1
        assert answer == ("right" if carried else "died"), (op, dtype, pair)
    assert seen["int8 right"] > seen["uint8 right"]
    assert seen["int8 died"]


def test_pairs_refused_by_tensorflow_match_litert() -> None:
    """tensorflow#14924, #17762 and #1519."""
    pairs = [
        ((10, 6, 6, 4, 4, 1), (10, 1, 6, 1, 4, 5)),
        ((10, 32, 1, 4, 1, 1), (10, 1, 32, 1, 4, 4)),
        ((1, 2, 1, 1, 2, 2, 2, 2), (2, 2, 2, 2, 1, 2, 2, 1)),
        ((2, 2, 2, 2, 1, 2), (1, 2, 1, 2, 2, 2)),
    ]
    assert ask([("MUL", pair, "float32", {}) for pair in pairs]) == ["right"] * len(pairs)
    assert all(zs.supports("litert", "MUL", "float32", pair) for pair in pairs)


BATCHES = [
    ((), (2,)),
    ((2,), (1,)),
    ((2, 1), (1, 3)),
    ((2, 1), (3,)),
    ((2, 3), (1,)),
    ((2, 1, 2), (1, 3, 1)),
    ((2, 3, 2), (2, 3, 2)),
    ((2,), (3,)),
    ((0,), (1,)),
    ((2, 1, 2, 1), (1, 3, 1, 2)),
    ((2, 2, 2, 2), (2, 2, 2, 2)),
    ((2, 1, 2, 1, 2), (2,)),
]


def test_batches_of_a_product_match_litert() -> None:
    """BATCH_MATMUL beside `compound_engines`; the two matrices are left out of the plan."""
    (row,) = CARRIERS["MatMul"]["litert"]
    questions: list[Question] = [
        ("BATCH_MATMUL", ((*a, 2, 3), (*b, 3, 4)), "float32", attributes)
        for a, b in BATCHES
        for attributes in ({}, {"delegate": "none"})
    ]
    answers = ask(questions)
    for (a, b), default, plain in zip(BATCHES, answers[::2], answers[1::2], strict=True):
        try:
            apply(row.rule, (a, b), {})
        except zs.BroadcastError:
            assert default == "refused", (a, b)
        else:
            # The kernel without XNNPACK takes no more than 5 axes.
            limited = max(len(a), len(b)) > 3
            assert (default, plain) == ("right", "refused" if limited else "right"), (a, b)


def test_element_types_of_a_product_match_litert() -> None:
    (row,) = CARRIERS["MatMul"]["litert"]
    assert row.types is not None
    dtypes = DTYPES[:-1]  # ONNX multiplies no matrices of truth values
    answers = ask([("BATCH_MATMUL", ((2, 3), (3, 4)), dtype, {}) for dtype in dtypes])
    for dtype, answer in zip(dtypes, answers, strict=True):
        wrong = dtype in UNFIT["litert", "MatMul"].dtypes
        refused = row.types((dtype, dtype)) is not None
        assert answer == ("refused" if refused else "wrong" if wrong else "right"), dtype
    assert set(answers) == {"right", "wrong", "refused"}


def test_comparison_finds_a_wrong_result() -> None:
    assert ask([("ATAN2", ((2, 3), (2, 1)), "float32", {})]) == ["wrong"]
    assert ask([("ADD", ((2, 3), (4,)), "float32", {})]) == ["refused"]
