"""The faults of `examples/optimisers.json`: a run shows that the second model is not the first."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import zerostride as zs
from zerostride.models.equivalence import Equivalence, Sameness

EXAMPLES = Path(__file__).parents[2] / "examples"
TABLE = json.loads((EXAMPLES / "optimisers.json").read_text("utf-8"))
FAULTS: list[dict[str, Any]] = TABLE["faults"]
REQUIRED = (
    *("id", "symptom", "references", "tool", "pass", "release", "happened", "effect", "sizes"),
    *("today", "before", "after"),
)


def compared(fault: dict[str, Any]) -> Equivalence:
    """The first model beside the second, as the files hold them."""
    parts = (EXAMPLES / "optimisers" / f"{fault['id']}-{part}.onnx" for part in ("before", "after"))
    result = zs.equivalent(*parts).equivalence
    assert result is not None
    return result


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault["id"])
def test_a_run_shows_the_fault(fault: dict[str, Any]) -> None:
    result = compared(fault)
    (output,) = result.outputs
    assert result.verdict is Sameness.DIFFERENT
    assert not result.ok
    shown = output.difference if fault["effect"] == "changed" else result.narrower
    assert shown is not None
    assert shown.sizes == fault["sizes"]
    if fault["effect"] == "changed":
        assert output.verdict is Sameness.DIFFERENT
        assert output.region is not None
        assert list(output.region.begins) == fault["begins"]
        assert output.region.first
        assert {"output y", "other y"} <= set(result.arrays)
    else:
        assert result.only_ours
        assert "the second refuses" in shown.detail
        assert "output y" in result.arrays
        assert "other y" not in result.arrays


def test_a_model_that_takes_no_size_is_said_so() -> None:
    parts = (EXAMPLES / "optimisers" / f"onnxslim-323-{part}.onnx" for part in ("before", "after"))
    text = str(zs.equivalent(*parts))
    assert "both work for no sizes" in text
    assert "never" not in text


def test_rows_are_complete() -> None:
    optional = {"mended", "begins"}
    for fault in FAULTS:
        assert set(REQUIRED) <= set(fault) <= {*REQUIRED, *optional}
        assert fault["effect"] in {"changed", "refuses"}
        assert fault["today"] == ("mended" if "mended" in fault else fault["effect"])
        assert ("begins" in fault) == (fault["effect"] == "changed")
        assert fault["tool"].split()[0] in TABLE["releases"]
        assert all(re.fullmatch(r"[\w.-]+/[\w.-]+#\d+", name) for name in fault["references"])
        assert fault["happened"].endswith(".")
        if "mended" not in fault:
            assert fault["release"] == TABLE["releases"][fault["tool"].split()[0]]
    assert len({fault["id"] for fault in FAULTS}) == len(FAULTS)
    assert len({fault["symptom"] for fault in FAULTS}) == len(FAULTS)
