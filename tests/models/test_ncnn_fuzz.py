"""A small number of hostile .param files on every run; tests/fuzz/fuzz_ncnn.py makes more."""

from __future__ import annotations

import sys
from pathlib import Path

FUZZ = Path(__file__).parents[1] / "fuzz"


def test_hostile_files_give_reports_or_errors() -> None:
    sys.path.insert(0, str(FUZZ))
    try:
        import fuzz_ncnn
        import harness
    finally:
        sys.path.remove(str(FUZZ))
    asked = fuzz_ncnn.engine.ask
    try:
        # Number 0 asks the real engine, where it is installed.
        words = {number: fuzz_ncnn.run_case(17, number) for number in range(1, 181)}
    finally:
        fuzz_ncnn.engine.ask = asked
    assert not {number: word for number, word in words.items() if word.startswith(harness.BAD)}
    assert len(set(words.values())) >= 4  # not by refusing everything
    assert fuzz_ncnn.case(17, 3) == fuzz_ncnn.case(17, 3)
