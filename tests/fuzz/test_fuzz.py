"""A sample of the fuzzers in the light tests, and tests of the harness."""

from __future__ import annotations

import importlib
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sampled import few

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # the fuzzers are scripts; they import one another by name

import harness  # noqa: E402


def hunt(script: Path, cases: int, seconds: float = harness.CASE_SECONDS) -> harness.Tally:
    return harness.hunt(
        str(script), seed=1, cases=cases, jobs=2 if cases > 200 else 1, seconds=seconds
    )


#: The questions that the fuzzers of whole models ask of each file.
ASKED = ("audit", "shapes", "run", "verify")
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


@dataclass(frozen=True)
class Sample:
    """The cases of a fuzzer that tests run.

    A fuzzer whose files are all refused by the reader tests nothing but the reader. So `least` has
    outcomes and the least share of the cases that end so; an outcome's words may come among others.
    """

    fuzzer: str
    light: int
    slow: int
    least: Mapping[str, float]
    needs: tuple[str, ...] = ()


#: `ModelError` and `BroadcastError` are the documented refusals.
SAMPLES = (
    Sample("onnx", 60, 400, {"Report": 0.2, "Report with findings": 0.1}, ("onnx",)),
    Sample("ir", 100, 600, {"Report with findings": 0.13}, ("defusedxml",)),
    Sample("mnn", 60, 600, {"Report": 0.2, "Report with findings": 0.1, "ModelError": 0.1}),
    Sample("ncnn", 180, 600, {"Report": 0.2, "Report with findings": 0.1, "ModelError": 0.1}),
    Sample("paddle", 80, 400, {"Report": 0.375, **dict.fromkeys(ASKED, 0.005)}),
    Sample("tflite", 80, 400, {"Report": 0.375, **dict.fromkeys((*ASKED, "port"), 0.005)}),
    Sample("pt2", 100, 1000, {"checked": 0.1, "ModelError": 0.1}),
    Sample("commands", 0, 300, dict.fromkeys((*ASKED, "port"), 0.007), ("onnx",)),
    Sample("plan", 200, 2000, {"Plan": 0.1, "BroadcastError": 0.005}),
    Sample("dims", 60, 1500, {"size": 0.1, "formula": 0.1, "text": 0.05}),
)


def samples() -> Iterator[Any]:
    """Each sample with its numbers of cases; the larger one is slow."""
    for sample in SAMPLES:
        name = sample.fuzzer
        if sample.light:
            yield pytest.param(sample, sample.light, id=name)
        yield pytest.param(sample, sample.slow, id=f"{name}-slow", marks=pytest.mark.slow)


@pytest.mark.parametrize(("sample", "cases"), list(samples()))
def test_hostile_cases_have_documented_outcomes(sample: Sample, cases: int) -> None:
    for package in sample.needs:
        pytest.importorskip(package, reason="the cases need it")
    tally = hunt(HERE / f"fuzz_{sample.fuzzer}.py", cases)
    assert tally.bad == []
    assert tally.cases == cases
    for outcome, share in sample.least.items():
        assert ended(tally, outcome) > share * cases, outcome


def ended(tally: harness.Tally, outcome: str) -> int:
    """The number of cases whose outcome has all of these words."""
    words = set(outcome.split())
    return sum(n for text, n in tally.words.items() if words <= set(text.replace(",", "").split()))


def test_outcomes_are_counted_by_their_words() -> None:
    tally = harness.Tally()
    for number, text in enumerate(("Report audit", "Report with findings, audit", "ModelError")):
        tally.add(number, 0.0, text)
    assert ended(tally, "Report") == 2
    assert ended(tally, "Report with findings") == ended(tally, "ModelError") == 1
    assert ended(tally, "port") == 0


@pytest.mark.parametrize(
    ("fuzzer", "package"), [("ir", "defusedxml"), ("ncnn", "onnx"), ("mnn", "onnx")]
)
def test_same_seed_gives_the_same_file(fuzzer: str, package: str) -> None:
    pytest.importorskip(package, reason="the cases need it")
    case = importlib.import_module(f"fuzz_{fuzzer}").case
    cases = [case(0, number) for number in range(60)]
    assert cases == [case(0, number) for number in range(60)]
    assert len(set(map(repr, cases))) > 50


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
