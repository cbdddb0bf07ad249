"""GroupQueryAttention of ONNX Runtime in model files: verdicts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from attention_files import finding_of, model, onnx

from zerostride.models.execute.program import not_executed
from zerostride.models.formats.onnx.format import read

#: A GroupQueryAttention with a past of 4 keys in a buffer for 8, by its total.
GROUPED: dict[str, tuple[Any, ...]] = {
    "q": (1, 2, 32), "k": (1, 2, 16), "v": (1, 2, 16), "pk": (1, 2, 8, 8), "pv": (1, 2, 8, 8),
    "lengths": (1,), "total": (1,),
}  # fmt: skip
PRESENT = ("y", "present_k", "present_v")


def grouped(
    tmp_path: Any,
    total: int = 6,
    inputs: Any = None,
    features: int = 8,
    queries: int = 2,
    room: int | str = 8,
    packed: bool = False,
    more: dict[str, tuple[int, ...]] | None = None,
    **attributes: Any,
) -> str:
    """A file of GroupQueryAttention with 4 query heads and 2 key heads; its total is constant.

    `more` has the shapes of operands that are others than usual.
    """
    heads = {"q": 8 if packed else 4, "k": 2, "v": 2}
    shapes = GROUPED | {name: (1, queries, n * features) for name, n in heads.items()}
    shapes |= dict.fromkeys(("pk", "pv"), (1, 2, room, features))
    if packed:
        inputs = ("q", "", "", "pk", "pv", "lengths", "total")
    path = model(
        tmp_path,
        shapes | dict.fromkeys(set(inputs or ()) - {*GROUPED, ""}, (1,)) | (more or {}),
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
    finding = finding_of(grouped(tmp_path, features=16, **attributes), target)
    assert (finding.verdict, finding.reason) == ("refused", "no_op")
    assert "does not convert GroupQueryAttention, an op of ONNX Runtime" in finding.message


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        ({"inputs": (*GROUPED, *[""] * 9, "lasts")}, "query_seqlens"),
    ],
)
def test_what_is_not_modelled_is_named(
    tmp_path: Any, attributes: dict[str, Any], words: str
) -> None:
    finding = finding_of(grouped(tmp_path, **attributes), "onnxruntime")
    assert (finding.verdict, finding.reason) == ("unknown", "not_modelled")
    assert words in finding.message


#: The operands of a quantised GroupQueryAttention, and the attributes of a scale for a tensor.
STORED = (*GROUPED, *[""] * 5, "ks", "vs")
TENSOR = {"k_quant_type": "PER_TENSOR", "v_quant_type": "PER_TENSOR", "kv_cache_bit_width": 8}
CHANNEL = TENSOR | {"k_quant_type": "PER_CHANNEL", "v_quant_type": "PER_CHANNEL"}


def stored(tmp_path: Any, kind: str = "INT8", **how: Any) -> str:
    """A file of a quantised GroupQueryAttention."""
    how = {"inputs": STORED, "kinds": {"pk": kind, "pv": kind}} | how
    if how.get("kv_cache_bit_width") == 4:
        features = how.get("features", 8)
        how["more"] = dict.fromkeys(("pk", "pv"), (1, 2, 8, features // 2)) | how.get("more", {})
    return grouped(tmp_path, **how)


@pytest.mark.parametrize(
    ("how", "facts"),
    [
        (TENSOR, "8 bits, with a scale that repeats along all axes: stride 0"),
        (
            CHANNEL | {"more": {"ks": (1, 2, 1, 8), "vs": (1, 2, 1, 8)}},
            "8 bits, with a scale that repeats along batch and key: stride 0",
        ),
        (TENSOR | {"kv_cache_bit_width": 4, "kind": "UINT8"}, "4 bits"),
    ],
)
@pytest.mark.parametrize("target", ["onnxruntime", "openvino", "litert"])
def test_a_quantised_past_means_the_same(
    tmp_path: Any, target: str, how: dict[str, Any], facts: str
) -> None:
    finding = finding_of(stored(tmp_path, **how), target)
    assert finding.verdict == "same", finding.message
    assert facts in finding.source.explain()
    assert finding.source == finding.target
    assert finding.source.space.feature == 8


@pytest.mark.parametrize(
    ("how", "words"),
    [
        (TENSOR | {"v_quant_type": "NONE"}, "keys are PER_TENSOR, and values NONE"),
        (TENSOR | {"kv_cache_bit_width": 2}, "kv_cache_bit_width is 2; quantised, it is 4 or 8"),
        (TENSOR | {"k_quant_type": "PER_TOKEN"}, "not PER_TOKEN"),
        ({"kv_cache_bit_width": 8}, "kv_cache_bit_width is 8, and nothing is quantised"),
        (TENSOR | {"kind": "UINT8"}, "a past of uint8 with 8 bits"),
        (TENSOR | {"more": {"vs": (2,)}}, "a v_scale of (2,) for a tensor"),
        (TENSOR | {"inputs": (*GROUPED, *[""] * 5, "ks")}, "a quantised past without v_scale"),
        ({"inputs": GROUPED}, "a past of int8 without a quant_type"),
        ({"inputs": (*GROUPED, *[""] * 7, "norm"), "kinds": {}}, "a normalised query and key"),
        ({"inputs": GROUPED, "kinds": {}, "sliding_window_cache": 1}, "local_window_size"),
    ],
)
def test_what_the_runtime_refuses_is_refused(
    tmp_path: Any, how: dict[str, Any], words: str
) -> None:
    path = stored(tmp_path, **how)
    finding = finding_of(path, "onnxruntime")
    assert (finding.verdict, finding.reason) == ("refused", "invalid_source")
    assert f"onnxruntime's CPU refuses {words}" in finding.message or words in finding.message


def test_a_quantised_past_is_not_written_out_for_ncnn(tmp_path: Any) -> None:
    path = stored(tmp_path, **TENSOR)
    assert "no op that reads the numbers of a quantised past" in finding_of(path, "ncnn").message
    assert "zerostride convert and port do so" in finding_of(path, "mnn").message


def test_the_past_of_a_window_means_the_same(tmp_path: Any) -> None:
    how: dict[str, Any] = {"sliding_window_cache": 1, "local_window_size": 6, "total": 20}
    for target in ("onnxruntime", "openvino", "litert"):
        finding = finding_of(grouped(tmp_path, **how), target)
        assert finding.verdict == "same", finding.message
        assert (finding.source.past, finding.source.window, finding.source.own) == (18, 6, 18)
        assert "holds the last keys alone, in room for 8" in finding.source.explain()
    for target in ("onnxruntime", "openvino"):
        narrow = finding_of(grouped(tmp_path, **how | {"local_window_size": 9}), target)
        assert narrow.verdict == "refused"
        assert "has room for the window" in narrow.message
    odd = finding_of(stored(tmp_path, **how, **TENSOR), "onnxruntime")
    assert (odd.verdict, odd.reason) == ("refused", "invalid_source")
    assert "a multiple of 128 bits" in odd.message  # 8 features of 8 bits


def test_openvino_writes_new_keys_into_the_past(tmp_path: Any) -> None:
    finding = finding_of(grouped(tmp_path, total=10), "openvino")
    assert (finding.verdict, finding.reason) == ("refused", "no_op")
    assert "room for 8 keys, and there are 10" in finding.message
    finding = finding_of(grouped(tmp_path, softcap=1.0), "openvino")
    assert (finding.verdict, finding.reason) == ("refused", "attribute")
    narrow = finding_of(grouped(tmp_path, local_window_size=2), "openvino")
    assert (narrow.verdict, narrow.source.window) == ("same", 2)


@pytest.mark.parametrize(
    ("attributes", "facts"),
    [
        ({"do_rotary": 1}, "turned by their positions"),
        ({"do_rotary": 1, "rotary_interleaved": 1}, "turned by their positions"),
        ({"causal": 0}, "GroupQueryAttention(causal=0): 4 query heads"),
        ({"smooth_softmax": 1}, "the softmax has a sink"),
        ({"inputs": (*GROUPED, "", "", "", "", "sink")}, "the softmax has a sink"),
        ({"packed": True}, "4 query heads, 2 key heads"),
    ],
)
@pytest.mark.parametrize("target", ["onnxruntime", "openvino", "litert"])
def test_parts_of_grouped_queries_mean_the_same(
    tmp_path: Any, target: str, attributes: dict[str, Any], facts: str
) -> None:
    finding = finding_of(grouped(tmp_path, features=16, **attributes), target)
    assert finding.verdict == "same", finding.message
    assert facts in finding.source.explain()
    assert finding.source == finding.target


def test_a_sink_is_refused_where_attention_has_none(tmp_path: Any) -> None:
    finding = finding_of(grouped(tmp_path, smooth_softmax=1), "torch")
    assert (finding.verdict, finding.reason) == ("refused", "attribute")
    assert "has no sink" in finding.message


def test_openvino_turns_as_many_queries_as_heads_wrongly(tmp_path: Any) -> None:
    """Run: with 4 heads, 2 of keys and 4 queries of a file of fixed sizes."""
    how: dict[str, Any] = {"do_rotary": 1, "features": 16, "queries": 4, "total": 8}
    finding = finding_of(grouped(tmp_path, **how), "openvino")
    assert (finding.verdict, finding.reason) == ("different", "wrong_result")
    assert "turns queries wrongly" in finding.message
    assert finding.witness is None
    assert finding_of(grouped(tmp_path, **how | {"do_rotary": 0}), "openvino").verdict == "same"
    opened = finding_of(grouped(tmp_path, **how, room="R"), "openvino")
    assert (opened.verdict, opened.reason) == ("unknown", "not_measured")
    narrow = finding_of(grouped(tmp_path, do_rotary=1), "onnxruntime")
    assert (narrow.verdict, narrow.reason) == ("refused", "invalid_source")  # 8 features


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        ({"qk_output": 1}, "qk_output"),
        ({"inputs": (*GROUPED, *[""] * 7, "norm")}, "a normalised query and key"),
        ({"inputs": (*GROUPED, *[""] * 9, "lasts")}, "query_seqlens"),
    ],
)
def test_parts_that_openvino_does_not_load_are_refused(
    tmp_path: Any, attributes: dict[str, Any], words: str
) -> None:
    finding = finding_of(grouped(tmp_path, **attributes), "openvino")
    assert (finding.verdict, finding.reason) == ("refused", "no_op")
    assert finding.message == f"onnx-frontend refuses a GroupQueryAttention with {words}"


def test_positions_of_grouped_queries_count_upwards(tmp_path: Any) -> None:
    inputs = (*GROUPED, "cos", "sin", "ids")
    path = grouped(tmp_path, do_rotary=1, features=16, inputs=inputs)
    (note,) = finding_of(path, "openvino").notes
    assert note.endswith("every key of every sample, and position_ids count upwards")


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
