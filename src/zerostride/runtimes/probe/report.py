"""Conformance reports as a table, as text and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from .conformance import EngineReport, Judged

#: The most disagreements that are printed in full; the JSON has all.
SHOWN = 5
_COLUMNS = (
    ("both refuse", Judged.REFUSE),
    ("equal", Judged.EQUAL),
    ("silent", Judged.SILENT),
    ("crash", Judged.CRASH),
    ("wrong", Judged.WRONG),
    ("declined", Judged.DECLINED),
    ("disagree", Judged.DISAGREE),
)
_LEGEND = (
    "silent: predicted that the engine does not refuse but goes wrong; crash, wrong: on a valid "
    "plan, and listed among the engine's divergences; declined: the engine transposes."
)


def agrees(reports: Sequence[EngineReport]) -> bool:
    """Whether no engine that ran disagrees."""
    return not any(report.findings for report in reports)


def print_reports(console: Console, reports: Sequence[EngineReport]) -> None:
    """The table, the engines that did not run, and the first disagreements of each in full."""
    table = Table(box=box.SIMPLE_HEAD)
    for heading in ("engine", "op"):
        table.add_column(heading, no_wrap=True)
    for heading in ("cases", *(name for name, _ in _COLUMNS)):
        table.add_column(heading, justify="right", no_wrap=True)
    for report in reports:
        for op in report.ops():
            counts = [report.counts[op, verdict] for _, verdict in _COLUMNS]
            table.add_row(report.engine, op, *map(_number, (sum(counts), *counts)))
        if len(report.ops()) > 1:
            totals = [report.count(verdict) for _, verdict in _COLUMNS]
            name = f"{report.engine} {report.version.split('-')[0]}"
            table.add_row(name, "all", *map(_number, (report.cases, *totals)), style="bold")
        table.add_section()
    if any(report.cases for report in reports):
        console.print(table)
        console.print(_LEGEND, style="dim")
    for report in reports:
        if report.missing:
            _line(console, f"not run: {report.engine}: {report.missing}", "yellow")
        for op, count in report.unmodelled.items():
            _line(console, f"not judged: {report.engine} {op}: {count} cases", "yellow")
        for finding in report.findings[:SHOWN]:
            _line(console, f"disagree: {finding.case}", "red")
            _line(console, f"  zerostride: {finding.predicted}")
            _line(console, f"  {report.engine}: {finding.outcome}")
        if len(report.findings) > SHOWN:
            _line(console, f"... and {len(report.findings) - SHOWN} more on {report.engine}")


def _line(console: Console, text: str, style: str | None = None) -> None:
    """Prints a line without wrapping, so that shapes can be copied from it."""
    console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)


def _number(count: int) -> str:
    return f"{count:,}" if count else "."


def reports_to_json(reports: Sequence[EngineReport]) -> dict[str, Any]:
    """For JSON: `ok`, and every engine with its counts and disagreements."""
    return {"ok": agrees(reports), "engines": [report.to_json() for report in reports]}
