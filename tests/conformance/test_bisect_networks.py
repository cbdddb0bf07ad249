"""Networks of the campaign on which bisection was wrong once; see `python -m campaigns bisect`."""

from __future__ import annotations

from pathlib import Path

import pytest
from campaigns.models.bisections import PAIRS, Counts, converted, draw, judge

import zerostride as zs
from zerostride.models.findings import Outcome

for package in ("onnxruntime", "openvino", "ncnn", "pnnx", "MNN"):
    pytest.importorskip(package, reason="the networks are converted and run")

SEEDS = {
    2600159: "the converter joined the constant with a bias",
    2600163: "a constant on another axis looked like permuted axes",
    2600157: "inputs with the batch gave nearly the same numbers as without",
    2600105: "the file keeps the batch axis",
    2600089: "a Relu inside of MNN's BinaryOp was left out",
    2700021: "a Softmax hid a later addition",
    2700057: "a Softmax hid an addition, and the tensor before it was taken",
    2700173: "a Relu of a copy explained nothing",
    2700185: "an Abs of an Abs explained nothing",
    2900001: "an Abs of an Abs, and the tensor before both was taken",
    2900025: "permuted axes explained the numbers within the tolerance",
    2900117: "a copy of a maximum was taken for the tensor before it",
    2700064: "the node reads an input of the model",
}


@pytest.mark.parametrize("number", SEEDS, ids=lambda number: SEEDS[number].replace(" ", "-"))
def test_the_axes_of_a_misread_constant_are_named(number: int, tmp_path: Path) -> None:
    counts = Counts()
    judge(draw(number, tmp_path), PAIRS[number % 100_000 % len(PAIRS)], tmp_path, counts)
    assert not counts.failures
    assert (counts.cases, counts.culprits, counts.causes, counts.false) == (1, 1, 1, 0)


def test_a_fault_that_later_nodes_hide_is_found(tmp_path: Path) -> None:
    """MNN's converter adds a row to a convolution's bias; the Softmax after it hides that."""
    case = draw(2700146, tmp_path)
    file = converted(case, False, "mnn", tmp_path)
    report = zs.verify(case.files[0], "mnn", against=file, inputs={"x": case.feed})
    output, inside = report.checks
    assert output.outcome is Outcome.AGREES, output
    assert (inside.node, inside.op, inside.outcome) == ("n2", "Add", Outcome.DIFFERS), inside
    culprit = zs.bisect(case.files[0], file, inputs={"x": case.feed}).culprit
    assert "c2 (1, 1, 1, 6) goes to axis 1; the model means axis 3" in culprit.cause
