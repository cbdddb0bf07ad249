"""``python -m campaigns inference``: every tool's answers, counted and shown."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from .inference import LOOSER, WRONG, ToolTally, generate, holds, measure
from .inferrers import ZEROSTRIDE, Tool, tools

#: Columns of text where there is no terminal to ask.
_WIDE = 140
#: Cases in which this package is behind that are printed; the rest are in the JSON.
SHOWN = 10


def run(count: int, seed: int, as_json: bool, asked: Sequence[Tool] | None = None) -> int:
    """Measures and prints.

    Returns:
        0 where this package is never wrong and never looser than another tool; 1 otherwise; 2 if
        no other tool is installed.
    """
    chosen = tools() if asked is None else list(asked)
    if len(chosen) < 2:
        print("error: neither openvino, onnx nor onnxruntime is installed", file=sys.stderr)
        return 2
    cases = list(generate(count, seed))
    errors = Console(stderr=True)
    with Progress(console=errors, disable=as_json or not errors.is_terminal) as progress:
        task = progress.add_task("inference", total=len(cases))
        tallies = measure(chosen, cases, lambda: progress.advance(task))
    ours = next(tally for tally in tallies if tally.tool == ZEROSTRIDE)
    if as_json:
        print(json.dumps(to_json(tallies, len(cases), seed), indent=1))
    else:
        console = Console()
        print_tallies(console if console.is_terminal else Console(width=_WIDE), tallies, seed)
    return 0 if holds(ours) else 1


def to_json(tallies: Sequence[ToolTally], cases: int, seed: int) -> dict[str, Any]:
    """For JSON: `ok`, and every tool with its counts and examples."""
    ours = next(tally for tally in tallies if tally.tool == ZEROSTRIDE)
    return {
        "ok": holds(ours),
        "cases": cases,
        "seed": seed,
        "kinds": {**WRONG, **LOOSER},
        "tools": [tally.to_json() for tally in tallies],
    }


def print_tallies(console: Console, tallies: Sequence[ToolTally], seed: int) -> None:
    """Two tables, an example of each kind, and where this package is behind."""
    counts = Table(box=box.SIMPLE_HEAD, title=f"answers, seed {seed}", title_justify="left")
    for heading in ("tool", "cases", "tight", "looser", "wrong"):
        counts.add_column(heading, justify="left" if heading == "tool" else "right")
    for tally in tallies:
        sums = (tally.cases, tally.tight, tally.looser, tally.wrong)
        counts.add_row(tally.tool, *map(_number, sums))
    console.print(counts)
    kinds = Table(box=box.SIMPLE_HEAD, title="answers by kind", title_justify="left")
    kinds.add_column("kind", no_wrap=True)
    for tally in tallies:
        kinds.add_column(tally.tool, justify="right")
    for kind in (*WRONG, *LOOSER):
        if any(tally.kinds[kind] for tally in tallies):
            kinds.add_row(kind, *(_number(tally.kinds[kind]) for tally in tallies))
    console.print(kinds)
    for kind, meaning in {**WRONG, **LOOSER}.items():
        _line(console, f"{kind}: {meaning}", "dim")
    for tally in tallies:
        for kind in (*WRONG, *LOOSER):
            if kind in tally.examples:
                style = "red" if kind in WRONG else "yellow"
                _line(console, f"{tally.tool}, {kind}, {tally.kinds[kind]:,} cases", style)
                _line(console, f"  {tally.examples[kind]}")
    ours = next(tally for tally in tallies if tally.tool == ZEROSTRIDE)
    if holds(ours):
        _line(console, f"{ZEROSTRIDE}: never wrong, never looser than another tool", "green")
    for words in ours.behind[:SHOWN]:
        _line(console, f"{ZEROSTRIDE}: {words}", "red")


def _line(console: Console, text: str, style: str | None = None) -> None:
    """A line as it is, however long: shapes are to be copied from it."""
    console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)


def _number(count: int) -> str:
    return f"{count:,}" if count else "."
