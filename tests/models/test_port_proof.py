"""Ports of models are proven or not written; files and options."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import ir_models
import numpy as np
import onnx
import pytest
import small
from onnx import numpy_helper
from ported import by, model_of, one, ported

import zerostride as zs
from zerostride.models.ir.rewrite import SELF, Earlier, Input, RewriteStep
from zerostride.models.port import passes, program, replay, run, search

pytestmark = pytest.mark.filterwarnings("ignore::zerostride.EngineVersionWarning")


# Proof: what is wrong is found, and nothing is written.


def _wrong_pass(monkeypatch: pytest.MonkeyPatch, steps: tuple[RewriteStep, ...]) -> None:
    row = passes.Pass(
        "wrong", "a mistake", lambda *_: True, lambda *_: iter([steps]), lambda *_: True
    )
    monkeypatch.setattr(search, "PASSES", (row,))


COLUMN = (RewriteStep("unsqueeze", (Input(1),), axes=(1,)), SELF(Input(0), Earlier(0)))


def _refusing(folder: Path, words: str) -> None:
    file, goal = folder / "model.onnx", folder / "ported.onnx"
    c = np.arange(5, dtype=np.float32)
    file.write_bytes(one("Add", {"x": (5, 5)}, {"c": c}).SerializeToString())
    goal.write_text("what was there")
    with pytest.raises(zs.ModelError, match=words):
        zs.port(file, "ncnn", goal, via="none")
    assert goal.read_text() == "what was there"
    assert sorted(os.listdir(folder)) == ["model.onnx", "ported.onnx"]


def test_planning_drops_a_rewrite_that_differs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _wrong_pass(monkeypatch, COLUMN)
    report = ported(tmp_path, one("Add", {"x": (5, 5)}, {"c": (5,)}), "ncnn", via="none")
    assert report.changes == ()
    assert not report.ok


def test_computing_finds_errors_that_planning_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _wrong_pass(monkeypatch, COLUMN)
    monkeypatch.setattr(program, "_check_meaning", lambda *_: None)
    _refusing(tmp_path, "'site'.*another result")


def test_written_file_is_computed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _wrong_pass(monkeypatch, COLUMN)
    monkeypatch.setattr(program, "_check_meaning", lambda *_: None)
    monkeypatch.setattr(search, "compute", lambda *_: 25)
    _refusing(tmp_path, "'site'.*computes something else")


def test_constants_of_the_written_file_are_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from zerostride.models.formats.onnx import external_files as onnx_files

    whole = onnx_files._bytes

    def other(model: Any, path: Path) -> bytes:
        model.graph.initializer[0].raw_data = bytes(20)
        return whole(model, path)

    monkeypatch.setattr(onnx_files, "_bytes", other)
    _refusing(tmp_path, "other numbers|something else")


def test_written_file_is_audited_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from zerostride.models.formats.onnx import editor as onnx_editor

    def nothing(self: Any, task: Any, constants: Any) -> None:
        self.model.graph.initializer[0].dims[:] = [5]

    monkeypatch.setattr(onnx_editor.OnnxEditor, "_say", nothing)
    _refusing(tmp_path, "after writing.*different")


def test_lost_node_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from zerostride.models.formats.onnx import editor as onnx_editor

    def renamed(self: Any, task: Any, constants: Any) -> None:
        self.model.graph.node[0].output[0] = "other"

    monkeypatch.setattr(onnx_editor.OnnxEditor, "_say", renamed)
    _refusing(tmp_path, "not found again")


def test_pass_that_breaks_its_promise_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = passes.Pass("liar", "", lambda *_: True, lambda *_: iter([COLUMN]), lambda *_: False)
    monkeypatch.setattr(search, "PASSES", (row,))
    _refusing(tmp_path, "'site'.*promise")


def test_editor_that_refuses_a_rewrite_gets_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from zerostride.models.formats.onnx import editor as onnx_editor

    def choosy(self: Any, task: Any, constants: Any) -> None:
        if task.rewrite.by == "constants":
            raise zs.ModelError("no constants today")
        return whole(self, task, constants)

    whole = onnx_editor.OnnxEditor._say
    monkeypatch.setattr(onnx_editor.OnnxEditor, "_say", choosy)
    nodes = [small.node("Add", "x c", "t", name="a"), small.node("Mul", "t v", name="b")]
    model = model_of(nodes, {"x": (5, 5), "v": (5,)}, {"c": (5,)})
    report = ported(tmp_path, model, "ncnn", via="none")
    assert by(report) == ["operands", "operands"] or by(report) == ["swap", "operands"]
    assert report.ok


# Files.


def test_full_disk_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    _refusing(tmp_path, "No space left")


def test_model_itself_may_be_the_output(tmp_path: Path) -> None:
    file = tmp_path / "model.onnx"
    file.write_bytes(one("Add", {"x": (5, 5)}, {"c": (5,)}).SerializeToString())
    file.chmod(0o640)
    link = tmp_path / "link.onnx"
    link.symlink_to(file)
    report = zs.port(link, "ncnn", link, via="none")
    assert report.ok
    assert link.is_symlink()
    assert file.stat().st_mode & 0o777 == 0o640
    assert zs.audit(file, "ncnn", via="none").ok
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
def test_invalid_output_places_are_refused(tmp_path: Path, name: str, words: str) -> None:
    file = tmp_path / "model.onnx"
    file.write_bytes(one("Add", {"x": (5, 5)}, {"c": (5,)}).SerializeToString())
    (tmp_path / "folder.onnx").mkdir()
    os.mkfifo(tmp_path / "pipe.onnx")
    with pytest.raises(zs.ModelError, match=words):
        zs.port(file, "ncnn", f"{tmp_path}/{name}", via="none")
    with pytest.raises(zs.ModelError, match="output"):
        zs.port(file, "ncnn", via="none")


def _with_data(folder: Path) -> Path:
    file = folder / "model.onnx"
    model = one("Add", {"x": (5, 5)}, {"c": np.arange(5, dtype=np.float32)})
    onnx.save(model, file, save_as_external_data=True, location="w.bin", size_threshold=0)
    return file


def test_external_data_is_copied(tmp_path: Path) -> None:
    file = _with_data(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    assert zs.port(file, "ncnn", other / "o.onnx", via="none").ok
    assert sorted(os.listdir(other)) == ["o.onnx", "w.bin"]
    (tensor,) = onnx.load(other / "o.onnx").graph.initializer
    assert numpy_helper.to_array(tensor).tolist() == [[0, 1, 2, 3, 4]]
    assert (other / "w.bin").stat().st_ino != (tmp_path / "w.bin").stat().st_ino
    assert zs.port(file, "ncnn", file, via="none").ok
    assert sorted(os.listdir(tmp_path)) == ["model.onnx", "other", "w.bin"]


def test_missing_data_stays_missing(tmp_path: Path) -> None:
    file = _with_data(tmp_path)
    (tmp_path / "w.bin").unlink()
    report = zs.port(file, "ncnn", tmp_path / "o.onnx", via="none")
    assert report.ok
    (model,) = onnx.load(tmp_path / "o.onnx", load_external_data=False).graph.initializer
    assert tuple(model.dims) == (1, 5)


def test_external_data_never_overwrites_a_file(tmp_path: Path) -> None:
    file = _with_data(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    (other / "w.bin").write_text("mine")
    with pytest.raises(zs.ModelError, match="empty folder"):
        zs.port(file, "ncnn", other / "o.onnx", via="none")
    assert sorted(os.listdir(other)) == ["w.bin"]
    assert (other / "w.bin").read_text() == "mine"


def test_external_data_is_removed_after_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = _with_data(tmp_path)
    other = tmp_path / "other"
    other.mkdir()

    def wrong(*_: Any) -> None:
        raise zs.ModelError("a check failed")

    monkeypatch.setattr(run, "check_findings", wrong)
    with pytest.raises(zs.ModelError, match="a check failed"):
        zs.port(file, "ncnn", other / "o.onnx", via="none")
    assert os.listdir(other) == []


# What is asked, and how it is answered.


def test_dry_run_writes_nothing_and_reports_the_same(tmp_path: Path) -> None:
    file = tmp_path / "model.onnx"
    nodes = [small.node("Add", "x c", "t", name="a"), small.node("Mul", "t v", name="b")]
    model = model_of(nodes, {"x": (5, 5), "v": (5,)}, {"c": (5,)})
    file.write_bytes(model.SerializeToString())
    dry = zs.port(file, "ncnn", dry_run=True, via="none")
    assert os.listdir(tmp_path) == ["model.onnx"]
    assert dry.output is None
    assert dry.ok
    real = zs.port(file, "ncnn", tmp_path / "o.onnx", via="none")
    assert [(c.node, c.by, c.words) for c in dry.changes] == [
        (c.node, c.by, c.words) for c in real.changes
    ]
    assert [f.verdict for f in dry.before] == [f.verdict for f in real.before]
    assert json.loads(dry.to_json())["changes"]
    assert "nothing written" in str(dry)
    assert "<html" in real.to_html().lower()


def test_unknown_engines_and_converters_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "model.onnx"
    file.write_bytes(one("Add", {"x": (5, 5)}, {"c": (5,)}).SerializeToString())
    with pytest.raises(zs.BroadcastError, match="no engine"):
        zs.port(file, "nothing", tmp_path / "o.onnx")
    with pytest.raises(zs.ZerostrideError, match="pnnx"):
        zs.port(file, "torch", tmp_path / "o.onnx", via="pnnx")
    with pytest.raises(zs.ZerostrideError, match="no sizes"):
        zs.port(file, "torch", tmp_path / "o.onnx", facts=["N > 3", "N < 2"])


@pytest.mark.parametrize("dry_run", [False, True])
def test_progress_reaches_its_total(tmp_path: Path, dry_run: bool) -> None:
    file = tmp_path / "model.onnx"
    nodes = [small.node("Add", "x c", "t", name="a"), small.node("Mul", "t v", name="b")]
    model = model_of(nodes, {"x": (5, 5), "v": (5,)}, {"c": (5,)})
    file.write_bytes(model.SerializeToString())
    seen: list[tuple[int, int]] = []
    goal = None if dry_run else tmp_path / "o.onnx"
    options: dict[str, Any] = {"via": "none", "dry_run": dry_run}
    zs.port(file, "ncnn", goal, progress=lambda *counts: seen.append(counts), **options)
    assert seen == sorted(seen)
    assert {total for _, total in seen} == {4 if dry_run else 6}
    assert seen[-1][0] == seen[-1][1]


def test_modules_of_the_proof_exist() -> None:
    """Names that the tests above replace are used by the code that they test."""
    assert search.compute.__module__.endswith("port.numbers")
    assert run.check_findings is replay.check_findings
    assert callable(program._check_meaning)


def test_product_with_a_transposed_factor_is_recomputed(tmp_path: Path) -> None:
    ir = ir_models.Ir()
    x, factor = ir.parameter("x", ("?", 3, 4)), ir.constant("w", np.ones((5, 4), np.float32))
    data = 'transpose_a="false" transpose_b="true"'
    ir.result(ir.layer("y", "MatMul", [x, factor], ("?", 3, 5), data))
    report = zs.port(ir.save(tmp_path / "m.xml"), "tensorrt", tmp_path / "out.xml")
    (change,) = report.changes
    assert change.elements
    assert report.ok
