"""Audits of open sizes, compared with the real ncnn and OpenVINO.

A node of two operands with symbols in their shapes is audited. Then numbers are put in: where the
finding's condition does not hold the engine must give the model's numbers, where it holds others
(or refuse, or crash). Counter-examples are run as they stand, and fixes at random sizes.
"""

from __future__ import annotations

import os
import random
import warnings
from collections import Counter
from typing import Any

import numpy as np
import onnx
import openvino_runs
import pytest
from child import Child
from onnx import TensorProto, helper
from test_audit_ncnn import OPS, operands, run, same_numbers

import zerostride as zs
from zerostride.derive.regions import real_shapes
from zerostride.engines import find_engine
from zerostride.models.audit.run import audit_graph
from zerostride.models.findings import Finding, Verdict
from zerostride.models.ir.graph import Graph, Node, Value
from zerostride.models.options import ModelOptions
from zerostride.sizes.dim import Symbol, dim

pytestmark = pytest.mark.conformance

SAMPLE = 120
#: Sizes put in for each finding.
EACH = 6
BAD = (Verdict.SAME_HERE, Verdict.DIFFERENT)


def judged(op: str, shapes: Any, engine: str, constant: bool = False) -> Finding:
    x, y = Value("x", shapes[0]), Value("y", shapes[1], constant)
    node = Node("node", op, "", 17, (x, y), (Value("z", None),))
    graph = Graph("made", "onnx", 17, (x,) if constant else (x, y), (node,))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # another release than the measured one
        return audit_graph(graph, find_engine(engine), ModelOptions("none", -1)).findings[0]


def draw(rng: random.Random, ranks: list[int]) -> tuple[Any, Any]:
    """Shapes that some numbers let NumPy combine; none starts with a 1, which were a batch."""
    rank = rng.choice(ranks)
    full = [rng.choice(["N", "C", "H", "W", 3, "2*H"]) for _ in range(rank)]
    low = [rng.choice([size, size, 1, "C"]) for size in full[rank - rng.randint(0, rank) :]]
    if low and rng.random() < 0.9 and low[0] == 1 and len(low) == rank:
        low[0] = full[0]
    return tuple(full), tuple(low)


def numbers(finding: Finding, rng: random.Random) -> dict[Symbol, int]:
    """Random sizes from 1 for the symbols, few, so that some are equal."""
    shapes = [shape for _, shape in finding.operands if shape is not None]
    symbols = dict.fromkeys(s for shape in shapes for size in shape for s in dim(size).symbols)
    return {symbol: rng.choice([1, 2, 2, 3]) for symbol in symbols}


def bound(finding: Finding, values: dict[Symbol, int]) -> Any:
    """The operands' shapes for these sizes, if the model broadcasts there."""
    shapes = real_shapes([shape or () for _, shape in finding.operands], values)
    try:
        zs.plan(*shapes)
    except zs.BroadcastError:
        return None
    return shapes


def expected(finding: Finding, values: dict[Symbol, int]) -> bool:
    """Whether the finding says that the target means the same for these sizes."""
    if finding.when is None:
        return finding.verdict is not Verdict.DIFFERENT
    return not finding.when.evaluate(values)


def test_conditions_match_the_sizes_at_which_ncnn_differs(ncnn_ops: Child) -> None:
    count = int(os.environ.get("ZEROSTRIDE_NCNN", SAMPLE))
    rng = random.Random(count)
    table: Counter[tuple[str, bool]] = Counter()
    wrong = []
    for _ in range(count):
        shapes = draw(rng, [1, 2, 3, 3, 4])
        finding = judged("Add", shapes, "ncnn")
        if finding.reason == "invalid_source":
            continue
        assert finding.verdict is not Verdict.UNKNOWN, (shapes, finding.message)
        for _ in range(EACH):
            values = numbers(finding, rng)
            real = bound(finding, values)
            if real is None:
                continue
            arrays = operands("Add", real)
            equal = same_numbers(run(ncnn_ops, "Add", arrays, real), OPS["Add"][1](*arrays))
            table[finding.verdict, equal] += 1
            if equal != expected(finding, values):
                wrong.append((shapes, real, str(finding.when), finding.message))
    print(f"\n{count} nodes: {dict(table)}")
    assert wrong == []
    assert {(Verdict.SAME, True), (Verdict.SAME_HERE, True), (Verdict.SAME_HERE, False)} <= {*table}


def test_counter_examples_reproduce_on_ncnn(ncnn_ops: Child) -> None:
    rng = random.Random(3)
    shown = 0
    for _ in range(SAMPLE):
        shapes = draw(rng, [2, 3, 4])
        finding = judged("Add", shapes, "ncnn")
        witness = finding.witness
        if finding.verdict not in BAD:
            continue
        assert witness is not None, (shapes, finding.message)
        arrays = counted(witness.shapes)
        got = run(ncnn_ops, "Add", arrays, witness.shapes)
        wanted = OPS["Add"][1](*arrays)
        assert not same_numbers(got, wanted), (shapes, witness)
        if witness.index:
            assert got is not None
            assert got.reshape(wanted.shape)[witness.index] == witness.target
            assert wanted[witness.index] == witness.source
        shown += 1
    assert shown > 30


def counted(shapes: Any) -> list[Any]:
    """Operands counted on from 0, as a witness for Add has them."""
    start, arrays = 0, []
    for shape in shapes:
        size = int(np.prod(shape))
        arrays.append(np.arange(start, start + size, dtype=np.float32).reshape(shape))
        start += size
    return arrays


def test_fixes_hold_for_all_sizes_on_ncnn(ncnn_ops: Child) -> None:
    rng = random.Random(4)
    fixed = 0
    for _ in range(SAMPLE):
        finding = judged("Add", draw(rng, [2, 3, 4]), "ncnn")
        if finding.fix is None:
            continue
        for _ in range(EACH):
            values = numbers(finding, rng)
            real = bound(finding, values)
            only_if = finding.fix.only_if
            if real is None or (only_if is not None and not only_if.evaluate(values)):
                continue
            arrays = operands("Add", real)
            there = real_shapes(finding.fix.shapes, values)
            got = run(ncnn_ops, "Add", arrays, there)
            assert same_numbers(got, OPS["Add"][1](*arrays)), (finding.operands, real, finding.fix)
            fixed += 1
    assert fixed > 50


# OpenVINO: its PRelu looks at sizes, and models come to it with their symbols.


def prelu_model(shapes: Any) -> bytes:
    """An ONNX model of one PRelu whose inputs have these symbols."""
    graph = helper.make_graph(
        [helper.make_node("PRelu", ["x", "y"], ["z"])],
        "made",
        [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
            for name, shape in zip("xy", shapes, strict=True)
        ],
        [helper.make_tensor_value_info("z", TensorProto.FLOAT, None)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    return model.SerializeToString()


def on_openvino(model: bytes, arrays: list[Any]) -> Any:
    """OpenVINO's numbers for a model that it compiled with its symbols, or None if it refuses."""
    try:
        compiled = openvino_runs.cpu().compile_model(model, "CPU", weights=b"")
        return next(iter(compiled(dict(zip("xy", arrays, strict=True))).values()))
    except RuntimeError:
        return None


def prelu(x: Any, slope: Any) -> Any:
    return np.where(x < 0, x * slope, x)


PRELUS = [
    (("N", "C", "W"), ("W",)),
    (("N", "C", "H", "W"), ("W",)),
    (("N", "C", "W"), ("C", 1)),
    (("N", 3, "W"), ("W",)),
    (("N", "C"), ("C",)),
    (("N", "C", "W"), (1,)),
]


@pytest.mark.parametrize("shapes", PRELUS, ids=str)
def test_conditions_and_counter_examples_hold_on_openvino(shapes: Any) -> None:
    pytest.importorskip("openvino", reason="openvino is not installed")
    finding = judged("PRelu", shapes, "openvino")
    assert finding.verdict in (Verdict.SAME, Verdict.SAME_HERE), finding.message
    model = prelu_model(shapes)
    assert onnx.load_from_string(model).graph.node[0].op_type == "PRelu"
    rng = random.Random(5)
    seen = set()
    tries = [numbers(finding, rng) for _ in range(12)]
    if finding.values is not None:
        tries.append({s: finding.values[s.name] for s in tries[0]})
    for values in tries:
        real = real_shapes([shape or () for _, shape in finding.operands], values)
        x = -1 - np.arange(np.prod(real[0]), dtype=np.float32).reshape(real[0])
        slope = 2 + np.arange(np.prod(real[1]), dtype=np.float32).reshape(real[1])
        equal = same_numbers(on_openvino(model, [x, slope]), prelu(x, slope))
        assert equal == expected(finding, values), (real, str(finding.when))
        seen.add(equal)
    assert seen == ({True, False} if finding.verdict is Verdict.SAME_HERE else {True})


def test_verdicts_of_elementwise_ops_match_openvino() -> None:
    openvino = pytest.importorskip("openvino", reason="openvino is not installed")
    assert openvino.__version__
    rng = random.Random(6)
    same = 0
    for _ in range(20):
        shapes = draw(rng, [2, 3, 4])
        finding = judged("Add", shapes, "openvino")
        if finding.reason == "invalid_source":
            continue
        assert finding.verdict is Verdict.SAME, finding.message
        named = [tuple(None if isinstance(n, str) else n for n in shape) for shape in shapes]
        graph = onnx.load_from_string(prelu_model(named))
        graph.graph.node[0].op_type = "Add"
        model = graph.SerializeToString()
        for _ in range(3):
            values = numbers(finding, rng)
            real = bound(finding, values)
            if real is None:
                continue
            arrays = operands("Add", real)
            assert same_numbers(on_openvino(model, arrays), np.add(*arrays)), (shapes, real)
            same += 1
    assert same > 20
