"""The pages of speed: a folder for each processor, and the table of processors."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path

import pytest

# The benchmarks are run from a checkout, and are no part of the package.
sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks import archive, compare, equivalent_scale, pages, printing
from benchmarks.fused import printing as fused_printing
from benchmarks.fused.first import First
from benchmarks.fused.results import FusedResults
from benchmarks.machine import Machine, describe
from benchmarks.memory import Use
from benchmarks.results import Results, RowResult, Timing

OWN = Timing(1.0, 1.0, 1.0, 0.95)
SLOWER = Timing(4.0, 4.0, 3.5, 0.3)
LEVEL_ROW = RowResult("a", "a", "float32", 1 << 20, 3, 1e9, {"zerostride": OWN, "numpy": SLOWER})
FASTER = Timing(0.25, 0.25, 0.2, 0.99)
SHORT_ROW = RowResult("b", "b", "float32", 1 << 20, 3, 1e9, {"zerostride": OWN, "numpy": FASTER})


def machine(processor: str = "AMD EPYC", *caches: str) -> Machine:
    return dataclasses.replace(describe(), processor=processor, caches=caches or ("L3 32 MiB",))


def results(where: Machine, *rows: RowResult) -> Results:
    versions = {"zerostride": "1", "numpy": "2"}
    return Results(where, "2026-01-01", "python", 2, "loop", "native", versions, rows)


def keep(root: Path, kept: Results | FusedResults) -> Path:
    """Keeps a run as the commands do."""
    if isinstance(kept, FusedResults):
        text = fused_printing.as_json(kept)
        return archive.keep(archive.FUSED, kept.hot.machine, text, root)
    return archive.keep(archive.SINGLE, kept.machine, printing.as_json(kept), root)


@pytest.mark.parametrize(
    ("processor", "caches", "name", "slug"),
    [
        (
            "Intel(R) Xeon(R) Platinum 8488C CPU @ 2.40GHz",
            ("L1d 48 KiB", "L2 2 MiB", "L3 105 MiB"),
            "Intel Xeon Platinum 8488C, L2 2 MiB, L3 105 MiB",
            "intel-xeon-platinum-8488c-l2-2-mib-l3-105-mib",
        ),
        (
            "Intel(R) Xeon(R) Processor",
            ("L3 260 MiB",),
            "Intel Xeon, L3 260 MiB",
            "intel-xeon-l3-260-mib",
        ),
        (
            "AMD EPYC",
            ("L1d 48 KiB", "L2 1 MiB", "L3 32 MiB"),
            "AMD EPYC, L2 1 MiB, L3 32 MiB",
            "amd-epyc-l2-1-mib-l3-32-mib",
        ),
        ("../Processor", (), "../", "unknown"),
        ("", (), "unknown processor", "unknown-processor"),
    ],
)
def test_folder_is_named_after_processor_and_its_last_caches(
    processor: str, caches: tuple[str, ...], name: str, slug: str
) -> None:
    where = dataclasses.replace(describe(), processor=processor, caches=caches)
    assert (where.short_name, where.slug) == (name, slug)


def test_run_replaces_only_results_of_its_processor(tmp_path: Path) -> None:
    large, small = machine("AMD EPYC", "L3 260 MiB"), machine("AMD EPYC", "L3 32 MiB")
    for kept in (results(large, LEVEL_ROW), results(small), results(small, SHORT_ROW)):
        keep(tmp_path, kept)
    found = {folder.name: kept for folder, kept in archive.single_results(tmp_path)}
    assert found == {
        "amd-epyc-l3-260-mib": results(large, LEVEL_ROW),
        "amd-epyc-l3-32-mib": results(small, SHORT_ROW),
    }


def test_fused_results_are_read_as_they_were_kept(tmp_path: Path) -> None:
    kept = FusedResults(
        results(machine(), LEVEL_ROW),
        "llvmlite",
        first={"a": {"zerostride": First(1.0, 0.5, 0.25), "numpy": "it broke"}},
        cold={"a": First(1.0, 0.5, None)},
        kept={"a": First(0.25, 0.125, None)},
        interpreted={"a": "it broke"},
        peak={"a": Use("a", "a", "float32", 4, 4, 0, 0), "b": "no peak"},
    )
    path = keep(tmp_path, kept)
    assert list(archive.fused_results(tmp_path)) == [(path.parent, kept)]


def test_table_has_a_row_for_each_processor(tmp_path: Path) -> None:
    keep(tmp_path, results(machine(), LEVEL_ROW, SHORT_ROW))
    keep(tmp_path, FusedResults(results(machine("Other"), LEVEL_ROW), ""))
    text = pages.pages(tmp_path)[tmp_path / "RESULTS.md"]
    row = "| [AMD EPYC, L3 32 MiB](results/amd-epyc-l3-32-mib/RESULTS.md) | 2026-01-01"
    assert f"{row} | native, 2 threads | 1 of 2 rows | 1.00 | 1 of 2 |" in text
    row = "| [Other, L3 32 MiB](results/other-l3-32-mib/FUSE.md) | 2026-01-01"
    assert f"{row} | native, 2 threads | 1 of 1 rows | 4.00 | 3 of 3 |" in text


def test_reasons_are_of_all_processors_or_of_one(tmp_path: Path) -> None:
    one = keep(tmp_path, results(machine("One"), SHORT_ROW)).with_suffix(".md")
    other = keep(tmp_path, results(machine("Other"), SHORT_ROW)).with_suffix(".md")
    (tmp_path / "NOTES.md").write_text("On all.\n", "utf-8")
    one.with_name("NOTES.md").write_text("On this one.\n", "utf-8")
    made = pages.pages(tmp_path)
    assert "On all.\n\nOn this one.\n" in made[one]
    assert "On all.\n" in made[other]
    assert "On this one." not in made[other]


def test_reasons_of_fused_functions_are_their_own(tmp_path: Path) -> None:
    page = keep(tmp_path, FusedResults(results(machine(), SHORT_ROW), "")).with_suffix(".md")
    (tmp_path / "NOTES.md").write_text("Of single ops.\n", "utf-8")
    page.with_name("FUSE_NOTES.md").write_text("Of fused functions.\n", "utf-8")
    text = pages.pages(tmp_path)[page]
    assert "Of fused functions." in text
    assert "Of single ops." not in text


def test_changed_page_is_stale_until_it_is_written(tmp_path: Path) -> None:
    page = keep(tmp_path, results(machine(), LEVEL_ROW)).with_suffix(".md")
    written = [page, tmp_path / "RESULTS.md"]
    assert list(pages.stale(tmp_path)) == pages.write(tmp_path) == written
    assert not pages.stale(tmp_path)
    page.write_text(page.read_text("utf-8") + "By hand.\n", "utf-8")
    assert list(pages.stale(tmp_path)) == [page]


def test_check_names_a_stale_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(pages.stale, "__defaults__", (tmp_path / "benchmarks",))
    monkeypatch.setattr(pages, "HERE", tmp_path / "benchmarks")
    assert pages.main(["--check"]) == 1
    expected = "benchmarks/RESULTS.md is not current: run python -m benchmarks pages\n"
    assert capsys.readouterr().out == expected


def test_pages_of_the_repository_are_current() -> None:
    assert [path.name for path in pages.stale()] == []


def test_results_lie_in_the_folders_of_their_processors() -> None:
    runs = [(folder, kept.machine) for folder, kept in archive.single_results()]
    runs += [(folder, kept.hot.machine) for folder, kept in archive.fused_results()]
    assert runs
    assert all(folder.name == where.slug for folder, where in runs)


def test_command_keeps_results_and_writes_the_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for function in (archive.keep, pages.write, pages.stale, pages.pages):
        defaults = function.__defaults__ or ()
        monkeypatch.setattr(function, "__defaults__", (*defaults[:-1], tmp_path))
    monkeypatch.setattr(compare, "pin", lambda threads: None)
    arguments = ["--rows", "tiny", "--peers", "numpy", "--rounds", "3", "--threads", "1", "--json"]
    assert compare.main([*arguments, "--write"]) == 0
    folder = tmp_path / "results" / describe().slug
    assert sorted(path.name for path in folder.iterdir()) == ["RESULTS.json", "RESULTS.md"]
    assert describe().short_name in (tmp_path / "RESULTS.md").read_text("utf-8")


def test_compared_models_have_a_page_and_a_row(tmp_path: Path) -> None:
    row = {"nodes": 517, "other_nodes": 308, "seconds": 2.5, "bytes": 300 << 20}
    data = {
        "machine": dataclasses.asdict(machine()),
        "date": "2026-01-01",
        "rows": [{**row, "verdict": "rounded"}],
    }
    archive.keep(archive.EQUIVALENT, machine(), json.dumps(data), tmp_path)
    texts = pages.pages(tmp_path)
    page = texts[tmp_path / "results" / machine().slug / "EQUIVALENT.md"]
    assert "| 517 | 308 | 2.50 | 300 | rounded |" in page
    assert equivalent_scale.judge(data["rows"])[0].reached
    (line,) = [
        line for line in texts[tmp_path / "RESULTS.md"].splitlines() if "EQUIVALENT.md" in line
    ]
    assert line.endswith("| 2026-01-01 | 2.5 s, 300 MiB, rounded | 1 of 1 |")
