"""Sizes of whole models: claims are counted and compared with runs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="the models are ONNX files")
pytest.importorskip("onnxruntime", reason="it says what is so")

from campaigns.shapes.coverage import (  # noqa: E402
    CoverageRow,
    Model,
    Needs,
    Shapes,
    cover,
    executed,
    installed,
    stripped,
    zerostride_needs,
)
from campaigns.shapes.coverage_report import run  # noqa: E402
from campaigns.shapes.inferrers import ZEROSTRIDE, Claim, name, number  # noqa: E402
from campaigns.shapes.shape_runner import TRIED  # noqa: E402

pytestmark = pytest.mark.conformance

EXAMPLES = Path(__file__).parents[2] / "examples"
DYNAMIC = sorted(EXAMPLES.glob("*_dynamic*.onnx"))


@pytest.fixture
def added(tmp_path: Path) -> Path:
    """A model whose sums have the sizes (N, M), (N, M) and (2,)."""
    helper = onnx.helper
    nodes = [
        helper.make_node("Add", ["x", "y"], ["z"]),
        helper.make_node("Relu", ["z"], ["r"]),
        helper.make_node("Shape", ["r"], ["s"]),
    ]
    inputs = [
        helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["N", 1]),
        helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1, "M"]),
    ]
    outputs = [helper.make_tensor_value_info("s", onnx.TensorProto.INT64, ["made_up"])]
    graph = helper.make_graph(nodes, "added", inputs, outputs)
    graph.value_info.append(helper.make_tensor_value_info("z", onnx.TensorProto.FLOAT, [7, 7]))
    path = tmp_path / "added.onnx"
    opset = [helper.make_opsetid("", 18)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=9), path)
    return path


def right(model: Model) -> Shapes:
    return {"z": (name("N"), name("M")), "r": (name("N"), name("M")), "s": (number(2),)}


def planted(path: Path, shapes: Shapes) -> CoverageRow:
    """The row of a tool that answers this, beside one that is right."""
    _, row = cover(path, {ZEROSTRIDE: right, "planted": lambda model: shapes}).rows
    return row


def test_claims_see_only_the_inputs_sizes(added: Path, tmp_path: Path) -> None:
    model = stripped(added, tmp_path / "m.onnx")
    assert (model.names, model.tensors) == (("N", "M"), ("z", "r", "s"))
    read = onnx.load(model.path).graph
    assert not read.value_info
    assert not read.output[0].type.tensor_type.HasField("shape")


def test_right_claims_are_counted(added: Path) -> None:
    coverage = cover(added, {ZEROSTRIDE: right})
    (row,) = coverage.rows
    assert coverage.ok
    assert (row.ranks, row.tensors, row.numbers, row.expressions, row.axes) == (3, 3, 1, 4, 5)
    assert not row.wrong
    assert coverage.runs[0] == {"N": 2, "M": 5}


@pytest.mark.parametrize(
    ("claims", "wrong"),
    [
        ((name("M"), name("M")), 1),
        ((number(2), name("M")), 1),
        ((name("N"), Claim(low=0, high=3)), 1),
        ((name("N"), Claim(value=lambda values: values["N"] + 3)), 1),
        ((name("N"),), 2),
        ((name("M"), name("N")), 2),
        ((Claim(), Claim()), 0),
    ],
)
def test_planted_wrong_claim_is_found(added: Path, claims: tuple[Claim, ...], wrong: int) -> None:
    row = planted(added, {"z": claims, "s": (number(2),)})
    assert (row.ranks, row.wrong, bool(row.examples)) == (2, wrong, wrong > 0)


def test_invented_name_counts_as_no_claim(added: Path) -> None:
    unnamed = Claim(value=lambda values: 0, named=False)
    row = planted(added, {"z": (unnamed, Claim()), "r": (Claim(high=8), Claim(low=3))})
    assert (row.said, row.bounds, row.ranks) == (0, 2, 2)


def test_fewer_or_wrong_claims_are_not_ok(added: Path) -> None:
    assert cover(added, {ZEROSTRIDE: right, "other": right}).ok
    assert not cover(added, {ZEROSTRIDE: lambda model: {}, "other": right}).ok
    wrong = {"s": (number(3),)}
    assert not cover(added, {ZEROSTRIDE: lambda model: wrong}).ok
    # Who is wrong may say more.
    assert cover(added, {ZEROSTRIDE: lambda model: {}, "other": lambda model: wrong}).ok


def test_false_need_is_found(added: Path) -> None:
    def needs(model: Model) -> Needs:
        return [("N >= 2", lambda values: values["N"] >= 2), ("M >= 1", lambda values: True)]

    coverage = cover(added, {ZEROSTRIDE: right}, needs)
    assert not coverage.ok
    assert set(coverage.denied) == {
        "N >= 2, and it runs at N=1, M=6",
        "N >= 2, and it runs at N=1, M=1",
        "N >= 2, and it runs at N=0, M=4",
    }


def test_sizes_that_crash_the_engine_are_left_out(tmp_path: Path) -> None:
    """ONNX Runtime 1.31 ends the process at an LSTM of a batch of 0, which is the last row."""
    helper = onnx.helper
    weights = [
        onnx.numpy_helper.from_array(np.zeros((1, 8, size), np.float32), label)
        for label, size in (("w", 3), ("r", 2))
    ]
    node = helper.make_node("LSTM", ["x", "w", "r"], ["y", "h"], hidden_size=2)
    entries = [
        helper.make_tensor_value_info(label, onnx.TensorProto.FLOAT, shape)
        for label, shape in (("x", ["B", "T", 3]), ("y", None))
    ]
    graph = helper.make_graph([node], "steps", entries[:1], entries[1:], weights)
    opset = [helper.make_opsetid("", 18)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=9), tmp_path / "steps.onnx")
    runs = list(executed(stripped(tmp_path / "steps.onnx", tmp_path / "m.onnx")))
    assert [values["B"] for values, _ in runs][:6] == [row[0] for row in TRIED[:6]]
    assert all(shapes["y"] == (v["B"], 1, v["T"], 2) for v, shapes in runs)


def test_failing_tool_is_a_row(added: Path) -> None:
    def fail(model: Model) -> Shapes:
        raise RuntimeError("no")

    coverage = cover(added, {ZEROSTRIDE: fail, "other": right})
    assert coverage.rows[0].failed == "RuntimeError: no"
    assert not coverage.ok


def test_every_tool_reads_a_small_model(added: Path) -> None:
    for row in cover(added, installed()).rows:
        assert not row.failed, row.failed
        assert (row.ranks, row.said, row.wrong) == (3, 5, 0), row.tool


@pytest.mark.parametrize("path", DYNAMIC, ids=lambda path: path.stem)
def test_zerostride_claims_as_much_as_any_tool(path: Path) -> None:
    coverage = cover(path, installed())
    assert len(coverage.runs) >= 4
    assert coverage.ok, coverage.to_json()
    ours = coverage.rows[0]
    assert (ours.ranks, ours.said) == (ours.tensors, ours.axes)


@pytest.mark.parametrize("path", DYNAMIC, ids=lambda path: path.stem)
def test_needs_of_zerostride_hold_when_the_models_run(path: Path) -> None:
    assert not cover(path, {ZEROSTRIDE: lambda model: {}}, zerostride_needs).denied


def test_command_prints_text_and_json(
    added: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([str(added)], True) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["ok"]
    assert document["models"][0]["tools"][0]["tool"] == ZEROSTRIDE
    assert run([str(added)], False) == 0
    assert "100.0% (5/5)" in capsys.readouterr().out
    (tmp_path / "bad.onnx").write_bytes(b"\x0bnothing")
    assert run([str(tmp_path / "bad.onnx")], False) == 2
    assert run([str(tmp_path / "none.onnx")], False) == 2
    assert "cannot be read" in capsys.readouterr().err
