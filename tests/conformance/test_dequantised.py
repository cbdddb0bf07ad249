"""Quantised models written in floats, beside ONNX Runtime: results move by half a step at most."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zerostride as zs
from zerostride.errors import ModelError
from zerostride.report.next_command import after_convert

onnx: Any = pytest.importorskip("onnx", reason="the models are made with the onnx package")
ort: Any = pytest.importorskip("onnxruntime", reason="it computes the quantised models")

from zerostride.models.formats.onnx.prepared.dequantised import dequantised  # noqa: E402

pytestmark = pytest.mark.conformance
#: The scale of results; operands have others.
STEP = 0.05
HEAD = '<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>\n'
CONSTANTS = """
    float s = {0.02}, uint8 z = {7}, float t = {0.03}, int8 y = {-3}, float u = {0.05},
    uint8 v = {130}, int32[4] bias = {90, -400, 0, 7}, int32[5] line = {500, -90, 3, 0, 44},
    uint8[1,2,6,6] other, int8[4,2,3,3] kernel, float[4] kernels, int8[4] middle,
    int8[6,5] square, float[5] squares, int8[5] zeros, int8[9,6] table, int8[5,36] side,
    int64[3] rows = {8, 0, 4}, int64[2] gemm = {2, 36}
"""
Q = "q = QuantizeLinear(r, u, v) b = DequantizeLinear(q, u, v)"
#: The nodes from a quantised x of (1, 2, 6, 6) to floats b.
RESULTS = {
    "bounds are a Relu": f"a = DequantizeLinear(x, s, z) r = Neg(a) {Q}",
    "by channel": "a = DequantizeLinear<axis=0>(kernel, kernels, middle)"
    f"c = DequantizeLinear(x, s, z) r = Conv(c, a) {Q}",
    "layouts between": "a = DequantizeLinear(x, s, z) p = QuantizeLinear(a, u, v)"
    "m = MaxPool<kernel_shape=[2,2]>(p) t1 = Transpose<perm=[0,2,3,1]>(m)"
    "f = Flatten(t1) b = DequantizeLinear(f, u, v)",
    "pads and joins": "a = DequantizeLinear(x, s, z) p = QuantizeLinear(a, u, v)"
    "m = Concat<axis=1>(p, other) b = DequantizeLinear(m, u, v)",
    "another scale": "a = DequantizeLinear(x, s, z) p = QuantizeLinear(a, u, v)"
    "b = DequantizeLinear(p, t, z)",
    "a table": "a = Gather(table, rows) b = DequantizeLinear(a, t, y)",
    "QLinearConv": "q = QLinearConv(x, s, z, kernel, kernels, middle, u, v, bias)"
    "b = DequantizeLinear(q, u, v)",
    "QLinearMatMul": "q = QLinearMatMul(x, s, z, square, squares, zeros, u, v)"
    "b = DequantizeLinear(q, u, v)",
    "QLinearAdd": "q = com.microsoft.QLinearAdd(x, s, z, other, t, z, u, v)"
    "b = DequantizeLinear(q, u, v)",
    "QLinearMul": "q = com.microsoft.QLinearMul(x, s, z, other, t, z, u, v)"
    "b = DequantizeLinear(q, u, v)",
    "QLinearSigmoid": "q = com.microsoft.QLinearSigmoid(x, s, z, u, v)"
    "b = DequantizeLinear(q, u, v)",
    "QLinearLeakyRelu": "q = com.microsoft.QLinearLeakyRelu<alpha=0.2>(x, s, z, u, v)"
    "b = DequantizeLinear(q, u, v)",
    "QLinearSoftmax": "q = com.microsoft.QLinearSoftmax<axis=-1,opset=17>(x, s, z, u, v)"
    "b = DequantizeLinear(q, u, v)",
    "QLinearGlobalAveragePool": "q = com.microsoft.QLinearGlobalAveragePool(x, s, z, u, v)"
    "b = DequantizeLinear(q, u, v)",
    "QLinearAveragePool": "q = com.microsoft.QLinearAveragePool<kernel_shape=[2,2]>(x, s, z, u, v)"
    "b = DequantizeLinear(q, u, v)",
    "QLinearConcat": "q = com.microsoft.QLinearConcat<axis=1>(u, v, x, s, z, other, t, z)"
    "b = DequantizeLinear(q, u, v)",
    "QGemm": "f = Reshape(x, gemm) q = com.microsoft.QGemm<transB=1>"
    "(f, s, z, side, t, y, line, u, v) b = DequantizeLinear(q, u, v)",
}
#: Those whose whole numbers are not rounded again.
EXACT = {
    "ConvInteger": "c = ConvInteger(x, kernel, z) b = Cast<to=1>(c)",
    "MatMulInteger": "c = MatMulInteger(x, square, z, y) b = Cast<to=1>(c)",
    "MatMulIntegerToFloat": "b = com.microsoft.MatMulIntegerToFloat(x, square, s, t, z, y)",
}


def built(nodes: str, folder: Path, seed: int) -> Path:
    """A model of the nodes with random weights of 7 bits, whose sums no processor clips."""
    rng = np.random.default_rng(seed)
    text = f"{HEAD} g (uint8[1,2,6,6] x) => (float b) <{CONSTANTS}> {{ {nodes} }}"
    model = onnx.parser.parse_model(text)
    arrays = {
        "other": rng.integers(0, 256, (1, 2, 6, 6)).astype(np.uint8),
        "kernels": rng.uniform(0.005, 0.02, 4).astype(np.float32),
        "squares": rng.uniform(0.005, 0.02, 5).astype(np.float32),
        "middle": np.zeros(4, np.int8),
        "zeros": np.zeros(5, np.int8),
    }
    sizes = {"kernel": (4, 2, 3, 3), "square": (6, 5), "table": (9, 6), "side": (5, 36)}
    arrays |= {n: rng.integers(-63, 64, size).astype(np.int8) for n, size in sizes.items()}
    graph = model.graph
    kept = [tensor for tensor in graph.initializer if tensor.name not in arrays]
    read = {name for node in graph.node for name in node.input}
    kept += [onnx.numpy_helper.from_array(array, name) for name, array in arrays.items()]
    del graph.initializer[:]
    graph.initializer.extend(tensor for tensor in kept if tensor.name in read)
    file = folder / "quantised.onnx"
    onnx.save(model, file)
    return file


def outputs(file: Path, x: Any) -> Any:
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x} if session.get_inputs() else {})[0]


def both(nodes: str, folder: Path, seed: int) -> tuple[Any, Any]:
    """The results of a model and of its copy in floats."""
    file, goal = built(nodes, folder, seed), folder / "floats.onnx"
    assert dequantised(file, goal)
    ops = {node.op_type for node in onnx.load(goal).graph.node}
    assert not [op for op in ops if "Linear" in op or "Integer" in op or op == "QGemm"]
    x = np.random.default_rng(seed).integers(0, 256, (1, 2, 6, 6)).astype(np.uint8)
    return outputs(file, x), outputs(goal, x)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", RESULTS)
def test_a_result_is_moved_by_half_a_step_at_most(name: str, seed: int, tmp_path: Path) -> None:
    quantised, floats = both(RESULTS[name], tmp_path, seed)
    assert quantised.shape == floats.shape
    assert np.abs(quantised - floats).max() <= STEP / 2 * 1.001


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", EXACT)
def test_sums_of_whole_numbers_are_the_same(name: str, seed: int, tmp_path: Path) -> None:
    quantised, floats = both(EXACT[name], tmp_path, seed)
    np.testing.assert_allclose(quantised, floats, rtol=1e-6, atol=1e-5)


def test_an_op_without_floats_is_named(tmp_path: Path) -> None:
    nodes = "q = com.microsoft.QLinearReduceMean(x, s, z, u, v) b = DequantizeLinear(q, u, v)"
    with pytest.raises(ModelError, match="no floats are written for QLinearReduceMean"):
        dequantised(built(nodes, tmp_path, 0), tmp_path / "floats.onnx")


def test_a_quantised_op_in_a_body_is_named(tmp_path: Path) -> None:
    text = f"""{HEAD} g (bool c) => (float y)
    <float s = {{0.5}}, uint8 z = {{3}}, uint8 q = {{9}}> {{
        y = If(c) <
            then_branch = t () => (float a) {{ a = DequantizeLinear(q, s, z) }},
            else_branch = e () => (float b) {{ b = Identity(s) }}
        >
    }}"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "m.onnx")
    with pytest.raises(ModelError, match="no floats are written for DequantizeLinear 'a'"):
        dequantised(tmp_path / "m.onnx", tmp_path / "floats.onnx")


def test_a_quantised_model_is_converted_in_floats(tmp_path: Path) -> None:
    pytest.importorskip("pnnx", reason="it converts to ncnn")
    pytest.importorskip("ncnn", reason="it runs what pnnx writes")
    file = built(RESULTS["QLinearConv"], tmp_path, 0)
    refused = zs.convert(file, "ncnn", tmp_path / "as-it-is")
    assert not refused.ok
    assert after_convert(refused).endswith(" --dequantize")
    report = zs.convert(file, "ncnn", tmp_path / "floats", dequantize=True)
    assert report.ok, report.checks
    assert report.model == str(file)
    assert any("dequantized: QLinearConv" in note for note in report.notes)
    (distance,) = re.findall(r"at most (\S+),", " ".join(report.notes))
    assert 0 < float(distance) <= STEP
    assert after_convert(report) == ""
    again = zs.verify(
        tmp_path / "floats" / "quantised.float.onnx",
        "ncnn",
        against=tmp_path / "floats" / "quantised.ncnn.param",
        seed=1,
    )
    assert again.ok, again.checks
