"""A sample of the fuzzers in the light tests, and tests of the harness."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from sampled import few

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # the fuzzers are scripts; they import one another by name

import harness  # noqa: E402


def hunt(script: Path, cases: int, seconds: float = harness.CASE_SECONDS) -> harness.Tally:
    return harness.hunt(
        str(script), seed=1, cases=cases, jobs=2 if cases > 200 else 1, seconds=seconds
    )


SCRIPTS = sorted(path.stem for path in HERE.glob("fuzz_*.py") if path.stem != "fuzz_coverage")


@pytest.mark.parametrize("name", few(2, SCRIPTS))
def test_fuzzer_runs_as_a_script(name: str, tmp_path: Path) -> None:
    """From any folder, as its docstring says; `fuzz_coverage` needs atheris."""
    pytest.importorskip("onnx", reason="several write ONNX files")
    command = [
        sys.executable,
        str(HERE / f"{name}.py"),
        "--cases",
        "2",
        "--jobs",
        "1",
        "--seed",
        "0",
    ]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=120)


@pytest.mark.parametrize("cases", few(1, [60, 400]))
def test_hostile_models_give_reports_or_errors(cases: int) -> None:
    pytest.importorskip("onnx", reason="the cases are ONNX files")
    tally = hunt(HERE / "fuzz_onnx.py", cases)
    assert tally.bad == []
    assert tally.cases == cases
    # A fuzzer whose files are all refused at the door tests the door.
    assert tally.words["Report with findings"] > cases // 10
    assert tally.words["Report"] > cases // 10


@pytest.mark.parametrize("cases", few(1, [100, 1000]))
def test_hostile_archives_are_refused_or_cannot_run_code(cases: int) -> None:
    tally = hunt(HERE / "fuzz_pt2.py", cases)
    assert tally.bad == []
    assert tally.words["checked"] > cases // 10
    assert tally.words["ModelError"] > cases // 10


@pytest.mark.slow
def test_hostile_models_pass_through_every_function() -> None:
    pytest.importorskip("onnx", reason="the cases are ONNX files")
    tally = hunt(HERE / "fuzz_commands.py", 300)
    assert tally.bad == []
    for function in ("audit", "port", "shapes", "run", "verify"):
        assert sum(n for word, n in tally.words.items() if function in word.split()) > 2, function


@pytest.mark.parametrize("cases", few(1, [200, 2000]))
def test_garbage_plans_give_plans_or_errors(cases: int) -> None:
    tally = hunt(HERE / "fuzz_plan.py", cases)
    assert tally.bad == []
    assert tally.cases == cases
    assert tally.words["Plan"] > cases // 10
    assert sum(word.startswith("BroadcastError") for word in tally.words) > cases // 200


@pytest.mark.parametrize("cases", few(1, [60, 1500]))
def test_sizes_and_conditions_give_results_or_errors(cases: int) -> None:
    tally = hunt(HERE / "fuzz_dims.py", cases)
    assert tally.bad == []
    assert tally.cases == cases


def test_same_seed_gives_the_same_mutation() -> None:
    pytest.importorskip("onnx", reason="the mutations are of ONNX files")
    from mutate import Mutator

    examples = sorted((HERE.parents[1] / "examples").rglob("*.onnx"))
    mutator = Mutator([path.read_bytes() for path in examples])
    cases = [mutator.case(0, number) for number in range(60)]
    assert cases == [mutator.case(0, number) for number in range(60)]
    assert len(set(cases)) > 50


@pytest.mark.slow
def test_harness_reports_crashes_hangs_growth_and_bad_results(tmp_path: Path) -> None:
    script = tmp_path / "fuzzer.py"
    script.write_text(
        textwrap.dedent(f"""
        import os, signal, sys, time
        sys.path.insert(0, {str(HERE)!r})
        import harness

        def run_case(seed, number):
            if number == 3:
                os.kill(os.getpid(), signal.SIGSEGV)
            if number == 5:
                sys.exit(7)
            if number == 6:
                while True:
                    pass
            if number == 7:
                time.sleep(1000)
            if number == 9:
                return "BAD answer"
            if number == 10:
                try:
                    bytearray(1 << 31)
                except MemoryError:
                    return "no memory"
            print("noise")
            return "fine"

        sys.exit(harness.main(__file__, run_case, "test"))
        """)
    )
    tally = hunt(script, 12, seconds=0.2)
    said = dict(tally.bad)
    assert said.keys() == {3, 5, 6, 7, 9}
    assert "SIGSEGV" in said[3]
    assert "status 7" in said[5]
    assert said[6] == f"{harness.BAD} took longer than 0.2 s of CPU"
    assert said[7] == f"{harness.BAD} took longer than 6 s by the clock"
    assert said[9] == "BAD answer"
    limited = Path("/proc/self/statm").exists()
    assert dict(tally.words) == ({"fine": 6, "no memory": 1} if limited else {"fine": 7})
