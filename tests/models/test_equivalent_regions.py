"""The nodes of two models that are not shown to be the same, as model files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import parser
from onnx.reference import ReferenceEvaluator

import zerostride as zs

HEAD = '<ir_version: 8, opset_import: ["" : 17]> g '
TANH = "(float[N,4] x) => (float[a,b] y) { r = Relu(x) t = Tanh(r) u = Neg(t) y = Abs(u) }"
SIGMOID = (
    "(float[N,4] x) => (float[a,b] y) <float two={2}, float one={1}> { r = Relu(x)"
    " d = Mul(r, two) s = Sigmoid(d) m = Mul(s, two) t = Sub(m, one) u = Neg(t) y = Abs(u) }"
)


def files(folder: Path, *texts: str) -> list[Path]:
    paths = [folder / f"m{k}.onnx" for k in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        onnx.save(parser.parse_model(HEAD + text), path)
    return paths


def test_a_region_is_two_models_that_run(tmp_path: Path) -> None:
    result = zs.equivalent(*files(tmp_path, TANH, SIGMOID)).equivalence
    assert result is not None
    assert result.verdict == "undecided"
    assert list(result.regions) == ["first.onnx", "second.onnx"]
    first, second = (onnx.load_from_string(data) for data in result.regions.values())
    assert [node.op_type for node in first.graph.node] == ["Tanh", "Neg"]
    for one in (first, second):
        onnx.checker.check_model(one)
        assert [value.name for value in one.graph.input] == ["r"]
        assert one.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "N"
    x = np.linspace(0, 2, 12, dtype=np.float32).reshape(3, 4)
    numbers = [ReferenceEvaluator(one).run(["u"], {"r": x})[0] for one in (first, second)]
    np.testing.assert_allclose(*numbers, rtol=1e-6)


def test_a_region_is_written(tmp_path: Path) -> None:
    one, other = files(tmp_path, TANH, SIGMOID)
    command = [sys.executable, "-m", "zerostride", "equivalent"]
    told = subprocess.run([*command, one, other], capture_output=True, text=True)
    assert f"next: zerostride equivalent {one} {other} --region region" in told.stdout
    folder = tmp_path / "region"
    done = subprocess.run(
        [*command, one, other, "--region", folder], capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "has the nodes in question" in done.stdout
    names = sorted(file.name for file in folder.iterdir())
    assert names == ["first.onnx", "second.onnx"]
    again = subprocess.run(
        [*command, *(folder / name for name in names)], capture_output=True, text=True
    )
    assert again.returncode == 1
    assert "equal in both: r" in again.stdout


def test_nothing_is_written_of_equal_models(tmp_path: Path) -> None:
    (one,) = files(tmp_path, TANH)
    folder = tmp_path / "region"
    command = [sys.executable, "-m", "zerostride", "equivalent", one, one, "--region", folder]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0
    assert "is not written" in done.stdout
    assert not folder.exists()


def test_bisect_says_what_is_proven(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime", reason="bisect runs both files on it")
    one, other, twin = files(tmp_path, TANH, SIGMOID, TANH.replace("t = ", "r2 = Relu(r) t = "))
    notes = zs.bisect(one, other).notes
    assert any(note.startswith("proven equal for every size up to r") for note in notes)
    assert f"proven: {twin.name} means the same for every size" in zs.bisect(one, twin).notes
