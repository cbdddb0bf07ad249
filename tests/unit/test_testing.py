"""`zerostride.testing`: an assertion about a model, and its message."""

from __future__ import annotations

from pathlib import Path

import pytest

import zerostride as zs
from zerostride.models.audit.baseline import Baseline
from zerostride.testing import assert_same_meaning

EXAMPLES = Path(__file__).parents[2] / "examples"
ADD = EXAMPLES / "square_add.param"


def test_a_model_that_means_the_same_passes() -> None:
    report = assert_same_meaning(ADD, "ncnn")
    assert report.ok
    assert report.findings


def test_the_message_has_the_finding_and_its_fix() -> None:
    with pytest.raises(AssertionError) as caught:
        assert_same_meaning(ADD, "numpy")
    text = str(caught.value)
    assert text.startswith(f"{ADD} on numpy ")
    assert "DIFFERENT  BinaryOp" in text
    assert "fix: reshape" in text


def test_verdicts_and_known_findings_may_be_allowed(tmp_path: Path) -> None:
    assert not assert_same_meaning(ADD, "numpy", allow={"different"}).ok
    baseline = tmp_path / "known.json"
    baseline.write_text(Baseline({}).updated([zs.audit(ADD, "numpy")]).to_json())
    assert assert_same_meaning(ADD, "numpy", baseline=baseline).baseline is not None
    assert not assert_same_meaning(ADD, "numpy", allow="different").ok
    with pytest.raises(zs.ZerostrideError, match="allow='other' is no verdict; these are: diff"):
        assert_same_meaning(ADD, "numpy", allow={"other"})


def test_options_are_the_audits(tmp_path: Path) -> None:
    with pytest.raises(zs.ModelError, match="No such file"):
        assert_same_meaning(tmp_path / "none.onnx", "numpy")
    with pytest.raises(zs.ZerostrideError, match="nothing"):
        assert_same_meaning(ADD, "numpy", sizes={"nothing": 2})
