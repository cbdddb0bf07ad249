"""Reports of quantised models that went wrong: what zerostride says, what engines do today."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="the models are made with the onnx package")
pytest.importorskip("onnxruntime", reason="an engine is an extra, not a test need")

from campaigns.quantisation import blocks
from campaigns.quantisation.engines import model, on_onnxruntime, on_openvino

import zerostride as zs
from zerostride.models.findings import Verdict

pytestmark = pytest.mark.conformance

F = np.float32
FLOAT, INT8, UINT8 = 1, 3, 2


def blocks_of_two() -> list[Any]:
    """openvinotoolkit/openvino#32918: elements were interleaved among the blocks' scales."""
    four = np.arange(1, 5)
    return [np.full((1, 8), 9, np.uint8), four.reshape(1, 4).astype(F), four.reshape(1, 4)]


def test_blocks_are_runs_of_neighbours() -> None:
    q, scale, zero = blocks_of_two()
    wanted = [[8, 8, 14, 14, 18, 18, 20, 20]]
    assert zs.dequantize(q, scale, zero, axis=1, block=2).tolist() == wanted
    plan = zs.plan_quantization(q.shape, scale.shape, axis=1, block=2)
    assert plan.plan.strides(1, (16, 4)) == (16, 4, 0)  # a scale, and then its repetition
    operands = [q, scale, zero.astype(np.uint8)]
    file = model("DequantizeLinear", operands, {"axis": 1, "block_size": 2}, 21, result=FLOAT)
    assert on_onnxruntime(*file)[0].tolist() == wanted
    pytest.importorskip("openvino", reason="an engine is an extra, not a test need")
    assert on_openvino(*file)[0].tolist() == wanted  # since the fix


@pytest.mark.parametrize("engine", ["onnxruntime", "openvino"])
def test_blocks_of_another_axis_are_named(engine: str, tmp_path: Path) -> None:
    """openvinotoolkit/openvino#37900: NNCF wrote axis 0 for blocks along the last axis."""
    operands = [np.ones((8, 64), np.uint8), np.ones((8, 2), F)]
    file = tmp_path / "blocks.onnx"
    for axis, verdict in ((0, Verdict.REFUSED), (1, Verdict.SAME)):
        attributes = {"axis": axis, "block_size": 32}
        built, feeds = model("DequantizeLinear", operands, attributes, 21, result=FLOAT)
        file.write_bytes(built.SerializeToString())
        (finding,) = zs.audit(file, engine).findings
        assert finding.verdict is verdict
    assert on_onnxruntime(built, feeds)[0].shape == (8, 64)
    attributes = {"axis": 0, "block_size": 32}
    with pytest.raises(Exception, match=r"(?i)shape|scale|dim"):
        on_onnxruntime(*model("DequantizeLinear", operands, attributes, 21, result=FLOAT))


@pytest.mark.parametrize(
    ("axis", "sizes", "verdicts"),
    [
        (0, (8, 64), "same same same same"),
        (1, (8, 64), "refused different different same"),
        (1, (8, 4), "refused same same same"),
        (-1, (8, 64), "refused refused refused same"),
        (1, (2, 8, 3), "refused refused different same"),
        (2, (2, 3, 8), "refused refused refused same"),
    ],
)
def test_older_releases_interleave_blocks(
    axis: int, sizes: tuple[int, ...], verdicts: str, tmp_path: Path
) -> None:
    """openvinotoolkit/openvino#32918, as its releases were run."""
    scale = np.ones([n // 4 if k == axis % len(sizes) else n for k, n in enumerate(sizes)], F)
    operands = [np.ones(sizes, np.uint8), scale, scale.astype(np.uint8)]
    attributes = {"axis": axis, "block_size": 4}
    file = tmp_path / "blocks.onnx"
    built = model("DequantizeLinear", operands, attributes, 21, result=FLOAT)
    file.write_bytes(built[0].SerializeToString())
    releases = ("2025.0", "2025.2", "2025.4", "2026.0")
    judged = [zs.audit(file, f"openvino@{name}").findings[0].verdict for name in releases]
    assert judged == verdicts.split()


def test_verdicts_on_blocks_are_what_openvino_does(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("openvino", reason="an engine is an extra, not a test need")
    assert blocks.main() == 0
    assert "60 nodes, 0 wrong" in capsys.readouterr().out


@pytest.mark.parametrize(("axis", "sizes", "block"), [(1, (4, 5), 2), (0, (5,), 3), (1, (4, 3), 8)])
def test_a_block_that_is_cut_off_is_refused_by_openvino_alone(
    axis: int, sizes: tuple[int, ...], block: int, tmp_path: Path
) -> None:
    """ONNX: a scale for each block, the last one included, however short it is."""
    scale = np.arange(1, 13, dtype=F)[: -(-sizes[axis] // block) * (sizes[0] if axis else 1)]
    scale = scale.reshape([*sizes[:axis], -1])
    operands = [np.arange(np.prod(sizes)).astype(np.uint8).reshape(sizes), scale]
    operands.append(scale.astype(np.uint8))
    attributes = {"axis": axis, "block_size": block}
    file = tmp_path / "blocks.onnx"
    built = model("DequantizeLinear", operands, attributes, 21, result=FLOAT)
    file.write_bytes(built[0].SerializeToString())
    verdicts = [zs.audit(file, name).findings[0].verdict for name in ("onnxruntime", "openvino")]
    assert verdicts == ["same", "refused"]
    places = np.arange(sizes[axis]) // block
    whole, offset = (np.take(each, places, axis) for each in operands[1:])
    means = (operands[0].astype(F) - offset.astype(F)) * whole
    np.testing.assert_array_equal(on_onnxruntime(*built)[0], means)
    pytest.importorskip("openvino", reason="an engine is an extra, not a test need")
    with pytest.raises(Exception, match="DequantizeLinear"):
        on_openvino(*built)


def test_an_open_axis_of_blocks_has_a_condition(tmp_path: Path) -> None:
    built = model(
        "DequantizeLinear",
        [np.ones((2, 5), np.uint8), np.ones((2, 3), F)],
        {"axis": 1, "block_size": 2},
        21,
        result=FLOAT,
    )[0]
    built.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "N"
    file = tmp_path / "blocks.onnx"
    file.write_bytes(built.SerializeToString())
    report = zs.audit(file, "onnxruntime")
    assert report.findings[0].verdict == "same"
    assert "(N + 1) // 2 == 3" in str(report.needs[0])
    (finding,) = zs.audit(file, "openvino").findings
    assert (finding.verdict, finding.message) == (
        "unknown",
        "right on openvino if blocks of 2 divide their axis",
    )
    assert zs.audit(file, "openvino", sizes={"N": 6}).findings[0].verdict == "same"
    assert zs.audit(file, "onnxruntime", sizes={"N": 7}).findings[0].verdict == "refused"


@pytest.mark.parametrize(
    ("op", "block", "zeros", "verdicts"),
    [
        ("QuantizeLinear", 1, False, "refused refused refused same"),
        ("QuantizeLinear", 2, True, "refused refused same same"),
        ("QuantizeLinear", 8, True, "same same same same"),
        ("DequantizeLinear", 8, False, "refused same same same"),
    ],
)
def test_older_releases_take_blocks_that_stretch(
    op: str, block: int, zeros: bool, verdicts: str, tmp_path: Path
) -> None:
    data, scale = np.ones((2, 8), F if op[0] == "Q" else np.uint8), np.ones((2, 8 // block), F)
    operands = [data, scale, *([scale.astype(np.uint8)] if zeros else [])]
    file = tmp_path / "blocks.onnx"
    kind = UINT8 if op[0] == "Q" else FLOAT
    built = model(op, operands, {"axis": 1, "block_size": block}, 21, result=kind)
    file.write_bytes(built[0].SerializeToString())
    releases = ("2025.0", "2025.2", "2025.4", "2026.2")
    judged = [zs.audit(file, f"openvino@{name}").findings[0].verdict for name in releases]
    assert judged == verdicts.split()


def test_openvino_takes_blocks_with_zero_points_alone(tmp_path: Path) -> None:
    operands = [np.ones((4, 8), F), np.ones((4, 2), F)]
    file = tmp_path / "blocks.onnx"
    for zeros, verdict in (([], Verdict.REFUSED), ([np.ones((4, 2), np.uint8)], Verdict.SAME)):
        attributes = {"axis": 1, "block_size": 4}
        built = model("QuantizeLinear", operands + zeros, attributes, 21, result=UINT8)
        file.write_bytes(built[0].SerializeToString())
        assert zs.audit(file, "openvino").findings[0].verdict is verdict
        pytest.importorskip("openvino", reason="an engine is an extra, not a test need")
        if verdict is Verdict.SAME:
            assert (on_openvino(*built)[0] == 2).all()
        else:
            with pytest.raises(Exception, match="QuantizeLinear"):
                on_openvino(*built)


def test_the_axis_of_blocks_is_proposed(tmp_path: Path) -> None:
    operands = [np.ones((8, 64), np.uint8), np.ones((8, 2), F)]
    attributes = {"axis": 0, "block_size": 32}
    file = tmp_path / "blocks.onnx"
    built = model("DequantizeLinear", operands, attributes, 21, result=FLOAT)
    file.write_bytes(built[0].SerializeToString())
    (finding,) = zs.audit(file, "openvino").findings
    assert finding.reason == "invalid_source"
    assert "(1, 64), not (8, 2)" in finding.message
    assert "write axis=1" in finding.message


@pytest.mark.parametrize("engine", [None, "onnxruntime", "openvino"])
def test_scales_of_the_first_axis_without_an_axis(engine: str | None) -> None:
    """microsoft/onnxruntime#17718 and #28228: weights by axis 0 in a node without `axis`."""
    with pytest.raises(zs.BroadcastError) as caught:
        zs.plan_quantization((64, 525), (64,), (64,), engine=engine)
    assert caught.value.hint == "axis 0 of x has that size: write axis=0"
    q, scale = np.ones((64, 525), np.int8), np.ones(64, F)
    file = model("DequantizeLinear", [q, scale, np.zeros(64, np.int8)], {}, 13, result=FLOAT)
    with pytest.raises(Exception, match="525"):
        on_onnxruntime(*file)


def test_square_weights_hide_a_missing_axis() -> None:
    """The same with as many rows as columns: nothing is refused, and the numbers differ."""
    rows, columns = (zs.plan_quantization((3, 3), (3,), axis=axis) for axis in (0, None))
    assert rows != columns
    q, scale = np.ones((3, 3), np.int8), np.asarray([1, 2, 4], F)
    answer = on_onnxruntime(*model("DequantizeLinear", [q, scale], {}, 13, result=FLOAT))[0]
    assert answer.tolist() == zs.dequantize(q, scale).tolist() == [[1, 2, 4]] * 3
    assert answer.tolist() != zs.dequantize(q, scale, axis=0).tolist()


def test_openvino_adds_the_zero_point_before_it_rounds() -> None:
    """microsoft/onnxruntime#25045: results one off under OpenVINO."""
    pytest.importorskip("openvino", reason="an engine is an extra, not a test need")
    x, one, zero = np.asarray([0.5, 1.5, 2.5], F), np.ones((), F), np.asarray(3, np.int8)
    file = model("QuantizeLinear", [x, one, zero], {}, 21, result=INT8)
    answers = {"onnxruntime": on_onnxruntime(*file)[0], "openvino": on_openvino(*file)[0]}
    assert answers["onnxruntime"].tolist() == [3, 5, 5]
    assert answers["openvino"].tolist() == [4, 4, 6]
    for engine, answer in answers.items():
        assert np.array_equal(answer, zs.quantize(x, one, zero, engine=engine, opset=21))


def test_float16_is_rounded_and_not_cut_off() -> None:
    """microsoft/onnxruntime#32452: the scalar kernel of 1.29 cut off."""
    x = np.asarray([0.050018310546875, -0.050018310546875], np.float16)
    scale, zero = np.asarray(0.0999755859375, np.float16), np.asarray(0, np.int8)
    file = model("QuantizeLinear", [x, scale, zero], {}, 19, result=INT8)
    assert on_onnxruntime(*file)[0].tolist() == [1, -1]
    assert zs.quantize(x, scale, zero, engine="onnxruntime", opset=19).tolist() == [1, -1]


@pytest.mark.parametrize(
    ("x", "wanted", "zero"), [([-127, 128, 0.5], [0, 255, 127], 127), ([-253, 257], [0, 254], 126)]
)
def test_dynamic_quantisation_rounds_ties_to_even(
    x: list[float], wanted: list[int], zero: int
) -> None:
    """sonos/tract#2672: ties of the data and of the zero point went away from 0."""
    data = np.asarray(x, F)
    file = model("DynamicQuantizeLinear", [data], {}, 11, outputs=3, result=UINT8)
    result, scale, point = on_onnxruntime(*file)
    assert point == zero
    assert result.tolist() == zs.quantize(data, scale, point, dtype="uint8").tolist()
    assert result.tolist() == wanted
