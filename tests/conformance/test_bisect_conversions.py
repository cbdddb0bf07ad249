"""Bisection of an ONNX model against what real converters make of it and of its faulty form."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sampled import few

onnx: Any = pytest.importorskip("onnx", reason="the models are made with the onnx package")
pytest.importorskip("onnxruntime", reason="runs the model")

from campaigns.models.bisect_graphs import chain, faulty, saved  # noqa: E402
from campaigns.real_models.convert import convert  # noqa: E402

import zerostride as zs  # noqa: E402
from zerostride.runtimes.process import engines_kept  # noqa: E402

pytestmark = pytest.mark.conformance

#: A converter, and the module that it needs.
CONVERTERS = {"openvino": "openvino", "pnnx": "pnnx", "mnnconvert": "MNN"}
SHAPE = (1, 4, 6, 6)
X = np.random.default_rng(0).uniform(-1, 1, SHAPE).astype(np.float32)
SEEDS = range(10)
#: Faults that no tensor of the other side shows: a Max hides one, and of the other the converter
#: leaves one tensor, in which a normalisation took it away.
HIDDEN = {4, 7}


@pytest.fixture(autouse=True, scope="module")
def _kept() -> Iterator[None]:
    with engines_kept():
        yield


def converted(model: Any, converter: str, folder: Path) -> Path:
    pytest.importorskip(CONVERTERS[converter], reason="the converter is an extra")
    file = saved(model, folder / "converted.onnx")
    place = convert(file, converter, (f"x={','.join(map(str, SHAPE))}",), folder / converter)
    if isinstance(place, str):
        assert "ncnn does not load" in place
        pytest.skip(f"pnnx writes a layer that ncnn lacks: {place}")
    return place


@pytest.mark.parametrize("seed", few(3, SEEDS))
@pytest.mark.parametrize("converter", CONVERTERS)
def test_a_conversion_has_no_culprit(tmp_path: Path, converter: str, seed: int) -> None:
    model = chain(seed)
    report = zs.bisect(
        saved(model, tmp_path / "a.onnx"), converted(model, converter, tmp_path), inputs={"x": X}
    )
    assert report.ok, report.bisection.culprits
    assert report.bisection.compared > 2


@pytest.mark.parametrize("seed", few(3, [seed for seed in SEEDS if seed not in HIDDEN]))
@pytest.mark.parametrize("converter", CONVERTERS)
def test_the_changed_node_is_the_culprit(tmp_path: Path, converter: str, seed: int) -> None:
    model = chain(seed)
    changed, node, _ = faulty(model, seed)
    report = zs.bisect(
        saved(model, tmp_path / "a.onnx"), converted(changed, converter, tmp_path), inputs={"x": X}
    )
    (culprit,) = report.bisection.culprits
    assert node in culprit.nodes


def test_half_precision_of_pnnx_is_no_fault(tmp_path: Path) -> None:
    pnnx = pytest.importorskip("pnnx", reason="the converter is an extra")
    file = saved(chain(1, length=20), tmp_path / "a.onnx")
    subprocess.run([pnnx.EXEC_PATH, str(file)], cwd=tmp_path, capture_output=True, timeout=120)
    report = zs.bisect(file, tmp_path / "a.ncnn.param", inputs={"x": X})
    assert report.ok, report.bisection.culprits
    assert any("half precision" in note for note in report.notes)
    assert max(stage.drift or 0.0 for stage in report.bisection.stages) > 1e-4


#: Two sizes that OpenVINO keeps as one tensor with both names, and a number near them.
SIZES = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[N,4] x, float[N,4] big) => (float[M] y, float[K] near)
<int64 zero = {0}, int64[1] axis = {0}, int64[1] all = {-1}> {
    near_one = Sigmoid(big)
    near = ReduceMax<keepdims=0>(near_one)
    t = Transpose<perm=[1,0]>(x)
    s = Shape(x)
    n = Gather(s, zero)
    row = Unsqueeze(n, axis)
    again = Unsqueeze(n, axis)
    to = Concat<axis=0>(row, all, again)
    y = Reshape(t, to)
}
"""


def test_names_of_one_tensor_are_all_matched(tmp_path: Path) -> None:
    """The size 1 was once matched with a sigmoid of 0.999999, which as a whole number is 0."""
    pytest.importorskip("openvino", reason="the converter is an extra")
    file = tmp_path / "sizes.onnx"
    onnx.save(onnx.parser.parse_model(SIZES), file)
    place = convert(file, "openvino", (), tmp_path / "openvino")
    inputs = {"x": X[:1, :, 0, 0], "big": np.full((1, 4), 13.8, np.float32)}
    report = zs.bisect(file, place, inputs=inputs)
    assert report.ok, report.bisection.culprits
    stages = {stage.tensor: stage for stage in report.bisection.stages}
    assert stages["row"].other == stages["again"].other != "near"


#: Reductions over one axis, for which pnnx writes a layer that reduces none.
REDUCED = """
<ir_version: 9, opset_import: ["" : 18]>
g (float[1,3,8,8] x) => (float[1,8,8] y) <int64[1] axis = {1}> {
    c = Conv(x, w)
    m = OP <keepdims = 0> (c, axis)
    y = Add(m, p)
}
"""


@pytest.mark.parametrize("size", [(8,), (1, 8), (8, 8)])
@pytest.mark.parametrize("op", ["ReduceMean", "ReduceSum"])
def test_the_cause_is_what_the_file_says(tmp_path: Path, op: str, size: tuple[int, ...]) -> None:
    """The file reshapes p already; the layer before it has lost its axis."""
    pytest.importorskip("pnnx", reason="the converter is an extra")
    model = onnx.parser.parse_model(REDUCED.replace("OP", op))
    numbers = np.random.default_rng(1).uniform(-1, 1, size).astype(np.float32)
    weights = np.random.default_rng(2).uniform(-1, 1, (3, 3, 1, 1)).astype(np.float32)
    for name, array in {"p": numbers, "w": weights}.items():
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    onnx.save(model, file := tmp_path / "reduced.onnx")
    place = convert(file, "pnnx", ("x=1,3,8,8",), tmp_path / "pnnx")
    report = zs.bisect(file, place, seed=0)
    culprit = report.culprit
    assert culprit is not None
    assert f"(Reduction) of {place.name} gives the shape (3, 8, 8)" in culprit.cause
    assert f"({op}) of the model gives (1, 8, 8)" in culprit.cause
    assert "reshape p" not in culprit.fix
    assert culprit.plans is None
    _rewrite(place, "-23303=0 ", "-23303=1,0 ")
    assert zs.bisect(file, place, seed=0).ok


def _rewrite(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))
