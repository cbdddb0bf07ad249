"""The printed results of fused functions: tables, Markdown, JSON."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence

from ..memory import Use
from ..memory import cells as memory_cells
from ..memory import head as memory_head
from ..peers import BASELINE
from ..printing import (
    NONE,
    TURNS,
    cells,
    columns,
    goal_text,
    legend,
    made_by,
    markdown,
    markdown_table,
    new_console,
    new_table,
    notes,
    seconds_text,
)
from ..results import RowResult
from .first import First
from .goals import judge
from .peak import ALLOWED
from .peers import PEERS
from .results import FusedResults, early_share, memory_bound

_FIRST = (
    "Seconds of the first call in a fresh process in which the library has computed another"
    " expression before: tracing and compiling are counted, its modules' coming up is not. *Cold*:"
    " zerostride's first call of all, where it is. *Kept*: its first call where an earlier process"
    " left machine code on disk. *Early*: zerostride's share of the streaming"
    " limit in the five calls after the first (their median), without and with that code."
    " *Interpreted*: the same of forty"
    " calls without the compiled tier."
)
_PEAK = (
    "MiB: what a call that allocates its result adds to the peak of a process that has the"
    " operands and has computed another expression, less the result. The first call traces and"
    " brings in threads, too."
)


def _hot_table(results: FusedResults) -> list[list[str]]:
    rows = results.hot.rows
    bound = ["yes" if memory_bound(row) else "" for row in rows]
    return [
        [*columns(results.hot), "memory-bound"],
        *([*cells(row, results.hot), word] for row, word in zip(rows, bound, strict=True)),
    ]


def _first_table(results: FusedResults) -> list[list[str]]:
    peers = [name for name in results.hot.versions if name != BASELINE]
    table = [["row", BASELINE, "cold", "kept", "early", "early, kept", "interpreted", *peers]]
    for name, by_peer in results.first.items():
        kinds = (by_peer, results.kept, results.interpreted)
        shares = [kind.get(BASELINE if kind is by_peer else name) for kind in kinds]
        table.append(
            [
                name,
                _seconds(by_peer.get(BASELINE)),
                _seconds(results.cold.get(name)),
                _seconds(results.kept.get(name)),
                *map(_share, shares),
                *(_seconds(by_peer.get(peer)) for peer in peers),
            ]
        )
    return table


def _share(first: First | str | None) -> str:
    share = early_share(first)
    return NONE if share is None else f"{share:.2f}"


def _tier(results: FusedResults) -> str:
    return f"Its programs that are hot are compiled by {results.compiled or 'nothing'}."


def _seconds(first: First | str | None) -> str:
    return seconds_text(first.first) if isinstance(first, First) else NONE


def _peak_table(results: FusedResults) -> list[list[str]]:
    uses = [use for use in results.peak.values() if isinstance(use, Use)]
    return [memory_head(ALLOWED), *map(memory_cells, uses)]


def _missing(results: FusedResults) -> list[str]:
    """Who is missing where, and why; what the rows say already is not said again."""
    said: dict[str, RowResult] = {row.name: row for row in results.hot.rows}
    lines = notes(results.hot) if said else []
    for name, by_peer in results.first.items():
        for peer, first in by_peer.items():
            known = name in said and peer in said[name].left_out
            if isinstance(first, str) and not known:
                lines.append(f"{peer}, first call: {first} ({name})")
    for name, use in results.peak.items():
        if isinstance(use, str):
            lines.append(f"peak memory: {use} ({name})")
    return lines


def print_results(results: FusedResults) -> None:
    """Prints the tables, the aims and the notes."""
    console = new_console()
    parts = (
        ("", _hot_table(results) if results.hot.rows else []),
        ("First calls. " + _FIRST, _first_table(results) if results.first else []),
        ("Peak memory. " + _PEAK, _peak_table(results) if results.peak else []),
    )
    for text, lines in parts:
        if not lines:
            continue
        if text:
            console.print(text, style="dim")
        head, *body = lines
        console.print(new_table(head, body))
    if results.hot.rows:
        console.print(legend(results.hot), _tier(results), style="dim")
    for goal in judge(results):
        console.print(goal_text(goal), style="green" if goal.reached else "yellow")
    for line in _missing(results):
        console.print(f"- {line}", style="dim")


def as_json(results: FusedResults) -> str:
    """Everything, with the aims."""
    data = dataclasses.asdict(results)
    data["goals"] = [dataclasses.asdict(goal) for goal in judge(results)]
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"


def as_markdown(results: FusedResults, why: str = "") -> str:
    """The page: machine, tables, aims, what is said about them by hand, notes."""
    hot = results.hot
    title = f"# Fused expressions beside their peers: {hot.machine.short_name}"
    lines = [title, "", *made_by(hot), ""]
    if hot.rows:
        lines += [f"{legend(hot)} {_tier(results)}", "", *markdown_table(_hot_table(results)), ""]
    lines += ["## Goals", "", *(f"- {goal_text(goal)}" for goal in judge(results)), ""]
    lines += [*why.splitlines(), ""] if why else []
    lines += _section("First calls", _FIRST, _first_table(results) if results.first else [])
    lines += _section("Peak memory", _PEAK, _peak_table(results) if results.peak else [])
    lines += ["## The peers", "", TURNS, ""]
    lines += [f"- {name}: {PEERS[name].note}" for name in hot.versions]
    lines += ["", "## Where a peer is missing", "", *(f"- {line}" for line in _missing(results))]
    return "\n".join(lines) + "\n"


def _section(title: str, text: str, table: Sequence[Sequence[str]]) -> list[str]:
    return [f"## {title}", "", text, "", *markdown(table), ""] if table else []
