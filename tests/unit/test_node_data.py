"""Node data of Model Explorer: its form, and the server's own classes if they are installed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from commandline import Run

pytest.importorskip("onnx", reason="the models are ONNX files")
import onnx

import zerostride as zs
from zerostride.errors import ZerostrideError
from zerostride.report import node_data

VISION = Path(__file__).parents[2] / "examples" / "tiny_vision.onnx"


@pytest.fixture(scope="module")
def report() -> Any:
    return zs.audit(VISION, "ncnn", via="none")


def test_each_tensor_has_the_verdict_of_its_node(report: Any) -> None:
    data = json.loads(node_data(report))
    assert data["name"] == f"zerostride: ncnn {report.release}"
    verdicts = {finding.node: str(finding.verdict) for finding in report.findings}
    made = {node.name: list(node.output) for node in onnx.load(VISION).graph.node}
    expected = {name: verdicts[node] for node in verdicts for name in made[node]}
    found = {name: row["value"].replace(" ", "_") for name, row in data["results"].items()}
    assert found == expected
    assert set(found.values()) == {"same", "same_here", "different", "refused"}


def test_the_server_takes_it(report: Any) -> None:
    builder = pytest.importorskip(
        "model_explorer.node_data_builder", reason="Model Explorer is no need of the tests"
    )
    data = json.loads(node_data(report))
    results = {name: builder.NodeDataResult(**row) for name, row in data["results"].items()}
    taken = builder.GraphNodeData(name=data["name"], results=results)
    assert json.loads(taken.to_json_string())["results"] == data["results"]


def test_several_models_are_refused(report: Any, run: Run) -> None:
    with pytest.raises(ZerostrideError, match="of one model"):
        node_data([report, report])
    words = ("audit", VISION, VISION.with_name("clean.onnx"), "--target", "ncnn")
    answer = run(*words, "--format", "model-explorer")
    assert answer.status == 2
    assert "node data of Model Explorer is of one model" in answer.err
    alone = run("audit", VISION, *words[3:], "--via", "none", "--format", "model-explorer")
    assert alone.status == 1
    assert alone.out == node_data(report).replace("\r", "")
