"""Factors after products as OpenVINO's frontend joins them, beside what OpenVINO computes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zerostride as zs
from zerostride.models.execute import execute
from zerostride.models.findings import Verdict
from zerostride.models.formats import read_model
from zerostride.runtimes.files import tensors
from zerostride.runtimes.process import Process, running
from zerostride.runtimes.task import ReplyKind

onnx: Any = pytest.importorskip("onnx", reason="the models are made with the onnx package")
pytest.importorskip("openvino", reason="the engine is an extra, not a test need")
pytestmark = pytest.mark.conformance

CASES = 120


@pytest.fixture(scope="module")
def openvino() -> Iterator[Process]:
    with running("openvino", 60.0) as process:
        yield process


def drawn(rng: np.random.Generator, path: Path) -> dict[str, Any]:
    """A MatMul and a factor after it; returns the inputs."""
    length = int(rng.choice([1, 3]))
    data = (*rng.choice([1, 2, 3], int(rng.integers(0, 4))), length)  # matrices of 3 by 3, too
    second = [(length,), (length, 2), (length,)][int(rng.integers(3))]
    result = np.matmul(np.zeros(data), np.zeros(second)).shape
    factor = [(), (1,), (1, 1), result[-1:]][int(rng.integers(4))]
    op = str(rng.choice(["Mul", "Div", "Mul", "Add"]))
    fixed = rng.random() < 0.8
    arrays = {
        "x": rng.normal(size=data).astype(np.float32),
        "w": rng.normal(size=second).astype(np.float32),
        "c": np.asarray(rng.uniform(1, 2, factor), np.float32),
    }
    order = ["t", "c"] if op == "Div" or rng.random() < 0.5 else ["c", "t"]
    nodes = [
        onnx.helper.make_node("MatMul", ["x", "w"], ["t"]),
        onnx.helper.make_node(op, order, ["y"], name="last"),
    ]
    stored = ["c", "w"] if fixed else ["c"]
    inputs = [name for name in ("x", "w") if name not in stored]
    graph = onnx.helper.make_graph(
        nodes,
        "g",
        [onnx.helper.make_tensor_value_info(n, 1, arrays[n].shape) for n in inputs],
        [onnx.helper.make_empty_tensor_value_info("y")],
        [onnx.numpy_helper.from_array(arrays[n], n) for n in stored],
    )
    opset = [onnx.helper.make_opsetid("", 17)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=opset, ir_version=8), path)
    return {name: arrays[name] for name in inputs}


def test_a_factor_after_a_product_has_the_frontends_verdict(
    openvino: Process, tmp_path: Path
) -> None:
    path, counts = tmp_path / "m.onnx", Counter[str]()
    for number in range(CASES):
        inputs = drawn(np.random.default_rng([5, number]), path)
        meant = execute(read_model(path), inputs)["y"]
        reply = tensors(openvino, path, inputs, ["y"], outputs=True)
        if reply.kind is not ReplyKind.RESULT:
            real = Verdict.REFUSED
        else:
            (array,) = reply.arrays
            same = array.shape == meant.shape and np.allclose(array, meant, atol=1e-3)
            real = Verdict.SAME if same else Verdict.DIFFERENT
        findings = zs.audit(path, "openvino").findings
        verdicts = {finding.verdict for finding in findings}
        verdicts = verdicts - {Verdict.SAME, Verdict.SAME_HERE} or {Verdict.SAME}
        assert verdicts == {real}, (number, meant.shape, reply.message, findings)
        counts[str(real)] += 1
    assert counts["refused"] > 2 < counts["different"], counts
    assert counts["same"] > CASES // 2
