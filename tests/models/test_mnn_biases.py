"""Additions that mnnconvert makes a bias; tests/conformance/test_mnn_fusion.py runs them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zerostride as zs

onnx: Any = pytest.importorskip("onnx", reason="the models are made with the onnx package")

MODEL = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[1,3,5,3] x) => (float y) <float[3,3,1,1] w, float[{shape}] c> {{
    t = Conv(x, w)
    {between}
    y = {addition}
}}
"""


def verdict(
    folder: Path, shape: str, addition: str = "Add(t, c)", between: str = ""
) -> tuple[str, str]:
    text = MODEL.format(shape=shape, between=between, addition=addition)
    model = onnx.parser.parse_model(text)
    rng, sizes = (
        np.random.default_rng(0),
        {"w": (3, 3, 1, 1), "c": tuple(map(int, shape.split(",")))},
    )
    del model.graph.initializer[:]
    for name, size in sizes.items():
        array = rng.normal(size=size).astype(np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    onnx.save(model, folder / "m.onnx")
    finding = zs.audit(folder / "m.onnx", "mnn").findings[-1]
    return str(finding.verdict), finding.message


@pytest.mark.parametrize(
    ("shape", "addition", "between", "wrong"),
    [
        ("3", "Add(t, c)", "", "along axis 1, because it has as many numbers"),
        ("1,1,1,3", "Sum(t, c)", "", "along axis 1"),
        ("3,1,1", "Add(r, c)", "r = Relu(t)", "before the Relu"),
        ("3,1,1", "Add(t, c)", "", ""),
        ("3", "Add(c, t)", "", ""),
        ("3", "Sub(t, c)", "", ""),
        ("5,3", "Add(t, c)", "", ""),
        ("3,1,1", "Add(r, c)", "r = Sigmoid(t)", ""),
        ("3,1,1", "Add(r, u)", "r = Relu(t) u = Abs(t)", ""),
    ],
)
def test_a_wrong_bias_is_different(
    tmp_path: Path, shape: str, addition: str, between: str, wrong: str
) -> None:
    word, message = verdict(tmp_path, shape, addition, between)
    assert word == ("different" if wrong else "same"), message
    assert wrong in message


def test_a_malformed_layer_is_no_layer(tmp_path: Path) -> None:
    helper = onnx.helper
    nodes = [
        helper.make_node("Conv", ["x"], ["t"]),
        helper.make_node("MatMul", ["x"], ["u"]),
        helper.make_node("Add", ["t", "u"], ["y"]),
    ]
    x, y = (helper.make_tensor_value_info(name, 1, (1, 3, 5, 3)) for name in "xy")
    onnx.save(helper.make_model(helper.make_graph(nodes, "g", [x], [y])), tmp_path / "m.onnx")
    assert zs.audit(tmp_path / "m.onnx", "mnn").findings


@pytest.mark.parametrize(
    ("layer", "by"), [("Conv(x, w)", "swap"), ("MatMul(x, w)", "expand")], ids=["Conv", "MatMul"]
)
def test_a_port_keeps_the_addition_apart(tmp_path: Path, layer: str, by: str) -> None:
    """mnnconvert takes either operand of a MatMul's addition, and the second of a convolution's."""
    shape, weights = ("1,3,5,3", "3,3,1,1") if by == "swap" else ("3,3", "3,3")
    constant = "3" if by == "swap" else "3,1"
    text = f"""<ir_version: 8, opset_import: ["" : 17]>
    g (float[{shape}] x) => (float[{shape}] y) <float[{weights}] w, float[{constant}] c> {{
        t = {layer} y = Add(t, c)
    }}"""
    model = onnx.parser.parse_model(text)
    for name, sizes in (("w", weights), ("c", constant)):
        array = np.random.default_rng(0).normal(size=tuple(map(int, sizes.split(","))))
        model.graph.initializer.append(onnx.numpy_helper.from_array(array.astype("f"), name))
    onnx.save(model, tmp_path / "m.onnx")
    assert str(zs.audit(tmp_path / "m.onnx", "mnn").findings[-1].verdict) == "different"
    report = zs.port(tmp_path / "m.onnx", "mnn", tmp_path / "ported.onnx")
    assert [change.by for change in report.changes] == [by]
    assert {str(f.verdict) for f in zs.audit(tmp_path / "ported.onnx", "mnn").findings} == {"same"}
