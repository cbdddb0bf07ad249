"""Any tensors of a model file on its engine: outputs, and what lies between them and the inputs."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from zerostride.engines import ENGINES
from zerostride.runtimes.files import tensors
from zerostride.runtimes.process import running
from zerostride.runtimes.runners import RUNNERS
from zerostride.runtimes.task import ReplyKind

sys.path.insert(0, str(Path(__file__).parents[1] / "models"))

import tflite_files

onnx = pytest.importorskip("onnx", reason="writes the models")

pytestmark = pytest.mark.conformance

X = np.arange(6, dtype=np.float32).reshape(2, 3)
W = np.array([1, -2, 3], np.float32)
NCNN = """7767517
5 6
Input x 0 1 x
Split two 1 2 x x0 x1
BinaryOp times 1 1 x0 product 0=2 1=1 2=2.0
BinaryOp plus 2 1 product x1 sum 0=0
UnaryOp minus 1 1 sum negated 0=1
"""


def onnx_file(folder: Path) -> Path:
    node, info = onnx.helper.make_node, onnx.helper.make_tensor_value_info
    nodes = [
        node("Mul", ["x", "w"], ["product"]),
        node("Add", ["product", "x"], ["sum"]),
        node("Neg", ["sum"], ["negated"]),
    ]
    graph = onnx.helper.make_graph(
        nodes,
        "g",
        [info("x", onnx.TensorProto.FLOAT, X.shape)],
        [info("negated", onnx.TensorProto.FLOAT, X.shape)],
        [onnx.numpy_helper.from_array(W, "w")],
    )
    opsets = [onnx.helper.make_opsetid("", 17)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8), folder / "m.onnx")
    return folder / "m.onnx"


def litert_file(folder: Path) -> Path:
    model = tflite_files.Model()
    graph = model.main
    graph.input("x", *X.shape)
    graph.constant("w", W)
    graph.op("MUL", "x w", "product")
    graph.op("ADD", "product x", "sum")
    graph.op("NEG", "sum", "negated")
    graph.output("negated")
    return model.write(folder / "m.tflite")


def file_for(engine: str, folder: Path) -> Path:
    if engine == "litert":
        return litert_file(folder)
    if engine == "ncnn":
        (folder / "m.param").write_text(NCNN)
        return folder / "m.param"
    file = onnx_file(folder)
    if engine != "mnn":
        return file
    worker = Path(__file__).with_name("mnn_worker.py")
    command = [sys.executable, str(worker), "convert", str(file), str(folder / "m.mnn")]
    subprocess.run(command, check=True, capture_output=True)
    return folder / "m.mnn"


@pytest.mark.parametrize("engine", [name for name, row in RUNNERS.items() if row.files])
def test_every_tensor_of_a_file(engine: str, tmp_path: Path) -> None:
    weights = np.float32(2) if engine == "ncnn" else W
    product = X * weights
    meant = {"product": product, "sum": product + X, "negated": -(product + X)}
    module = ENGINES[engine].module
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"{module} is not installed")
    with running(engine, 60, memory=1 << 31) as process:
        file = file_for(engine, tmp_path)
        every = tensors(process, file, {"x": X}, list(meant))
        last = tensors(process, file, {"x": X}, ["result"], outputs=True)
        unknown = tensors(process, file, {"x": X}, ["nothing"])
        again = tensors(process, file, {"x": X}, ["sum"])
    assert every.kind is ReplyKind.RESULT, every.message
    for array, wanted in zip(every.arrays, meant.values(), strict=True):
        np.testing.assert_allclose(array, wanted)
    if engine != "mnn":  # it takes outputs by name alone
        np.testing.assert_allclose(last.arrays[0], meant["negated"])
    assert unknown.kind is not ReplyKind.RESULT
    np.testing.assert_allclose(again.arrays[0], meant["sum"])


def test_ncnn_reads_doubles_that_were_given(tmp_path: Path) -> None:
    """Its Mat does not keep an array alive: numbers of a freed one came out wrong."""
    pytest.importorskip("ncnn", reason="the engine is an extra, not a test need")
    path = tmp_path / "m.param"
    path.write_text(NCNN)
    rng = np.random.default_rng(0)
    with running("ncnn", 60.0) as process:
        for _ in range(20):
            array = rng.normal(size=(5, 5, 5, 5))
            reply = tensors(process, path, {"x": array}, ["negated"])
            np.testing.assert_allclose(reply.arrays[0], -3 * array, rtol=1e-5, atol=1e-5)
