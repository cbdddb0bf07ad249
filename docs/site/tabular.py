"""Tables in Markdown, and how they are shown where the page is narrow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

#: Columns of a table that is shown narrowly, its first column always in sight.
WIDE = 8
#: Characters of a last cell that is prose: it keeps a width at which that can be read.
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
    made = [
        f"|{'|'.join(line)}|\n" if n == 1 else f"| {' | '.join(line)} |\n"
        for n, line in enumerate(cells)
    ]
    return "".join([shown(made), *made])


def shown(lines: Sequence[str]) -> str:
    """The line before a table that says how it is shown; empty where it is as any other.

    >>> shown(["| a | b |", "|---|---|", "| c | " + "long " * 20 + "|"])
    '{.prose}\\n'
    """
    if lines[0].count("|") > WIDE:
        return "{.wide}\n"
    last = max(len(line.rstrip().rstrip("|").rpartition(" | ")[2]) for line in lines)
    return "{.prose}\n" if last > PROSE else ""
