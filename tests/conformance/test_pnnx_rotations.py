"""Rotations of heads that pnnx makes ncnn's RotaryEmbed of, compared with what ncnn computes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx", reason="the models are made with the onnx package")
pytest.importorskip("pnnx", reason="the converter is an extra")
pytest.importorskip("ncnn", reason="runs what pnnx writes")

from campaigns.models.bisect_graphs import saved
from campaigns.real_models.convert import convert
from rotations import Rotation

import zerostride as zs
from zerostride.models.findings import Outcome

pytestmark = pytest.mark.conformance


@pytest.mark.slow
def test_the_audit_says_which_rotations_ncnn_turns_otherwise(tmp_path: Path) -> None:
    """Every second one is wrong. https://github.com/Tencent/ncnn/issues/6833 is mended there."""
    table = Counter[tuple[bool, bool]]()
    for number in range(60):
        rotation = Rotation(number)
        file = saved(rotation.model, tmp_path / "m.onnx")
        report = zs.audit(file, target="ncnn")
        sizes = ",".join(map(str, rotation.x.shape))
        place = convert(file, "pnnx", (f"x={sizes}",), tmp_path / f"pnnx{number}")
        assert not isinstance(place, str), (number, place)
        (check,) = zs.verify(file, "ncnn", against=place, inputs={"x": rotation.x}).checks
        agrees = check.outcome is Outcome.AGREES
        words = [finding.message for finding in report.findings if not finding.holds]
        assert report.ok == agrees, (number, rotation.shape, rotation.angles, words)
        table["RotaryEmbed" in Path(place).read_text(), agrees] += 1
    assert min(table[True, True], table[True, False], table[False, True]) > 5
    assert not table[False, False]


@pytest.mark.parametrize(
    ("number", "fault"),
    [(8, "the first of 4 heads alone"), (6, "angles of 3 positions"), (14, "of the first head")],
)
def test_a_wrong_rotation_is_named_and_converted_otherwise(
    tmp_path: Path, number: int, fault: str
) -> None:
    rotation = Rotation(number)
    file, inputs = saved(rotation.model, tmp_path / "m.onnx"), {"x": rotation.x}
    (finding,) = (f for f in zs.audit(file, target="ncnn").findings if not f.holds)
    assert finding.node == "turn"
    assert fault in finding.message
    place = convert(file, "pnnx", (f"x={','.join(map(str, rotation.x.shape))}",), tmp_path / "pnnx")
    assert "RotaryEmbed" in zs.bisect(file, place, inputs=inputs).culprit.cause
    report = zs.convert(file, "ncnn", tmp_path / "out", inputs=inputs)
    assert [check.outcome for check in report.checks] == [Outcome.AGREES]


def test_angles_first_are_left_as_products(tmp_path: Path) -> None:
    """As the finding says."""
    rotation = next(r for r in map(Rotation, range(60)) if r.swapped and len(r.shape) > 3)
    file = saved(rotation.model, tmp_path / "m.onnx")
    assert zs.audit(file, target="ncnn").ok
    assert np.prod(rotation.shape) > 8
