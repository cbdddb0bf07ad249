"""ONNX's Attention in model files: verdicts, drawings, numbers."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import zerostride as zs
from zerostride.models.execute.program import not_executed
from zerostride.models.execute.run import execute
from zerostride.models.flow import flow
from zerostride.models.formats.onnx.format import read
from zerostride.models.options import ModelOptions
from zerostride.report.next_command import after_audit

onnx = pytest.importorskip("onnx")
evaluator = pytest.importorskip("onnx.reference")

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
    whole = {"m": mask, "lengths": "INT32", "total": "INT32", "ids": "INT64"}
    values = [
        helper.make_tensor_value_info(name, kinds.DataType.Value(whole.get(name, "FLOAT")), shape)
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


def finding_of(path: str, target: str, **how: Any) -> Any:
    (finding,) = zs.audit(path, target=target, **how).findings
    return finding


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


#: A GroupQueryAttention with a past of 4 keys in a buffer for 8, by its total.
GROUPED: dict[str, tuple[Any, ...]] = {
    "q": (1, 2, 32), "k": (1, 2, 16), "v": (1, 2, 16), "pk": (1, 2, 8, 8), "pv": (1, 2, 8, 8),
    "lengths": (1,), "total": (1,),
}  # fmt: skip
PRESENT = ("y", "present_k", "present_v")


def grouped(tmp_path: Any, total: int = 6, inputs: Any = None, **attributes: Any) -> str:
    """A file of GroupQueryAttention with 4 query heads and 2 key heads; its total is constant."""
    path = model(
        tmp_path,
        GROUPED | dict.fromkeys(set(inputs or ()) - {*GROUPED, ""}, (1,)),
        "GroupQueryAttention",
        "com.microsoft",
        21,
        order=inputs or (),
        outputs=PRESENT,
        num_heads=4,
        kv_num_heads=2,
        **attributes,
    )
    loaded = onnx.load(path)
    (value,) = [value for value in loaded.graph.input if value.name == "total"]
    loaded.graph.input.remove(value)
    loaded.graph.initializer.append(onnx.numpy_helper.from_array(np.array([total], "i4"), "total"))
    onnx.save(loaded, path)
    return path


@pytest.mark.parametrize("target", ["onnxruntime", "openvino", "litert", "coreml"])
def test_grouped_queries_mean_the_same(tmp_path: Any, target: str) -> None:
    finding = finding_of(grouped(tmp_path), target)
    assert finding.verdict == "same"
    assert (finding.source.past, finding.source.space.key, finding.source.space.group) == (4, 6, 2)
    if target in ("onnxruntime", "openvino"):
        assert finding.notes == ("this is so where seqlens_k counts every key of every sample",)


@pytest.mark.parametrize("target", ["mnn", "ncnn", "tensorrt"])
@pytest.mark.parametrize("attributes", [{}, {"do_rotary": 1}])
def test_grouped_queries_are_refused_by_name(
    tmp_path: Any, target: str, attributes: dict[str, int]
) -> None:
    finding = finding_of(grouped(tmp_path, **attributes), target)
    assert (finding.verdict, finding.reason) == ("refused", "no_op")
    assert "does not convert GroupQueryAttention, an op of ONNX Runtime" in finding.message


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        ({"do_rotary": 1}, "do_rotary, a rotation of query and key"),
        ({"causal": 0}, "causal=0"),
        ({"smooth_softmax": 1}, "a softmax with a sink"),
        ({"inputs": ("q", "", "", "pk", "pv", "lengths", "total")}, "in one tensor"),
        ({"inputs": (*GROUPED, "", "", "", "", "sink")}, "a softmax with a sink"),
    ],
)
def test_what_is_not_modelled_is_named(
    tmp_path: Any, attributes: dict[str, Any], words: str
) -> None:
    finding = finding_of(grouped(tmp_path, **attributes), "onnxruntime")
    assert (finding.verdict, finding.reason) == ("unknown", "not_modelled")
    assert words in finding.message


def test_openvino_writes_new_keys_into_the_past(tmp_path: Any) -> None:
    finding = finding_of(grouped(tmp_path, total=10), "openvino")
    assert (finding.verdict, finding.reason) == ("refused", "no_op")
    assert "room for 8 keys, and there are 10" in finding.message
    finding = finding_of(grouped(tmp_path, softcap=1.0), "openvino")
    assert (finding.verdict, finding.reason) == ("refused", "attribute")
    narrow = finding_of(grouped(tmp_path, local_window_size=2), "openvino")
    assert (narrow.verdict, narrow.source.window) == ("same", 2)


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


def test_a_form_that_is_not_written_out_is_named_before_the_run(tmp_path: Any) -> None:
    graph = read(grouped(tmp_path, smooth_softmax=1))
    (left,) = not_executed(graph)
    assert (left.op, left.why) == ("com.microsoft:GroupQueryAttention", "a softmax with a sink")
    assert not not_executed(read(grouped(tmp_path, do_rotary=0)))


@pytest.mark.parametrize("target", ["mnn", "ncnn"])
def test_a_converter_is_given_it_written_out(tmp_path: Any, target: str) -> None:
    assert "zerostride convert and port do so" in finding_of(grouped(tmp_path), target).message
    sink = finding_of(grouped(tmp_path, smooth_softmax=1), target)
    assert "zerostride convert" not in sink.message


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
