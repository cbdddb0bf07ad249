"""`zerostride port`: its files, output and refusals."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from commandline import Run

onnx = pytest.importorskip("onnx", reason="writes the models")


@pytest.fixture
def model(tmp_path: Path) -> str:
    """y = x + c and z = y times v: vectors that ncnn lays along rows."""
    info = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [
            onnx.helper.make_node("Add", ["x", "c"], ["y"], name="add"),
            onnx.helper.make_node("Mul", ["y", "v"], ["z"], name="mul"),
        ],
        "g",
        [info("x", 1, (5, 5)), info("v", 1, (5,))],
        [info("z", 1, None)],
        [onnx.numpy_helper.from_array(np.ones(5, np.float32), "c")],
    )
    file = tmp_path / "model.onnx"
    opsets = [onnx.helper.make_opsetid("", 17)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8), file)
    return str(file)


def test_port_writes_a_model(run: Run, model: str, tmp_path: Path) -> None:
    goal = tmp_path / "ported.onnx"
    answer = run(
        "port", model, "--target", "ncnn", "--via", "none", "--via", "none", "-o", str(goal)
    )
    assert (answer.status, answer.err) == (0, "")
    assert "2 changes, written to" in answer.out
    assert "- y(5,5) = Add(x(5,5), c(5))" in answer.out
    assert "+ y(5,5) = Add(x(5,5), c(1,5))" in answer.out
    assert run("audit", str(goal), "--target", "ncnn", "--via", "none", "--via", "none").status == 0
    again = run(
        "port", str(goal), "--target", "ncnn", "--via", "none", "--via", "none", "-o", str(goal)
    )
    assert "nothing to change" in again.out


def test_dry_run_prints_and_writes_nothing(run: Run, model: str, tmp_path: Path) -> None:
    answer = run("port", model, "--target", "ncnn", "--via", "none", "--via", "none", "--dry-run")
    assert answer.status == 0
    assert "nothing written" in answer.out
    assert "+ t0(1,5) = Unsqueeze(c(5), axes=(0,))" in answer.out
    assert [file.name for file in tmp_path.iterdir()] == ["model.onnx"]


def test_remaining_findings_give_status_1(run: Run, model: str) -> None:
    answer = run(
        "port",
        model,
        "--target",
        "ncnn",
        "--via",
        "none",
        "--via",
        "none",
        "--dry-run",
        "--batch-axis",
        "1",
    )
    assert answer.status == 1
    assert "not ported" in answer.out


def test_port_prints_json(run: Run, model: str) -> None:
    answer = run(
        "port", model, "--target", "ncnn", "--via", "none", "--via", "none", "--dry-run", "--json"
    )
    report = json.loads(answer.out)
    assert report["command"] == "port"
    assert [change["by"] for change in report["changes"]] == ["constants", "operands"]
    assert report["output"] is None


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "-o FILE"),
        (("--dry-run", "-o", "x.onnx"), "leave out -o"),
        (("-o", "."), "name|ends"),
        (("-o", "/nowhere/at/all.onnx"), "no folder"),
        (("-o", "x.param"), "ends in"),
        (("--dry-run", "--via", "pnnx", "--target", "torch"), "pnnx"),
        (("--dry-run", "--batch-axis", "some"), "not an axis"),
        (("--dry-run", "--set", "N=many"), "number"),
    ],
)
def test_bad_input_has_status_2(run: Run, model: str, words: tuple[str, ...], said: str) -> None:
    import re

    answer = run("port", model, "--target", "ncnn", "--via", "none", "--via", "none", *words)
    assert answer.status == 2
    assert re.search(said, answer.err)
    assert "Traceback" not in answer.err


def test_invalid_file_is_reported(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "model.onnx"
    file.write_bytes(b"nothing")
    answer = run(
        "port", str(file), "--target", "ncnn", "--via", "none", "--via", "none", "--dry-run"
    )
    assert answer.status == 2
    assert "model.onnx" in answer.err
