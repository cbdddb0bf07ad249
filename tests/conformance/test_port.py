"""Ported models on the real engines: broadcasts that failed give the model's numbers.

Every engine runs in a process of its own. ncnn is reached through pnnx, OpenVINO and MNN by their
own readers of ONNX; the reference is this package's executor, which conformance tests of its own
hold against ONNX Runtime.
"""

from __future__ import annotations

import random
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from child import Child

onnx: Any = pytest.importorskip("onnx", reason="the models are made with the onnx package")

import zerostride as zs  # noqa: E402
from zerostride.models.execute import execute  # noqa: E402
from zerostride.models.findings import Report  # noqa: E402
from zerostride.models.formats import read_model  # noqa: E402

pytestmark = pytest.mark.conformance

HERE = Path(__file__).parent
Shape = tuple[int, ...]
#: A converter or a compiler is started for each model.
SECONDS = 120


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", zs.EngineVersionWarning)
        yield


def save(folder: Path, op: str, x: Shape, weights: list[Any], **attributes: Any) -> Path:
    """A model of one op whose further operands are constants; what comes before is a Relu."""
    helper = onnx.helper
    names = [f"w{k}" for k in range(len(weights))]
    nodes = [
        helper.make_node("Relu", ["x"], ["h"]),
        helper.make_node(op, ["h", *names], ["y"], name="site", **attributes),
    ]
    values = [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, x)]
    results = [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)]
    constants = [onnx.numpy_helper.from_array(w, n) for w, n in zip(weights, names, strict=True)]
    graph = helper.make_graph(nodes, "g", values, results, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    file = folder / "model.onnx"
    onnx.save(model, file)
    return file


def ramp(*shape: int) -> Any:
    """No two numbers alike."""
    return np.linspace(0.5, 1.5, int(np.prod(shape)), dtype=np.float32).reshape(shape)


def ported(file: Path, target: str, **options: Any) -> tuple[Report, Path]:
    goal = file.with_name("ported.onnx")
    return zs.port(file, target, goal, **options), goal


def fed(file: Path) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {
        value.name: rng.uniform(-1, 1, [n for n in value.shape or () if isinstance(n, int)]).astype(
            np.float32
        )
        for value in read_model(file).inputs
    }


def wanted(file: Path) -> Any:
    (result,) = execute(read_model(file), fed(file)).values()
    return result


def close(got: Any, expected: Any) -> bool:
    return (
        got is not None
        and got.size == expected.size
        and bool(np.allclose(got.ravel(), expected.ravel(), rtol=5e-3, atol=1e-3))
    )


# OpenVINO.

_OPENVINO = """
import sys, numpy as np, openvino
feeds = dict(np.load(sys.argv[2]))
model = openvino.Core().compile_model(sys.argv[1], "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
np.save(sys.argv[3], model(feeds)[0])
"""


def run_openvino(file: Path) -> Any:
    """OpenVINO's answer; None where it refuses or dies."""
    pytest.importorskip("openvino", reason="the engine is an extra, not a test need")
    inputs, output = file.with_suffix(".npz"), file.with_suffix(".npy")
    np.savez(inputs, **fed(file))
    done = subprocess.run(
        [sys.executable, "-c", _OPENVINO, str(file), str(inputs), str(output)],
        capture_output=True,
        timeout=SECONDS,
    )
    return np.load(output) if done.returncode == 0 else None


@pytest.mark.parametrize("x", [(2, 5, 5), (2, 5, 3, 5), (3, 4, 4)])
def test_prelu_slopes_are_ported_to_openvino(tmp_path: Path, x: Shape) -> None:
    """A vector of slopes goes to the channels there, in ONNX to the last axis."""
    file = save(tmp_path, "PRelu", x, [ramp(x[-1]) * -1])
    file_with_signs = onnx.load(file)
    file_with_signs.graph.node[0].op_type = "Identity"  # slopes are for what is below zero
    onnx.save(file_with_signs, file)
    report, goal = ported(file, "openvino")
    assert report.before[0].verdict != "same"
    assert report.ok
    assert not close(run_openvino(file), wanted(file))
    assert close(run_openvino(goal), wanted(file))


# MNN.


def run_mnn(file: Path) -> Any:
    """MNN's answer, from its own converter; None where it refuses or dies."""
    pytest.importorskip("MNN", reason="the engine is an extra, not a test need")
    model, inputs, output = (file.with_suffix(end) for end in (".mnn", ".npz", ".out.npz"))
    np.savez(inputs, **fed(file))
    worker = str(HERE / "mnn_worker.py")
    for words in (
        ["convert", str(file), str(model)],
        ["run", str(model), str(inputs), str(output), "y"],
    ):
        done = subprocess.run(
            [sys.executable, worker, *words], capture_output=True, timeout=SECONDS
        )
        if done.returncode:
            return None
    return np.load(output)["y"]


MNN = {
    "matrices that are paired": ("MatMul", (3, 1, 4, 5), [ramp(1, 3, 5, 4)]),
    "slopes along the width": ("PRelu", (2, 5, 5, 5), [ramp(5)]),
}


@pytest.mark.parametrize("name", MNN)
def test_compounds_are_ported_to_mnn(tmp_path: Path, name: str) -> None:
    op, x, weights = MNN[name]
    file = save(tmp_path, op, x, weights)
    report, goal = ported(file, "mnn")
    assert report.before[0].verdict != "same"
    assert report.ok, report.findings[0].notes
    assert close(run_mnn(goal), wanted(file))


# ncnn, through pnnx.


@pytest.fixture(scope="module")
def ncnn() -> Iterator[Child]:
    pytest.importorskip("pnnx", reason="the converter is an extra, not a test need")
    with Child("ncnn") as child:
        if child.missing:
            pytest.skip(f"ncnn is not installed: {child.missing}")
        yield child


def run_ncnn(child: Child, file: Path) -> Any:
    """ncnn's answer to what pnnx makes of a model; None where either fails."""
    from test_pnnx import convert, numbers

    folder = file.with_suffix("")
    folder.mkdir()
    if not convert(file.read_bytes(), folder):
        return None
    word, got = numbers(child, folder, fed(file))
    return got if word == "result" else None


PNNX = {
    "three operands": ("Max", (1, 4, 4, 4), [ramp(4), ramp(4, 1, 1)]),
    "four operands": ("Min", (4, 5, 5), [ramp(5), ramp(5, 1), ramp(4, 1, 1)]),
    "two operands": ("Add", (4, 5, 5), [ramp(5)]),
}


@pytest.mark.parametrize("name", PNNX)
def test_nodes_that_pnnx_leaves_are_ported_to_ncnn(ncnn: Child, tmp_path: Path, name: str) -> None:
    op, x, weights = PNNX[name]
    file = save(tmp_path, op, x, weights)
    report, goal = ported(file, "ncnn", via="pnnx")
    assert report.ok
    assert bool(report.changes) == (len(weights) > 1)
    assert close(run_ncnn(ncnn, goal), wanted(file))


def test_generated_operands_are_ported_to_ncnn(ncnn: Child, tmp_path: Path) -> None:
    """Ported for ncnn itself, so that it does not matter what pnnx puts in."""
    rng = random.Random(0)
    right = 0
    for k in range(12):
        folder = tmp_path / str(k)
        folder.mkdir()
        x = tuple(rng.choice([2, 3, 4]) for _ in range(rng.choice([2, 3, 4])))
        length = rng.randint(1, len(x))
        other = tuple(rng.choice([1, n, n]) for n in x[len(x) - length :])
        file = save(folder, rng.choice(["Add", "Sub", "Mul"]), x, [ramp(*other)])
        report, goal = ported(file, "ncnn", via="none", batch_axis=-1)
        if report.ok:
            assert close(run_ncnn(ncnn, goal), wanted(file)), (x, other)
            right += 1
    assert right > 8
