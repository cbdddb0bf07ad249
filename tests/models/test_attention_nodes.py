"""ONNX's Attention in model files: verdicts, drawings, numbers."""

from __future__ import annotations

import json
from typing import Any

import pytest

import zerostride as zs
from zerostride.models.options import ModelOptions
from zerostride.report.next_command import after_audit

onnx = pytest.importorskip("onnx")

SHAPES = {"q": (2, 4, 3, 8), "k": (2, 2, 5, 8), "v": (2, 2, 5, 8)}


def model(
    tmp_path: Any,
    shapes: dict[str, tuple[Any, ...]],
    op: str = "Attention",
    domain: str = "",
    opset: int = 24,
    order: tuple[str, ...] = (),
    outputs: tuple[str, ...] = ("y",),
    mask: str = "FLOAT",
    **attributes: Any,
) -> str:
    """A file of one node; returns its path."""
    helper, kinds = onnx.helper, onnx.TensorProto
    node = helper.make_node(
        op, order or tuple(shapes), outputs, "attend", domain=domain, **attributes
    )
    values = [
        helper.make_tensor_value_info(
            name, kinds.DataType.Value(mask if name == "m" else "FLOAT"), shape
        )
        for name, shape in shapes.items()
    ]
    results = [helper.make_tensor_value_info(name, kinds.FLOAT, None) for name in outputs]
    opsets = [helper.make_opsetid("", opset)]
    if domain:
        opsets.append(helper.make_opsetid(domain, 1))
    path = tmp_path / "attention.onnx"
    graph = helper.make_graph([node], "g", values, results)
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=11), path)
    return str(path)


def finding(path: str, target: str, **how: Any) -> Any:
    (found,) = zs.audit(path, target=target, **how).findings
    return found


@pytest.mark.parametrize("target", ["onnxruntime", "openvino", "torch", "numpy", "litert", "jax"])
def test_grouped_heads_mean_the_same_where_they_are_known(tmp_path: Any, target: str) -> None:
    found = finding(model(tmp_path, {**SHAPES, "m": (3, 5)}), target)
    assert found.verdict == "same"
    assert (found.source.space.kv_head, found.source.space.group) == (2, 2)
    assert found.source == found.target or target in ("torch", "onnxruntime")


@pytest.mark.parametrize(("target", "way"), [("mnn", "mnnconvert"), ("ncnn", "pnnx")])
def test_a_converter_without_attention_is_said(tmp_path: Any, target: str, way: str) -> None:
    path = model(tmp_path, SHAPES)
    found = finding(path, target)
    assert (found.verdict, found.reason) == ("refused", "no_op")
    assert found.message.startswith(f"{way} does not convert Attention")
    report = zs.audit(path, target=target)
    words = after_audit(report, report.fresh, ModelOptions(None))
    assert words.startswith("zerostride convert")  # it writes it out


def test_a_short_mask_is_short_from_op_set_24(tmp_path: Any) -> None:
    shapes = {**SHAPES, "m": (3, 1)}
    new = finding(model(tmp_path, shapes), "torch")
    assert (new.verdict, new.code) == ("different", "ZS117")
    assert "keys from 1 are masked" in new.message
    assert finding(model(tmp_path, shapes, opset=23), "torch").verdict == "same"
    refused = finding(model(tmp_path, shapes, opset=23), "onnxruntime")
    assert (refused.verdict, refused.reason) == ("refused", "extent_mismatch")


def test_a_causal_mask_with_past_keys_begins_elsewhere_on_openvino(tmp_path: Any) -> None:
    shapes: dict[str, tuple[Any, ...]] = {**SHAPES, "pk": (2, 2, 4, 8), "pv": (2, 2, 4, 8)}
    order = ("q", "k", "v", "", "pk", "pv")
    outputs = ("y", "present_k", "present_v")
    path = model(tmp_path, shapes, order=order, outputs=outputs, is_causal=1)
    found = finding(path, "openvino")
    assert (found.verdict, found.code) == ("different", "ZS117")
    assert "query i sees keys to i + 6, in the model query i sees keys to i + 4" in found.message
    assert found.witness.inputs.endswith("drawn with seed 0")
    assert found.witness.source != found.witness.target


def test_open_sizes_say_where_it_differs(tmp_path: Any) -> None:
    shapes: dict[str, tuple[Any, ...]] = {
        "q": ("B", 4, "S", 8), "k": ("B", 2, "T", 8), "v": ("B", 2, "T", 8),
        "pk": ("B", 2, "P", 8), "pv": ("B", 2, "P", 8),
    }  # fmt: skip
    order = ("q", "k", "v", "", "pk", "pv")
    outputs = ("y", "present_k", "present_v")
    path = model(tmp_path, shapes, order=order, outputs=outputs, is_causal=1)
    found = finding(path, "openvino")
    assert (found.verdict, str(found.when)) == ("different", "S != T")
    assert finding(model(tmp_path, {k: shapes[k] for k in "qkv"}), "openvino").verdict == "same"


def test_a_silent_engine_is_different(tmp_path: Any) -> None:
    shapes: dict[str, tuple[Any, ...]] = {"q": (1, 3, 16), "k": (1, 5, 16), "v": (1, 5, 16)}
    path = model(
        tmp_path, shapes, "MultiHeadAttention", "com.microsoft", 21, num_heads=2, unidirectional=1
    )
    found = finding(path, "onnxruntime")
    assert found.verdict == "refused"  # the op's own meaning is what it does
    assert "the last query sees every key" in found.message
    plain = model(tmp_path, shapes, "MultiHeadAttention", "com.microsoft", 21, num_heads=2)
    assert finding(plain, "onnxruntime").verdict == "same"
    assert finding(plain, "openvino").verdict == "same"
    assert finding(plain, "tensorrt").verdict == "refused"


def test_a_model_that_does_not_fit_is_refused(tmp_path: Any) -> None:
    found = finding(model(tmp_path, {**SHAPES, "m": (2, 3, 5)}), "onnxruntime")
    assert (found.verdict, found.reason) == ("refused", "invalid_source")
    assert "the mask's head axis does not fit" in found.message


def test_a_past_of_unknown_sizes_is_named(tmp_path: Any) -> None:
    path = model(tmp_path, SHAPES, order=("q", "k", "v", "", "pk", "pv"), is_causal=1)
    loaded = onnx.load(path)
    for name in ("pk", "pv"):
        value = loaded.graph.input.add(name=name)
        value.type.tensor_type.elem_type = 1
    onnx.save(loaded, path)
    found = finding(path, "onnxruntime")
    assert (found.verdict, found.reason) == ("unknown", "unknown_shape")
    assert "'pk'" in found.message


@pytest.mark.parametrize("attribute", [{"scale": "x"}, {"softcap": [1, 2]}, {"is_causal": "x"}])
def test_attributes_of_another_type_end_no_audit(tmp_path: Any, attribute: dict[str, Any]) -> None:
    assert finding(model(tmp_path, SHAPES, **attribute), "onnxruntime").verdict in (
        "same",
        "unknown",
    )


def test_reports_draw_an_attention(tmp_path: Any) -> None:
    report = zs.audit(model(tmp_path, {**SHAPES, "m": (3, 1)}), target="torch")
    assert "kv head" in str(report)
    data = json.loads(report.to_json())["findings"][0]
    assert data["source"]["operands"]["key"]["repeats"] == ["group", "query"]
    assert data["target"]["engine"] == "torch"
    assert "neighbouring query heads" in report.to_html()


def test_attention_without_masks_and_groups_is_no_broadcast(tmp_path: Any) -> None:
    shapes = dict.fromkeys("qkv", (1, 2, 3, 4))
    path = model(tmp_path, shapes)
    assert not zs.audit(path, target="tensorrt").findings
