"""Tables for terminals of any width, and for files and pipes without a width."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import click

#: The columns of a file or pipe, and the least columns of a roomy terminal.
UNBOUNDED, ROOMY = 140, 110


@dataclass(frozen=True, slots=True)
class Column:
    """A column.

    Attributes:
        title: its heading.
        most: the most characters of a line.
        folds: whether long cells take several lines; if not, they are cut.
        right: whether it is aligned to the right.
        roomy: whether it is left out on a narrow terminal.
    """

    title: str
    most: int | None = None
    folds: bool = True
    right: bool = False
    roomy: bool = False


def put_table(
    columns: Sequence[Column], rows: Iterable[Sequence[str]], styles: Iterable[str] = ()
) -> None:
    """Prints a table without the blanks that fill its last column.

    Args:
        columns: the columns.
        rows: a cell for each column.
        styles: the style of each row's first cell; none if there are no more.
    """
    from itertools import chain, repeat

    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    terminal = Console()
    if not terminal.is_terminal:
        terminal.width = UNBOUNDED
    kept = [k for k, one in enumerate(columns) if terminal.width >= ROOMY or not one.roomy]
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in (columns[k] for k in kept):
        table.add_column(
            column.title,
            justify="right" if column.right else "left",
            no_wrap=not column.folds,
            overflow="fold" if column.folds else "ellipsis",
            max_width=column.most,
        )
    for row, style in zip(rows, chain(styles, repeat("")), strict=False):
        first, *others = [row[k] for k in kept]
        table.add_row(Text(first, style), *map(Text, others))
    with terminal.capture() as captured:
        terminal.print(table)
    lines = (line.rstrip() for line in captured.get().splitlines())
    click.echo("\n".join(lines), color=terminal.is_terminal or None)
