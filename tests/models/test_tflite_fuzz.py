"""A sample of the fuzzer of LiteRT's files."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from sampled import few

FUZZ = Path(__file__).parents[1] / "fuzz"
sys.path.insert(0, str(FUZZ))  # the fuzzers are scripts; they import one another by name

import harness  # noqa: E402


@pytest.mark.parametrize("cases", few(1, [80, 400]))
def test_hostile_files_through_every_function(cases: int) -> None:
    tally = harness.hunt(str(FUZZ / "fuzz_tflite.py"), seed=1, cases=cases)
    assert tally.bad == []
    assert tally.cases == cases
    # A fuzzer whose files are all refused at the door tests the door.
    assert sum(n for word, n in tally.words.items() if word.startswith("Report")) > cases * 3 // 8
    for function in ("audit", "port", "shapes", "run", "verify"):
        used = sum(n for word, n in tally.words.items() if function in word.split())
        assert used > cases // 200, function
