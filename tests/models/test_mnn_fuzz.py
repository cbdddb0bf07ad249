"""A sample of the fuzzer of MNN files."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

FUZZ = Path(__file__).parents[1] / "fuzz"
sys.path.insert(0, str(FUZZ))  # the fuzzers are scripts; they import one another by name

import harness  # noqa: E402


@pytest.mark.skipif(
    importlib.util.find_spec("MNN") is None, reason="some of the files go to MNN as well"
)
def test_hundreds_of_hostile_files_give_reports_or_errors() -> None:
    tally = harness.hunt(str(FUZZ / "fuzz_mnn.py"), seed=1, cases=600)
    assert tally.bad == []
    assert tally.cases == 600
    # A fuzzer whose files are all refused at the door tests the door.
    assert tally.words["Report with findings"] > 60
    assert tally.words["Report"] > 60
    assert tally.words["ModelError"] > 60
