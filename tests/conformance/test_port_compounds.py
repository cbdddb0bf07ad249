"""Ports that write compound ops out, on the engines: the numbers are those of ONNX Runtime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import zerostride as zs
from sampled import few

onnx = pytest.importorskip("onnx", reason="writes the models")
from compound_cases import CASES, Case  # noqa: E402 - onnx may be missing

from zerostride.models.execute import execute  # noqa: E402
from zerostride.models.formats import read_model  # noqa: E402

pytestmark = pytest.mark.conformance


def attention(number: int) -> Case:
    """Attention of ai.onnx with grouped heads, a mask, and a past in some cases."""
    rng = np.random.default_rng(number)

    def floats(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape).astype(np.float32)

    past = number % 2 * 2
    arrays = {
        "query": floats(1, 4, 3, 8),
        "key": floats(1, 2, 3, 8),
        "value": floats(1, 2, 3, 8),
        "mask": floats(3, 3 + past),
        **{name: floats(1, 2, past, 8) if past else None for name in ("past_key", "past_value")},
    }
    attributes = {"is_causal": number % 3 % 2, "softcap": 2.0 if number % 4 == 1 else 0.0}
    return Case("Attention", "", attributes, arrays, outputs=3 if past else 1)


DRAWN = {**CASES, "ai.onnx.Attention": attention}


@pytest.mark.parametrize("target", ["openvino", "mnn", "ncnn"])
@pytest.mark.parametrize("op", few(1, DRAWN))
def test_the_engine_computes_what_onnxruntime_computes(
    tmp_path: Path, op: str, target: str
) -> None:
    pytest.importorskip({"mnn": "MNN"}.get(target, target))
    runtime = pytest.importorskip("onnxruntime")
    path, goal = tmp_path / "compound.onnx", tmp_path / "ported.onnx"
    ported = agree = 0
    for number in range(4 if target == "ncnn" else 3):
        case = DRAWN[op](number)
        onnx.save(case.model(), path)
        report = zs.port(path, target, goal)
        if not report.changes:
            continue
        assert report.ok, str(report)
        session = runtime.InferenceSession(str(path))
        results = execute(read_model(goal), case.feeds())
        pairs = zip(session.run(None, case.feeds()), results.values(), strict=True)
        for position, pair in enumerate(pairs):
            expected, result = (case.defined(position, each) for each in pair)
            np.testing.assert_allclose(
                result, expected, rtol=1e-3, atol=case.tolerance * 10, err_msg=str(case)
            )
        proof = zs.convert(str(goal), target, output=tmp_path / "out", inputs=case.feeds())
        # OpenVINO's largest number of a row of -inf is the least float, and its softmax the same.
        outcomes = {check.outcome for check in proof.checks if not check.node}
        assert "differs" not in outcomes, f"{case}: {proof}"
        agree += outcomes == {"agrees"}
        ported += 1
    # pnnx writes whole numbers and five axes so that ncnn loads no layer of it.
    assert agree == ported or (target == "ncnn" and agree)
