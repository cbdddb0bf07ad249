"""The parts of each format: its module's functions, its engine, its row of the page, its fuzzer."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from zerostride.engines import ENGINES
from zerostride.models.format_table import FORMATS, Format, FormatModule
from zerostride.runtimes.runners import RUNNERS

ROOT = Path(__file__).parents[2]
#: The functions that a format's module must have, with the number of their arguments.
REQUIRED = {
    name: len(inspect.signature(function).parameters) - 1
    for name, function in vars(FormatModule).items()
    if inspect.isfunction(function) and not name.startswith("_")
}
each_format = pytest.mark.parametrize("row", FORMATS.own.values(), ids=lambda row: row.name)


def faults(module: object) -> Iterator[str]:
    """The functions that a module lacks, or that take other arguments."""
    for name, count in REQUIRED.items():
        function = getattr(module, name, None)
        if not callable(function):
            yield f"it has no function {name!r}"
            continue
        try:
            inspect.signature(function).bind(*range(count))
        except TypeError as error:
            yield f"{name!r}: {error}"


@each_format
def test_module_has_the_functions_of_the_protocol(row: Format) -> None:
    assert list(faults(row.load())) == []


def test_absent_and_wrong_functions_are_faults() -> None:
    assert set(REQUIRED) == {"read", "find_site", "lower", "edit"}
    module = SimpleNamespace(read=lambda path: path, find_site=None, lower=lambda a, b: a)
    assert list(faults(module)) == [
        "it has no function 'find_site'",
        "'lower': missing a required argument: 'b'",
        "it has no function 'edit'",
    ]


@pytest.mark.parametrize(
    "row", [row for row in FORMATS.own.values() if row.engine], ids=lambda row: row.name
)
def test_engine_of_a_format_runs_its_files(row: Format) -> None:
    assert row.engine in ENGINES
    assert row.name in RUNNERS[row.engine].files


@each_format
def test_page_of_models_has_a_row_of_the_format(row: Format) -> None:
    text = (ROOT / "docs/models.md").read_text("utf-8")
    table = text[text.index("| format | files |") : text.index("TorchScript, SavedModel, Keras")]
    assert [suffix for suffix in row.suffixes if f"`{suffix}`" not in table] == []


@each_format
def test_format_has_a_fuzzer(row: Format) -> None:
    fuzzers = [file.read_text("utf-8") for file in (ROOT / "tests/fuzz").glob("fuzz_*.py")]
    assert any(f'{suffix}"' in text for suffix in row.suffixes for text in fuzzers)
