"""ScaledDotProductAttention of IR files is judged by the rows of attention."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ir_models import Ir

import zerostride as zs
from zerostride.models.execute.run import execute
from zerostride.models.formats import read_model
from zerostride.models.formats.openvino.sites import find_site
from zerostride.models.ir.graph import Node, Value

OP = "ScaledDotProductAttention"
QKV = ((2, 4, 5, 8), (2, 4, 7, 8), (2, 4, 7, 6))


def audited(path: Path, target: str, *shapes: Any, causal: bool = False, **how: Any) -> Any:
    """The finding of a file of one attention; an array is a constant."""
    model = Ir()
    kinds = how.get("kinds", {})
    parts = [
        model.constant(f"x{k}", shape)
        if isinstance(shape, np.ndarray)
        else model.parameter(f"x{k}", shape, kinds.get(k, "f32"))
        for k, shape in enumerate(shapes)
    ]
    data = f'causal="{str(causal).lower()}"'
    model.result(model.layer("n", OP, parts, ("?",) * 4, data, "opset13"))
    (finding,) = zs.audit(model.save(path / "m.xml"), target).findings
    return finding


def test_no_site_where_nothing_can_repeat() -> None:
    for shapes, version in ((QKV, 13), ((*QKV, ()), 13)):
        values = tuple(Value(f"v{k}", shape) for k, shape in enumerate(shapes))
        assert find_site(Node("n", OP, "openvino", version, values, values[:1])) is None


@pytest.mark.parametrize(
    ("shapes", "result"),
    [
        (((2, 4, 5, 8), (2, 1, 7, 8), (2, 4, 7, 6)), (2, 4, 5, 6)),
        (((1, 4, 5, 8), (1, 4, 7, 8), (1, 4, 7, 6), (2, 1, 5, 7)), (2, 4, 5, 6)),
        (((4, 5, 8), (2, 1, 7, 8), (4, 7, 6), (5, 1)), (2, 4, 5, 6)),
    ],
)
@pytest.mark.parametrize("target", ["openvino", "litert", "tosa"])
def test_operands_repeat(tmp_path: Path, shapes: Any, result: Any, target: str) -> None:
    finding = audited(tmp_path, target, *shapes)
    assert (finding.verdict, finding.source.shape) == ("same", result), finding.message


def test_a_mask_repeats_on_other_engines_as_their_rows_say(tmp_path: Path) -> None:
    verdicts = {
        target: audited(tmp_path, target, *QKV, (5, 1)).verdict
        for target in ("openvino", "torch", "onnxruntime", "ncnn", "mnn")
    }
    assert verdicts == {
        "openvino": "same",
        "torch": "same",
        "onnxruntime": "refused",  # a mask of one key
        "ncnn": "different",
        "mnn": "different",
    }


def test_a_mask_beside_causal_is_not_read(tmp_path: Path) -> None:
    finding = audited(tmp_path, "torch", *QKV, (5, 7), causal=True)
    assert (finding.verdict, finding.code) == ("refused", "ZS219")
    assert "exclude each other" in finding.message
    other = audited(tmp_path, "onnxruntime", *QKV, (5, 7), causal=True)
    assert (other.verdict, other.code) == ("different", "ZS117")
    assert "mask: it has query and key, in the model none is read" in other.message
    assert audited(tmp_path, "openvino", *QKV, (5, 7), causal=True).source.mask is None
    assert audited(tmp_path, "ncnn", *QKV, causal=True).verdict == "refused"


def test_scale_and_sink_are_read(tmp_path: Path) -> None:
    half = np.array(0.5, np.float32)
    finding = audited(tmp_path, "openvino", *QKV, (5, 7), half, (1, 4, 1, 1))
    assert (finding.verdict, finding.source.scale, finding.source.asked.sink) == ("same", 0.5, True)
    assert "has no sink" in audited(tmp_path, "torch", *QKV, (5, 7), half, (1, 4, 1, 1)).message
    computed = audited(tmp_path, "openvino", *QKV, (5, 7), (1,))
    assert computed.notes == ("its scale is computed in the model",)


@pytest.mark.parametrize(
    ("shapes", "words"),
    [
        (((1, *QKV[0]), *QKV[1:]), "more than 4 axes"),
        (((5, 8), *QKV[1:]), "fewer than 3 axes"),
        ((*QKV, (5, 7), np.array(1.0, np.float32), (4,)), "a sink of other axes"),
    ],
)
def test_parts_that_are_not_modelled_are_named(tmp_path: Path, shapes: Any, words: str) -> None:
    finding = audited(tmp_path, "openvino", *shapes)
    assert (finding.verdict, finding.reason) == ("unknown", "not_modelled")
    assert words in finding.message


def test_a_value_of_more_axes_is_refused(tmp_path: Path) -> None:
    finding = audited(tmp_path, "openvino", (4, 5, 8), (4, 7, 8), (2, 4, 7, 6))
    assert (finding.verdict, finding.reason) == ("refused", "no_op")
    assert "a value of more axes than the scores have" in finding.message


def test_open_sizes_are_judged(tmp_path: Path) -> None:
    shapes = (("?", 4, "?", 8), ("?", 4, "?", 8), ("?", 4, "?", 8), ("?", 1, "?", "?"))
    assert audited(tmp_path, "openvino", *shapes).verdict == "same"
    assert audited(tmp_path, "openvino", *shapes[:3], causal=True).verdict == "same"


@pytest.mark.parametrize("sizes", [((2, 4, 5, 8), (2, 4, 7, 8)), (("?", 4, "?", 8),) * 2])
def test_a_causal_attention_is_run(tmp_path: Path, sizes: Any) -> None:
    """Its mask is not read; sizes may be open."""
    model, rng = Ir(), np.random.default_rng(0)
    shapes = ((2, 4, 5, 8), (2, 4, 7, 8), (2, 4, 7, 8), (5, 7))
    parts = [model.parameter(f"x{k}", each) for k, each in enumerate((*sizes, sizes[1], (5, 7)))]
    model.result(model.layer("n", OP, parts, ("?",) * 4, 'causal="true"', "opset13"))
    arrays = [rng.normal(size=shape).astype(np.float32) for shape in shapes]
    feeds = {f"x{k}": array for k, array in enumerate(arrays)}
    (result,) = execute(read_model(model.save(tmp_path / "m.xml")), feeds).values()
    plan = zs.plan_attention(*shapes, engine="openvino", op=OP, causal=True)
    np.testing.assert_allclose(result, plan.compute(*arrays[:3]), atol=1e-5)
    assert plan.mask is None
