"""python -m benchmarks pages: the pages of speed, from the JSON files in `results/`.

Each processor has its pages beside its JSON files, and RESULTS.md compares the processors.
Reasons for short rows are written by hand: NOTES.md and FUSE_NOTES.md of this folder for every
processor, the files of the same names in a processor's folder for that one.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from . import equivalent_scale, printing
from .archive import (
    EQUIVALENT,
    FUSED,
    HERE,
    SINGLE,
    equivalent_results,
    fused_results,
    single_results,
)
from .fused import goals as fused_goals
from .fused import printing as fused_printing
from .goals import (
    LEVEL,
    LEVEL_QUARTILE,
    Goal,
    best_ratios,
    compared,
    geometric_mean,
    is_level,
    judge,
)
from .machine import Machine
from .printing import NONE, markdown
from .results import Results

#: What each file's reasons are called.
_NOTES = {SINGLE: "NOTES.md", FUSED: "FUSE_NOTES.md"}
#: The table of processors.
_HEAD = (
    "processor",
    "measured",
    "engine",
    "level with the best peer",
    "geometric mean",
    "goals met",
)
_MODELS_HEAD = ("processor", "measured", f"{equivalent_scale.NODES} nodes", "goals met")
_ABOUT = (
    "# Speed on each processor",
    "",
    "Made by `python -m benchmarks pages`; not edited by hand.",
    "",
    "Every processor that was measured has a row and a page of its own. A statement about speed in"
    " this documentation holds on all of them. A row of a processor's page is *level* where the"
    f" best peer's time over zerostride's is at least {LEVEL}, and at least {LEVEL_QUARTILE} in the"
    " lower quartile of the rounds. *Geometric mean*: of these ratios, over all rows; above 1"
    " zerostride is faster. The pages name the goals, the rows that fall short, and the reasons.",
)


def pages(root: Path = HERE) -> dict[Path, str]:
    """Every generated page by its file."""
    single, fused = list(single_results(root)), list(fused_results(root))
    texts = {
        folder / f"{SINGLE}.md": printing.as_markdown(results, _reasons(SINGLE, root, folder))
        for folder, results in single
    }
    texts |= {
        folder / f"{FUSED}.md": fused_printing.as_markdown(results, _reasons(FUSED, root, folder))
        for folder, results in fused
    }
    compared_models = list(equivalent_results(root))
    texts |= {
        folder / f"{EQUIVALENT}.md": equivalent_scale.as_markdown(data)
        for folder, data in compared_models
    }
    tables = (
        ("Single ops", [_cells(SINGLE, f, one, judge(one)) for f, one in single]),
        (
            "Fused functions",
            [_cells(FUSED, f, one.hot, fused_goals.judge(one)) for f, one in fused],
        ),
    )
    lines = list(_ABOUT)
    for title, rows in tables:
        lines += ["", f"## {title}", "", *markdown([_HEAD, *rows])] if rows else []
    if compared_models:
        cells = [_models_cells(folder, data) for folder, data in compared_models]
        lines += ["", "## Two models compared", "", *markdown([_MODELS_HEAD, *cells])]
    texts[root / "RESULTS.md"] = "\n".join(lines) + "\n"
    return texts


def _reasons(name: str, *folders: Path) -> str:
    """The hand-written notes on short rows: for every processor, then for this one."""
    files = [folder / _NOTES[name] for folder in folders]
    return "\n".join(file.read_text("utf-8") for file in files if file.exists())


def _cells(name: str, folder: Path, results: Results, goals: Iterable[Goal]) -> list[str]:
    """A processor's row of the table."""
    rows, judged = compared(results.rows), list(goals)
    ratios = best_ratios(rows)
    threads = f"{results.threads} thread{'s' * (results.threads > 1)}"
    return [
        f"[{results.machine.short_name}]({folder.parent.name}/{folder.name}/{name}.md)",
        results.date,
        f"{results.backend}, {threads}",
        f"{sum(map(is_level, rows))} of {len(rows)} rows",
        f"{geometric_mean(ratios):.2f}" if ratios else NONE,
        f"{sum(goal.reached for goal in judged)} of {len(judged)}",
    ]


def _models_cells(folder: Path, data: Mapping[str, Any]) -> list[str]:
    """A processor's row of the table of compared models."""
    goals = equivalent_scale.judge(data["rows"])
    name = Machine(**{**data["machine"], "caches": tuple(data["machine"]["caches"])}).short_name
    return [
        f"[{name}]({folder.parent.name}/{folder.name}/{EQUIVALENT}.md)",
        data["date"],
        "; ".join(goal.value for goal in goals) or NONE,
        f"{sum(goal.reached for goal in goals)} of {len(goals)}",
    ]


def stale(root: Path = HERE) -> dict[Path, str]:
    """The pages that differ from their files, or lack one."""
    return {
        path: text
        for path, text in pages(root).items()
        if not path.exists() or path.read_text("utf-8") != text
    }


def write(root: Path = HERE) -> list[Path]:
    """Writes the pages that are stale, and returns their files."""
    changed = stale(root)
    for path, text in changed.items():
        path.write_text(text, "utf-8")
    return list(changed)


def main(arguments: Sequence[str]) -> int:
    """The command: writes the pages, or with --check names the stale ones."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks pages",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if stale")
    if not parser.parse_args(arguments).check:
        for path in write():
            print(f"wrote {path.relative_to(HERE.parent)}")
        return 0
    outdated = stale()
    for path in outdated:
        print(f"{path.relative_to(HERE.parent)} is not current: run python -m benchmarks pages")
    return 1 if outdated else 0
