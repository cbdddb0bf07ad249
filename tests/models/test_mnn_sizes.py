"""Sizes through MNN files: loops, branches, convolutions along one axis, spectra, paddings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mnn_files
import numpy as np
import pytest
from mnn_files import Model, Numbers, Scalar, i8, i32, ints

import zerostride as zs
from zerostride.models.execute import execute
from zerostride.models.format_table import lowered
from zerostride.models.formats import read_model
from zerostride.models.formats.mnn import shapes
from zerostride.models.ir.graph import Graph, Node


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """MNN is not asked here."""
    monkeypatch.setattr(shapes, "installed", lambda: False)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "model.mnn"


def written(file: Path, data: bytes) -> Path:
    file.write_bytes(data)
    return file


def text_of(file: Path, name: str) -> str:
    """A tensor's shape as people read it."""
    tensors = zs.shapes(file).tensors
    return next(tensor.text for tensor in tensors if tensor.name == name)


def dtype_of(graph: Graph, name: str) -> str | None:
    return next(v.dtype for node in graph.nodes for v in node.outputs if v.name == name)


def node_of(graph: Graph, name: str) -> Node:
    return next(node for node in graph.nodes if node.name == name)


def loop(*, longer: bool = False, condition: bool = False) -> bytes:
    """What the converter makes of an LSTM: a While without a graph for its condition.

    The body hands on `i` and `h`, whose last axis gets longer if asked for; what its inputs say of
    themselves is wrong, as in the converter's files.
    """
    body = Model()
    body.constant("bias", np.ones((4,), np.float32))
    body.input("h", 7)  # said by the converter, and not read by MNN
    body.binary("ADD", "h bias", "sum")
    body.op("Concat" if longer else "Identity", "sum sum" if longer else "sum", "next", "Axis",
            {0: i32(2)})  # fmt: skip
    body.input("gate", 1, 1)
    body.binary("MUL", "sum gate", "scaled")
    body.input("i", dtype="int32")
    body.input("go", dtype="int32")
    names = ("i", "go", "gate", "h")
    graph = {
        0: "main",
        1: ints(*map(body.index, names)),
        2: ints(*map(body.index, ("go", "gate", "next", "scaled"))),
        3: body.names,
        4: body.ops,
    }
    model = Model()
    model.input("x", 1, -1, 4)
    model.input("g", 1, -1, 1)
    model.constant("limit", np.array([3], np.int32))
    model.constant("on", np.array(1, np.int32))
    model.graphs = [graph, {**graph, 0: "cond"}]
    given = {0: "cond"} if condition else {}
    model.op("While", "limit on g x", "g2 h2 all", "WhileParam", {**given, 1: "main"})
    model.binary("ADD", "h2 x", "y")
    return model.data("y", "all")


def test_sizes_kept_by_a_loops_body_are_kept(file: Path) -> None:
    written(file, loop())
    assert text_of(file, "sum") == "(1, x_1, 4)"
    assert text_of(file, "h2") == "(1, x_1, 4)"
    assert text_of(file, "all") == "(3, 1, bcast(g_1, x_1), 4)"
    for target in ("ncnn", "tosa", "openvino"):
        verdicts = {f.node: f.verdict for f in zs.audit(file, target).findings}
        assert verdicts["y"] == verdicts["g2/body/scaled"] == "same"
        # TOSA takes operands of one rank: the body's ranks are known, too.
        assert verdicts["g2/body/sum"] == ("refused" if target == "tosa" else "same")


def test_sizes_changed_by_a_loops_body_are_unknown(file: Path) -> None:
    written(file, loop(longer=True))
    assert text_of(file, "h2") == "(1, x_1, ?)"
    finding = next(f for f in zs.audit(file, "openvino").findings if f.node == "y")
    assert [str(size) for size in finding.operands[0][1] or ()] == ["1", "x_1", "?"]


def test_loop_with_a_condition_graph_is_not_lowered(file: Path) -> None:
    graph = lowered(read_model(written(file, loop(condition=True))))
    assert node_of(graph, "g2").domain == "mnn"
    assert text_of(file, "h2") == "?"
    finding = next(f for f in zs.audit(file, "tosa").findings if f.node == "y")
    assert finding.verdict == "unknown"
    assert "from While 'g2' on, whose passes give other shapes" in finding.message


def test_results_of_loops_and_branches_have_their_producers_type(file: Path) -> None:
    graph = read_model(written(file, loop()))
    assert [dtype_of(graph, name) for name in ("h2", "all", "y")] == ["float32"] * 3
    graph = read_model(written(file, mnn_files.branches()))
    assert dtype_of(graph, "y") == "float32"  # its condition is an int32


def convolution(rows: int, depth: int) -> dict[int, Any]:
    common = {2: i32(1), 3: i32(rows), 9: i32(1), 10: i32(4), 11: i32(depth)}
    count = 4 * rows * depth
    return {0: common, 1: Numbers("<f4", [0.1] * count), 2: Numbers("<f4", [0.0] * 4)}


@pytest.mark.parametrize("plane", [False, True])
def test_convolution_has_the_axes_of_its_input(file: Path, plane: bool) -> None:
    """MNN's file writes a window along one axis as one of one column."""
    model = Model()
    model.input("x", 1, -1)
    model.constant("axes", np.array([1, 3] if plane else [1], np.int32))
    model.op("Unsqueeze", "x axes", "u")
    model.op("Convolution", "u", "c", "Convolution2D", convolution(3, 1))
    model.op("Convolution", "c", "d", "Convolution2D", convolution(1, 4))
    model.constant("bias", np.ones((4, 1, 1) if plane else (4, 1), np.float32))
    model.binary("ADD", "d bias", "y")
    written(file, model.data("y"))
    assert text_of(file, "y") == ("(1, 4, x_1 - 2, 1)" if plane else "(1, 4, x_1 - 2)")
    assert [f.verdict for f in zs.audit(file, "openvino").findings] == ["same"]


def test_axis_is_computed_from_an_inferred_rank(file: Path) -> None:
    """The axis of a Gather is ``(axis + rank) mod rank``, the rank that of a computed tensor."""
    model = Model()
    model.input("x", 2, -1)
    model.constant("to", np.array([-1], np.int32))
    model.op("Reshape", "x to", "flat", "Reshape", {})
    model.op("Rank", "flat", "rank")
    model.constant("axis", np.array(-1, np.int32))
    model.binary("ADD", "axis rank", "sum")
    model.binary("MOD", "sum rank", "wrapped")
    model.constant("index", np.array([0, 1], np.int32))
    model.op("GatherV2", "flat index wrapped", "y")
    written(file, model.data("y"))
    assert text_of(file, "y") == "(2,)"


def test_spectrum_is_lowered_to_onnx(file: Path) -> None:
    model = Model()
    model.input("x", 1, -1)
    model.constant("step", np.array(50, np.int32))
    model.constant("window", np.ones((64,), np.float32))
    model.op("Stft", "x step window", "half", "StftParam", {})
    model.op("Stft", "x step window", "both", "StftParam", {2: Scalar("?", False)})
    model.op("Stft", "x", "old", "StftParam", {0: i32(64), 1: i32(50)})
    written(file, model.data("half", "both", "old"))
    assert text_of(file, "half") == "(1, ((x_1 + 36) // 50) - 1, 33, 2)"
    assert text_of(file, "both") == "(1, ((x_1 + 36) // 50) - 1, 64, 2)"
    assert text_of(file, "old") == "?"  # its step and window are attributes, its sizes others


def test_negative_padding_has_sizes_and_is_not_lowered(file: Path) -> None:
    model = Model()
    model.input("x", 1, -1)
    model.constant("pads", np.array([0, 0, 1, -1], np.int32))
    model.op("Padding", "x pads", "p", "PadParam", {0: i8(0)})
    model.binary("ADD", "x p", "y")
    graph = read_model(written(file, model.data("y")))
    assert node_of(lowered(graph), "p").domain == "mnn"
    assert text_of(file, "p") == "(1, x_1)"
    assert [f.verdict for f in zs.audit(file, "ncnn").findings] == ["same"]


@pytest.mark.parametrize("counts", [(1, -1), (1, 2), (0, 2)])
def test_slice_has_the_requested_size(file: Path, counts: tuple[int, int]) -> None:
    """MNN takes it as it is; −1 is what is left."""
    model = Model()
    model.input("x", -1, -1)
    model.constant("begin", np.array([1, 2], np.int32))
    model.constant("size", np.array(counts, np.int32))
    model.op("SliceTf", "x begin size", "y", "SliceTf")
    written(file, model.data("y"))
    if counts == (1, 2):
        assert text_of(file, "y") == "(1, 2)"
    else:
        assert "x_" in text_of(file, "y")


@pytest.mark.parametrize(("rows", "reason"), [(2, "folded"), (-1, "no_op")])
def test_index_independent_of_open_sizes_is_folded(file: Path, rows: int, reason: str) -> None:
    """The converter wraps indices, too: ``(index + size) mod size``."""
    model = Model()
    model.input("x", rows, 3)
    model.op("Shape", "x", "n")
    model.constant("begin", np.array([0], np.int32))
    model.constant("one", np.array([1], np.int32))
    model.op("SliceTf", "n begin one", "rows", "SliceTf")
    model.binary("ADD", "one rows", "sum")
    model.binary("MOD", "sum rows", "index")
    model.constant("axis", np.array(0, np.int32))
    model.op("GatherV2", "x index axis", "y")
    written(file, model.data("y"))
    findings = {f.node: f for f in zs.audit(file, "tosa").findings}
    assert findings["index"].reason == reason


def test_loop_has_mnns_number_of_turns(file: Path) -> None:
    """Its number of the pass is an int32."""
    body = Model()
    body.input("i", dtype="int32")
    body.input("go", dtype="int32")
    body.input("h", dtype="int32")
    body.binary("ADD", "h i", "next")
    graph = {
        0: "main",
        1: ints(0, 1, 2),
        2: ints(*map(body.index, ("go", "next", "h"))),
        3: body.names,
        4: body.ops,
    }
    model = Model()
    model.input("x", 2, dtype="int32")
    model.constant("limit", np.array([4], np.int32))
    model.constant("on", np.array(1, np.int32))
    model.graphs = [graph]
    model.op("While", "limit on x", "y all", "WhileParam", {1: "main"})
    written(file, model.data("y", "all"))
    outputs = execute(read_model(file), {"x": np.array([1, 10], np.int32)})
    np.testing.assert_array_equal(outputs["y"], np.array([7, 16], np.int32))
    assert outputs["all"].shape == (4, 2)


def test_bools_are_numbers_in_arithmetic(file: Path) -> None:
    """MNN has no booleans: the converter writes a Not as one less, with its sign turned."""
    model = Model()
    model.input("x", 3, dtype="int32")
    model.constant("two", np.array(2, np.int32))
    model.constant("one", np.array(1, np.int32))
    model.binary("EQUAL", "x two", "same")
    model.binary("SUB", "same one", "other")
    model.binary("LOGICALOR", "same other", "any")
    written(file, model.data("other", "any"))
    outputs = execute(read_model(file), {"x": np.array([1, 2, 3], np.int32)})
    np.testing.assert_array_equal(outputs["other"], np.array([-1, 0, -1], np.int32))
    np.testing.assert_array_equal(outputs["any"], np.array([1, 1, 1], np.int32))
