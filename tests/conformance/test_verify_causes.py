"""Verifications of conversions that differ: they name the cause as bisections do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zerostride as zs

onnx = pytest.importorskip("onnx", reason="writes the models")
from compound_cases import CASES  # noqa: E402 - onnx may be missing
from onnx import helper  # noqa: E402

pytestmark = pytest.mark.conformance


def attention(*, causal: bool) -> Any:
    """A written-out attention; its mask hides the later keys, or the earlier ones."""
    mask = np.triu(np.full((4, 4), -1e9, np.float32), 1)
    node = helper.make_node
    nodes = [
        node("Transpose", ["k"], ["kt"], "turned", perm=[0, 1, 3, 2]),
        node("MatMul", ["q", "kt"], ["scores"], "scores"),
        node("Add", ["scores", "mask"], ["masked"], "masked"),
        node("Softmax", ["masked"], ["weights"], "softmax", axis=-1),
        node("MatMul", ["weights", "v"], ["weighted"], "weighted"),
        node("Relu", ["weighted"], ["y"], "relu"),
    ]
    values = [helper.make_tensor_value_info(name, 1, (1, 2, 4, 8)) for name in "qkvy"]
    held = [onnx.numpy_helper.from_array(mask if causal else np.ascontiguousarray(mask.T), "mask")]
    graph = helper.make_graph(nodes, "g", values[:3], values[3:], held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("target", ["openvino", "mnn", "ncnn"])
def test_a_mask_that_differs_is_named(tmp_path: Path, target: str) -> None:
    pytest.importorskip({"mnn": "MNN"}.get(target, target))
    path, other = tmp_path / "model.onnx", tmp_path / "other.onnx"
    onnx.save(attention(causal=True), path)
    onnx.save(attention(causal=False), other)
    converted = zs.convert(str(other), target, output=tmp_path / "out").output
    report = zs.verify(path, engine=target, against=converted)
    (inside,) = [check for check in report.checks if check.node]
    assert inside.detail.endswith("; in the attention of 'softmax': it adds its mask of (4,4)")
    (output,) = [check for check in report.checks if not check.node]
    assert "attention" not in output.detail


def test_an_output_has_the_finding_of_a_node_before_it(tmp_path: Path) -> None:
    openvino = pytest.importorskip("openvino")
    case = CASES["RotaryEmbedding"](5)
    path, other = tmp_path / "model.onnx", tmp_path / "other.xml"
    onnx.save(case.model(), path)
    openvino.save_model(openvino.convert_model(str(path)), str(other), compress_to_fp16=False)
    report = zs.verify(path, engine="openvino", against=other, inputs=case.feeds())
    (check,) = report.checks
    words = "the audit: compound (RotaryEmbedding): openvino takes rotary_embedding_dim for the"
    assert words in check.detail
