"""``python -m campaigns coverage``: sizes through models, a table for each."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table

from zerostride.errors import BadInput

from .coverage import Coverage, cover, installed, zerostride_needs

#: Columns of text where there is no terminal to ask.
_WIDE = 140


def run(paths: Sequence[str], as_json: bool) -> int:
    """Measures and prints.

    Returns:
        0 where this package says nothing wrong, and as much as every tool that is right; 1
        otherwise; 2 if a model cannot be read, or onnx is not installed.
    """
    try:
        tools = installed()
        covered = [cover(path, tools, zerostride_needs) for path in paths]
    except (BadInput, ImportError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if as_json:
        models = [coverage.to_json() for coverage in covered]
        print(json.dumps({"ok": all(c.ok for c in covered), "models": models}, indent=1))
    else:
        console = Console()
        console = console if console.is_terminal else Console(width=_WIDE)
        for coverage in covered:
            print_coverage(console, coverage)
    return 0 if all(coverage.ok for coverage in covered) else 1


def print_coverage(console: Console, coverage: Coverage) -> None:
    """One model's table, and what does not hold."""
    table = Table(box=box.SIMPLE_HEAD, title=coverage.path, title_justify="left")
    for heading in (
        "tool",
        "rank known",
        "sizes said",
        "numbers",
        "expressions",
        "bounds",
        "wrong",
    ):
        table.add_column(heading, justify="left" if heading == "tool" else "right")
    table.add_column("ms", justify="right")
    for row in coverage.rows:
        shares = f"{_share(row.ranks, row.tensors)}", f"{_share(row.said, row.axes)}"
        counts = map(str, (row.numbers, row.expressions, row.bounds, row.wrong))
        table.add_row(row.tool, *shares, *counts, f"{row.seconds * 1e3:.0f}")
    console.print(table)
    lines = [f"run at {len(coverage.runs)} choices of sizes"]
    for row in coverage.rows:
        lines += [f"{row.tool} fails: {row.failed}"] if row.failed else []
        lines += [f"{row.tool}: {example}" for example in row.examples]
    lines += [f"not needed: {need}" for need in coverage.denied]
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%} ({part}/{whole})" if whole else "."
