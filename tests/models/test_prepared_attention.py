"""Attention written as products, a sum and a softmax, for converters that lack it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
from campaigns.attention.draw import Call, draw  # noqa: E402
from campaigns.attention.runners import onnx_model  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402 - onnx may be missing

import zerostride as zs  # noqa: E402
from zerostride.attention.rows import find_rule  # noqa: E402
from zerostride.models.execute.run import execute  # noqa: E402
from zerostride.models.formats.onnx.format import read  # noqa: E402
from zerostride.models.formats.onnx.prepared import with_functions  # noqa: E402


def called(op: str, number: int) -> Call:
    """A call that ONNX's document takes, of lengths above 0."""
    rule = replace(find_rule(None, op), engine="openvino")
    return draw(rule, number, seed=4)


@pytest.mark.parametrize("op", ["Attention-23", "Attention", "Attention-25"])
def test_it_computes_what_the_document_says(tmp_path: Path, op: str) -> None:
    """Written out, and by `run`; with windows and lengths of samples, too."""
    masked = parts = 0
    for number in range(90):
        call = called(op, number)
        meant = replace(call, arguments={**call.arguments, "engine": None})
        try:
            plan = meant.plan()
        except zs.BroadcastError:  # lengths of samples beside a past
            assert {"lengths"} <= {*call.beside}
            continue
        model, feeds = onnx_model(call)
        path = tmp_path / "attention.onnx"
        onnx.save(model, path)
        assert with_functions(path, frozenset({"Attention"})) == ("Attention",)
        written = onnx.load(path)
        ops = {node.op_type for node in written.graph.node}
        assert "Expand" not in ops  # no head is copied
        assert "Tile" not in ops
        expected = meant.compute(plan)
        with np.errstate(all="ignore"):
            (result, *_) = ReferenceEvaluator(written).run(None, feeds)
        np.testing.assert_allclose(result, expected, rtol=1e-3, atol=1e-4, err_msg=str(call))
        onnx.save(model, path)
        (ran, *_) = execute(read(path), feeds).values()
        np.testing.assert_allclose(ran, expected, rtol=1e-3, atol=1e-4, err_msg=str(call))
        masked += "mask" in call.arrays
        parts += bool(call.beside or call.parts or "window" in call.arguments)
    assert masked > 20
    assert parts > 10 or op == "Attention-23"


def test_what_is_not_known_stays(tmp_path: Path) -> None:
    call = called("Attention", 0)
    model, _ = onnx_model(call)
    for value in model.graph.input:
        value.type.tensor_type.shape.dim[0].dim_param = "B"
    path = tmp_path / "attention.onnx"
    onnx.save(model, path)
    with_functions(path, frozenset())
    assert [node.op_type for node in onnx.load(path).graph.node] == ["Attention"]


def local_model(
    nodes: list[onnx.NodeProto], shapes: dict[str, tuple[int, ...]], **whole: list[int]
) -> onnx.ModelProto:
    """A model of ops of ONNX Runtime; `whole` are tensors of whole numbers in the file."""
    helper = onnx.helper
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(name, 1, shape) for name, shape in shapes.items()],
        [helper.make_tensor_value_info("y", 1, None)],
        [onnx.numpy_helper.from_array(np.array(v, np.int32), name) for name, v in whole.items()],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def attention_of(op: str, inputs: list[str], result: str, **attributes: int) -> onnx.NodeProto:
    return onnx.helper.make_node(op, inputs, [result], domain="com.microsoft", **attributes)


def test_ops_behind_one_another_are_all_written(tmp_path: Path) -> None:
    """onnx infers no sizes behind an op of ONNX Runtime."""
    heads = {"num_heads": 4, "kv_num_heads": 2}
    grouped = attention_of("GroupQueryAttention", ["x", "", "", "", "", "n", "t"], "h", **heads)
    sum_of_both = onnx.helper.make_node("Add", ["h", "h"], ["s"])
    multi = attention_of("MultiHeadAttention", ["s", "h", "h"], "y", num_heads=2)
    model = local_model([grouped, sum_of_both, multi], {"x": (2, 3, 64)}, n=[2, 2], t=[3])
    path = tmp_path / "two.onnx"
    onnx.save(model, path)
    ops = ("GroupQueryAttention", "MultiHeadAttention")
    assert with_functions(path, frozenset(ops)) == ops
    assert {node.domain for node in onnx.load(path).graph.node} == {""}


@pytest.mark.parametrize("known", [True, False])
def test_a_total_that_is_no_number_stays(tmp_path: Path, known: bool) -> None:
    inputs = ["q", "k", "k", "p", "p", "n", "t"]
    node = attention_of("GroupQueryAttention", inputs, "y", num_heads=2, kv_num_heads=2)
    shapes = {"q": (1, 1, 16), "k": (1, 1, 16), "p": (1, 2, 4, 8)}
    model = local_model([node], shapes, n=[4], **({"t": [5]} if known else {}))
    if not known:
        model.graph.input.append(onnx.helper.make_tensor_value_info("t", 6, (1,)))
    path = tmp_path / "total.onnx"
    onnx.save(model, path)
    written = ("GroupQueryAttention",) if known else ()
    assert with_functions(path, frozenset({"GroupQueryAttention"})) == written
    left = onnx.load(path)
    kept = [node.op_type for node in left.graph.node if node.domain]
    assert kept == ([] if known else ["GroupQueryAttention"])
    assert known or len(left.graph.initializer) == 1  # nothing of a trial is left


def test_two_results_of_one_tensor_have_both_names(tmp_path: Path) -> None:
    """Keys and values without a past are the present as they are."""
    helper = onnx.helper
    node = helper.make_node("Attention", ["x", "x", "x"], ["y", "k", "v"])
    info = [helper.make_tensor_value_info(name, 1, None) for name in ("y", "k", "v")]
    shape = [helper.make_tensor_value_info("x", 1, (1, 2, 3, 4))]
    graph = helper.make_graph([node], "g", shape, info)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)], ir_version=11)
    path = tmp_path / "present.onnx"
    onnx.save(model, path)
    with_functions(path, frozenset({"Attention"}))
    x = np.arange(24, dtype=np.float32).reshape(1, 2, 3, 4)
    _, keys, values = ReferenceEvaluator(onnx.load(path)).run(None, {"x": x})
    np.testing.assert_array_equal(keys, x)
    np.testing.assert_array_equal(values, x)


@pytest.mark.parametrize(("added", "key"), [(-9000.0, 0), (-11000.0, 1)])
def test_a_padded_key_gets_10000_less(tmp_path: Path, added: float, key: int) -> None:
    inputs = ["q", "q2", "v", "", "padding", "added"]
    node = attention_of("MultiHeadAttention", inputs, "y", num_heads=1)
    shapes = {"q": (1, 1, 2), "q2": (1, 2, 2), "v": (1, 2, 2), "added": (1, 1, 1, 2)}
    path = tmp_path / "padded.onnx"
    onnx.save(local_model([node], shapes, padding=[[1, 0]]), path)
    arrays = {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}
    arrays["v"][0, :, 0] = 0, 1
    arrays["added"][..., 0] = added
    assert execute(read(path), arrays)["y"][0, 0, 0] == key
