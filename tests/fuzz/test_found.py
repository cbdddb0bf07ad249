"""Cases that long runs of the fuzzers found, asked again."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from sampled import few

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # the fuzzers are scripts; they import one another by name

import harness  # noqa: E402

#: Seeds and cases, one of each kind of fault, by fuzzer.
FOUND = {
    "fuzz_tflite": {2611: (90, 11857, 12010, 13390, 13593, 53613), 2612: (642, 56789)},
    "fuzz_paddle": {2611: (850, 1728, 3186, 41809, 54632, 89082, 138978)},
}


@pytest.mark.parametrize(
    "fuzzer", few(1, sorted(((name, seed) for name in FOUND for seed in FOUND[name]), reverse=True))
)
def test_a_found_case_gives_a_result_or_an_error(fuzzer: tuple[str, int]) -> None:
    name, seed = fuzzer
    for case in FOUND[name][seed]:
        tally = harness.hunt(str(HERE / f"{name}.py"), seed, cases=1, jobs=1, first=case)
        assert (tally.cases, tally.bad) == (1, []), case
