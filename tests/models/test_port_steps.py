"""The work of a port in steps; unchanged nodes cost nothing."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import ncnn_models
import pytest
import small
from ported import model_of

import zerostride as zs
from work import calls_of
from zerostride.models.audit import audited
from zerostride.models.audit import symbolic as symbolic_audit
from zerostride.models.audit import verdict as comparing
from zerostride.models.audit.judge import Judge
from zerostride.models.findings import Verdict
from zerostride.models.formats import ncnn as ncnn_format
from zerostride.models.port import numbers

#: A port may take so many times the steps of its audit.
MOST = 5


def blocks(folder: Path, count: int, size: Any) -> Path:
    """A model of blocks; with the size (5,) each adds a row that ncnn takes for a column."""
    nodes, weights = [], {}
    for k in range(count):
        source = f"t{k}" if k else "x"
        output = "y" if k == count - 1 else f"t{k + 1}"
        nodes += [
            small.node("Relu", source, f"r{k}", name=f"relu{k}"),
            small.node("Add", f"r{k} w{k}", output, name=f"add{k}"),
        ]
        weights[f"w{k}"] = size
    file = folder / f"m{count}.onnx"
    model = model_of(nodes, {"x": ("N", "H", 5, 5)}, weights)
    file.write_bytes(model.SerializeToString())
    return file


@pytest.mark.parametrize("size", [(1, 5), (5,)])
def test_port_takes_few_times_the_steps_of_its_audit(tmp_path: Path, size: Any) -> None:
    file, goal = blocks(tmp_path, 40, size), tmp_path / "out.onnx"
    zs.port(file, "ncnn", goal, batch_axis=0, via="none")  # what is imported or cached once
    audit = calls_of(lambda: zs.audit(file, "ncnn", batch_axis=0, via="none"))
    port = calls_of(lambda: zs.port(file, "ncnn", goal, batch_axis=0, via="none"))
    assert port < MOST * audit + 20_000


@pytest.mark.parametrize("size", [(1, 5), (5,)])
def test_steps_are_linear_in_the_model(tmp_path: Path, size: Any) -> None:
    goal = tmp_path / "out.onnx"
    few, many = (blocks(tmp_path, count, size) for count in (20, 80))
    zs.port(many, "ncnn", goal, batch_axis=0, via="none")
    steps = [
        calls_of(lambda f=file: zs.port(f, "ncnn", goal, batch_axis=0, via="none"))
        for file in (few, many)
    ]
    assert steps[1] < 6 * steps[0]


def test_unchanged_nodes_are_not_audited_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: Counter[str] = Counter()
    judge, resolved = Judge.__call__, audited.resolved

    def counted(self: Judge, site: Any) -> Any:
        asked[site.node.path] += 1
        return judge(self, site)

    def flows(*given: Any) -> Any:
        asked["flow"] += 1
        return resolved(*given)

    monkeypatch.setattr(Judge, "__call__", counted)
    monkeypatch.setattr(audited, "resolved", flows)
    same = [small.node("Add", "x c", "t", name="a"), small.node("Mul", "t v", name="b")]
    for weight, changed, count in (((1, 5), 0, 1), ((5,), 1, 2)):
        asked.clear()
        file = tmp_path / "m.onnx"
        model = model_of(same, {"x": (5, 5), "v": (1, 5)}, {"c": weight})
        file.write_bytes(model.SerializeToString())
        report = zs.port(file, "ncnn", tmp_path / "out.onnx", batch_axis=-1, via="none")
        assert (len(report.changes), asked["flow"]) == (changed, count)
        assert asked["b"] == 1
        assert (asked["a"] > 1) == bool(changed)


@pytest.mark.parametrize("size", [5, "N"])
def test_failed_rewrites_need_no_fix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: Any
) -> None:
    asked: Counter[str] = Counter()

    def counted(module: Any, name: str) -> None:
        whole = getattr(module, name)

        def call(*given: Any, **more: Any) -> Any:
            asked[name] += 1
            return whole(*given, **more)

        monkeypatch.setattr(module, name, call)

    for module, names in ((comparing, ("find_witness", "fix_of")), (symbolic_audit, ("_fix",))):
        for name in names:
            counted(module, name)
    # Where only the second operand stretches, the first rewrites that are tried do not do.
    nodes = [small.node("Sub", "v x", "t", name="a"), small.node("Max", "t w", name="b")]
    model = model_of(nodes, {"x": (size, 4, 3), "v": (3,), "w": (size, 4, 1)})
    file = tmp_path / "m.onnx"
    file.write_bytes(model.SerializeToString())
    for target in ("ncnn", "litert-gpu", "stablehlo", "mnn"):
        asked.clear()
        options: dict[str, Any] = {"via": "none" if target == "ncnn" else None, "batch_axis": -1}
        zs.audit(file, target, **options)
        alone = asked.copy()
        asked.clear()
        zs.port(file, target, dry_run=True, **options)
        assert asked == alone, target


def test_file_is_opened_few_times_for_many_refused_rewrites(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = 0
    edit = ncnn_format.edit

    def counted(path: Path) -> Any:
        nonlocal opened
        opened += 1
        return edit(path)

    monkeypatch.setattr(ncnn_format, "edit", counted)
    counts = []
    for count in (3, 24):
        lines = [*ncnn_models.inputs((4, 2, 2)), "Split s 1 2 in0 a b0"]
        # A slope for each channel in the layer: no op of another engine says it otherwise.
        for k in range(count):
            lines.append(f"PReLU p{k} 1 1 b{k} b{k + 1} 0=4")
        lines.append(f"BinaryOp add 2 1 a b{count} out 0=0")
        file = ncnn_models.write(tmp_path, ncnn_models.param(*lines), bytes(16 * count))
        opened = 0
        report = zs.port(file, "onnxruntime", tmp_path / "out.param")
        counts.append(opened)
        assert sum(f.verdict is not Verdict.SAME for f in report.findings) == count
    assert counts[0] == counts[1] <= 2


def test_node_without_sizes_to_compute_with_has_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(numbers, "values_for", lambda *_: None)
    nodes = [small.node("Add", "x c", "t", name="a"), small.node("Mul", "t v", name="b")]
    model = model_of(nodes, {"x": ("N", 5, 5), "v": (5, 1)}, {"c": (5,)})
    file = tmp_path / "m.onnx"
    file.write_bytes(model.SerializeToString())
    report = zs.port(file, "ncnn", tmp_path / "out.onnx", batch_axis=-1, via="none")
    left = [f for f in report.findings if f.verdict is not Verdict.SAME]
    assert left
    assert not report.changes
    assert all("not ported: no sizes were found" in finding.notes[-1] for finding in left)
    assert (tmp_path / "out.onnx").exists()
