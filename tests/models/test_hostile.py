"""Hostile, broken and odd ONNX files: one clear line that names the file, or an answer.

What could hang or fill memory is audited through the command line, in a child process with 10 s and
a GiB of memory.
"""

from __future__ import annotations

import json
import math
import os
import re
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="the files are ONNX files")
from hostile import (  # noqa: E402
    FLOAT,
    INT64,
    Answer,
    add,
    audit,
    call,
    function,
    model,
    nested,
    value,
)
from onnx import helper, numpy_helper  # noqa: E402

import zerostride as zs  # noqa: E402
from zerostride.engines import find_engine  # noqa: E402
from zerostride.models.audit import audit_graph  # noqa: E402
from zerostride.models.graph import Graph  # noqa: E402
from zerostride.models.isolated import infer_apart  # noqa: E402
from zerostride.models.onnx import read_onnx  # noqa: E402
from zerostride.models.soundness import nodes_of, strange  # noqa: E402
from zerostride.report import text  # noqa: E402

EXAMPLES = Path(__file__).parents[2] / "examples"


def one_line(answer: Answer, path: Path) -> None:
    """The file was refused: status 2, and one line that names it."""
    assert answer.status == 2
    assert answer.out == ""
    assert len(answer.err.splitlines()) == 1
    assert str(path) in answer.err
    assert "internal error" not in answer.err
    assert answer.err[:-1].isprintable()


def answered(answer: Answer) -> None:
    """The file was audited, whatever was found."""
    assert answer.status in (0, 1)
    assert answer.err == ""
    assert all(line.isprintable() for line in answer.out.splitlines())


def write(folder: Path, data: bytes | onnx.ModelProto, name: str = "m.onnx") -> Path:
    path = folder / name
    path.write_bytes(data if isinstance(data, bytes) else data.SerializeToString())
    return path


def said(report: zs.Report) -> str:
    """A report as every reader gets it; nothing in it may act on a terminal."""
    words = str(report) + "\n" + text(report, full=True)
    assert all(line.isprintable() for line in words.splitlines())
    json.loads(report.to_json())
    assert report.to_html().startswith("<!doctype html>")
    return words


def audited(folder: Path, data: bytes | onnx.ModelProto, target: str = "ncnn") -> str:
    return said(zs.audit(write(folder, data), target))


def read(folder: Path, data: bytes | onnx.ModelProto) -> Graph:
    return read_onnx(write(folder, data))


def refused(folder: Path, data: bytes | onnx.ModelProto) -> str:
    """The line with which a file is refused."""
    path = write(folder, data)
    with pytest.raises(zs.ModelError) as error:
        read_onnx(path)
    line = str(error.value)
    assert line.startswith(f"{path}: ")
    assert "\n" not in line
    return line


# Files that are no model.


def test_a_file_cut_anywhere_is_refused_or_read(tmp_path: Path) -> None:
    data = (EXAMPLES / "functions_and_subgraphs.onnx").read_bytes()
    whole = len(read(tmp_path, data).nodes)
    refusals = 0
    for end in range(0, len(data), 7):
        try:
            nodes = read(tmp_path, data[:end]).nodes
        except zs.ModelError:
            refusals += 1
            refused(tmp_path, data[:end])
        else:
            assert len(nodes) <= whole
    assert refusals > 50


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x00",
        b"just some text, and more of it\n" * 20,
        b"\x89PNG\r\n\x1a\n",
        b"PK\x03\x04" + b"\x00" * 60,
        b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n",
        b"\x80\x02}q\x00.",
        b"\xff" * 1000,
        os.urandom(1000),
    ],
    ids=["empty", "nul", "text", "png", "zip", "lfs pointer", "pickle", "ff", "noise"],
)
def test_another_format_is_one_line(tmp_path: Path, data: bytes) -> None:
    refused(tmp_path, data)


def test_what_is_no_file_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "folder.onnx").mkdir()
    (tmp_path / "file").write_text("")
    paths = [
        tmp_path / "folder.onnx",
        tmp_path / "missing.onnx",
        tmp_path / "file" / "m.onnx",
        tmp_path / ("n" * 300 + ".onnx"),
        Path(os.devnull),
    ]
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe.onnx")
        paths.append(tmp_path / "pipe.onnx")
    for path in paths:
        with pytest.raises(zs.ModelError, match="^" + re.escape(str(path))):
            read_onnx(path)
    one_line(audit(paths[0]), paths[0])
    with pytest.raises(zs.ModelError, match="null"):
        read_onnx("a\x00b.onnx")


def test_a_file_beyond_what_protobuf_holds_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "large.onnx"
    with path.open("wb") as handle:
        handle.truncate(3 << 30)  # sparse: takes no room
    began = time.monotonic()
    with pytest.raises(zs.ModelError, match="2 GiB"):
        read_onnx(path)
    assert time.monotonic() - began < 1


# Sizes.


@pytest.mark.parametrize(
    "sizes",
    [
        [3 << 30],
        [3 << 30, 3 << 30, 3 << 30],
        [2**63 - 1],
        [2**63 - 1, 2**63 - 1],
        [-1, 3],
        [-(2**63)],
        [0, 0],
        [1] * 65,
        [2] * 65,
        [None, 3],
        ["n", "m"],
        ["n\x1b[31m\n"],
    ],
    ids=str,
)
def test_any_sizes_are_answered(tmp_path: Path, sizes: list[Any]) -> None:
    made = model([add("x", "b")], [value("x", sizes), value("b", sizes[-1:])])
    graph = read(tmp_path, made)
    for target in ("ncnn", "torch", "openvino"):
        report = audit_graph(graph, find_engine(target))
        assert len(report.findings) == 1
        said(report)


def test_a_product_beyond_64_bits_is_a_finding(tmp_path: Path) -> None:
    made = model([add("x", "b")], [value("x", [2**40, 1]), value("b", [1, 2**40])])
    assert "invalid_source" in audited(tmp_path, made, "torch")


def test_an_unknown_shape_is_an_unknown_finding(tmp_path: Path) -> None:
    made = model([add("x", "b")], [value("x", None), value("b", [3])])
    (finding,) = zs.audit(write(tmp_path, made), "ncnn").findings
    assert (finding.verdict, finding.reason) == ("unknown", "unknown_shape")


# Data.


def external(location: str, name: str = "w") -> onnx.TensorProto:
    tensor = onnx.TensorProto(name=name, data_type=FLOAT, dims=[3], data_location=1)
    for key, entry in (("location", location), ("offset", "0"), ("length", "12")):
        tensor.external_data.add(key=key, value=entry)
    return tensor


OUTSIDE = ["../../etc/passwd", "/etc/passwd", "a/../../b", "", "..", "\x00", "a\nb"]


@pytest.mark.parametrize("location", ["missing.bin", *OUTSIDE], ids=repr)
def test_missing_and_escaping_data_is_named_and_not_read(tmp_path: Path, location: str) -> None:
    path = write(tmp_path, model([add("x", "w")], initializer=[external(location)]))
    graph = read_onnx(path)
    (note,) = graph.notes
    assert "'w'" in note
    assert ("outside" in note) == (location in OUTSIDE[:5])
    # The shape stands in the model itself, so that the broadcast can be judged all the same.
    assert said(zs.audit(path, "torch")).count("same_plan") == 1


def test_data_is_looked_for_but_never_opened(tmp_path: Path) -> None:
    # A link is followed: caches keep models as links to their files.
    (tmp_path / "w.bin").symlink_to(tmp_path / "elsewhere")
    path = write(tmp_path, model([add("x", "w")], initializer=[external("w.bin")]))
    assert "missing" in read_onnx(path).notes[0]
    with (tmp_path / "elsewhere").open("wb") as handle:
        handle.truncate(1 << 40)  # sparse: whoever reads it runs out of memory
    assert read_onnx(path).notes == ()


def test_data_that_is_there_is_no_finding(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(b"x" * 12)
    path = write(tmp_path, model([add("x", "w")], initializer=[external("w.bin")]))
    assert zs.audit(path, "torch").ok


@pytest.mark.parametrize("count", [0, 1, 2, 4, 100])
def test_a_constant_with_too_little_or_too_much_data(tmp_path: Path, count: int) -> None:
    tensor = onnx.TensorProto(name="s", data_type=INT64, dims=[3], int64_data=range(count))
    made = model(
        [helper.make_node("Expand", ["x", "s"], ["y"])],
        [value("x", [1, 3])],
        initializer=[tensor],
    )
    assert "1 broadcast" in audited(tmp_path, made)
    raw = onnx.TensorProto(name="s", data_type=INT64, dims=[3], raw_data=b"x" * count)
    made.graph.initializer[0].CopyFrom(raw)
    assert "1 broadcast" in audited(tmp_path, made)


def test_a_constant_that_claims_a_huge_shape(tmp_path: Path) -> None:
    for dims in ([2**60], [2**62, 2**62], [-1], [2**31, 2**31]):
        tensor = onnx.TensorProto(name="s", data_type=INT64, dims=dims, int64_data=[1])
        made = model([add("x", "s")], initializer=[tensor])
        assert "1 broadcast" in audited(tmp_path, made)


@pytest.mark.parametrize("kind", [0, 8, 14, 15, 16, 17, 23, 99, -1, 2**31 - 1])
def test_odd_element_types(tmp_path: Path, kind: int) -> None:
    made = model(
        [add("x", "s")],
        [value("x", [2, 3], max(kind, 0))],
        initializer=[onnx.TensorProto(name="s", data_type=kind, dims=[3], int64_data=[1, 2, 3])],
    )
    assert len(zs.audit(write(tmp_path, made), "torch").findings) == 1


def test_a_sparse_constant_has_a_shape(tmp_path: Path) -> None:
    values = numpy_helper.from_array(np.array([1.0], np.float32), "s")
    indices = numpy_helper.from_array(np.array([1]), "i")
    sparse = helper.make_sparse_tensor(values, indices, [3])
    made = model([add("x", "s")], sparse_initializer=[sparse])
    (finding,) = zs.audit(write(tmp_path, made), "torch").findings
    assert finding.operands[1] == ("s", (3,))


def test_attributes_that_are_no_numbers(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Clip", ["x"], ["a"], min=math.nan, max=-math.inf),
        add("a", "a", "b", axis=math.nan),
        helper.make_node("Gemm", ["x", "x"], ["y"], alpha=math.inf, transB=2**62),
    ]
    audited(tmp_path, model(nodes))


# Names.


def test_control_characters_do_not_reach_a_terminal(tmp_path: Path) -> None:
    name = "\x1b[31mred\x07\nnewline\r\u202e\x9b"
    nodes = [
        add(name, "b", "c", name=name),
        helper.make_node("Frob" + name, [name], ["y"], domain=name, name=name),
    ]
    made = model(
        nodes,
        [value(name, [5, 5]), value("b", [5])],
        [("", 17), (name, 1)],
        initializer=[external(name, name)],
    )
    path = write(tmp_path, made)
    for options in (["--details"], ["--summary"], ["--full"]):
        answered(audit(path, *options))
    data = json.loads(audit(path, "--json").out)
    assert data["findings"][0]["node"] == name, "a program gets the name as it is"
    page = zs.audit(path, "ncnn").to_html()
    assert "\x1b" not in page


def test_a_file_name_with_control_characters(tmp_path: Path) -> None:
    path = tmp_path / "\x1b[31m\n[red]x[nope].onnx"
    path.write_bytes(b"nonsense")
    answer = audit(path)
    assert (answer.status, answer.out) == (2, "")
    assert len(answer.err.splitlines()) == 1
    assert answer.err[:-1].isprintable()
    path.write_bytes(model([add()]).SerializeToString())
    answered(audit(path))


def test_a_name_of_a_megabyte_is_cut(tmp_path: Path) -> None:
    name = "n" * (1 << 20)
    made = model([add(name, "b", name + "c", name=name)], [value(name, [5, 5]), value("b", [5])])
    for options in ([], ["--summary"]):
        answer = audit(write(tmp_path, made), *options)
        answered(answer)
        assert len(answer.out) < 20_000


def test_names_that_are_not_utf8(tmp_path: Path) -> None:
    made = model([add("x_x", "x_x", "y_y", name="n_n")], [value("x_x", [2, 3])])
    data = made.SerializeToString().replace(b"_", b"\xff")
    path = write(tmp_path, data)
    try:
        report = zs.audit(path, "torch")
    except zs.ModelError as error:  # some versions of protobuf do not hand out such a text
        assert "UTF-8" in str(error)  # noqa: PT017 - either is right
    else:
        assert report.findings[0].node == r"n\xffn"
        said(report)
        odd = made.SerializeToString().replace(b"Add", b"\xff\xfe\xfd")
        assert zs.audit(write(tmp_path, odd), "torch").findings == ()


def test_a_counter_example_of_infinity_is_json(tmp_path: Path) -> None:
    made = model(
        [helper.make_node("Div", ["x", "b"], ["y"])], [value("x", [5, 5]), value("b", [5])]
    )
    report = zs.audit(write(tmp_path, made), "ncnn")
    data = json.loads(report.to_json(), parse_constant=lambda name: pytest.fail(name))
    assert data["findings"][0]["witness"]["target"] == "Infinity"


# Graphs.


def test_a_custom_domain_is_unknown(tmp_path: Path) -> None:
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
def test_a_broken_graph_is_answered(tmp_path: Path, name: str) -> None:
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
def test_a_version_that_is_none_is_refused(tmp_path: Path, opsets: list[tuple[str, int]]) -> None:
    assert "is no version" in refused(tmp_path, model([add()], opsets=opsets))


def test_a_version_of_the_future_or_none_at_all_is_answered(tmp_path: Path) -> None:
    future = model([add()], opsets=[("", 10**9)])
    assert len(zs.audit(write(tmp_path, future), "torch").findings) == 1
    none = model([add()], opsets=[("com.example", 1)])
    report = zs.audit(write(tmp_path, none), "torch")
    assert any("taken as 1" in note for note in report.notes)


def test_types_that_are_no_tensors(tmp_path: Path) -> None:
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


def test_declared_shapes_that_contradict_inference(tmp_path: Path) -> None:
    made = model([add("x", "x", "a"), add("a", "b")], value_info=[value("a", [7, 7, 7])])
    made.graph.input.append(value("b", [3]))
    audited(tmp_path, made)


# Depth and number.


@pytest.mark.parametrize("depth", [1, 10, 30])
def test_bodies_in_bodies_are_read(tmp_path: Path, depth: int) -> None:
    graph = read(tmp_path, nested(depth))
    assert len(graph.nodes) == depth + 1
    assert len(graph.nodes[-1].scope) == 2 * depth


@pytest.mark.parametrize("depth", [34, 200, 20_000])
def test_bodies_too_deep_are_refused(tmp_path: Path, depth: int) -> None:
    path = write(tmp_path, nested(depth))
    one_line(audit(path), path)


def test_time_is_linear_in_nodes_and_bodies(tmp_path: Path) -> None:
    def seconds(count: int) -> float:
        nodes = [add(f"v{k}", "b", f"v{k + 1}") for k in range(count)]
        path = write(tmp_path, model(nodes, [value("v0", [4, 5]), value("b", [5])]))
        began = time.process_time()
        report = zs.audit(path, "torch")
        assert len(report.findings) == count
        return time.process_time() - began

    seconds(500)  # what is done once
    small, large = seconds(1_000), seconds(10_000)
    assert large < 30 * small + 0.5


def test_many_bodies_over_many_names(tmp_path: Path) -> None:
    body = helper.make_graph([add("v1", "b", "r")], "body", [], [value("r", None)])
    nodes = [add(f"v{k}", "b", f"v{k + 1}") for k in range(10_000)]
    nodes += [
        helper.make_node("If", ["c"], [f"r{k}"], then_branch=body, else_branch=body)
        for k in range(500)
    ]
    inputs = [value("v0", [4, 5]), value("b", [5]), value("c", [], onnx.TensorProto.BOOL)]
    path = write(tmp_path, model(nodes, inputs))
    began = time.process_time()
    assert len(read_onnx(path).nodes) == 11_500
    assert time.process_time() - began < 10


# Functions.


def test_functions_that_call_themselves_are_not_inlined(tmp_path: Path) -> None:
    opsets = [("", 17), ("f", 1)]
    for functions in (
        [function("F", [call("F")])],
        [function("F", [call("G")]), function("G", [call("F")])],
        [function(f"F{k}", [call(f"F{(k + 1) % 2000}")]) for k in range(2000)],
    ):
        start = functions[0].name
        made = model([call(start, "x", "y")], opsets=opsets, functions=functions)
        assert "calls itself" in audited(tmp_path, made)


def test_a_long_chain_of_functions_is_inlined(tmp_path: Path) -> None:
    chain = [function(f"F{k}", [call(f"F{k + 1}")]) for k in range(100)]
    chain.append(function("F100", [add("a", "a", "b")]))
    made = model([call("F0", "x", "y")], opsets=[("", 17), ("f", 1)], functions=chain)
    report = zs.audit(write(tmp_path, made), "torch")
    assert [finding.op for finding in report.findings] == ["Add"]
    assert report.notes == ()


def test_functions_that_double_are_not_written_out(tmp_path: Path) -> None:
    doubling = [
        function(f"F{k}", [call(f"F{k + 1}", "a", "t"), call(f"F{k + 1}", "t", "b")])
        for k in range(60)
    ]
    doubling.append(function("F60", [add("a", "a", "b")]))
    made = model([call("F0", "x", "y")], opsets=[("", 17), ("f", 1)], functions=doubling)
    answer = audit(write(tmp_path, made))
    answered(answer)
    assert f"{2**60} nodes" in answer.out


def test_a_function_defined_twice_or_lacking_attributes(tmp_path: Path) -> None:
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


@pytest.mark.parametrize("name", STRANGE)
def test_inference_that_wants_all_memory_does_not_get_it(tmp_path: Path, name: str) -> None:
    path = write(tmp_path, STRANGE[name])
    answered(audit(path, "--full"))


def test_no_example_is_strange_or_malformed() -> None:
    for path in sorted(EXAMPLES.rglob("*.onnx")):
        loaded = onnx.load(path)
        assert not strange(loaded), path
        assert not any("malformed" in note for note in read_onnx(path).notes), path
        assert len(list(nodes_of(loaded.graph.node))) >= len(loaded.graph.node)


def test_inference_apart_finds_the_same_shapes() -> None:
    loaded = onnx.load(EXAMPLES / "tiny_vision.onnx")
    expected = onnx.shape_inference.infer_shapes(loaded, data_prop=True)
    assert infer_apart(loaded).SerializeToString() == expected.SerializeToString()


def test_a_malformed_node_does_not_hide_the_others(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("LSTM", ["x"], ["z"], name="short"),
        helper.make_node("Transpose", ["x"], ["t"]),
        add("t", "t"),
    ]
    report = zs.audit(write(tmp_path, model(nodes, opsets=[("", 18)])), "torch")
    assert any("'short' is malformed: 1 inputs" in note for note in report.notes)
    assert report.findings[-1].operands[0] == ("t", (3, 2))


def test_a_child_that_dies_is_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "no-python"))
    report = zs.audit(write(tmp_path, STRANGE["split in 2^31"]), "torch")
    assert any("could not be started apart" in note for note in report.notes)
