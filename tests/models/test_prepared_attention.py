"""Attention written as products, a sum and a softmax, for converters that lack it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
from campaigns.attention.draw import Call, draw  # noqa: E402
from campaigns.attention.runners import onnx_model  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402 - onnx may be missing

from zerostride.attention.rows import find_rule  # noqa: E402
from zerostride.models.formats.onnx.prepared import with_functions  # noqa: E402


def called(op: str, number: int) -> Call:
    """A call that ONNX's document takes, of lengths above 0."""
    rule = replace(find_rule(None, op), engine="openvino")
    return draw(rule, number, seed=4)


@pytest.mark.parametrize("op", ["Attention-23", "Attention"])
def test_it_computes_what_the_document_says(tmp_path: Path, op: str) -> None:
    masked = 0
    for number in range(60):
        call = called(op, number)
        model, feeds = onnx_model(call)
        path = tmp_path / "attention.onnx"
        onnx.save(model, path)
        assert with_functions(path, frozenset({"Attention"})) == ("Attention",)
        written = onnx.load(path)
        ops = {node.op_type for node in written.graph.node}
        assert "Expand" not in ops  # no head is copied
        assert "Tile" not in ops
        names = ("query", "key", "value", "mask")
        arrays = [call.arrays[name] for name in names if name in call.arrays]
        past = {name: call.arrays[name] for name in feeds if name.startswith("past")}
        meant = replace(call, arguments={**call.arguments, "engine": None}).plan()
        expected = meant.compute(*arrays, **past)
        with np.errstate(all="ignore"):
            (result, *_) = ReferenceEvaluator(written).run(None, feeds)
        np.testing.assert_allclose(result, expected, rtol=1e-3, atol=1e-4, err_msg=str(call))
        masked += "mask" in call.arrays
    assert masked > 20


def test_what_is_not_known_stays(tmp_path: Path) -> None:
    call = called("Attention", 0)
    model, _ = onnx_model(call)
    for value in model.graph.input:
        value.type.tensor_type.shape.dim[0].dim_param = "B"
    path = tmp_path / "attention.onnx"
    onnx.save(model, path)
    with_functions(path, frozenset())
    assert [node.op_type for node in onnx.load(path).graph.node] == ["Attention"]
