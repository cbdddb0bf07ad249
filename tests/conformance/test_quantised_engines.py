"""Quantisation under the engines' rows beside the engines: a sample of the campaign."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("onnx", reason="the models are made with the onnx package")
pytest.importorskip("ml_dtypes", reason="it has the types of 4 bits")

from campaigns.__main__ import main
from campaigns.quantisation.composed import COMPOSED, has_vnni, measure_composed, products
from campaigns.quantisation.draw import Case, draw
from campaigns.quantisation.engines import MODULES, RUNNERS, on_ncnn
from campaigns.quantisation.judge import differs, measure
from campaigns.quantisation.ranges import measure_ranges

import zerostride as zs
from zerostride.quantisation import QUANTIZERS

pytestmark = pytest.mark.conformance


@pytest.mark.parametrize("engine", list(RUNNERS))
def test_rows_predict_the_engine(engine: str) -> None:
    pytest.importorskip(MODULES[engine], reason="an engine is an extra, not a test need")
    count = 60 if engine == "openvino" else 200
    result = measure(engine, 1, 0, count)
    assert not result.shown, result.shown
    assert result.cases == count
    assert result.equal > count * 0.7


@pytest.mark.parametrize(("engine", "op"), list(COMPOSED))
def test_composed_ops_match(engine: str, op: str) -> None:
    pytest.importorskip(MODULES[engine], reason="an engine is an extra, not a test need")
    result = measure_composed(engine, op, 1, 0, 20)
    assert not result.shown, result.shown


def test_levels_of_fake_quantize_match() -> None:
    pytest.importorskip("openvino", reason="an engine is an extra, not a test need")
    result = measure_ranges(1, 0, 20)
    assert not result.shown, result.shown
    assert result.equal == 20


def test_every_row_is_run() -> None:
    assert set(RUNNERS) == set(QUANTIZERS) == set(MODULES)


def test_comparison_finds_a_wrong_row() -> None:
    """ONNX Runtime's cases beside an answer that is one off."""

    def off(case):
        result = RUNNERS["onnx.reference"](case)
        return None if result is None else result.astype(np.float64) + 1

    assert measure("onnx.reference", 1, 0, 20, off).wrong > 10
    assert differs(np.zeros(2), np.zeros(3))
    assert "refused there" in differs(np.zeros(2), None)
    assert not differs(np.float32([np.nan, 1]), np.float32([np.nan, 1]))


def test_draws_have_ties_ends_and_nan() -> None:
    cases = [draw("onnxruntime", 1, number) for number in range(200)]
    numbers = np.concatenate([c.x.astype(np.float64).ravel() for c in cases if c.op == "quantize"])
    assert np.isnan(numbers).any()
    assert np.isinf(numbers).any()
    assert {case.opset for case in cases} == {10, 13, 19, 21, 23, 24, 25}
    assert any(case.block for case in cases)
    assert str(replace(cases[0], axis=0))


def test_products_of_bytes_saturate_in_pairs_without_vnni() -> None:
    a, b = np.full((1, 2), 255, np.uint8), np.full((2, 1), 127, np.int8)
    zero = np.zeros((), np.int8)
    assert products(a, b, zero, zero, pairs=False) == 2 * 255 * 127
    assert products(a, b, zero, zero, pairs=True) == 2**15 - 1
    assert products(a, b.astype(np.uint8), zero, zero, pairs=True) == 2 * 255 * 127
    assert has_vnni() in (True, False)


def test_campaign_prints_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["quantisation", "--engine", "onnx.reference", "--cases", "5", "--json"]) == 0
    assert '"wrong": 0' in capsys.readouterr().out
    assert main(["quantisation", "--engine", "nobody"]) == 2


@pytest.mark.parametrize("shape", [(3,), (5,), (8,), (6, 5), (8, 5), (5, 3, 3), (4, 3, 3), (9, 1)])
def test_ncnn_rounds_what_lanes_leave_over_exactly(shape: tuple[int, ...]) -> None:
    """The last number below a tie: with 0.5 it is rounded up to the next whole number in lanes."""
    pytest.importorskip("ncnn", reason="an engine is an extra, not a test need")
    x = np.full(shape, np.nextafter(np.float32(-0.5), np.float32(0)))
    mine = zs.quantize(x, 1.0, dtype="int8", engine="ncnn")
    theirs = on_ncnn(Case("ncnn", "quantize", x, np.float32(1), None, None, None, "int8", None))
    np.testing.assert_array_equal(mine, theirs)


def test_openvino_quantises_one_block_that_is_longer_than_its_axis() -> None:
    """With one number as scale; the way back is refused."""
    pytest.importorskip("openvino", reason="an engine is an extra, not a test need")
    x, one = np.float32([[1.2], [3.4], [-5.0]]), np.ones((1, 1), np.float32)
    zero = np.zeros((1, 1), np.int8)
    case = Case("openvino", "quantize", x, one, zero, 0, 5, "int8", 25)
    how = {"axis": 0, "block": 5, "engine": "openvino"}
    mine = zs.quantize(x, one, zero, dtype="int8", **how)
    np.testing.assert_array_equal(RUNNERS["openvino"](case), mine)
    back = Case("openvino", "dequantize", mine, one, zero, 0, 5, "int8", 25)
    with pytest.raises(zs.BroadcastError, match="longer than its axis"):
        zs.dequantize(mine, one, zero, **how)
    try:
        answer = RUNNERS["openvino"](back)
    except Exception:  # noqa: BLE001 - whatever an engine raises is how it refuses
        answer = None
    assert answer is None
