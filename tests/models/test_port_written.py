"""Compound ops that a port writes out as ops of the standard."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
from onnx import helper  # noqa: E402 - onnx may be missing

import zerostride as zs  # noqa: E402
from zerostride.models.execute import execute  # noqa: E402
from zerostride.models.formats import read_model  # noqa: E402
from zerostride.models.formats.onnx.prepared import copies  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::zerostride.EngineVersionWarning")
LOCAL = "com.microsoft"
THREE = {"q": (1, 3, 32), "k": (1, 3, 32), "v": (1, 3, 32)}
ANGLES = {name: np.linspace(0, 1, 96, dtype=np.float32).reshape(12, 8) for name in ("cos", "sin")}


def compound(
    op: str,
    domain: str,
    inputs: str,
    shapes: Mapping[str, Sequence[Any]],
    held: Mapping[str, Any],
    *,
    opset: int = 23,
    kind: int = 1,
    **attributes: Any,
) -> onnx.ModelProto:
    """A Relu in front of one op; `held` are numbers of the file."""
    names = ["" if name == "-" else name for name in inputs.split()]
    first, *rest = names
    nodes = [
        helper.make_node("Relu", [first], ["h"]),
        helper.make_node(op, ["h", *rest], ["y"], name="one", domain=domain, **attributes),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(name, kind, shape) for name, shape in shapes.items()],
        [helper.make_tensor_value_info("y", kind, None)],
        [onnx.numpy_helper.from_array(np.asarray(array), name) for name, array in held.items()],
    )
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid(LOCAL, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def multi_head(**more: Any) -> onnx.ModelProto:
    padding = {"padding": np.array([[1, 0, 1]], np.int32)}
    options = {"num_heads": 2, "unidirectional": 1, **more}
    return compound("MultiHeadAttention", LOCAL, "q k v - padding", THREE, padding, **options)


def grouped(**more: Any) -> onnx.ModelProto:
    shapes = {"q": (1, 3, 64), "k": (1, 3, 32), "v": (1, 3, 32)}
    held = {"n": np.array([2], np.int32), "t": np.array([3], np.int32), **ANGLES}
    options = {"num_heads": 4, "kv_num_heads": 2, "do_rotary": 1, **more}
    return compound("GroupQueryAttention", LOCAL, "q k v - - n t cos sin", shapes, held, **options)


def attention(opset: int = 23, query: Sequence[Any] = (1, 4, 3, 8), **more: Any) -> onnx.ModelProto:
    shapes = {"q": query, "k": (query[0], 2, 3, 8), "v": (query[0], 2, 3, 8), "m": (3, 3)}
    return compound("Attention", "", "q k v m", shapes, {}, opset=opset, is_causal=1, **more)


def rotary(domain: str, **held: Any) -> onnx.ModelProto:
    ids = {"ids": np.array([[4, 0, 7]]), **held}
    names = "x ids cos sin" if domain else "x cos sin ids"
    shapes = {"x": (1, 3, 32)}
    return compound("RotaryEmbedding", domain, names, shapes, {**ANGLES, **ids}, num_heads=2)


def projected() -> onnx.ModelProto:
    weights = np.random.default_rng(0).standard_normal((16, 48)).astype(np.float32)
    shapes = {"x": (1, 3, 16)}
    return compound("Attention", LOCAL, "x w", shapes, {"w": weights}, num_heads=2)


MODELS = {
    "Attention 23": attention(23),
    "Attention 24": attention(24),
    "projected": projected(),
    "grouped": grouped(),
    "multi head": multi_head(),
    "rotary": rotary(""),
    "local rotary": rotary(LOCAL),
}


def saved(folder: Path, model: onnx.ModelProto) -> Path:
    path = folder / "model.onnx"
    onnx.save(model, path)
    return path


def ports(folder: Path, model: onnx.ModelProto, target: str, **more: Any) -> tuple[Any, Path]:
    goal = folder / "ported.onnx"
    return zs.port(saved(folder, model), target, goal, **more), goal


def compare(folder: Path, goal: Path, **sizes: int) -> None:
    """Checks that both models compute the same numbers."""
    graph, rng = read_model(folder / "model.onnx"), np.random.default_rng(1)
    fed = {
        value.name: rng.standard_normal(
            [sizes.get(str(size), size) for size in value.shape or ()]  # type: ignore[misc]
        ).astype(np.float32)
        for value in graph.inputs
    }
    before, after = execute(graph, fed), execute(read_model(goal), fed)
    np.testing.assert_allclose(after["y"], before["y"], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("target", ["ncnn", "mnn", "openvino"])
@pytest.mark.parametrize("name", MODELS)
def test_a_lacking_op_is_written_out(tmp_path: Path, name: str, target: str) -> None:
    report, goal = ports(tmp_path, MODELS[name], target)
    assert report.ok, str(report)
    assert report.model == str(tmp_path / "model.onnx")
    compare(tmp_path, goal)
    ops = [node.op_type for node in onnx.load(goal).graph.node]
    if all(finding.verdict == "same" for finding in report.before):
        assert report.changes == ()
        assert goal.read_bytes() == (tmp_path / "model.onnx").read_bytes()
        return
    assert report.changes[0].by == "written out"
    assert report.changes[0].node == "one"
    assert report.changes[0].elements > 0
    assert not {"Expand", "Tile", *(op for op in ops if op.endswith(("Attention", "ding")))} & {
        *ops
    }
    assert zs.audit(goal, target).ok
    again = zs.port(goal, target, tmp_path / "again.onnx")
    assert again.changes == ()
    assert sorted(os.listdir(tmp_path)) == ["again.onnx", "model.onnx", "ported.onnx"]


def test_an_attention_that_repeats_nothing_is_written_out_too(tmp_path: Path) -> None:
    """It has no finding: no operand is broadcast."""
    model = compound("Attention", "", "q k v", dict.fromkeys("qkv", (1, 2, 3, 8)), {})
    report, goal = ports(tmp_path, model, "ncnn")
    assert [change.by for change in report.changes] == ["written out"]
    compare(tmp_path, goal)


LEFT = {
    "sink": (grouped(smooth_softmax=1), "mnn", "a softmax with a sink"),
    "half": (
        compound("Attention", "", "q k v", dict.fromkeys("qkv", (1, 2, 3, 8)), {}, kind=10),
        "mnn",
        "its numbers are float16, not float32",
    ),
    "open": (
        attention(query=("B", 4, 3, 8)),
        "mnn",
        "sizes of operand 0 are not known; give them (--set",
    ),
    "opset": (attention(), "tensorrt", "onnx-parser does not take opset 23"),
    "narrowed": (
        compound("RotaryEmbedding", LOCAL, "x ids cos sin", {"x": (1, 3, 32)}, ANGLES, num_heads=2),
        "mnn",
        "is not the same there",
    ),
}
LEFT["narrowed"][0].graph.input.append(helper.make_tensor_value_info("ids", 7, (1,)))


@pytest.mark.parametrize("case", LEFT)
def test_a_form_that_is_not_written_out_stays_and_has_a_reason(tmp_path: Path, case: str) -> None:
    model, target, why = LEFT[case]
    report, goal = ports(tmp_path, model, target)
    notes = [note for finding in report.findings for note in finding.notes]
    assert why in "; ".join([*notes, *report.notes])
    assert report.changes == ()
    assert goal.read_bytes() == (tmp_path / "model.onnx").read_bytes()


def test_sizes_that_are_chosen_are_those_of_the_written_model(tmp_path: Path) -> None:
    report, goal = ports(tmp_path, attention(query=("B", 4, 3, 8)), "mnn", sizes={"B": 2})
    assert report.ok
    assert "the sizes of the input 'q' are numbers now" in report.notes
    assert [value.shape[0] for value in read_model(goal).inputs] == [2, 2, 2, 3]
    compare(tmp_path, goal, B=2)


def test_a_dry_run_says_what_would_be_written(tmp_path: Path) -> None:
    path = saved(tmp_path, multi_head())
    report = zs.port(path, "mnn", dry_run=True)
    assert report.ok
    assert report.changes[0].by == "written out"
    assert os.listdir(tmp_path) == ["model.onnx"]


def test_what_computes_something_else_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = copies.write

    def halved(graph: Any, node: Any) -> None:
        node.attribute.append(helper.make_attribute("scale", 0.1))
        right(graph, node)

    path = saved(tmp_path, attention())
    monkeypatch.setattr(copies, "write", halved)
    with pytest.raises(zs.ModelError, match="'one': written out, it computes something else"):
        zs.port(path, "mnn", tmp_path / "ported.onnx")
    assert os.listdir(tmp_path) == ["model.onnx"]


def test_what_cannot_be_computed_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = copies.write

    def wrong(graph: Any, node: Any) -> None:
        right(graph, node)
        graph.added()[-1].op_type = "Sub"

    monkeypatch.setattr(copies, "write", wrong)
    report, _ = ports(tmp_path, attention(), "mnn")
    assert "it cannot be computed, so it is not written out" in report.findings[0].notes[-1]


def test_numbers_outside_of_the_file_come_along(tmp_path: Path) -> None:
    (tmp_path / "goal").mkdir()
    path, goal = tmp_path / "model.onnx", tmp_path / "goal" / "ported.onnx"
    onnx.save(projected(), path, save_as_external_data=True, location="numbers", size_threshold=0)
    assert zs.port(path, "mnn", goal).ok
    assert sorted(os.listdir(tmp_path / "goal")) == ["numbers", "ported.onnx"]
    compare(tmp_path, goal)
    assert zs.port(path, "mnn", dry_run=True).ok


def test_a_constant_that_an_input_may_replace_is_none(tmp_path: Path) -> None:
    model = grouped()
    model.graph.input.append(helper.make_tensor_value_info("n", 6, (1,)))
    report, goal = ports(tmp_path, model, "mnn")
    nodes = onnx.load(goal).graph.node
    assert report.changes == () or any("n" in node.input for node in nodes)


def test_a_model_may_be_ported_in_place(tmp_path: Path) -> None:
    path = saved(tmp_path, multi_head())
    (tmp_path / "before").mkdir()
    (tmp_path / "before" / "model.onnx").write_bytes(path.read_bytes())
    report = zs.port(path, "mnn", path, via="none", input_shapes={"q": (1, 3, 32)})
    assert report.output == str(path)
    compare(tmp_path / "before", path)
    assert sorted(os.listdir(tmp_path)) == ["before", "model.onnx"]


def test_a_node_of_a_body_stays(tmp_path: Path) -> None:
    model = attention()
    values = {value.name: value for value in model.graph.input}
    inner = helper.make_node("Attention", [*values], ["r"], "one", is_causal=1)
    body = helper.make_graph([inner], "b", [], [helper.make_tensor_value_info("r", 1, None)])
    node = helper.make_node("If", ["c"], ["y"], then_branch=body, else_branch=body)
    values["c"] = helper.make_tensor_value_info("c", onnx.TensorProto.BOOL, ())
    del model.graph.node[:], model.graph.input[:]
    model.graph.node.append(node)
    model.graph.input.extend(values.values())
    report, _ = ports(tmp_path, model, "mnn")
    assert report.changes == ()
    why = "a port writes out nodes of the main graph alone"
    assert all(why in finding.notes[-1] for finding in report.findings)
