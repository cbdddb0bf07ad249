"""A culprit of no known cause is reduced to the smallest part that the engine gets wrong."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

onnx: Any = pytest.importorskip("onnx", reason="the models are made with the onnx package")
pytest.importorskip("onnxruntime", reason="runs the model")

from campaigns.models.bisect_graphs import chain, saved  # noqa: E402
from campaigns.real_models.convert import convert  # noqa: E402

import zerostride as zs  # noqa: E402
from zerostride.models.bisect.sides import Fault  # noqa: E402
from zerostride.models.execute import execute  # noqa: E402
from zerostride.models.execute.part import Parts  # noqa: E402
from zerostride.models.formats import read_model  # noqa: E402
from zerostride.models.judging import Difference, Judged  # noqa: E402
from zerostride.runtimes.bisect.reduce import Reduction  # noqa: E402
from zerostride.runtimes.process import engines_kept  # noqa: E402

pytestmark = pytest.mark.conformance

SHAPE = (2, 4, 4)
X = np.random.default_rng(0).uniform(-1, 1, SHAPE).astype(np.float32)


@pytest.fixture(autouse=True, scope="module")
def _kept() -> Iterator[None]:
    with engines_kept():
        yield


def _model() -> Any:
    """A ReduceL2 between other nodes: today's pnnx and mnnconvert lose its axes."""
    helper = onnx.helper
    nodes = [
        helper.make_node("Relu", ["x"], ["r"], "relu"),
        helper.make_node("Add", ["r", "b"], ["s"], "add"),
        helper.make_node("ReduceL2", ["s", "axes"], ["m"], "norm", keepdims=1),
        helper.make_node("Neg", ["m"], ["n"], "neg"),
        helper.make_node("Exp", ["n"], ["y"], "exp"),
    ]
    constants = [
        onnx.numpy_helper.from_array(np.ones(4, np.float32), "b"),
        onnx.numpy_helper.from_array(np.array([1]), "axes"),
    ]
    ends = [
        helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, SHAPE),
        helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None),
    ]
    graph = helper.make_graph(nodes, "norm", ends[:1], ends[1:], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def _converted(file: Path, converter: str, module: str) -> Path:
    pytest.importorskip(module, reason="the converter is an extra")
    place = convert(file, converter, ("x=2,4,4",), file.parent / converter)
    assert not isinstance(place, str), place
    return place


def test_a_fault_that_a_file_shows_needs_no_smaller_model(tmp_path: Path) -> None:
    file = saved(_model(), tmp_path / "a.onnx")
    report = zs.bisect(file, _converted(file, "pnnx", "pnnx"), inputs={"x": X})
    (culprit,) = report.bisection.culprits
    assert "norm_1 (Reduction)" in culprit.cause
    assert "norm (ReduceL2) of the model gives (2, 1, 4)" in culprit.cause
    assert not culprit.alone


def test_a_fault_of_the_engine_is_one_node_as_a_model_file(tmp_path: Path) -> None:
    file = saved(_model(), tmp_path / "a.onnx")
    report = zs.bisect(file, _converted(file, "mnnconvert", "MNN"), inputs={"x": X})
    assert len(report.bisection.culprits) == 1  # what follows a wrong shape is not judged
    culprit = report.culprit
    assert not culprit.cause
    assert culprit.alone.endswith("computes norm wrong")
    assert "converted by mnnconvert" in str(report)
    culprit.repro.save(tmp_path)
    cut = onnx.load(tmp_path / "repro.onnx")
    assert [node.name for node in cut.graph.node] == ["norm"]
    words = [sys.executable, "repro.py", "onnxruntime"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
    right, expected = (float(word.strip(",")) for word in done.stdout.split()[1:4:2])
    assert right == pytest.approx(expected, 1e-4)


def test_the_nodes_before_are_added_until_the_part_differs(tmp_path: Path) -> None:
    """A fault seen two nodes late grows back to the node that the engine gets wrong."""
    file = saved(_model(), tmp_path / "a.onnx")
    other = _converted(file, "mnnconvert", "MNN")
    graph = read_model(file)
    values = {v.name: v for v in graph.values()}
    arrays = execute(graph, {"x": X}, outputs=["r", "s", "m", "n", "y"])
    part = Parts(graph).before(values["y"], {id(values["n"])})
    judged = Judged(Difference.NUMBERS, 1.0)
    fault = Fault(part, "y", judged, {id(values["n"]): arrays["n"]}, arrays["y"], arrays["y"] + 1)
    alone = Reduction(graph, arrays.get, other, "mnn", 60).smallest(fault)
    assert alone.fault is not None
    assert [node.path for node in alone.fault.part.nodes] == ["norm"]
    assert "computes norm wrong" in alone.words


def test_a_fault_of_the_file_alone_is_right_on_the_engine(tmp_path: Path) -> None:
    """Numbers that the other file's own nodes changed: the engine is not to blame."""
    model = chain(2)
    file = saved(model, tmp_path / "a.onnx")
    changed = onnx.ModelProto.FromString(model.SerializeToString())
    node = next(n for n in changed.graph.node if n.op_type in ("Relu", "Sigmoid", "Tanh", "Abs"))
    node.op_type = "Neg"
    report = zs.bisect(file, saved(changed, tmp_path / "b.onnx"))
    assert report.culprit.node == node.name
    assert report.culprit.alone == f"alone, onnxruntime computes {node.name} right"


def test_a_part_that_no_converter_makes_again_stays_as_it_is(tmp_path: Path) -> None:
    graph = read_model(saved(_model(), tmp_path / "a.onnx"))
    (tmp_path / "b.tflite").write_bytes(b"")
    reduction = Reduction(graph, {}.get, tmp_path / "b.tflite", "litert", 60)
    values = {v.name: v for v in graph.values()}
    arrays = execute(graph, {"x": X}, outputs=["n", "y"])
    part = Parts(graph).before(values["y"], {id(values["n"])})
    judged = Judged(Difference.NUMBERS, 1.0)
    fault = Fault(part, "y", judged, {id(values["n"]): arrays["n"]}, arrays["y"], arrays["y"] + 1)
    alone = reduction.smallest(fault)
    assert (alone.words, alone.fault) == ("", None)
