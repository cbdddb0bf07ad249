"""A port parses the bytes of a file once, and changed bytes again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ir_models
import ncnn_models
import numpy as np
import pytest
import small
from ported import model_of
from tflite_files import Model, of_one

import zerostride as zs
from zerostride.models.flow import resolved as resolving
from zerostride.models.formats.ncnn import text as ncnn_text
from zerostride.models.formats.onnx import reader as onnx_reader
from zerostride.models.formats.openvino import reader as openvino_reader
from zerostride.models.formats.tflite import reader as tflite_reader
from zerostride.models.ir.graph import Graph
from zerostride.models.ir.readings import once_per_file, once_per_graph, readings_kept
from zerostride.models.port import search


def onnx_file(folder: Path) -> Path:
    file = folder / "m.onnx"
    model = model_of([small.node("Add", "x c", name="a")], {"x": (2, 3, 4, 5)}, {"c": (3, 1, 1)})
    file.write_bytes(model.SerializeToString())
    return file


def ncnn_file(folder: Path) -> Path:
    lines = [*ncnn_models.inputs((2, 3), (3,)), "BinaryOp a 2 1 in0 in1 y 0=0"]
    return ncnn_models.write(folder, ncnn_models.param(*lines))


def openvino_file(folder: Path) -> Path:
    ir = ir_models.Ir()
    x, c = ir.parameter("x", (2, 3, 4, 5)), ir.constant("c", np.ones((3, 1, 1), np.float32))
    ir.result(ir.layer("a", "Add", [x, c], (2, 3, 4, 5)))
    return ir.save(folder / "m.xml")


def tflite_file(folder: Path) -> Path:
    return of_one("ADD", (2, 3, 4), (4,)).write(folder / "m.tflite")


def counted(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> Counter[str]:
    """Counts the calls of a function, by its name."""
    calls: Counter[str] = Counter()
    whole = getattr(owner, name)

    def call(*arguments: Any, **options: Any) -> Any:
        calls[name] += 1
        return whole(*arguments, **options)

    monkeypatch.setattr(owner, name, call)
    return calls


@pytest.mark.parametrize(
    ("write", "owner", "parser", "editors"),
    [
        # The reader and the editor of ONNX change their messages; a copy takes as long as parsing.
        (onnx_file, onnx_reader, "_bytes", 1),
        (ncnn_file, ncnn_text, "_Parser", 0),
        (openvino_file, openvino_reader, "parse", 0),
        (tflite_file, tflite_reader, "_TfliteReader", 0),
    ],
)
@pytest.mark.parametrize(("target", "files"), [("stablehlo", 2), ("itself", 1)])
def test_a_port_parses_each_file_once(
    write: Callable[[Path], Path],
    owner: Any,
    parser: str,
    editors: int,
    target: str,
    files: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = write(tmp_path)
    own = {".onnx": "onnxruntime", ".param": "ncnn", ".xml": "openvino", ".tflite": "litert"}
    target = own[file.suffix] if target == "itself" else target
    parses = counted(monkeypatch, owner, parser)
    flows = counted(monkeypatch, resolving, "flow")
    report = zs.port(file, target, tmp_path / f"out{file.suffix}")
    assert report.ok
    assert len(report.changes) == files - 1
    assert parses[parser] == files + editors
    assert flows["flow"] <= files


def test_changed_bytes_are_parsed_again(tmp_path: Path) -> None:
    calls: list[bytes] = []

    @once_per_file
    def read(file: Path, data: bytes) -> int:
        calls.append(data)
        if not data:
            raise ZeroDivisionError
        return len(calls)

    a, b, c = (tmp_path / name for name in "abc")
    assert read(a, b"1") != read(a, b"1")
    calls.clear()
    with readings_kept():
        assert read(a, b"1") == read(a, bytes([ord("1")])) == 1
        assert read(b, b"1") == read(b, b"1") == 2
        assert read(a, b"2") == read(a, b"2") == 3
        assert read(c, b"1") == 4  # b was read longest ago
        assert read(a, b"2") == 3
        assert read(b, b"1") == 5
        for _ in range(2):
            with pytest.raises(ZeroDivisionError):
                read(c, b"")
    assert read(a, b"2") == len(calls) == 8


def test_graphs_of_one_file_are_told_apart() -> None:
    calls: list[int] = []

    @once_per_file
    def read(file: Path, data: bytes) -> Graph:
        return Graph(str(file), "onnx", 1, (), ())

    @once_per_graph
    def work(graph: Graph, question: int) -> int:
        calls.append(question)
        return len(calls)

    with readings_kept():
        graph, other = read(Path("m"), b"1"), Graph("m", "onnx", 1, (), ())
        assert work(graph, 0) == work(graph, 0) == 1
        assert work(graph, 1) == 2
        assert work(other, 0) == work(other, 0) == 3
        assert work(read(Path("m"), b"2"), 0) == 4
        stranger = Graph("n", "onnx", 1, (), ())
        assert work(stranger, 0) != work(stranger, 0)
    assert work(graph, 0) != work(graph, 0)


def test_rewrites_are_applied_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The editor that a search asks holds the rewrites that it took."""
    file = openvino_file(tmp_path)
    opened = counted(monkeypatch, search, "_opened")
    report = zs.port(file, "stablehlo", tmp_path / "out.xml")
    assert report.changes
    assert opened["_opened"] == 1


def test_moves_are_not_tried_where_the_target_stretches_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = onnx_file(tmp_path)
    tried = counted(monkeypatch, search, "carry_out")
    report = zs.port(file, "stablehlo", dry_run=True)
    assert [change.by for change in report.changes] == ["expand"]
    assert tried["carry_out"] <= 2


def test_a_dry_run_asks_what_a_delegate_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A scalar that the delegate refuses is reshaped, unless it refuses the element type too."""
    opened = counted(monkeypatch, search, "_opened")
    for dtype, changes in (("float32", 1), ("int32", 0)):
        file = of_one("SUB", (2, 3), (), dtype=dtype).write(tmp_path / "m.tflite")
        for dry in (True, False):
            opened.clear()
            report = zs.port(file, "litert-gpu", tmp_path / "out.tflite", dry_run=dry)
            assert len(report.changes) == changes
            assert report.ok == bool(changes)
            assert opened["_opened"] == 1
            told = any("takes floats" in f.notes[-1] for f in report.findings if f.notes)
            assert told == (not changes)


def test_one_tensor_as_both_operands_becomes_two(tmp_path: Path) -> None:
    """The delegate refuses a maximum of one tensor, and takes one of two reshapes of it."""
    model = Model()
    for name in "xz":
        model.main.input(name, 1, 2, 4, 4, 3)
    for operands in ("x x", "x z", "z z"):
        model.main.op("MAXIMUM", operands, operands.replace(" ", ""))
    model.main.output("xx", "xz", "zz")
    report = zs.port(model.write(tmp_path / "m.tflite"), "litert-gpu", tmp_path / "out.tflite")
    assert report.ok
    assert len(report.changes) == 3
