"""ONNX files brought to LiteRT by onnx2tf, in its own environment.

ZEROSTRIDE_PYTHON_ONNX2TF names its interpreter.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zerostride as zs
from zerostride.models.findings import Outcome

onnx: Any = pytest.importorskip("onnx", reason="the models are made with the onnx package")
pytest.importorskip("ai_edge_litert", reason="the files run on LiteRT")

pytestmark = [
    pytest.mark.conformance,
    pytest.mark.skipif(
        "ZEROSTRIDE_PYTHON_ONNX2TF" not in os.environ,
        reason="onnx2tf pins the releases of its packages: no interpreter with it is named",
    ),
]
HEAD = '<ir_version: 9, opset_import: ["" : 17]>\n'
MODELS = {
    "several outputs and odd names": """g (float[N,3,8,8] x, float[3,1,1] b) =>
        (float[N,3,8,8] z, float[N,3,8,8] a, float[N,8,8,3] m) {
            a = Mul(x, b)
            z = Add(a, x)
            m = Transpose<perm = [0, 2, 3, 1]>(z)
        }""",
    "a convolution and a mask": """g (float[1,4,10] x, int64[1] n) => (float[1,6,10] y)
        <float[6,4,3] w, int64[10] places = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, float none = {0}> {
            c = Conv<pads = [1, 1]>(x, w)
            inside = Less(places, n)
            y = Where(inside, c, none)
        }""",
    "inputs read in another order": """g (float[4] a, float[4] b, float[4] c, float[4] d) =>
        (float[4] y, float[4] z) {
            s = Sub(d, b)
            t = Exp(c)
            u = Sub(t, a)
            y = Mul(s, u)
            z = Sub(c, u)
        }""",
    "a constant beside a result": """g (float[1,5] x) => (float[1,5] y, int64[1] n) {
            y = Tanh(x)
            n = Constant<value = int64[1] {3000}>()
        }""",
}


@pytest.mark.parametrize("name", MODELS)
def test_a_model_is_converted_ported_and_proven(name: str, tmp_path: Path) -> None:
    model = onnx.parser.parse_model(HEAD + MODELS[name])
    for number, node in enumerate(model.graph.node):
        node.name = f"{node.op_type}@{number}:é"
    if "w" in MODELS[name]:
        numbers = onnx.numpy_helper.from_array(_waves(6, 4, 3), "w")
        model.graph.initializer.append(numbers)
    onnx.save(model, tmp_path / "m.onnx")
    before = (tmp_path / "m.onnx").read_bytes()
    report = zs.convert(tmp_path / "m.onnx", "litert", tmp_path / "out", seed=1)
    assert report.ok, report.checks
    assert {check.outcome for check in report.checks} == {Outcome.AGREES}
    assert report.output == str(tmp_path / "out" / "m.litert.tflite")
    assert (tmp_path / "m.onnx").read_bytes() == before
    again = zs.verify(
        tmp_path / "m.onnx",
        "litert",
        against=report.output,
        seed=2,
        sizes={"N": 1} if "N," in MODELS[name] else None,
    )
    assert {check.outcome for check in again.checks} == {Outcome.AGREES}


def test_what_onnx2tf_refuses_is_named(tmp_path: Path) -> None:
    text = "g (float[1,3] x) => (float[1,3] y) { z = Celu(x) y = NoSuchOp(z) }"
    onnx.save(onnx.parser.parse_model(HEAD + text), tmp_path / "m.onnx")
    report = zs.convert(tmp_path / "m.onnx", "litert", tmp_path / "out")
    assert not report.ok
    assert report.output is None
    (check,) = report.checks
    assert check.outcome is Outcome.REFUSED
    assert "NoSuchOp" in check.detail


def _waves(*shape: int) -> Any:
    return np.sin(np.arange(np.prod(shape))).reshape(shape).astype(np.float32)
