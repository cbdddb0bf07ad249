"""Verdicts compared with what the engines' own readers and converters make of random models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from sampled import few

pytest.importorskip("onnx", reason="the models are made with the onnx package")
pytest.importorskip("onnxruntime", reason="the reference is an extra, not a test need")

from campaigns.front_doors.judge import Judged, measure

pytestmark = pytest.mark.conformance

#: An engine, and the packages of its reader or converter.
DOORS = {"ncnn": ("pnnx", "ncnn"), "mnn": ("MNN",), "openvino": ("openvino",)}
DOORS["litert"] = ("litert_torch", "ai_edge_litert")
#: Ops of which pnnx writes other layers by their element types, constants or shapes.
BY_PNNX = ["Add", "Clip", "Div", "Expand", "Gemm", "MatMul", "Min", "Mod", "Pow"]
BY_PNNX += ["BatchNormalization", "LayerNormalization", "RMSNormalization"]
#: Ops that mnnconvert refuses or gets wrong by their element types and sizes.
BY_MNNCONVERT = ["DequantizeLinear", "Gemm", "MatMul", "PRelu", "QuantizeLinear"]
BY_MNNCONVERT += ["Greater", "LessOrEqual"]

#: Ops that OpenVINO's frontend writes out, in other element types.
BY_FRONTEND = ["BitShift", "Clip", "DequantizeLinear", "Mean", "QuantizeLinear"]


def needed(engine: str) -> None:
    for name in DOORS[engine]:
        pytest.importorskip(name, reason="the engine is an extra, not a test need")


def contradicted(every: Sequence[Judged]) -> list[str]:
    return [f"{one.number} {one.words}: {one.contradiction}" for one in every if one.contradiction]


@pytest.mark.slow
@pytest.mark.parametrize("engine", DOORS)
def test_no_verdict_is_contradicted(engine: str) -> None:
    needed(engine)
    every = list(measure(engine, 0, 60, 7))
    assert not contradicted(every)
    counts = Counter(one.verdict for one in every)
    assert counts["same"] > 2 < len(every) - counts["same"]
    assert counts["unknown"] < 3


@pytest.mark.parametrize("op", few(2, BY_PNNX))
def test_ops_have_pnnxs_verdict(op: str) -> None:
    needed("ncnn")
    assert not contradicted(list(measure("ncnn", 0, 12, 3, op)))


@pytest.mark.parametrize("op", few(2, BY_MNNCONVERT))
def test_ops_have_mnnconverts_verdict(op: str) -> None:
    needed("mnn")
    assert not contradicted(list(measure("mnn", 11, 40, 911, op)))


@pytest.mark.parametrize("op", few(1, BY_FRONTEND))
def test_ops_have_the_frontends_verdict(op: str) -> None:
    needed("openvino")
    assert not contradicted(list(measure("openvino", 0, 60, 50, op)))
