"""The page docs/strict_alarms.md, from results.json."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).with_name("results.json")
PAGE = Path(__file__).resolve().parents[2] / "docs" / "strict_alarms.md"
_HEAD = """# Strict mode on real packages

<!-- Made by `python -m campaigns strict-alarms` from its results.json; edit that. -->

`zs.strict(level="log")` watched the own PyTorch code of {packages} packages: {calls} calls of
public functions and modules, as a user would write them, with random inputs and weights. {lines} of
their lines broadcast tensors of two shapes. Strict mode reported {alarms} of them. Read one by one,
{accidents} {are} an accident and {meant} {was} meant: {rate} false alarms for a thousand lines that
broadcast.

| package | release | calls | lines that broadcast | reported | accidents |
| --- | --- | --- | --- | --- | --- |
"""


def page(results: Mapping[str, Any]) -> str:
    """The text of the page."""
    rows = sorted(results.values(), key=lambda row: str(row["package"]).lower())
    alarms = [(row, alarm) for row in rows for alarm in row["alarms"]]
    lines = sum(row["lines"] for row in rows)
    accidents = sum(alarm["verdict"] == "accident" for _, alarm in alarms)
    meant = sum(alarm["verdict"] == "meant" for _, alarm in alarms)
    head = _HEAD.format(
        packages=len(rows),
        calls=sum(row["calls"] for row in rows),
        lines=lines,
        alarms=len(alarms),
        accidents=accidents,
        are="is" if accidents == 1 else "are",
        meant=meant,
        was="was" if meant == 1 else "were",
        rate=f"{1000 * meant / lines:.1f}",
    )
    return head + "".join(_table(rows)) + "".join(_alarms(alarms))


def _table(rows: list[Any]) -> Iterator[str]:
    for row in rows:
        real = sum(alarm["verdict"] == "accident" for alarm in row["alarms"])
        cells = row["package"], row["version"], row["calls"], row["lines"], len(row["alarms"]), real
        yield f"| {' | '.join(map(str, cells))} |\n"


def _alarms(alarms: list[tuple[Any, Any]]) -> Iterator[str]:
    yield "\n## Reported lines\n"
    for row, alarm in alarms:
        shapes = " and ".join(str(tuple(shape)) for shape in alarm["shapes"])
        yield f"\n**{alarm['file']}:{alarm['line']}** ({row['package']} {row['version']}), "
        yield f"{shapes}: {alarm['verdict']}\n\n```py\n{alarm['source']}\n```\n\n{alarm['why']}\n"


def write_page(results: Mapping[str, Any]) -> None:
    """Writes the page."""
    PAGE.write_text(page(results), "utf-8")


__all__ = ["PAGE", "RESULTS", "page", "write_page"]
