"""Conversions of ONNX Runtime's attentions and of rotary embeddings: proven, or why not."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zerostride as zs
from sampled import few

onnx = pytest.importorskip("onnx", reason="writes the models")
from compound_cases import Case  # noqa: E402 - onnx may be missing

pytestmark = pytest.mark.conformance


def floats(*shape: int) -> Any:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


_LOCAL = "com.microsoft"
_ANGLES = {"cos": floats(12, 8), "sin": floats(12, 8)}
_THREE = {name: floats(1, 3, 32) for name in ("query", "key", "value")}
_PAST = {name: floats(1, 2, 4, 16) for name in ("past_key", "past_value")}
_GROUPED = {"query": floats(1, 1, 64), "key": floats(1, 1, 32), "value": floats(1, 1, 32)}
_TOTAL = {"lengths": np.array([4], np.int32), "total": np.array([5], np.int32)}
_HEADS = {"num_heads": 4, "kv_num_heads": 2}
_HELD = {"cos", "sin", "total"}
CASES = {
    "rotary": Case(
        "RotaryEmbedding",
        "",
        {"num_heads": 2, "interleaved": 1},
        {"x": floats(1, 3, 32), **_ANGLES, "ids": np.array([[4, 0, 7]])},
        _HELD,
    ),
    "local rotary": Case(
        "RotaryEmbedding",
        _LOCAL,
        {"num_heads": 2, "rotary_embedding_dim": 16},
        {"x": floats(1, 3, 40), "ids": np.array([[4, 0, 7]]), **_ANGLES},
        _HELD,
    ),
    "multi head": Case(
        "MultiHeadAttention",
        _LOCAL,
        {"num_heads": 2, "unidirectional": 1},
        {**_THREE, "bias": floats(96), "padding": np.array([[1, 0, 1]], np.int32)},
    ),
    "two masks": Case(
        "MultiHeadAttention",
        _LOCAL,
        {"num_heads": 2},
        {
            **_THREE,
            "bias": None,
            "padding": np.array([[1, 0, 1]], np.int32),
            "added": floats(1, 2, 3, 3),
        },
    ),
    "projected": Case(
        "Attention",
        _LOCAL,
        {"num_heads": 2, "unidirectional": 1},
        {"input": floats(1, 3, 16), "weights": floats(16, 48), "bias": floats(48)},
        {"weights", "bias"},
    ),
    "prompt": Case(
        "GroupQueryAttention",
        _LOCAL,
        {**_HEADS, "do_rotary": 1, "local_window_size": 2},
        {
            "query": floats(1, 3, 128),
            **dict.fromkeys(("key", "value", *_PAST)),
            "lengths": np.array([2], np.int32),
            "total": np.array([3], np.int32),
            **_ANGLES,
        },
        _HELD | {"lengths"},
        3,
    ),
    "step": Case(
        "GroupQueryAttention",
        _LOCAL,
        {**_HEADS, "softcap": 2.0},
        {**_GROUPED, **_PAST, **_TOTAL},
        _HELD,
        3,
    ),
    "rotated step": Case(
        "GroupQueryAttention",
        _LOCAL,
        {**_HEADS, "do_rotary": 1},
        {**_GROUPED, **_PAST, **_TOTAL, **_ANGLES},
        _HELD,
        3,
    ),
    "sink": Case(
        "GroupQueryAttention",
        _LOCAL,
        {**_HEADS, "smooth_softmax": 1},
        {**_GROUPED, **_PAST, **_TOTAL},
        _HELD,
        3,
    ),
}
#: Why a case is not converted; pnnx crashes in some runs.
REFUSED = {
    ("rotated step", "ncnn"): "no layers Tensor.to|pnnx: it was ended by SIGSEGV",
    ("sink", "mnn"): "no conversion of the ops GroupQueryAttention",
    ("sink", "ncnn"): "pnnx: it was ended by SIGSEGV",
    ("sink", "openvino"): "GroupQueryAttention",
}


@pytest.mark.parametrize("target", ["openvino", "mnn", "ncnn"])
@pytest.mark.parametrize("name", few(4, CASES))
def test_it_is_proven_or_refused_with_a_reason(tmp_path: Path, name: str, target: str) -> None:
    pytest.importorskip({"mnn": "MNN"}.get(target, target))
    path = tmp_path / "compound.onnx"
    onnx.save(CASES[name].model(), path)
    report = zs.convert(str(path), target, output=tmp_path / "out")
    reason = REFUSED.get((name, target))
    if reason is None:
        assert report.ok, str(report)
        assert all(check.outcome == "agrees" for check in report.checks)
        return
    assert not report.ok
    assert re.search(reason, "; ".join(check.detail for check in report.checks))
