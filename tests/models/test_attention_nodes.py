"""ONNX's Attention in model files: verdicts, drawings, numbers."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from attention_files import finding_of, model, onnx

import zerostride as zs
from zerostride.models.execute.program import not_executed
from zerostride.models.execute.run import execute
from zerostride.models.flow import flow
from zerostride.models.formats.onnx.format import read
from zerostride.models.options import ModelOptions
from zerostride.report.next_command import after_audit

evaluator = pytest.importorskip("onnx.reference")

SHAPES = {"q": (2, 4, 3, 8), "k": (2, 2, 5, 8), "v": (2, 2, 5, 8)}


@pytest.mark.parametrize("target", ["onnxruntime", "openvino", "torch", "numpy", "litert", "jax"])
def test_grouped_heads_mean_the_same_where_they_are_known(tmp_path: Any, target: str) -> None:
    finding = finding_of(model(tmp_path, {**SHAPES, "m": (3, 5)}), target)
    assert finding.verdict == "same"
    assert (finding.source.space.kv_head, finding.source.space.group) == (2, 2)
    assert finding.source == finding.target or target in ("torch", "onnxruntime")


@pytest.mark.parametrize(("target", "way"), [("mnn", "mnnconvert"), ("ncnn", "pnnx")])
def test_a_converter_without_attention_is_said(tmp_path: Any, target: str, way: str) -> None:
    path = model(tmp_path, SHAPES)
    finding = finding_of(path, target)
    assert (finding.verdict, finding.reason) == ("refused", "no_op")
    assert finding.message.startswith(f"{way} does not convert Attention")
    report = zs.audit(path, target=target)
    words = after_audit(report, report.fresh, ModelOptions(None))
    assert words.startswith("zerostride convert")  # it writes it out


def test_a_short_mask_is_short_from_op_set_24(tmp_path: Any) -> None:
    shapes = {**SHAPES, "m": (3, 1)}
    new = finding_of(model(tmp_path, shapes), "torch")
    assert (new.verdict, new.code) == ("different", "ZS117")
    assert "keys from 1 are masked" in new.message
    assert finding_of(model(tmp_path, shapes, opset=23), "torch").verdict == "same"
    refused = finding_of(model(tmp_path, shapes, opset=23), "onnxruntime")
    assert (refused.verdict, refused.reason) == ("refused", "extent_mismatch")


def test_a_causal_mask_with_past_keys_begins_elsewhere_on_openvino(tmp_path: Any) -> None:
    shapes: dict[str, tuple[Any, ...]] = {**SHAPES, "pk": (2, 2, 4, 8), "pv": (2, 2, 4, 8)}
    order = ("q", "k", "v", "", "pk", "pv")
    outputs = ("y", "present_k", "present_v")
    path = model(tmp_path, shapes, order=order, outputs=outputs, is_causal=1)
    finding = finding_of(path, "openvino")
    assert (finding.verdict, finding.code) == ("different", "ZS117")
    assert "query i sees keys to i + 6, in the model query i sees keys to i + 4" in finding.message
    assert finding.witness.inputs.endswith("drawn with seed 0")
    assert finding.witness.source != finding.witness.target


@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("opset", [24, 25])
def test_lengths_of_samples_have_a_verdict(tmp_path: Any, causal: int, opset: int) -> None:
    shapes = {**SHAPES, "m": (3, 5), "n": (2,)}
    order = ("q", "k", "v", "m", "", "", "n")
    path = model(tmp_path, shapes, order=order, opset=opset, kinds={"n": "INT64"}, is_causal=causal)
    for target in ("onnxruntime", "openvino", "litert"):
        finding = finding_of(path, target)
        assert finding.verdict == "same", finding.message
        assert "each sample has its own number of keys" in finding.source.explain()
        assert finding.source.offset == (2 if causal else None)  # of a sample of all 5 keys
    torch = finding_of(path, "torch")
    assert (torch.verdict, torch.reason) == ("refused", "attribute")
    assert "no number of keys for each sample" in torch.message
    assert "zerostride convert" in finding_of(path, "mnn").message


def test_lengths_of_samples_beside_a_past_are_refused(tmp_path: Any) -> None:
    """By onnx.reference, ONNX Runtime and OpenVINO alike."""
    shapes: dict[str, tuple[Any, ...]] = {**SHAPES, "n": (2,)}
    shapes |= {"pk": (2, 2, 4, 8), "pv": (2, 2, 4, 8)}
    order = ("q", "k", "v", "", "pk", "pv", "n")
    finding = finding_of(model(tmp_path, shapes, order=order, kinds={"n": "INT64"}), "onnxruntime")
    assert (finding.verdict, finding.reason) == ("refused", "invalid_source")


@pytest.mark.parametrize(
    ("attributes", "facts"),
    [
        ({"left_window_size": 1}, (None, 0, 2)),
        ({"right_window_size": 1}, (1, None, None)),
        ({"left_window_size": 0, "right_window_size": 0, "is_causal": 1}, (0, 0, 1)),
        ({"left_window_size": 4, "right_window_size": 4}, (None, None, None)),  # none is hidden
    ],
)
def test_windows_have_a_verdict(
    tmp_path: Any, attributes: dict[str, int], facts: tuple[int | None, ...]
) -> None:
    path = model(tmp_path, SHAPES, opset=25, **attributes)
    finding = finding_of(path, "onnxruntime")
    assert finding.verdict == "same", finding.message
    assert (finding.source.offset, finding.source.own, finding.source.window) == facts
    unread = finding_of(path, "openvino")
    if any(fact is not None for fact in facts):
        assert (unread.verdict, unread.code) == ("different", "ZS117")
        assert unread.witness.source != unread.witness.target
    else:
        assert unread.verdict == "same"


def test_windows_of_open_sizes_are_not_the_same_on_openvino(tmp_path: Any) -> None:
    shapes: dict[str, tuple[Any, ...]] = {
        name: (1, 2, length, 8) for name, length in zip("qkv", "STT", strict=True)
    }
    path = model(tmp_path, shapes, opset=25, left_window_size=1)
    assert finding_of(path, "openvino").verdict == "different"
    assert finding_of(path, "onnxruntime").verdict == "same"


def test_open_sizes_say_where_it_differs(tmp_path: Any) -> None:
    shapes: dict[str, tuple[Any, ...]] = {
        "q": ("B", 4, "S", 8), "k": ("B", 2, "T", 8), "v": ("B", 2, "T", 8),
        "pk": ("B", 2, "P", 8), "pv": ("B", 2, "P", 8),
    }  # fmt: skip
    order = ("q", "k", "v", "", "pk", "pv")
    outputs = ("y", "present_k", "present_v")
    path = model(tmp_path, shapes, order=order, outputs=outputs, is_causal=1)
    finding = finding_of(path, "openvino")
    assert (finding.verdict, str(finding.when)) == ("different", "S != T")
    assert finding_of(model(tmp_path, {k: shapes[k] for k in "qkv"}), "openvino").verdict == "same"


def test_a_silent_engine_is_different(tmp_path: Any) -> None:
    shapes: dict[str, tuple[Any, ...]] = {"q": (1, 3, 16), "k": (1, 5, 16), "v": (1, 5, 16)}
    path = model(
        tmp_path, shapes, "MultiHeadAttention", "com.microsoft", 21, num_heads=2, unidirectional=1
    )
    finding = finding_of(path, "onnxruntime")
    assert finding.verdict == "refused"  # the op's own meaning is what it does
    assert "the last query sees every key" in finding.message
    plain = model(tmp_path, shapes, "MultiHeadAttention", "com.microsoft", 21, num_heads=2)
    assert finding_of(plain, "onnxruntime").verdict == "same"
    assert finding_of(plain, "openvino").verdict == "same"
    assert finding_of(plain, "tensorrt").verdict == "refused"


def test_a_model_that_does_not_fit_is_refused(tmp_path: Any) -> None:
    finding = finding_of(model(tmp_path, {**SHAPES, "m": (2, 3, 5)}), "onnxruntime")
    assert (finding.verdict, finding.reason) == ("refused", "invalid_source")
    assert "the mask's head axis does not fit" in finding.message


def test_a_past_of_unknown_sizes_is_named(tmp_path: Any) -> None:
    path = model(tmp_path, SHAPES, order=("q", "k", "v", "", "pk", "pv"), is_causal=1)
    loaded = onnx.load(path)
    for name in ("pk", "pv"):
        value = loaded.graph.input.add(name=name)
        value.type.tensor_type.elem_type = 1
    onnx.save(loaded, path)
    finding = finding_of(path, "onnxruntime")
    assert (finding.verdict, finding.reason) == ("unknown", "unknown_shape")
    assert "'pk'" in finding.message


@pytest.mark.parametrize("attribute", [{"scale": "x"}, {"softcap": [1, 2]}, {"is_causal": "x"}])
def test_attributes_of_another_type_end_no_audit(tmp_path: Any, attribute: dict[str, Any]) -> None:
    assert finding_of(model(tmp_path, SHAPES, **attribute), "onnxruntime").verdict in (
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
    arrays = {name: np.ones(shape, "f4") for name, shape in shapes.items()}
    np.testing.assert_allclose(execute(read(path), arrays)["y"], arrays["v"])


@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("mask", ["FLOAT", "BOOL"])
def test_it_is_executed_as_onnx_means_it(
    tmp_path: Any, causal: int, packed: bool, mask: str
) -> None:
    rng = np.random.default_rng(causal)
    shapes: dict[str, tuple[Any, ...]] = {"q": (2, 4, 3, 8), "k": (2, 2, 3, 8), "v": (2, 2, 3, 8)}
    heads = {}
    if packed:
        shapes = {"q": (2, 3, 32), "k": (2, 3, 16), "v": (2, 3, 16)}
        heads = {"q_num_heads": 4, "kv_num_heads": 2}
    shapes |= {"m": (2, 1, 3, 7), "pk": (2, 2, 4, 8), "pv": (2, 2, 4, 8)}
    outputs = ("y", "present_k", "present_v")
    path = model(
        tmp_path, shapes, outputs=outputs, mask=mask, is_causal=causal, softcap=2.0, **heads
    )
    arrays = {name: rng.standard_normal(shape).astype("f4") for name, shape in shapes.items()}
    if mask == "BOOL":
        arrays["m"] = arrays["m"] > -1
    results = execute(read(path), arrays)
    expected = evaluator.ReferenceEvaluator(path).run(None, arrays)
    for name, value in zip(outputs, expected, strict=True):
        np.testing.assert_allclose(results[name], value, atol=1e-5)


@pytest.mark.parametrize(
    ("attributes", "dtypes", "why"),
    [
        ({"softmax_precision": 10}, {}, "its softmax in float16"),
        ({}, {"mask": "INT32"}, "a mask of int32"),
    ],
)
def test_parts_that_are_not_executed_are_named(
    tmp_path: Any, attributes: dict[str, Any], dtypes: dict[str, Any], why: str
) -> None:
    graph = read(model(tmp_path, {**SHAPES, "m": (3, 5)}, **attributes, **dtypes))
    (refused,) = not_executed(graph)
    assert (refused.op, refused.why) == ("Attention", why)


def test_windows_lengths_and_weights_are_executed(tmp_path: Any) -> None:
    """Of sample 0 three keys are there, of sample 1 five; a query sees its own and one before."""
    shapes: dict[str, tuple[Any, ...]] = {"q": (2, 4, 3, 8), "k": (2, 2, 5, 8), "v": (2, 2, 5, 8)}
    path = model(
        tmp_path,
        {**shapes, "n": (2,)},
        opset=25,
        order=("q", "k", "v", "", "", "", "n"),
        outputs=("y", "", "", "weights"),
        left_window_size=1,
        right_window_size=0,
        qk_matmul_output_mode=3,
    )
    loaded = onnx.load(path)
    loaded.graph.input[3].type.tensor_type.elem_type = onnx.TensorProto.INT64
    del loaded.graph.output[1:3]
    onnx.save(loaded, path)
    rng = np.random.default_rng(0)
    arrays: dict[str, Any] = {n: rng.standard_normal(s).astype("f4") for n, s in shapes.items()}
    arrays["n"] = np.array([3, 5])
    results = execute(read(path), arrays)
    first, second = (results["weights"][sample, 0] != 0 for sample in (0, 1))
    assert first.astype(int).tolist() == [[1, 0, 0, 0, 0], [1, 1, 0, 0, 0], [0, 1, 1, 0, 0]]
    assert second.astype(int).tolist() == [[0, 1, 1, 0, 0], [0, 0, 1, 1, 0], [0, 0, 0, 1, 1]]
    expected = evaluator.ReferenceEvaluator(path).run(None, arrays)
    for name, value in zip(("y", "weights"), expected, strict=True):
        np.testing.assert_allclose(results[name], value, atol=1e-5)


def projected(tmp_path: Any, more: dict[str, tuple[Any, ...]], **attributes: Any) -> str:
    """A file of com.microsoft.Attention with 2 heads."""
    names = {"x": (2, 5, 8), "w": (8, 48), "b": (48,), "m": None, "past": None, "bias": None}
    shapes = {name: shape for name, shape in (names | more).items() if shape is not None}
    order = [name if name in shapes else "" for name in names]
    while not order[-1]:
        order.pop()
    outputs = ("y", "present") if "past" in shapes else ("y",)
    return model(
        tmp_path,
        shapes,
        "Attention",
        "com.microsoft",
        21,
        tuple(order),
        outputs,
        "INT32",
        num_heads=2,
        **attributes,
    )


def test_weights_that_project_are_operands_of_an_attention(tmp_path: Any) -> None:
    past = {"past": (2, 2, 2, 3, 8)}
    finding = finding_of(projected(tmp_path, past, unidirectional=1), "onnxruntime")
    assert (finding.verdict, finding.source.past, finding.source.shape) == ("same", 3, (2, 5, 16))
    assert finding.operands[1] == ("x@w[key]", (2, 5, 16))
    assert finding_of(projected(tmp_path, {"m": (2,)}), "openvino").verdict == "same"
    scaled = finding_of(projected(tmp_path, {}, scale=0.7), "openvino")
    assert (scaled.verdict, scaled.message) == ("different", "it does not read scale")
    lone = finding_of(projected(tmp_path, {"m": (2, 1)}), "onnxruntime")
    assert "does not read a mask of one number" in lone.message
    assert finding_of(projected(tmp_path, {}), "mnn").reason == "no_op"
    ends = finding_of(projected(tmp_path, {"m": (4,)}), "onnxruntime")
    assert "a mask of starts and ends of samples" in ends.message


@pytest.mark.parametrize(
    ("target", "verdict"),
    [
        ("onnxruntime", "same"), ("openvino", "same"), ("mnn", "refused"), ("ncnn", "refused"),
        ("litert", "refused"), ("tensorrt", "refused"), ("coreml", "refused"), ("numpy", "same"),
    ],
)  # fmt: skip
def test_angles_of_a_rotary_embedding_repeat_along_heads(
    tmp_path: Any, target: str, verdict: str
) -> None:
    shapes: dict[str, tuple[Any, ...]] = {"x": (2, 3, 4, 8), "cos": (9, 4), "sin": (9, 4)}
    path = model(tmp_path, shapes | {"ids": (2, 4)}, "RotaryEmbedding", opset=23)
    finding = finding_of(path, target)
    assert finding.verdict == verdict, finding.message
    assert finding.source.aligned == ((2, 3, 4, 4), (2, 1, 4, 4), (2, 1, 4, 4))
    assert finding.operands[1] == ("cos[ids]", (2, 4, 4))


def test_one_position_repeats_along_samples_too(tmp_path: Any) -> None:
    shapes = {"x": (2, 4, 24), "ids": (1,), "cos": (9, 4), "sin": (9, 4)}
    path = model(
        tmp_path, shapes, "RotaryEmbedding", "com.microsoft", 21, num_heads=3, interleaved=0
    )
    finding = finding_of(path, "onnxruntime")
    assert (finding.verdict, finding.source.stretched[1]) == ("same", (0, 2))
    other = finding_of(path, "openvino")
    assert (other.verdict, other.reason) == ("different", "wrong_result")


@pytest.mark.parametrize(
    ("op", "shapes", "attributes", "outputs"),
    [
        (
            "MultiHeadAttention",
            {"q": ("B", "S", 16), "k": ("B", "T", 16), "v": ("B", "T", 8)},
            {"num_heads": 2},
            {"y": "(B, S, 8)", "k2": "(B, 2, T, 8)", "v2": "(B, 2, T, 4)"},
        ),
        (
            "GroupQueryAttention",
            {"q": ("B", "S", 32), "k": ("B", "S", 16), "v": ("B", "S", 16)},
            {"num_heads": 4, "kv_num_heads": 2},
            {"y": "(B, S, 32)", "k2": "(B, 2, S, 8)", "v2": "(B, 2, S, 8)"},
        ),
        (
            "Attention",
            {"x": ("B", "S", 8), "w": (8, 48), "b": (48,)},
            {"num_heads": 2},
            {"y": "(B, S, 16)", "kv": "(2, B, 2, S, 8)"},
        ),
    ],
)
def test_sizes_flow_through_ops_of_onnx_runtime(
    tmp_path: Any,
    op: str,
    shapes: dict[str, Any],
    attributes: dict[str, int],
    outputs: dict[str, str],
) -> None:
    path = model(tmp_path, shapes, op, "com.microsoft", 17, outputs=tuple(outputs), **attributes)
    sizes = flow(read(path))
    shapes = {v.name: sizes.shape_of(v) or () for v in sizes.graph.nodes[0].outputs}
    words = {name: f"({', '.join(map(str, shape))})" for name, shape in shapes.items()}
    assert words == outputs


def test_a_rotation_that_the_runtime_refuses_is_refused(tmp_path: Any) -> None:
    """Run: ONNX Runtime 1.32.0, "Rotary embedding is not supported in Attention CPU kernel"."""
    finding = finding_of(projected(tmp_path, {}, do_rotary=1), "onnxruntime")
    assert (finding.verdict, finding.reason) == ("refused", "invalid_source")
    assert "onnxruntime's CPU refuses do_rotary" in finding.message
