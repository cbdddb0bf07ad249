"""MNN files without MNN: reading, refusals, and lowering."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mnn_files
import numpy as np
import pytest
from mnn_files import Model, Numbers, Scalar, i8, i32, ints

import zerostride as zs
from zerostride import ModelError
from zerostride.models.flow.resolved import resolved
from zerostride.models.format_table import FORMATS, lowered, module_of
from zerostride.models.formats import read_model
from zerostride.models.formats.mnn import lower, shapes, weights
from zerostride.models.formats.mnn.schema import BINARY, OPS
from zerostride.models.formats.mnn.sites import ROWS, word
from zerostride.models.ir.graph import Graph, Node
from zerostride.models.ir.site import Kind


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """MNN is not asked here."""
    monkeypatch.setattr(shapes, "installed", lambda: False)


@pytest.fixture
def read(tmp_path: Path) -> Callable[[bytes], Graph]:
    def run(data: bytes) -> Graph:
        file = tmp_path / "model.mnn"
        file.write_bytes(data)
        return read_model(file)

    return run


def by_name(graph: Graph) -> dict[str, Node]:
    return {node.name: node for node in graph.nodes}


def shape_of(graph: Graph, name: str) -> Any:
    whole, _, _ = resolved(graph)
    return next(v.shape for node in whole.nodes for v in node.outputs if v.name == name)


Read = Callable[[bytes], Graph]


def test_model_is_read_with_weights_and_attributes(read: Read) -> None:
    graph = read(mnn_files.vision())
    nodes = by_name(graph)
    assert graph.format == "mnn"
    assert [(v.name, v.shape, v.dtype) for v in graph.inputs] == [("x", (1, 3, 8, 8), "float32")]
    assert list(nodes) == ["c", "s", "d", "p", "m"]
    assert [v.shape for v in nodes["c"].inputs if v] == [(1, 3, 8, 8), (4, 3, 3, 3), (4,)]
    weight = nodes["c"].inputs[1]
    assert weight is not None
    np.testing.assert_allclose(weight.data().ravel()[:3], [0, 0.01, 0.02], atol=1e-7)
    assert nodes["c"].attributes["pads"] == (1, 1, 1, 1)
    assert nodes["d"].attributes["opType"] == "ADD"
    assert nodes["m"].attributes["operation"] == "MEAN"
    assert nodes["m"].inputs[1].content == (2, 3)  # type: ignore[union-attr]
    assert [value.name for value in graph.outputs] == ["m"]
    assert graph.version == 3
    assert [node.place for node in graph.nodes] == [(1,), (2,), (4,), (5,), (7,)]


def test_missing_mnn_gives_inferred_shapes_and_a_note(read: Read) -> None:
    graph = read(mnn_files.vision())
    assert "not installed" in " ".join(graph.notes)
    assert "pip install 'zerostride[mnn]'" in " ".join(graph.notes)
    assert shape_of(graph, "d") == (1, 4, 8, 8)
    assert shape_of(graph, "m") == (1, 4)


def test_open_sizes_have_names_and_are_followed(read: Read) -> None:
    graph = read(mnn_files.shapes())
    assert [value.shape for value in graph.inputs] == [(1, "x_1", 8), ("y_0", 8)]
    assert graph.notes == ()  # MNN computes with numbers only, so it was not missed
    assert [str(size) for size in shape_of(graph, "z")] == ["1", "bcast(x_1, y_0)", "8"]
    assert [str(size) for size in shape_of(graph, "t")] == ["1", "8", "bcast(x_1, y_0)"]
    assert {node.domain for node in lowered(graph).nodes} == {""}


def test_sites_have_mnns_rules_and_onnx_ops(read: Read, tmp_path: Path) -> None:
    graph = read(mnn_files.vision())
    find = module_of(graph).find_site
    sites = {node.name: find(node) for node in graph.nodes}
    assert {name: site and (site.kind, site.op) for name, site in sites.items()} == {
        "c": None,
        "s": (Kind.CHANNEL, "BatchNormalization"),
        "d": (Kind.ELEMENTWISE, "Add"),
        "p": (Kind.PRELU, "PRelu"),
        "m": None,
    }
    report = zs.audit(tmp_path / "model.mnn", target="ncnn")
    assert {finding.node: str(finding.verdict) for finding in report.findings} == {
        "s": "same",
        "d": "same",
        "p": "same",
    }


def test_ops_that_do_not_broadcast_in_mnn_are_invalid(read: Read, tmp_path: Path) -> None:
    read(mnn_files.mixed())
    findings = {f.node: f for f in zs.audit(tmp_path / "model.mnn", target="numpy").findings}
    assert findings["bad"].reason == "invalid_source"  # stacks (2, 4) and (4,)
    assert findings["e"].reason == "invalid_source"
    assert findings["u"].reason == "custom_op"
    assert findings["q"].reason == "custom_op"
    assert findings["g"].verdict == "same"
    assert findings["s"].reason == "invalid_source"  # MNN reads past the third operand's end
    assert "third operand" in findings["s"].message
    assert "p" not in findings  # alike, so nothing stretches


def test_if_has_its_graphs_and_their_inputs(read: Read) -> None:
    graph = read(mnn_files.branches())
    paths = [node.path for node in graph.nodes]
    assert paths == ["y", "y/then_branch/out", "y/else_branch/out"]
    node = graph.nodes[0]
    assert [body.name for body in node.bodies] == ["then_branch", "else_branch"]
    assert node.bodies[0].nodes[0].inputs[0] is graph.inputs[1]
    assert [str(size) for size in shape_of(graph, "y")] == ["2", "3"]
    report = zs.audit(graph.path, target="numpy")
    assert [(f.node, str(f.verdict)) for f in report.findings] == [
        ("y/then_branch/out", "same"),
        ("y/else_branch/out", "same"),
    ]


def test_mnn_files_are_not_written(read: Read) -> None:
    graph = read(mnn_files.vision())
    assert not FORMATS["mnn"].writable
    with pytest.raises(
        ModelError, match=r"model\.mnn: \.mnn files are not written; port .* before"
    ):
        module_of(graph).edit(Path(graph.path))


# Hostile files.


def refused(read: Read, data: bytes) -> str:
    with pytest.raises(ModelError) as caught:
        read(data)
    message = str(caught.value)
    assert "model.mnn: " in message
    assert "\n" not in message
    return message


def test_invalid_files_are_refused_in_one_line(read: Read, tmp_path: Path) -> None:
    assert "empty" in refused(read, b"")
    assert "truncated" in refused(read, b"\0")
    assert "beyond its end" in refused(read, b"\xff" * 64)
    assert "no ops" in refused(read, mnn_files.Writer().file({}))
    assert "another format" in refused(read, b"# not a model, but text that is long enough\n" * 9)
    with pytest.raises(ModelError, match=r"a folder; name the \.mnn file"):
        FORMATS["mnn"].load().read(tmp_path)
    with pytest.raises(ModelError, match=r"missing\.mnn"):
        read_model(tmp_path / "missing.mnn")


@pytest.mark.parametrize("name", mnn_files.MODELS)
def test_truncated_file_is_an_error_or_a_graph(read: Read, name: str) -> None:
    data = mnn_files.MODELS[name]()
    for end in range(0, len(data), 13):
        with contextlib.suppress(ModelError):
            read(data[:end])


def test_shared_parts_are_counted() -> None:
    from zerostride.models.formats.flatbuffer import File, Malformed

    data = mnn_files.Writer().file({0: ints(*range(100_000))})
    file = File(data)
    root = file.root()
    for _ in range(10):
        root.numbers(0, "int32")
    with pytest.raises(Malformed, match="unfold without end"):
        root.numbers(0, "int32")


def test_impossible_sizes_are_refused(read: Read) -> None:
    model = Model()
    model.op("Const", "", "k", "Blob", {0: ints(*[1] * 65)})
    assert "65 axes" in refused(read, model.data())
    model = Model()
    model.op("Const", "", "k", "Blob", {0: ints(-3)})
    assert "sizes (-3,)" in refused(read, model.data())
    model = Model()
    model.op("Const", "", "k", "Blob", {9: Numbers("<i8", [-8, 4]), 0: ints(1)})
    assert "begin at -8" in refused(read, model.data())
    model = Model()
    model.ops.append({0: ints(-5), 4: ints(0), 5: i32(7)})
    assert "no tensor -5" in refused(read, model.data())


def test_constant_beyond_64_bits_is_an_error_when_its_data_is_read(read: Read) -> None:
    model = Model()
    model.constant("k", np.ones(3, np.float32))
    model.ops[0][2][0] = ints(*[2**31 - 1] * 5)  # type: ignore[index]
    model.input("x", 3)
    model.binary("ADD", "x k", "y")
    constant = read(model.data()).nodes[0].inputs[1]
    assert constant is not None
    with pytest.raises(ModelError, match="the file has 3 numbers"):
        constant.data()


def test_external_constants_are_read_only_from_beside_the_model(read: Read, tmp_path: Path) -> None:
    model = Model()
    model.op("Const", "", "k", "Blob", {0: ints(2, 2), 2: i32(1), 9: Numbers("<i8", [4, 16])})
    model.input("x", 2, 2)
    model.binary("ADD", "x k", "y")
    model.ops[0] = {**model.ops[0], 7: "/etc/passwd"}  # Op.externalPath
    data = model.data()
    missing = read(data)
    assert "model.mnn.weight" in " ".join(missing.notes)
    with pytest.raises(ModelError, match=r"missing.*model\.mnn\.weight"):
        missing.nodes[0].inputs[1].data()  # type: ignore[union-attr]
    beside = weights.weights_beside(tmp_path / "model.mnn")
    beside.write_bytes(np.arange(5, dtype="<f4").tobytes())
    constant = read(data).nodes[0].inputs[1]
    assert constant is not None
    np.testing.assert_array_equal(constant.data(), [[1, 2], [3, 4]])
    beside.write_bytes(b"short")
    with pytest.raises(ModelError, match="too short for constant"):
        constant.data()


def test_recursive_graphs_end(read: Read) -> None:
    model = Model()
    model.input("c", dtype="int32")
    loop = {0: "again", 1: "again", 2: [], 3: []}
    model.op("If", "c", "y", "IfParam", loop)
    inner = Model()
    inner.input("c", dtype="int32")
    inner.op("If", "c", "y", "IfParam", loop)
    model.graphs = [{0: "again", 3: inner.names, 4: inner.ops}]
    assert "deeper" in refused(read, model.data()) or "unfold" in refused(read, model.data())


# Words.


def test_every_row_is_an_op_of_the_schema() -> None:
    from zerostride.models.formats.mnn.lowering import ROWS as WORDS

    names = set(OPS.values())
    assert set(ROWS) <= names
    assert set(WORDS) <= names


def test_binary_operations_are_lowered_except_mul_silu() -> None:
    without = [name for name in BINARY.values() if not word(name)]
    assert without == ["MUL_SILU"]
    assert word("FLOORMOD") == "remainder"
    assert word("REALDIV") == "Div"
    assert word("LOGICALOR") == "Or"


def lowered_ops(node: Node) -> list[str]:
    nodes = lower(node)
    assert nodes is not None
    assert tuple(nodes[-1].outputs) == node.outputs  # the very objects
    assert all(a is b for a, b in zip(nodes[-1].outputs, node.outputs, strict=True))
    return [part.op for part in nodes]


def test_ops_are_lowered_unless_the_memory_format_matters(read: Read) -> None:
    model = Model()
    model.input("x", 1, 4, 5, 6, layout="NC4HW4")
    model.input("t", 1, 4, 5, 6, layout="NHWC")
    model.op("Reshape", "x", "r", "Reshape", {0: ints(0, -1), 1: i8(0)})
    model.op("Reshape", "x", "r2", "Reshape", {0: ints(0, -1), 1: i8(1)})
    model.op("ConvertTensor", "x", "plain", "TensorConvertInfo", {0: i8(2), 1: i8(0)})
    model.op("ConvertTensor", "x", "last", "TensorConvertInfo", {0: i8(2), 1: i8(1)})
    model.op("ConvertTensor", "t", "first", "TensorConvertInfo", {0: i8(1), 1: i8(2)})
    model.op("Shape", "x", "n1", layout="NCHW")
    model.op("Shape", "x", "n2", layout="NHWC")
    model.op("ReLU6", "x", "c", "Relu6", {0: Scalar("f", -1.0), 1: Scalar("f", 1.0)})
    model.binary("LESS", "x t", "less")
    model.binary("ADD", "x t", "sum", activation=1)
    model.op("Raster", "x", "raster")
    padded = {3: i32(3), 4: i32(3), 5: i32(1), 6: i32(1), 7: i8(1), 11: ints(1, 1, 1, 1)}
    model.op("Pooling", "x", "mean", "Pool", {**padded, 10: Scalar("?", False)})
    model.op("Pooling", "x", "mean1", "Pool", {**padded, 10: Scalar("?", False), 12: i8(1)})
    nodes = by_name(read(model.data()))
    assert lowered_ops(nodes["r"]) == ["Reshape"]
    assert lower(nodes["r2"]) is None
    assert lowered_ops(nodes["plain"]) == ["Identity"]
    last, first = lower(nodes["last"]), lower(nodes["first"])
    assert last is not None
    assert first is not None
    assert last[0].attributes["perm"] == (0, 2, 3, 1)
    assert first[0].attributes["perm"] == (0, 3, 1, 2)
    assert lowered_ops(nodes["n1"]) == ["Shape", "Cast"]
    assert lower(nodes["n2"]) is None
    assert lowered_ops(nodes["c"]) == ["Clip"]
    assert lowered_ops(nodes["less"]) == ["Less", "Cast"]
    assert lowered_ops(nodes["sum"]) == ["Add", "Relu"]
    assert lower(nodes["raster"]) is None
    assert lower(nodes["mean"]) is None  # whether what is outside counts is not said
    assert lowered_ops(nodes["mean1"]) == ["AveragePool"]


def test_computed_axis_counts_as_shape_arithmetic(tmp_path: Path) -> None:
    """The converter wraps the axis of a Gather by the rank: no engine is asked about that MOD."""
    model = Model()
    model.input("x", 2, 3, 4)
    model.op("Rank", "x", "rank")
    model.constant("axis", np.array(-1, np.int32))
    model.binary("ADD", "axis rank", "sum")
    model.binary("MOD", "sum rank", "wrapped")
    model.constant("index", np.array(1, np.int32))
    model.op("GatherV2", "x index wrapped", "y")
    file = tmp_path / "m.mnn"
    file.write_bytes(model.data("y"))
    findings = zs.audit(file, "tosa").findings
    assert [finding.verdict for finding in findings] == ["same", "same"]
    assert findings[1].reason == "folded"
    file.write_bytes(model.data("y", "wrapped"))
    assert zs.audit(file, "tosa").findings[1].verdict == "refused"


@pytest.mark.parametrize(("target", "verdict"), [("openvino", "same"), ("mnn", "same")])
def test_unknown_rank_is_within_mnns_limit(tmp_path: Path, target: str, verdict: str) -> None:
    """What OpenVINO does wrong beyond 12 axes is none of an MNN file's concern."""
    model = Model()
    model.input("n", -1, dtype="int32")
    model.input("x", 3)
    model.op("Reshape", "x n", "a", "Reshape", {})
    model.binary("ADD", "a x", "y")
    file = tmp_path / "m.mnn"
    file.write_bytes(model.data("y"))
    (finding,) = zs.audit(file, target).findings
    assert finding.operands[0][1] is None
    assert finding.verdict == verdict
