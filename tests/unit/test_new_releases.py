"""tools/new_releases.py: the releases of engines that have no row yet."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from zerostride.engines.table import find_engine
from zerostride.engines.versions import has_row

ROOT = Path(__file__).parents[2]


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """tools/new_releases.py, where pip looks for packages in a folder alone."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    spec = importlib.util.spec_from_file_location("new", ROOT / "tools" / "new_releases.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


Lines = pytest.CaptureFixture[str]


def publish(folder: Path, *releases: str) -> None:
    """Puts wheels of ncnn into the folder that pip reads; none of them can be installed."""
    for release in releases:
        (folder / f"ncnn-{release}-py3-none-any.whl").write_bytes(b"")


def test_release_with_a_row_is_not_new(tool: ModuleType, tmp_path: Path, capsys: Lines) -> None:
    publish(tmp_path, "1.0.20230517", find_engine("ncnn").release)
    assert tool.main(["ncnn", "--list"]) == 0
    assert capsys.readouterr().out == f"ncnn {find_engine('ncnn').release}: has a row\n"


def test_newest_release_without_a_row_is_new(
    tool: ModuleType, tmp_path: Path, capsys: Lines
) -> None:
    publish(tmp_path, "1.0.20230517", "1.0.20991231", "1.0.20990101")
    assert tool.main(["ncnn", "--list"]) == 1
    assert capsys.readouterr().out.startswith("ncnn 1.0.20991231: new; the newest row is 1.0.")


@pytest.mark.slow
def test_release_that_cannot_be_measured_is_status_2(
    tool: ModuleType, tmp_path: Path, capsys: Lines
) -> None:
    publish(tmp_path, "1.0.20991231")
    patches = tmp_path / "patches"
    assert tool.main(["ncnn", "--out", str(patches)]) == 2
    assert capsys.readouterr().out == "ncnn 1.0.20991231: new, and could not be measured\n"
    assert not patches.exists()


def test_engine_without_a_wheel_is_status_2(tool: ModuleType, capsys: Lines) -> None:
    assert tool.main(["ncnn", "numpy"]) == 2
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "ncnn: pip finds no release of ncnn for this Python"
    assert len(lines) == 2


@pytest.mark.slow
def test_patch_of_a_measurement_is_written(tool: ModuleType, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "zerostride", "engines", "numpy", "--measure", "--cases", "50"]
    answer = subprocess.run([*words, "--json"], capture_output=True, text=True, check=True).stdout
    cases = json.loads(answer)["engines"][0]["cases"]
    line = tool.patched(find_engine("numpy"), "9.9", answer, tmp_path)
    path = tmp_path / "numpy-9.9.patch"
    assert cases >= 50
    assert line == f"numpy 9.9: new, 0 of {cases} cases otherwise; {path}"
    assert path.read_text("utf-8") == json.loads(answer)["engines"][0]["patch"]


@pytest.mark.parametrize(
    ("version", "row"), [("2.13.1+cpu", True), ("2.13", True), ("2.130.0", False), ("2.1", False)]
)
def test_measured_release_covers_its_later_parts(version: str, *, row: bool) -> None:
    assert has_row(find_engine("torch"), version) is row


def test_workflow_runs_the_tool() -> None:
    text = (ROOT / ".github" / "workflows" / "releases.yml").read_text("utf-8")
    assert "python tools/new_releases.py --out patches" in text
    assert "cron:" in text
