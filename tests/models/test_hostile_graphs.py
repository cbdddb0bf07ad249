"""Hostile graphs in valid files: broken, deep, endless, or too much for inference."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from sampled import few

onnx = pytest.importorskip("onnx", reason="the files are ONNX files")
from hostile import (  # noqa: E402
    FLOAT,
    INT64,
    add,
    answered,
    audit,
    audited,
    call,
    function,
    model,
    nested,
    one_line,
    read,
    refused,
    said,
    value,
    write,
)
from onnx import helper  # noqa: E402

import zerostride as zs  # noqa: E402
from work import calls_of  # noqa: E402
from zerostride.models.execute import execute  # noqa: E402
from zerostride.models.execute.random_inputs import random_inputs  # noqa: E402
from zerostride.models.formats.onnx.isolated_inference import infer_apart  # noqa: E402
from zerostride.models.formats.onnx.reader import read_onnx  # noqa: E402
from zerostride.models.ir.graph import Value  # noqa: E402
from zerostride.models.onnx_ops.validation import nodes_of, strange  # noqa: E402
from zerostride.models.transport.node_axes import new_axis  # noqa: E402

EXAMPLES = Path(__file__).parents[2] / "examples"


# Graphs.


def test_custom_domain_is_unknown(tmp_path: Path) -> None:
    made = model(
        [helper.make_node("Frob", ["x"], ["y"], domain="com.example")],
        opsets=[("", 17), ("com.example", 1)],
    )
    (finding,) = zs.audit(write(tmp_path, made), "ncnn").findings
    assert (finding.verdict, finding.reason) == ("unknown", "custom_op")


BROKEN = {
    "same name twice": [add(out="y"), add(out="y")],
    "overwrites its input": [add("x", "x", "x")],
    "cycle": [add("x", "b", "a"), add("a", "x", "b")],
    "own result": [add("y", "y", "y")],
    "use before definition": [add("a", "x", "y"), add("x", "x", "a")],
    "undefined": [add("nowhere", "x", "y")],
    "no output": [add("x", "x", "z")],
    "empty names": [add("", "", "")],
    "no operands": [helper.make_node("Add", [], [])],
    "one operand": [helper.make_node("Add", ["x"], ["y"])],
    "ten operands": [helper.make_node("Add", ["x"] * 10, ["y"])],
    "ten results": [helper.make_node("Add", ["x", "x"], list("abcdefghij"))],
    "no op": [helper.make_node("", ["x"], ["y"])],
    "lstm of nothing": [helper.make_node("LSTM", [], ["y"])],
    "einsum without end": [helper.make_node("Einsum", ["x"], ["y"], equation="a...b...")],
    "einsum of controls": [helper.make_node("Einsum", ["x"], ["y"], equation="\x1b[31mred")],
    "negative batch": [helper.make_node("GatherND", ["x", "i"], ["y"], batch_dims=-2)],
    "attribute of another type": [helper.make_node("Transpose", ["x"], ["y"], perm="text")],
    "attribute twice": [
        onnx.NodeProto(
            op_type="Transpose",
            input=["x"],
            output=["y"],
            attribute=[helper.make_attribute("perm", [1, 0])] * 2,
        )
    ],
    "if without bodies": [helper.make_node("If", ["x"], ["y"])],
    "loop without a body": [helper.make_node("Loop", ["", "x"], ["y"])],
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_graph_gives_a_report(tmp_path: Path, name: str) -> None:
    made = model(BROKEN[name], [value("x", [2, 3]), value("i", [1], INT64)])
    for target in ("ncnn", "onnxruntime"):
        report = zs.audit(write(tmp_path, made), target)
        assert len(report.findings) <= len(BROKEN[name])
        said(report)


@pytest.mark.parametrize(
    "opsets",
    [[("", 0)], [("", -1)], [("", 2**31)], [("", 2**40 + 17)], [("", -(2**63))], [("x", 0)]],
    ids=str,
)
def test_invalid_version_is_refused(tmp_path: Path, opsets: list[tuple[str, int]]) -> None:
    assert "is no version" in refused(tmp_path, model([add()], opsets=opsets))


def test_future_or_missing_version_gives_a_report(tmp_path: Path) -> None:
    future = model([add()], opsets=[("", 10**9)])
    assert len(zs.audit(write(tmp_path, future), "torch").findings) == 1
    none = model([add()], opsets=[("com.example", 1)])
    report = zs.audit(write(tmp_path, none), "torch")
    assert any("taken as 1" in note for note in report.notes)


def test_non_tensor_types_are_read(tmp_path: Path) -> None:
    inside = helper.make_tensor_type_proto(FLOAT, [2, 3])
    kinds = [
        helper.make_sequence_type_proto(inside),
        helper.make_optional_type_proto(inside),
        helper.make_map_type_proto(INT64, inside),
        helper.make_sparse_tensor_type_proto(FLOAT, [2, 3]),
        onnx.TypeProto(),
    ]
    for kind in kinds:
        entry = onnx.ValueInfoProto(name="x", type=kind)
        (finding,) = zs.audit(write(tmp_path, model([add()], [entry])), "torch").findings
        assert finding.verdict == "unknown"


def test_declared_shapes_that_contradict_inference_are_reported(tmp_path: Path) -> None:
    made = model([add("x", "x", "a"), add("a", "b")], value_info=[value("a", [7, 7, 7])])
    made.graph.input.append(value("b", [3]))
    audited(tmp_path, made)


# Depth and number.


@pytest.mark.parametrize("depth", [1, 10, 30])
def test_nested_bodies_are_read(tmp_path: Path, depth: int) -> None:
    graph = read(tmp_path, nested(depth))
    assert len(graph.nodes) == depth + 1
    assert len(graph.nodes[-1].scope) == 2 * depth


@pytest.mark.parametrize("depth", few(2, [34, 20_000, 200]))
def test_bodies_too_deep_are_refused(tmp_path: Path, depth: int) -> None:
    path = write(tmp_path, nested(depth))
    one_line(audit(path), path)


def test_work_is_linear_in_nodes_and_bodies(tmp_path: Path) -> None:
    def calls(count: int) -> int:
        nodes = [add(f"v{k}", "b", f"v{k + 1}") for k in range(count)]
        path = write(tmp_path, model(nodes, [value("v0", [4, 5]), value("b", [5])]))
        reports = []
        work = calls_of(lambda: reports.append(zs.audit(path, "torch")))
        assert len(reports[0].findings) == count
        return work

    calls(100)  # what is done once
    small, large = calls(500), calls(5_000)
    assert large < 12 * small


def test_many_bodies_over_many_names_take_linear_work(tmp_path: Path) -> None:
    body = helper.make_graph([add("v1", "b", "r")], "body", [], [value("r", None)])
    nodes = [add(f"v{k}", "b", f"v{k + 1}") for k in range(10_000)]
    nodes += [
        helper.make_node("If", ["c"], [f"r{k}"], then_branch=body, else_branch=body)
        for k in range(500)
    ]
    inputs = [value("v0", [4, 5]), value("b", [5]), value("c", [], onnx.TensorProto.BOOL)]
    path = write(tmp_path, model(nodes, inputs))
    graphs = []
    assert calls_of(lambda: graphs.append(read_onnx(path))) < 300 * 11_500
    assert len(graphs[0].nodes) == 11_500


# Functions.


def test_recursive_functions_are_not_inlined(tmp_path: Path) -> None:
    opsets = [("", 17), ("f", 1)]
    for functions in (
        [function("F", [call("F")])],
        [function("F", [call("G")]), function("G", [call("F")])],
        [function(f"F{k}", [call(f"F{(k + 1) % 2000}")]) for k in range(2000)],
    ):
        start = functions[0].name
        made = model([call(start, "x", "y")], opsets=opsets, functions=functions)
        assert "calls itself" in audited(tmp_path, made)


def test_long_chain_of_functions_is_inlined(tmp_path: Path) -> None:
    chain = [function(f"F{k}", [call(f"F{k + 1}")]) for k in range(100)]
    chain.append(function("F100", [add("a", "a", "b")]))
    made = model([call("F0", "x", "y")], opsets=[("", 17), ("f", 1)], functions=chain)
    report = zs.audit(write(tmp_path, made), "torch")
    assert [finding.op for finding in report.findings] == ["Add"]
    assert report.notes == ()


def test_functions_that_double_are_not_inlined(tmp_path: Path) -> None:
    doubling = [
        function(f"F{k}", [call(f"F{k + 1}", "a", "t"), call(f"F{k + 1}", "t", "b")])
        for k in range(60)
    ]
    doubling.append(function("F60", [add("a", "a", "b")]))
    made = model([call("F0", "x", "y")], opsets=[("", 17), ("f", 1)], functions=doubling)
    answer = audit(write(tmp_path, made))
    answered(answer)
    assert f"{2**60} nodes" in answer.out


def test_function_defined_twice_or_without_attributes_is_reported(tmp_path: Path) -> None:
    twice = [function("F", [add("a", "a", "b")])] * 2
    made = model([call("F", "x", "y")], opsets=[("", 17), ("f", 1)], functions=twice)
    assert any("twice" in note for note in zs.audit(write(tmp_path, made), "torch").notes)
    node = helper.make_node("Transpose", ["a"], ["b"])
    node.attribute.add(name="perm", ref_attr_name="nowhere", type=7)
    made = model(
        [call("F", "x", "y")], opsets=[("", 17), ("f", 1)], functions=[function("F", [node])]
    )
    made.functions[0].attribute.append("nowhere")
    audited(tmp_path, made)


# Inference apart.


STRANGE = {
    "vector of 2^40": model([add()], [value("x", [2**40], INT64)]),
    "expand to 2^31 axes": model(
        [helper.make_node("Expand", ["x", "s"], ["y"])],
        [value("x", [1, 3]), value("s", [2**31], INT64)],
    ),
    "range to 2^40": model(
        [helper.make_node("Range", ["a", "b", "c"], ["y"])],
        initializer=[
            helper.make_tensor(n, INT64, [], [v]) for n, v in zip("abc", (0, 2**40, 1), strict=True)
        ],
    ),
    "split in 2^31": model([helper.make_node("Split", ["x"], ["y"], num_outputs=2**31)]),
}


@pytest.mark.parametrize("name", few(2, STRANGE))
def test_memory_of_inference_is_limited(tmp_path: Path, name: str) -> None:
    path = write(tmp_path, STRANGE[name])
    answered(audit(path, "--full"))


@pytest.mark.parametrize("op", ["Concat", "Tile"])
def test_vectors_that_double_are_not_followed(tmp_path: Path, op: str) -> None:
    """onnx's inference with its propagation of numbers lists 2^30 of them."""
    chain = [
        helper.make_node(
            op,
            [f"t{k}" if k else "x"] * 2 if op == "Concat" else [f"t{k}" if k else "x", "r"],
            [f"t{k + 1}"],
            **({"axis": 0} if op == "Concat" else {}),
        )
        for k in range(60)
    ]
    ends = [
        helper.make_node("Concat", [f"t{k}" for k in range(30, 61)], ["c"], axis=0),
        add("c", "x", "y"),
    ]
    twice = helper.make_tensor("r", INT64, [1], [2])
    path = write(tmp_path, model([*chain, *ends], [value("x", [2], INT64)], initializer=[twice]))
    answer = audit(path)
    answered(answer)
    assert "inference stopped" not in answer.out + answer.err


def test_examples_are_not_reported_as_malformed() -> None:
    for path in sorted(EXAMPLES.rglob("*.onnx")):
        loaded = onnx.load(path)
        assert not strange(loaded), path
        assert not any("malformed" in note for note in read_onnx(path).notes), path
        assert len(list(nodes_of(loaded.graph.node))) >= len(loaded.graph.node)


def test_inference_in_another_process_gives_the_same_shapes() -> None:
    loaded = onnx.load(EXAMPLES / "tiny_vision.onnx")
    expected = onnx.shape_inference.infer_shapes(loaded)
    assert infer_apart(loaded).SerializeToString() == expected.SerializeToString()


_INFER_UNTYPED = """
import sys
import onnx.shape_inference
from onnx import helper
schemas = onnx.defs.get_all_schemas_with_history()
values = {"INT": 1, "INTS": [1], "FLOAT": 1.0, "FLOATS": [1.0], "STRING": "a", "STRINGS": ["a"]}
values["TENSOR"] = helper.make_tensor("t", 1, [1], [1.0])
schemas.sort(key=lambda s: (s.domain, s.name, s.since_version))
for place in range(int(sys.argv[1]), len(schemas)):
    schema = schemas[place]
    print(place, schema.name, flush=True)
    node = helper.make_node(schema.name, ["x"] * schema.min_input, ["y"], domain=schema.domain)
    for attribute in schema.attributes.values():
        if attribute.required and attribute.type.name in values:
            value = values[attribute.type.name]
            node.attribute.append(helper.make_attribute(attribute.name, value))
    graph = helper.make_graph([node], "g", [], [])
    versions = [helper.make_opsetid(schema.domain, schema.since_version)]
    try:
        onnx.shape_inference.infer_shapes(helper.make_model(graph, opset_imports=versions))
    except Exception:  # refused: only a process that ends is looked for
        pass
"""


def test_ops_that_end_the_inference_of_unknown_types_run_apart() -> None:
    start, crashed = 0, set()
    while True:
        command = [sys.executable, "-I", "-c", _INFER_UNTYPED, str(start)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        if done.returncode >= 0:
            assert not done.returncode, done.stderr
            break
        place, name = done.stdout.splitlines()[-1].split()
        crashed.add(name)
        start = int(place) + 1
    assert start < len(onnx.defs.get_all_schemas_with_history())
    for name in sorted(crashed):
        assert strange(model([helper.make_node(name, ["x"], ["y"])])), name


def test_an_op_that_ends_inference_is_a_note(tmp_path: Path) -> None:
    nodes = [helper.make_node("RegexFullMatch", ["lost"], ["z"], pattern="a"), add("x", "x")]
    report = zs.audit(write(tmp_path, model(nodes, opsets=[("", 20)])), "torch")
    assert any("inference stopped" in note for note in report.notes)
    assert report.findings[-1].verdict == "same"


def test_malformed_node_does_not_hide_the_others(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("LSTM", ["x"], ["z"], name="short"),
        helper.make_node("Transpose", ["x"], ["t"]),
        add("t", "t"),
    ]
    report = zs.audit(write(tmp_path, model(nodes, opsets=[("", 18)])), "torch")
    assert any("'short' is malformed: 1 inputs" in note for note in report.notes)
    assert report.findings[-1].operands[0] == ("t", (3, 2))


@pytest.mark.parametrize(
    "node",
    [
        helper.make_node("Pad", ["x"], []),
        helper.make_node("Transpose", ["x"], ["y"], perm="no"),
        helper.make_node("QuantizeLinear", ["x"], ["y"]),
        helper.make_node("MatMul", ["x"], ["y"]),
        helper.make_node("Clip", ["x"], ["y"], min=1.0, max="no"),
        helper.make_node("Add", [], ["y"]),
    ],
    ids=lambda node: node.op_type,
)
@pytest.mark.parametrize("version", [1, 6, 18])
def test_malformed_node_is_an_op_that_nobody_knows(
    node: onnx.NodeProto, version: int, tmp_path: Path
) -> None:
    """Nothing that is known of its op holds for it; no function may ask for what it lacks."""
    path = write(tmp_path, model([node, add("x", "x", "z")], opsets=[("", version)]))
    for target in ("litert-gpu", "ncnn", "mnn", "paddle", "torch"):
        zs.audit(path, target)
        zs.port(path, target, tmp_path / "ported.onnx")
    zs.shapes(path)
    graph = read_onnx(path)
    with suppress(zs.ZerostrideError):
        execute(graph, random_inputs(graph, 0))


def test_op_of_another_domain_is_not_taken_for_onnxs(tmp_path: Path) -> None:
    """A custom Transpose may do anything with axes."""
    moved = helper.make_node("Transpose", ["x"], ["t"], perm=[1, 0], domain="my.ops")
    (node, *_) = read_onnx(write(tmp_path, model([moved], opsets=[("", 18), ("my.ops", 1)]))).nodes
    assert node.onnx_op == ""
    before, after = Value("x", (1, 3)), Value("t", (1, 3))
    assert new_axis(node, before, after, 0) == 0


def test_crashed_child_is_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "no-python"))
    report = zs.audit(write(tmp_path, STRANGE["split in 2^31"]), "torch")
    assert any("could not be started apart" in note for note in report.notes)
