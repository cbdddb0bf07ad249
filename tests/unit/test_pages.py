"""The Python in README.md and docs/**/*.md runs, and the generated pages are current."""

from __future__ import annotations

import doctest
import importlib.util
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.fixture
def at_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder from which the pages name their files."""
    pytest.importorskip("onnx", reason="the pages audit models, and reading ONNX needs onnx")
    monkeypatch.chdir(ROOT)


@pytest.mark.usefixtures("at_root")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pycon_examples_show_the_real_output(page: Path) -> None:
    failed, _ = doctest.testfile(str(page), module_relative=False, encoding="utf-8")
    assert failed == 0


#: Libraries that a page may show and that need not be there.
LIBRARIES = (
    *("torch", "jax", "dask", "xarray", "array_api_strict", "distributed", "zarr"),
    "onnxruntime",
)


def lacking(block: str) -> list[str]:
    """The libraries that a block imports or starts as an engine and that are not installed."""
    imported = re.findall(r"^(?:import|from) (\w+)|running\(\"(\w+)\"", block, re.MULTILINE)
    return [
        name
        for pair in imported
        for name in pair
        if name in LIBRARIES and importlib.util.find_spec(name) is None
    ]


@pytest.mark.usefixtures("at_root")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_blocks_run(page: Path) -> None:
    text = page.read_text("utf-8")
    names: dict[str, object] = {"__name__": "__main__"}  # a page's blocks follow one another
    for block in BLOCK.finditer(text):
        absent = lacking(block[1])
        if absent:
            pytest.skip(f"the rest of the page needs {' and '.join(absent)}")
        above = "\n" * text.count("\n", 0, block.start(1))  # lines have the page's numbers
        exec(compile(above + block[1], str(page), "exec"), names)


def test_blocks_and_their_missing_libraries_are_found() -> None:
    assert BLOCK.search((ROOT / "README.md").read_text("utf-8"))
    assert lacking("import os\nimport zarr_which_is_none") == []
    assert all(importlib.util.find_spec(name) is None for name in lacking("import jax, os"))


def test_generated_pages_are_current(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    generate = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "generate", generate)  # its dataclasses look there
    spec.loader.exec_module(generate)
    assert generate.main(["--check"]) == 0, capsys.readouterr().out
