"""Hostile and broken ONNX files: one clear line that names the file, or a report.

What could hang or fill memory is audited through the command line, in a child process with 10 s and
a GiB of memory.
"""

from __future__ import annotations

import json
import math
import os
import re
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="the files are ONNX files")
from hostile import (  # noqa: E402
    FLOAT,
    INT64,
    add,
    answered,
    audit,
    audited,
    model,
    one_line,
    read,
    refused,
    said,
    value,
    write,
)
from onnx import helper, numpy_helper  # noqa: E402

import zerostride as zs  # noqa: E402
from zerostride.engines import find_engine  # noqa: E402
from zerostride.models.audit.run import audit_graph  # noqa: E402
from zerostride.models.formats.onnx.reader import read_onnx  # noqa: E402

EXAMPLES = Path(__file__).parents[2] / "examples"


# Files that are no model.


def test_truncated_file_is_refused_or_read(tmp_path: Path) -> None:
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


def test_missing_or_irregular_file_is_one_line(tmp_path: Path) -> None:
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
        with pytest.raises(zs.ModelError, match="^" + re.escape(str(path))) as caught:
            read_onnx(path)
        assert str(caught.value).count(f"{path}: ") == 1
    one_line(audit(paths[0]), paths[0])
    with pytest.raises(zs.ModelError, match="null"):
        read_onnx("a\x00b.onnx")


def test_file_beyond_protobufs_limit_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "large.onnx"
    with path.open("wb") as handle:
        handle.truncate(3 << 30)  # sparse: takes no room
    tracemalloc.start()
    try:
        with pytest.raises(zs.ModelError, match="2 GiB"):
            read_onnx(path)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20  # its peak; no block of the file
    finally:
        tracemalloc.stop()


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
def test_any_sizes_give_a_report(tmp_path: Path, sizes: list[Any]) -> None:
    made = model([add("x", "b")], [value("x", sizes), value("b", sizes[-1:])])
    graph = read(tmp_path, made)
    for target in ("ncnn", "torch", "openvino"):
        report = audit_graph(graph, find_engine(target))
        assert len(report.findings) == 1
        said(report)


def test_product_beyond_64_bits_is_a_finding(tmp_path: Path) -> None:
    made = model([add("x", "b")], [value("x", [2**40, 1]), value("b", [1, 2**40])])
    assert "invalid_source" in audited(tmp_path, made, "torch")


def test_unknown_shape_is_an_unknown_finding(tmp_path: Path) -> None:
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
def test_missing_or_escaping_data_is_named_and_not_read(tmp_path: Path, location: str) -> None:
    path = write(tmp_path, model([add("x", "w")], initializer=[external(location)]))
    graph = read_onnx(path)
    (note,) = graph.notes
    assert "'w'" in note
    assert ("outside" in note) == (location in OUTSIDE[:5])
    # The shape stands in the model itself, so that the broadcast can be judged all the same.
    assert said(zs.audit(path, "torch")).count("same_plan") == 1


def test_external_data_is_looked_for_but_never_opened(tmp_path: Path) -> None:
    # A link is followed: caches keep models as links to their files.
    (tmp_path / "w.bin").symlink_to(tmp_path / "elsewhere")
    path = write(tmp_path, model([add("x", "w")], initializer=[external("w.bin")]))
    assert "missing" in read_onnx(path).notes[0]
    with (tmp_path / "elsewhere").open("wb") as handle:
        handle.truncate(1 << 40)  # sparse: whoever reads it runs out of memory
    assert read_onnx(path).notes == ()


def test_existing_external_data_is_no_finding(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(b"x" * 12)
    path = write(tmp_path, model([add("x", "w")], initializer=[external("w.bin")]))
    assert zs.audit(path, "torch").ok


@pytest.mark.parametrize("count", [0, 1, 2, 4, 100])
def test_constant_with_too_little_or_too_much_data_is_reported(tmp_path: Path, count: int) -> None:
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


def test_constant_that_claims_a_huge_shape_is_reported(tmp_path: Path) -> None:
    for dims in ([2**60], [2**62, 2**62], [-1], [2**31, 2**31]):
        tensor = onnx.TensorProto(name="s", data_type=INT64, dims=dims, int64_data=[1])
        made = model([add("x", "s")], initializer=[tensor])
        assert "1 broadcast" in audited(tmp_path, made)


@pytest.mark.parametrize("kind", [0, 8, 14, 15, 16, 17, 23, 99, -1, 2**31 - 1])
def test_unusual_element_types_are_read(tmp_path: Path, kind: int) -> None:
    made = model(
        [add("x", "s")],
        [value("x", [2, 3], max(kind, 0))],
        initializer=[onnx.TensorProto(name="s", data_type=kind, dims=[3], int64_data=[1, 2, 3])],
    )
    assert len(zs.audit(write(tmp_path, made), "torch").findings) == 1


def test_sparse_constant_has_a_shape(tmp_path: Path) -> None:
    values = numpy_helper.from_array(np.array([1.0], np.float32), "s")
    indices = numpy_helper.from_array(np.array([1]), "i")
    sparse = helper.make_sparse_tensor(values, indices, [3])
    made = model([add("x", "s")], sparse_initializer=[sparse])
    (finding,) = zs.audit(write(tmp_path, made), "torch").findings
    assert finding.operands[1] == ("s", (3,))


def test_non_numeric_attributes_are_reported(tmp_path: Path) -> None:
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


def test_control_characters_in_a_file_name_are_escaped(tmp_path: Path) -> None:
    path = tmp_path / "\x1b[31m\n[red]x[nope].onnx"
    path.write_bytes(b"nonsense")
    answer = audit(path)
    assert (answer.status, answer.out) == (2, "")
    assert len(answer.err.splitlines()) == 1
    assert answer.err[:-1].isprintable()
    path.write_bytes(model([add()]).SerializeToString())
    answered(audit(path))


def test_name_of_a_megabyte_is_cut(tmp_path: Path) -> None:
    name = "n" * (1 << 20)
    made = model([add(name, "b", name + "c", name=name)], [value(name, [5, 5]), value("b", [5])])
    for options in ([], ["--summary"]):
        answer = audit(write(tmp_path, made), *options)
        answered(answer)
        assert len(answer.out) < 20_000


def test_names_that_are_not_utf8_are_read(tmp_path: Path) -> None:
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


def test_infinite_counter_example_is_valid_json(tmp_path: Path) -> None:
    made = model(
        [helper.make_node("Div", ["x", "b"], ["y"])], [value("x", [5, 5]), value("b", [5])]
    )
    report = zs.audit(write(tmp_path, made), "ncnn", via="none")
    data = json.loads(report.to_json(), parse_constant=lambda name: pytest.fail(name))
    assert data["findings"][0]["witness"]["target"] == "Infinity"
