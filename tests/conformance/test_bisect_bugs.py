"""Bisection of each public bug: a culprit where an engine's numbers differ, with its cause."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("onnx", reason="reads the models")
pytest.importorskip("onnxruntime", reason="runs the models")

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "models"))

from ncnn_models import inputs, param, write  # noqa: E402

import zerostride as zs  # noqa: E402
from zerostride.models.formats import read_model  # noqa: E402
from zerostride.runtimes.process import engines_kept  # noqa: E402

pytestmark = pytest.mark.conformance

BUGS: list[dict[str, Any]] = json.loads((ROOT / "examples" / "bugs.json").read_text())["bugs"]
#: ncnn's numbers of operations.
OPERATIONS = {"Add": 0, "Sub": 1, "Mul": 2, "Div": 3}


@pytest.fixture(autouse=True, scope="module")
def _kept() -> Iterator[None]:
    with engines_kept():
        yield


def _agree(model: Path, engine: str, **asked: Any) -> bool:
    """Whether the engine's outputs agree with the model's meaning, as `verify` sees it."""
    return bool(zs.verify(model, engine, whole=True, **asked).ok)


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug["id"])
def test_a_bug_in_a_file_of_ncnn(tmp_path: Path, bug: dict[str, Any]) -> None:
    """The operands as the report has them go into one BinaryOp, as a careless converter does."""
    pytest.importorskip("ncnn", reason="runs the file")
    shapes = [tuple(shape) for shape in bug["shapes"]]
    model = ROOT / "examples" / "bugs" / f"{bug['id']}.onnx"
    if bug["op"] not in OPERATIONS or max(map(len, shapes)) > 4:
        pytest.skip("ncnn has no such op, or no such rank")
    graph = read_model(model)
    line = f"BinaryOp op 2 1 in0 in1 {graph.outputs[0].name} 0={OPERATIONS[bug['op']]}"
    file = write(tmp_path, param(*inputs(*shapes), line))
    asked: dict[str, Any] = {"sizes": _sizes(graph, bug)}
    culprits = zs.bisect(model, file, **asked).bisection.culprits
    assert bool(culprits) != _agree(model, "ncnn", against=file, **asked)
    for culprit in culprits:
        assert culprit.node == graph.nodes[0].path
        assert "on ncnn" in culprit.cause or "ncnn does not refuse" in culprit.cause


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug["id"])
def test_a_bug_on_openvino(bug: dict[str, Any]) -> None:
    pytest.importorskip("openvino", reason="runs the model")
    model = ROOT / "examples" / "bugs" / f"{bug['id']}.onnx"
    asked: dict[str, Any] = {"sizes": _sizes(read_model(model), bug)}
    report = zs.bisect(model, engine="onnxruntime", other_engine="openvino", **asked)
    assert report.ok == _agree(model, "openvino", **asked)


def _sizes(graph: Any, bug: dict[str, Any]) -> dict[str, int]:
    """The report's sizes, for those that the model leaves open."""
    pairs = zip(graph.inputs, bug["shapes"], strict=False)
    sizes = [pair for value, shape in pairs for pair in zip(value.shape, shape, strict=False)]
    return {str(name): size for name, size in sizes if not isinstance(name, int)}
