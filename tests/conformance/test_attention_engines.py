"""Attention on real engines: what is refused, and every number.

`python -m campaigns attention` asks more of the same.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from campaigns.attention.judge import judge, rules

import zerostride as zs
from zerostride.attention.rules import AttentionRule


def calls(rule: AttentionRule) -> int:
    """The number of calls; more of ONNX Runtime's own ops, whose operands have many forms."""
    return 300 if "com.microsoft" in rule.source else 120


@pytest.mark.slow
@pytest.mark.parametrize("rule", tuple(rules(())), ids=lambda rule: rule.name)
def test_an_engine_attends_as_its_row_says(rule: AttentionRule) -> None:
    pytest.importorskip(rule.engine.partition(".")[0])
    tally = judge(rule, calls(rule), 0, 0)
    assert tally.wrong == []
    assert tally.counts["computed"] > calls(rule) / 4


#: Attributes, and whether there is a mask: grouped heads, causal, with a past, and with a mask.
FORMS: dict[str, tuple[dict[str, int], tuple[str, ...]]] = {
    "plain": ({}, ()),
    "causal": ({"is_causal": 1}, ("past_key", "past_value")),
    "masked": ({}, ("mask",)),
}


@pytest.mark.parametrize("target", ["openvino", "mnn", "ncnn"])
@pytest.mark.parametrize("form", FORMS)
def test_an_attention_is_converted_and_proven(tmp_path: Path, form: str, target: str) -> None:
    """OpenVINO begins the causal mask elsewhere, others have no attention: it is written out."""
    pytest.importorskip({"openvino": "openvino", "mnn": "MNN", "ncnn": "ncnn"}[target])
    onnx = pytest.importorskip("onnx")
    attributes, more = FORMS[form]
    shapes = {"query": (1, 4, 3, 8), "key": (1, 2, 5, 8), "value": (1, 2, 5, 8)}
    others = {"mask": (3, 5), "past_key": (1, 2, 2, 8), "past_value": (1, 2, 2, 8)}
    shapes |= {name: others[name] for name in more}
    order = [name if name in shapes else "" for name in ("query", "key", "value", *others)]
    outputs = ["y", "present_key", "present_value"] if "past_key" in shapes else ["y"]
    helper = onnx.helper
    graph = helper.make_graph(
        [helper.make_node("Attention", order, outputs, "attend", **attributes)],
        "g",
        [helper.make_tensor_value_info(name, 1, shape) for name, shape in shapes.items()],
        [helper.make_tensor_value_info(name, 1, None) for name in outputs],
    )
    path = tmp_path / "attention.onnx"
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11), path
    )
    report = zs.convert(str(path), target, output=tmp_path / "out")
    assert report.ok, str(report)
    assert all(check.outcome == "agrees" for check in report.checks)
