"""Modules of PyTorch with attention as people write it: audited for every converter's engine."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

import zerostride as zs
from sampled import few
from zerostride.models.findings import Verdict
from zerostride.models.formats import read_model
from zerostride.models.onnx_ops.attention_patterns import attention_roles

torch: Any = pytest.importorskip("torch", reason="the models are modules of PyTorch")
pytest.importorskip("onnxscript", reason="PyTorch's exporter needs it")

attentions: Any = pytest.importorskip("campaigns.architectures.attentions")

pytestmark = pytest.mark.conformance

ENGINES = ("openvino", "mnn", "ncnn", "litert", "tensorrt", "coreml", "onnxruntime")


@pytest.mark.parametrize("name", few(8, attentions.ATTENTIONS))
def test_every_broadcast_is_decided_and_found_at_its_line(name: str, tmp_path: Path) -> None:
    module, inputs = attentions.attention(name)
    file = str(tmp_path / f"{name}.onnx")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's exporter warns of its own code
        torch.onnx.export(module, inputs, file, dynamo=True, external_data=False, verbose=False)
    lines = Path(attentions.__file__).read_text().splitlines()
    roles = attention_roles(read_model(Path(file)))
    assert sum("multiplies its weights by the values" in role for role in roles.values())
    assert any("(rotary)" in role for role in roles.values()) is (name in ("llama", "rotated"))
    repeated = name in ("capped", "grouped", "llama", "rotated")
    assert any("repeats each key head" in role for role in roles.values()) is repeated
    for engine in ENGINES:
        report = zs.audit(file, engine)
        assert report.findings
        for finding in report.findings:
            assert finding.verdict is not Verdict.UNKNOWN, (engine, finding)
            if finding.verdict in (Verdict.SAME, Verdict.SAME_HERE):
                continue
            origin = finding.origin
            assert origin is not None, (engine, finding)
            if Path(origin.file).name == "attentions.py":
                assert lines[origin.line - 1].strip() == origin.code, (engine, finding)
