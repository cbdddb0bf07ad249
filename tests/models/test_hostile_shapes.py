"""Shapes of very many axes, and of sizes with very long names, in every output."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

import pytest

onnx = pytest.importorskip("onnx", reason="the files are ONNX files")
import small  # noqa: E402
from ir_models import Ir  # noqa: E402
from onnx import TensorProto, helper  # noqa: E402

import zerostride as zs  # noqa: E402
from work import calls_of  # noqa: E402
from zerostride.errors import LONGEST_LINE  # noqa: E402
from zerostride.models.shapes import shapes  # noqa: E402
from zerostride.report import html, text  # noqa: E402

TARGETS = ("numpy", "ncnn", "tensorrt")


def everything(path: Path) -> list[str]:
    """What every function writes about a file, line by line."""
    written: list[str] = []
    for target in TARGETS:
        report = zs.audit(path, target)
        written += text(report, full=True).splitlines()
        written += re.split(r"[<>\n]", re.sub(r"(?s)<(style|script).*?</\1>", "", html(report)))
        written += report.notes
    written += shapes(path).notes
    with contextlib.suppress(zs.ZerostrideError):
        written += text(zs.port(path, "ncnn", path.with_suffix(".out.onnx"))).splitlines()
    return written


def of_many_axes(path: Path, count: int) -> Path:
    """An input, a tensor inside the model and a constant of so many axes."""
    ones = [1] * count
    made = small.model(
        [small.node("Add", "x y", "t"), small.node("Mul", "t w", "u"), small.node("Relu", "u")],
        {"x": ones, "y": [5, *ones[1:]]},
    )
    made.graph.value_info.append(helper.make_tensor_value_info("u", TensorProto.FLOAT, ones))
    made.graph.initializer.append(helper.make_tensor("w", TensorProto.FLOAT, ones, [1.0]))
    path.write_bytes(made.SerializeToString())
    return path


def test_shape_of_very_many_axes_is_unknown(tmp_path: Path) -> None:
    path = of_many_axes(tmp_path / "many.onnx", 300_000)
    reports = []
    assert calls_of(lambda: reports.append(zs.audit(path, "ncnn"))) < 10_000
    (report,) = reports
    assert [str(finding.verdict) for finding in report.findings] == ["unknown", "unknown"]
    assert any("x (300000 axes) and 2 more" in note for note in report.notes)
    assert len(report.to_json()) < 10_000


@pytest.mark.parametrize("count", [64, 65, 3000])
def test_lines_about_very_many_axes_are_short(count: int, tmp_path: Path) -> None:
    assert max(map(len, everything(of_many_axes(tmp_path / "many.onnx", count)))) <= LONGEST_LINE


def test_very_many_axes_in_a_body_and_an_ir_are_unknown(tmp_path: Path) -> None:
    ones = [1] * 2000
    inner = helper.make_graph(
        [small.node("Add", "x x", "z")],
        "body",
        [],
        [helper.make_tensor_value_info("z", TensorProto.FLOAT, ones)],
    )
    chosen = helper.make_node("If", ["c"], ["y"], then_branch=inner, else_branch=inner)
    made = small.model([chosen], {"x": ones})
    made.graph.input.append(helper.make_tensor_value_info("c", TensorProto.BOOL, []))
    (tmp_path / "body.onnx").write_bytes(made.SerializeToString())
    ir = Ir()
    total = ir.layer("add", "Add", [ir.parameter("x", ones), ir.parameter("y", ones)], ones)
    ir.result(total)
    for path in (tmp_path / "body.onnx", ir.save(tmp_path / "net.xml")):
        report = zs.audit(path, "ncnn")
        assert any("(2000 axes)" in note for note in report.notes)
        assert all(len(shape or ()) <= 64 for one in report.findings for _, shape in one.operands)


@pytest.mark.parametrize(("count", "length"), [(24, 190), (3, 100_000), (2, 1)])
def test_lines_about_sizes_of_long_names_are_short(count: int, length: int, tmp_path: Path) -> None:
    x, y = ([f"{letter}{k}_" + "n" * length for k in range(count)] for letter in "NM")
    made = small.model(
        [small.node("Add", "x y", "t"), small.node("Concat", "t x", "y", axis=0)], {"x": x, "y": y}
    )
    (tmp_path / "names.onnx").write_bytes(made.SerializeToString())
    lines = everything(tmp_path / "names.onnx")
    assert max(len(line.strip()) for line in lines) <= LONGEST_LINE


def test_lines_of_a_plan_and_of_its_refusal_are_short() -> None:
    sizes = [zs.Dim(f"N{k}_" + "n" * 300) for k in range(40)]
    plan = zs.plan(sizes, [1] * 40)
    lines = str(plan).splitlines()
    with pytest.raises(zs.BroadcastError) as caught:
        zs.plan([*sizes[1:], 3], [*sizes[1:], 4])
    lines += str(caught.value).splitlines()
    assert max(map(len, lines)) <= LONGEST_LINE
