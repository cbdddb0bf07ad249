"""Whole models on real engines: the files themselves, and conversions of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from verified import call, one_op, verified

from zerostride.errors import ModelError, ZerostrideError
from zerostride.models.findings import Outcome

onnx = pytest.importorskip("onnx", reason="writes the models")

pytestmark = pytest.mark.conformance

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_whole_model_agrees() -> None:
    model = EXAMPLES / "clean.onnx"
    for engine in ("onnxruntime", "openvino"):
        report = verified(model, engine, whole=True)
        assert [check.outcome for check in report.checks] == [Outcome.AGREES]
        assert report.checks[0].elements == 240
    with pytest.raises(ZerostrideError, match="torch does not run files of onnx"):
        verified(model, "torch", whole=True)


def test_engine_is_not_compared_with_itself(tmp_path: Path) -> None:
    """With an op that zerostride does not execute, ONNX Runtime is what others are held against."""
    infos = [onnx.helper.make_tensor_value_info(n, 1, s) for n, s in (("x", (1, 1, 4, 4)),)]
    nodes = [onnx.helper.make_node("GlobalLpPool", ["x"], ["y"], p=2)]
    outputs = [onnx.helper.make_tensor_value_info("y", 1, (1, 1, 1, 1))]
    graph = onnx.helper.make_graph(nodes, "g", infos, outputs)
    opsets = [onnx.helper.make_opsetid("", 17)]
    onnx.save(
        onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8), tmp_path / "m.onnx"
    )
    with pytest.raises(ModelError, match="does not execute GlobalLpPool; nothing to compare"):
        verified(tmp_path / "m.onnx", "onnxruntime", whole=True)
    report = verified(tmp_path / "m.onnx", "openvino", whole=True)
    assert [check.outcome for check in report.checks] == [Outcome.AGREES]
    assert "compared with ONNX Runtime" in report.notes[-1]


def test_conversion_to_ir_agrees(tmp_path: Path) -> None:
    ov = pytest.importorskip("openvino", reason="converts and runs")
    for name in ("clean", "tiny_vision"):
        model = EXAMPLES / f"{name}.onnx"
        ov.save_model(ov.convert_model(model), tmp_path / "m.xml", compress_to_fp16=False)
        report = verified(model, "openvino", against=tmp_path / "m.xml")
        assert {check.outcome for check in report.checks} == {Outcome.AGREES}, report.checks
        # The converted file by itself, by the rules that IR has.
        report = verified(tmp_path / "m.xml", "openvino", whole=True)
        assert {check.outcome for check in report.checks} == {Outcome.AGREES}, report.checks


def test_a_difference_that_one_rounding_makes_is_no_fault(tmp_path: Path) -> None:
    """The engine lacks bits of a sine's operand; the model's own result moves as far."""
    ov = pytest.importorskip("openvino", reason="converts and runs")
    text = '<ir_version: 8, opset_import: ["" : 17]> g (float[N] x) => (float[N] y) {'
    lines = ["m = Mul(x, k)", "s = Sin(m)", "y = Mul(s, c)", "}"]
    for factor, outcome in ((1.0, Outcome.AGREES), (3.0, Outcome.DIFFERS)):
        model = onnx.parser.parse_model("\n".join([text, *lines]))
        constants = {"k": 1e5, "c": 1.0}
        for name, number in constants.items():
            array = np.array(number, np.float32)
            model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
        onnx.save(model, tmp_path / "m.onnx")
        model.graph.initializer[1].CopyFrom(
            onnx.numpy_helper.from_array(np.array(factor, np.float32), "c")
        )
        model.graph.initializer[0].CopyFrom(
            onnx.numpy_helper.from_array(np.array(1e5 * (1 + 2e-7), np.float32), "k")
        )
        onnx.save(model, tmp_path / "other.onnx")
        ov.save_model(ov.convert_model(tmp_path / "other.onnx"), tmp_path / "m.xml")
        x = np.random.default_rng([0, 0]).uniform(0, 1, 500).astype(np.float32)
        other = tmp_path / "m.xml"
        report = verified(tmp_path / "m.onnx", "openvino", against=other, inputs={"x": x})
        assert report.checks[0].outcome is outcome, report.checks
        assert report.checks[0].error > 1e-3
        moved = any("one rounding of each tensor moves it by" in note for note in report.notes)
        assert moved == (outcome is Outcome.AGREES)


#: Steps of quantisation: a number halfway between two of them moves by a step, others do not.
STEPS = """<ir_version: 8, opset_import: ["" : 17]>
g (float[8,50] x) => (float[8,50] y) <float shift = {%s}> {
    s = Add(x, shift)
    y = Round(s)
}
"""


@pytest.mark.parametrize("ties", [1, 400])
def test_a_single_tie_is_no_reason_for_a_step_in_all_numbers(ties: int, tmp_path: Path) -> None:
    onnx.save(onnx.parser.parse_model(STEPS % 0), tmp_path / "m.onnx")
    onnx.save(onnx.parser.parse_model(STEPS % 1), tmp_path / "other.onnx")
    x = np.full((8, 50), 3.2, np.float32)
    x.flat[:ties] = 0.5
    report = verified(
        tmp_path / "m.onnx", "onnxruntime", against=tmp_path / "other.onnx", inputs={"x": x}
    )
    check, inside = report.checks
    assert (check.outcome is Outcome.DIFFERS) == (ties == 1), check
    assert any("moves it by up to 1" in note for note in report.notes) == (ties > 1)
    assert (inside.op, inside.outcome) == ("Add", Outcome.DIFFERS), inside


def test_an_output_of_equal_numbers_has_a_note(tmp_path: Path) -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]>
    g (float[2,3] x) => (float[2,3] y, float[2,3] z) { y = Sub(x, x)
    z = Add(x, x) }"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "m.onnx")
    report = verified(tmp_path / "m.onnx", "onnxruntime", whole=True)
    assert [check.outcome for check in report.checks] == [Outcome.AGREES] * 2
    (note,) = report.notes
    assert note.startswith("every number of y is 0.0 for these inputs, which proves little")


@pytest.mark.parametrize("line", ["e = Equal(m, one)", "a = Acos(m)"], ids=["mask", "edge"])
def test_a_fault_beside_a_mask_is_a_fault(line: str, tmp_path: Path) -> None:
    """Ones that are moved would change everything: which numbers are masked, or all into NaN."""
    last = "y = Where(e, s, far)" if "Equal" in line else "y = Add(a, s)"
    text = """<ir_version: 8, opset_import: ["" : 17]>
    g (float[3,3] x, float[1,3] m) => (float[3,3] y)
    <float[3] b = {1, 2, 3}, float one = {1}, float far = {-10000}> {
    s = Add(x, b)
    """
    meant = "\n".join([text, line, last, "}"])
    onnx.save(onnx.parser.parse_model(meant), tmp_path / "m.onnx")
    onnx.save(onnx.parser.parse_model(meant.replace("[3] b", "[3,1] b")), tmp_path / "other.onnx")
    inputs = {"m": [[1.0, 1.0, 1.0]]}
    report = verified(
        tmp_path / "m.onnx", "onnxruntime", against=tmp_path / "other.onnx", inputs=inputs
    )
    assert report.checks[0].outcome is Outcome.DIFFERS, report.notes
    assert [check.op for check in report.checks[1:]] == ["Add"], report.checks


def test_conversion_to_mnn_agrees(tmp_path: Path) -> None:
    pytest.importorskip("MNN", reason="converts and runs")
    model = EXAMPLES / "clean.onnx"
    words = ["-f", "ONNX", "--modelFile", str(model), "--MNNModel", str(tmp_path / "m.mnn")]
    code = f"import _tools; _tools.mnnconvert(['mnnconvert', *{words!r}, '--bizCode', 'z'])"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    report = verified(model, "mnn", against=tmp_path / "m.mnn")
    assert {check.outcome for check in report.checks} == {Outcome.AGREES}, report.checks


def test_conversion_to_ncnn_agrees(tmp_path: Path) -> None:
    pytest.importorskip("ncnn", reason="runs it")
    text = "7767517\n3 3\nInput a 0 1 a 0=5 1=5\nInput b 0 1 b 0=5\nBinaryOp add 2 1 a b y 0=0\n"
    (tmp_path / "m.param").write_text(text)
    (tmp_path / "m.bin").write_bytes(b"")
    report = verified(tmp_path / "m.param", "ncnn", whole=True)
    assert [check.outcome for check in report.checks] == [Outcome.AGREES], report.checks
    # The same numbers in ONNX mean something else, and the whole run shows it.
    model = one_op(tmp_path, "Add", (5, 5), (5,))
    content = onnx.load(model)
    del content.graph.node[1], content.graph.output[1]
    onnx.save(content, model)
    report = verified(model, "ncnn", against=tmp_path / "m.param")
    assert [check.outcome for check in report.checks] == [Outcome.DIFFERS]
    # The command knows the engine from the file.
    assert call(model, "--against", tmp_path / "m.param")[0] == 1
    status, _, error = call(model)
    assert status == 2
    assert "Missing option '--target'. Choose from: numpy, " in error


# Conversions that store their weights in half precision.


def product(folder: Path, wrong: float = 0.0) -> Path:
    """Two products of numbers that float16 rounds, one weight off by so much."""
    rng = np.random.default_rng(5)
    # Among many results some are small beside what they are the sum of: there rounding shows.
    first, second = (rng.normal(0, 3, (64, n)).astype(np.float32) for n in (64, 2048))
    second[:, 4] += wrong
    helper = onnx.helper
    x = helper.make_tensor_value_info("x", 1, (1, 64))
    y = helper.make_tensor_value_info("y", 1, (1, 2048))
    weights = [onnx.numpy_helper.from_array(a, n) for a, n in ((first, "a"), (second, "b"))]
    nodes = [
        helper.make_node("MatMul", ["x", "a"], ["h"]),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("MatMul", ["r", "b"], ["y"]),
    ]
    graph = helper.make_graph(nodes, "g", [x], [y], weights)
    ids = [helper.make_opsetid("", 17)]
    path = folder / f"m{wrong}.onnx"
    onnx.save(helper.make_model(graph, opset_imports=ids, ir_version=8), path)
    return path


def test_float16_weights_are_distinguished_from_wrong_weights(tmp_path: Path) -> None:
    ov = pytest.importorskip("openvino", reason="converts and runs")
    outcomes = []
    for wrong, halves in ((0.0, False), (0.0, True), (0.5, True), (0.5, False)):
        converted = ov.convert_model(product(tmp_path, wrong))
        ov.save_model(converted, tmp_path / "m.xml", compress_to_fp16=halves)
        report = verified(product(tmp_path), "openvino", against=tmp_path / "m.xml")
        (check,) = report.checks
        outcomes.append(check.outcome)
        assert any("half precision" in note for note in report.notes) == (halves)
        assert ("float16" in check.detail) == (halves and not wrong)
    agrees, differs = Outcome.AGREES, Outcome.DIFFERS
    assert outcomes == [agrees, agrees, differs, differs]


def test_float16_weights_with_another_alignment_differ(tmp_path: Path) -> None:
    """4096 units of half precision are four times a number: no difference was ever seen."""
    vectors = [(5,)] * 4
    model = one_op(tmp_path, "BatchNormalization", (5, 5, 1, 5), *vectors, dtype=np.float16)
    for engine in ("numpy", "litert"):
        check = verified(model, engine).checks[0]
        assert check.outcome is Outcome.DIFFERS, check
