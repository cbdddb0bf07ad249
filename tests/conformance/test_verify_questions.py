"""The cases that `zs.verify` runs on an engine, the omitted ones, and their number."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from verified import one_op, verified

from zerostride.errors import ZerostrideError
from zerostride.models.findings import Outcome
from zerostride.models.formats import read_model
from zerostride.runtimes.runners import RUNNERS
from zerostride.runtimes.verify import site_checks
from zerostride.runtimes.verify.whole_model import samples

onnx = pytest.importorskip("onnx", reason="writes the models")

pytestmark = [pytest.mark.conformance, pytest.mark.usefixtures("own_cache")]


@pytest.mark.parametrize("engine", list(RUNNERS))
def test_clip_with_only_a_lower_bound_is_run(engine: str, tmp_path: Path) -> None:
    report = verified(one_op(tmp_path, "Clip", (2, 3), ()), engine)
    outcomes = {check.outcome for check in report.checks}
    assert Outcome.AGREES in outcomes, report.notes
    assert outcomes <= {Outcome.AGREES, Outcome.NOT_RUN}, report.notes


def test_shape_arithmetic_is_not_run_on_an_engine(tmp_path: Path) -> None:
    # LiteRT has no division of int64, and converters leave none there.
    helper = onnx.helper
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Div", ["s", "two"], ["half"], name="site"),
        helper.make_node("ConstantOfShape", ["half"], ["y"]),
    ]
    x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["N", 4])
    two = onnx.numpy_helper.from_array(np.array(2), "two")
    graph = helper.make_graph(nodes, "g", [x], [helper.make_empty_tensor_value_info("y")], [two])
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), tmp_path / "m.onnx")
    report = verified(tmp_path / "m.onnx", "litert", sizes={"N": 6})
    assert [(check.outcome, check.detail) for check in report.checks] == [
        (Outcome.NOT_RUN, "computes sizes from sizes, which converters fold")
    ]
    assert not any(note.startswith("WRONG VERDICT") for note in report.notes)


def test_work_of_one_call_is_bounded(tmp_path: Path, monkeypatch: Any) -> None:
    nodes = [
        onnx.helper.make_node("Add", [f"x{k}", "b"], [f"y{k}"], name=f"n{k}") for k in range(5)
    ]
    inputs = [
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)
        for name, shape in [("b", (1,)), *((f"x{k}", (k + 2, 3)) for k in range(5))]
    ]
    results = [onnx.helper.make_empty_tensor_value_info(f"y{k}") for k in range(5)]
    graph = onnx.helper.make_graph(nodes, "g", inputs, results)
    opsets = [onnx.helper.make_opsetid("", 17)]
    path = tmp_path / "m.onnx"
    onnx.save(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    monkeypatch.setattr(site_checks, "MOST_WORK", 3 * site_checks.ASKING)
    for _ in range(2):  # kept answers count, too
        outcomes = [check.outcome for check in verified(path, "numpy").checks]
        assert outcomes == [Outcome.AGREES] * 2 + [Outcome.NOT_RUN] * 3
    assert verified(path, "numpy", node="n4").ok


def test_two_samples_for_an_engine_of_one_are_refused(tmp_path: Path) -> None:
    graph = read_model(one_op(tmp_path, "Add", (2, 3), (2, 3)))
    two = {value.name: np.ones((2, 3), np.float32) for value in graph.inputs}
    with pytest.raises(ZerostrideError, match=r"of \(2, 3\): axis 0 .* these are 2: give it"):
        samples(graph, two, 0)
    one = {name: array[:1] for name, array in two.items()}
    assert [array.shape for array in samples(graph, one, 0).values()] == [(3,), (3,)]
