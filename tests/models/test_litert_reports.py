"""Reports about LiteRT's GPU delegate: the audit's verdicts, and the port's cure."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from ir_models import Ir
from litert_reports import REPORTS
from small import model, node
from test_evidence import quiet

import zerostride as zs


@pytest.mark.parametrize("name", REPORTS)
def test_report_is_judged_and_cured(name: str, tmp_path: Path) -> None:
    row = REPORTS[name]
    file, ported = row.make().write(tmp_path / "m.tflite"), tmp_path / "p.tflite"
    report = quiet(zs.audit, file, target="litert-gpu")
    assert tuple(str(finding.verdict) for finding in report.findings) == row.verdicts
    if row.cured:
        after = quiet(zs.port, file, target="litert-gpu", output=ported)
        assert {str(finding.verdict) for finding in after.findings} == {"same"}
        assert len(after.changes) == sum(verdict != "same" for verdict in row.verdicts)


@pytest.mark.parametrize("target", ["coreml", "tosa", "litert-gpu"])
def test_engine_without_broadcast_op_gets_a_tile(target: str, tmp_path: Path) -> None:
    weights = {"target": np.array([1, 4, 8, 8], np.int64)}
    content = model([node("Expand", "x target")], {"x": [1, 4, 1, 8]}, weights)
    file, ported = tmp_path / "m.onnx", tmp_path / "p.onnx"
    onnx.save(content, file)
    report = quiet(zs.port, file, target=target, output=ported)
    assert report.ok
    graph = onnx.load(ported).graph
    (entry,) = graph.node
    values = {
        tensor.name: onnx.numpy_helper.to_array(tensor).tolist() for tensor in graph.initializer
    }
    assert (entry.op_type, values[entry.input[1]]) == ("Tile", [1, 1, 8, 1])


def test_intermediate_representation_gets_a_tile(tmp_path: Path) -> None:
    ir = Ir()
    x, to = ir.parameter("x", (1, 4, 1, 8)), ir.constant("to", np.array([1, 4, 8, 8], np.int64))
    ir.result(ir.layer("y", "Broadcast", [x, to], (1, 4, 8, 8), 'mode="numpy"'))
    ported = tmp_path / "p.xml"
    report = quiet(zs.port, ir.save(tmp_path / "m.xml"), target="tosa", output=ported)
    assert report.ok
    assert len(report.changes) == 1
    assert 'type="Tile"' in ported.read_text()
