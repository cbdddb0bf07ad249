"""Quantised tensors of LiteRT's files: verdicts against the interpreter."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from zerostride.models.findings import Outcome
from zerostride.runtimes.verify.checks import verify

sys.path.insert(0, str(Path(__file__).parents[1] / "models"))

import tflite_files

pytest.importorskip("ai_edge_litert", reason="LiteRT runs the ops")

#: Element-wise ops with quantised kernels, or that may be written so.
OPS = "ADD SUB MUL DIV MAXIMUM MINIMUM POW FLOOR_DIV FLOOR_MOD SQUARED_DIFFERENCE PRELU EQUAL "
OPS += "NOT_EQUAL LESS LESS_EQUAL GREATER GREATER_EQUAL SELECT_V2 BROADCAST_TO"


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
@pytest.mark.parametrize("op", OPS.split())
def test_quantised_ops_are_judged_as_they_run(op: str, dtype: str, tmp_path: Path) -> None:
    """A `same` agrees with the interpreter; an op that it refuses or gets wrong is not `same`."""
    model = tflite_files.Model()
    graph = model.main
    scale: dict[str, Any] = {"scales": (0.1,), "zeros": (0 if dtype == "int16" else 3,)}
    names = ["x", "s"]
    if op == "SELECT_V2":
        names.insert(0, graph.input("c", 2, 1, dtype="bool"))
    graph.input("x", 2, 3, dtype=dtype, **scale)
    if op == "BROADCAST_TO":
        graph.constant("s", np.array([4, 2, 3], np.int32))
    else:
        graph.input("s", 3, dtype=dtype, **scale)
    kept = op in ("MAXIMUM", "MINIMUM", "SELECT_V2", "BROADCAST_TO")
    if op in ("EQUAL", "NOT_EQUAL") or op.startswith(("LESS", "GREATER")):
        graph.add("y", (2, 3), "bool")
    else:
        graph.add("y", (2, 3), dtype, **(scale if kept else {**scale, "scales": (0.2,)}))
    graph.op(op, " ".join(names), "y", pot_scale_int16=False)
    graph.output("y")
    report = verify(model.write(tmp_path / "m.tflite"), "litert", cache=False)
    (finding,), (check,) = report.findings, report.checks
    if finding.verdict == "same":
        assert check.outcome is Outcome.AGREES, check.detail
    else:
        assert finding.verdict == ("refused" if finding.reason == "dtype" else "different")


@pytest.mark.parametrize(("dtype", "expected"), [("int8", "same"), ("int16", "refused")])
@pytest.mark.parametrize("op", ["ADD", "MUL"])
def test_nine_axes_of_quantised_tensors(op: str, dtype: str, expected: str, tmp_path: Path) -> None:
    """Sums and products of int16 stretch up to 8 axes; beyond, the process ends."""
    model = tflite_files.Model()
    scale: dict[str, Any] = {"scales": (0.1,), "zeros": (0,)}
    model.main.input("x", *(2, 1, 1, 1, 4, 2, 1, 3, 2), dtype=dtype, **scale)
    model.main.input("s", 2, dtype=dtype, **scale)
    model.main.add("y", (), dtype, ranked=False, **{**scale, "scales": (0.2,)})
    options = {"pot_scale_int16": False} if op == "ADD" else {}
    model.main.op(op, "x s", "y", **options)
    model.main.output("y")
    report = verify(model.write(tmp_path / "m.tflite"), "litert", cache=False)
    (finding,), (check,) = report.findings, report.checks
    assert finding.verdict == expected
    assert check.outcome is (Outcome.AGREES if expected == "same" else Outcome.CRASHED)
