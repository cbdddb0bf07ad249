"""Tables and styled lines on the output, of the width that it has."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import click

from ..report.table import Column, Line, Row, cells_of, table, wrapped
from . import options

#: The columns of a file or pipe, if COLUMNS does not say otherwise.
PIPED = 120
#: A word of a shell's command: blanks in quotes do not end it.
_WORD = re.compile(r"""(?:'[^']*'|"[^"]*"|\\.|[^\s'"\\])+""")


def width() -> int:
    """The columns of the output: COLUMNS, or the terminal's, or those of a file."""
    return shutil.get_terminal_size((PIPED, 24)).columns


def put_lines(lines: Iterable[Line | str]) -> None:
    """Prints lines with their styles, where colours are wanted."""
    colored = options.colored()
    for line in lines:
        if isinstance(line, str):
            put_text(line)
        else:
            click.echo(_painted(line) if colored else line.text, color=colored)


def put_text(text: str = "", *, err: bool = False, color: bool | None = None) -> None:
    """Prints a text; on a terminal, lines that are too long are folded at blanks.

    A file or a pipe gets lines as they are. (COLUMNS does not tell: the library readline sets it
    for all children of a Python that has loaded it.)
    """
    if _is_terminal(sys.stderr if err else sys.stdout):
        text = "\n".join(part for line in text.split("\n") for part in folded(line, width()))
    click.echo(text, err=err, color=color)


def _is_terminal(stream: Any) -> bool:
    try:
        return bool(stream.isatty())
    except (AttributeError, OSError, ValueError):  # there is none, or it is closed
        return False


def folded(line: str, columns: int) -> Iterator[str]:
    """A line in lines of at most so many columns, where blanks allow it.

    A command can still be pasted: it goes on after a backslash. Other lines go on below their last
    column, or a little to the right of where they begin.

    >>> list(folded("next: zerostride audit 'a b.onnx' --target ncnn", 30))
    ['next: zerostride audit \\\\', "    'a b.onnx' --target ncnn"]
    >>> list(folded("  ncnn  refused: 2 against 3, and neither is 1", 30))
    ['  ncnn  refused: 2 against 3,', '        and neither is 1']
    """
    if cells_of(line) <= columns or "\x1b" in line:
        yield line
    elif line.startswith("next: "):
        rest = ""
        for word in _WORD.findall(line):
            if rest and cells_of(rest) + cells_of(word) + 3 > columns:
                yield rest + " \\"
                rest = "   "
            rest = f"{rest} {word}" if rest else word
        yield rest
    else:
        begin = len(line) - len(line.lstrip())
        last = max((match.end() for match in re.finditer(r"\S  +(?=\S)", line)), default=0)
        if last > columns * 2 // 3:  # little room below the last column: it begins a line
            first, indent = line[:last].rstrip(), begin + 4
        else:
            first = " " * begin + wrapped(line[begin:], columns - begin)[0]
            indent = last or min(begin + 2, columns // 2)
        yield from folded(first, columns)
        yield from wrapped(line[len(first) :].strip(), columns, " " * indent)


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
