"""The scoreboard: every engine and release on patterns, beside NumPy."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path

import pytest

from warm import run
from zerostride.derive.scoreboard import LEGEND, MARKS, PATTERNS, Pattern, ScoreRow, scoreboard
from zerostride.engines import ENGINES, find_engine
from zerostride.errors import BroadcastError
from zerostride.report.scoreboard import scoreboard_page


@pytest.fixture(scope="module")
def rows() -> tuple[ScoreRow, ...]:
    return scoreboard()


def marks(row: ScoreRow) -> str:
    return "".join(cell.mark for cell in row.cells)


def test_every_release_of_every_engine_has_a_row(rows: tuple[ScoreRow, ...]) -> None:
    assert list(dict.fromkeys(row.engine.name for row in rows)) == list(ENGINES)
    assert all(len(row.cells) == len(PATTERNS) for row in rows)
    (numpy,) = (row for row in rows if row.engine.name == "numpy")
    assert set(marks(numpy)) == {"="}
    assert numpy.releases[-1] == "1.24"


def test_neighbouring_rows_of_an_engine_differ(rows: tuple[ScoreRow, ...]) -> None:
    ncnn = [marks(row) for row in rows if row.engine.name == "ncnn"]
    assert len(ncnn) > 1
    assert all(one != other for one, other in itertools.pairwise(ncnn))


def test_a_release_alone() -> None:
    (row,) = scoreboard([find_engine("ncnn@20230517")])
    assert row.releases == ("20230517",)
    assert row.cells[3].kind == "different"


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern.words)
def test_the_command_of_a_pattern_runs(pattern: Pattern) -> None:
    words = pattern.command("ncnn").split()[1:]
    done = run(words)
    assert bool(done.returncode) == isinstance(pattern.ask("ncnn"), BroadcastError), done.stderr
    assert "Traceback" not in done.stderr


def test_the_page_has_every_pattern_and_loads_nothing(rows: tuple[ScoreRow, ...]) -> None:
    text = scoreboard_page(rows)
    assert set(re.findall(r'<section id="p(\d+)"', text)) == {
        str(number) for number in range(1, len(PATTERNS) + 1)
    }
    assert set(re.findall(r'href="#p(\d+)"', text)) <= set(re.findall(r'id="p(\d+)"', text))
    assert not re.search(r'(src|href)="[^#]', text)


def test_the_command(tmp_path: Path) -> None:
    file = tmp_path / "board.html"
    done = run(["engines", "scoreboard", "-o", file])
    assert not done.returncode, done.stderr
    assert all(words in done.stdout for words in LEGEND.values())
    assert file.read_text().startswith("<!doctype html>")
    data = json.loads(run(["engines", "scoreboard", "--json"]).stdout)
    assert {cell["kind"] for row in data for cell in row["cells"]} <= set(MARKS)
