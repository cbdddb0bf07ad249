"""PyTorch programs and ONNX files brought to ExecuTorch, in its own environment.

ZEROSTRIDE_PYTHON_EXECUTORCH names its interpreter.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zerostride as zs
from zerostride.models.findings import Outcome
from zerostride.runtimes.convert.folder import STATE

torch: Any = pytest.importorskip("torch", reason="the models are modules of PyTorch")
pytest.importorskip("onnxscript", reason="PyTorch's exporter needs it")

pytestmark = [
    pytest.mark.conformance,
    pytest.mark.skipif(
        "ZEROSTRIDE_PYTHON_EXECUTORCH" not in os.environ,
        reason="ExecuTorch has an environment of its own: no interpreter with it is named",
    ),
]
FILE = "Gained.executorch.pte"


class Gained(torch.nn.Module):  # type: ignore[misc]
    """A perceptron with a gain per row, which is a column."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.last = torch.nn.Linear(6, 8), torch.nn.Linear(8, 3)
        self.gain = torch.nn.Parameter(torch.rand(4, 1) + 0.5)

    def forward(self, x: Any) -> Any:
        hidden = torch.relu(self.first(x)) * self.gain
        return self.last(hidden) + hidden.mean(-1, keepdim=True)


class Mixed(torch.nn.Module):  # type: ignore[misc]
    """Inputs in containers, a number among them, and outputs of several types."""

    def forward(self, pair: Any, scale: float, rows: Any) -> Any:
        difference = pair["b"] - pair["a"]
        return {"z": difference * scale, "a": rows | (difference > 0), "n": pair["n"] + 2**40}


class Determined(torch.nn.Module):  # type: ignore[misc]
    """ExecuTorch has no determinant."""

    def forward(self, x: Any) -> Any:
        return torch.linalg.det(x)


def outcomes(report: Any) -> list[Outcome]:
    return [check.outcome for check in report.checks]


def test_a_module_is_converted_and_proven(tmp_path: Path) -> None:
    out = tmp_path / "out"
    report = zs.convert(Gained(), "executorch", out, args=(torch.ones(2, 4, 6),))
    assert report.ok, report
    assert outcomes(report) == [Outcome.AGREES]
    assert report.output == str(out / FILE)
    files = {FILE, STATE, "report.html", "how.txt", "inputs.npz"}
    assert {file.name for file in out.iterdir()} == files
    written = (out / FILE).stat().st_mtime_ns
    assert zs.convert(Gained(), "executorch", out, args=(torch.ones(2, 4, 6),)).ok
    assert (out / FILE).stat().st_mtime_ns == written


def test_a_wrong_file_is_noticed(tmp_path: Path) -> None:
    args = (torch.ones(2, 4, 6),)
    zs.convert(Gained(), "executorch", tmp_path, args=args)
    other = Gained()
    with torch.no_grad():
        other.gain[2] += 0.25
    report = zs.verify(other, "executorch", against=tmp_path / FILE, args=args)
    assert outcomes(report) == [Outcome.DIFFERS]


def test_a_file_is_converted_at_sizes_that_are_chosen(tmp_path: Path) -> None:
    dim = torch.export.Dim("batch")
    shapes = {"x": {0: dim}}
    program = torch.export.export(Gained(), (torch.ones(2, 4, 6),), dynamic_shapes=shapes)
    torch.export.save(program, tmp_path / "m.pt2")
    command = ["convert", str(tmp_path / "m.pt2"), "--to", "executorch", "-o", str(tmp_path / "o")]
    done = subprocess.run(
        [sys.executable, "-m", "zerostride", *command], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done
    assert "the converted file has these alone" in done.stdout
    assert (tmp_path / "o" / "m.executorch.pte").is_file()


def test_inputs_and_outputs_keep_their_order_and_types(tmp_path: Path) -> None:
    pair = {"b": torch.ones(3, 4), "a": torch.ones(4), "n": torch.ones(2, dtype=torch.int64)}
    args = (pair, 3.0, torch.ones(3, 1, dtype=torch.bool))
    report = zs.convert(Mixed(), "executorch", tmp_path / "out", args=args)
    assert outcomes(report) == [Outcome.AGREES] * 3, report


def test_what_executorch_lacks_is_named_with_its_node(tmp_path: Path) -> None:
    report = zs.convert(Determined(), "executorch", tmp_path / "out", args=(torch.eye(3),))
    assert not report.ok
    assert report.output is None
    (check,) = report.checks
    assert check.outcome is Outcome.REFUSED
    assert "_linalg_det" in check.detail
    assert f"node linalg_det, {Path(__file__).name}:" in check.detail
    assert any(note.startswith("the limit is executorch's") for note in report.notes)
    assert not list((tmp_path / "out").glob("*.pte"))


def test_an_onnx_file_is_converted_and_proven(tmp_path: Path) -> None:
    model = Path(__file__).parents[2] / "examples" / "tiny_vision.onnx"
    report = zs.convert(model, "executorch", tmp_path / "out")
    assert report.output == str(tmp_path / "out" / "tiny_vision.executorch.pte"), report
    assert set(outcomes(report)) == {Outcome.AGREES}


@pytest.mark.parametrize(
    ("op", "shapes", "dtype"),
    [
        ("add", [(5, 5), (5,)], "float32"),
        ("mul", [(2, 0, 3), (1, 1)], "int32"),
        ("logical_and", [(3, 1), (1, 4)], "bool"),
        ("where", [(2, 1), (3,), ()], "float32"),
    ],
)
def test_ops_broadcast_as_the_table_says(op: str, shapes: Any, dtype: str) -> None:
    from zerostride.runtimes.process import interpreter_for, running
    from zerostride.runtimes.task import Form, ReplyKind, Task

    rng = np.random.default_rng(0)
    arrays = [np.array(rng.uniform(0, 4, shape)).astype(dtype) for shape in shapes]
    if op == "where":
        arrays[0] = arrays[0] > 2
    assert interpreter_for("executorch") == os.environ["ZEROSTRIDE_PYTHON_EXECUTORCH"]
    with running("executorch", 60) as process:
        reply = process.ask(Task(Form.CALL, op), arrays)
    assert reply.kind is ReplyKind.RESULT, reply
    plan = zs.plan(*shapes, engine="executorch", op=op)
    assert reply.arrays[0].shape == plan.shape
    expected = getattr(np, {"mul": "multiply"}.get(op, op))(*arrays)
    assert (reply.arrays[0] == expected).all()
