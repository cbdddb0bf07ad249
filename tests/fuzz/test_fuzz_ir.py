"""A sample of the hostile IR files in the light tests."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from sampled import few

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # the fuzzers are scripts; they import one another by name

import harness  # noqa: E402


@pytest.mark.parametrize("cases", few(1, [100, 600]))
def test_hostile_ir_files_give_reports_or_errors(cases: int) -> None:
    pytest.importorskip("defusedxml", reason="IR files are read with defusedxml")
    tally = harness.hunt(str(HERE / "fuzz_ir.py"), seed=1, cases=cases)
    assert tally.bad == []
    assert tally.cases == cases
    # A fuzzer whose files are all refused at the door tests the door.
    assert tally.words["Report with findings"] > cases * 2 // 15


def test_same_seed_gives_the_same_mutation() -> None:
    pytest.importorskip("defusedxml", reason="IR files are read with defusedxml")
    import fuzz_ir

    cases = [fuzz_ir.case(0, number) for number in range(60)]
    assert cases == [fuzz_ir.case(0, number) for number in range(60)]
    assert len(set(cases)) > 50
