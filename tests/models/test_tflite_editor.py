"""Changes of LiteRT's files: rewrites become operators and tensors, other bytes stay."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from tflite_files import MODELS, Model, of_one

import zerostride as zs
from zerostride.errors import ModelError
from zerostride.models.execute import execute
from zerostride.models.formats import read_model
from zerostride.models.formats.flatbuffer import File
from zerostride.models.formats.tflite import edit, writing
from zerostride.models.ir.graph import Graph
from zerostride.models.ir.rewrite import SELF, Earlier, Input, Rewrite, RewriteStep

UNSQUEEZE = RewriteStep("unsqueeze", (Input(1),), axes=(0,))
OWN = SELF(Input(0), Earlier(0))


def changed(model: Model, folder: Path, *rewrites: Rewrite) -> Graph:
    """The model's file with rewrites, read again."""
    editor = edit(model.write(folder / "m.tflite"))
    editor.apply(rewrites)
    editor.save(folder / "changed.tflite")
    return read_model(folder / "changed.tflite")


def ops(graph: Graph) -> list[str]:
    return [node.op for node in graph.nodes]


def with_constant(*more: str) -> Model:
    """An ADD of a constant, and of other ops of it."""
    model = Model()
    model.main.input("x", 2, 3)
    model.main.constant("c", np.arange(3, dtype=np.float32))
    model.main.op("ADD", "x c", "y")
    for k, op in enumerate(more):
        model.main.op(op, "y c", f"z{k}")
    model.main.output("y", *(f"z{k}" for k in range(len(more))))
    return model


def test_a_constant_of_one_reader_gets_the_shape_in_place(tmp_path: Path) -> None:
    graph = changed(with_constant(), tmp_path, Rewrite((0,), (UNSQUEEZE, OWN)))
    (node,) = graph.nodes
    assert [value.name for value in node.inputs if value] == ["x", "c"]
    assert [value.shape for value in node.inputs if value] == [(2, 3), (1, 3)]
    assert graph.nodes[0].inputs[1].data().tolist() == [[0, 1, 2]]


def test_a_constant_of_other_readers_is_read_by_a_second_tensor(tmp_path: Path) -> None:
    graph = changed(with_constant("SUB"), tmp_path, Rewrite((0,), (UNSQUEEZE, OWN)))
    first, second = graph.nodes
    assert [value.name for value in first.inputs if value] == ["x", "c_1x3"]
    assert [value.name for value in second.inputs if value] == ["y", "c"]
    assert first.inputs[1].data().tolist() == [[0, 1, 2]]


def test_equal_rewrites_share_the_second_tensor(tmp_path: Path) -> None:
    model = with_constant("SUB", "MUL")
    rewrites = [Rewrite((k,), (UNSQUEEZE, OWN)) for k in (0, 1)]
    graph = changed(model, tmp_path, *rewrites)
    names = [node.inputs[1].name for node in graph.nodes if node.inputs[1]]
    assert names == ["c_1x3", "c_1x3", "c"]


def test_half_weights_are_reshaped_before_dequantize(tmp_path: Path) -> None:
    model = Model()
    model.main.input("x", 2, 3)
    model.main.constant("h", np.arange(3, dtype=np.float16))
    model.main.op("DEQUANTIZE", "h", "c")
    model.main.op("MUL", "x c", "y")
    model.main.output("y")
    graph = changed(model, tmp_path, Rewrite((1,), (UNSQUEEZE, OWN)))
    assert ops(graph) == ["DEQUANTIZE", "MUL"]
    half, weights = graph.nodes[0].inputs[0], graph.nodes[1].inputs[1]
    assert half is not None
    assert weights is not None
    assert (half.shape, half.dtype, weights.shape) == ((1, 3), "float16", (1, 3))
    assert weights.data().tolist() == [[0, 1, 2]]


def test_half_weights_of_other_readers_are_dequantised_again(tmp_path: Path) -> None:
    model = Model()
    model.main.input("x", 2, 3)
    model.main.constant("h", np.arange(3, dtype=np.float16))
    model.main.op("DEQUANTIZE", "h", "c")
    model.main.op("MUL", "x c", "y")
    model.main.op("ADD", "y c", "z")
    model.main.output("z")
    graph = changed(model, tmp_path, Rewrite((1,), (UNSQUEEZE, OWN)))
    assert ops(graph) == ["DEQUANTIZE", "DEQUANTIZE", "MUL", "ADD"]
    x = np.ones((2, 3), np.float32)
    np.testing.assert_array_equal(execute(graph, {"x": x})["z"], [[0, 2, 4]] * 2)


def test_the_axis_of_scales_goes_with_its_sizes(tmp_path: Path) -> None:
    model = Model()
    model.main.input("x", 2, 3, dtype="int8", scales=(0.5,))
    model.main.constant("c", np.array([1, 2, 3], np.int8), scales=(1.0, 2.0, 3.0), axis=0)
    model.main.add("y", (2, 3), "int8", scales=(0.5,))
    model.main.op("ADD", "x c", "y")
    model.main.output("y")
    graph = changed(model, tmp_path, Rewrite((0,), (UNSQUEEZE, OWN)))
    constant = graph.nodes[0].inputs[1]
    assert constant is not None
    assert constant.quantised is not None
    assert (constant.shape, constant.quantised.axis) == ((1, 3), 1)


@pytest.mark.parametrize(
    ("engine", "op"), [("", "EXPAND_DIMS"), ("ncnn", "EXPAND_DIMS"), ("litert-gpu", "RESHAPE")]
)
def test_a_gpu_has_reshape_alone(engine: str, op: str, tmp_path: Path) -> None:
    editor = edit(of_one("ADD", (2, 3), (1,)).write(tmp_path / "m.tflite"))
    editor.serve(engine)
    editor.apply([Rewrite((0,), (UNSQUEEZE, OWN))])
    editor.save(tmp_path / "changed.tflite")
    graph = read_model(tmp_path / "changed.tflite")
    assert ops(graph) == [op, "ADD"]
    numbers = execute(graph, {"x0": np.ones((2, 3), np.float32), "x1": [2.0]})
    assert numbers["y"].tolist() == [[3, 3, 3]] * 2


def test_the_last_step_makes_the_operators_own_result(tmp_path: Path) -> None:
    model = of_one("ADD", (2, 3), (2, 3))
    flat = tuple(RewriteStep("reshape", (Input(k),), shape=(6,)) for k in (0, 1))
    back = RewriteStep("reshape", (Earlier(2),), shape=(2, 3))
    steps = (*flat, SELF(Earlier(0), Earlier(1)), back)
    graph = changed(model, tmp_path, Rewrite((0,), steps))
    assert ops(graph) == ["RESHAPE", "RESHAPE", "ADD", "RESHAPE"]
    assert [value.name for value in graph.outputs] == ["y"]
    assert graph.nodes[2].outputs[0].shape == (6,)


def test_an_open_size_stays_open(tmp_path: Path) -> None:
    model = MODELS["open_sizes"]()
    step = RewriteStep("unsqueeze", (Input(0),), axes=(0,))
    back = RewriteStep("squeeze", (Earlier(1),), axes=(0,))
    graph = changed(model, tmp_path, Rewrite((0,), (step, SELF(Earlier(0), Input(1)), back)))
    x = np.ones((4, 5), np.float32)
    assert execute(graph, {"x": x})["y"].shape == (4, 5)


def test_a_number_and_other_ops_take_the_operators_place(tmp_path: Path) -> None:
    """PRELU written out: x < 0 ? slope * x : x."""
    model = Model()
    model.main.input("x", 2, 3)
    model.main.constant("s", np.array([1, 2, 3], np.float32))
    model.main.op("PRELU", "x s", "y")
    model.main.output("y")
    steps = (
        RewriteStep("number", (), attributes={"value": 0.0, "dtype": "float32"}),
        RewriteStep("less", (Input(0), Earlier(0))),
        RewriteStep("multiply", (Input(1), Input(0))),
        RewriteStep("where", (Earlier(1), Earlier(2), Input(0))),
    )
    graph = changed(model, tmp_path, Rewrite((0,), steps))
    assert ops(graph) == ["LESS", "MUL", "SELECT_V2"]
    x = np.array([[-1, 0, 2], [-3, -4, 5]], np.float32)
    assert execute(graph, {"x": x})["y"].tolist() == [[-1, 0, 2], [-3, -8, 5]]


# What stays.


def test_the_files_bytes_are_kept(tmp_path: Path) -> None:
    model = MODELS["residual"]()
    model.behind = True
    data = model.data()
    changed(model, tmp_path, Rewrite((3,), (UNSQUEEZE, OWN)))
    written = (tmp_path / "changed.tflite").read_bytes()
    begin = len(written) - len(data) - -len(data) % writing.ALIGNMENT
    assert begin % writing.ALIGNMENT == 0
    kept = written[begin : begin + len(data)]
    # Alone the offsets of numbers behind the flatbuffer move with them.
    differing = [k for k in range(len(data)) if kept[k] != data[k]]
    places = [
        place
        for table in File(data).root().tables(4)
        if (place := table.place(1)) is not None and table.number(1, "uint64") > 1
    ]
    assert places
    assert all(any(place <= k < place + 8 for place in places) for k in differing)


@pytest.mark.parametrize("behind", [False, True])
def test_every_constant_keeps_its_numbers(behind: bool, tmp_path: Path) -> None:
    model = MODELS["residual"]()
    model.behind = behind
    after = changed(model, tmp_path, Rewrite((3,), (UNSQUEEZE, OWN)))
    before = read_model(tmp_path / "m.tflite")
    numbers = {value.name: value for value in after.values()}
    for value in before.values():
        if value.source is not None:
            new = numbers[value.name]
            assert (new.dtype, new.quantised) == (value.dtype, value.quantised)
            np.testing.assert_array_equal(new.data().ravel(), value.data().ravel())


def test_nothing_to_change_copies_the_file(tmp_path: Path) -> None:
    path = MODELS["loop"]().write(tmp_path / "m.tflite")
    editor = edit(path)
    editor.apply([])
    assert editor.save(tmp_path / "copy.tflite") == (tmp_path / "copy.tflite",)
    assert (tmp_path / "copy.tflite").read_bytes() == path.read_bytes()


def test_signatures_and_other_subgraphs_stay(tmp_path: Path) -> None:
    model = MODELS["signatures"]()
    swap = Rewrite((2,), (SELF(Input(1), Input(0)),))
    graph = changed(model, tmp_path, swap)
    before = read_model(tmp_path / "m.tflite")
    assert [value.name for value in graph.inputs] == [value.name for value in before.inputs]
    assert [node.path for node in graph.nodes] == [node.path for node in before.nodes]
    root = File((tmp_path / "changed.tflite").read_bytes()).root()
    assert [table.text(2) for table in root.tables(7)] == ["add", "mul"]


# What is refused.


def test_a_subgraph_of_two_ops_is_changed_for_both_or_not_at_all(tmp_path: Path) -> None:
    model = Model()
    model.main.input("which", 1, dtype="bool")
    model.main.input("x", 2, 3)
    number, inner = model.graph()
    inner.input("a", 2, 3)
    inner.constant("b", np.arange(3, dtype=np.float32))
    inner.op("ADD", "a b", "r")
    inner.output("r")
    branches = {"then_subgraph_index": number, "else_subgraph_index": number}
    model.main.op("IF", "which x", "y", **branches)
    model.main.output("y")
    one, other = ((0, name, 0) for name in ("then_branch", "else_branch"))
    with pytest.raises(ModelError, match="its subgraph is run in several places"):
        changed(model, tmp_path, Rewrite(one, (UNSQUEEZE, OWN)))
    both = [Rewrite(place, (UNSQUEEZE, OWN)) for place in (one, other)]
    graph = changed(model, tmp_path, *both)
    shapes = [node.inputs[1].shape for node in graph.nodes if node.op == "ADD" and node.inputs[1]]
    assert shapes == [(1, 3), (1, 3)]


def test_after_a_refusal_nothing_is_written(tmp_path: Path) -> None:
    editor = edit(of_one("ADD", (2, 3), (3,)).write(tmp_path / "m.tflite"))
    with pytest.raises(ModelError, match="there is no node at"):
        editor.apply([Rewrite((7,), (OWN,))])
    with pytest.raises(ModelError, match="nothing is written"):
        editor.save(tmp_path / "changed.tflite")
    assert not (tmp_path / "changed.tflite").exists()


def test_a_model_that_would_be_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "MAX_BYTES", 64)
    with pytest.raises(ModelError, match="models of 2 GiB and more are not written"):
        changed(with_constant(), tmp_path, Rewrite((0,), (UNSQUEEZE, OWN)))


def test_without_the_flatbuffers_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = with_constant().write(tmp_path / "m.tflite")
    monkeypatch.setitem(sys.modules, "flatbuffers", None)
    assert zs.audit(path, "litert").ok
    editor = edit(path)
    editor.apply([Rewrite((0,), (UNSQUEEZE, OWN))])
    with pytest.raises(ModelError, match="pip install flatbuffers"):
        editor.save(tmp_path / "changed.tflite")


def test_a_table_of_a_newer_schema(tmp_path: Path) -> None:
    table = File(with_constant().data()).root()
    writer = writing.TfliteWriter(Path("m.tflite"))
    with pytest.raises(ModelError, match="of a newer schema"):
        writer.table((), {}, table)


def test_other_ops_on_quantised_tensors(tmp_path: Path) -> None:
    model = Model()
    for name in ("x", "s"):
        model.main.input(name, 2, 3, dtype="int8", scales=(0.5,))
    model.main.add("y", (2, 3), "int8", scales=(0.5,))
    model.main.op("ADD", "x s", "y")
    with pytest.raises(ModelError, match="of quantised tensors would round otherwise"):
        changed(model, tmp_path, Rewrite((0,), (RewriteStep("multiply", (Input(0), Input(1))),)))


def test_a_dry_run_predicts_the_findings_of_a_model_without_broadcasts(tmp_path: Path) -> None:
    """BROADCAST_TO becomes a TILE on a GPU: no broadcast is left, so there is no finding."""
    model = Model()
    model.main.input("x", 4)
    model.main.constant("shape", np.array([1, 2, 3, 4], np.int32))
    model.main.op("BROADCAST_TO", "x shape", "y")
    model.main.output("y")
    file = model.write(tmp_path / "m.tflite")
    dry = zs.port(file, "litert-gpu", dry_run=True)
    done = zs.port(file, "litert-gpu", tmp_path / "done.tflite")
    assert [change.by for change in dry.changes] == [change.by for change in done.changes]
    assert (dry.findings, done.findings) == ((), ())
