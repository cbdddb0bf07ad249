"""Measuring another release: what pip installs, and the rows that a probe proposes."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from zerostride.core.plan import Plan
from zerostride.engines import ENGINES, changes, planning, releases, table
from zerostride.errors import BadInput, BroadcastError
from zerostride.runtimes.probe import release
from zerostride.runtimes.probe.case import Case
from zerostride.runtimes.probe.conformance import EngineReport, Judged, JudgedCase, run_engine
from zerostride.runtimes.probe.patch import proposal
from zerostride.runtimes.probe.predict import predict
from zerostride.runtimes.process import Process
from zerostride.sizes import Asker, Shape
from zerostride.system import children


@pytest.mark.parametrize(
    ("engine", "asked", "expected"),
    [
        ("ncnn", "20240820", "ncnn==1.0.20240820"),
        ("ncnn", "1.0.20240820", "ncnn==1.0.20240820"),
        ("onnxruntime", "1.29.0", "onnxruntime==1.29.0"),
        ("mnn", "3.2.0", "MNN==3.2.0"),
    ],
)
def test_requirement_names_the_wheel(engine: str, asked: str, expected: str) -> None:
    assert release.requirement(ENGINES[engine], asked) == expected


def test_failing_installation_is_bad_input() -> None:
    with pytest.raises(BadInput, match="no such wheel"):
        release.run_words(children.source("sys.exit('no such wheel')"))


def disagreement(outcome: str, op_type: int, *shapes: Shape) -> JudgedCase:
    case = Case("ncnn", "BinaryOp", *(shapes or ((2, 3), (1, 3))), attrs={"op_type": op_type})
    return JudgedCase(case, Judged.DISAGREE, "(2, 3) from (2, 3), (1, 3)", outcome)


def agreement(op_type: int, *shapes: Shape) -> JudgedCase:
    case = Case("ncnn", "BinaryOp", *shapes, attrs={"op_type": op_type})
    return JudgedCase(case, Judged.EQUAL, "", "")


def applied(text: str, folder: Path) -> ModuleType:
    """The module `changes` with a patch, as `git apply` makes it."""
    if shutil.which("git") is None:
        pytest.skip("git, which applies the patch, is not installed")
    place = folder / "src/zerostride/engines/changes.py"
    place.parent.mkdir(parents=True)
    shutil.copy(str(changes.__file__), place)
    patch = folder / "rows.patch"
    patch.write_text(text + "\n")
    subprocess.run(["git", "apply", patch.name], cwd=folder, check=True)
    name = "zerostride.engines.patched_changes"
    spec = importlib.util.spec_from_file_location(name, place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # its dataclass asks for it
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules[name]
    return module


@pytest.fixture
def patched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Judges by the rows of a patch."""

    def use(text: str) -> None:
        module = applied(text, tmp_path)
        monkeypatch.setattr(releases, "CHANGES", module.CHANGES)
        monkeypatch.setattr(releases, "MEASURED", module.MEASURED)
        table._own_release.cache_clear()
        planning._cached.cache_clear()

    yield use
    table._own_release.cache_clear()
    planning._cached.cache_clear()


def test_unmeasured_release_that_agrees_is_only_listed(patched: Callable[[str], None]) -> None:
    for engine, version, listed in (
        ("ncnn", "1.0.20250428", "20250428"),
        ("torch", "2.5.1+cpu", "2.5.1"),
    ):
        text = proposal(EngineReport(engine, version))
        changed = [line for line in text.splitlines() if line.startswith("+") and "+++" not in line]
        assert len(changed) == 1
        assert f'"{listed}"' in changed[0]
    patched(proposal(EngineReport("ncnn", "1.0.20250428")))
    assert "20250428" in releases.releases_of(ENGINES["ncnn"])


def test_release_between_two_is_listed_once() -> None:
    assert proposal(EngineReport("jax", "0.11.0")).count('"0.11.0"') == 1


def test_measured_release_that_agrees_proposes_nothing() -> None:
    assert "20250503" in releases.releases_of(ENGINES["ncnn"])
    assert proposal(EngineReport("ncnn", "1.0.20250503")) == ""
    assert proposal(EngineReport("torch", "2.13.1+cpu")) == ""


def test_newer_release_that_agrees_is_the_row_of_a_new_number() -> None:
    text = proposal(EngineReport("ncnn", "1.0.20990101"))
    assert '+            "20261020",\n' in text
    assert '-    "1.0.20261020",\n+    "1.0.20990101",\n' in text
    assert '+    "9.1",\n' in proposal(EngineReport("torch", "9.1.2+cpu"))


def test_newer_release_that_differs_is_told_without_a_patch() -> None:
    report = EngineReport("ncnn", "1.0.20990101")
    report.add(disagreement("gave (2, 3)", 0))
    text = proposal(report)
    assert text.startswith("# not in the patch: 1 cases, predicted a result, a result; for example")
    assert "+++" not in text


def outcomes(findings: list[JudgedCase]) -> list[Plan | BroadcastError]:
    return [predict(finding.case, "ncnn@20250428") for finding in findings]


def test_disagreements_become_rows_with_which_they_are_predicted(
    patched: Callable[[str], None],
) -> None:
    report = EngineReport("ncnn", "1.0.20250428")
    wrong = [
        disagreement("gave (2, 3)", 0, (2, 3), (2, 1)),
        disagreement("gave (2, 3)", 0, (4, 3), (4, 1)),
    ]
    refused = [disagreement("refused: extract returned status -100", 2, (2,) * 4, (2,) * 4)]
    right = [agreement(0, (2, 3), (2, 3)), agreement(2, (2, 3), (2, 1)), agreement(0, (2,), ())]
    for finding in (*wrong, *refused, *right):
        report.add(finding)
    text = proposal(report)
    assert "refuses more than 3 axes" in text
    patched(text)
    assert all(isinstance(one, BroadcastError) and one.silent for one in outcomes(wrong))
    assert all(isinstance(one, BroadcastError) and not one.silent for one in outcomes(refused))
    assert all(isinstance(one, Plan) for one in outcomes(right))


def test_disagreements_without_a_common_condition_are_a_divergence(
    patched: Callable[[str], None],
) -> None:
    report = EngineReport("ncnn", "1.0.20250428")
    wrong = disagreement("crashed: SIGSEGV", 0, (2, 3), (2, 3))
    for finding in (wrong, agreement(0, (2, 4), (2, 4)), agreement(0, (3,), (3,))):
        report.add(finding)
    text = proposal(report)
    assert "ends its process for 1 combinations of shapes that were run" in text
    patched(text)
    plan = predict(wrong.case, "ncnn@20250428")
    assert isinstance(plan, Plan)
    (row,) = (
        one
        for one in table.find_engine("ncnn@20250428").divergences
        if not one.dtypes and one.strikes is not None and one.strikes(plan, Asker())
    )
    assert row.effect == "crash"


def test_result_instead_of_a_refusal_is_told_outside_of_the_patch() -> None:
    report = EngineReport("ncnn", "1.0.20250428")
    case = Case("ncnn", "BinaryOp", (2, 3), (4, 5), attrs={"op_type": 0})
    report.add(JudgedCase(case, Judged.DISAGREE, "refusal (extent_mismatch)", "gave (2, 3)"))
    assert "# not in the patch: 1 cases, predicted refusal (extent_mismatch), a result" in (
        proposal(report)
    )


def test_cases_beyond_the_axes_of_the_childs_numpy_are_not_judged() -> None:
    many = Case("torch", "add", (1,) * 33, (2,))
    process = Process("torch")
    process.most_axes = 32
    report = run_engine(process, [many])
    assert (report.cases, report.findings, dict(report.unmodelled)) == (0, [], {"add": 1})
    assert Process("numpy").takes([(1,) * 33])
