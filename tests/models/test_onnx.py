"""ONNX files as graphs: every opset, functions, bodies, constants, data in other files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import small
from onnx import TensorProto, helper, numpy_helper

import zerostride as zs
from zerostride.errors import ModelError
from zerostride.models.formats.onnx.reader import parse, read_onnx
from zerostride.models.ir.graph import Graph

LAST = onnx.defs.onnx_opset_version()


def shapes(graph: Graph) -> dict[str, Any]:
    return {value.name: value.shape for value in graph.values()}


@pytest.mark.parametrize("opset", range(1, LAST + 1))
def test_every_opset_is_read(read: Any, opset: int) -> None:
    content = small.model([small.node("Add", "x c")], {"x": (2, 3)}, {"c": (2, 3)}, opset=opset)
    graph = read(content)
    assert graph.version == opset
    assert [node.version for node in graph.nodes] == [opset]
    # onnx's inference knows Add from opset 6 on.
    assert shapes(graph)["y"] == ((2, 3) if opset >= 6 else None)


def test_inputs_constants_and_symbols_are_read(read: Any) -> None:
    content = small.model(
        [small.node("Add", "x c", "h", name="add"), small.node("Add", "h z")],
        {"x": ("N", None, 3), "z": None},
        {"c": (3,)},
    )
    # An initialiser that is listed among the inputs too is a constant.
    content.graph.input.append(helper.make_tensor_value_info("c", TensorProto.FLOAT, (3,)))
    graph = read(content)
    assert [value.name for value in graph.inputs] == ["x", "z"]
    assert graph.inputs[0].shape == ("N", None, 3)
    assert graph.inputs[1].shape is None
    constant = graph.nodes[0].inputs[1]
    assert (constant.constant, constant.shape) == (True, (3,))
    assert graph.nodes[0].outputs[0].shape[2] == 3
    # One tensor is one value.
    assert graph.nodes[1].inputs[0] is graph.nodes[0].outputs[0]


def test_constant_nodes_are_read(read: Any) -> None:
    nodes = [
        helper.make_node("Constant", [], ["a"], value_ints=[2, 3]),
        helper.make_node("Constant", [], ["b"], value_int=4),
        helper.make_node("Constant", [], ["c"], value_floats=[1.0, 2.0]),
        helper.make_node("Constant", [], ["d"], value=numpy_helper.from_array(np.array([[5, 6]]))),
        helper.make_node("Neg", ["d"], ["e"]),
        helper.make_node("RandomNormal", [], ["f"], shape=[2]),
        small.node("Add", "x c"),
    ]
    by_name = {value.name: value for value in read(small.model(nodes, {"x": (2,)})).values()}
    assert (by_name["a"].shape, by_name["a"].content) == ((2,), (2, 3))
    assert (by_name["b"].shape, by_name["b"].content) == ((), (4,))
    assert (by_name["c"].shape, by_name["c"].content) == ((2,), None)
    assert (by_name["d"].shape, by_name["d"].content) == ((1, 2), (5, 6))
    assert by_name["e"].constant  # computed from constants alone
    assert not by_name["f"].constant
    assert not by_name["y"].constant


def test_functions_are_inlined(read: Any) -> None:
    body = [small.node("Add", "p q", "r", name="inner")]
    imports = [helper.make_opsetid("", 21)]
    function = helper.make_function("own", "Plus", ["p", "q"], ["r"], body, imports)
    calls = [
        small.node("Plus", "x c", "h", name="first", domain="own"),
        small.node("Plus", "h c", "y", name="second", domain="own"),
    ]
    content = small.model(calls, {"x": (2, 3)}, {"c": (3,)}, functions=[function], domains=["own"])
    graph = read(content)
    assert [node.op for node in graph.nodes] == ["Add", "Add"]
    assert shapes(graph)["y"] == (2, 3)
    assert small.audit(content, "numpy").ok


def _body(name: str, nodes: Any, inputs: Any, outputs: Any) -> Any:
    return helper.make_graph(
        nodes,
        name,
        [helper.make_tensor_value_info(n, kind, shape) for n, kind, shape in inputs],
        [helper.make_tensor_value_info(n, kind, None) for n, kind in outputs],
    )


def test_bodies_of_if_loop_and_scan_are_read(read: Any) -> None:
    flag, number, real = TensorProto.BOOL, TensorProto.INT64, TensorProto.FLOAT
    branch = _body("b", [small.node("Add", "x c", "t", name="in_if")], [], [("t", real)])
    turn = _body(
        "l",
        [
            small.node("Identity", "go", "on", name="id"),
            small.node("Add", "v c", "w", name="in_loop"),
        ],
        [("i", number, ()), ("go", flag, ()), ("v", real, (2, 3))],
        [("on", flag), ("w", real)],
    )
    step = _body(
        "s",
        [
            small.node("Add", "state row", "next", name="in_scan"),
            small.node("Identity", "row", "o", name="o"),
        ],
        [("state", real, (3,)), ("row", real, (3,))],
        [("next", real), ("o", real)],
    )
    nodes = [
        helper.make_node("If", ["cond"], ["a"], name="if", then_branch=branch, else_branch=branch),
        helper.make_node("Loop", ["n", "cond", "x"], ["b"], name="loop", body=turn),
        helper.make_node("Scan", ["c", "x"], ["d", "e"], name="scan", body=step, num_scan_inputs=1),
        small.node("Add", "a b"),
    ]
    weights = {"cond": np.array(True), "n": np.array(2), "c": (3,)}
    graph = read(small.model(nodes, {"x": (2, 3)}, weights))
    paths = [node.path for node in graph.nodes if node.op == "Add"]
    assert sorted(paths) == [
        "if/else_branch/in_if",
        "if/then_branch/in_if",
        "loop/body/in_loop",
        "scan/body/in_scan",
        "site",
    ]
    for node in graph.nodes:
        if node.op == "Add" and node.name != "site":
            assert all(value is not None and value.known for value in node.inputs), node.path
    # c is the model's constant inside every body, too.
    inner = next(node for node in graph.nodes if node.path == "loop/body/in_loop")
    assert inner.inputs[1].constant


def test_name_in_a_body_hides_the_outer_name(read: Any) -> None:
    nodes = [small.node("Neg", "x", "t", name="make"), small.node("Add", "t c", "r", name="inner")]
    branch = _body("b", nodes, [], [("r", TensorProto.FLOAT)])
    branch.initializer.append(numpy_helper.from_array(np.ones((3, 1), np.float32), "c"))
    choose = helper.make_node(
        "If", ["cond"], ["a"], name="if", then_branch=branch, else_branch=branch
    )
    after = small.node("Add", "x c")
    weights = {"cond": np.array(True), "c": (3,)}
    graph = read(small.model([choose, after], {"x": (2, 3, 3)}, weights))
    by_name = {node.path: node for node in graph.nodes}
    assert by_name["if/then_branch/inner"].inputs[1].shape == (3, 1)
    assert by_name["site"].inputs[1].shape == (3,)


@pytest.mark.parametrize("location", ["gone.bin", "../gone.bin", "/etc/passwd", ""])
def test_missing_data_is_a_note_where_only_shapes_matter(tmp_path: Path, location: str) -> None:
    content = small.model([small.node("Add", "x c")], {"x": (1, 5, 4, 5)}, {"c": (5,)})
    (tensor,) = content.graph.initializer
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=location)
    file = tmp_path / "m.onnx"
    file.write_bytes(content.SerializeToString())
    report = zs.audit(file, target="ncnn", via="none")
    assert any("'c'" in note for note in report.notes)
    assert report.findings[0].verdict == "different"


def test_missing_data_that_is_needed_is_a_finding(tmp_path: Path) -> None:
    content = small.model([small.node("Expand", "x s")], {"x": (3, 1)}, {"s": np.array([3, 4])})
    (tensor,) = content.graph.initializer
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="gone.bin")
    file = tmp_path / "m.onnx"
    file.write_bytes(content.SerializeToString())
    (finding,) = zs.audit(file, target="torch").findings
    assert (finding.verdict, finding.reason) == ("unknown", "missing_data")
    assert "gone.bin" in finding.message


def test_existing_data_gives_no_note(tmp_path: Path) -> None:
    content = small.model([small.node("Add", "x c")], {"x": (2, 3)}, {"c": (3,)})
    (tensor,) = content.graph.initializer
    (tmp_path / "weights.bin").write_bytes(tensor.raw_data)
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="weights.bin")
    file = tmp_path / "m.onnx"
    file.write_bytes(content.SerializeToString())
    assert zs.audit(file, target="torch").notes == ()


@pytest.mark.parametrize("data", [b"", b"not a model at all", b"\x08\x07" + b"\xff" * 40])
def test_invalid_file_is_one_line(tmp_path: Path, data: bytes) -> None:
    file = tmp_path / "m.onnx"
    file.write_bytes(data)
    with pytest.raises(zs.ModelError) as caught:
        read_onnx(file)
    assert str(file) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_onnx_package_that_cannot_be_imported_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "packages" / "onnx"
    folder.mkdir(parents=True)
    folder.joinpath("__init__.py").write_text("raise RuntimeError('protobuf is too old')\n")
    for name in [name for name in sys.modules if name.partition(".")[0] == "onnx"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(str(folder.parent))
    with pytest.raises(ModelError, match="cannot be imported: protobuf is too old"):
        parse(tmp_path / "m.onnx")
