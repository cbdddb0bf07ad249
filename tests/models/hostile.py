"""Makes hostile ONNX models, and audits them here or in a child process under limits."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import onnx
import pytest
from campaigns.models.paddle_writer import varint
from onnx import TensorProto, helper

import warm
import zerostride as zs
from zerostride.models.formats.onnx.reader import read_onnx
from zerostride.models.ir.graph import Graph
from zerostride.report import text

MEMORY = 1 << 30
#: Calls of functions; these files take fewer than 50,000.
CALLS = 200_000

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


def audit(path: Path, *options: str, target: str = "ncnn") -> warm.Answer:
    """The command line's audit of a file, under limits of memory and of calls."""
    words = ["audit", path, "--target", target, *options]
    done = warm.run(words, memory=MEMORY, calls=CALLS)
    return warm.Answer(done.returncode, done.stdout, done.stderr)


def value(name: str, shape: Sequence[Any] | None, kind: int = FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def add(a: str = "x", b: str = "x", out: str = "y", **more: Any) -> onnx.NodeProto:
    return helper.make_node("Add", [a, b], [out], **more)


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto] = (),
    opsets: Sequence[tuple[str, int]] = (("", 17),),
    functions: Sequence[onnx.FunctionProto] = (),
    **graph: Any,
) -> onnx.ModelProto:
    """A model of these nodes; x is an input of shape (2, 3) unless inputs are given."""
    made = helper.make_graph(
        list(nodes), "g", list(inputs) or [value("x", [2, 3])], [value("y", None)], **graph
    )
    return helper.make_model(
        made,
        opset_imports=[helper.make_opsetid(*opset) for opset in opsets],
        functions=list(functions),
    )


def function(name: str, nodes: Sequence[onnx.NodeProto]) -> onnx.FunctionProto:
    """A function of domain `f` from a to b."""
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("f", 1)]
    return helper.make_function("f", name, ["a"], ["b"], list(nodes), opsets)


def call(name: str, a: str = "a", b: str = "b") -> onnx.NodeProto:
    return helper.make_node(name, [a], [b], domain="f")


def nested(depth: int) -> bytes:
    """If in If in If, as bytes: protobuf itself refuses to build them this deep."""

    def field(number: int, data: bytes) -> bytes:
        return bytes([number << 3 | 2]) + varint(len(data)) + data

    body = add().SerializeToString()
    for _ in range(depth):
        graph = field(1, body) + field(2, b"body")
        attribute = field(1, b"then_branch") + b"\x32" + varint(len(graph)) + graph
        attribute += b"\xa0\x01\x05"  # type GRAPH
        body = field(1, b"c") + field(2, b"y") + field(4, b"If") + field(5, attribute)
    graph = field(1, body) + field(2, b"g")
    return b"\x08\x08" + b"\x3a" + varint(len(graph)) + graph + field(8, b"\x0a\x00\x10\x11")


# What must come of a file.


def one_line(answer: warm.Answer, path: Path) -> None:
    """The file was refused: status 2, and one line that names it."""
    assert answer.status == 2
    assert answer.out == ""
    assert len(answer.err.splitlines()) == 1
    assert str(path) in answer.err
    assert "internal error" not in answer.err
    assert answer.err[:-1].isprintable()


def answered(answer: warm.Answer) -> None:
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
