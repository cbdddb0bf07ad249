"""Tables and styled lines on the output, of the width that it has."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence

import click

from ..report.table import Column, Line, Row, table
from . import options

#: The columns of a file or pipe, if COLUMNS does not say otherwise.
PIPED = 120


def width() -> int:
    """The columns of the output: COLUMNS, or the terminal's, or those of a file."""
    return shutil.get_terminal_size((PIPED, 24)).columns


def put_lines(lines: Iterable[Line | str]) -> None:
    """Prints lines with their styles, where colours are wanted."""
    colored = options.colored()
    for line in lines:
        text = line if isinstance(line, str) else _painted(line) if colored else line.text
        click.echo(text, color=colored)


def put_table(columns: Sequence[Column], rows: Iterable[Row], styles: Iterable[str] = ()) -> None:
    """Prints a table.

    Args:
        columns: the columns.
        rows: a cell for each column.
        styles: the style of each row's first cell; none if there are no more.
    """
    put_lines(table(columns, list(rows), width(), list(styles)))


def _painted(line: Line) -> str:
    if not line.style:
        return line.text
    *attributes, last = line.style.split()
    words = {*attributes, last}
    color = None if last in ("bold", "dim") else last
    bold, dim = "bold" in words or None, "dim" in words or None
    head = click.style(line.text[: line.painted], fg=color, bold=bold, dim=dim)
    return head + line.text[line.painted :]
