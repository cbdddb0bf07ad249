"""Tables in Markdown, and their layout on narrow pages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

#: Tables of this many columns get a narrow layout with a fixed first column.
WIDE = 8
#: A last cell of this many characters is prose and keeps a readable width.
PROSE = 90


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table in Markdown; a bar in a cell is escaped.

    >>> print(table(["a"], [["x|y"]]), end="")
    | a |
    |---|
    | x\\|y |
    """
    heads = list(heads)
    lines = [heads, ["---"] * len(heads), *rows]
    cells = ([cell.replace("|", "\\|").replace("\n", " ") for cell in line] for line in lines)
    lines = [
        f"|{'|'.join(line)}|\n" if n == 1 else f"| {' | '.join(line)} |\n"
        for n, line in enumerate(cells)
    ]
    return "".join([shown(lines), *lines])


def shown(lines: Sequence[str]) -> str:
    """The line before a table with its layout class; empty for the usual layout.

    >>> shown(["| a | b |", "|---|---|", "| c | " + "long " * 20 + "|"])
    '{.prose}\\n'
    """
    if lines[0].count("|") > WIDE:
        return "{.wide}\n"
    last = max(len(line.rstrip().rstrip("|").rpartition(" | ")[2]) for line in lines)
    return "{.prose}\n" if last > PROSE else ""
