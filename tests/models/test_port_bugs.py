"""Reported bugs and the examples, ported: the target's errors are repaired, or explained."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zerostride as zs
from zerostride.engines import ENGINES
from zerostride.models.execute import execute, not_executed
from zerostride.models.findings import Report
from zerostride.models.formats import read_model

EXAMPLES = Path(__file__).parents[2] / "examples"
BUGS = json.loads((EXAMPLES / "bugs.json").read_text("utf-8"))["bugs"]
FILED = [
    bug
    for bug in BUGS
    if bug["target"] in ENGINES and (EXAMPLES / "bugs" / f"{bug['id']}.onnx").is_file()
]
#: Engines that read such files or are converted to, with limits of their own.
TARGETS = ("ncnn", "openvino", "mnn", "tensorrt", "coreml", "stablehlo")


def ported(file: Path, target: str, folder: Path, **options: Any) -> Report:
    """A port after which nothing is worse, and a second one changes nothing; ncnn: op for op."""
    options |= {"via": "none"} if target == "ncnn" else {}
    goal = folder / "ported.onnx"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", zs.EngineVersionWarning)
        report = zs.port(file, target, goal, **options)
        again = zs.port(goal, target, folder / "again.onnx", **options)
    assert again.changes == ()
    for finding in report.findings:
        assert finding.verdict == "same" or finding.notes[-1].startswith("not ported: ")
    return report


def same_numbers(file: Path, goal: Path) -> None:
    """Both models on the same random numbers, if everything in them is computed here.

    A product of a tiled operand adds in another order than one of a stretched operand: the last
    bits differ. The port itself compares each changed node bit for bit.
    """
    graph = read_model(file)
    if list(not_executed(graph)) or not all(value.known for value in graph.inputs):
        return
    rng = np.random.default_rng(0)
    fed = {}
    for value in graph.inputs:
        shape = [size for size in value.shape or () if isinstance(size, int)]
        fed[value.name] = np.asarray(rng.random(shape) * 4).astype(value.dtype or "float32")
    after = execute(read_model(goal), fed)
    for name, array in execute(graph, fed).items():
        assert (array.dtype, array.shape) == (after[name].dtype, after[name].shape)
        np.testing.assert_allclose(array, after[name], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("bug", FILED, ids=lambda bug: bug["id"])
def test_reported_bug_is_repaired(bug: dict[str, Any], tmp_path: Path) -> None:
    """On the engine of the report, if it goes wrong there today."""
    file = EXAMPLES / "bugs" / f"{bug['id']}.onnx"
    options = {} if "target_shapes" in bug else {"batch_axis": -1}
    target = bug["target"]
    report = ported(file, target, tmp_path, **(options if target == "ncnn" else {}))
    # What broadcasts across the batch has no meaning on an engine without one.
    assert report.ok or report.before[0].reason == "batch_broadcast"
    if target == "ncnn" and report.ok:
        assert bool(report.changes) == (bug["today"] != "same")
    same_numbers(file, tmp_path / "ported.onnx")


#: Networks whose sizes have names take seconds, so each is ported to one engine here.
OPEN = {"transformer_dynamic": "ncnn", "unet_dynamic": "coreml"}
CASES = [
    pytest.param(file, target, id=f"{file.stem}-{target}")
    for file in sorted(EXAMPLES.glob("*.onnx"))
    for target in TARGETS
    if not file.stem.endswith("_script") and OPEN.get(file.stem, target) == target
]


@pytest.mark.parametrize(("file", "target"), CASES)
def test_examples_are_ported(file: Path, target: str, tmp_path: Path) -> None:
    report = ported(file, target, tmp_path)
    before = sum(finding.verdict == "same" for finding in report.before)
    after = sum(finding.verdict == "same" for finding in report.findings)
    assert after >= before + len(report.changes)
    same_numbers(file, tmp_path / "ported.onnx")


def test_some_examples_need_rewrites() -> None:
    assert len([bug for bug in FILED if bug["target"] == "ncnn" and bug["today"] != "same"]) >= 3
