"""The audit's verdicts on ncnn, op for op, compared with the real ncnn.

Generated element-wise nodes are audited and then carried over by hand: a net of one BinaryOp, its
operands without the batch axis as the audit says. `same` and `same_here` must mean the model's
numbers, `different` must mean others, or a crash; a counter-example must be one there too.
"""

from __future__ import annotations

import os
import random
import warnings
from collections import Counter
from typing import Any

import numpy as np
import pytest
from child import Child

from zerostride.core.plan import Plan
from zerostride.engines import find_engine
from zerostride.models.audit.run import audit_graph
from zerostride.models.findings import Finding, Verdict
from zerostride.models.ir.graph import Graph, Node, Value

pytestmark = pytest.mark.conformance

SAMPLE = 600
OPS = {"Add": (0, np.add), "Sub": (1, np.subtract), "Mul": (2, np.multiply), "Div": (3, np.divide)}


def judged(op: str, shapes: tuple[tuple[int, ...], ...], constant: bool) -> Finding:
    """The finding of a node of two operands, the first an input, the second perhaps a weight."""
    x, y = Value("x", shapes[0]), Value("y", shapes[1], constant)
    result = Value("z", None)
    node = Node("node", op, "", 13, (x, y), (result,))
    graph = Graph("made", "onnx", 13, (x,) if constant else (x, y), (node,))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # another release than the measured one
        return audit_graph(graph, find_engine("ncnn")).findings[0]


def draw(rng: random.Random) -> tuple[str, tuple[tuple[int, ...], ...], bool]:
    """Shapes that NumPy combines, few extents, so that some are equal by chance."""
    rank = rng.choice([1, 2, 3, 3, 4, 4, 5])
    full = [rng.choice([2, 3, 3, 4]) for _ in range(rank)]
    full[0] = rng.choice([1, 1, full[0]]) if rank > 1 else full[0]
    shapes = []
    for length in (rank, rng.randint(0, rank)):
        shapes.append(tuple(rng.choice([1, n, n, n]) for n in full[rank - length :]))
    if rng.random() < 0.3:
        shapes.reverse()
    return rng.choice(sorted(OPS)), tuple(shapes), rng.random() < 0.6


def operands(op: str, shapes: tuple[tuple[int, ...], ...]) -> list[Any]:
    """No two numbers alike, none 0."""
    start, arrays = 1.0, []
    for shape in shapes:
        count = int(np.prod(shape))
        arrays.append((np.arange(count) + start).astype(np.float32).reshape(shape))
        start += count + 0.5
    return arrays


def run(child: Child, op: str, arrays: list[Any], shapes: tuple[tuple[int, ...], ...]) -> Any:
    """ncnn's numbers for the operands in the shapes that it is given, or None where it fails."""
    code = OPS[op][0]
    param = f"7767517\n3 3\nInput a 0 1 a\nInput b 0 1 b\nBinaryOp op 2 1 a b out0 0={code}\n"
    inputs = {
        name: array.reshape(shape) for name, array, shape in zip("ab", arrays, shapes, strict=True)
    }
    word, got = child.ask({"op": "net", "param": param, "bin": b"", "inputs": inputs})
    return got if word == "result" else None


def same_numbers(got: Any, wanted: Any) -> bool:
    """The same numbers in the same shape, which may lack a batch axis."""
    shapes = {wanted.shape or (1,), wanted.shape[1:] if wanted.shape[:1] == (1,) else wanted.shape}
    return (
        got is not None
        and got.shape in shapes | {(1,)}
        and got.size == wanted.size
        and bool(np.allclose(got.ravel(), wanted.ravel(), rtol=1e-4))
    )


def given(finding: Finding) -> tuple[tuple[int, ...], ...] | None:
    """The operands' shapes on ncnn, as the audit has them; None where it does not get that far."""
    target = finding.target
    if isinstance(target, Plan):
        return target.operands
    return target.shapes if target is not None else None


def test_verdicts_match_ncnn(ncnn_ops: Child) -> None:
    count = int(os.environ.get("ZEROSTRIDE_NCNN", SAMPLE))
    rng = random.Random(count)
    table: Counter[tuple[str, str, bool]] = Counter()
    wrong = []
    for _ in range(count):
        op, shapes, constant = draw(rng)
        finding = judged(op, shapes, constant)
        there = given(finding)
        if there is None or finding.verdict is Verdict.REFUSED:
            table[finding.verdict, finding.reason, False] += 1
            continue
        arrays = operands(op, shapes)
        wanted = OPS[op][1](*arrays)
        got = run(ncnn_ops, op, arrays, there)
        equal = same_numbers(got, wanted)
        if finding.verdict is Verdict.SAME and isinstance(finding.target, Plan):
            assert got.shape == finding.target.shape
        table[finding.verdict, finding.reason, equal] += 1
        if equal != (finding.verdict in (Verdict.SAME, Verdict.SAME_HERE)):
            wrong.append((op, shapes, constant, finding.verdict, finding.reason))
    print(f"\n{count} nodes: {dict(table)}")
    assert wrong == []
    assert {verdict for verdict, _, _ in table} >= {"same", "same_here", "different", "refused"}


def test_fixes_work_on_ncnn(ncnn_ops: Child) -> None:
    rng = random.Random(1)
    fixed = 0
    for _ in range(SAMPLE):
        op, shapes, constant = draw(rng)
        finding = judged(op, shapes, constant)
        fix = finding.fix
        if fix is None or fix.swapped:
            continue
        arrays = operands(op, shapes)
        wanted = OPS[op][1](*arrays)
        if fix.merged_axes:  # the result is to be reshaped back
            wanted = wanted.reshape(fix.result_shape)
        assert same_numbers(run(ncnn_ops, op, arrays, fix.shapes), wanted), (op, shapes, fix)
        fixed += 1
    assert fixed > 50


def test_counter_examples_differ_on_ncnn(ncnn_ops: Child) -> None:
    rng = random.Random(2)
    shown = 0
    for _ in range(SAMPLE):
        op, shapes, constant = draw(rng)
        finding = judged(op, shapes, constant)
        witness = finding.witness
        if witness is None or finding.reason == "batch_broadcast":
            continue  # the latter's shapes have the batch axis: recomputed in the light tests
        arrays = operands(op, witness.shapes)
        wanted = OPS[op][1](*arrays)
        assert not same_numbers(run(ncnn_ops, op, arrays, witness.shapes), wanted), (op, shapes)
        shown += 1
    assert shown > 50


def test_comparison_can_fail() -> None:
    right = np.arange(6.0).reshape(2, 3)
    assert same_numbers(right, right)
    assert not same_numbers(right + 1, right)
    assert not same_numbers(right[:1], right)
    assert not same_numbers(right.reshape(3, 2), right)
    assert not same_numbers(None, right)
