"""A sample of the fuzzer of Paddle's models."""

from __future__ import annotations

import sys
from pathlib import Path

FUZZ = Path(__file__).parents[1] / "fuzz"
sys.path.insert(0, str(FUZZ))  # the fuzzers are scripts; they import one another by name

import harness  # noqa: E402


def test_hostile_files_through_every_function() -> None:
    tally = harness.hunt(str(FUZZ / "fuzz_paddle.py"), seed=1, cases=400)
    assert tally.bad == []
    assert tally.cases == 400
    # A fuzzer whose files are all refused at the door tests the door.
    assert sum(n for word, n in tally.words.items() if word.startswith("Report")) > 150
    for function in ("audit", "shapes", "run", "verify"):
        assert sum(n for word, n in tally.words.items() if function in word.split()) > 2, function
