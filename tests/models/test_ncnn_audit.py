"""Audits of ncnn files for other engines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ncnn_models as made
import pytest

import zerostride as zs
from zerostride.cli import main


def audited(tmp_path: Path, line: str, *shapes: made.Shape, target: str = "openvino") -> Any:
    made.write(tmp_path, made.param(*made.inputs(*shapes), line))
    report = zs.audit(tmp_path / "m.param", target)
    (finding,) = report.findings
    return finding


@pytest.mark.parametrize(
    ("a", "b", "target", "verdict", "reason"),
    [
        ((3, 5), (5,), "openvino", "same_here", "size_trap"),
        ((5, 5), (5,), "openvino", "different", "other_alignment"),
        ((3, 4, 5), (3,), "numpy", "refused", "extent_mismatch"),
        ((3, 4, 5), (3, 1, 1), "onnxruntime", "same", "same_plan"),
        ((3, 4, 5), (3,), "ncnn", "same", "same_plan"),
        ((3, 4, 5), (4, 5), "torch", "refused", "invalid_source"),
        ((3, 4, 5), (4, 5), "ncnn", "refused", "invalid_source"),
    ],
)
def test_audited_layer_has_the_verdict(
    tmp_path: Path, a: Any, b: Any, target: str, verdict: str, reason: str
) -> None:
    finding = audited(tmp_path, "BinaryOp b 2 1 in0 in1 out0 0=0", a, b, target=target)
    assert (finding.verdict, finding.reason) == (verdict, reason)
    if reason == "invalid_source":
        assert finding.source.silent  # ncnn goes on and computes nonsense


def test_binary_op_without_a_second_operand_is_read(tmp_path: Path) -> None:
    finding = audited(tmp_path, "BinaryOp b 1 1 in0 out0 0=0", (3, 4))
    assert (finding.verdict, finding.reason) == ("refused", "invalid_source")


def test_eltwise_of_two_shapes_is_judged(tmp_path: Path) -> None:
    finding = audited(tmp_path, "Eltwise e 2 1 in0 in1 out0 0=1", (3, 4), (1, 4))
    assert (finding.verdict, finding.reason) == ("refused", "invalid_source")
    assert finding.source.silent


@pytest.mark.parametrize("target", ["numpy", "onnxruntime", "ncnn", "mnn", "openvino", "stablehlo"])
def test_weighted_sum_is_the_same_everywhere(tmp_path: Path, target: str) -> None:
    line = "Eltwise e 2 1 in0 in1 out0 0=1 -23301=2,1.0,0.2"
    assert audited(tmp_path, line, (3, 4), (3, 4), target=target).verdict == "same"


@pytest.mark.parametrize(
    ("target", "verdict", "reason"),
    [
        ("tensorrt", "refused", "rank"),
        ("coreml", "different", "other_alignment"),
        ("tosa", "refused", "no_op"),
        ("stablehlo", "refused", "no_op"),
    ],
)
def test_slopes_are_judged_on_targets_that_were_read_about(
    tmp_path: Path, target: str, verdict: str, reason: str
) -> None:
    finding = audited(tmp_path, "PReLU p 1 1 in0 out0 0=4", (4, 4, 5), target=target)
    assert (finding.verdict, finding.reason) == (verdict, reason)


def test_command_line_audits_ncnn_files(tmp_path: Path, capsys: Any) -> None:
    text = made.param(*made.inputs((5, 5), (5,)), "BinaryOp add 2 1 in0 in1 out0 0=0")
    path = made.write(tmp_path, text)

    def status(*options: str) -> Any:
        with pytest.raises(SystemExit) as ended:
            main(["audit", str(path), "--target", "openvino", *options])
        return ended.value.code

    assert status() == 1
    assert "reshape in1 to (5, 1)" in capsys.readouterr().out
    assert status("--json") == 1
    assert json.loads(capsys.readouterr().out)["findings"][0]["verdict"] == "different"
    path.write_text("7767517\n")
    assert status() == 2
