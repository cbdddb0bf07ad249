"""An audit's report and the options of an audit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small
from onnx import TensorProto, helper

import zerostride as zs
from zerostride.models.findings import Report, Verdict

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_ok_is_true_if_every_finding_is_same() -> None:
    clean = small.audit((EXAMPLES / "clean.onnx").read_bytes(), "ncnn")
    assert clean.ok
    vision = small.audit((EXAMPLES / "tiny_vision.onnx").read_bytes(), "ncnn")
    assert not vision.ok
    assert sum(vision.counts.values()) == len(vision.findings)
    worst = [finding.verdict for finding in vision.worst()]
    assert worst == sorted(worst, key=["different", "refused", "same_here", "unknown"].index)
    assert len(worst) == len(vision.findings) - vision.counts[Verdict.SAME]


@pytest.mark.parametrize("target", ["ncnn", "torch", "paddle"])
def test_json_can_be_read_back(target: str) -> None:
    for path in sorted(EXAMPLES.rglob("*.onnx")):
        report = small.audit(path.read_bytes(), target)
        read = json.loads(report.to_json())
        assert read["schema"] == 1
        assert read == json.loads(json.dumps(report.as_dict(), default=str))
        assert [row["verdict"] for row in read["findings"]] == [f.verdict for f in report.findings]
        again = json.loads(json.dumps(read))
        assert again == read
        _strict(report)


def _strict(report: Report) -> None:
    """JSON without the constants that other readers refuse."""

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is not JSON")

    json.loads(report.to_json(), parse_constant=refuse)


def test_text_and_page_name_every_differing_node() -> None:
    report = small.audit((EXAMPLES / "tiny_vision.onnx").read_bytes(), "ncnn")
    text, page = str(report), report.to_html()
    for finding in report.worst():
        assert finding.node in text
        assert finding.node in page


def test_names_from_a_file_are_escaped() -> None:
    only = small.node("Add", "x <b>", name="<script>")
    content = small.model([only], {"x": (1, 5, 4, 5)}, {"<b>": (5,)})
    page = small.audit(content, "ncnn").to_html()
    assert "<script>" not in page
    assert "<b>" not in page


def test_option_via_judges_the_converter() -> None:
    content = small.model([small.node("Add", "x c")], {"x": (1, 5, 4, 5)}, {"c": (5,)})
    assert small.audit(content, "ncnn", via="none").findings[0].verdict == "different"
    assert small.audit(content, "ncnn", via="pnnx").ok
    with pytest.raises(zs.ZerostrideError, match="pnnx"):
        small.audit(content, "torch", via="pnnx")
    with pytest.raises(zs.ZerostrideError, match="nonsense"):
        small.audit(content, "ncnn", via="nonsense")


@pytest.mark.parametrize(
    ("x", "c", "tells", "verdict"),
    [
        ((1, 2, 3, 4, 4), (4,), True, "same"),
        ((1, 2, 3, 4, 4), (4,), False, "refused"),  # all five axes stay
        ((1, 3, 4, 4), (2, 1, 1, 1), True, "different"),
        ((1, 3, 4, 4), (1, 4, 4), True, "same"),
    ],
)
def test_option_via_pnnx_removes_the_batch_axis(x: Any, c: Any, tells: bool, verdict: str) -> None:
    first = small.node("Conv", "x k", "h", name="conv") if tells else small.node("Relu", "x", "h")
    kernel = (x[1], x[1], *(1,) * (len(x) - 2))
    content = small.model([first, small.node("Add", "h c")], {"x": x}, {"c": c, "k": kernel})
    (finding,) = small.audit(content, "ncnn", via="pnnx").findings
    assert finding.verdict == verdict


def test_unknown_engine_is_an_error() -> None:
    content = small.model([small.node("Add", "x c")], {"x": (2,)}, {"c": (2,)})
    with pytest.raises(zs.BroadcastError, match="no engine"):
        small.audit(content, "nonsense")


def test_nodes_in_bodies_have_paths() -> None:
    body = helper.make_graph(
        [small.node("Add", "x c", "z", name="inner")],
        "body",
        [],
        [helper.make_tensor_value_info("z", TensorProto.FLOAT, None)],
    )
    choose = helper.make_node("If", ["cond"], ["y"], name="if", then_branch=body, else_branch=body)
    content = small.model([choose], {"x": (1, 5, 4, 5)}, {"cond": np.array(True), "c": (5,)})
    findings = small.audit(content, "ncnn", via="none").findings
    assert {f.node for f in findings} == {"if/then_branch/inner", "if/else_branch/inner"}
    assert {finding.reason for finding in findings} == {"other_alignment"}
