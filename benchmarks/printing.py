"""The printed results: a table in the terminal, Markdown, JSON."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from .goals import Goal, is_level, judge
from .peers import BASELINE, PEERS, Peer
from .results import Results, RowResult, Timing
from .rows import Row

#: Columns of characters where the output is not a terminal.
_WIDTH = 240
#: Columns of text, beside the first.
_TEXTS = ("what", "best peer")
#: In a cell that has no figure.
NONE = "·"
#: How the figures were come by.
TURNS = (
    "All run in one process, one after another in each round, in an order that is drawn; the clock"
    " starts when the threads of the one before sleep. Results are compared with NumPy's first."
    " Inputs are shared memory where a peer allows."
)


def new_console() -> Console:
    """A console that is wide where nobody looks at it."""
    console = Console()
    if not console.is_terminal:
        console.width = _WIDTH
    return console


def new_table(head: Iterable[str], rows: Iterable[Iterable[str]] = ()) -> Table:
    """A table of figures, named by its first column."""
    table = Table(header_style="bold", box=SIMPLE_HEAD, pad_edge=False)
    for k, column in enumerate(head):
        left = k == 0 or column in _TEXTS
        table.add_column(column, justify="left" if left else "right", no_wrap=left)
    for row in rows:
        table.add_row(*row)
    return table


def markdown(table: Sequence[Sequence[str]]) -> list[str]:
    """A table of Markdown, from its head and its rows."""
    head, *rows = table
    rules = ["---" if k == 0 or name in _TEXTS else "---:" for k, name in enumerate(head)]
    return [
        f"| {' | '.join(head)} |",
        f"|{'|'.join(rules)}|",
        *(f"| {' | '.join(row)} |" for row in rows),
    ]


def seconds_text(seconds: float) -> str:
    """A time with three figures and its unit."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= scale:
            return f"{_three(seconds / scale)} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def _three(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:.0f}"


def _cell(row: RowResult, peer: str) -> str:
    """A peer's ratio and the lower quartile of the pairs, or why there is none."""
    timing = row.timings.get(peer)
    if timing is None:
        return "wrong" if peer in row.wrong else NONE
    if timing.ratio is None:
        return seconds_text(timing.seconds)
    assert timing.quartile is not None
    return f"{_ratio(timing.ratio)} ({_ratio(timing.quartile)})"


def _ratio(value: float) -> str:
    return f"{value:.2f}" if value < 100 else f"{value:.0f}"


def _share(timing: Timing | None) -> str:
    return NONE if timing is None or timing.share is None else f"{timing.share:.2f}"


def _others(results: Results) -> list[str]:
    return [name for name in results.versions if name != BASELINE]


def columns(results: Results) -> list[str]:
    """The head of the table of times."""
    head = ["row", "what", "zerostride", "share", "limit GB/s"]
    return [*head, *_others(results), "best peer", "its share"]


def cells(row: RowResult, results: Results) -> list[str]:
    """A row of the table of times."""
    own = row.timings.get(BASELINE)
    best = row.best
    return [
        row.name,
        row.title + ("" if row.dtype == "float32" else f" {row.dtype}"),
        seconds_text(own.seconds) if own else "wrong" if BASELINE in row.wrong else NONE,
        _share(own),
        NONE if row.limit is None else f"{row.limit / 1e9:.1f}",
        *(_cell(row, name) for name in _others(results)),
        best or NONE,
        _share(row.timings[best]) if best else NONE,
    ]


def print_results(results: Results) -> None:
    """Prints the table, the aims and the notes."""
    console = new_console()
    table = new_table(columns(results))
    for row in results.rows:
        level = row.best is None or is_level(row)
        table.add_row(*cells(row, results), style=None if level else "yellow")
    console.print(table)
    console.print(legend(results), style="dim")
    for goal in judge(results):
        console.print(goal_text(goal), style="green" if goal.reached else "yellow")
    for line in notes(results):
        console.print(f"- {line}", style="dim")


def legend(results: Results) -> str:
    """What the figures of the table are."""
    return (
        "Ratios are the peer's time over zerostride's in the same round: the median of the pairs,"
        " and in brackets their lower quartile; above 1 zerostride is faster. Share: of the"
        f" streaming limit of the same bytes, measured in the same rounds with {results.limit}."
        f" {results.threads} thread{'s' * (results.threads > 1)}; zerostride: {results.backend}."
    )


def goal_text(goal: Goal) -> str:
    """An aim as a line of text."""
    mark = "reached" if goal.reached else "short"
    short = f" — {'; '.join(goal.short)}" if goal.short else ""
    return f"{mark}: {goal.text}: {goal.value}{short}"


def notes(results: Results) -> list[str]:
    """Why peers are missing from rows: each reason once, with its rows."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for row in results.rows:
        for name, reason in row.left_out.items():
            reasons.setdefault((name, reason), []).append(row.name)
        for name, reason in row.wrong.items():
            reasons.setdefault((name, f"WRONG, not timed: {reason}"), []).append(row.name)
    return [f"{name}: {reason} ({', '.join(rows)})" for (name, reason), rows in reasons.items()]


def print_list(rows: Iterable[Row], peers: Sequence[Peer]) -> None:
    """Prints what --rows and --peers choose from."""
    console = Console()
    for row in rows:
        console.print(f"{row.name:20} {row.title} {row.dtype}", highlight=False)
    for peer in peers:
        console.print(f"{peer.name:20} {peer.note}", highlight=False, style="dim")


def as_json(results: Results) -> str:
    """Everything, with the aims."""
    data = dataclasses.asdict(results)
    data["goals"] = [dataclasses.asdict(goal) for goal in judge(results)]
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"


def as_markdown(results: Results, why: str = "") -> str:
    """The page: machine, table, aims, what is said about them by hand, notes."""
    lines = [
        f"# zerostride beside its peers: {results.machine.short_name}",
        "",
        *made_by(results),
        "",
        legend(results),
        "",
        *markdown_table([columns(results), *(cells(row, results) for row in results.rows)]),
        "",
        "## Goals",
        "",
        *(f"- {goal_text(goal)}" for goal in judge(results)),
        "",
        *why.splitlines(),
        *([""] if why else []),
        "## The peers",
        "",
        TURNS,
        "",
        *(f"- {name}: {PEERS[name].note}" for name in results.versions),
        "",
        "## Where a peer is missing",
        "",
        *(f"- {line}" for line in notes(results)),
        "",
        "[MEMORY.md](../../MEMORY.md) has the memory of a call (`python -m benchmarks memory"
        " --write`). [SCALING.md](../../SCALING.md) has the time by size, rank and threads (`python"
        " -m benchmarks scaling --write`). [RESULTS.md](../../RESULTS.md) compares the processors.",
    ]
    return "\n".join(lines) + "\n"


def made_by(results: Results) -> list[str]:
    """The command, the machine and the releases."""
    machine = results.machine
    return [
        f"Made by `{results.command}` on {results.date}; not edited by hand.",
        "",
        f"- Processor: {machine.processor}, {machine.cores} cores;"
        f" {', '.join(machine.caches)}; {machine.memory_gib} GiB of memory",
        f"- System: {machine.system}; {machine.python}; load average before: {machine.load}",
        "- " + ", ".join(f"{name} {version}" for name, version in results.versions.items()),
    ]


def markdown_table(table: Sequence[Sequence[str]]) -> list[str]:
    """A table of Markdown, of whose text no star is taken for emphasis."""
    return markdown([[cell.replace("*", "\\*") for cell in row] for row in table])
