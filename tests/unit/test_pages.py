"""The Python in README.md and docs/*.md runs, and the pages made from the tables are current."""

from __future__ import annotations

import doctest
import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.fixture
def at_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder from which the pages name their files."""
    pytest.importorskip("onnx", reason="the pages audit models, and reading ONNX needs onnx")
    monkeypatch.chdir(ROOT)


@pytest.mark.usefixtures("at_root")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_sessions_show_what_happens(page: Path) -> None:
    failed, _ = doctest.testfile(str(page), module_relative=False, encoding="utf-8")
    assert failed == 0


@pytest.mark.usefixtures("at_root")
def test_python_blocks_run() -> None:
    count = 0
    for page in PAGES:
        text = page.read_text("utf-8")
        names: dict[str, object] = {}  # a page's blocks follow one another
        for block in BLOCK.finditer(text):
            above = "\n" * text.count("\n", 0, block.start(1))  # lines have the page's numbers
            exec(compile(above + block[1], str(page), "exec"), names)
            count += 1
    assert count, "README.md has at least one"


def test_made_pages_are_current(capsys: pytest.CaptureFixture[str]) -> None:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)
    assert generate.main(["--check"]) == 0, capsys.readouterr().out
