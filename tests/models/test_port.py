"""Porting a model: the smallest rewrite, proven, or none."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import small
from onnx import TensorProto, helper, numpy_helper

import zerostride as zs
from zerostride.models.execute import execute
from zerostride.models.findings import Report
from zerostride.models.formats import read_model
from zerostride.models.port import passes, program, replay, run, search
from zerostride.models.rewrite import SELF, Input, Made, Step

Shape = tuple[int, ...]


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", zs.EngineVersionWarning)
        yield


def model_of(
    nodes: Sequence[Any],
    inputs: Mapping[str, Any],
    weights: Mapping[str, Any] | None = None,
    **more: Any,
) -> onnx.ModelProto:
    made = small.model(nodes, inputs, weights, **more)
    made.ir_version = 10 if more.get("opset", 21) > 8 else 3
    if made.ir_version < 4:
        for tensor in made.graph.initializer:
            made.graph.input.append(
                helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
            )
    return made


def ported(
    folder: Path,
    model: onnx.ModelProto,
    target: str,
    *,
    real: Mapping[str, int] | None = None,
    **more: Any,
) -> Report:
    """The report of a port whose result computes what the model computes, and needs no other."""
    file, goal = folder / "model.onnx", folder / "ported.onnx"
    file.write_bytes(model.SerializeToString())
    report = zs.port(file, target, goal, **more)
    assert report.output == str(goal)
    assert report.command == "port"
    compare(file, goal, real or {})
    again = zs.port(goal, target, folder / "again.onnx", **more)
    assert again.changes == ()
    assert goal.read_bytes() == (folder / "again.onnx").read_bytes()
    assert sorted(os.listdir(folder)) == ["again.onnx", "model.onnx", "ported.onnx"]
    return report


def compare(file: Path, goal: Path, sizes: Mapping[str, int]) -> None:
    """Both models on the same numbers; sizes without a number are 4."""
    rng = np.random.default_rng(0)
    graph = read_model(file)
    fed = {}
    for value in graph.inputs:
        shape = tuple(s if isinstance(s, int) else sizes.get(str(s), 4) for s in value.shape or ())
        array = rng.standard_normal(shape)
        fed[value.name] = np.asarray(array > 0 if value.dtype == "bool" else array).astype(
            value.dtype or "float32"
        )
    before, after = execute(graph, fed), execute(read_model(goal), fed)
    assert before.keys() == after.keys()
    for name, array in before.items():
        np.testing.assert_array_equal(array, after[name], strict=True)


def by(report: Report) -> list[str]:
    return [change.by for change in report.changes]


def one(op: str, inputs: Mapping[str, Any], weights: Any = None, **more: Any) -> onnx.ModelProto:
    names = " ".join([*inputs, *(weights or {})])
    options = {key: more.pop(key) for key in ("opset",) if key in more}
    return model_of([small.node(op, names, **more)], inputs, weights, **options)


# The passes, each at what it is for.


def test_a_constant_is_reshaped_before_a_node_is_put_in(tmp_path: Path) -> None:
    report = ported(tmp_path, one("Add", {"x": (5, 5)}, {"c": (5,)}), "ncnn")
    assert report.ok
    assert by(report) == ["constants"]
    assert [finding.verdict for finding in report.before] == ["different"]
    (change,) = report.changes
    assert change.before == ("y(5,5) = Add(x(5,5), c(5))",)
    assert change.after == ("y(5,5) = Add(x(5,5), c(1,5))",)
    assert change.elements == 25


def test_a_size_trap_is_taken_away(tmp_path: Path) -> None:
    report = ported(tmp_path, one("Add", {"x": (3, 5)}, {"c": (5,)}), "ncnn")
    assert [finding.verdict for finding in report.before] == ["same_here"]
    assert report.ok


def test_an_operand_is_reshaped_by_a_node(tmp_path: Path) -> None:
    report = ported(tmp_path, one("Sub", {"x": (5,), "z": (5, 5)}), "ncnn")
    assert report.ok
    assert by(report) == ["operands"]
    assert len(report.changes[0].after) == 2


def test_operands_are_exchanged_where_only_the_second_stretches(tmp_path: Path) -> None:
    report = ported(tmp_path, one("Mul", {"x": (1, 4), "z": (3, 4)}), "litert-gpu")
    assert report.ok
    assert by(report) == ["swap"]
    report = ported(tmp_path / _new(tmp_path), one("Sub", {"x": (1, 4), "z": (3, 4)}), "litert-gpu")
    assert not report.ok
    assert report.changes == ()
    assert any("not ported" in note for note in report.findings[0].notes)


def _new(folder: Path) -> str:
    (folder / "again").mkdir()
    for file in folder.glob("*.onnx"):
        file.unlink()
    return "again"


@pytest.mark.parametrize("target", ["coreml", "litert-gpu", "tosa"])
def test_axes_are_merged_for_engines_with_few(tmp_path: Path, target: str) -> None:
    shape = (2, 3, 4, 2, 3, 2, 2)
    report = ported(tmp_path, one("Add", {"x": shape}, {"c": (4, 2, 3, 2, 2)}), target)
    assert report.ok
    assert by(report) == ["merge"]


def test_an_operand_is_broadcast_first_where_nothing_stretches(tmp_path: Path) -> None:
    report = ported(tmp_path, one("Add", {"x": (3, 1), "z": (1, 4)}), "stablehlo")
    assert report.ok
    assert by(report) == ["expand"]


def test_more_runs_of_axes_than_an_engine_has(tmp_path: Path) -> None:
    x, z = (2, 1, 3, 1, 2, 1, 3, 1), (1, 3, 1, 2, 1, 3, 1, 2)
    report = ported(tmp_path, one("Add", {"x": x, "z": z}), "tensorflow")
    assert report.ok
    assert by(report) == ["expand"]


def test_an_expand_to_less_than_the_result_names_the_result(tmp_path: Path) -> None:
    model = model_of(
        [small.node("Expand", "x s")], {"x": (3, 1)}, {"s": np.array([1, 4], np.int64)}
    )
    report = ported(tmp_path, model, "torch")
    assert report.ok
    assert by(report) == ["target"]


def test_many_operands_become_a_chain_for_a_converter_of_two(tmp_path: Path) -> None:
    model = one("Max", {"x": (4, 5, 5), "z": (4, 5, 5), "w": (5,)})
    report = ported(tmp_path, model, "ncnn", via="pnnx")
    assert report.ok
    assert by(report) == ["equivalent"]
    assert [node.op_type for node in onnx.load(tmp_path / "ported.onnx").graph.node][-2:] == [
        "Max",
        "Max",
    ]


def test_a_slope_that_an_engine_does_not_take_is_written_out(tmp_path: Path) -> None:
    model = one("PRelu", {"x": (2, 3, 4, 5)}, {"s": np.full((4, 1), -0.5, np.float32)})
    report = ported(tmp_path, model, "torch")
    assert report.ok
    assert by(report) == ["equivalent"]
    ops = [node.op_type for node in onnx.load(tmp_path / "ported.onnx").graph.node]
    assert ops == ["Constant", "Less", "Mul", "Where"]


def test_slopes_where_a_vector_means_channels(tmp_path: Path) -> None:
    model = one("PRelu", {"x": (2, 5, 5)}, {"s": np.linspace(0, 1, 5, dtype=np.float32)})
    report = ported(tmp_path, model, "openvino")
    assert report.ok
    assert by(report) == ["constants"]


def test_the_addend_of_a_product(tmp_path: Path) -> None:
    weights = {"w": (6, 5), "c": np.arange(5, dtype=np.float32).reshape(5, 1)}
    report = ported(tmp_path, one("Gemm", {"x": (5, 6)}, weights), "mnn")
    assert [finding.verdict for finding in report.before] == ["different"]
    assert {change.op for change in report.changes} <= {"Gemm"}
    # MNN takes a column of as many numbers as there are columns for a row, in any shape.
    assert report.ok or "not ported" in report.findings[0].notes[-1]


def test_matrices_that_would_be_paired(tmp_path: Path) -> None:
    report = ported(tmp_path, one("MatMul", {"x": (3, 1, 4, 5), "z": (1, 3, 5, 4)}), "mnn")
    assert [finding.verdict for finding in report.before] == ["different"]
    assert report.ok
    assert by(report) == ["expand"]


def test_a_scale_of_exactly_what_is_normalised(tmp_path: Path) -> None:
    model = one("LayerNormalization", {"x": (2, 3, 4)}, {"s": (1, 4), "b": (4,)})
    file = tmp_path / "model.onnx"
    file.write_bytes(model.SerializeToString())
    report = zs.port(file, "torch", tmp_path / "ported.onnx")
    assert report.ok
    assert by(report) == ["constants"]


@pytest.mark.parametrize(("shape", "axis"), [((3, 4), 0), ((4,), 1), ((3,), 0)])
def test_an_axis_becomes_explicit(tmp_path: Path, shape: Shape, axis: int) -> None:
    """Before opset 7 nothing says NumPy's rule, so the operand is laid out in full."""
    c = np.random.default_rng(0).random(shape, np.float32)
    node = small.node("Sub", "x c", broadcast=1, axis=axis)
    report = ported(tmp_path, model_of([node], {"x": (3, 4, 5)}, {"c": c}, opset=6), "torch")
    assert report.ok
    assert by(report) == ["attributes"]
    ops = [node.op_type for node in onnx.load(tmp_path / "ported.onnx").graph.node]
    assert ops == ["Tile", "Sub"]


# The batch axis.


def test_engines_of_samples_get_the_models_own_shapes(tmp_path: Path) -> None:
    model = model_of(
        [small.node("Add", "x c", "t", name="a"), small.node("Mul", "t v", name="b")],
        {"x": (1, 7, 5, 5), "v": (1, 5)},
        {"c": (5,)},
    )
    report = ported(tmp_path, model, "ncnn")
    assert report.ok
    shapes = {
        tensor.name: tuple(tensor.dims)
        for tensor in onnx.load(tmp_path / "ported.onnx").graph.initializer
    }
    assert shapes["c"][-3:] == (1, 1, 5)


def test_the_batch_that_was_named(tmp_path: Path) -> None:
    model = one("Add", {"x": (8, 5, 5)}, {"c": (5,)})
    report = ported(tmp_path, model, "ncnn", batch_axis=0)
    assert report.ok
    assert report.changes


def test_a_broadcast_across_the_batch_is_left(tmp_path: Path) -> None:
    report = ported(tmp_path, one("Add", {"x": (1, 5), "z": (4, 5)}), "ncnn")
    assert not report.ok
    assert report.changes == ()


def test_the_batch_axis_of_a_result_is_kept(tmp_path: Path) -> None:
    """Squeezed away and put back it would be an axis like any other to what reads the result."""
    shape = (1, 1, 1, 1, 1, 1, 5)
    nodes = [
        small.node("Sum", "x x", "t", name="a"),
        small.node("Sum", "t x", "u", name="b"),
        small.node("Mul", "u v", name="c"),
    ]
    report = ported(tmp_path, model_of(nodes, {"x": shape, "v": ()}), "ncnn")
    assert report.ok
    assert by(report) == ["merge"] * 3
    assert any("no tensors of more than 4 axes" in note for note in report.notes)


# What a converter does by itself, and what it leaves.


def test_pnnx_puts_ones_in_by_itself(tmp_path: Path) -> None:
    model = one("Add", {"x": (4, 5, 5)}, {"c": (5,)})
    assert by(ported(tmp_path, model, "ncnn", via="pnnx")) == []
    assert by(ported(tmp_path / _new(tmp_path), model, "ncnn")) == ["constants"]


def test_pnnx_leaves_five_axes(tmp_path: Path) -> None:
    model = one("Add", {"x": (4, 2, 3, 5, 5)}, {"c": (5, 5)})
    report = ported(tmp_path, model, "ncnn", via="pnnx")
    assert report.ok
    assert by(report) == ["merge"]


def test_pnnx_leaves_sizes_that_it_does_not_know(tmp_path: Path) -> None:
    model = one("Add", {"x": ("A", "H", "W"), "z": ("W",)})
    report = ported(tmp_path, model, "ncnn", via="pnnx")
    assert [finding.verdict for finding in report.before] == ["unknown"]
    assert report.ok
    assert by(report) == ["operands"]


# Sizes that are not known.


def test_ones_are_put_in_whatever_the_sizes_are(tmp_path: Path) -> None:
    report = ported(tmp_path, one("Add", {"x": ("H", "W"), "z": ("W",)}), "ncnn")
    assert report.ok
    assert by(report) == ["operands"]
    assert "H" in str(report.changes[0].after)


def test_what_holds_under_a_condition_is_done_only_where_that_is_given(tmp_path: Path) -> None:
    model = one("Add", {"x": ("N", 4, 5), "z": (4, "M")})
    real = {"N": 1, "M": 5}
    free = ported(tmp_path, model, "stablehlo", real=real)
    assert free.changes == ()
    assert not free.ok
    facts = ["N == 1", "M == 5"]
    given = ported(tmp_path / _new(tmp_path), model, "stablehlo", real=real, facts=facts)
    assert given.ok


def test_numbers_for_named_sizes(tmp_path: Path) -> None:
    model = one("Add", {"x": ("N", 4, 5, 5, 5, 5), "z": (5, 5)})
    report = ported(tmp_path, model, "coreml", sizes={"N": 4})
    assert report.ok
    assert report.changes


# Models of more than one node.


def test_constants_that_several_nodes_read(tmp_path: Path) -> None:
    nodes = [
        small.node("Add", "x c", "t", name="a"),
        small.node("Mul", "t c", "u", name="b"),
        small.node("Sub", "v c", "w", name="d"),
        small.node("Add", "u c", "y", name="e"),
    ]
    model = model_of(nodes, {"x": (5, 5), "v": (5,)}, {"c": (5,)}, outputs=("y", "w", "t"))
    report = ported(tmp_path, model, "ncnn")
    assert report.ok
    assert len(report.changes) == 3
    made = onnx.load(tmp_path / "ported.onnx")
    assert {t.name: tuple(t.dims) for t in made.graph.initializer} == {"c": (5,), "c_1x5": (1, 5)}
    assert [o.name for o in made.graph.output] == ["y", "w", "t"]


def test_bodies_are_ported_too(tmp_path: Path) -> None:
    def body(op: str) -> Any:
        node = helper.make_node(op, ["x", "v"], ["r"], name=f"in_{op}")
        result = helper.make_tensor_value_info("r", TensorProto.FLOAT, (5, 5))
        return helper.make_graph([node], op, [], [result])

    node = helper.make_node("If", ["p"], ["y"], then_branch=body("Add"), else_branch=body("Mul"))
    model = model_of([node], {"x": (5, 5), "v": (5,)})
    model.graph.input.append(helper.make_tensor_value_info("p", TensorProto.BOOL, ()))
    report = ported(tmp_path, model, "ncnn")
    assert len(report.changes) == 2
    assert report.ok
    assert all(change.node.startswith("If_0/") for change in report.changes)


def test_computed_constants_are_reshaped_after_what_computes_them(tmp_path: Path) -> None:
    nodes = [
        small.node("DequantizeLinear", "q s", "c", name="d"),
        small.node("Add", "x c", name="a"),
    ]
    q = np.arange(5, dtype=np.int8)
    model = model_of(nodes, {"x": (5, 5)}, {"q": q, "s": np.float32(0.5)})
    file = tmp_path / "model.onnx"
    file.write_bytes(model.SerializeToString())
    report = zs.port(file, "openvino", tmp_path / "o.onnx")
    assert report.changes == ()
    report = zs.port(file, "ncnn", tmp_path / "o.onnx")
    assert [change.node for change in report.changes] == ["a"]
    ops = [node.op_type for node in onnx.load(tmp_path / "o.onnx").graph.node]
    assert ops == ["DequantizeLinear", "Unsqueeze", "Add"]


def test_what_cannot_be_ported_stays_and_says_why(tmp_path: Path) -> None:
    nodes = [
        small.node("And", "p q", "r", name="logic"),
        small.node("Custom", "x", "t", name="own", domain="mine"),
        small.node("Add", "x c", name="a"),
    ]
    model = model_of(nodes, {"x": (5, 5)}, {"c": (5,)}, outputs=("y", "r", "t"), domains=["mine"])
    for name, shape in (("p", (5, 5)), ("q", (5,))):
        model.graph.input.append(helper.make_tensor_value_info(name, TensorProto.BOOL, shape))
    file = tmp_path / "model.onnx"
    file.write_bytes(model.SerializeToString())
    report = zs.port(file, "ncnn", tmp_path / "o.onnx")
    assert not report.ok
    assert [change.node for change in report.changes] == ["a"]
    left = {f.node: f.notes[-1] for f in report.findings if f.verdict != "same"}
    assert left.keys() == {"logic", "own"}
    assert "nothing is known" in left["own"]
    made = onnx.load(tmp_path / "o.onnx")
    assert made.graph.node[:2] == model.graph.node[:2]


def test_a_model_that_needs_nothing_is_the_same_file(tmp_path: Path) -> None:
    report = ported(tmp_path, one("Add", {"x": (5, 5)}, {"c": (1, 5)}), "torch")
    assert report.ok
    assert (tmp_path / "ported.onnx").read_bytes() == (tmp_path / "model.onnx").read_bytes()


# Proof: what is wrong is found, and nothing is written.


def _wrong_pass(monkeypatch: pytest.MonkeyPatch, steps: tuple[Step, ...]) -> None:
    row = passes.Pass(
        "wrong", "a mistake", lambda *_: True, lambda *_: iter([steps]), lambda *_: True
    )
    monkeypatch.setattr(search, "PASSES", (row,))


COLUMN = (Step("unsqueeze", (Input(1),), axes=(1,)), SELF(Input(0), Made(0)))


def _refusing(folder: Path, words: str) -> None:
    file, goal = folder / "model.onnx", folder / "ported.onnx"
    c = np.arange(5, dtype=np.float32)
    file.write_bytes(one("Add", {"x": (5, 5)}, {"c": c}).SerializeToString())
    goal.write_text("what was there")
    with pytest.raises(zs.ModelError, match=words):
        zs.port(file, "ncnn", goal)
    assert goal.read_text() == "what was there"
    assert sorted(os.listdir(folder)) == ["model.onnx", "ported.onnx"]


def test_planning_drops_a_rewrite_of_another_meaning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _wrong_pass(monkeypatch, COLUMN)
    report = ported(tmp_path, one("Add", {"x": (5, 5)}, {"c": (5,)}), "ncnn")
    assert report.changes == ()
    assert not report.ok


def test_computing_finds_what_planning_did_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _wrong_pass(monkeypatch, COLUMN)
    monkeypatch.setattr(program, "_check_meaning", lambda *_: None)
    _refusing(tmp_path, "'site'.*another result")


def test_the_written_file_is_computed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _wrong_pass(monkeypatch, COLUMN)
    monkeypatch.setattr(program, "_check_meaning", lambda *_: None)
    monkeypatch.setattr(search, "compute", lambda *_: 25)
    _refusing(tmp_path, "'site'.*computes something else")


def test_constants_of_the_written_file_are_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from zerostride.models import onnx_files

    whole = onnx_files._bytes

    def other(model: Any, path: Path) -> bytes:
        model.graph.initializer[0].raw_data = bytes(20)
        return whole(model, path)

    monkeypatch.setattr(onnx_files, "_bytes", other)
    _refusing(tmp_path, "other numbers|something else")


def test_the_written_file_is_audited_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from zerostride.models import onnx_editor

    def nothing(self: Any, task: Any, constants: Any) -> None:
        self.model.graph.initializer[0].dims[:] = [5]

    monkeypatch.setattr(onnx_editor.OnnxEditor, "_say", nothing)
    _refusing(tmp_path, "after writing.*different")


def test_a_node_that_is_lost_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from zerostride.models import onnx_editor

    def renamed(self: Any, task: Any, constants: Any) -> None:
        self.model.graph.node[0].output[0] = "other"

    monkeypatch.setattr(onnx_editor.OnnxEditor, "_say", renamed)
    _refusing(tmp_path, "not found again")


def test_a_pass_that_breaks_its_promise_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = passes.Pass("liar", "", lambda *_: True, lambda *_: iter([COLUMN]), lambda *_: False)
    monkeypatch.setattr(search, "PASSES", (row,))
    _refusing(tmp_path, "'site'.*promise")


def test_an_editor_that_cannot_say_a_rewrite_gets_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from zerostride.models import onnx_editor

    def choosy(self: Any, task: Any, constants: Any) -> None:
        if task.rewrite.by == "constants":
            raise zs.ModelError("no constants today")
        return whole(self, task, constants)

    whole = onnx_editor.OnnxEditor._say
    monkeypatch.setattr(onnx_editor.OnnxEditor, "_say", choosy)
    nodes = [small.node("Add", "x c", "t", name="a"), small.node("Mul", "t v", name="b")]
    model = model_of(nodes, {"x": (5, 5), "v": (5,)}, {"c": (5,)})
    report = ported(tmp_path, model, "ncnn")
    assert by(report) == ["operands", "operands"] or by(report) == ["swap", "operands"]
    assert report.ok


# Files.


def test_a_full_disk_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    _refusing(tmp_path, "No space left")


def test_the_model_itself_may_be_the_output(tmp_path: Path) -> None:
    file = tmp_path / "model.onnx"
    file.write_bytes(one("Add", {"x": (5, 5)}, {"c": (5,)}).SerializeToString())
    file.chmod(0o640)
    link = tmp_path / "link.onnx"
    link.symlink_to(file)
    report = zs.port(link, "ncnn", link)
    assert report.ok
    assert link.is_symlink()
    assert file.stat().st_mode & 0o777 == 0o640
    assert zs.audit(file, "ncnn").ok
    assert sorted(os.listdir(tmp_path)) == ["link.onnx", "model.onnx"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("folder.onnx", "not a regular file"),
        ("pipe.onnx", "not a regular file"),
        ("missing/o.onnx", "no folder"),
        ("o.param", "name|ends"),
        ("o.txt", "name"),
        ("nul\0.onnx", "null|NUL|embedded"),
    ],
)
def test_places_where_no_model_goes(tmp_path: Path, name: str, words: str) -> None:
    file = tmp_path / "model.onnx"
    file.write_bytes(one("Add", {"x": (5, 5)}, {"c": (5,)}).SerializeToString())
    (tmp_path / "folder.onnx").mkdir()
    os.mkfifo(tmp_path / "pipe.onnx")
    with pytest.raises(zs.ModelError, match=words):
        zs.port(file, "ncnn", f"{tmp_path}/{name}")
    with pytest.raises(zs.ModelError, match="output"):
        zs.port(file, "ncnn")


def _with_data(folder: Path) -> Path:
    file = folder / "model.onnx"
    model = one("Add", {"x": (5, 5)}, {"c": np.arange(5, dtype=np.float32)})
    onnx.save(model, file, save_as_external_data=True, location="w.bin", size_threshold=0)
    return file


def test_external_data_go_along(tmp_path: Path) -> None:
    file = _with_data(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    assert zs.port(file, "ncnn", other / "o.onnx").ok
    assert sorted(os.listdir(other)) == ["o.onnx", "w.bin"]
    (tensor,) = onnx.load(other / "o.onnx").graph.initializer
    assert numpy_helper.to_array(tensor).tolist() == [[0, 1, 2, 3, 4]]
    assert (other / "w.bin").stat().st_ino != (tmp_path / "w.bin").stat().st_ino
    assert zs.port(file, "ncnn", file).ok
    assert sorted(os.listdir(tmp_path)) == ["model.onnx", "other", "w.bin"]


def test_data_that_are_missing_stay_so(tmp_path: Path) -> None:
    file = _with_data(tmp_path)
    (tmp_path / "w.bin").unlink()
    report = zs.port(file, "ncnn", tmp_path / "o.onnx")
    assert report.ok
    (made,) = onnx.load(tmp_path / "o.onnx", load_external_data=False).graph.initializer
    assert tuple(made.dims) == (1, 5)


def test_external_data_take_nobodys_place(tmp_path: Path) -> None:
    file = _with_data(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    (other / "w.bin").write_text("mine")
    with pytest.raises(zs.ModelError, match="empty folder"):
        zs.port(file, "ncnn", other / "o.onnx")
    assert sorted(os.listdir(other)) == ["w.bin"]
    assert (other / "w.bin").read_text() == "mine"


def test_external_data_are_taken_away_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = _with_data(tmp_path)
    other = tmp_path / "other"
    other.mkdir()

    def wrong(*_: Any) -> None:
        raise zs.ModelError("a check failed")

    monkeypatch.setattr(run, "check_findings", wrong)
    with pytest.raises(zs.ModelError, match="a check failed"):
        zs.port(file, "ncnn", other / "o.onnx")
    assert os.listdir(other) == []


# What is asked, and how it is answered.


def test_a_dry_run_writes_nothing_and_says_the_same(tmp_path: Path) -> None:
    file = tmp_path / "model.onnx"
    nodes = [small.node("Add", "x c", "t", name="a"), small.node("Mul", "t v", name="b")]
    model = model_of(nodes, {"x": (5, 5), "v": (5,)}, {"c": (5,)})
    file.write_bytes(model.SerializeToString())
    dry = zs.port(file, "ncnn", dry_run=True)
    assert os.listdir(tmp_path) == ["model.onnx"]
    assert dry.output is None
    assert dry.ok
    real = zs.port(file, "ncnn", tmp_path / "o.onnx")
    assert [(c.node, c.by, c.words) for c in dry.changes] == [
        (c.node, c.by, c.words) for c in real.changes
    ]
    assert [f.verdict for f in dry.before] == [f.verdict for f in real.before]
    assert json.loads(dry.to_json())["changes"]
    assert "nothing written" in str(dry)
    assert "<html" in real.to_html().lower()


def test_unknown_engines_and_converters(tmp_path: Path) -> None:
    file = tmp_path / "model.onnx"
    file.write_bytes(one("Add", {"x": (5, 5)}, {"c": (5,)}).SerializeToString())
    with pytest.raises(zs.BroadcastError, match="no engine"):
        zs.port(file, "nothing", tmp_path / "o.onnx")
    with pytest.raises(zs.ZerostrideError, match="pnnx"):
        zs.port(file, "torch", tmp_path / "o.onnx", via="pnnx")
    with pytest.raises(zs.ZerostrideError, match="no sizes"):
        zs.port(file, "torch", tmp_path / "o.onnx", facts=["N > 3", "N < 2"])


@pytest.mark.parametrize("dry_run", [False, True])
def test_progress_ends_where_it_said(tmp_path: Path, dry_run: bool) -> None:
    file = tmp_path / "model.onnx"
    nodes = [small.node("Add", "x c", "t", name="a"), small.node("Mul", "t v", name="b")]
    model = model_of(nodes, {"x": (5, 5), "v": (5,)}, {"c": (5,)})
    file.write_bytes(model.SerializeToString())
    seen: list[tuple[int, int]] = []
    goal = None if dry_run else tmp_path / "o.onnx"
    zs.port(file, "ncnn", goal, dry_run=dry_run, progress=lambda *counts: seen.append(counts))
    assert seen == sorted(seen)
    assert {total for _, total in seen} == {4 if dry_run else 6}
    assert seen[-1][0] == seen[-1][1]


def test_the_modules_of_the_proof_are_what_the_tests_think() -> None:
    """Names that the tests above replace are used by the code that they test."""
    assert search.compute.__module__.endswith("port.numbers")
    assert run.check_findings is replay.check_findings
    assert callable(program._check_meaning)
