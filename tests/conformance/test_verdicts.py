"""Verdicts on random nodes, compared with the engines, and OpenVINO's ONNX frontend."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import openvino_runs
import pytest
from campaigns.models.verdicts import VerdictTally, denied, way

import zerostride as zs
from zerostride.errors import ZerostrideError
from zerostride.models.findings import Check, Finding, Outcome, Verdict

onnx = pytest.importorskip("onnx", reason="writes the models")

from campaigns.models.random_files import FORMATS  # noqa: E402

pytestmark = pytest.mark.conformance

ENGINES = ("onnxruntime", "openvino", "ncnn", "mnn", "litert", "torch", "jax", "numpy")


@pytest.fixture(autouse=True)
def quiet() -> None:
    warnings.simplefilter("ignore")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", FORMATS)
def test_no_verdict_is_denied(name: str, engine: str, tmp_path: Path) -> None:
    file = FORMATS[name](tmp_path, np.random.default_rng(11), 60)
    tally = VerdictTally(name, engine)
    try:
        tally.add(file, zs.verify(file, engine, cache=False, via=way(engine)), 0)
    except ZerostrideError as error:
        if "is not installed" in str(error):
            pytest.skip(str(error))
        raise
    assert not tally.contradictions
    assert sum(tally.counts.values()) >= 40, tally.counts
    if (name, engine) in (("onnx", "onnxruntime"), ("openvino", "openvino"), ("ncnn", "ncnn")):
        ran = sum(n for (_, outcome), n in tally.counts.items() if outcome != "not_run")
        assert ran >= 0.6 * sum(tally.counts.values()), (tally.counts, tally.not_run)


def test_denied_compares_a_verdict_with_an_outcome() -> None:
    def said(verdict: Verdict, outcome: Outcome, reason: str = "") -> bool:
        finding = Finding("n", "Add", (), None, None, verdict, reason, "")
        return denied(finding, Check("n", "Add", (), outcome))

    for outcome in (Outcome.DIFFERS, Outcome.REFUSED, Outcome.CRASHED):
        assert said(Verdict.SAME, outcome)
        assert said(Verdict.SAME_HERE, outcome)
        assert not said(Verdict.DIFFERENT, outcome)
        assert not said(Verdict.UNKNOWN, outcome)
    assert said(Verdict.DIFFERENT, Outcome.AGREES)
    assert said(Verdict.REFUSED, Outcome.AGREES)
    assert not said(Verdict.DIFFERENT, Outcome.AGREES, "silent")
    assert not any(said(verdict, Outcome.NOT_RUN) for verdict in Verdict)


# OpenVINO beside ONNX Runtime.


def both(op: str, arrays: list[Any], opset: int, fixed: bool) -> tuple[Any, Any]:
    """The results of one ONNX node; operands but the first are weights, or inputs."""
    pytest.importorskip("openvino", reason="runs it")
    ort = pytest.importorskip("onnxruntime", reason="runs it")
    helper, names = onnx.helper, [f"x{k}" for k in range(len(arrays))]
    infos, weights, fed = [], [], {}
    for k, (name, array) in enumerate(zip(names, arrays, strict=True)):
        if k and fixed:
            weights.append(onnx.numpy_helper.from_array(array, name))
        else:
            kind = helper.np_dtype_to_tensor_dtype(array.dtype)
            infos.append(helper.make_tensor_value_info(name, kind, array.shape))
            fed[name] = array
    node = helper.make_node(op, names, ["y"])
    result = helper.make_empty_tensor_value_info("y")
    graph = helper.make_graph([node], "g", infos, [result], weights)
    ids = [helper.make_opsetid("", opset)]
    model = helper.make_model(graph, opset_imports=ids, ir_version=9).SerializeToString()
    core = openvino_runs.cpu()
    compiled = core.compile_model(core.read_model(model), "CPU")
    session = ort.InferenceSession(model, providers=["CPUExecutionProvider"])
    return np.array(compiled(fed)[0]), session.run(None, fed)[0]


@pytest.mark.parametrize("fixed", [True, False])
def test_vector_slope_goes_to_the_channels(fixed: bool) -> None:
    """openvinotoolkit/openvino#35958, and not where the slope is laid out in full."""
    x = -np.arange(1, 19, dtype=np.float32).reshape(1, 3, 2, 3)
    slope = np.array([0.5, 1.5, 2.5], np.float32)
    theirs, meant = both("PRelu", [x, slope], 16, fixed)
    np.testing.assert_array_equal(meant, x * slope)
    np.testing.assert_array_equal(theirs, x * slope.reshape(3, 1, 1))
    theirs, meant = both("PRelu", [x, slope.reshape(1, 1, 1, 3)], 16, fixed)
    np.testing.assert_array_equal(theirs, meant)


@pytest.mark.parametrize("zero_point", range(6))
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_ties_of_a_quantisation_match(zero_point: int, dtype: Any) -> None:
    """ONNX rounds x / scale to even and adds the zero point; OpenVINO adds it first."""
    quotients = np.arange(-8, 24, dtype=np.float32) / 2
    scale = np.float32(0.5)
    operands = [quotients * scale, np.array(scale), np.array(zero_point, dtype)]
    theirs, meant = both("QuantizeLinear", operands, 13, True)
    limits = np.iinfo(dtype)
    first = np.clip(np.rint(quotients + zero_point), limits.min, limits.max)
    last = np.clip(np.rint(quotients) + zero_point, limits.min, limits.max)
    np.testing.assert_array_equal(theirs, first)
    np.testing.assert_array_equal(meant, last)
    assert (zero_point % 2 == 0) == bool((first == last).all())


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("shape", [(1, 5, 2, 2), (5, 2, 2), (2, 2), (1, 1, 2, 2)])
def test_factor_without_a_batch_loses_its_axis_of_1(
    constant: bool, shape: tuple[int, ...], tmp_path: Path
) -> None:
    """ncnn has no batch: a constant that kept its one would give the product another rank."""
    pytest.importorskip("ncnn", reason="the engine is an extra, not a test need")
    helper = onnx.helper
    x = helper.make_tensor_value_info("x", 1, (1, 5, 4, 2))
    y = helper.make_tensor_value_info("y", 1, None)
    inputs = [x] if constant else [x, helper.make_tensor_value_info("w", 1, shape)]
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    graph = helper.make_graph([node], "g", inputs, [y])
    if constant:
        graph.initializer.append(onnx.numpy_helper.from_array(np.ones(shape, np.float32), "w"))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, tmp_path / "m.onnx")
    report = zs.verify(tmp_path / "m.onnx", "ncnn", cache=False, via="none")
    for finding, check in zip(report.findings, report.checks, strict=True):
        assert not denied(finding, check), (finding.message, check)
